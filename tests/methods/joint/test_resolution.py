"""A block without time gets more modes until its numerical error is as small as asked; what is left is in the std."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import factorfield as ff
from factorfield.methods.joint.joint import Joint
from factorfield.methods.joint.resolution import richer
from factorfield.model.block import holding_model
from factorfield.model.model import BlockModel
from factorfield.solution import Solution


def layer(width: float = 0.03) -> ff.Problem:
    walls = [ff.Boundary("u = 1", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
    return ff.Problem(f"u = {width**2}*u_xx", {"x": ff.Interval(0, 1)}, {}, walls)


def exact(width: float, x: Any) -> Any:
    return np.sinh((1.0 - x) / width) / np.sinh(1.0 / width)


def solved(model: BlockModel, **options: Any) -> Solution:
    return Joint(adapt=False, **options).run(model)


@pytest.mark.parametrize("modes", [12, 16, 24])
def test_the_std_of_a_layer_that_modes_do_not_resolve_is_the_size_of_its_error(modes: int) -> None:
    solution = solved(holding_model(layer(0.02), modes={"x": modes}))
    assert solution.status == "unresolved" and "of the field, 1e-05 was asked" in solution.status.help
    x = np.linspace(0, 1, 201)
    field = solution.predict(x=x)
    z = np.abs(field["mean"].values - exact(0.02, x)) / field["std"].values
    assert 0.01 < np.quantile(z, 0.95) < 2.0  # a bound of 3 with room for other kernels
    slope = solution.predict(x=x, of="u_x")
    h = 1e-6
    truth = (exact(0.02, x[1:-1] + h) - exact(0.02, x[1:-1] - h)) / (2 * h)
    of_slope = np.abs(slope["mean"].values[1:-1] - truth) / slope["std"].values[1:-1]
    assert 0.01 < np.quantile(of_slope, 0.95) < 2.0


def test_modes_grow_until_the_tolerance_is_met() -> None:
    for tolerance in (1e-2, 1e-5, 1e-8):
        solution = ff.solve(layer(0.02), "joint", tolerance=tolerance)
        x = np.linspace(0, 1, 201)
        error = solution.predict(x=x)["mean"].values - exact(0.02, x)
        assert solution.status == "converged" and solution.trace["numerical_error"] <= tolerance
        assert np.sqrt(np.mean(error**2)) < tolerance
    assert solution.settings["tolerance"] == 1e-8


def test_each_axis_gets_the_modes_that_it_needs() -> None:
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}
    walls = [ff.Boundary(f"u = {u}", at={axis: end}) for axis, end, u in (
        ("x", 0, "sin(3*y)"), ("x", 1, "exp(-40)*sin(3*y)"), ("y", 0, "0"), ("y", 1, "exp(-40*x)*sin(3)"))]  # fmt: skip
    solution = ff.solve(ff.Problem("u_xx + u_yy = 1591*exp(-40*x)*sin(3*y)", domain, {}, walls), "joint")
    assert solution.status == "converged" and solution.settings["modes"]["x"] > solution.settings["modes"]["y"]


@pytest.mark.filterwarnings("ignore::factorfield.AdviceWarning")
def test_given_modes_stay_and_growing_ends_with_the_budget() -> None:
    solution = ff.solve(layer(0.003), "joint", modes={"x": 20})
    assert solution.settings["modes"] == {"x": 20} and solution.status == "unresolved"
    model = holding_model(layer())
    grown = richer(model, {"x": 1.0}, 1e-5)
    assert grown is not None and grown.modes["x"] == 2 * model.modes["x"] and grown.automatic == ("x",)
    largest = richer(holding_model(layer()), {"x": 1e-4}, 1e-5)
    assert largest is not None and largest.modes["x"] == 24
    assert richer(model, {"x": 1e-6}, 1e-5) is None


def test_a_layer_that_all_counts_of_modes_miss_is_not_called_resolved() -> None:
    """Forty and sixty modes agree where both ignore the wall."""
    domain, walls = {"x": ff.Interval(0, 1)}, [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
    thin = ff.Problem("1e-5*u_xx + u_x = 1", domain, {}, walls)
    solution = solved(holding_model(thin, modes={"x": 60}))
    x = np.linspace(0.01, 0.99, 99)
    field = solution.predict(x=x)
    z = np.abs(field["mean"].values - (x - 1.0)) / field["std"].values
    assert solution.status == "unresolved" and np.mean(z < 1.645) > 0.75


def test_exact_data_give_a_std_of_the_size_of_rounding() -> None:
    solution = ff.solve(ff.problems.get("poisson"))
    truth = solution.problem.truth
    field = solution.predict(x=truth.x)
    assert float(np.abs(field["mean"] - truth).max()) < 1e-12 and float(field["std"].max()) < 1e-8


def test_the_numerical_error_of_a_coefficient_is_in_its_std() -> None:
    """k from sensors near a layer that too few modes do not follow."""
    x = np.linspace(0.02, 0.3, 20)
    width = 1.0 / np.sqrt(2000.0)
    y = exact(width, x) + 1e-4 * np.random.default_rng(0).standard_normal(20)
    walls = [ff.Boundary("u = 1", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
    problem = ff.Problem(
        "u_xx = k*u", {"x": ff.Interval(0, 1)}, {"k": ff.Unknown(1500.0, 500.0, positive=True)},
        [*walls, ff.Observations(x=x, u=y, sigma=1e-4)],
    )  # fmt: skip
    few, enough = solved(holding_model(problem, modes={"x": 14})), ff.solve(problem, "joint")
    off = abs(few.parameters["k"]["mean"] - enough.parameters["k"]["mean"])
    assert off > 3.0 * enough.parameters["k"]["std"]  # too few modes move it
    assert off < 3.0 * few.parameters["k"]["std"]  # and it knows
    z = (enough.parameters["k"]["mean"] - 2000.0) / enough.parameters["k"]["std"]
    assert abs(z) < 3.0 and enough.parameters["k"]["std"] < 30.0


def test_draws_files_and_means_without_the_numerical_error(tmp_path: Any) -> None:
    solution = solved(holding_model(layer(0.02), modes={"x": 16}))
    x = np.linspace(0, 1, 21)
    field, belief = solution.predict(x=x), solution.predict(x=x, numerical=False)
    assert np.array_equal(field["mean"], belief["mean"]) and np.all(field["std"] > 100.0 * belief["std"])
    draws = solution.sample(3000, x=x)
    spread = draws.std("sample").values[1:] / field["std"].values[1:]
    assert np.all(np.abs(spread - 1.0) < 0.08)  # 3,000 draws: an sd is known to 1.3 %
    again = ff.load(solution.save(tmp_path / "run.nc")).predict(x=x)
    assert np.array_equal(field["std"], again["std"])


def test_an_error_within_the_belief_leaves_numbers_finite() -> None:
    """The place and size of a narrow load on a beam, from nine readings: modes differ by less than these leave open."""
    rng = np.random.default_rng(1)
    x, s = np.linspace(0.1, 0.9, 9), np.linspace(0.0, 1.0, 4001)
    low, high = np.minimum(x[:, None], s), np.maximum(x[:, None], s)
    green = (1 - high) * low * (2 * high - high**2 - low**2) / 6
    load = 2.0 * np.exp(-((s - 0.4) ** 2) / 2 / 0.05**2) / 0.05 / np.sqrt(2 * np.pi)
    bent = np.trapezoid(green * load, s, axis=1) + 5e-4 * rng.standard_normal(9)
    unknown = {"P": ff.Unknown(1, 1, positive=True), "a": ff.Unknown(0.5, 0.2)}
    held = [ff.Boundary(text, at={"x": end}) for text in ("u = 0", "u_xx = 0") for end in (0, 1)]
    text = "u_xxxx = P*exp(-(x - a)**2/(2*0.05**2))/(0.05*sqrt(2*pi))"
    known = [*held, ff.Observations(x=x, u=bent, sigma=5e-4)]
    found = ff.solve(ff.Problem(text, {"x": ff.Interval(0, 1)}, unknown, known)).parameters
    for name, truth in {"P": 2.0, "a": 0.4}.items():
        assert abs(found[name]["mean"] - truth) < 4.0 * found[name]["std"] < 0.5


@pytest.mark.filterwarnings("ignore::factorfield.AdviceWarning")
def test_one_polynomial_over_all_time_knows_what_it_leaves_out() -> None:
    problem = ff.problems.get("burgers")
    solution = ff.solve(problem, "joint")
    field = solution.predict(x=problem.truth["x"], t=problem.truth["t"])
    error = np.abs(field["mean"] - problem.truth)
    assert solution.status == "unresolved" and float(error.max()) > 100.0 * solution.settings["std"]["u"]["data"]
    assert 0.01 < float((error / field["std"]).quantile(0.95)) < 2.0


def test_labels_of_a_start_show_the_modes_that_they_need() -> None:
    """Only polynomials in time are compared then."""
    x = np.arange(32) / 32
    seen = ff.Observations(x=x, t=0.0, u=np.sin(2 * np.pi * x) + 0.3 * np.cos(6 * np.pi * x), sigma=1e-3)
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 0.2)}
    solution = ff.solve(ff.Problem("u_t + u_x = 0", domain, {}, [seen]), "joint", modes={"x": 3, "t": 16})
    along = solution.trace["numerical_error_along"]
    assert along["x"] == 0.0 and along["t"] < 1e-3
