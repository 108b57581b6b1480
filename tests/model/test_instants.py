"""Equations of a plane and of a region at one instant: square, consistent, with exact areas."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import factorfield as ff
from factorfield.model.graded import uniform
from factorfield.model.inside import equations_of, features_at, quadrature_inside, start_of
from factorfield.model.windowed import suits_region, window_model

CELLS = {"x": 12, "y": 12}
FIELD = "exp(-t)*sin(x + 0.5)*cos(y)"  # u_t = 0.5 Laplace u


UNIT = ff.Interval(0, 1)


def plane(*walls: ff.Condition, x: ff.Interval | ff.Periodic = UNIT, **more: object) -> ff.Problem:
    domain = {"x": x, "y": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    start = ff.Initial("u = sin(x + 0.5)*cos(y)")
    return ff.Problem("u_t = 0.5*(u_xx + u_yy)", domain, {}, [start, *walls], **more)


def sides(text: str, *axes: str) -> list[ff.Condition]:
    return [ff.Boundary(text.format(axis), at={axis: end}) for axis in axes for end in (0, 1)]


WALLS = {
    "values": sides(f"u = {FIELD}", "x", "y"),
    "fluxes": [
        *(ff.Boundary("u_x = exp(-t)*cos(x + 0.5)*cos(y)", at={"x": end}) for end in (0, 1)),
        *(ff.Boundary("u_y = -exp(-t)*sin(x + 0.5)*sin(y)", at={"y": end}) for end in (0, 1)),
    ],
    "both": [
        *sides(f"u = {FIELD}", "x"),
        *(ff.Boundary("u_y = -exp(-t)*sin(x + 0.5)*sin(y)", at={"y": end}) for end in (0, 1)),
    ],
}


@pytest.mark.parametrize("walls", WALLS.values(), ids=WALLS)
def test_rows_are_as_many_as_coefficients_and_vanish_for_the_field(walls: list[ff.Condition]) -> None:
    """Quintic splines over 12 cells hold the field to some 1e-9, its second derivatives to 1e-6."""
    model = window_model(plane(*walls), cells=CELLS)
    equations, state = equations_of(model), start_of(model)
    assert equations is not None and state is not None
    assert sum(group.through.shape[0] for group in equations.groups) == equations.size == 17 * 17
    assert np.abs(equations.residual(state, -state, 0.0)).max() < 1e-4  # of sums of weights of about one
    rows, rates = equations.slopes(state, -state, 0.0)
    assert sparse.issparse(rows) and np.linalg.matrix_rank((rows + 10.0 * rates).toarray()) == equations.size


def test_slopes_are_derivatives_of_rows() -> None:
    model = window_model(
        ff.Problem(
            "u_t = 0.1*(u_xx + u_yy) + u**3*u_x",
            {"x": ff.Periodic(0, 1), "y": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}, {},
            [ff.Initial("u = sin(2*pi*x)*cos(2*pi*y)")],
        ),
        cells=CELLS,
    )  # fmt: skip
    equations, state = equations_of(model), start_of(model)
    assert equations is not None and state is not None
    rng = np.random.default_rng(0)
    step, rate = rng.standard_normal((2, equations.size))
    values, rates = equations.slopes(state, rate, 0.3)
    ahead, behind = (equations.residual(state + h * step, rate + h * step, 0.3) for h in (1e-6, -1e-6))
    assert_allclose(values @ step + rates @ step, (ahead - behind) / 2e-6, atol=1e-5 * np.abs(ahead).max())


def test_points_of_a_region_stand_for_its_area() -> None:
    """A disk with a hole, over cells that its walls cut anyhow: to 1e-4, where a line meets a wall that is parallel."""
    problem = ff.Problem(
        "u_xx + u_yy = 1", {"x": ff.Interval(-1.1, 1.1), "y": ff.Interval(-1.1, 1.2)}, {}, [ff.Boundary("u = 0")],
        region=ff.Region("x**2 + y**2 < 1 and (x - 0.3)**2 + y**2 > 0.1"),
    )  # fmt: skip
    cells = {axis: uniform(problem.domain[axis], 16) for axis in "xy"}
    assert problem.shape is not None
    points, area, (_, beyond) = quadrature_inside(cells, problem.shape)
    assert area.sum() == pytest.approx(0.9 * np.pi, rel=3e-4)
    assert area.sum() + beyond.sum() == pytest.approx(2.2 * 2.3, rel=0.05)  # of cut cells by points alone
    assert problem.shape.contains(points).all() and np.all(area > 0.0)
    values = features_at(cells, points, (("x", 1),))
    weights = np.kron(cells["x"].places, np.ones(cells["y"].size))  # the function x
    assert_allclose(values @ weights, 1.0, atol=1e-10)


def test_what_windows_do_in_a_region_by_themselves() -> None:
    inside = ff.Region("x**2 + y**2 < 0.9")
    wall = ff.Boundary(f"u = {FIELD}")
    assert suits_region(plane(wall, region=inside))
    seen = ff.Observations(x=[0.1], y=[0.1], t=[0.5], u=[0.3], sigma=0.1)
    assert not suits_region(plane(wall, seen, region=inside))
    assert not suits_region(plane(ff.Boundary(f"u = {FIELD}", sigma=0.1), region=inside))
