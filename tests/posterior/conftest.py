"""Posteriors to ask: a solved one, one with arbitrary moments, one of four windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import factorfield as ff
from factorfield.posterior.gaussian import GaussianPosterior
from factorfield.solution import Solution, Status


@pytest.fixture(scope="package")
def linear() -> Solution:
    """The belief alone, without its numerical error."""
    problem = ff.problems.get("heat", labels=32, noise=0.05, sigma=0.05)
    with pytest.warns(ff.AdviceWarning, match="missed by more than chance"):  # six polynomials are too few
        solution = ff.solve(ff.default_model(problem, modes={"x": 3, "t": 6}))
    return replace(solution, posterior=solution.posterior.exact)  # six polynomials are more off than data tell


@pytest.fixture(scope="package")
def made_up() -> Callable[[int, bool], Solution]:
    """(width, diagonal): arbitrary moments over the paper's nonlinear, rotated, possibly wide ansatz."""

    def build(width: int, diagonal: bool) -> Solution:
        problem = ff.problems.get("fisher-kpp", nu=0.1, rho=2.0, labels=64)
        model = ff.paper_model(problem, width, modes={"x": 2, "t": 2})
        rng = np.random.default_rng(0)
        root = 0.3 * rng.random(model.size) if diagonal else 0.05 * rng.standard_normal((model.size, model.size))
        posterior = GaussianPosterior(problem, model.representation, {"u": 0.1}, rng.standard_normal(model.size), root)
        return Solution(posterior, Status("converged"))

    return build


@pytest.fixture(scope="package")
def windows() -> Solution:
    """Four windows of an equation with noise of its own, an unknown coefficient, and measurements at both ends."""
    rng, x = np.random.default_rng(0), np.arange(16) / 16
    seen = [
        ff.Observations(x=x, t=0.0, u=np.sin(2 * np.pi * x) + 0.1 * rng.standard_normal(16), sigma=0.1),
        ff.Observations(x=x[::4], t=0.9, u=0.5 * np.sin(2 * np.pi * (x[::4] - 0.45)), sigma=0.1),
    ]
    problem = ff.Problem(
        ff.Equation("u_t + b*u_x = 0.02*u_xx", sigma=0.3), {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)},
        {"b": ff.Unknown(0.5, 0.05)}, seen,
    )  # fmt: skip
    return ff.solve(problem, method="chain", modes={"x": 3}, windows=[0.0, 0.25, 0.5, 0.75, 1.0])
