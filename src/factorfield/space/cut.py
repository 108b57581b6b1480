"""Quadrature of cells that a wall cuts: Gauss lines along one axis, each divided at its crossings with the wall.

Lines run across the wall where that is possible, so that their crossings vary smoothly. They are laid separately
between the ends of arcs (corners, crossings of grid lines); where the wall turns back, they gather as the square of the
distance, because crossings move as its root there. All weights are positive and all points inside the region.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorfield.space.arcs import SHORTEST, Arcs, Edges, bracketed_root

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Truth = NDArray[np.bool_]
Contains = Callable[[Array], Truth]  # of points (n, 2)


@dataclass(frozen=True, eq=False)
class CutCells:
    """Cells (cells, 2) with the arcs in them: the cell of every arc, arcs in the order of cells."""

    cells: Indices
    arcs: Arcs
    owner: Indices
    edges: Edges

    def span(self, axis: int) -> tuple[Array, Array]:
        lines = self.edges[axis]
        return lines[self.cells[:, axis]], lines[self.cells[:, axis] + 1]

    def quadrature(self, contains: Contains, lines: int, points: int) -> tuple[Indices, Array, Array]:
        """The cell of every point, points (n, 2), and the areas that they stand for; cells in ascending order."""
        sweep = self._sweeps()
        parts = [self._swept(axis, sweep, contains, lines, points) for axis in (0, 1)]
        owner, where, areas = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(owner, kind="stable")
        return owner[order], where[order], areas[order]

    def _sweeps(self) -> Indices:
        """The axis along which the lines of every cell advance: that along which the wall runs, if one does."""
        number = np.arange(len(self.arcs))
        steepest = np.full((len(self.cells), 2), np.inf)
        for share in (0.0, 0.5, 1.0):
            points = self.arcs.at(number, np.full(len(number), share))
            normals = np.abs(self.arcs.normals(number, points))
            for axis in (0, 1):
                across = normals[:, 1 - axis]
                upright = self.arcs.curves.straight[self.arcs.which] & (across == 0.0)  # no line ever crosses it
                np.minimum.at(steepest[:, axis], self.owner, np.where(upright, np.inf, across))
        return np.argmax(steepest, axis=1)

    def _swept(
        self, axis: int, sweep: Indices, contains: Contains, lines: int, points: int
    ) -> tuple[Indices, Array, Array]:
        owner, low, high, turns = self._intervals(axis, sweep)
        place, share = _lines(low, high, turns, lines)
        crossed, heights = self._crossings(axis, owner, 0.5 * (low + high), place)
        cell = np.repeat(owner, lines)
        below, above = self.span(1 - axis)
        number = np.arange(len(cell))
        line = np.concatenate([number, crossed, number])
        height = np.concatenate([below[cell], heights, above[cell]])
        order = np.lexsort([height, line])
        line, height = line[order], height[order]
        piece = np.flatnonzero((line[1:] == line[:-1]) & (height[1:] > height[:-1]))
        line, begin, length = line[piece], height[piece], np.diff(height)[piece]
        x, y = place.ravel()[line], begin + 0.5 * length
        inside = contains(np.stack([x, y] if axis == 0 else [y, x], axis=1))
        line, begin, length = line[inside], begin[inside], length[inside]
        nodes, weights = np.polynomial.legendre.leggauss(points)
        along = (begin[:, None] + 0.5 * length[:, None] * (1.0 + nodes)).ravel()
        x = np.repeat(place.ravel()[line], points)
        areas = (share.ravel()[line] * length)[:, None] * (0.5 * weights)
        return np.repeat(cell[line], points), np.stack([x, along] if axis == 0 else [along, x], axis=1), areas.ravel()

    def _intervals(self, axis: int, sweep: Indices) -> tuple[Indices, Array, Array, Truth]:
        """Of swept cells the intervals between ends of arcs: the cell, both ends, and whether the wall turns there."""
        swept = np.flatnonzero(sweep == axis)
        low, high = self.span(axis)
        arc = np.flatnonzero(sweep[self.owner] == axis)
        of_arcs, ends = self.owner[arc], (self.arcs.start[arc, axis], self.arcs.end[arc, axis])
        cell = np.concatenate([swept, swept, of_arcs, of_arcs])
        lower, upper = low[cell], high[cell]
        place = np.clip(np.concatenate([low[swept], high[swept], *ends]), lower, upper)
        turns = np.concatenate([np.zeros(2 * len(swept), bool), *self.arcs.extremal[arc, :, axis].T])
        order = np.lexsort([place, cell])
        cell, place, turns, width = cell[order], place[order], turns[order], (upper - lower)[order]
        new = np.append(True, (cell[1:] != cell[:-1]) | (np.diff(place) > SHORTEST * width[1:]))
        first = np.flatnonzero(new)
        if len(first):
            turns = np.logical_or.reduceat(turns, first)
        cell, place = cell[first], place[first]
        begin = np.flatnonzero(cell[1:] == cell[:-1])
        return cell[begin], place[begin], place[begin + 1], np.stack([turns[begin], turns[begin + 1]], axis=1)

    def _crossings(self, axis: int, owner: Indices, middle: Array, place: Array) -> tuple[Indices, Array]:
        """Where lines (intervals, lines) cross arcs: the number of the line and the height."""
        counts = np.bincount(self.owner, minlength=len(self.cells))
        starts = np.cumsum(counts) - counts
        times = counts[owner]
        interval = np.repeat(np.arange(len(owner)), times)
        arc = starts[owner][interval] + np.arange(len(interval)) - np.repeat(np.cumsum(times) - times, times)
        ends = np.sort([self.arcs.start[arc, axis], self.arcs.end[arc, axis]], axis=0)
        spans = (ends[0] < middle[interval]) & (middle[interval] < ends[1])  # arcs end where intervals do
        interval, arc = interval[spans], arc[spans]
        lines = place.shape[1]
        line = (interval[:, None] * lines + np.arange(lines)).ravel()
        arc, x = np.repeat(arc, lines), place[interval].ravel()

        def away(share: Array) -> Array:
            return self.arcs.at(arc, share)[:, axis] - x

        size = float(np.ptp(self.edges[axis]))
        share = bracketed_root(
            away, self.arcs.start[arc, axis] - x, self.arcs.end[arc, axis] - x, 1e-15 * size
        )  # fmt: skip
        return line, self.arcs.at(arc, share)[:, 1 - axis]


def _lines(low: Array, high: Array, turns: Truth, count: int) -> tuple[Array, Array]:
    """Places of lines in intervals and the widths that they stand for, gathered at ends where the wall turns."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    s = 0.5 * (1.0 + nodes)
    shares = np.array([[s, 1.0 - (1.0 - s) ** 2], [s**2, s**2 * (3.0 - 2.0 * s)]])  # by (turns at low, at high)
    speeds = np.array([[np.ones_like(s), 2.0 * (1.0 - s)], [2.0 * s, 6.0 * s * (1.0 - s)]])
    kind = turns.astype(int)
    width = (high - low)[:, None]
    place = low[:, None] + width * shares[kind[:, 0], kind[:, 1]]
    return place, width * speeds[kind[:, 0], kind[:, 1]] * 0.5 * weights
