"""Linear heat on a line, with an unknown start and an unknown flux: against the exact Gaussian process."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import factorfield as ff
from exact_gaussian import HeatLine, Posterior, Process, Readings, Targets

Array = NDArray[np.float64]
LINE = HeatLine(0.7, 1.0, ("flux", "value"), start=Process(0.5, 1.0, 0.25), flux=Process(1.0, 1.0, 0.2))
SIGMA = 0.05


@pytest.fixture(scope="module")
def readings() -> Readings:
    """Sixty values drawn from the process itself."""
    rng = np.random.default_rng(4)
    x, t = rng.uniform(0.0, 0.95, 60), rng.uniform(0.02, 1.0, 60)
    mean, covariance = LINE.joint(Targets(x, t))
    return Readings(x, t, rng.multivariate_normal(mean, covariance + SIGMA**2 * np.eye(60)), SIGMA)


@pytest.fixture(scope="module")
def solution(readings: Readings) -> ff.Solution:
    problem = ff.Problem(
        "u_t = 0.7*u_xx", {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)},
        {"q": ff.Unknown(1.0, 1.0, over="t", length=0.2)},
        [ff.Boundary("u_x = -q", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1}),
         ff.Initial("u = 0.5", sigma=1.0, length=0.25), ff.Observations(x=readings.x, t=readings.t, u=readings.u,
                                                                        sigma=SIGMA)],
    )  # fmt: skip
    return ff.solve(problem, method="forward", tolerance=1e-6)


X, T = (a.ravel() for a in np.meshgrid([0.0, 0.1, 0.35, 0.6, 0.9], [0.01, 0.05, 0.3, 0.7, 1.0]))
FLUX = np.array([0.0, 0.13, 0.5, 0.77, 1.0])


@pytest.fixture(scope="module")
def exact(readings: Readings) -> Posterior:
    return LINE.posterior(readings, Targets(X, T, FLUX))


def test_means_and_stds_are_those_of_the_exact_process(solution: ff.Solution, exact: Posterior) -> None:
    field = solution.predict(x=X, t=T, points=True)
    flux = solution.predict(of="q", t=FLUX)
    mean = np.concatenate([field["mean"], flux["mean"]])
    std = np.concatenate([field["std"], flux["std"]])
    assert np.max(np.abs(mean - exact.mean) / exact.std) < 1e-3
    assert np.max(np.abs(std / exact.std - 1.0)) < 1e-3


def test_far_points_and_the_flux_covary_as_in_the_exact_process(solution: ff.Solution, exact: Posterior) -> None:
    covariance = solution.covariance(of="u", x=X, t=T, points=True, numerical=False).values
    expected = exact.covariance[: len(X), : len(X)]
    scale = np.outer(exact.std[: len(X)], exact.std[: len(X)])
    assert np.max(np.abs(covariance - expected) / scale) < 1e-3
    both = solution.covariance(of=["u", "q"], x=[0.35], t=[0.5], points=True, numerical=False).values
    at = LINE.posterior(
        Readings(*(np.asarray(v) for v in _stated(solution)), SIGMA), Targets([0.35], [0.5], [0.5])
    ).covariance  # fmt: skip
    assert both[0, 1] == pytest.approx(at[0, 1], abs=1e-3 * np.sqrt(at[0, 0] * at[1, 1]))


def _stated(solution: ff.Solution) -> tuple[Array, Array, Array]:
    """Places and values of the readings."""
    (statement,) = (s for s in solution.problem.statements if s.kind == "observation")
    assert statement.points is not None
    return statement.points["x"], statement.points["t"], statement.target


def test_the_evidence_is_that_of_the_exact_process(solution: ff.Solution, exact: Posterior) -> None:
    assert solution.log_evidence == pytest.approx(exact.log_evidence, abs=1e-3)


def test_draws_have_the_exact_mean_and_covariance(solution: ff.Solution) -> None:
    """Hotelling's test of the mean of 2000 draws and a chi-squared test of each variance, 1 % in all."""
    x, t, count = [0.1, 0.6], [0.05, 0.7], 2000
    places = np.repeat(t, 2), np.tile(x, 2)
    readings = Readings(*_stated(solution), SIGMA)
    answer = LINE.posterior(readings, Targets(places[1], places[0]))
    draws = solution.sample(count, seed=3, x=x, t=t).transpose("sample", "t", "x").values.reshape(count, 4)
    white = np.linalg.solve(np.linalg.cholesky(answer.covariance), (draws - answer.mean).T)
    assert count * np.sum(white.mean(axis=1) ** 2) < stats.chi2.ppf(0.995, 4)
    squares = np.sum(white**2, axis=1)
    assert np.all(squares > stats.chi2.ppf(0.0006, count)) and np.all(squares < stats.chi2.ppf(0.9994, count))
    crossed = np.sqrt(count) * np.corrcoef(white)[np.triu_indices(4, 1)]
    assert np.max(np.abs(crossed)) < 3.5


def test_a_useless_reading_leaves_the_std_of_the_start_as_it_was() -> None:
    """Walls at 20, a start 20 +- 2 and a reading long after; at t = 0.01 and on, where walls hold, exactly."""
    walls = [ff.Boundary("u = 20", at={"x": 0}), ff.Boundary("u = 20", at={"x": 1})]
    start = ff.Initial("u = 20", sigma=2, length=0.25)
    reading = ff.Observations(x=[0.5], t=[1.0], u=[20.001], sigma=0.5)
    domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    bar = HeatLine(1.0, 1.0, level=20.0, start=Process(20.0, 2.0, 0.25))
    x = np.array([0.3, 0.5, 0.8])
    _, covariance = bar.joint(Targets(np.tile(x, 2), np.repeat([0.0, 0.01], 3)))
    expected = np.sqrt(np.diag(covariance))
    stds = []
    for more in ([], [reading]):
        solution = ff.solve(ff.Problem("u_t = u_xx", domain, {}, [*walls, start, *more]), method="forward")
        stds.append(solution.predict(x=x, t=[0.0, 0.01])["std"].transpose("t", "x").values.ravel())
        np.testing.assert_allclose(stds[-1][3:], expected[3:], rtol=1e-4)
        np.testing.assert_allclose(stds[-1][:3], expected[:3], rtol=0.03)  # a start is projected onto walls
    np.testing.assert_allclose(*stds, rtol=1e-6)
