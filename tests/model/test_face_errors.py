"""Errors of starts and walls as smooth functions: their size, their factors with hidden weights and without."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tests.reference import matern

import factorfield as ff
from factorfield.model.block import block_model, relinearised
from factorfield.model.face_errors import error_basis
from factorfield.model.window_factors import WindowFactors
from factorfield.model.windowed import window_model

PLATE = {"x": ff.Interval(0, 2), "y": ff.Periodic(0, 1), "t": ff.Interval(0, 5)}
ROD = {"x": ff.Interval(0, 2), "t": ff.Interval(0, 1)}


def start(length: float | dict[str, float] | None, domain: dict[str, ff.Interval | ff.Periodic]) -> ff.Problem:
    equation = "u_t = u_xx + u_yy" if "y" in domain else "u_t = u_xx"
    return ff.Problem(equation, domain, {}, [ff.Initial("u = 1", sigma=0.3, length=length)])


@pytest.mark.parametrize("length", [None, 0.3, {"x": 0.05}])
@pytest.mark.parametrize("modes", [4, 16])
def test_an_error_has_the_size_that_was_stated_however_short_its_length(length: float | None, modes: int) -> None:
    problem = start(length, PLATE)
    basis = error_basis(problem.statements[1], problem.domain, {"x": modes, "y": modes})
    x, y = (g.ravel() for g in np.meshgrid(np.linspace(0.1, 1.9, 19), np.linspace(0, 1, 9)))
    size = np.sqrt(np.sum(basis.rows({"x": x, "y": y}) ** 2, axis=1))
    assert_allclose(size, 0.3, rtol=0.03)


def test_an_error_goes_together_as_the_kernel_says() -> None:
    problem = start(0.6, ROD)
    basis = error_basis(problem.statements[1], problem.domain, {"x": 20})
    x = np.linspace(0, 2, 9)
    rows = basis.rows({"x": x})
    assert_allclose(rows @ rows.T, 0.09 * matern(x[:, None] - x[None, :], 0.6), atol=0.005 * 0.09)


def test_factors_with_their_error_summed_out_have_its_covariance() -> None:
    problem = start(0.6, ROD)
    model = window_model(problem, modes={"x": 8})
    (group,) = WindowFactors(model).own(0.0, 0.5, True)
    rows = error_basis(problem.statements[1], problem.domain, {"x": 8}).rows(group.points)
    covariance = np.diag(group.sigma**2) + rows @ rows.T
    weights = np.random.default_rng(0).standard_normal(model.size)
    value = group.relation.value(group.project(weights), group.parameters, group.points) - group.target
    misfit, slopes = group.linear_misfit(weights)
    assert misfit @ misfit == pytest.approx(value @ np.linalg.solve(covariance, value), rel=1e-8)
    assert_allclose(group.misfit(weights), misfit, atol=1e-9 * np.abs(misfit).max())
    moved = weights + 1e-6
    assert_allclose(group.misfit(moved) - misfit, slopes @ (moved - weights), atol=1e-6 * np.abs(slopes).max())


def test_hidden_weights_of_a_block_are_those_of_the_error() -> None:
    problem = ff.Problem("u_t = u_xx", ROD, {}, [ff.Initial("u = 1", sigma=0.3)])
    model = block_model(problem, modes={"x": 8, "t": 6})
    latent = model.representation.latents[problem.statements[1].error.name]  # type: ignore[union-attr]
    assert_allclose(model.prior.std[latent.block], 1.0)
    assert_allclose(model.prior.mean[latent.block], 0.0)
    group = model.groups[1]
    weights = np.zeros(model.size)
    weights[latent.block] = np.random.default_rng(1).standard_normal(latent.basis.size)
    value = group.relation.value(group.project(weights), group.parameters, group.points)
    assert_allclose(value, -1.0 - latent.basis.rows(group.points) @ weights[latent.block], rtol=1e-12)


@pytest.mark.parametrize("modes", [5, 10])
def test_an_equation_of_a_block_tells_nothing_about_errors_that_its_features_cannot_follow(modes: int) -> None:
    """With sensors it does: what is left to learn is what they say."""
    walls = [ff.Boundary("u = 1", at={"x": 0}, sigma=0.2), ff.Boundary("u = 0", at={"x": 2})]
    plate = ff.Problem("u_xx + 4*u_yy = 0", {"x": PLATE["x"], "y": PLATE["y"]}, {}, walls)
    solution = ff.solve(plate, modes={"x": modes, "y": 5})
    block = solution.model.representation.latents[plate.statements[1].error.name].block  # type: ignore[union-attr]
    assert_allclose(solution.posterior.weight_std[block], 1.0, atol=0.05)
    near = ff.Observations(x=[0.01], y=[0.2], u=[1.2], sigma=0.01)
    told = ff.solve(plate.replace(conditions=[*walls, near]), modes={"x": modes, "y": 5})
    assert told.posterior.weight_std[block].min() < 0.8


def test_the_response_to_errors_is_linearised_once_more_at_a_nonlinear_solution() -> None:
    walls = [ff.Boundary("u = 1", at={"x": 0}, sigma=0.1), ff.Boundary("u = 0", at={"x": 2})]
    domain = {"x": PLATE["x"], "y": PLATE["y"]}
    bent = block_model(ff.Problem("u_xx + u_yy = u**3", domain, {}, walls), modes={"x": 6, "y": 3})
    there = np.full(bent.size, 0.1)
    moved = relinearised(bent, there)
    assert moved is not None and moved.first_weights is there and relinearised(moved, there) is None
    assert len(moved.groups[0].rows) == len(bent.groups[0].rows)
    assert np.any(moved.groups[0].rows[-1] != bent.groups[0].rows[-1])
    straight = block_model(ff.Problem("u_xx + u_yy = 0", domain, {}, walls), modes={"x": 6, "y": 3})
    assert relinearised(straight, np.zeros(straight.size)) is None


def test_a_start_that_bends_may_be_noisy() -> None:
    problem = ff.Problem("u_t = 0.1*u_xx", {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}, {}, [
        ff.Initial("u**2 = 4", sigma=0.2), ff.Observations(x=[0.5], t=[1.0], u=[2.0], sigma=0.5)])  # fmt: skip
    field = ff.solve(problem, modes={"x": 6}).predict(x=[0.1, 0.4], t=0.0)
    assert_allclose(field["mean"], 2.0, atol=0.01)
    assert_allclose(field["std"], 0.2 / 4.0, rtol=0.03)  # d(u^2) = 4 du


def test_a_jump_beyond_what_errors_make_up_stays_at_its_corner() -> None:
    wall = ff.Boundary("u = 0", at={"x": 2})
    kinds = []
    for at_wall, sigma in ((0.9, 0.1), (0.0, 0.1), (0.9, None)):
        conditions = [ff.Initial("u = 1 - x/2", sigma=sigma), ff.Boundary(f"u = {at_wall}", at={"x": 0}), wall]
        kinds.append([a.kind for a in window_model(ff.Problem("u_t = u_xx", ROD, {}, conditions)).advice])
    assert kinds == [[], ["corner"], ["corner"]]
