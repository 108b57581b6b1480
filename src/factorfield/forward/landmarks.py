"""What formulas say of where a field changes suddenly: jumps, and pulses that points of a grid may miss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorfield.problem.conditions import Boundary, Observations
from factorfield.problem.domain import TIME, Axis
from factorfield.problem.jumps import places
from factorfield.problem.narrow import Feature, features
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
BESIDE = 1e-12  # of the horizon: windows end and begin so far before and after a jump
WIDTHS = 3.0  # of a pulse, to either side: where windows and cells are short
NARROW = 0.1  # of an axis: a wider pulse needs no care
PER_WIDTH = 1.5  # cells in the width of a pulse, at least
NEAR_JUMPS = 0.02  # of an axis: the width of a layer that a jump leaves, on the first grid


@dataclass(frozen=True)
class Landmarks:
    """Along one axis, in order."""

    jumps: tuple[float, ...]
    pulses: tuple[Feature, ...]

    @property
    def is_empty(self) -> bool:
        return not self.jumps and not self.pulses


def landmarks_of(problem: Problem) -> dict[str, Landmarks]:
    """By axis; in time of equations and walls, in space of starts too."""
    texts = [equation.text for equation in problem.equations]
    texts += [c.text for c in problem.conditions if not isinstance(c, Observations)]
    result = {}
    for name, axis in problem.domain.items():
        jumps = places(texts, name, axis, problem.constants)
        known = [one for one in features(texts, name, problem.domain, problem.constants)
                 if one.width < NARROW * axis.length]  # fmt: skip
        result[name] = Landmarks(jumps, tuple(sorted(known)))
    return result


def breaks_in_time(problem: Problem, landmarks: Mapping[str, Landmarks]) -> tuple[float, ...]:
    """Where windows end: just before jumps, and at the ends of pulses."""
    if TIME not in problem.domain:
        return ()
    axis, marks = problem.domain[TIME], landmarks[TIME]
    beside = BESIDE * axis.length
    wanted = [jump - beside for jump in marks.jumps]
    for pulse in marks.pulses:
        wanted += [pulse.place - WIDTHS * pulse.width, pulse.place + WIDTHS * pulse.width]
    inside = sorted(t for t in wanted if axis.lower + 10.0 * beside < t < axis.upper - 10.0 * beside)
    before = [-np.inf, *inside][: len(inside)]
    return tuple(t for t, last in zip(inside, before, strict=True) if t - last > 10.0 * beside)


def layers_along(problem: Problem, name: str, landmarks: Mapping[str, Landmarks]) -> tuple[float, ...]:
    """Where jumps leave layers: jumps of a start along an axis, and ends whose walls jump in time."""
    if TIME not in problem.domain:
        return ()
    axis = problem.domain[name]
    places_of_layers = list(landmarks[name].jumps)
    for condition in problem.conditions:
        at = condition.at if isinstance(condition, Boundary) and isinstance(condition.at, Mapping) else {}
        text = "" if isinstance(condition, Observations) else condition.text
        if name in at and places([text], TIME, problem.domain[TIME], problem.constants):
            places_of_layers += [end for end in (axis.lower, axis.upper) if at[name] == end]
    return tuple(places_of_layers)


def cells_along(axis: Axis, count: int, marks: Landmarks, repeats: int, layers: Sequence[float]) -> list[float]:
    """Breaks of about `count` cells: jumps are among them, as often as smoothness there is to be lost, and cells are
    narrow at pulses and where jumps leave layers."""
    equal = np.linspace(axis.lower, axis.upper, count + 1)
    width = axis.length / count
    kept = [x for x in equal[1:-1] if all(abs(x - jump) > 0.3 * width for jump in marks.jumps)]
    breaks = sorted([axis.lower, *kept, *marks.jumps, axis.upper])
    narrow = [(pulse.place, pulse.width) for pulse in marks.pulses]
    narrow += [(place, NEAR_JUMPS * axis.length * 12.0 / count) for place in layers]
    for place, wide in narrow:
        breaks = _refined(breaks, place, wide)
    return sorted([*breaks, *(jump for jump in marks.jumps for _ in range(repeats - 1))])


def _refined(breaks: Sequence[float], place: float, width: float) -> list[float]:
    """Cells near a place are halved until they are narrower than the width; neighbours differ by no more than twice."""
    edges = list(breaks)
    while True:
        widths = np.diff(edges)
        apart = np.maximum(0.0, np.maximum(np.array(edges[:-1]) - place, place - np.array(edges[1:])))
        largest = np.maximum(width / PER_WIDTH, 0.5 * np.maximum(apart - WIDTHS * width, 0.0))
        wide = np.flatnonzero(widths > largest)
        if not len(wide):
            return edges
        middles = [0.5 * (edges[cell] + edges[cell + 1]) for cell in wide]
        edges = sorted([*edges, *middles])
