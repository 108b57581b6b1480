"""Gauss-Newton, the evidence and noise levels: against brute force on problems with closed forms."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, optimize

import factorfield as ff
from factorfield.inference.fit import Gaussian

Array = NDArray[np.float64]
T = np.linspace(0.2, 2.0, 12)
DECAY = 0.8
SEEN = 2.0 * np.exp(-DECAY * T) + 0.02 * np.random.default_rng(0).standard_normal(len(T))


def decay(sigma: float | None = 0.02, start: float | None = 0.3, std: float = 0.5) -> ff.Problem:
    """u' = -k u, k log-normal, u(0) = 1.8 +- start."""
    return ff.Problem(
        "u_t = -k*u", {"t": ff.Interval(0, 2)}, {"k": ff.Unknown(1.0, std, positive=True)},
        [ff.Initial("u = 1.8", sigma=start), ff.Observations(t=T, u=SEEN, sigma=sigma)],
    )  # fmt: skip


def prior(std: float = 0.5) -> tuple[float, float]:
    variance = np.log1p(std**2)
    return -0.5 * variance, float(np.sqrt(variance))


def objective(z: Array, sigma: float = 0.02) -> float:
    """Minus the log of the joint density, but for constants, of log k and the start in units of their std."""
    mean, std = prior()
    missed = (1.8 + 0.3 * z[1]) * np.exp(-np.exp(mean + std * z[0]) * T) - SEEN
    return 0.5 * float(z @ z) + 0.5 * float(np.sum(missed**2)) / sigma**2


def test_the_mode_is_the_optimum_of_the_true_density() -> None:
    best = optimize.minimize(objective, np.zeros(2), method="BFGS", options={"gtol": 1e-8}).x
    solution = ff.solve(decay(), method="forward", tolerance=1e-8)
    mean, std = prior()
    k = solution.parameters["k"]
    half = np.log(k["interval"][1] / k["interval"][0]) / 2.0 / 1.6448536269514722  # std of log k
    assert np.log(k["mean"]) - 0.5 * half**2 == pytest.approx(mean + std * best[0], abs=1e-3 * half)
    assert float(solution.predict(t=[0.0])["mean"][0]) == pytest.approx(1.8 + 0.3 * best[1], abs=1e-4)
    curvature = np.linalg.inv(hessian(objective, best))
    assert half == pytest.approx(std * np.sqrt(curvature[0, 0]), rel=0.02)  # Gauss-Newton's, not the whole one


def hessian(function: Callable[[Array], float], at: Array, step: float = 1e-4) -> Array:
    steps = step * np.eye(len(at))
    return np.array([
        [sum(a * b * function(at + a * i + b * j) for a in (1, -1) for b in (1, -1)) / (4.0 * step**2) for i in steps]
        for j in steps
    ])  # fmt: skip


@pytest.mark.parametrize("std", [0.5, 0.05])
def test_the_evidence_is_the_integral_over_the_unknown_number(std: float) -> None:
    """Laplace's method is near: readings leave log k almost Gaussian."""
    mean, width = prior(std)

    def density(z: float) -> float:
        missed = 1.8 * np.exp(-np.exp(mean + width * z) * T) - SEEN
        return float(np.exp(-0.5 * z * z - 0.5 * np.sum((missed / 0.1) ** 2))) / np.sqrt(2.0 * np.pi)

    integral, _ = integrate.quad(density, -8.0, 8.0, limit=400, epsabs=0.0, epsrel=1e-10, points=[-1.0, 0.0, 1.0])
    expected = np.log(integral) - len(T) * (np.log(0.1) + 0.5 * np.log(2.0 * np.pi))
    solution = ff.solve(decay(0.1, None, std), method="forward", tolerance=1e-8)
    assert solution.log_evidence == pytest.approx(expected, abs=0.02)


def test_the_evidence_of_a_linear_problem_is_exact() -> None:
    """k is known: readings are Gaussian with the covariance of a start and of noise."""
    problem = decay(0.05).replace(parameters={"k": DECAY})
    mean, spread = 1.8 * np.exp(-DECAY * T), 0.3 * np.exp(-DECAY * T)
    covariance = np.outer(spread, spread) + 0.05**2 * np.eye(len(T))
    missed = SEEN - mean
    expected = -0.5 * missed @ np.linalg.solve(covariance, missed) - 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    solution = ff.solve(problem, method="forward", tolerance=1e-9)
    assert solution.log_evidence == pytest.approx(expected, abs=1e-6)
    assert solution.settings["evidence"] == "exact"


def test_a_noise_level_that_is_not_given_maximises_the_evidence() -> None:
    solution = ff.solve(decay(None), method="forward", tolerance=1e-8)
    ((_, sigma),) = solution.settings["sigma"]
    levels = [ff.solve(decay(share * sigma), method="forward").log_evidence for share in (0.93, 1.0, 1.07)]
    assert levels[1] > levels[0] and levels[1] > levels[2]
    assert 0.01 < sigma < 0.035  # of twelve readings +- 0.02
    assert solution.log_evidence == pytest.approx(levels[1], abs=1e-4)


@pytest.mark.parametrize("rows, columns", [(3, 8), (12, 5), (0, 4)])
def test_the_gaussian_is_that_of_its_precision(rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows)
    slopes = 3.0 * rng.standard_normal((rows, columns))
    belief = Gaussian.of(np.zeros(columns), slopes)
    covariance = np.linalg.inv(np.eye(columns) + slopes.T @ slopes)
    asked = rng.standard_normal((4, columns))
    spread = belief.spread(asked)
    np.testing.assert_allclose(spread @ spread.T, asked @ covariance @ asked.T, atol=1e-12)
    np.testing.assert_allclose(belief.covariance_times(asked.T), covariance @ asked.T, atol=1e-12)
    assert belief.log_determinant == pytest.approx(-np.linalg.slogdet(covariance)[1], abs=1e-10)


def test_measurements_by_adjoint_and_by_tangent_say_the_same() -> None:
    """An unknown function of space and few readings take transposed solves; more readings than latents do not."""
    walls = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
    x = np.linspace(0.1, 0.9, 5)

    def solved(copies: int) -> ff.Solution:
        """Each reading several times, as much less certain."""
        seen = ff.Observations(x=np.tile(x, copies), u=np.tile(0.1 * x, copies), sigma=0.01 * np.sqrt(copies))
        problem = ff.Problem("-c*u_xx - c_x*u_x = 1", {"x": ff.Interval(0, 1)},
                             {"c": ff.Unknown(1.5, 0.5, True, over="x", length=0.5)}, [*walls, seen])  # fmt: skip
        return ff.solve(problem, method="forward", tolerance=1e-7)

    few, many = solved(1), solved(8)
    assert few.trace["adjoint solves"] > 0 and many.trace["adjoint solves"] == 0
    at = {"x": np.linspace(0, 1, 9)}
    for of in ("u", "c"):
        one, other = few.predict(of=of, **at), many.predict(of=of, **at)
        np.testing.assert_allclose(one["mean"], other["mean"], atol=2e-5)
        np.testing.assert_allclose(one["std"], other["std"], atol=2e-5)
