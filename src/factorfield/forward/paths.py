"""What the map gives: the coefficients of all fields at every instant of every window, and how to read them.

A steady solution is a path of one instant. Values are (windows, instants, coefficients); the first instant of a window
is its start.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from factorfield.forward.inputs import Coefficients, Input
from factorfield.forward.radau import rule_of
from factorfield.forward.relations import Compiled, Expression
from factorfield.problem.domain import TIME, Orders, Points
from factorfield.space.grid import Grid
from factorfield.space.region import CutGrid

Array = NDArray[np.float64]
Matrix = Any  # a sparse matrix


@dataclass(frozen=True, eq=False)
class Path:
    """`edges` of the windows in time; empty for a steady solution."""

    grid: Grid | CutGrid
    edges: Array
    values: Array  # (windows, 1 + stages, coefficients)
    inputs: Coefficients

    @property
    def is_steady(self) -> bool:
        return len(self.edges) == 0

    @property
    def stages(self) -> int:
        return self.values.shape[1] - 1

    @property
    def end(self) -> Array:
        return np.asarray(self.values[-1, -1])

    @property
    def instants(self) -> Array:
        """(windows, stages)"""
        lengths = np.diff(self.edges)[:, None]
        return np.asarray(self.edges[:-1, None] + lengths * rule_of(self.stages).instants)

    def rates(self) -> tuple[Array, Array]:
        """Values and rates at all instants but starts, (coefficients, windows x stages)."""
        n = self.values.shape[2]
        if self.is_steady:
            return self.values[0].T, np.zeros((n, 1))
        rule = rule_of(self.stages)
        departures = self.values[:, 1:] - self.values[:, :1]
        rates = np.einsum("ij,wjn->win", rule.rates, departures) / np.diff(self.edges)[:, None, None]
        return self.values[:, 1:].reshape(-1, n).T, rates.reshape(-1, n).T

    def rows(self, field: int, orders: Mapping[str, int], points: Points) -> Matrix:
        """Rows that read a derivative of a field at points, (points, all coefficients of the path)."""
        windows, nodes, n = self.values.shape
        index, values = self.grid.read(
            points, tuple((axis, times) for axis, times in orders.items() if axis != TIME)
        )  # fmt: skip
        count = len(next(iter(points.values())))
        if len(index) != count:  # no axes of space
            index, values = np.repeat(index, count, axis=0), np.repeat(values, count, axis=0)
        window, share = self.in_time(points, orders.get(TIME, 0))
        column = (window[:, None] * nodes + np.arange(nodes)) * n + field * self.grid.size
        columns = column[:, :, None] + index[:, None, :]
        data = share[:, :, None] * values[:, None, :]
        starts = np.arange(0, columns.size + 1, columns[0].size) if count else np.zeros(1, int)
        return sparse.csr_matrix((data.ravel(), columns.ravel(), starts), shape=(count, windows * nodes * n))

    def in_time(self, points: Points, order: int) -> tuple[NDArray[np.int64], Array]:
        """The window of every point, and the shares of its instants."""
        count = len(next(iter(points.values())))
        if self.is_steady:
            return np.zeros(count, np.int64), np.full((count, 1), 0.0 if order else 1.0)
        t = np.asarray(points[TIME], float)
        window = np.clip(np.searchsorted(self.edges, t, side="left") - 1, 0, len(self.edges) - 2)
        length = np.diff(self.edges)[window]
        shares = rule_of(self.stages).weights((t - self.edges[window]) / length, order)
        return window, shares / length[:, None] ** order


@dataclass(frozen=True, eq=False)
class Reading:
    """A relation at points as a function of a path: its values, and rows over the path and the inputs."""

    values: Array
    rows: Matrix  # (points, all coefficients of the path)
    input_rows: Mapping[str, Array]  # (points, coefficients), for inputs that it reads itself
    slopes: Mapping[int, Array]  # by the fields themselves, (points,)

    def moved(self, tangent: Array, directions: Mapping[str, Array]) -> Array:
        """How the values move, (points, columns), where the path moves by a tangent (windows, instants, n, columns)."""
        width = tangent.shape[-1]
        total = np.asarray(self.rows @ tangent.reshape(-1, width))
        for name, rows in self.input_rows.items():
            if name in directions:
                total = total + rows @ directions[name]
        return total


def values_at(expression: Expression, path: Path, points: Points, inputs: Mapping[str, Input]) -> Array:
    """A relation at scattered points, its values only."""
    names, seen, flat = expression.value.names, {}, path.values.reshape(-1)
    for name, jet in expression.named_fields:
        if name in names:
            orders = dict(jet.orders) | ({TIME: 1} if jet.is_rate else {})
            seen[name] = np.asarray(path.rows(jet.field, orders, points) @ flat)
    for name, part in expression.named_inputs:
        if name in names:
            seen[name] = np.asarray(_input_rows(inputs[part.name], points, part.orders) @ path.inputs[part.name])
    return _at_points(expression.value, seen, points, len(next(iter(points.values()))))[0]


def read(expression: Expression, path: Path, points: Points, inputs: Mapping[str, Input]) -> Reading:
    """A relation at scattered points, with its rows."""
    count = len(next(iter(points.values())))
    flat = path.values.reshape(-1)
    seen, read_rows, features = {}, [], []
    for name, jet in expression.named_fields:
        orders = dict(jet.orders) | ({TIME: 1} if jet.is_rate else {})
        read_rows.append(path.rows(jet.field, orders, points))
        seen[name] = np.asarray(read_rows[-1] @ flat)
    for name, part in expression.named_inputs:
        features.append(_input_rows(inputs[part.name], points, part.orders))
        seen[name] = np.asarray(features[-1] @ path.inputs[part.name])
    value, *slopes = _at_points(expression.value_and_slopes, seen, points, count)
    scaled = [_scaled(rows, slope) for rows, slope in zip(read_rows, slopes, strict=True)]
    total = sum(scaled[1:], scaled[0]) if scaled else sparse.csr_matrix((count, flat.size))
    input_rows: dict[str, Array] = {}
    if expression.inputs:
        parts = zip(expression.named_inputs, features, strict=True)
        by_input = _at_points(expression.input_slopes, seen, points, count)
        for ((_, part), table), slope in zip(parts, by_input, strict=True):
            moved = slope[:, None] * table
            input_rows[part.name] = input_rows[part.name] + moved if part.name in input_rows else moved
    plain = {
        jet.field: slope
        for (_, jet), slope in zip(expression.named_fields, slopes, strict=True)
        if not jet.orders and not jet.is_rate
    }
    return Reading(value, total, input_rows, plain)


def _scaled(rows: Matrix, slope: Array) -> Matrix:
    return rows if np.all(slope == 1.0) else sparse.csr_matrix(sparse.diags(slope) @ rows)


def _at_points(function: Compiled, seen: Mapping[str, Array], points: Points, count: int) -> list[Array]:
    """Every point has an instant of its own: coordinates, t among them, are read as places."""
    columns = {name: x[:, None] for name, x in seen.items()}
    t = np.zeros(1)
    return [np.broadcast_to(v, (count, 1))[:, 0] for v in function(columns, points, t)]


def _input_rows(source: Input, points: Points, orders: Orders) -> Array:
    """Features of an input at points with instants of their own, (points, coefficients)."""
    count = len(next(iter(points.values())))
    t = np.asarray(points[TIME], float) if TIME in points else np.zeros(count)
    by_time = source.over_time(t, orders)
    by_space = source.over_space(dict(points), orders)
    by_space = by_space.toarray() if sparse.issparse(by_space) else by_space
    return np.asarray((by_time[:, :, None] * by_space[:, None, :]).reshape(count, -1))
