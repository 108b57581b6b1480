"""Narrow features of formulas: pulses in time begin and end windows; what no grid of ours holds is refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from factorfield.errors import expected
from factorfield.problem.domain import TIME, Interval
from factorfield.problem.narrow import Feature, features
from factorfield.problem.problem import Problem
from factorfield.problem.statement import Statement

LEAST_WIDTH = 1.0 / 250.0  # of an axis: narrower ones need more than the thousand features that an axis may have
QUICK = 0.05  # of the horizon: a pulse that is shorter has windows of its own
REACH = 4.0  # widths on both sides of a pulse: beyond, a Gaussian is below rounding
MOST_PULSES = 100  # more are an oscillation, which every window sees


def check_wide(problem: Problem, axes: Iterable[str]) -> None:
    """Refuse formulas with features so narrow that a grid along these axes would miss them without a word."""
    for axis in axes:
        least = LEAST_WIDTH * problem.domain[axis].length
        found = min(_features(problem, axis, True, problem.statements), key=lambda feature: feature.width, default=None)
        if found is not None and found.width < least:
            received = f"one of {found.width:.2g} at {axis} = {found.place:.4g}"
            attempt = "method='chain'" if axis == TIME else "a wider one of the same integral, or a shorter domain"
            raise expected(f"formulas whose features are at least {least:.2g} wide along {axis}", received, attempt)


def pulses(problem: Problem) -> tuple[float, ...]:
    """When short pulses of known formulas begin and end, within the horizon."""
    axis = problem.domain[TIME]
    found = {end for statement in problem.statements for part in quick(problem, statement)
             for end in (part.lower, part.upper)}
    return tuple(t for t in sorted(found) if axis.lower < t < axis.upper)


def quick(problem: Problem, statement: Statement) -> list[Interval]:
    """Around the short pulses in time of one statement; none where there are so many that every window sees some."""
    if TIME not in problem.domain:
        return []
    axis = problem.domain[TIME]
    found = [f for f in _features(problem, TIME, False, [statement]) if f.width < QUICK * axis.length]
    around = [(f.place - REACH * f.width, f.place + REACH * f.width) for f in found]
    parts = [Interval(max(low, axis.lower), min(high, axis.upper)) for low, high in around]
    return parts if len(parts) <= MOST_PULSES else []


def _features(
    problem: Problem, axis: str, at_places: bool, statements: Sequence[Statement]
) -> list[Feature]:
    spoken = [s for s in statements if s.points is None and s.wall is None and axis not in (s.face or {})]
    texts = list(dict.fromkeys(s.relation.text for s in spoken))
    return features(texts, axis, problem.domain, problem.typical_parameters, at_places)
