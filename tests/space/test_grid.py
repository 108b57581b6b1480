"""Products of bases: cells, faces, tests and readings against products of what axes say."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np
import pytest
from numpy.typing import NDArray

from factorfield.space.axes import LEFT, RIGHT, Basis, Fourier, Held, Spline
from factorfield.space.cells import Cells
from factorfield.space.grid import Grid

Array = NDArray[np.float64]
RNG = np.random.default_rng(5)
AXES: dict[str, dict[str, Basis]] = {
    "none": {},
    "line": {"x": Spline.uniform(0.0, 2.0, 4, 3)},
    "ring": {"x": Fourier(3, 0.0, 2.0)},
    "plane": {"x": Spline.uniform(0.0, 2.0, 4, 3), "y": Spline((0.0, 0.2, 1.0), 5)},
    "channel": {"x": Fourier(2, 0.0, 2.0), "y": Spline.uniform(0.0, 1.0, 3, 3)},
    "box": {
        "x": Spline.uniform(0.0, 2.0, 2, 2), "y": Spline.uniform(0.0, 1.0, 6, 2, True), "z": Spline.uniform(0, 1, 2, 2)
    },
}  # fmt: skip
grids = pytest.mark.parametrize("name", AXES)


def dense(basis: Basis, x: Array, order: int) -> Array:
    index, values = basis.local(x, order)
    table = np.zeros((len(x), basis.size))
    np.add.at(table, (np.arange(len(x))[:, None], index), values)
    return table


def product(grid: Grid, points: Mapping[str, Array], orders: Mapping[str, int], count: int) -> Array:
    """All functions at points, the first axis slowest."""
    tables = [dense(basis, points[axis], orders.get(axis, 0)) for axis, basis in grid.axes.items()]
    return reduce(lambda a, b: np.einsum("pi,pj->pij", a, b).reshape(count, -1), tables, np.ones((count, 1)))


def spread(cells: Cells, values: Array, size: int, rows: NDArray[np.int64] | None = None) -> Array:
    """Tables of cells as (cells, points, all functions)."""
    index = cells.index if rows is None else rows
    index = np.broadcast_to(index, (len(cells.weights), index.shape[1]))
    values = np.broadcast_to(values, (len(index), *values.shape[1:]))
    table = np.zeros((*cells.weights.shape, size + 1))  # the last column is for rows of none
    for cell in range(len(index)):
        np.add.at(table[cell].T, index[cell], values[cell].T)
    return table[:, :, :-1]


@grids
def test_readings_are_products_of_what_axes_read(name: str) -> None:
    grid = Grid(AXES[name])
    count = 7 if grid.axes else 1
    points = {axis: RNG.uniform(0.05, 0.95, count) for axis in grid.axes}
    for orders in ({}, {axis: 1 for axis in list(grid.axes)[:1]}, {axis: 2 for axis in list(grid.axes)[-1:]}):
        index, values = grid.read(points, tuple(orders.items()))
        table = np.zeros((count, grid.size))
        np.add.at(table, (np.arange(count)[:, None], index), values)
        np.testing.assert_allclose(table, product(grid, points, orders, count), atol=1e-12)


@grids
def test_cells_hold_the_functions_at_their_points(name: str) -> None:
    grid = Grid(AXES[name])
    cells = grid.cells
    assert cells.index.min() >= 0 and cells.index.max() == grid.size - 1
    for axis in (None, *grid.axes):
        orders = {} if axis is None else {axis: 1}
        table = spread(cells, cells.table(tuple(orders.items())), grid.size)
        expected = product(grid, cells.flat, orders, cells.weights.size)
        np.testing.assert_allclose(table.reshape(expected.shape), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["line", "plane", "box"])
def test_cells_integrate_polynomials_exactly(name: str) -> None:
    cells = Grid(AXES[name]).cells
    lengths = {"x": 2.0, "y": 1.0, "z": 1.0}
    powers = dict(zip(cells.points, (3, 2, 5), strict=False))
    value = np.sum(cells.weights * np.prod([x ** powers[axis] for axis, x in cells.points.items()], axis=0))
    exact = np.prod([lengths[axis] ** (power + 1) / (power + 1) for axis, power in powers.items()])
    assert np.isclose(value, exact, rtol=1e-13)


def test_no_axis_is_one_point_of_weight_one() -> None:
    grid = Grid({})
    assert grid.size == 1 and grid.cells.weights.item() == 1.0 and grid.cells.table(()).item() == 1.0
    assert grid.weighting_inside({}).rows.item() == 0


def test_a_face_holds_points_of_one_value() -> None:
    grid = Grid(AXES["plane"])
    face = grid.face({"x": 2.0})
    assert np.all(face.points["x"] == 2.0) and np.isclose(face.weights.sum(), 1.0)
    table = spread(face, face.table((("x", 1),)), grid.size)
    expected = product(grid, face.flat, {"x": 1}, face.weights.size)
    np.testing.assert_allclose(table.reshape(expected.shape), expected, atol=1e-12)
    corner = grid.face({"x": 0.0, "y": 1.0})
    assert corner.weights.shape == (1, 1) and corner.weights.item() == 1.0


VALUE = ((0, 1.0),)
HELD = {"x": (Held(LEFT, VALUE), Held(RIGHT, ((1, 1.0),))), "y": (Held(RIGHT, VALUE),)}


def test_weighting_inside_vanishes_at_walls_and_are_as_many_as_walls_leave() -> None:
    grid = Grid(AXES["plane"])
    weighting = grid.weighting_inside(HELD)
    rows = np.unique(weighting.rows[weighting.rows >= 0])
    sizes = [basis.size for basis in grid.axes.values()]
    assert len(rows) == (sizes[0] - 2) * (sizes[1] - 1)
    wall = grid.face({"x": 0.0})  # test functions in the basis: projected from their values in the cells
    table = spread(grid.cells, weighting.values, grid.size, weighting.rows)[:, :, rows].reshape(-1, len(rows))
    basis = product(grid, grid.cells.flat, {}, grid.cells.weights.size)
    shares, *_ = np.linalg.lstsq(basis, table, rcond=None)
    np.testing.assert_allclose(basis @ shares, table, atol=1e-11)
    assert np.max(np.abs(product(grid, wall.flat, {}, wall.weights.size) @ shares)) < 1e-10


def test_inside_and_walls_together_take_every_row_once() -> None:
    grid = Grid(AXES["plane"])
    inside = grid.weighting_inside(HELD).rows
    taken = [np.unique(inside[inside >= 0])]
    for axis, conditions in HELD.items():
        for held in conditions:
            rows = grid.weighting_on_wall(axis, held, HELD).rows
            taken.append(np.unique(rows[rows >= 0]))
    np.testing.assert_array_equal(np.sort(np.concatenate(taken)), np.arange(grid.size))


def test_weighting_on_a_wall_fits_the_points_of_its_face() -> None:
    grid = Grid(AXES["plane"])
    for axis, place in (("x", 0.0), ("y", 1.0)):
        face, weighting = grid.face({axis: place}), grid.weighting_on_wall(axis, HELD[axis][0], HELD)
        assert weighting.values.shape[:2] == face.weights.shape and weighting.rows.shape[0] == len(face.weights)


@grids
def test_a_grid_is_what_its_spec_says(name: str) -> None:
    grid = Grid(AXES[name])
    assert Grid.from_spec(grid.spec()).axes == grid.axes
    assert grid.resolution == {axis: basis.size for axis, basis in grid.axes.items()}


def test_places_follow_the_order_of_functions() -> None:
    grid = Grid(AXES["plane"])
    at = product(grid, grid.places, {}, grid.size)
    assert np.all(np.diag(at) > 0.25 * at.max(axis=0))
