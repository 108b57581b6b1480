"""How places go together: against dense algebra, against draws, and the same from a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

import factorfield as ff
from factorfield.model.spectrum import Tail
from factorfield.posterior.boxes import BoxesPosterior
from factorfield.posterior.covariance import covariance
from factorfield.posterior.gaussian import GaussianPosterior
from factorfield.posterior.sampled import SampledPosterior
from factorfield.posterior.windows import ChainPosterior
from factorfield.solution import Solution

Array = NDArray[np.float64]
X, T = np.array([0.1, 0.5, 0.9, 0.3, 0.1]), np.array([0.0, 0.1, 0.45, 0.8, 1.0])
CLOSE = 1e-8  # of the product of both standard deviations


def assert_close(found: Array, exact: Array, std: Array) -> None:
    assert np.abs(found - exact).max() < CLOSE * np.outer(std, std).max()
    assert np.all(np.abs(found - exact) < CLOSE * np.outer(std, std))


@pytest.fixture(scope="module")
def boxes() -> Solution:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.0, 1.0, (2, 20))
    seen = ff.Observations(x=x, y=y, u=np.sin(3 * x) * y + 0.1 * rng.standard_normal(20), sigma=0.1)
    wall = ff.Boundary("u = 0", at={"x": 0}, sigma=0.1)
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}
    problem = ff.Problem(
        ff.Equation("u_xx + u_yy = -k*x", sigma=0.5), domain, {"k": ff.Unknown(2.0, 1.0)}, [wall, seen]
    )
    with pytest.warns(ff.AdviceWarning):  # few cells: meant
        return ff.solve(problem, method="tree", cells={"x": 16, "y": 16}, degree=3)


def test_one_block_gives_the_dense_formula(linear: Solution) -> None:
    posterior = linear.posterior
    assert isinstance(posterior, GaussianPosterior)
    found = linear.covariance(of=["u", "u_t"], x=X, t=T, points=True)
    latent, places = posterior.representation.latents["u"], {"t": T, "x": X}
    rows = np.vstack([latent.basis.rows(places), latent.basis.rows(places, (("t", 1),))])
    exact = rows @ posterior.covariance @ rows.T
    assert_close(found.values, exact, np.sqrt(np.diag(exact)))
    assert list(found["of"].values) == ["u"] * 5 + ["u_t"] * 5 and np.array_equal(found["other_x"][5:], X)


def test_far_boxes_give_the_dense_formula(boxes: Solution) -> None:
    """Leaves of 8 x 8 cells: places are in different ones. Few functionals are gathered, many solved for."""
    posterior = boxes.posterior
    assert isinstance(posterior, BoxesPosterior) and len(posterior.tree.boxes) > 4
    assert posterior.beside is not None  # the spread of k, found on the marginal
    whole = posterior.tree.solve(np.eye(len(posterior.mean))) + posterior.beside @ posterior.beside.T
    x, y = np.array([0.02, 0.5, 0.97, 0.3]), np.array([0.03, 0.5, 0.99, 0.8])
    found = boxes.covariance(of=["u", "u_y", "k"], x=x, y=y, points=True, numerical=False)
    latent = posterior.representation.latents["u"]
    rows = np.zeros((9, len(posterior.mean)))
    rows[:4, latent.block] = latent.basis.rows({"x": x, "y": y})
    rows[4:8, latent.block] = latent.basis.rows({"x": x, "y": y}, (("y", 1),))
    rows[8, posterior.representation.latents["k"].block] = 1.0
    exact = rows @ whole @ rows.T
    assert_close(found.values, exact, np.sqrt(np.diag(exact)))
    one, _ = posterior._line(posterior._relation("u"), {"x": x[:1], "y": y[:1]}, True)
    many, _ = posterior._line(posterior._relation("u"), {"x": np.repeat(x, 20), "y": np.repeat(y, 20)}, True)
    assert_allclose(posterior._cross_covariance(one, many)[0, ::20], exact[0, :4], rtol=1e-9, atol=1e-12)


def test_the_diagonal_is_what_is_predicted_with_the_numerical_error_and_without(boxes: Solution) -> None:
    axes: dict[str, Any] = {"x": [0.1, 0.6, 0.6], "y": [0.2, 0.7, 0.9], "points": True}
    for of in ("u", "u*u_x", "k*u"):
        for numerical in (True, False):
            matrix = boxes.covariance(of=of, numerical=numerical, **axes)
            std = boxes.predict(of=of, numerical=numerical, **axes)["std"]
            assert_allclose(np.sqrt(np.diag(matrix)), std, rtol=1e-7)


@pytest.mark.parametrize("of", ["u", "u_x", "u_t - b*u", "residual"])
def test_windows_have_the_predicted_diagonal_and_one_covariance_whoever_is_left_or_right(
    windows: Solution, of: str
) -> None:
    found = windows.covariance(of=of, x=X, t=T, points=True)
    assert_allclose(np.sqrt(np.diag(found)), windows.predict(of=of, x=X, t=T, points=True)["std"], rtol=1e-6)
    std = np.sqrt(np.diag(found))
    turned = windows.covariance(of=of, x=X[::-1], t=T[::-1], points=True).values[::-1, ::-1]
    assert np.abs(found.values - turned).max() < CLOSE * std.max() ** 2
    assert np.linalg.eigvalsh(found.values / np.outer(std, std)).min() > -1e-12


def test_far_windows_of_an_exact_equation_move_as_one() -> None:
    """u = c exp(-t): all covariances are those of c, known by the start and two values."""
    seen = ff.Observations(t=[0.1, 0.9], u=[0.9, 0.5], sigma=0.1)
    problem = ff.Problem("u_t = -u", {"t": ff.Interval(0, 1)}, {}, [ff.Initial("u = 1", sigma=0.3), seen])
    solution, t = ff.solve(problem, windows=[0.0, 0.3, 0.6, 1.0]), np.array([0.0, 0.45, 1.0])
    variance = 1.0 / (0.3**-2 + (np.exp(-0.2) + np.exp(-1.8)) / 0.1**2)
    # the prior of the state, ten times the size of the field, is a hundredth of the start's information
    assert_allclose(solution.covariance(t=t), variance * np.exp(-np.add.outer(t, t)), rtol=1e-3)


@pytest.mark.parametrize("kind", ["windows", "boxes", "nonlinear"])
def test_draws_agree(kind: str, windows: Solution, boxes: Solution, made_up: Callable[[int, bool], Solution]) -> None:
    """A correlation of 1,500 draws is known to (1 - r^2) / 39: within five of these, an sd to five times 1.8 %."""
    solution, of = {"windows": windows, "boxes": boxes}.get(kind) or made_up(1, False), "u"
    if kind == "windows":  # with a wave that the basis leaves out
        assert isinstance(windows.posterior, ChainPosterior)
        tail = Tail("x", np.array([2 * np.pi * 5.0]), np.array([0.04]), np.array([-0.5 + 2.0j]))
        solution = replace(windows, posterior=replace(windows.posterior, tails={"u": tail}))
    places = {"x": [0.1, 0.15, 0.5], "y" if kind == "boxes" else "t": [0.2, 0.9]}
    draws = solution.sample(1500, seed=1, **places).values.reshape(1500, -1)
    found, std = solution.correlation(of=of, **places).values, np.sqrt(np.diag(solution.covariance(of=of, **places)))
    if kind != "nonlinear":  # there lines are all that two places share
        assert np.abs(np.corrcoef(draws.T) - found).max() < 5 / 39
    assert_allclose(draws.std(axis=0), std, rtol=0.09)


def test_draws_of_hmc_covary_as_they_do(linear: Solution) -> None:
    posterior, rng = linear.posterior, np.random.default_rng(0)
    draws = np.stack(list(posterior._weight_draws(50, rng)))
    sampled = SampledPosterior(posterior.problem, posterior.representation, {}, draws)
    axes = {"x": X, "t": T}
    found = covariance(sampled, "u**2", axes, True).values
    rows = posterior.representation.latents["u"].basis.rows(axes)
    assert_allclose(found, np.cov(((draws @ rows.T) ** 2).T), rtol=1e-9)
    lone = covariance(replace(sampled, draws=draws[:1]), "u", axes, True)
    assert np.all(np.isnan(lone))


def test_numbers_have_their_exact_moments_and_a_name_to_find_them_by() -> None:
    t = np.linspace(0.0, 1.0, 20)
    unknowns = {"a": ff.Unknown(1.0, 1.0, positive=True), "b": ff.Unknown(1.0, 1.0)}
    known = [ff.Initial("u = 0"), ff.Observations(t=t, u=0.5 * t, sigma=0.01)]
    solution = ff.solve(ff.Problem("u_t = a - b", {"t": ff.Interval(0, 1)}, unknowns, known))
    table, mixed = solution.covariance(), solution.covariance(of=["u", "a", "b"], t=[0.5, 1.0])
    assert float(table.sel(functional="a", other="a")) == pytest.approx(solution.parameters["a"]["std"] ** 2)
    assert np.array_equal(mixed.values[2:, 2:], table.values) and np.all(np.isnan(mixed["t"][2:]))
    assert np.abs(solution.correlation(of=["u", "a"], t=[1.0]).values).max() <= 1.0


def test_files_give_the_same_numbers(windows: Solution, boxes: Solution, tmp_path: Path) -> None:
    for index, solution in enumerate((windows, boxes)):
        axes = {"x": [0.1, 0.7], "t" if index == 0 else "y": [0.2, 0.9]}
        again = ff.load(solution.save(tmp_path / f"{index}.nc"))
        assert_allclose(again.covariance(**axes), solution.covariance(**axes), rtol=1e-12)


def test_requests_that_cannot_be_met_get_one_line(linear: Solution) -> None:
    with pytest.raises(ff.ProblemError, match="something to relate"):
        linear.covariance()
    with pytest.raises(ff.ProblemError, match="at most 5000 functionals"):
        linear.covariance(x=np.linspace(0, 0.9, 80), t=np.linspace(0, 1, 80))
    with pytest.raises(ff.ProblemError, match="none for t"):
        linear.covariance(of="u", x=X)
