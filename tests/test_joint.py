"""The exact posterior of linear problems."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import factorfield as ff
from factorfield.methods.joint import by_qr, solve_linear
from reference import textbook_posterior


def linear_models() -> dict[str, ff.Model]:
    advection = ff.problems.get("advection", b=0.4, labels=64, noise=0.02, sigma=0.02)
    heat = ff.problems.get("heat", labels=32, noise=0.05, sigma=0.05)
    return {
        "heat": ff.default_model(heat, modes={"x": 3, "t": 6}),
        "advection": ff.default_model(advection, modes={"x": 3, "t": 8}),
        "advection, paper's features": ff.paper_model(advection, activation=ff.Identity(), modes={"x": 3, "t": 4}),
        "two units": ff.paper_model(advection, 2, activation=ff.Identity(), modes={"x": 2, "t": 3}),
    }


@pytest.mark.parametrize("name", linear_models())
def test_mean_and_covariance_equal_the_textbook_formula(name: str) -> None:
    model = linear_models()[name]
    solution = ff.solve(model, method="joint")
    mean, covariance = textbook_posterior(model)
    std = np.sqrt(np.diag(covariance))
    posterior = solution.posterior
    assert np.max(np.abs(posterior.weight_mean - mean) / std) < 1e-9
    assert np.max(np.abs(posterior.covariance - covariance) / np.outer(std, std)) < 1e-9
    assert np.max(np.abs(posterior.weight_std / std - 1.0)) < 1e-9
    assert solution.status == "converged" and solution.trace["iterations"] == 1


def test_qr_and_cholesky_give_one_answer() -> None:
    model = linear_models()["heat"]
    dense, root = solve_linear(model), by_qr(model)
    std = np.sqrt(root.variance)
    assert np.max(np.abs(dense.mean - root.mean) / std) < 1e-9


def test_tiny_sigmas_beside_free_directions_keep_their_digits_by_qr() -> None:
    """Six exact labels for nine waves: information from 1 (prior) to 1e12. Normal equations would lose the prior."""
    problem = ff.problems.get("heat", nu=0.001, labels=6, sigma=1e-5)
    problem = ff.Problem(ff.Equation("u_t = nu*u_xx", sigma=1e-3), problem.domain, {"nu": 0.001}, problem.conditions)
    model = ff.default_model(problem, modes={"x": 4, "t": 8})
    with pytest.warns(ff.AdviceWarning, match="about 3 of"):
        solution = ff.solve(model)
    assert solution.settings["path"] == "SquareRoot"
    mean, covariance = textbook_posterior(model)
    std = np.sqrt(np.diag(covariance))
    assert np.max(np.abs(solution.posterior.weight_mean - mean) / std) < 1e-6
    assert np.max(np.abs(solution.posterior.weight_std / std - 1.0)) < 1e-6


@pytest.mark.parametrize("name", ["heat", "advection"])
def test_truth_lies_inside_three_standard_deviations_where_it_can_be_represented(name: str) -> None:
    """Labels with their stated noise from a field of four waves: the error is Gaussian with the stated std."""
    options = {"nu": 0.02} if name == "heat" else {}
    heat = ff.problems.get("heat", noise=0.05, labels=64, sigma=0.05, seed=3, **options)
    if name == "heat":
        problem = heat
    else:  # the same smooth field carried along
        from factorfield.data.initial import smooth_field

        field = smooth_field(0)
        x, t = np.arange(64) / 64, np.linspace(0, 1, 21)
        exact = np.stack([field(x - 0.5 * s) for s in t])
        import xarray as xr

        problem = ff.Problem(
            "u_t + b*u_x", {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}, {"b": 0.5},
            [ff.Observations(x=x, t=0.0, u=exact[0] + 0.05 * np.random.default_rng(1).standard_normal(64), sigma=0.05)],
            truth=xr.DataArray(exact, dims=("t", "x"), coords={"t": t, "x": x}),
        )  # fmt: skip
    model = ff.default_model(problem, modes={"x": 4, "t": 20})
    prediction = ff.solve(model).predict(x=problem.truth.x, t=problem.truth.t)
    z = (prediction["mean"] - problem.truth) / prediction["std"]
    assert float(np.abs(z).max()) < 3.5  # some of ~10 independent directions times a grid: 3.5 rather than 3
    assert float((np.abs(z) < 3).mean()) > 0.99
    assert 0.3 < float(np.sqrt((z**2).mean())) < 2.0  # and the std is not simply huge


@pytest.mark.parametrize("b", [0.1, 0.4])
def test_papers_row_9394_with_the_identity_ansatz_has_rmse_below_2e_3(pdebench: Path, b: float) -> None:
    problem = ff.problems.get("advection", file=pdebench / f"1D_Advection_Sols_beta{b}.hdf5", row=0)
    for model in (ff.default_model(problem, modes={"x": 5}), ff.paper_model(problem, activation=ff.Identity())):
        field = ff.solve(model).predict(x=problem.truth.x, t=problem.truth.t)
        assert ff.metrics.score(field, problem.truth)["rmse"] < 2e-3


def test_directions_that_only_data_could_settle_are_advised_about() -> None:
    problem = ff.Problem("u_t + u_x", {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)})
    with pytest.warns(ff.AdviceWarning, match=r"about 17 of \d+ directions"):  # 8 frequencies: 17 free initial waves
        ff.solve(problem)


def test_nonlinear_models_and_strangers_are_refused_with_advice() -> None:
    with pytest.raises(ff.ProblemError, match=r"ff\.Problem"):
        ff.solve("u_t = 0")  # type: ignore[call-overload]
    with pytest.raises(ff.ProblemError, match="'joint'"):
        ff.solve(linear_models()["heat"], method="jiont")


def test_a_list_of_problems_gives_a_list_of_solutions_and_runs_repeat_bit_for_bit() -> None:
    model = linear_models()["heat"]
    first, second = ff.solve([model, model])
    assert np.array_equal(first.posterior.mean, second.posterior.mean)
    assert np.array_equal(first.posterior.root, second.posterior.root)


def test_stationary_problems_and_boundary_conditions_go_through_the_same_code() -> None:
    """-u'' = pi^2 sin(pi x), u(0) = u(1) = 0: the exact solution is sin(pi x)."""
    problem = ff.Problem(
        ff.Equation("-u_xx = pi**2*sin(pi*x)", sigma=1e-6), {"x": ff.Interval(0, 1)}, {},
        [ff.Boundary("u = 0", at={"x": 0}, sigma=1e-6), ff.Boundary("u = 0", at={"x": 1}, sigma=1e-6)],
    )  # fmt: skip
    x = np.linspace(0, 1, 41)
    assert np.abs(ff.solve(problem).predict(x=x)["mean"] - np.sin(np.pi * x)).max() < 1e-6


def test_a_linear_system_is_solved_as_one() -> None:
    """h' = l, l' = -h from h(0) = 0, l(0) = 1: sine and cosine."""
    problem = ff.Problem(
        [ff.Equation("h_t = l", 1e-6), ff.Equation("l_t = -h", 1e-6)], {"t": ff.Interval(0, 3)}, {},
        [ff.Initial("h = 0", 1e-6), ff.Initial("l = 1", 1e-6)],
    )  # fmt: skip
    t = np.linspace(0, 3, 31)
    field = ff.solve(problem).predict(t=t)
    assert np.abs(field["mean"].sel(field="h") - np.sin(t)).max() < 1e-5
    assert np.abs(field["mean"].sel(field="l") - np.cos(t)).max() < 1e-5
