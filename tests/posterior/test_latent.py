"""The posterior by the map: what it predicts, draws and promises, on problems with closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import factorfield as ff

X = np.linspace(0.1, 0.9, 7)
WALLS = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
LEVEL = float(special.ndtri(0.95))


@pytest.fixture(scope="module")
def heat() -> ff.Solution:
    """Nonlinear in two numbers, with an uncertain start."""
    x, t = (a.ravel() for a in np.meshgrid(X, [0.05, 0.2, 0.4]))
    u = np.exp(-0.1 * np.pi**2 * t) * np.sin(np.pi * x) + 0.02 * np.random.default_rng(0).standard_normal(x.size)
    problem = ff.Problem(
        "u_t = k*u_xx + c", {"x": ff.Interval(0, 1), "t": ff.Interval(0, 0.5)},
        {"k": ff.Unknown(0.15, 0.1, positive=True), "c": ff.Unknown(0.0, 0.5)},
        [*WALLS, ff.Initial("u = sin(pi*x)", sigma=0.2, length=0.3), ff.Observations(x=x, t=t, u=u, sigma=0.02)],
    )  # fmt: skip
    return ff.solve(problem, method="forward", tolerance=1e-6)


@pytest.fixture(scope="module")
def coefficient() -> ff.Solution:
    """A positive function, measured directly: log f is Gaussian."""
    x = np.linspace(0.05, 0.95, 12)
    problem = ff.Problem(
        "-u_xx = f", {"x": ff.Interval(0, 1)}, {"f": ff.Unknown(2.0, 1.0, positive=True, over="x", length=0.3)},
        [*WALLS, ff.Observations(x=x, u=x * (1 - x), sigma=0.01)],
    )  # fmt: skip
    return ff.solve(problem, method="forward", tolerance=1e-6)


def test_grids_and_points_say_the_same(heat: ff.Solution) -> None:
    x, t = np.linspace(0, 1, 5), np.array([0.0, 0.13, 0.5])
    grid = heat.predict(x=x, t=t, level=0.9).transpose("t", "x")
    flat_t, flat_x = (a.ravel() for a in np.meshgrid(t, x, indexing="ij"))
    points = heat.predict(x=flat_x, t=flat_t, points=True, level=0.9)
    for key in ("mean", "std", "lower", "upper"):
        np.testing.assert_allclose(grid[key].values.ravel(), points[key].values, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(points["upper"], points["mean"] + LEVEL * points["std"], rtol=1e-9, atol=1e-13)


def test_derivatives_and_expressions_are_functions_of_the_field(heat: ff.Solution) -> None:
    at, step = {"x": [0.3, 0.6], "t": [0.1, 0.3]}, 1e-4
    slope = heat.predict(of="u_x", points=True, **at)["mean"].values
    ahead, behind = (
        heat.predict(x=np.array(at["x"]) + s, t=at["t"], points=True)["mean"].values for s in (step, -step)
    )  # fmt: skip
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), atol=1e-5)
    both = heat.predict(of="3*u + 2*u_x", points=True, **at)["mean"].values
    field = heat.predict(points=True, **at)["mean"].values
    np.testing.assert_allclose(both, 3 * field + 2 * slope, atol=1e-10)
    covariance = heat.covariance(of=["u", "u_x", "3*u + 2*u_x"], x=[0.3], t=[0.1], points=True).values
    weights = np.array([3.0, 2.0])
    assert covariance[2, 2] == pytest.approx(weights @ covariance[:2, :2] @ weights, rel=1e-3)
    residual = heat.predict(of="residual", numerical=False, points=True, **at)
    assert np.max(np.abs(residual["mean"])) < 1e-2


def test_the_flux_is_linearised_in_number_and_field(heat: ff.Solution) -> None:
    flux = heat.predict(of="k*u_x", x=[0.2], t=[0.2])
    k, slope = heat.parameters["k"], heat.predict(of="u_x", x=[0.2], t=[0.2])
    median = k["mean"] / np.sqrt(1.0 + (k["std"] / k["mean"]) ** 2)
    assert float(flux["mean"].squeeze()) == pytest.approx(median * float(slope["mean"].squeeze()), rel=1e-6)
    table = heat.covariance(of=["log(k)", "u_x"], x=[0.2], t=[0.2], points=True).values
    slopes = median * np.array([float(slope["mean"].squeeze()), 1.0])
    assert float(flux["std"].squeeze()) ** 2 == pytest.approx(slopes @ table @ slopes, rel=1e-6)


def test_log_normal_numbers_have_their_moments_and_covariances(heat: ff.Solution) -> None:
    k, c = heat.parameters["k"], heat.parameters["c"]
    s = np.sqrt(np.log1p((k["std"] / k["mean"]) ** 2))
    m = np.log(k["mean"]) - 0.5 * s**2
    np.testing.assert_allclose(k["interval"], np.exp([m - LEVEL * s, m + LEVEL * s]), rtol=1e-9)
    np.testing.assert_allclose(c["interval"], [c["mean"] - LEVEL * c["std"], c["mean"] + LEVEL * c["std"]], rtol=1e-9)
    matrix = heat.covariance()
    np.testing.assert_allclose(np.sqrt(np.diag(matrix)), [k["std"], c["std"]], rtol=1e-9)
    drawn = np.random.default_rng(0).multivariate_normal(
        [m, c["mean"]], [[s**2, matrix.values[0, 1] / k["mean"]], [matrix.values[0, 1] / k["mean"], c["std"] ** 2]],
        400_000,
    )  # fmt: skip
    sampled = np.cov(np.exp(drawn[:, 0]), drawn[:, 1])
    np.testing.assert_allclose(sampled, matrix.values, atol=0.02 * np.sqrt(np.outer(*[np.diag(matrix)] * 2)).max())
    correlation = heat.correlation().values
    assert correlation[0, 1] == pytest.approx(matrix.values[0, 1] / (k["std"] * c["std"]), rel=1e-9)


def test_a_positive_function_is_log_normal_everywhere(coefficient: ff.Solution) -> None:
    at = {"x": [0.2, 0.5, 0.8]}
    f = coefficient.predict(of="f", level=0.9, **at)
    log = coefficient.predict(of="log(f)", **at)
    m, s = log["mean"].values, log["std"].values
    np.testing.assert_allclose(f["mean"], np.exp(m + 0.5 * s**2), rtol=1e-6)
    np.testing.assert_allclose(f["std"], np.exp(m + 0.5 * s**2) * np.sqrt(np.expm1(s**2)), rtol=1e-5)
    np.testing.assert_allclose(f["lower"], np.exp(m - LEVEL * s), rtol=1e-6)
    np.testing.assert_allclose(f["upper"], np.exp(m + LEVEL * s), rtol=1e-6)
    draws = coefficient.sample(3000, seed=1, of="f", **at).values
    assert np.all(draws > 0.0)
    white = (np.log(draws) - m) / s
    for column in white.T:
        assert stats.kstest(column, "norm").pvalue > 1e-3


def test_draws_have_the_mean_and_covariance_that_are_predicted(heat: ff.Solution) -> None:
    at = {"x": [0.3, 0.6], "t": [0.0, 0.4]}
    draws = heat.sample(4000, seed=2, **at).transpose("sample", "t", "x").values.reshape(4000, 4)
    t, x = (a.ravel() for a in np.meshgrid(at["t"], at["x"], indexing="ij"))
    covariance = heat.covariance(x=x, t=t, points=True).values
    mean = heat.predict(x=x, t=t, points=True)["mean"].values
    std = np.sqrt(np.diag(covariance))
    assert np.max(np.abs(draws.mean(axis=0) - mean) / std) < 4.0 / np.sqrt(4000)
    error = (np.cov(draws.T) - covariance) / np.outer(std, std)
    assert np.max(np.abs(error)) < 4.0 * np.sqrt(2.0 / 4000)
    again = heat.sample(4000, seed=2, **at).transpose("sample", "t", "x").values.reshape(4000, 4)
    np.testing.assert_array_equal(draws, again)


def test_the_noise_of_a_reading_is_added_and_the_numerical_error_can_be_left_out(heat: ff.Solution) -> None:
    at = {"x": [0.3], "t": [0.4]}
    field, reading, exact = (
        float(heat.predict(**at, **more)["std"].squeeze()) for more in ({}, {"noise": True}, {"numerical": False})
    )
    assert reading == pytest.approx(np.hypot(field, 0.02), rel=1e-9)
    assert exact < field < 1.01 * exact


def test_the_next_measurements_keep_what_they_promise(heat: ff.Solution) -> None:
    """The std of a number after them is the one promised, whatever they read."""
    candidates = {"x": np.linspace(0.1, 0.9, 9), "t": [0.1, 0.3, 0.5]}
    found = heat.next_measurements(3, 0.01, candidates=candidates, target="c")
    x, t = found["x"].values, found["t"].values
    expected = heat.predict(x=x, t=t, points=True)["mean"].values
    after = heat.condition(ff.Observations(x=x, t=t, u=expected, sigma=0.01))
    assert float(found["std_now"]) == pytest.approx(heat.parameters["c"]["std"], rel=1e-6)
    assert float(found["std"][-1]) == pytest.approx(after.parameters["c"]["std"], rel=2e-3)
    assert np.all(np.diff(found["std"].values) < 0.0)


def test_a_region_is_predicted_inside_only() -> None:
    problem = ff.Problem(
        "-u_xx - u_yy = f", {"x": ff.Interval(-1, 1), "y": ff.Interval(-1, 1)}, {"f": ff.Unknown(3.0, 1.0)},
        [ff.Boundary("u = 0"), ff.Observations(x=[0.1, -0.3], y=[0.2, 0.4], u=[0.95, 0.75], sigma=0.02)],
        region=ff.Region("x**2 + y**2 < 1"),
    )  # fmt: skip
    solution = ff.solve(problem, method="forward")
    assert solution.parameters["f"]["mean"] == pytest.approx(4.0, abs=0.2)
    x = np.array([-0.9, 0.0, 0.5])
    field = solution.predict(x=x, y=x).transpose("x", "y")
    r2 = x[:, None] ** 2 + x**2
    np.testing.assert_array_equal(np.isnan(field["mean"]), r2 > 1.0)
    f = solution.parameters["f"]
    np.testing.assert_allclose(field["mean"].values[r2 < 1], (f["mean"] * (1 - r2) / 4)[r2 < 1], atol=1e-4)
    np.testing.assert_allclose(field["std"].values[r2 < 1], (f["std"] * (1 - r2) / 4)[r2 < 1], rtol=1e-2)
