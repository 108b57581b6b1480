"""Are there enough modes? What the last ones carry, and the model with more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import factorfield as ff
from factorfield.messages.gaussian import Belief
from factorfield.methods.chain.modes import grown, grown_modes, last_modes, unresolved_axis
from factorfield.model.model import WindowModel
from factorfield.model.windowed import window_model

X = np.arange(32) / 32


def model_of(
    axis: Any = None, start: Any = None, equation: str = "u_t + u*u_x = 0.1*u_xx", **options: Any
) -> WindowModel:
    domain = {"x": axis or ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    start = start or ff.Initial("u = 2*sin(2*pi*x)")
    return window_model(ff.Problem(equation, domain, {}, [start]), **options)


def weights_with(model: WindowModel, **modes: float) -> np.ndarray:
    """A state whose given features (by position) have given coefficients, in units of the scale."""
    weights = np.zeros(model.size)
    for position, value in modes.items():
        weights[int(position[1:])] = value * model.scale
    return weights


def exact(model: WindowModel, std: float = 0.0) -> Belief:
    """A belief about the state at a window's start, as sure in all modes."""
    count = len(model.layout[0])
    return Belief(np.zeros(count), std * model.scale * np.eye(count))


def test_the_last_modes_are_the_last_tenth_and_at_least_sine_and_cosine() -> None:
    model = model_of(modes={"x": 8})
    assert last_modes(model, weights_with(model, m15=0.3, m16=-0.5))["x"] == pytest.approx(0.5)
    assert last_modes(model, weights_with(model, m14=0.3))["x"] == 0.0
    wide = model_of(modes={"x": 20})
    assert last_modes(wide, weights_with(wide, m37=0.3))["x"] == pytest.approx(0.3)
    assert last_modes(wide, weights_with(wide, m36=0.3))["x"] == 0.0
    inner = np.zeros(model.size)
    inner[17:] = 1.0  # how the window departs from its state
    assert last_modes(model, inner)["x"] == 0.0


def test_every_field_and_axis_is_looked_at() -> None:
    domain = {"x": ff.Periodic(0, 1), "y": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    starts = [ff.Initial("u = 1"), ff.Initial("v = 1")]
    problem = ff.Problem(["u_t = u_xx + u_yy", "v_t = v_xx + v_yy + u"], domain, {}, starts)
    model = window_model(problem, modes={"x": 2, "y": 4})
    table = np.zeros((model.degree + 1, 5, 5))
    table[0, 1, 4], table[0, 4, 1] = 0.2, 0.7  # last along y, last along x
    weights = np.concatenate([np.zeros(table.size), table.ravel()])
    assert last_modes(model, weights * model.scale) == {"x": pytest.approx(0.7), "y": pytest.approx(0.2)}


def test_an_axis_is_unresolved_when_its_last_modes_carry_too_much() -> None:
    model = model_of()
    last = f"m{2 * model.modes['x']}"
    assert model.growing == ("x",)
    assert unresolved_axis(model, weights_with(model, **{last: 1e-4}), exact(model), {}) == "x"
    assert unresolved_axis(model, weights_with(model, **{last: 1e-5}), exact(model), {}) is None
    asked = model_of(modes={"x": 8})
    assert unresolved_axis(asked, weights_with(asked, m16=0.5), exact(asked), {}) is None


def test_what_modes_carry_within_the_belief_asks_for_no_more_of_them() -> None:
    """A start that is known to 9 % of the field beside a wall that it does not meet: its last modes are noise."""
    model = model_of()
    weights = weights_with(model, **{f"m{2 * model.modes['x']}": 1e-4})
    assert unresolved_axis(model, weights, exact(model, 2e-4), {}) is None
    assert unresolved_axis(model, weights, exact(model, 2e-5), {}) == "x"


def test_a_loosened_corner_has_a_numerical_error_too() -> None:
    """The start, known to 5 degrees, does not meet a wall that takes heat: few modes do, and their error is told."""
    domain = {"x": ff.Interval(0, 60), "t": ff.Interval(0, 10)}
    walls = [ff.Boundary("u_x = 0", at={"x": 0}), ff.Boundary("u_x = -0.06*(u - 18)", at={"x": 60})]
    problem = ff.Problem("u_t = 36*u_xx", domain, {}, [ff.Initial("u = 75", sigma=5), *walls])
    solution = ff.solve(problem)
    assert solution.status == "converged" and solution.settings["modes"]["x"] < 30
    assert 0.0 < solution.trace["numerical_error"] < 0.1 * solution.trace["left_open"]


def test_what_labels_showed_at_the_start_does_not_count_against_the_modes() -> None:
    labels = ff.Observations(x=X, t=0.0, u=np.sin(2 * np.pi * X), sigma=0.1)
    model = model_of(start=labels)
    last = f"m{2 * model.modes['x']}"
    at_start: dict[str, float] = {}
    assert unresolved_axis(model, weights_with(model, **{last: 0.01}), exact(model), at_start) is None
    assert at_start == {"x": pytest.approx(0.01)}
    assert unresolved_axis(model, weights_with(model, **{last: 0.015}), exact(model), at_start) is None
    assert unresolved_axis(model, weights_with(model, **{last: 0.05}), exact(model), at_start) == "x"


def test_modes_grow_by_half_up_to_what_a_window_can_hold() -> None:
    assert grown_modes(model_of(modes={"x": 8}), "x") == {"x": 12}
    assert grown_modes(model_of(modes={"x": 80}), "x") == {"x": 113}  # 1600 weights, seven polynomials in time
    assert grown_modes(model_of(modes={"x": 100}), "x") is None  # too little gain for another beginning
    polynomials = model_of(ff.Interval(0, 1), ff.Initial("u = x"), "u_t = 0.1*u_xx", modes={"x": 24})
    assert grown_modes(polynomials, "x") == {"x": 36}
    assert grown_modes(replace(polynomials, modes={"x": 80}), "x") is None
    searched = model_of(ff.Interval(0, 1), ff.Initial("u = x"), "u_t = 0.1*u_xx - u**2", modes={"x": 24})
    assert grown_modes(searched, "x") == {"x": 30}


def test_a_grown_model_keeps_what_was_asked_and_may_grow_again() -> None:
    before = replace(model_of(degree=9, windows=[0.0, 0.5, 1.0]), start={"a": 1.0})
    after = grown(before, "x", {"b": 2.0})
    assert after.modes["x"] == int(np.ceil(1.5 * before.modes["x"])) and after.degree == 9
    assert after.edges == (0.0, 0.5, 1.0) and after.growing == ("x",) and after.start == {"a": 1.0, "b": 2.0}
    free = grown(model_of(activation=ff.PiecewiseExponential()), "x", {})
    assert free.edges is None and free.representation.forms["u"].activation.name == ff.PiecewiseExponential().name
