"""A product of bases along axes: no axis (an ODE), a line, a plane or a box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield.problem.domain import Orders, Points
from factorfield.space.axes import AxisWeighting, Basis, Held, Line, basis_from_spec, transfer, vanishing_weighting
from factorfield.space.cells import Cells, Weighting

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Conditions = Mapping[str, tuple[Held, ...]]  # by axis, what walls say of a field at its ends


@dataclass(frozen=True, eq=False)
class Grid:
    """Products of the functions along each axis, the first axis slowest."""

    axes: Mapping[str, Basis]
    _weightings: dict[tuple[str, tuple[Held, ...]], AxisWeighting] = field(default_factory=dict)

    @cached_property
    def size(self) -> int:
        return int(np.prod([basis.size for basis in self.axes.values()], dtype=int))

    @property
    def resolution(self) -> dict[str, int]:
        return {axis: basis.size for axis, basis in self.axes.items()}

    @cached_property
    def cells(self) -> Cells:
        """The whole inside."""
        return self._cells({axis: basis.line for axis, basis in self.axes.items()})

    def face(self, places: Mapping[str, float]) -> Cells:
        """The points where some axes have one value."""
        lines = {
            axis: _at_point(basis, places[axis]) if axis in places else basis.line for axis, basis in self.axes.items()
        }
        return self._cells(lines)

    def _cells(self, lines: Mapping[str, Line]) -> Cells:
        points, weights, index = _product([(line.points, line.weights, line.index) for line in lines.values()],
                                          [basis.size for basis in self.axes.values()])  # fmt: skip

        def derivatives(orders: Orders) -> Array:
            times = dict(orders)
            return _tables([line.table(times.get(axis, 0)) for axis, line in lines.items()])

        return Cells(dict(zip(lines, points, strict=True)), weights, index, derivatives)

    def weighting_inside(self, conditions: Conditions) -> Weighting:
        """The test functions of an equation whose field is held by conditions at walls."""
        rows, values = zip(
            *(self._along(axis, conditions).table(basis.line) for axis, basis in self.axes.items()), strict=True
        ) if self.axes else ((), ())  # fmt: skip
        return self._product_of_weightings(rows, values)

    def weighting_on_wall(self, axis: str, held: Held, conditions: Conditions) -> Weighting:
        """The test functions of a wall: all along the later axes, those that vanish along the earlier ones, so that a
        corner is settled once, by the wall of the first axis."""
        rows, values, names = [], [], list(self.axes)
        for name, basis in self.axes.items():
            if name == axis:
                rows.append(np.array([[self._along(axis, conditions).settled[held]]]))
                values.append(np.ones((1, 1, 1)))
            else:
                earlier = names.index(name) < names.index(axis)
                row, value = self._along(name, conditions if earlier else {}).table(basis.line)
                rows.append(row)
                values.append(value)
        return self._product_of_weightings(rows, values)

    def _along(self, axis: str, conditions: Conditions) -> AxisWeighting:
        key = axis, tuple(conditions.get(axis, ()))
        if key not in self._weightings:
            self._weightings[key] = vanishing_weighting(self.axes[axis], key[1])
        return self._weightings[key]

    def _product_of_weightings(self, rows: Sequence[Indices], values: Sequence[Array]) -> Weighting:
        total, missing = np.zeros((1, 1), np.int64), np.zeros((1, 1), bool)
        for row, basis in zip(rows, self.axes.values(), strict=True):
            total = _outer(total, row, np.add, basis.size)
            missing = _outer(missing, row < 0, np.logical_or)
        return Weighting(np.where(missing, -1, total), _tables(values))

    def read(self, points: Points, orders: Orders) -> tuple[Indices, Array]:
        """At scattered points: which functions differ from zero, (points, functions), and their derivatives."""
        times, count = dict(orders), len(next(iter(points.values()))) if points else 1
        index, values = np.zeros((count, 1), np.int64), np.ones((count, 1))
        for axis, basis in self.axes.items():
            read, table = basis.local(points[axis], times.get(axis, 0))
            index = (index[:, :, None] * basis.size + read[:, None, :]).reshape(count, -1)
            values = (values[:, :, None] * table[:, None, :]).reshape(count, -1)
        return index, values

    @property
    def places(self) -> dict[str, Array]:
        """A place for every function at which it is large."""
        mesh = np.meshgrid(*(basis.places for basis in self.axes.values()), indexing="ij")
        return {axis: x.ravel() for axis, x in zip(self.axes, mesh, strict=True)}

    def projected(self, values: Array, onto: Grid) -> Array:
        """Coefficients of the nearest function of another grid, in the mean square."""
        table = values.reshape([basis.size for basis in self.axes.values()])
        for number, (axis, basis) in enumerate(self.axes.items()):
            moved = np.tensordot(transfer(basis, onto.axes[axis]), table, axes=(1, number))
            table = np.moveaxis(moved, 0, number)
        return np.asarray(table.ravel())

    def spec(self) -> dict[str, Any]:
        return {axis: basis.spec() for axis, basis in self.axes.items()}

    @staticmethod
    def from_spec(spec: Mapping[str, Any]) -> Grid:
        return Grid({axis: basis_from_spec(basis) for axis, basis in spec.items()})


def _at_point(basis: Basis, place: float) -> Line:
    points = np.array([[place]])
    index, _ = basis.local(points[0])
    return Line(points, np.ones((1, 1)), index, basis)


def _outer(left: Any, right: Any, combine: Any, size: int = 1) -> Any:
    """Of (cells, entries) with (cells, entries): (cells * cells, entries * entries), the first one slowest."""
    joined = combine(left[:, None, :, None] * size if size != 1 else left[:, None, :, None], right[None, :, None, :])
    return joined.reshape(left.shape[0] * right.shape[0], -1)


def _product(lines: Sequence[tuple[Array, Array, Indices]], sizes: Sequence[int]) -> tuple[list[Array], Array, Indices]:
    """Points by axis, weights and indices of the product."""
    shape = [len(points) for points, _, _ in lines], [points.shape[1] for points, _, _ in lines]
    weights, index = np.ones((1, 1)), np.zeros((1, 1), np.int64)
    for (_, share, read), size in zip(lines, sizes, strict=True):
        weights = _outer(weights, share, np.multiply)
        index = _outer(index, read, np.add, size)
    spread = []
    for number, (points, _, _) in enumerate(lines):
        wide = [1] * (2 * len(lines))
        wide[number], wide[len(lines) + number] = points.shape
        spread.append(np.broadcast_to(points.reshape(wide), (*shape[0], *shape[1])).reshape(weights.shape))
    return spread, weights, index


def _tables(tables: Sequence[Array]) -> Array:
    """The product of (cells, points, functions) along every axis."""
    whole = np.ones((1, 1, 1))
    for table in tables:
        product = whole[:, None, :, None, :, None] * table[None, :, None, :, None, :]
        (a, p, f), (b, q, g) = whole.shape, table.shape
        whole = product.reshape(a * b, p * q, f * g)
    return whole
