"""Curves in the plane by their arc length: straight walls, and the places where a function of the coordinates is zero.

A zero curve is found on a grid by the signs at its corners (marching squares); nodes are bisected along grid lines to
rounding and linked to chains. Between nodes a point is a guess on the chord, brought onto the curve by Newton steps, so
that points and normals are as exact as the function, and the length of a chain by Gauss points on its chords.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
BISECTIONS = 60
NEWTON_STEPS = 6
KINK = 0.15  # radians between the normals of neighbouring nodes from which a corner is looked for
STAYS, SURE = 0.5, 5  # a corner keeps more than this share of the angle when its chord was halved so often
GAUSS = np.polynomial.legendre.leggauss(4)


class ZeroOf(Protocol):
    """A function of points (n, 2) whose zero curve is meant."""

    def __call__(self, points: Array) -> Array: ...

    def gradient(self, points: Array) -> Array: ...


class Piece(Protocol):
    """A smooth part of a boundary, by its arc length from 0 to `length`; `edge` is its number in a polygon."""

    @property
    def length(self) -> float: ...

    @property
    def edge(self) -> int | None: ...

    def at(self, arc: Array) -> tuple[Array, Array]:
        """Points (n, 2), and the unit normals out of the region there."""
        ...


@dataclass(frozen=True, eq=False)
class Straight:
    """A straight wall."""

    start: Array
    end: Array
    normal: Array
    edge: int | None = None

    @property
    def length(self) -> float:
        return float(np.hypot(*(self.end - self.start)))

    def at(self, arc: Array) -> tuple[Array, Array]:
        share = (np.asarray(arc) / self.length)[:, None]
        return self.start + share * (self.end - self.start), np.broadcast_to(self.normal, (len(arc), 2))


@dataclass(frozen=True, eq=False)
class Curved:
    """A chain of nodes on the zero curve of a function; `sense` is 1 where the function grows out of the region."""

    function: ZeroOf
    nodes: Array
    sense: float
    edge: int | None = None

    @cached_property
    def arcs(self) -> Array:
        """The arc length at every node, by Gauss points on the curve above each chord."""
        start, chord = self.nodes[:-1], np.diff(self.nodes, axis=0)
        width = np.hypot(*chord.T)
        total = np.zeros(len(chord))
        for node, share in zip(*GAUSS, strict=True):
            _, normal = self._above(start, chord, np.full(len(chord), 0.5 + 0.5 * node))
            across = np.abs(np.sum(normal * np.stack([-chord[:, 1], chord[:, 0]], axis=1), axis=1)) / width
            total += 0.5 * share * width / np.maximum(across, 1e-3)  # 1 / cos of the angle between curve and chord
        return np.concatenate([[0.0], np.cumsum(total)])

    @property
    def length(self) -> float:
        return float(self.arcs[-1])

    def at(self, arc: Array) -> tuple[Array, Array]:
        arc = np.asarray(arc, float)
        which = np.clip(np.searchsorted(self.arcs, arc, side="right") - 1, 0, len(self.arcs) - 2)
        share = (arc - self.arcs[which]) / (self.arcs[which + 1] - self.arcs[which])
        start = self.nodes[which]
        return self._above(start, self.nodes[which + 1] - start, share)

    def _above(self, start: Array, chord: Array, share: Array) -> tuple[Array, Array]:
        points = on_curve(self.function, start + share[:, None] * chord, np.stack([-chord[:, 1], chord[:, 0]], axis=1))
        return points, self.sense * unit_normals(self.function, points)


def on_curve(function: ZeroOf, points: Array, across: Array) -> Array:
    """Points moved along given directions, by Newton steps no longer than these, to where a function is zero."""
    shift = np.zeros(len(points))
    for _ in range(NEWTON_STEPS):
        here = points + shift[:, None] * across
        slope = np.sum(function.gradient(here) * across, axis=1)
        with np.errstate(all="ignore"):
            step = function(here) / slope
        shift = shift - np.where(np.isfinite(step), np.clip(step, -0.5, 0.5), 0.0)
    return points + shift[:, None] * across


def unit_normals(function: ZeroOf, points: Array) -> Array:
    """The direction in which a function grows; refused where it has none."""
    slope = function.gradient(points)
    size = np.hypot(*slope.T)
    bad = ~(np.isfinite(size) & (size > 0.0))
    if np.any(bad):
        x, y = points[bad][0]
        raise expected(
            "comparisons whose sides part at an angle where they are equal",
            f"no normal at ({x:.4g}, {y:.4g})", "x**2 + y**2 < 1 in place of (x**2 + y**2 - 1)**3 < 0",
        )  # fmt: skip
    return slope / size[:, None]


# -- the zero curve of a function


def zero_chains(function: ZeroOf, x: Array, y: Array) -> list[Array]:
    """Chains of nodes (n, 2) where a function is zero on the grid lines x and y; closed ones repeat their first."""
    grid = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1)
    positive = (function(grid.reshape(-1, 2)) > 0.0).reshape(len(x), len(y))
    ends: list[tuple[Array, Array, NDArray[np.bool_]]] = []  # grid corners on the two sides of every crossing
    numbers = {}  # of the crossing on an edge: along x first, then along y
    for axis in (0, 1):
        near = [slice(None, -1) if i == axis else slice(None) for i in (0, 1)]
        far = [slice(1, None) if i == axis else slice(None) for i in (0, 1)]
        crossed = positive[tuple(near)] != positive[tuple(far)]
        number = np.full(crossed.shape, -1)
        number[crossed] = np.arange(np.count_nonzero(crossed)) + sum(len(low) for low, _, _ in ends)
        numbers[axis] = number
        sign = positive[tuple(near)][crossed]
        ends.append((grid[tuple(near)][crossed], grid[tuple(far)][crossed], sign))
    low, high, sign = (np.concatenate(parts) for parts in zip(*ends, strict=True))
    if not len(low):
        return []
    nodes = bisected(lambda p: function(p) > 0.0, low, high, sign)
    return [nodes[chain] for chain in _linked(len(nodes), _pairs(function, grid, positive, numbers))]


def bisected(holds: Callable[[Array], NDArray[np.bool_]], low: Array, high: Array, at_low: NDArray[np.bool_]) -> Array:
    """The places between pairs of points where a condition changes, to rounding."""
    low, high = low.copy(), high.copy()
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        same = holds(middle) == at_low
        low[same], high[~same] = middle[same], middle[~same]
    return 0.5 * (low + high)


def _pairs(
    function: ZeroOf, grid: Array, positive: NDArray[np.bool_], numbers: dict[int, Indices]
) -> NDArray[np.int64]:
    """Crossings that a curve joins inside a cell."""
    along_x, along_y = numbers[0], numbers[1]
    # of each cell: below, above, left, right
    around = np.stack([along_x[:, :-1], along_x[:, 1:], along_y[:-1], along_y[1:]], axis=-1)
    count = (around >= 0).sum(axis=-1)
    two = around[count == 2]
    pairs = [np.sort(two, axis=1)[:, 2:]]
    at = np.argwhere(count == 4)
    if len(at):  # a saddle: the centre tells which corners belong together
        centre = 0.5 * (grid[at[:, 0], at[:, 1]] + grid[at[:, 0] + 1, at[:, 1] + 1])
        with_first = (function(centre) > 0.0) == positive[at[:, 0], at[:, 1]]
        below, above, left, right = around[count == 4].T
        pairs.append(np.stack([below, np.where(with_first, right, left)], axis=1))
        pairs.append(np.stack([above, np.where(with_first, left, right)], axis=1))
    return np.concatenate(pairs).astype(np.int64)


def _linked(count: int, pairs: Indices) -> list[list[int]]:
    """Chains through nodes that have one or two neighbours."""
    beside: list[list[int]] = [[] for _ in range(count)]
    for a, b in pairs.tolist():
        beside[a].append(b)
        beside[b].append(a)
    left = np.ones(count, bool)
    chains = []
    for first in sorted(range(count), key=lambda node: len(beside[node])):  # open chains begin at their ends
        if not left[first] or not beside[first]:
            continue
        chain, node = [first], first
        left[first] = False
        while True:
            following = [n for n in beside[node] if left[n]]
            if not following:
                break
            node = following[0]
            left[node] = False
            chain.append(node)
        if len(chain) > 2 and first in beside[node]:
            chain.append(first)
        if len(chain) > 1:
            chains.append(chain)
    return chains


def split_at_kinks(function: ZeroOf, chain: Array) -> list[Array]:
    """The smooth parts of a chain: at a corner normals turn however short the chord, else less and less."""
    normals = unit_normals(function, chain)
    turned = np.arccos(np.clip(np.sum(normals[1:] * normals[:-1], axis=1), -1.0, 1.0))
    parts, rest = [], [chain[0]]
    for i, angle in enumerate(turned):
        corner = _kink(function, chain[i], chain[i + 1], float(angle)) if angle > KINK else None
        if corner is not None:
            parts.append(np.array([*rest, corner]))
            rest = [corner]
        rest.append(chain[i + 1])
    parts.append(np.array(rest))
    closed = np.array_equal(chain[0], chain[-1]) and len(parts) > 1
    if closed:  # the node that a walk around began with is no corner
        parts = [*parts[1:-1], np.concatenate([parts[-1], parts[0][1:]])]
    return [part for part in (_without_repeats(part) for part in parts) if len(part) > 1]


def _kink(function: ZeroOf, low: Array, high: Array, angle: float) -> Array | None:
    """The corner between two nodes, if the curve does not just bend."""
    for step in range(BISECTIONS // 2):
        chord = high - low
        if not np.hypot(*chord) > 1e-13 * max(np.max(np.abs(low)), np.max(np.abs(high))):
            break
        middle = on_curve(function, 0.5 * (low + high)[None], np.array([[-chord[1], chord[0]]]))
        normals = unit_normals(function, np.stack([low, middle[0], high]))
        first, second = np.arccos(np.clip(np.sum(normals[1:] * normals[:-1], axis=1), -1.0, 1.0))
        if step >= SURE and max(first, second) < STAYS * angle:
            return None
        low, high = (low, middle[0]) if first > second else (middle[0], high)
    return np.asarray(0.5 * (low + high))


def _without_repeats(chain: Array) -> Array:
    """A chain whose chords have a length."""
    extent = max(float(np.max(np.ptp(chain, axis=0))), 1e-300)
    return chain[np.concatenate([[True], np.hypot(*np.diff(chain, axis=0).T) > 1e-9 * extent])]
