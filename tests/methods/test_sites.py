"""Expectation propagation around a method: sites, and what predictions say about noise that is not Gaussian."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

import factorfield as ff
from factorfield.methods.sites import solve_with_sites
from factorfield.solution import Solution

LINE = {"x": ff.Interval(0, 1)}
X = np.linspace(0.05, 0.95, 19)
U = X * (1.0 - X) + 0.02 * np.random.default_rng(0).standard_normal(19)


def problem(*conditions: ff.Observations) -> ff.Problem:
    return ff.Problem(ff.Equation("u_xx = -2", sigma=1.0), LINE, {}, list(conditions))


def joint(item: ff.Problem, start: Mapping[str, float]) -> Solution:
    return ff.methods.get("joint").run(ff.default_model(item, modes={"x": 6}))


def test_sites_of_nearly_gaussian_noise_give_the_gaussian_posterior() -> None:
    gaussian = problem(ff.Observations(x=X, u=U, sigma=0.02))
    nearly = problem(ff.Observations(x=X, u=U, sigma=0.02, noise=ff.StudentT(1e6)))
    found, exact = solve_with_sites(nearly, joint).predict(x=X), joint(gaussian, {}).predict(x=X)
    assert float((np.abs(found["mean"] - exact["mean"]) / exact["std"]).max()) < 0.05
    np.testing.assert_allclose(found["std"], exact["std"], rtol=0.03)  # rounds end when means rest, damped sites follow


def test_a_round_that_cannot_rest_is_not_called_converged() -> None:
    heavy = problem(ff.Observations(x=X, u=U, sigma=0.02, noise=ff.StudentT(3.0)))
    calls: list[int] = []

    def restless(item: ff.Problem, start: Mapping[str, float]) -> Solution:
        """A method whose mean jumps by one standard deviation from call to call."""
        solution = joint(item, start)
        calls.append(1)
        shift = (-1.0) ** len(calls) * solution.posterior.weight_std
        return replace(solution, posterior=replace(solution.posterior, mean=solution.posterior.weight_mean + shift))

    solution = solve_with_sites(heavy, restless)
    assert solution.status == "max-iterations" and "in round 40, the last" in solution.status.help


def test_predicted_noise_is_the_root_mean_square_over_all_direct_observations() -> None:
    """10 Gaussian values of sigma 0.1, 9 of a Student-t with variance 3 * 0.2^2, and slopes that say nothing of u."""
    seen = [
        ff.Observations(x=X[:10], u=U[:10], sigma=0.1),
        ff.Observations(x=X[10:], u=U[10:], sigma=0.2, noise=ff.StudentT(3.0)),
        ff.Observations(x=X, of="u_x", value=1.0 - 2.0 * X, sigma=5.0, noise=ff.StudentT(3.0)),
    ]
    solution = solve_with_sites(problem(*seen), joint)
    field, noisy = solution.predict(x=X), solution.predict(x=X, noise=True)
    variance = (10 * 0.1**2 + 9 * 3 * 0.2**2) / 19
    np.testing.assert_allclose(noisy["std"] ** 2, field["std"] ** 2 + variance, rtol=1e-12)
    assert dict(solution.settings["sigma"])["observations of u (2)"] == pytest.approx(0.2)


@pytest.mark.parametrize("noise", [ff.StudentT(1.5), "log-normal"])
def test_noise_of_no_one_size_is_not_offered(noise: object) -> None:
    heavy = problem(ff.Observations(x=X, u=np.abs(U) + 0.01, sigma=0.02, noise=noise))  # type: ignore[arg-type]
    with pytest.raises(ff.ProblemError, match="noise=False"):
        solve_with_sites(heavy, joint).predict(x=X, noise=True)
