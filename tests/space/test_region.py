"""Splines cut by a region: areas, lengths and integrals, what is read where, and the ghost penalty."""

from __future__ import annotations

from math import factorial, gamma
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

import factorfield as ff
from factorfield.problem.domain import ARC, Domain, normal_along
from factorfield.problem.shape import Shape, Wall
from factorfield.space.axes import Fourier, Spline
from factorfield.space.region import CutGrid

Array = NDArray[np.float64]
BOX = {"x": ff.Interval(-1.2, 1.2), "y": ff.Interval(-1.2, 1.2)}
OUTLINE = [(-1.0, -0.9), (1.0, -1.0), (0.9, 1.0), (0.1, 0.2), (-1.1, 1.0)]
HOLE = [(-0.5, -0.5), (0.0, -0.4), (-0.2, 0.0)]
SQUARE = [(-0.6, -0.6), (0.6, -0.6), (0.6, 0.6), (-0.6, 0.6)]
DISK = ff.Region("x**2 + y**2 < 1")
POLYGON = ff.Region.polygon(OUTLINE, holes=[HOLE])


def shape_of(region: ff.Region, box: dict[str, Any] | None = None) -> Shape:
    return Shape.of(region, Domain(box or BOX), {})


def grid_of(shape: Shape, cells: int, degree: int = 5) -> CutGrid:
    return CutGrid.of(
        {
            axis: Spline.uniform(end.lower, end.upper, cells, degree, isinstance(end, ff.Periodic))
            for axis, end in zip(shape.axes, shape.ends, strict=True)
        },
        shape,
    )


def edges(rings: list[list[tuple[float, float]]]) -> tuple[Array, Array]:
    starts = np.concatenate([np.array(ring) for ring in rings])
    ends = np.concatenate([np.roll(np.array(ring), -1, axis=0) for ring in rings])
    return starts, ends


def moment(rings: list[list[tuple[float, float]]], a: int, b: int) -> float:
    """The integral of x^a y^b over a polygon whose outline turns left and whose holes turn right, by Gauss points on
    its edges: that of x^(a+1) / (a + 1) y^b dy around it."""
    starts, ends = edges(rings)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    x, y = (starts[:, None] + 0.5 * (1.0 + nodes[:, None]) * (ends - starts)[:, None]).transpose(2, 0, 1)
    return float(np.sum(x ** (a + 1) / (a + 1) * y**b * 0.5 * weights * (ends - starts)[:, 1:]))


def length(rings: list[list[tuple[float, float]]]) -> float:
    starts, ends = edges(rings)
    return float(np.hypot(*(ends - starts).T).sum())


WAVE = np.array([np.hypot(1.0, 0.4 * np.pi * np.cos(2.0 * np.pi * s)) for s in np.arange(64) / 64]).mean()
UNIT = {"x": ff.Interval(-1.0, 1.0), "y": ff.Interval(-1.0, 1.0)}
SHAPES = {  # the region, its box, area and length of the boundary
    "disk": (DISK, BOX, np.pi, 2.0 * np.pi),
    "annulus": (ff.Region("x**2 + y**2 < 1 and (x - 0.2)**2 + (y + 0.1)**2 > 0.16"), BOX, 0.84 * np.pi, 2.8 * np.pi),
    "polygon": (POLYGON, BOX, moment([OUTLINE, HOLE[::-1]], 0, 0), length([OUTLINE, HOLE])),
    "square on grid lines": (ff.Region.polygon(SQUARE), BOX, 1.44, 4.8),
    "disk that touches grid lines": (ff.Region("x**2 + y**2 < 0.36"), BOX, 0.36 * np.pi, 1.2 * np.pi),
    "disk that touches the box": (DISK, UNIT, np.pi, 2.0 * np.pi),
    "box with a small hole": (ff.Region("(x - 0.03)**2 + (y - 0.04)**2 > 1.6e-3"), UNIT, 4.0 - 1.6e-3 * np.pi,
                             8.0 + 0.08 * np.pi),
    "channel that goes around": (ff.Region("y < 0.5 + 0.2*sin(2*pi*x)"),
                                 {"x": ff.Periodic(0, 1), "y": ff.Interval(0, 1)}, 0.5, 1.0 + WAVE),
    "far from the origin": (ff.Region("(x - 1000)**2 + (y - 1000)**2 < 1"),
                            {"x": ff.Interval(998.9, 1001.1), "y": ff.Interval(998.8, 1001.2)}, np.pi, 2.0 * np.pi),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize(("cells", "degree"), [(8, 5), (16, 5), (24, 3)])
def test_areas_and_lengths_are_exact(name: str, cells: int, degree: int) -> None:
    region, box, area, perimeter = SHAPES[name]
    shape = shape_of(region, box)
    grid = grid_of(shape, cells, degree)
    inside, wall = grid.cells, grid.wall_cells(shape.boundary)
    # coordinates near 1000 are rounded to 1e-13, and so are crossings with grid lines
    assert abs(inside.weights.sum() - area) < 1e-10 and abs(wall.weights.sum() - perimeter) < 1e-10
    assert np.all(inside.weights >= 0.0) and np.all(wall.weights > 0.0)
    assert np.all(shape.contains(inside.flat))
    for cells_here in (inside, wall):
        assert cells_here.index.min() >= 0 and cells_here.index.max() < grid.size
        np.testing.assert_allclose(cells_here.table(()).sum(axis=2), 1.0, atol=1e-12)


@pytest.mark.parametrize(("a", "b"), [(1, 0), (2, 0), (2, 2), (0, 4), (4, 2), (3, 3)])
def test_polynomials_are_integrated_exactly(a: int, b: int) -> None:
    """On the disk of radius 1 by the gamma function, on the polygon by Green's theorem."""
    even = a % 2 == 0 and b % 2 == 0
    exact = gamma(0.5 * (a + 1)) * gamma(0.5 * (b + 1)) / gamma(0.5 * (a + b) + 2.0) if even else 0.0
    for region, value in ((DISK, exact), (POLYGON, moment([OUTLINE, HOLE[::-1]], a, b))):
        cells = grid_of(shape_of(region), 11).cells
        assert abs(np.sum(cells.weights * cells.points["x"] ** a * cells.points["y"] ** b) - value) < 1e-12


@pytest.mark.parametrize("name", ["annulus", "polygon", "box with a small hole"])
def test_the_flux_through_walls_is_the_divergence_inside(name: str) -> None:
    """Of the field (sin(2 x + y), exp(x y)): points, normals and lengths of walls agree with the inside."""
    shape = shape_of(*SHAPES[name][:2])
    grid = grid_of(shape, 17)
    inside, wall = grid.cells, grid.wall_cells(shape.boundary)
    x, y = inside.points["x"], inside.points["y"]
    divergence = np.sum(inside.weights * (2.0 * np.cos(2.0 * x + y) + x * np.exp(x * y)))
    x, y = wall.points["x"], wall.points["y"]
    across = np.sin(2.0 * x + y) * wall.points[normal_along("x")] + np.exp(x * y) * wall.points[normal_along("y")]
    assert abs(np.sum(wall.weights * across) - divergence) < 1e-9


def test_points_of_a_wall_know_their_arc_length() -> None:
    """On a circle it is the angle, on a part of a wall it begins where the part does."""
    shape = shape_of(DISK)
    grid = grid_of(shape, 13)
    points = grid.wall_cells(shape.boundary).points
    arc, angle = points[ARC].ravel(), np.arctan2(points["y"], points["x"]).ravel()
    turned = np.exp(1j * angle)
    shift = min((turned * np.exp(-1j * arc), turned * np.exp(1j * arc)), key=lambda z: float(np.ptp(z.real)))
    np.testing.assert_allclose(shift, shift[0], atol=1e-9)
    part = shape.wall("y > 0.3", {})
    half = grid.wall_cells(part)
    assert np.all(half.points["y"] > 0.3) and half.points[ARC].min() > 0.0 and half.points[ARC].max() < part.length
    assert abs(half.weights.sum() - (np.pi - 2.0 * np.arcsin(0.3))) < 1e-9


def test_a_row_of_a_wall_lies_in_one_cell() -> None:
    shape = shape_of(POLYGON)
    grid = grid_of(shape, 10)
    for wall in (shape.boundary, shape.wall([0, 6], {})):
        assert isinstance(wall, Wall)
        points = grid.wall_cells(wall).points
        for axis in shape.axes:
            cell = np.floor((points[axis] + 1.2) / 0.24)
            assert np.all(cell == cell[:, :1])


@pytest.mark.parametrize("orders", [(), (("x", 1),), (("x", 1), ("y", 2)), (("y", 3),)])
def test_cells_and_walls_hold_what_points_read(orders: tuple[tuple[str, int], ...]) -> None:
    shape = shape_of(POLYGON)
    grid = grid_of(shape, 9)
    weights = np.random.default_rng(2).normal(size=grid.size)
    for cells in (grid.cells, grid.wall_cells(shape.boundary)):
        index, values = grid.read(cells.flat, orders)
        here = np.einsum("cpi,ci->cp", cells.table(orders), weights[cells.index]).ravel()
        read = np.sum(values * weights[index], axis=1)
        np.testing.assert_allclose(here, read, atol=1e-9 * np.abs(read).max())


def test_only_functions_that_reach_into_the_region_are_kept() -> None:
    grid = grid_of(shape_of(ff.Region("x**2 + y**2 < 0.09")), 24, 3)
    mass = np.zeros(grid.size)
    np.add.at(mass, grid.cells.index, np.einsum("cp,cpi->ci", grid.cells.weights, grid.cells.table(())))
    assert grid.size < 27**2 / 4 and np.all(mass > 0.0)
    assert all(len(x) == grid.size for x in grid.places.values())
    index, values = grid.read({"x": np.array([1.1, 0.0]), "y": np.array([1.1, 0.0])}, ())
    assert np.all(values[0] == 0.0) and np.all(index[0] == 0) and np.isclose(values[1].sum(), 1.0)


def test_all_functions_weigh() -> None:
    grid = grid_of(shape_of(DISK), 6)
    weighting = grid.weighting_inside()
    np.testing.assert_array_equal(weighting.rows, grid.cells.index)
    np.testing.assert_array_equal(weighting.values, grid.cells.table(()))


def test_a_cut_grid_is_what_its_spec_and_region_say() -> None:
    shape = shape_of(DISK)
    grid = grid_of(shape, 6)
    again = CutGrid.from_spec(grid.spec(), shape)
    assert again.size == grid.size and again.resolution == grid.resolution == {"x": 11, "y": 11}
    np.testing.assert_array_equal(again.functions, grid.functions)


def test_axes_that_are_not_those_of_the_region_are_refused() -> None:
    spline = Spline.uniform(-1.2, 1.2, 6)
    for axes in ({"x": spline}, {"y": spline, "x": spline}, {"x": spline, "y": Fourier(3, -1.2, 2.4)}):
        with pytest.raises(ff.ProblemError, match="splines along the axes x, y"):
            CutGrid.of(axes, shape_of(DISK))


# -- the ghost penalty


def ghost_of(grid: CutGrid) -> sparse.csr_matrix:
    rows, columns, values = grid.ghost()
    return sparse.coo_matrix((values, (rows, columns)), shape=(grid.size, grid.size)).tocsr()


def coefficients(grid: CutGrid, formula: Any) -> Array:
    """Those whose field is nearest to a formula of the coordinates, over whole cells of the box."""
    whole = grid.grid
    points = whole.cells.flat
    index, values = whole.read(points, ())
    count = len(index)
    matrix = sparse.csr_matrix((values.ravel(), index.ravel(), np.arange(count + 1) * index.shape[1]))
    solution = np.linalg.lstsq(matrix.toarray(), formula(points["x"], points["y"]), rcond=None)[0]
    return np.asarray(solution[grid.functions])


@pytest.mark.parametrize("degree", [3, 4, 5])
def test_the_ghost_penalty_is_symmetric_and_semidefinite_and_spares_polynomials(degree: int) -> None:
    grid = grid_of(shape_of(SHAPES["annulus"][0]), 7, degree)
    ghost = ghost_of(grid)
    assert abs(ghost - ghost.T).max() < 1e-12 * abs(ghost).max()
    values = np.linalg.eigvalsh(ghost.toarray())
    assert values[0] > -1e-12 * values[-1]
    field = coefficients(grid, lambda x, y: (x + 0.3) ** degree * (y - 1.0) ** degree)
    assert field @ ghost @ field < 1e-16 * np.sum(field**2) * values[-1]


@pytest.mark.parametrize("degree", [3, 5])
def test_the_ghost_penalty_is_the_energy_of_the_difference_in_the_next_cell(degree: int) -> None:
    """Of max(x, 0)^p: p^2 h^(2p-1) / (2p - 1) over every side of a cut cell on the line x = 0."""
    shape = shape_of(ff.Region("y < 0.45"))
    grid = grid_of(shape, 12, degree)  # rows of cells from 0.4 to 0.6 are cut; sides there are 0.2 long
    field = coefficients(grid, lambda x, y: np.maximum(x, 0.0) ** degree)
    energy = degree**2 * 0.2 ** (2 * degree - 1) / (2 * degree - 1) * 0.2
    assert np.isclose(field @ ghost_of(grid) @ field, energy, rtol=1e-8)


def test_the_ghost_penalty_spares_repeated_breaks() -> None:
    """A field may have a kink there."""
    axes = {"x": Spline((-1.2, -0.6, 0.0, 0.0, 0.0, 0.6, 1.2), 3), "y": Spline.uniform(-1.2, 1.2, 4, 3)}
    grid = CutGrid.of(axes, shape_of(ff.Region("y < 0.45")))
    ghost = ghost_of(grid)
    kink = coefficients(grid, lambda x, y: np.abs(x) * (1.0 + y))
    bend = coefficients(grid, lambda x, y: np.maximum(x - 0.6, 0.0) ** 3)
    assert kink @ ghost @ kink < 1e-20 and bend @ ghost @ bend > 1e-6 / factorial(3)
