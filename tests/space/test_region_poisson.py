"""Poisson's equation on regions by the symmetric form of Nitsche and the ghost penalty, assembled from cells: orders of
convergence, and errors and condition numbers that do not depend on how cells are cut."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import linalg as sparse_linalg

import factorfield as ff
from factorfield.problem.domain import Domain, normal_along
from factorfield.problem.shape import Shape
from factorfield.space.axes import Spline
from factorfield.space.cells import Cells
from factorfield.space.region import CutGrid

Array = NDArray[np.float64]
PENALTY = 4.0  # of a value on a wall, in units of degree^2 over the width of a cell: twice what keeps it definite
GHOST = 0.01
X, Y = (("x", 1),), (("y", 1),)
DISK_WITH_HOLE = ff.Region("x**2 + y**2 < 1 and (x - 0.2)**2 + (y + 0.1)**2 > 0.16")
POLYGON = ff.Region.polygon(
    [(-1.0, -0.9), (1.0, -1.0), (0.9, 1.0), (0.1, 0.2), (-1.1, 1.0)], holes=[[(-0.5, -0.5), (0.0, -0.4), (-0.2, 0.0)]]
)


def grid_of(region: ff.Region, cells: int, degree: int) -> CutGrid:
    box = {"x": ff.Interval(-1.2, 1.2), "y": ff.Interval(-1.2, 1.2)}
    return CutGrid.of(
        {axis: Spline.uniform(-1.2, 1.2, cells, degree) for axis in box}, Shape.of(region, Domain(box), {})
    )


def exact(x: Array, y: Array) -> Array:
    return np.asarray(np.sin(2.0 * x + 0.3) * np.cos(1.5 * y))


def source(x: Array, y: Array) -> Array:
    """Of -laplace(u) = f."""
    return (2.0**2 + 1.5**2) * exact(x, y)


def scattered(cells: Cells, blocks: Array, size: int) -> sparse.csr_matrix:
    rows = np.repeat(cells.index, cells.index.shape[1], axis=1).ravel()
    columns = np.tile(cells.index, cells.index.shape[1]).ravel()
    return sparse.coo_matrix((blocks.ravel(), (rows, columns)), shape=(size, size)).tocsr()


def products(weights: Array, left: Array, right: Array) -> Array:
    return (left * weights[:, :, None]).transpose(0, 2, 1) @ right


def system(grid: CutGrid, ghost: float = GHOST) -> tuple[sparse.csr_matrix, Array]:
    """Rows v: (grad v, grad u) - <v, u_n> - <v_n - penalty v, u - exact> + ghost = (v, f), scaled to a diagonal of 1 by
    the caller."""
    inside, wall = grid.cells, grid.wall_cells(grid.shape.boundary)
    blocks = sum(products(inside.weights, inside.table(order), inside.table(order)) for order in (X, Y))
    matrix = scattered(inside, np.asarray(blocks), grid.size)
    values, w = wall.table(()), wall.weights
    across = sum(wall.points[normal_along(axis)][:, :, None] * wall.table(((axis, 1),)) for axis in ("x", "y"))
    spline = grid.axes["x"]
    assert isinstance(spline, Spline)
    held = across - PENALTY * spline.degree**2 / float(np.diff(spline.edges).min()) * values
    matrix = matrix - scattered(wall, products(w, values, across) + products(w, held, values), grid.size)
    rows, columns, entries = grid.ghost()
    matrix = matrix + ghost * sparse.coo_matrix((entries, (rows, columns)), shape=matrix.shape).tocsr()
    right = np.zeros(grid.size)
    force = inside.weights * source(inside.points["x"], inside.points["y"])
    np.add.at(right, inside.index, np.einsum("cp,cpi->ci", force, inside.table(())))
    np.add.at(right, wall.index, -np.einsum("cp,cpi->ci", w * exact(wall.points["x"], wall.points["y"]), held))
    return matrix, right


def scaled(matrix: sparse.csr_matrix) -> tuple[sparse.csr_matrix, Array]:
    scale = 1.0 / np.sqrt(matrix.diagonal())
    return sparse.diags(scale) @ matrix @ sparse.diags(scale), scale


def solved(grid: CutGrid) -> tuple[float, float, sparse.csr_matrix]:
    """The root of the mean square of the error inside, the largest error inside and on walls, and the scaled matrix."""
    matrix, right = system(grid)
    unit, scale = scaled(matrix)
    coefficients = scale * sparse_linalg.spsolve(sparse.csc_matrix(unit), scale * right)
    away = []
    inside = grid.cells
    for cells in (inside, grid.wall_cells(grid.shape.boundary)):
        field = np.einsum("cpi,ci->cp", cells.table(()), coefficients[cells.index])
        away.append(field - exact(cells.points["x"], cells.points["y"]))
    mean = np.sum(inside.weights * away[0] ** 2) / inside.weights.sum()
    return float(np.sqrt(mean)), max(float(np.max(np.abs(part))) for part in away), unit


def condition(matrix: sparse.csr_matrix) -> float:
    values = np.linalg.eigvalsh(matrix.toarray())
    assert values[0] > 0.0
    return float(values[-1] / values[0])


@pytest.mark.parametrize("region", [DISK_WITH_HOLE, POLYGON], ids=["disk with a hole", "polygon"])
@pytest.mark.parametrize(("degree", "worst"), [(3, 1e-5), (5, 1.5e-8)])
def test_the_error_is_small_and_falls_by_one_order_more_than_the_degree(
    region: ff.Region, degree: int, worst: float
) -> None:
    """At 24 cells the largest error is below `worst`; halving cells divides the error by some 2^(degree + 1)."""
    errors = [solved(grid_of(region, cells, degree))[:2] for cells in (12, 24, 48)]
    assert errors[1][1] < worst
    falls = np.log2(np.divide(errors[:-1], errors[1:])[:, 0])
    assert np.all(falls > degree + 0.8)


def placements(count: int) -> Iterator[ff.Region]:
    """Disks with a hole somewhere."""
    rng = np.random.default_rng(1)
    for _ in range(count):
        (a, b), radius = rng.uniform(-0.35, 0.35, 2), rng.uniform(0.2, 0.4)
        yield ff.Region(f"x**2 + y**2 < 1 and (x - ({a}))**2 + (y - ({b}))**2 > {radius**2}")


@pytest.mark.parametrize(("degree", "largest"), [(3, 5e3), (5, 1e6)])
def test_neither_error_nor_condition_depends_on_how_a_hole_cuts_cells(degree: int, largest: float) -> None:
    """Over 40 placements of a hole."""
    solutions = [solved(grid_of(region, 12, degree)) for region in placements(40)]
    conditions = np.array([condition(unit) for _, _, unit in solutions])
    errors = np.array([error for error, _, _ in solutions])
    assert conditions.max() < min(largest, 10.0 * np.median(conditions))
    assert errors.max() < 3.0 * np.median(errors)


def rectangle(right: float) -> ff.Region:
    return ff.Region.polygon([(-0.8, -0.8), (right, -0.8), (right, 0.8), (-0.8, 0.8)])


@pytest.mark.parametrize("degree", [3, 5])
@pytest.mark.parametrize("share", [1e-8, 1e-5, 1e-2, 0.3, 0.9])
def test_a_sliver_of_any_width_is_as_good_as_a_wall_on_a_grid_line(share: float, degree: int) -> None:
    """A wall so far, in cells, beyond a grid line. Without the ghost penalty narrow slivers break the equations."""
    (best, _, whole), (error, _, unit) = (
        solved(grid_of(rectangle(right), 12, degree)) for right in (0.6, 0.6 + 0.2 * share)
    )
    assert condition(unit) < 1.5 * condition(whole) and error < 4.0 * best
    without, _ = system(grid_of(rectangle(0.6 + 0.2 * share), 12, degree), ghost=0.0)
    assert share > 0.01 or without.diagonal().min() < 0.0
