"""The narrowest features of formulas: pulses, spikes and holes that points of a grid may miss.

Cells are halved where the bounds of a formula leave room for a feature between their ends (bounds.py), so that none is
missed, however narrow; what is reported is seen at the ends of these cells. A jump or a front is no feature here:
points on both of its sides see it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorfield.problem.bounds import Bounds, bounds, constant
from factorfield.problem.coefficients import Table
from factorfield.problem.domain import Domain
from factorfield.problem.parsing import names_in, operations_in, parse_sides

Array = NDArray[np.float64]
FIRST_CELLS = 256
MOST_CELLS, MOST_OPERATIONS = 20_000, 200  # fewer cells for a formula of more operations
FINEST = 1e-12  # of the axis: a shorter cell is not halved
HIDDEN = 0.05  # of the formula's range: what may hide between the ends of a cell
RISEN = 0.1  # of the range: a feature rises and falls, or falls and rises, by more
LINES = (0.31, 0.5, 0.77)  # of the other axes: where a feature that moves is looked for


class Feature(NamedTuple):
    """A pulse along an axis: its middle, and how wide it is at half of its height."""

    place: float
    width: float


Constants = Mapping[str, float | Table]


def features(
    texts: list[str], axis: str, domain: Domain, constants: Constants, at_places: bool = True
) -> list[Feature]:
    """What rises and falls along an axis in these texts, the fields and their derivatives being one.

    The other axes are looked at as a whole, and at a few places, where a feature that moves shows.
    """
    found: list[Feature] = []
    for sides in map(parse_sides, texts):
        names = names_in(sides)
        if axis in names:
            others = [name for name in names if name in domain and name != axis]
            for line in _lines(others, domain, LINES if at_places else ()):
                known = {name: _known(constants.get(name, 1.0)) for name in names} | line
                found += _along(sides, axis, domain[axis].lower, domain[axis].length, known)
    return found


def narrowest(texts: list[str], axis: str, domain: Domain, constants: Constants) -> Feature | None:
    """The narrowest of them; None without any."""
    return min(features(texts, axis, domain, constants), key=lambda feature: feature.width, default=None)


def _known(value: float | Table) -> Bounds:
    if isinstance(value, Table):
        return Bounds(np.array([np.min(value.value)]), np.array([np.max(value.value)]))
    return constant(value)


def _lines(others: list[str], domain: Domain, shares: Sequence[float]) -> Iterator[dict[str, Bounds]]:
    yield {name: Bounds(np.array([domain[name].lower]), np.array([domain[name].upper])) for name in others}
    for share in shares if others else ():
        yield {name: constant(domain[name].lower + share * domain[name].length) for name in others}


def _along(
    sides: list[ast.expr], axis: str, lower: float, length: float, known: Mapping[str, Bounds]
) -> Iterator[Feature]:
    def over(low: Array, high: Array) -> Bounds:
        found = bounds(sides, {**known, axis: Bounds(low, high)})
        return Bounds(*(np.broadcast_to(end, low.shape).copy() for end in found))

    with np.errstate(invalid="ignore"):  # what has no bounds there hides nothing that cells could show
        edges, ends = _mesh(over, lower, length, int(MOST_CELLS / max(1.0, operations_in(sides) / MOST_OPERATIONS)))
    for values in ends:
        yield from _pulses(edges, values)


def _mesh(over: Callable[[Array, Array], Bounds], lower: float, length: float, most: int) -> tuple[Array, Bounds]:
    """Places, and the bounds there, between which nothing hides; no more than `most`."""
    edges = lower + length * np.linspace(0.0, 1.0, FIRST_CELLS + 1)
    at_edges, cells = over(edges, edges), over(edges[:-1], edges[1:])
    while True:
        room = HIDDEN * _range(np.concatenate([*at_edges, *cells]))
        above = cells.high - np.maximum(at_edges.high[:-1], at_edges.high[1:])
        below = np.minimum(at_edges.low[:-1], at_edges.low[1:]) - cells.low
        split = np.flatnonzero((np.maximum(above, below) > room) & (np.diff(edges) > FINEST * length))
        if len(split) == 0 or len(edges) + len(split) > most:
            return edges, at_edges
        middle = 0.5 * (edges[split] + edges[split + 1])
        left, right = over(edges[split], middle), over(middle, edges[split + 1])
        edges = np.insert(edges, split + 1, middle)
        at_edges = _inserted(at_edges, split + 1, over(middle, middle))
        for whole, half in zip(cells, left, strict=True):
            whole[split] = half
        cells = _inserted(cells, split + 1, right)


def _inserted(old: Bounds, at: NDArray[np.intp], new: Bounds) -> Bounds:
    return Bounds(np.insert(old.low, at, new.low), np.insert(old.high, at, new.high))


def _range(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.ptp(finite)) if len(finite) else 0.0


def _pulses(places: Array, values: Array) -> Iterator[Feature]:
    """Between two turns, half way up and half way down."""
    kept = np.isfinite(values)
    places, values = places[kept], values[kept]
    turns = _turns(values, RISEN * _range(values))
    for before, at, after in zip(turns, turns[1:], turns[2:], strict=False):
        up = _crossing(places[before : at + 1], values[before : at + 1])
        down = _crossing(places[at : after + 1], values[at : after + 1])
        yield Feature(float(places[at]), down - up)


def _crossing(places: Array, values: Array) -> float:
    half = 0.5 * (values[0] + values[-1])
    passed = int(np.argmax((values > half) == (values[-1] > half)))
    return float(0.5 * (places[passed - 1] + places[passed]))


def _turns(values: Array, least: float) -> list[int]:
    """The first and last place, and those where the values turn by more than `least`."""
    if len(values) < 3 or least <= 0.0:
        return []
    turns, extreme, rising = [0], 0, 0
    for index in range(1, len(values)):
        step = values[index] - values[extreme]
        if rising == 0:
            if abs(values[index] - values[0]) > least:
                rising, extreme = (1 if values[index] > values[0] else -1), index
        elif rising * step >= 0.0:
            extreme = index
        elif abs(step) > least:
            turns.append(extreme)
            rising, extreme = -rising, index
    return [*turns, extreme] if extreme != turns[-1] else turns
