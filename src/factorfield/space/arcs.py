"""Walls chopped into arcs: each lies in one cell of a grid, bends little, and runs one way along both axes.

Arcs end where a wall crosses a grid line, where it turns back along an axis, at its corners, and where it has bent by
much. So an arc is a graph over either axis, and Gauss points on it are as exact as on a straight line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorfield.problem.curves import Curved, Straight, on_curve, unit_normals
from factorfield.problem.shape import Wall

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Truth = NDArray[np.bool_]
Edges = tuple[Array, Array]  # of the cells along the first axis and the second
ROUNDING = 1e-15
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

    def __len__(self) -> int:
        return len(self.which)

    def at(self, number: Indices, share: Array) -> Array:
        """Points of arcs: those of the chord moved along its normal."""
        start, chord = self.start[number], self.end[number] - self.start[number]
        across = np.stack([-chord[:, 1], chord[:, 0]], axis=1)
        return self.curves.onto(self.which[number], start + share[:, None] * chord, across)

    def normals(self, number: Indices, points: Array) -> Array:
        return self.curves.normals(self.which[number], points)

    def speed(self, number: Indices, normals: Array) -> Array:
        """Of the arc length in the share, where a wall has these normals."""
        chord = self.end[number] - self.start[number]
        rise = np.abs(normals[:, 1] * chord[:, 0] - normals[:, 0] * chord[:, 1])  # the chord along the wall
        return np.asarray(np.sum(chord**2, axis=1) / rise)

    def shares(self, number: Indices, axis: int, place: Array) -> Array:
        """At which the arcs pass places along an axis."""

        def away(share: Array) -> Array:
            return self.at(number, share)[:, axis] - place

        begin, end = self.start[number, axis] - place, self.end[number, axis] - place
        return bracketed_root(away, begin, end, ROUNDING * float(np.max(np.abs(self.end), initial=0.0)))

    def taken(self, number: Indices) -> Arcs:
        return Arcs(self.curves, self.which[number], self.start[number], self.end[number], self.reached[number])

    def gauss(self, count: int) -> tuple[Array, Array, Array, Array]:
        """Gauss points (arcs, count, 2), normals, the lengths they stand for, and arc lengths along the pieces."""
        nodes, shares = np.polynomial.legendre.leggauss(count)
        number = np.repeat(np.arange(len(self)), count)
        points = self.at(number, np.tile(0.5 * (1.0 + nodes), len(self)))
        normals = self.normals(number, points)
        speed = self.speed(number, normals).reshape(-1, count)
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
    nodes = _Nodes.of(wall)
    for axis in (0, 1):
        nodes = nodes.with_turns(axis)
    for axis in (0, 1):
        nodes = nodes.with_crossings(axis, edges[axis])
    return nodes.arcs(most_turn, min(float(np.diff(lines).min()) for lines in edges))


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


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Points on stretches in the order of a walk, some of which divide the wall."""

    curves: _Curves
    which: Indices  # the stretch
    places: Array
    reached: Array  # arc length along the stretch's piece
    divides: Truth

    @staticmethod
    def of(wall: Wall) -> _Nodes:
        """The ends of every stretch, which divide, and what nodes its piece has between."""
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
        stretches = np.concatenate(which)
        ends_here = np.ones(len(stretches), bool)
        ends_here[1:-1] = (stretches[1:-1] != stretches[:-2]) | (stretches[1:-1] != stretches[2:])
        return _Nodes(_Curves.of(wall), stretches, np.concatenate(places), np.concatenate(reached), ends_here)

    @property
    def chords(self) -> Indices:
        """The numbers of the nodes with which chords begin."""
        return np.flatnonzero(self.which[1:] == self.which[:-1])

    def on_chords(self, chord: Indices) -> Arcs:
        return Arcs(self.curves, self.which[chord], self.places[chord], self.places[chord + 1], self.reached[chord])

    def with_turns(self, axis: int) -> _Nodes:
        """Divided where a wall turns back along an axis: the other part of its normal is zero."""
        part = self.curves.normals(self.which, self.places)[:, 1 - axis]
        zero = (np.abs(part) <= EXTREMAL) & ~self.curves.straight[self.which]
        part = np.where(zero, 0.0, part)
        chord = self.chords
        chord = chord[part[chord] * part[chord + 1] < 0.0]
        chords, number = self.on_chords(chord), np.arange(len(chord))

        def slope(share: Array) -> Array:
            return chords.normals(number, chords.at(number, share))[:, 1 - axis]

        share = bracketed_root(slope, part[chord], part[chord + 1], ROUNDING)
        return self._divided(self.divides | zero, chord, share)

    def with_crossings(self, axis: int, lines: Array) -> _Nodes:
        """Divided where a wall crosses the grid lines of an axis."""
        x, margin = self.places[:, axis], SHORTEST * float(np.diff(lines).min())
        near = lines[np.clip(np.searchsorted(lines, x), 1, len(lines) - 1) - np.array([[0], [1]])]
        on_line = np.any(np.abs(near - x) <= margin, axis=0)
        chord = self.chords
        first = np.searchsorted(lines, np.minimum(x[chord], x[chord + 1]) + margin, side="right")
        beyond = np.searchsorted(lines, np.maximum(x[chord], x[chord + 1]) - margin, side="left")
        count = np.maximum(beyond - first, 0)
        line = lines[np.repeat(first, count) + places_in_groups(count)]
        chord = np.repeat(chord, count)
        share = self.on_chords(chord).shares(np.arange(len(chord)), axis, line)
        return self._divided(self.divides | on_line, chord, share)

    def _divided(self, divides: Truth, chord: Indices, share: Array) -> _Nodes:
        """With new nodes on chords."""
        place = self.on_chords(chord).at(np.arange(len(chord)), share)
        arc = (1.0 - share) * self.reached[chord] + share * self.reached[chord + 1]
        order = np.lexsort(
            [np.append(np.zeros(len(self.which)), share), np.append(np.arange(len(self.which)), chord)]
        )  # fmt: skip
        return _Nodes(
            self.curves, np.append(self.which, self.which[chord])[order],
            np.concatenate([self.places, place])[order], np.append(self.reached, arc)[order],
            np.append(divides, np.ones(len(chord), bool))[order],
        )  # fmt: skip

    def arcs(self, most_turn: float, width: float) -> Arcs:
        """Between nodes that divide; a node also does where the wall has bent by `most_turn` since the last one."""
        normals = self.curves.normals(self.which, self.places)
        cosine = np.sum(normals[1:] * normals[:-1], axis=1)
        angle = np.where(self.which[1:] == self.which[:-1], np.arccos(np.clip(cosine, -1.0, 1.0)), 0.0)
        total = np.append(0.0, np.cumsum(angle))
        last = np.maximum.accumulate(np.where(self.divides, np.arange(len(total)), 0))
        times = np.floor((total - total[last]) / most_turn)
        bent = np.append(False, (times[1:] > times[:-1]) & (last[1:] == last[:-1]))
        kept = np.flatnonzero(self.divides | bent)
        nodes = _Nodes(self.curves, self.which[kept], self.places[kept], self.reached[kept], self.divides[kept])
        chord = nodes.chords
        length = np.hypot(*(nodes.places[chord + 1] - nodes.places[chord]).T)
        return nodes.on_chords(chord[length > SHORTEST * width])


def places_in_groups(count: Indices) -> Indices:
    """0, 1, ... within groups of so many entries each."""
    return np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)


def bracketed_root(function: Callable[[Array], Array], at_0: Array, at_1: Array, tolerance: float) -> Array:
    """The shares in [0, 1] at which functions of opposite signs at the ends are zero: false position (Illinois)."""
    low, high = np.zeros(len(at_0)), np.ones(len(at_0))
    f_low, f_high = at_0.copy(), at_1.copy()
    for _ in range(ITERATIONS if len(at_0) else 0):
        with np.errstate(all="ignore"):  # both values are zero where an end is the root
            share = (low * f_high - high * f_low) / (f_high - f_low)
        share = np.where(np.isfinite(share), share, high)
        value = function(share)
        passed = value * f_high < 0.0
        low, f_low = np.where(passed, high, low), np.where(passed, f_high, 0.5 * f_low)
        high, f_high = share, value
        if np.all((np.abs(value) <= tolerance) | (np.abs(high - low) <= 1e-15)):
            break
    return high
