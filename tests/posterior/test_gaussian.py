"""One Gaussian block: structured paths equal the dense formula."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.posterior.gaussian import contract_pairs
from factorfield.problem.relation import evaluate_coefficient
from factorfield.solution import Solution

X, T = np.linspace(0.0, 0.95, 9), np.linspace(0.0, 1.0, 5)


@pytest.mark.parametrize("of", [None, "u_x", "u_t - 3*u", "x*u_xx + t*u", "residual"])
def test_grid_points_and_dense_formula_agree_on_linear_functionals(linear: Solution, of: str | None) -> None:
    field = linear.predict(x=X, t=T, of=of)
    mesh = np.meshgrid(T, X, indexing="ij")
    scattered = linear.predict(x=mesh[1].ravel(), t=mesh[0].ravel(), of=of, points=True)
    assert_allclose(field["mean"].values.ravel(), scattered["mean"], atol=1e-10 * np.abs(scattered["mean"]).max())
    assert_allclose(field["std"].values.ravel(), scattered["std"], rtol=1e-6)
    posterior, points = linear.posterior, {"t": mesh[0].ravel(), "x": mesh[1].ravel()}
    relation, rows = posterior._relation(of or "u"), np.zeros((mesh[0].size, len(posterior.weight_mean)))
    zeta = np.zeros((mesh[0].size, len(relation.functionals)))
    _, slopes = relation.value_and_gradient(zeta, linear.problem.constants, points)  # linear: the same everywhere
    for j, functional in enumerate(relation.functionals):
        latent = posterior.representation.latents[functional.latent]
        for orders, coefficient in functional.terms:
            scale = slopes[:, j] * evaluate_coefficient(coefficient, linear.problem.constants, points)
            rows[:, latent.block] += scale[:, None] * latent.basis.rows(points, orders, len(rows))
    exact = np.sqrt(np.einsum("ni,ij,nj->n", rows, posterior.covariance, rows))
    assert_allclose(scattered["std"], exact, rtol=1e-6)


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("of", [None, "u_x", "residual"])
def test_grid_and_points_agree_for_nonlinear_fields(
    made_up: Callable[[int, bool], Solution], width: int, diagonal: bool, of: str | None
) -> None:
    solution = made_up(width, diagonal)
    field = solution.predict(x=X, t=T, of=of)
    mesh = np.meshgrid(T, X, indexing="ij")
    scattered = solution.predict(x=mesh[1].ravel(), t=mesh[0].ravel(), of=of, points=True)
    assert_allclose(field["mean"].values.ravel(), scattered["mean"], rtol=1e-9, atol=1e-12)
    assert_allclose(field["std"].values.ravel(), scattered["std"], rtol=1e-7)


@pytest.mark.parametrize("diagonal", [True, False])
def test_predicted_moments_are_those_of_posterior_draws(
    made_up: Callable[[int, bool], Solution], diagonal: bool
) -> None:
    # 20,000 draws: a mean is known to sd/141, an sd to 0.5 %; tolerances are five of these
    solution = made_up(1, diagonal)
    field = solution.predict(x=X, t=T)
    draws = solution.posterior.sample(20_000, x=X, t=T, seed=1)
    assert draws.dims == ("sample", "t", "x")
    assert float((np.abs(draws.mean("sample") - field["mean"]) / field["std"]).max()) < 5 / 141
    assert_allclose(draws.std("sample"), field["std"], rtol=0.03)


def test_pair_contraction_equals_the_full_kronecker_product() -> None:
    rng = np.random.default_rng(2)
    left = [rng.standard_normal((4, 3)), rng.standard_normal((5, 2))]
    right = [rng.standard_normal((4, 3)), rng.standard_normal((5, 2))]
    gram = rng.standard_normal((7, 6, 6))
    full = np.einsum("pi,bij,pj->bp", np.kron(*left), gram, np.kron(*right)).reshape(7, 4, 5)
    assert_allclose(contract_pairs(gram, left, right), full, atol=1e-12)


def test_unknown_coefficients_have_mean_std_and_interval() -> None:
    """-u'' = f with u observed exactly as x(1-x): f must come out as 2."""
    x = np.linspace(0, 1, 21)
    problem = ff.Problem(
        ff.Equation("-u_xx = f", sigma=1e-3), {"x": ff.Interval(0, 1)}, {"f": ff.Unknown(1.0, 5.0)},
        [ff.Observations(x=x, u=x * (1 - x), sigma=1e-3)],
    )  # fmt: skip
    f = ff.solve(problem).parameters["f"]
    low, high = f["interval"]
    assert f["mean"] == pytest.approx(2.0, abs=3 * f["std"]) and f["std"] < 0.1
    assert low < f["mean"] < high and high - low == pytest.approx(2 * 1.645 * f["std"], rel=1e-3)
