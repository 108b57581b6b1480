"""What cannot be a problem whatever its data: fields without an equation, conditions that exclude each other."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import AdviceWarning, ProblemError, expected, nearest
from factorfield.problem.coefficients import Table, located
from factorfield.problem.domain import Domain, Points
from factorfield.problem.parsing import evaluate, names_in, parse_sides
from factorfield.problem.places import places_of
from factorfield.problem.relation import Relation, evaluate_coefficient
from factorfield.problem.shape import Shape
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]
POINTS = 16  # along each free axis, where two conditions are compared
DIGITS = 9  # to which coefficients are the same
CONTRADICTION = 30.0  # sigmas between two conditions on one face from which they cannot both be meant


def check_counts(fields: Sequence[str], statements: Sequence[Statement]) -> None:
    """As many equations as fields, each field in at least one."""
    equations = [s for s in statements if s.kind == "equation"]
    governed = {name for s in equations for name in s.relation.fields}
    free = [name for name in fields if name not in governed]
    if free:
        raise expected(
            f"an equation for every field ({', '.join(fields)})", f"none that mentions {free[0]!r}",
            f"{nearest(free[0], governed or {'u'})}, an equation for it, or "
            f"parameters={{{free[0]!r}: ff.Unknown(0, 1, over=...)}} if it is a coefficient",
        )  # fmt: skip
    if len(equations) < len(fields):
        raise expected(
            f"as many equations as fields ({', '.join(fields)})", f"{len(equations)}",
            "another equation, or ff.Unknown(mean, std, over=...) for a field that is a coefficient",
        )  # fmt: skip
    if len(equations) > len(fields):
        warnings.warn(
            f"{len(equations)} equations for {len(fields)} field(s): all of them are asked to hold, "
            "which they may not be able to together",
            AdviceWarning, stacklevel=3,
        )  # fmt: skip


def check_contradictions(
    statements: Sequence[Statement], domain: Domain, shape: Shape | None, constants: Mapping[str, float | Table]
) -> None:
    """Two conditions on one face, or on one part of a region's boundary, that ask the same quantity to have different
    values."""
    told: dict[object, list[Told]] = {}
    along = {name: axis.cells(POINTS) for name, axis in domain.items()}
    linear = [s for s in statements if s.face is not None and not s.stencil and s.relation.is_linear]
    for statement in linear:
        points = {} if statement.wall is not None else places_of(statement, domain, shape, along)
        one = _told(statement, points, constants) if points else None
        if one is not None:
            told.setdefault((one.ratios, *sorted((statement.face or {}).items())), []).append(one)
    for same in told.values():
        _compare(same)
    for first, second in combinations([s for s in linear if s.wall is not None], 2):
        assert first.wall is not None and second.wall is not None
        wall = first.wall.shared(second.wall)
        if wall is not None:
            points = places_of(replace(first, wall=wall), domain, shape, along)
            pair = [_told(first, points, constants), _told(second, points, constants)]
            if pair[0] is not None and pair[1] is not None and pair[0].ratios == pair[1].ratios:
                _compare([one for one in pair if one is not None])


def _compare(same: Sequence[Told]) -> None:
    """Refuse different values of one quantity."""
    values, slack = np.stack([one.values for one in same]), np.array([one.slack for one in same])
    for index, one in enumerate(same[1:], 1):
        gap = np.max(np.abs(values[:index] - one.values), axis=1)
        beyond = gap - CONTRADICTION * np.hypot(slack[:index], one.slack) - 1e-9
        if np.any(beyond > 0.0):
            first = int(np.argmax(beyond > 0.0))
            raise ProblemError(
                f"expected conditions that can hold together, received {same[first].name!r} and {one.name!r}, "
                f"which differ by {gap[first]:.3g}; try removing one of them, or a larger sigma"
            )


def check_repeats(points: Mapping[str, Array], what: str) -> None:
    """A logger that stamps two readings of one sensor alike wrote a line twice, or its clock was set back."""
    rows = np.stack(list(points.values()))
    count = rows.shape[1] - np.unique(rows, axis=1).shape[1]
    if count:
        warnings.warn(
            f"{count} of {rows.shape[1]} {what} have the time and place of another: each counts as a measurement of "
            "its own; drop them if the logger wrote a line twice or its clock was set back",
            AdviceWarning, stacklevel=4,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class Told:
    """What a linear condition says at points of its face: a quantity, known by its ratios of jets, has these values."""

    name: str
    ratios: tuple[object, ...]  # names of the jets, and their coefficients over the first one's, rounded
    values: Array
    slack: float  # sigma of the values


def _told(statement: Statement, points: Points, constants: Mapping[str, float | Table]) -> Told | None:
    """In numbers, jet by jet; None where a coefficient is unknown, or the first one has no value somewhere."""
    relation = statement.relation
    if any(name not in constants for name in relation.parameters):
        return None
    jets = sorted(str(symbol) for symbol in relation.jets)
    rest, slopes = (_parts if statement.wall is None else _parts_on_wall)(relation, jets, points, constants)
    with np.errstate(all="ignore"):
        shares = [np.broadcast_to(slope / slopes[0], next(iter(points.values())).shape) for slope in slopes]
        values = np.broadcast_to(-rest / slopes[0], shares[0].shape)
    if not np.all(np.isfinite([*shares, values])):
        return None
    sigma = statement.sigma if isinstance(statement.sigma, float) else 0.0
    ratios = tuple((name, share.round(DIGITS).tobytes()) for name, share in zip(jets, shares, strict=True))
    return Told(statement.name, ratios, values, sigma / float(np.max(np.abs(slopes[0]))))


def _parts(
    relation: Relation, jets: Sequence[str], points: Points, constants: Mapping[str, float | Table]
) -> tuple[Array, list[Array]]:
    """What a relation says without fields, and the coefficient of each jet, read off its text."""
    sides = parse_sides(relation.text)
    # a table that falls out of the formula, as in 0*k, still stands in the text
    tables = [n for n in names_in(sides) if isinstance(constants.get(n, constants.get(n.partition("_")[0])), Table)]
    known = {**constants, **located(points, [*relation.coordinates, *tables], constants)}
    zero = dict.fromkeys(names_in(sides), 0.0) | known  # a name that cancels needs a value too
    rest = evaluate(sides, zero | dict.fromkeys(jets, 0.0))
    return rest, [evaluate(sides, zero | dict.fromkeys(jets, 0.0) | {name: 1.0}) - rest for name in jets]


def _parts_on_wall(
    relation: Relation, jets: Sequence[str], points: Points, constants: Mapping[str, float | Table]
) -> tuple[Array, list[Array]]:
    """The same of a relation whose text may name normal derivatives."""
    named = {str(symbol): relation.expression.diff(symbol) for symbol in relation.jets}
    plain = relation.expression.subs(dict.fromkeys(relation.jets, 0))
    found = [evaluate_coefficient(entry, constants, points) for entry in (plain, *(named[name] for name in jets))]
    return np.asarray(found[0]), [np.asarray(slope) for slope in found[1:]]
