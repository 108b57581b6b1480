"""Errors of starts and walls beside a belief on boxes: their size, what they do inside, what data tell about them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy import stats
from tests.reference import matern

import factorfield as ff
from factorfield.problem.domain import Interval, Periodic

Array = NDArray[np.float64]
BOX = {"x": ff.Interval(-1.2, 1.2), "y": ff.Interval(-1.2, 1.2)}
DISK = ff.Region("x**2 + y**2 < 1")
L_SHAPE = ff.Region.polygon([(-1, -1), (1, -1), (1, 0), (0, 0), (0, 1), (-1, 1)])


def disk(*more: ff.Observations, length: float | None = 0.5) -> ff.Problem:
    """One part of the rim is off by 0.1, the other is exact: at two places the error meets it with a jump."""
    walls = [ff.Boundary("u = 1 + x", at="x > 0.2", sigma=0.1, length=length), ff.Boundary("u = 1 + x", at="x < 0.2")]
    return ff.Problem("u_xx + u_yy = 0", BOX, {}, [*walls, *more], region=DISK)


def solved(problem: ff.Problem, cells: int) -> ff.Solution:
    return ff.solve(problem, cells={"x": cells, "y": cells})


@pytest.mark.parametrize("length", [None, 0.25])
def test_a_wall_is_off_by_its_sigma_whatever_the_cells(length: float | None) -> None:
    angle = np.linspace(-1.2, 1.2, 9)
    stds = [
        solved(disk(length=length), cells).predict(x=np.cos(angle), y=np.sin(angle), points=True)["std"].values
        for cells in (12, 24, 48)
    ]
    for std in stds:
        assert_allclose(std, 0.1, rtol=0.03)
    assert_allclose(stds[1], stds[0], rtol=0.03)
    assert_allclose(stds[2], stds[1], rtol=0.03)


def test_inside_the_error_is_what_the_equation_makes_of_it() -> None:
    """Poisson's formula, with the Matern covariance of the wall by arc length."""
    angle = np.linspace(-np.arccos(0.2), np.arccos(0.2), 1001)
    arc = np.diff(angle)[0]
    x, y = np.array([0.5, 0.0, 0.3, -0.5]), np.array([0.0, 0.0, 0.6, 0.0])
    away = (x[:, None] - np.cos(angle)) ** 2 + (y[:, None] - np.sin(angle)) ** 2
    shares = (1.0 - x**2 - y**2)[:, None] / (2.0 * np.pi * away) * arc
    shares[:, [0, -1]] *= 0.5
    covariance = 0.01 * matern(angle[:, None] - angle, 0.5)
    wanted = np.sqrt(np.einsum("ni,ij,nj->n", shares, covariance, shares))
    assert_allclose(solved(disk(), 24).predict(x=x, y=y, points=True)["std"].values, wanted, rtol=0.02)


def test_measurements_tell_the_error_as_they_would_any_gaussian() -> None:
    """What the field is believed to be without them, conditioned by plain algebra."""
    x, y, values = np.array([0.8, 0.5, -0.3]), np.array([0.1, 0.6, 0.2]), np.array([1.9, 1.6, 0.72])
    at, of = {"x": np.append(x, 0.2), "y": np.append(y, 0.1)}, slice(0, 3)
    before = solved(disk(), 16)
    mean = before.predict(**at, points=True)["mean"].values
    covariance = before.covariance(**at, points=True, numerical=False).values
    noisy = covariance[of, of] + 0.01**2 * np.eye(3)
    gain = np.linalg.solve(noisy, covariance[of, 3])
    after = solved(disk(ff.Observations(x=x, y=y, u=values, sigma=0.01)), 16)
    found = after.posterior.exact.predict({"x": at["x"][3:], "y": at["y"][3:]}, points=True)
    assert float(found["mean"][0]) == pytest.approx(mean[3] + gain @ (values - mean[of]), abs=1e-4)
    assert float(found["std"][0]) == pytest.approx(np.sqrt(covariance[3, 3] - gain @ covariance[of, 3]), rel=0.01)
    wanted = stats.multivariate_normal(mean[of], noisy).logpdf(values)
    assert after.log_evidence == pytest.approx(wanted, abs=0.01)


def test_an_unknown_number_is_told_apart_from_the_error_of_a_wall(tmp_path: object) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-0.6, 0.6, (2, 30))
    seen = ff.Observations(x=x, y=y, u=0.5 * (1.0 - x**2 - y**2) + 0.01 * rng.standard_normal(30), sigma=0.01)
    unknown, wall = {"k": ff.Unknown(1.0, 1.0)}, ff.Boundary("u = 0", sigma=0.05)
    problem = ff.Problem("u_xx + u_yy + k = 0", BOX, unknown, [wall, seen], region=DISK)
    solution = solved(problem, 12)
    found, exact = solution.parameters["k"], solved(problem.replace(conditions=[ff.Boundary("u = 0"), seen]), 12)
    assert abs(found["mean"] - 2.0) < 3.0 * found["std"]
    assert found["std"] > 1.3 * exact.parameters["k"]["std"]
    solution.save(f"{tmp_path}/run.nc")
    grid = np.linspace(-0.7, 0.7, 5)
    assert_allclose(
        ff.load(f"{tmp_path}/run.nc").predict(x=grid, y=grid)["std"], solution.predict(x=grid, y=grid)["std"]
    )


def test_walls_of_a_box_are_off_by_their_sigma_too() -> None:
    domain = {"x": ff.Interval(0, 1), "y": ff.Periodic(0, 1)}
    walls = [ff.Boundary("u = 1", at={"x": 0}, sigma=0.1), ff.Boundary("u = 0", at={"x": 1})]
    problem = ff.Problem("u_xx + u_yy = 0", domain, {}, walls)
    tree, joint = (
        ff.solve(problem, method, **options).predict(x=[0.0, 0.2, 0.5], y=[0.3])["std"].values
        for method, options in (("tree", {"cells": {"x": 16, "y": 16}}), ("joint", {}))
    )
    assert_allclose(tree, joint, rtol=0.03)
    assert tree[0, 0] == pytest.approx(0.1, rel=0.02)


def test_arc_length_goes_on_around_corners_and_closes() -> None:
    problem = ff.Problem("u_xx + u_yy = 0", BOX, {}, [ff.Boundary("u = 0", at=[1, 2, 4])], region=L_SHAPE)
    wall = problem.statements[1].wall
    assert wall is not None and [type(chain) for chain in wall.chains] == [Interval, Interval]
    assert sorted(chain.length for chain in wall.chains) == pytest.approx([1.0, 2.0])
    points, _ = wall.points(0.1)
    order = np.argsort(points["wall"])
    step = np.hypot(np.diff(points["x"][order]), np.diff(points["y"][order]))
    assert np.sum(step > 0.2) == 1  # from one chain to the other
    assert problem.shape is not None
    whole = problem.shape.boundary
    assert [type(chain) for chain in whole.chains] == [Periodic] and whole.chains[0].length == pytest.approx(8.0)


def test_a_wave_whose_start_noisy_labels_tell_is_not_flat() -> None:
    """On cells that cannot follow it an exact equation would leave only the flat field."""
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 1.0, 40)
    wave = np.sin(5.0 * np.pi * x)
    seen = ff.Observations(x=x, t=0.0, u=wave + 0.02 * rng.standard_normal(40), sigma=0.02)
    problem = ff.Problem(
        "u_tt = u_xx", {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}, {},
        [seen, ff.Initial("u_t = 0"), ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})],
    )  # fmt: skip
    solution = ff.solve(problem, "tree", cells={"x": 10, "t": 10})
    field = solution.predict(x=np.linspace(0, 1, 41), t=np.linspace(0, 1, 21))
    truth = np.cos(5.0 * np.pi * field["t"].values)[:, None] * np.sin(5.0 * np.pi * field["x"].values)
    missed = np.abs(field["mean"].values - truth)
    assert solution.status == "unresolved" and np.mean(missed < 1.645 * field["std"].values) > 0.8
    assert np.sqrt(np.mean(missed**2)) < 0.3
