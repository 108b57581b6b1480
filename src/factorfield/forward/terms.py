"""A term: a relation at the points of cells, tested. Terms add up to the square system of an instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from factorfield.forward.inputs import Coefficients, Directions, Input
from factorfield.forward.relations import Expression, FieldJet, InputJet
from factorfield.space.cells import Cells, Weighting

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Still = Mapping[str, Array]  # values of inputs that do not change in time, by symbol


@dataclass(frozen=True, eq=False)
class Term:
    """The integral of a relation times test functions. Fields are numbered one after the other: `offsets`.

    Arrays of values are (cells, points, instants).
    """

    expression: Expression
    cells: Cells
    weighting: Weighting
    row_offset: int
    offsets: Sequence[int]
    size: int  # of the whole system
    inputs: Mapping[str, Input]
    _kept: dict[int, dict[int, Indices]] = field(default_factory=dict)

    @cached_property
    def flat(self) -> dict[str, Array]:
        """Places, as one list."""
        return self.cells.flat

    @cached_property
    def weighted(self) -> Array:
        """Test functions times weights, (cells, functions, points)."""
        return np.ascontiguousarray(np.swapaxes(self.weighting.values * self.cells.weights[:, :, None], 1, 2))

    @cached_property
    def _rows(self) -> Indices:
        """(cells, functions); `size` where there is no row."""
        return np.where(self.weighting.rows < 0, self.size, self.weighting.rows + self.row_offset)

    @cached_property
    def _gather(self) -> Any:
        """From entries (cells x functions) to rows."""
        rows = self._rows.ravel()
        kept = np.flatnonzero(rows < self.size)
        shape = self.size, len(rows)
        return sparse.csr_matrix((np.ones(len(kept)), (rows[kept], kept)), shape=shape)

    def columns(self, jet: FieldJet) -> Indices:
        return self._columns[jet.field]

    @cached_property
    def _columns(self) -> list[Indices]:
        return [self.cells.index + offset for offset in self.offsets]

    def entries(self) -> tuple[Indices, Indices]:
        """Rows and columns at which the slopes may differ from zero."""
        rows, columns = [], []
        for number in {jet.field for jet in self.expression.fields.values()}:
            index = self.cells.index + self.offsets[number]
            row = np.broadcast_to(self._rows[:, :, None], (*self._rows.shape, index.shape[1])).ravel()
            column = np.broadcast_to(index[:, None, :], (*self._rows.shape, index.shape[1])).ravel()
            rows.append(row[row < self.size])
            columns.append(column[row < self.size])
        none = np.empty(0, np.int64)
        return np.concatenate(rows or [none]), np.concatenate(columns or [none])

    # -- evaluation

    def still(self, inputs: Coefficients) -> dict[str, Array]:
        """Values of the inputs that do not change in time, (places, 1)."""
        at = np.zeros(1)
        return {
            name: self.inputs[jet.name].values(inputs[jet.name], self.flat, at, jet.orders)
            for name, jet in self.expression.named_inputs
            if self.inputs[jet.name].time is None
        }

    def seen(
        self, names: frozenset[str], values: Array, rates: Array, t: Array, inputs: Coefficients,
        still: Mapping[str, Array],
    ) -> dict[str, Array]:  # fmt: skip
        """Values of the symbols named, at all places and instants, (places, instants)."""
        result = dict(still)
        for name, jet in self.expression.named_fields:
            if name in names:
                local = (rates if jet.is_rate else values)[self.columns(jet)]
                result[name] = np.matmul(self.cells.table(jet.orders), local).reshape(-1, len(t))
        for name, part in self.expression.named_inputs:
            if name in names and name not in still:
                source = self.inputs[part.name]
                result[name] = source.values(inputs[part.name], self.flat, t, part.orders)
        return result

    def tested(self, values: Array, instants: int) -> Array:
        """Values (places, instants), which may broadcast, as rows (size, instants)."""
        cells, points = self.cells.weights.shape
        whole = np.broadcast_to(values, (cells * points, instants)).reshape(cells, points, instants)
        return np.asarray(self._gather @ np.matmul(self.weighted, whole).reshape(-1, instants))

    def rest(self, values: Array, rates: Array, t: Array, inputs: Coefficients, still: Still) -> Array:
        """What the rest of the relation adds to the rows."""
        function = self.expression.rest_value
        seen = self.seen(function.names, values, rates, t, inputs, still)
        return self.tested(function(seen, self.flat, t)[0], len(t))

    def rest_and_slopes(
        self, values: Array, rates: Array, t: Array, inputs: Coefficients, still: Still
    ) -> tuple[Array, list[tuple[FieldJet, Array]]]:
        function = self.expression.rest_and_slopes
        value, *slopes = function(self.seen(function.names, values, rates, t, inputs, still), self.flat, t)
        jets = [self.expression.fields[symbol] for symbol in self.expression.live]
        return self.tested(value, len(t)), list(zip(jets, slopes, strict=True))

    def linear_slopes(self, inputs: Coefficients, still: Still) -> list[tuple[FieldJet, Array]]:
        """Of the linear part, (places, 1)."""
        function, nothing, at = self.expression.linear_coefficients, np.zeros((self.size, 1)), np.zeros(1)
        slopes = function(self.seen(function.names, nothing, nothing, at, inputs, still), self.flat, at)
        return list(zip((self.expression.fields[s] for s in self.expression.linear), slopes, strict=True))

    def assembled(self, slopes: Sequence[tuple[FieldJet, Array]], slots: Mapping[int, Indices], count: int,
                  instants: int) -> Array:  # fmt: skip
        """Matrices of all instants, (instants, count), from slopes at places; `slots` by field (`slots_of`)."""
        cells, points = self.cells.weights.shape
        total = np.zeros((instants, count))
        for number in {jet.field for jet, _ in slopes}:
            summed: Array | float = 0.0
            for jet, slope in slopes:
                if jet.field == number:
                    whole = np.broadcast_to(slope, (cells * points, instants)).T.reshape(instants, cells, points, 1)
                    summed = summed + whole * self.cells.table(jet.orders)
            local = np.matmul(self.weighted, summed).reshape(instants, -1)
            for instant in range(instants):
                total[instant] += np.bincount(slots[number], local[instant], count + 1)[:count]
        return total

    # -- slopes by inputs

    def input_slopes(
        self, values: Array, rates: Array, t: Array, inputs: Coefficients, still: Still
    ) -> list[tuple[InputJet, Array]]:
        """By derivatives of inputs, (places, instants)."""
        if not self.expression.inputs:
            return []
        function = self.expression.input_slopes
        slopes = function(self.seen(function.names, values, rates, t, inputs, still), self.flat, t)
        return list(zip(self.expression.inputs.values(), slopes, strict=True))

    def pushed(self, slopes: Sequence[tuple[InputJet, Array]], directions: Directions, t: Array, width: int) -> Array:
        """How rows move where inputs move in directions, (instants, size, columns)."""
        total = np.zeros((len(t), self.size, width))
        for jet, slope in slopes:
            if jet.name not in directions:
                continue
            source = self.inputs[jet.name]
            along = source.over_time(t, jet.orders) @ directions[jet.name].reshape(source.times, -1)
            if source.space is None:  # one column, moved as time says
                moved = self.tested(slope * source.over_space(self.flat, jet.orders), len(t)).T
                total += moved[:, :, None] * along[:, None]
                continue
            features = source.over_space(self.flat, jet.orders)
            whole = np.broadcast_to(slope, (features.shape[0], len(t)))
            for instant in range(len(t)):
                moved = features @ along[instant].reshape(source.space.size, width)
                total[instant] += self.tested(whole[:, instant : instant + 1] * moved, width)
        return total

    def pulled(self, slopes: Sequence[tuple[InputJet, Array]], adjoint: Array, t: float) -> dict[str, Array]:
        """The transpose at one instant: from rows (size, columns) to coefficients of inputs (coefficients, columns)."""
        result: dict[str, Array] = {}
        cells, points = self.cells.weights.shape
        for jet, slope in slopes:
            source = self.inputs[jet.name]
            rows = np.vstack([adjoint, np.zeros((1, adjoint.shape[1]))])[self._rows]  # (cells, functions, columns)
            seen = np.matmul(np.swapaxes(self.weighted, 1, 2), rows).reshape(cells * points, -1)
            scaled = np.broadcast_to(slope, (cells * points, 1)) * seen
            by_space = source.over_space(self.flat, jet.orders).T @ scaled
            by_time = source.over_time(np.array([t]), jet.orders)[0]
            part = (by_time[:, None, None] * by_space[None]).reshape(-1, adjoint.shape[1])
            result[jet.name] = result[jet.name] + part if jet.name in result else part
        return result

    # -- matrices

    def slots_of(self, pattern: Any) -> dict[int, Indices]:
        """Where entries (cells x test functions x functions) of each field go in a pattern; beyond it where nowhere."""
        if id(pattern) not in self._kept:
            result = {}
            for number in {jet.field for jet in self.expression.fields.values()}:
                index = self.cells.index + self.offsets[number]
                rows, columns = np.broadcast_arrays(self._rows[:, :, None], index[:, None, :])
                inside = rows < self.size
                slots = np.full(rows.shape, pattern.slots)
                slots[inside] = pattern.positions(rows[inside], columns[inside])
                result[number] = slots.ravel()
            self._kept[id(pattern)] = result
        return self._kept[id(pattern)]
