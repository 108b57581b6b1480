"""Walls chopped into arcs: each lies in one cell of a grid, bends little, and runs one way along both axes.

Arcs end where a wall crosses a grid line, where it turns back along an axis, at its corners, and where it has bent by
much. So an arc is a graph over either axis, and Gauss points on it are as exact as on a straight line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorfield.problem.curves import Curved, Straight, on_curve, unit_normals
from factorfield.problem.shape import Wall

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Truth = NDArray[np.bool_]
Edges = tuple[Array, Array]  # of the cells along the first axis and the second
ITERATIONS = 60  # at most, of a bracketed root
EXTREMAL = 1e-9  # a part of a normal below is zero
SHORTEST = 1e-12  # of a cell: an arc below is none
NUDGE = 1e-9  # of a cell: so far inside of an arc lies the cell that it belongs to


@dataclass(frozen=True, eq=False)
class _Curves:
    """What stretches lie on: straight lines, and zero curves of functions. `which` names the stretch of each point."""

    starts: Array
    outward: Array  # normals of straight stretches
    sense: Array
    functions: tuple[tuple[Curved, Truth], ...]  # one piece of every function, and the stretches on its zero curve
    straight: Truth

    @staticmethod
    def of(wall: Wall) -> _Curves:
        pieces = [stretch.piece for stretch in wall.stretches]
        starts, outward, sense = np.zeros((len(pieces), 2)), np.zeros((len(pieces), 2)), np.ones(len(pieces))
        members: dict[int, tuple[Curved, Truth]] = {}
        for number, piece in enumerate(pieces):
            if isinstance(piece, Curved):
                sense[number] = piece.sense
                _, mask = members.setdefault(id(piece.function), (piece, np.zeros(len(pieces), bool)))
                mask[number] = True
            else:
                assert isinstance(piece, Straight)
                starts[number], outward[number] = piece.start, piece.normal
        straight = np.array([isinstance(piece, Straight) for piece in pieces])
        return _Curves(starts, outward, sense, tuple(members.values()), straight)

    def onto(self, which: Indices, points: Array, across: Array) -> Array:
        """Points moved along given directions to their curves."""
        moved = points.copy()
        for piece, members in self.functions:
            chosen = members[which]
            if np.any(chosen):
                moved[chosen] = on_curve(piece.function, points[chosen], across[chosen])
        return moved  # chords of straight stretches lie on them

    def normals(self, which: Indices, points: Array) -> Array:
        out = self.outward[which]
        for piece, members in self.functions:
            chosen = members[which]
            if np.any(chosen):
                out[chosen] = self.sense[which[chosen], None] * unit_normals(piece.function, points[chosen])
        return out


@dataclass(frozen=True, eq=False)
class Arcs:
    """Parts of a wall between two points each, by the share of the chord from 0 to 1."""

    curves: _Curves
    which: Indices  # the stretch of the wall
    start: Array  # (arcs, 2)
    end: Array
    reached: Array  # the arc length along the stretch's piece at the start
    extremal: Truth  # (arcs, start or end, axis): the wall turns back along the axis there

    def __len__(self) -> int:
        return len(self.which)

    def at(self, number: Indices, share: Array) -> Array:
        """Points of arcs: those of the chord moved along its normal."""
        start, chord = self.start[number], self.end[number] - self.start[number]
        across = np.stack([-chord[:, 1], chord[:, 0]], axis=1)
        return self.curves.onto(self.which[number], start + share[:, None] * chord, across)

    def normals(self, number: Indices, points: Array) -> Array:
        return self.curves.normals(self.which[number], points)

    def taken(self, number: Indices) -> Arcs:
        return Arcs(self.curves, self.which[number], self.start[number], self.end[number], self.reached[number],
                    self.extremal[number])  # fmt: skip

    def gauss(self, count: int) -> tuple[Array, Array, Array, Array]:
        """Gauss points (arcs, count, 2), normals, the lengths they stand for, and arc lengths along the pieces."""
        nodes, shares = np.polynomial.legendre.leggauss(count)
        number = np.repeat(np.arange(len(self)), count)
        points = self.at(number, np.tile(0.5 * (1.0 + nodes), len(self)))
        normals = self.normals(number, points)
        chord = (self.end - self.start)[number]
        rise = np.abs(normals[:, 1] * chord[:, 0] - normals[:, 0] * chord[:, 1])
        speed = (np.sum(chord**2, axis=1) / rise).reshape(-1, count)  # of the arc length in the share
        reached = self.reached[:, None] + speed @ _integrals(nodes).T
        wide = len(self), count, 2
        return points.reshape(wide), normals.reshape(wide), 0.5 * shares * speed, reached


def _integrals(nodes: Array) -> Array:
    """Of polynomials by their values at Gauss points on [-1, 1], from -1 to each point, halved."""
    powers = np.arange(len(nodes))
    rising = (nodes[:, None] ** (powers + 1) - (-1.0) ** (powers + 1)) / (powers + 1)
    return np.asarray(0.5 * rising @ np.linalg.inv(nodes[:, None] ** powers))


def chopped(wall: Wall, edges: Edges, most_turn: float) -> Arcs:
    """The arcs of a wall in the cells of a grid, none bent by much more than `most_turn` (radians)."""
    curves = _Curves.of(wall)
    which, places, reached = _nodes(wall)
    kept = np.ones(len(which), bool)
    kept[1:-1] = (which[1:-1] != which[:-2]) | (which[1:-1] != which[2:])  # the ends of stretches
    turning = np.zeros((len(which), 2), bool)
    for axis in (0, 1):
        which, places, reached, kept, turning = _with_turns(curves, axis, which, places, reached, kept, turning)
    for axis in (0, 1):
        which, places, reached, kept, turning = _with_crossings(
            curves, axis, edges[axis], which, places, reached, kept, turning
        )
    kept |= _bends(curves.normals(which, places), which, kept, most_turn)
    which, places, reached, turning = which[kept], places[kept], reached[kept], turning[kept]
    width = min(float(np.diff(lines).min()) for lines in edges)
    first = np.flatnonzero((which[1:] == which[:-1]) & (np.hypot(*np.diff(places, axis=0).T) > SHORTEST * width))
    extremal = np.stack([turning[first], turning[first + 1]], axis=1)
    return Arcs(curves, which[first], places[first], places[first + 1], reached[first], extremal)


def cells_of(arcs: Arcs, edges: Edges) -> tuple[Indices, Truth]:
    """The cell inside of every arc, (arcs, 2), and whether the arc lies on one of its sides."""
    number = np.arange(len(arcs))
    middle = arcs.at(number, np.full(len(arcs), 0.5))
    normal = arcs.normals(number, middle)
    cell, on_side = np.empty((len(arcs), 2), np.int64), np.zeros(len(arcs), bool)
    for axis, lines in enumerate(edges):
        width = float(np.diff(lines).min())
        inner = middle[:, axis] - NUDGE * width * normal[:, axis]
        cell[:, axis] = np.clip(np.searchsorted(lines, inner, side="right") - 1, 0, len(lines) - 2)
        places = np.stack([arcs.start[:, axis], middle[:, axis], arcs.end[:, axis]])
        for side in (0, 1):
            on_side |= np.all(np.abs(places - lines[cell[:, axis] + side]) <= SHORTEST * width, axis=0)
    return cell, on_side


def _nodes(wall: Wall) -> tuple[Indices, Array, Array]:
    """Of every stretch the ends and what nodes its piece has between: stretch, places and arc lengths."""
    which, places, reached = [], [], []
    for number, stretch in enumerate(wall.stretches):
        ends, _ = stretch.piece.at(np.array([stretch.low, stretch.high]))
        inner, arcs = np.empty((0, 2)), np.empty(0)
        if isinstance(stretch.piece, Curved):
            margin = 1e-9 * stretch.piece.length
            between = (stretch.piece.arcs > stretch.low + margin) & (stretch.piece.arcs < stretch.high - margin)
            inner, arcs = stretch.piece.nodes[between], stretch.piece.arcs[between]
        places.append(np.concatenate([ends[:1], inner, ends[1:]]))
        reached.append(np.concatenate([[stretch.low], arcs, [stretch.high]]))
        which.append(np.full(len(arcs) + 2, number))
    return np.concatenate(which), np.concatenate(places), np.concatenate(reached)


def _with_turns(curves: _Curves, axis: int, which: Indices, places: Array, reached: Array, kept: Truth,
                turning: Truth) -> tuple[Indices, Array, Array, Truth, Truth]:  # fmt: skip
    """Nodes added where a wall turns back along an axis: the other part of its normal is zero."""
    other = 1 - axis
    part = curves.normals(which, places)[:, other]
    zero = (np.abs(part) <= EXTREMAL) & ~curves.straight[which]
    kept, turning = kept | zero, turning.copy()
    turning[zero, axis] = True
    chord = np.flatnonzero((which[1:] == which[:-1]) & (part[1:] * part[:-1] < 0.0) & ~zero[1:] & ~zero[:-1])
    if not len(chord):
        return which, places, reached, kept, turning
    chords = _chords(curves, which, places, reached, chord)
    number = np.arange(len(chord))

    def slope(share: Array) -> Array:
        return chords.normals(number, chords.at(number, share))[:, other]

    share = bracketed_root(slope, part[chord], part[chord + 1], 1e-14)
    mark = np.zeros((len(chord), 2), bool)
    mark[:, axis] = True
    return _inserted((which, places, reached, kept, turning), chords, chord, share, mark)


def _with_crossings(curves: _Curves, axis: int, lines: Array, which: Indices, places: Array, reached: Array,
                    kept: Truth, turning: Truth) -> tuple[Indices, Array, Array, Truth, Truth]:  # fmt: skip
    """Nodes added where a wall crosses the grid lines of an axis; nodes that lie on one are kept."""
    x, width = places[:, axis], float(np.diff(lines).min())
    nearest = lines[np.clip(np.searchsorted(lines, x), 1, len(lines) - 1) - np.array([[0], [1]])]
    kept = kept | np.any(np.abs(nearest - x) <= SHORTEST * width, axis=0)
    chord = np.flatnonzero(which[1:] == which[:-1])
    least, most = np.minimum(x[chord], x[chord + 1]), np.maximum(x[chord], x[chord + 1])
    margin = SHORTEST * width
    first = np.searchsorted(lines, least + margin, side="right")
    count = np.maximum(np.searchsorted(lines, most - margin, side="left") - first, 0)
    chord, first = np.repeat(chord, count), np.repeat(first, count)
    if not len(chord):
        return which, places, reached, kept, turning
    line = lines[first + np.arange(len(chord)) - np.repeat(np.cumsum(count) - count, count)]
    chords = _chords(curves, which, places, reached, chord)
    number = np.arange(len(chord))

    def away(share: Array) -> Array:
        return chords.at(number, share)[:, axis] - line

    share = bracketed_root(away, x[chord] - line, x[chord + 1] - line, 1e-15 * float(np.ptp(lines)))
    return _inserted((which, places, reached, kept, turning), chords, chord, share, np.zeros((len(chord), 2), bool))


def _chords(curves: _Curves, which: Indices, places: Array, reached: Array, chord: Indices) -> Arcs:
    return Arcs(curves, which[chord], places[chord], places[chord + 1], reached[chord],
                np.zeros((len(chord), 2, 2), bool))  # fmt: skip


def _inserted(nodes: Sequence[NDArray], chords: Arcs, chord: Indices, share: Array, mark: Truth) -> tuple:  # type: ignore[type-arg]
    """Nodes with new ones on chords, that are kept, in the order of the walk."""
    which, places, reached, kept, turning = nodes
    arc = (1.0 - share) * reached[chord] + share * reached[chord + 1]
    place = chords.at(np.arange(len(chord)), share)
    order = np.lexsort([np.append(np.arange(len(which), dtype=float), chord + np.maximum(share, 1e-300))])
    joined = (
        np.append(which, which[chord]), np.concatenate([places, place]), np.append(reached, arc),
        np.append(kept, np.ones(len(chord), bool)), np.concatenate([turning, mark]),
    )  # fmt: skip
    return tuple(column[order] for column in joined)


def _bends(normals: Array, which: Indices, kept: Truth, most: float) -> Truth:
    """The nodes at which a wall has bent by another `most` since the last node that is kept."""
    cosine = np.sum(normals[1:] * normals[:-1], axis=1)
    angle = np.where(which[1:] == which[:-1], np.arccos(np.clip(cosine, -1.0, 1.0)), 0.0)
    total = np.concatenate([[0.0], np.cumsum(angle)])
    last = np.maximum.accumulate(np.where(kept, np.arange(len(which)), 0))
    steps = np.floor((total - total[last]) / most)
    return np.concatenate([[False], (steps[1:] > steps[:-1]) & (last[1:] == last[:-1])])


def bracketed_root(function: Callable[[Array], Array], at_0: Array, at_1: Array, tolerance: float) -> Array:
    """The shares in [0, 1] at which functions of opposite signs at the ends are zero: false position (Illinois)."""
    low, high = np.zeros(len(at_0)), np.ones(len(at_0))
    f_low, f_high = at_0.copy(), at_1.copy()
    for _ in range(ITERATIONS if len(at_0) else 0):
        with np.errstate(all="ignore"):
            share = (low * f_high - high * f_low) / (f_high - f_low)
        share = np.where(np.isfinite(share), share, high)
        value = function(share)
        passed = value * f_high < 0.0
        low, f_low = np.where(passed, high, low), np.where(passed, f_high, 0.5 * f_low)
        high, f_high = share, value
        if np.all((np.abs(value) <= tolerance) | (np.abs(high - low) <= 1e-15)):
            break
    return high
