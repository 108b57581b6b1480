"""Poisson's equation on a region by the symmetric form of Nitsche, assembled directly from cells."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import linalg as sparse_linalg

from factorfield.problem.domain import normal_along
from factorfield.space.cells import Cells
from factorfield.space.region import CutGrid

Array = NDArray[np.float64]
PENALTY, GHOST = 4.0, 0.01
X, Y = (("x", 1),), (("y", 1),)


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


def system(grid: CutGrid, ghost: float = GHOST, penalty: float = PENALTY) -> tuple[sparse.csr_matrix, Array]:
    inside, wall = grid.cells, grid.wall_cells(grid.shape.boundary)
    blocks = sum(products(inside.weights, inside.table(order), inside.table(order)) for order in (X, Y))
    matrix = scattered(inside, blocks, grid.size)
    values, w = wall.table(()), wall.weights
    across = sum(wall.points[normal_along(axis)][:, :, None] * wall.table(((axis, 1),)) for axis in ("x", "y"))
    degree = grid.axes["x"].degree
    width = min(float(np.diff(basis.edges).min()) for basis in grid.axes.values())
    held = across - penalty * degree**2 / width * values
    matrix = matrix - scattered(wall, products(w, values, across) + products(w, held, values), grid.size)
    rows, columns, entries = grid.ghost()
    matrix = matrix + ghost * sparse.coo_matrix((entries, (rows, columns)), shape=matrix.shape).tocsr()
    right = np.zeros(grid.size)
    force = inside.weights * source(inside.points["x"], inside.points["y"])
    np.add.at(right, inside.index, np.einsum("cp,cpi->ci", force, inside.table(())))
    np.add.at(right, wall.index, -np.einsum("cp,cpi->ci", w * exact(wall.points["x"], wall.points["y"]), held))
    return matrix, right


def error(grid: CutGrid, coefficients: Array) -> tuple[float, float]:
    """The root of the mean square inside, and the largest one inside and on walls."""
    worst, square = 0.0, 0.0
    for cells in (grid.cells, grid.wall_cells(grid.shape.boundary)):
        found = np.einsum("cpi,ci->cp", cells.table(()), coefficients[cells.index])
        away = found - exact(cells.points["x"], cells.points["y"])
        worst = max(worst, float(np.max(np.abs(away[cells.weights > 0.0]))))
        square = square or float(np.sum(cells.weights * away**2) / np.sum(cells.weights))
    return float(np.sqrt(square)), worst


def solved(grid: CutGrid, ghost: float = GHOST, penalty: float = PENALTY) -> Array:
    matrix, right = system(grid, ghost, penalty)
    scale = 1.0 / np.sqrt(matrix.diagonal())
    scaled = sparse.diags(scale) @ matrix @ sparse.diags(scale)
    return np.asarray(scale * sparse_linalg.spsolve(sparse.csc_matrix(scaled), scale * right))


def condition(matrix: sparse.csr_matrix) -> tuple[float, float]:
    """After the diagonal is scaled to 1: the smallest eigenvalue, and the condition number."""
    scale = 1.0 / np.sqrt(np.abs(matrix.diagonal()))
    values = np.linalg.eigvalsh((sparse.diags(scale) @ matrix @ sparse.diags(scale)).toarray())
    return float(values[0]), float(values[-1] / values[0])
