"""Quadrature of cells that a wall cuts: Gauss lines along one axis, each divided at its crossings with the wall.

Lines run across the wall where that is possible, and are laid separately between the ends of arcs (corners, crossings
of grid lines, places where the wall turns back). All weights are positive and all points inside the region.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from factorfield.space.arcs import SHORTEST, Arcs, Edges, places_in_groups

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

    @cached_property
    def _across(self) -> Array:
        """How straight the lines of each axis would cross every arc, (arcs, axis): 1 at a right angle, 0 along it."""
        number, least = np.arange(len(self.arcs)), np.full((len(self.arcs), 2), np.inf)
        for share in (0.0, 0.5, 1.0):
            points = self.arcs.at(number, np.full(len(number), share))
            least = np.minimum(least, np.abs(self.arcs.normals(number, points)[:, ::-1]))
        return least

    @cached_property
    def _sweeps(self) -> Indices:
        """The axis along which the lines of every cell advance: that along which the wall runs, if there is one."""
        upright = self.arcs.start == self.arcs.end  # along an axis: no line ever crosses it
        worst = np.full((len(self.cells), 2), np.inf)
        np.minimum.at(worst, self.owner, np.where(upright, np.inf, self._across))
        return np.argmax(worst, axis=1)

    def quadrature(self, contains: Contains, lines: int, points: int) -> tuple[Indices, Array, Array]:
        """The cell of every point, points (n, 2), and the areas that they stand for; cells in ascending order."""
        parts = [self._swept(axis, contains, lines, points) for axis in (0, 1)]
        owner, where, areas = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(owner, kind="stable")
        return owner[order], where[order], areas[order]

    def _swept(self, axis: int, contains: Contains, lines: int, points: int) -> tuple[Indices, Array, Array]:
        owner, low, high = self._intervals(axis)
        interval, arc = self._spans(axis, owner, 0.5 * (low + high))
        place, share = self._lines(axis, low, high, interval, arc, lines)
        cell, x = np.repeat(owner, lines), place.ravel()
        crossed = (interval[:, None] * lines + np.arange(lines)).ravel()
        arc = np.repeat(arc, lines)
        heights = self.arcs.at(arc, self.arcs.shares(arc, axis, x[crossed]))[:, 1 - axis]
        below, above = self._sides(1 - axis)
        line = np.concatenate([np.arange(len(x)), crossed, np.arange(len(x))])
        height = np.concatenate([below[cell], heights, above[cell]])
        order = np.lexsort([height, line])
        line, height = line[order], height[order]
        piece = np.flatnonzero((line[1:] == line[:-1]) & (height[1:] > height[:-1]))
        line, begin, length = line[piece], height[piece], np.diff(height)[piece]
        inside = contains(_points(axis, x[line], begin + 0.5 * length))
        line, begin, length = line[inside], begin[inside], length[inside]
        nodes, weights = np.polynomial.legendre.leggauss(points)
        along = (begin[:, None] + 0.5 * length[:, None] * (1.0 + nodes)).ravel()
        areas = (share.ravel()[line] * length)[:, None] * (0.5 * weights)
        return np.repeat(cell[line], points), _points(axis, np.repeat(x[line], points), along), areas.ravel()

    def _sides(self, axis: int) -> tuple[Array, Array]:
        lines = self.edges[axis]
        return lines[self.cells[:, axis]], lines[self.cells[:, axis] + 1]

    def _intervals(self, axis: int) -> tuple[Indices, Array, Array]:
        """Of cells swept along an axis the intervals between ends of arcs: the cell, and both ends."""
        swept, arc = np.flatnonzero(self._sweeps == axis), np.flatnonzero(self._sweeps[self.owner] == axis)
        low, high = self._sides(axis)
        cell = np.concatenate([swept, swept, self.owner[arc], self.owner[arc]])
        ends = [low[swept], high[swept], self.arcs.start[arc, axis], self.arcs.end[arc, axis]]
        place = np.clip(np.concatenate(ends), low[cell], high[cell])
        order = np.lexsort([place, cell])
        cell, place = cell[order], place[order]
        begin = np.flatnonzero((cell[1:] == cell[:-1]) & (np.diff(place) > SHORTEST * (high - low)[cell[1:]]))
        return cell[begin], place[begin], place[begin + 1]

    def _spans(self, axis: int, owner: Indices, middle: Array) -> tuple[Indices, Indices]:
        """Pairs of an interval and an arc of its cell over it; an arc ends only where intervals do."""
        counts = np.bincount(self.owner, minlength=len(self.cells))
        first, times = (np.cumsum(counts) - counts)[owner], counts[owner]
        interval = np.repeat(np.arange(len(owner)), times)
        arc = first[interval] + places_in_groups(times)
        ends = np.sort([self.arcs.start[arc, axis], self.arcs.end[arc, axis]], axis=0)
        over = (ends[0] < middle[interval]) & (middle[interval] < ends[1])
        return interval[over], arc[over]

    def _lines(
        self, axis: int, low: Array, high: Array, interval: Indices, arc: Indices, count: int
    ) -> tuple[Array, Array]:
        """Places of lines (intervals, lines) and the widths that they stand for.

        Gauss points in the coordinate; where an arc is crossed, those of its steepest arc, because the height of the
        wall is smoother in the share of a chord than in the coordinate."""
        nodes, weights = np.polynomial.legendre.leggauss(count)
        nodes, weights = 0.5 * (1.0 + nodes), 0.5 * weights
        width = (high - low)[:, None]
        place, share = low[:, None] + width * nodes, width * weights
        order = np.lexsort([self._across[arc, axis], interval])
        crossed, first = np.unique(interval[order], return_index=True)
        arc = arc[order][first]
        begin, end = (self.arcs.shares(arc, axis, ends[crossed]) for ends in (low, high))
        number = np.repeat(arc, count)
        points = self.arcs.at(number, (begin[:, None] + (end - begin)[:, None] * nodes).ravel())
        normals = self.arcs.normals(number, points)
        speed = self.arcs.speed(number, normals) * np.abs(normals[:, 1 - axis])
        place[crossed] = points[:, axis].reshape(-1, count)
        share[crossed] = np.abs(end - begin)[:, None] * speed.reshape(-1, count) * weights
        return place, share


def _points(axis: int, along: Array, across: Array) -> Array:
    return np.stack([along, across] if axis == 0 else [across, along], axis=1)
