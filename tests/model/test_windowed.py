"""The model of time windows: traits of small problems, degrees, points, and through what an equation is seen."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.model.basis import family_for
from factorfield.model.windowed import projections, reach_of, settled_field, window_model

X = (np.arange(32) + 0.5) / 32
LABELS = ff.Observations(x=X, t=0.0, u=np.sin(2 * np.pi * X), sigma=0.01)
WALLS = (ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1}))
RING, ROD = ff.Periodic(0, 1), ff.Interval(0, 1)


def problem(equation: Any, axis: Any, *conditions: Any, **parameters: Any) -> ff.Problem:
    return ff.Problem(equation, {"x": axis, "t": ff.Interval(0, 1)}, parameters, list(conditions))


SEPARABLE = {"linear", "autonomous", "separable"}
LINEAR = {"linear", "autonomous"}
TRAITS: dict[str, tuple[ff.Problem, set[str]]] = {
    "waves that keep their size": (problem("u_t + u_x", RING, LABELS), {*SEPARABLE, "steady_windows"}),
    "waves that decay": (problem("u_t = u_xx", RING, LABELS), SEPARABLE),
    "a start by formula": (problem("u_t = u_xx", RING, ff.Initial("u = 1")), {*SEPARABLE, "starts_by_formula"}),
    "a formula for the slope": (
        problem("u_tt = u_xx", RING, LABELS, ff.Initial("u_t = 0")),
        {*SEPARABLE, "steady_windows"},
    ),
    "a coefficient of space": (problem("u_t + (2 + x)*u_x", RING, LABELS), {*LINEAR, "steady_windows"}),
    "a source in time": (problem("u_t = u_xx + sin(t)", RING, LABELS), {"linear"}),
    "walls": (problem("u_t = u_xx", ROD, *WALLS, LABELS), LINEAR),
    "a moving wall": (problem("u_t = u_xx", ROD, ff.Boundary("u = t", at={"x": 0}), WALLS[1], LABELS), {"linear"}),
    "a noisy wall": (
        problem("u_t = u_xx", ROD, ff.Boundary("u = 0", at={"x": 0}, sigma=0.1), WALLS[1], LABELS),
        {"linear"},
    ),
    "data later": (
        problem("u_t = u_xx", RING, LABELS, ff.Observations(x=[0.5], t=0.5, u=[0.0], sigma=1.0)),
        {*SEPARABLE, "has_later_data"},
    ),
    "a nonlinear equation": (problem("u_t + u*u_x", RING, LABELS), {"autonomous"}),
    "an unknown number that is held": (
        problem("u_t + b*u_x", RING, LABELS, b=ff.Unknown(1, 1)),
        {*SEPARABLE, "steady_windows"},
    ),
    "an unknown number that is a weight": (
        problem("u_t + b*u*u_x", RING, LABELS, b=ff.Unknown(1, 1)),
        {"autonomous", "has_later_data"},
    ),
    "an unknown function of time": (
        problem("u_t + b*u_x", RING, LABELS, b=ff.Unknown(1, 1, over="t")),
        {"has_later_data"},
    ),
    "an ODE": (
        ff.Problem("u_t = -3*u", {"t": ff.Interval(0, 1)}, {}, [ff.Initial("u = 1")]),
        {*LINEAR, "starts_by_formula"},
    ),
}


@pytest.mark.parametrize("name", TRAITS)
def test_traits_of_small_problems(name: str) -> None:
    small, wanted = TRAITS[name]
    modes = {"x": 3 if small.domain.space and small.domain["x"] is RING else 8} if small.domain.space else {}
    traits = asdict(window_model(small, modes=modes).traits)
    found = {key for key, value in traits.items() if value}
    assert found == wanted


def test_waves_that_grow_too_fast_are_one_line() -> None:
    with pytest.raises(ff.ProblemError, match=r"waves that grow by less than e\^100 over the horizon, received e\^"):
        window_model(problem("u_t = -u_xx", RING, LABELS), modes={"x": 8})


def test_a_linear_equation_has_a_higher_degree_than_one_whose_modes_mix() -> None:
    assert window_model(problem("u_t = u_xx", RING, LABELS), modes={"x": 3}).degree == 20
    assert window_model(problem("u_t + u*u_x", RING, LABELS), modes={"x": 3}).degree == 12
    assert window_model(problem("u_t + u*u_x", RING, LABELS), modes={"x": 80}).degree == 8  # what a window can afford
    assert window_model(problem("u_t + u*u_x", RING, LABELS), modes={"x": 3}, degree=9).degree == 9
    with pytest.raises(ff.ProblemError, match="degree >= 4, received 3"):
        window_model(problem("u_t = u_xx", RING, LABELS), degree=3)


def test_only_modes_that_nothing_showed_may_grow() -> None:
    formula, bent = problem("u_t = u_xx", RING, ff.Initial("u = 1")), problem("u_t + u*u_x", RING, LABELS)
    assert window_model(formula).growing == ("x",) and window_model(formula, modes={"x": 3}).growing == ()
    assert window_model(bent).growing == ("x",)
    assert window_model(problem("u_t = u_xx", RING, LABELS)).growing == ()


def test_the_first_window_is_one_that_polynomials_can_follow() -> None:
    def level(speed: float) -> int:
        return window_model(problem("u_t + b*u_x", RING, LABELS, b=speed), modes={"x": 4}).first_level

    assert level(0.01) == 0
    assert [level(64.0 * speed) - level(8.0 * speed) for speed in (1.0, 3.0)] == [3, 3]
    assert reach_of(12) < reach_of(20)


def test_what_has_no_time_or_averages_over_it_is_refused() -> None:
    with pytest.raises(ff.ProblemError, match="a time axis 't' for method='chain'"):
        window_model(ff.Problem("u_xx = 1", {"x": ROD}, {}, list(WALLS)))
    over_time = ff.Observations(x=[0.5], t=[0.5], u=[0.0], sigma=1.0, average={"t": 0.1})
    with pytest.raises(ff.ProblemError, match="averages over space"):
        window_model(problem("u_t = u_xx", RING, LABELS, over_time))


def test_choices_are_told_in_settings() -> None:
    model = window_model(problem("u_t = u_xx", RING, LABELS), modes={"x": 3}, windows=[0.0, 0.5, 1.0])
    assert model.settings["modes"] == {"x": 3} and model.settings["degree"] == 20
    assert [name for name, _ in model.settings["sigma"]] == ["equation", "observations of u"]  # type: ignore[attr-defined]
    assert model.edges == model.asked.edges == (0.0, 0.5, 1.0)
    assert model.tails["u"].variance.sum() == pytest.approx(model.settings["left_out"]["u"] ** 2)  # type: ignore[index]


def test_further_conditions_keep_all_choices() -> None:
    before = window_model(problem("u_t = u_xx", RING, LABELS), windows=[0.0, 1.0])
    more = before.problem.replace(
        conditions=[*before.problem.conditions, ff.Observations(x=[0.5], t=0.5, u=[0.0], sigma=0.3)]
    )
    after = before.with_condition(more)
    assert after.modes == before.modes and after.edges == before.edges and after.traits.has_later_data
    assert after.sigmas[-1].value == 0.3 and after.sigmas[-1].origin == "given" and len(after.sigmas) == 3
    assert not any(sigma.is_open for sigma in after.sigmas)


def test_a_start_moves_the_coefficients_only() -> None:
    model = window_model(problem("u_t + b*u*u_x", RING, LABELS, b=ff.Unknown(1, 0.5)), modes={"x": 2})
    moved = replace(model, start={"b": 3.0}).first_state()
    assert moved.mean[-1] == 3.0 and model.prior_state.mean[-1] == 1.0 and model.field_states == 5
    assert_allclose(moved.mean[:-1], model.prior_state.mean[:-1])
    assert_allclose(moved.root, model.prior_state.root)


# -- through what an equation is seen


def seen_through(small: ff.Problem, modes: int) -> tuple[np.ndarray, Any, np.ndarray]:
    axis = small.domain["x"]
    family, points = family_for(axis, modes), axis.collocation(40)
    return projections(small, {"x": family}, {"x": points})[small.statements[0].name], family, points


def test_without_walls_an_equation_is_seen_through_all_modes() -> None:
    projection, family, points = seen_through(problem("u_t = u_xx", RING, LABELS), 5)
    assert projection.shape == (family.size, 40)
    assert_allclose(projection @ projection.T, np.eye(family.size), atol=1e-12)  # noise keeps its size
    features = family(points)
    assert_allclose(features @ np.linalg.lstsq(features, projection.T, rcond=None)[0], projection.T, atol=1e-12)


@pytest.mark.parametrize("wall", ["u = 0", "u_x = 0", "u + 0.5*u_x = 1"])
def test_walls_leave_the_functions_that_vanish_there(wall: str) -> None:
    small = problem("u_t = u_xx", ROD, ff.Boundary(wall, at={"x": 0}), ff.Boundary(wall, at={"x": 1}))
    projection, family, points = seen_through(small, 9)
    assert len(projection) == family.size - 2
    # each row is a quadrature weight times a function of the basis for which the wall's left side is zero
    angle = np.pi * (np.arange(40) + 0.5) / 40
    k = np.arange(1, 21)
    weights = 1.0 - 2.0 * np.sum(np.cos(2 * np.outer(angle, k)) / (4.0 * k**2 - 1.0), axis=1)
    coefficients, residual, *_ = np.linalg.lstsq(family(points), (projection / weights).T, rcond=None)
    assert np.max(residual, initial=0.0) < 1e-16
    value, slope = family([0.0, 1.0]) @ coefficients, family([0.0, 1.0], 1) @ coefficients
    left = {"u = 0": value, "u_x = 0": slope, "u + 0.5*u_x = 1": value + 0.5 * slope}[wall]
    assert_allclose(left, 0.0, atol=1e-9)


def test_walls_that_mix_fields_leave_the_lowest_modes() -> None:
    mixed = ff.Problem(
        ["u_t = u_xx", "v_t = v_xx"], {"x": ROD, "t": ff.Interval(0, 1)}, {},
        [ff.Boundary("u + v = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1}),
         ff.Boundary("v_x = 0", at={"x": 0}), ff.Boundary("v = 0", at={"x": 1})],
    )  # fmt: skip
    projection, family, points = seen_through(mixed, 9)
    assert len(projection) == family.size - 2
    low = family(points)[:, :-2]
    assert_allclose(low @ np.linalg.lstsq(low, projection.T, rcond=None)[0], projection.T, atol=1e-12)


def test_the_walls_of_a_field_go_to_the_equation_that_differentiates_it_most() -> None:
    system = ff.Problem(
        ["u_t = v_x", "v_t = u_x + 0.1*v_xx"], {"x": ROD, "t": ff.Interval(0, 1)}, {},
        [ff.Boundary("v = 0", at={"x": 0}), ff.Boundary("v = 0", at={"x": 1})],
    )  # fmt: skip
    assert [settled_field(system, s, "x") for s in system.statements[:2]] == [None, "v"]


def test_waves_of_a_nonlinear_system_that_only_turn_are_not_taken_for_growing_ones() -> None:
    assert window_model(ff.problems.get("schroedinger"), modes={"x": 36}).modes == {"x": 36}
