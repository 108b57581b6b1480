"""All automatic choices: sigmas of both columns of the table, numbers of modes, priors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.model.block import block_model
from factorfield.model.choices import (
    BESIDE_ERROR,
    Sigma,
    Sizes,
    affordable_modes,
    block_modes,
    block_sigmas,
    check_orders,
    checked_counts,
    field_scale,
    modes_of_functions,
    natural_size,
    observation_noise,
    window_modes,
    window_sigmas,
)  # fmt: skip
from factorfield.model.spectrum import spectra_of
from factorfield.model.windowed import window_model

X = (np.arange(64) + 0.5) / 64


def rod(*conditions: Any, equation: Any = "u_t = 0.5*u_xx", length: float = 2.0, horizon: float = 4.0) -> ff.Problem:
    return ff.Problem(equation, {"x": ff.Interval(0, length), "t": ff.Interval(0, horizon)}, {}, list(conditions))


def ring(*conditions: Any, equation: Any = "u_t + u_x", horizon: float = 1.0) -> ff.Problem:
    return ff.Problem(equation, {"x": ff.Periodic(0, 1), "t": ff.Interval(0, horizon)}, {}, list(conditions))


START, LEFT = ff.Initial("u = 30"), ff.Boundary("u = 10", at={"x": 0})
FEW = ff.Observations(x=[0.5, 1.0], t=1.0, u=[20.0, 20.0])
MANY = ff.Observations(x=np.linspace(0.1, 1.9, 9), t=np.linspace(1, 2, 9), u=np.full(9, 20.0))


# -- sizes


def test_the_scale_is_what_conditions_say_about_the_field() -> None:
    assert field_scale(rod(START, LEFT)) == pytest.approx(30.0)
    assert field_scale(rod(FEW)) == pytest.approx(20.0)
    assert field_scale(rod(ff.Observations(x=[0.5], t=1.0, of="log(u)", value=[3.0]))) == pytest.approx(np.exp(3.0))
    assert field_scale(rod()) == 1.0


def test_an_equation_is_as_large_as_its_largest_term() -> None:
    problem = rod(START)
    equation = problem.statements[0].relation
    assert natural_size(equation, problem, 30.0) == pytest.approx(30.0 * max(1 / 4.0, 0.5 / 2.0**2))


# -- sigmas: the two columns of the table


def test_default_sigmas_of_one_block() -> None:
    problem = rod(START, LEFT, MANY)
    equation, start, wall, measured = block_sigmas(problem, Sizes(30.0))
    assert {s.origin for s in (equation, start, wall, measured)} == {"default"}
    assert equation.value == pytest.approx(1e-3 * 30.0 / 4.0)
    assert start.value == pytest.approx(1e-4 * 30.0)
    assert wall.value == pytest.approx(1e-4 * 10.0)
    assert measured.value == pytest.approx(1e-2 * 30.0)


def test_default_sigmas_of_windows() -> None:
    problem = rod(START, LEFT, MANY, FEW)
    equation, start, wall, many, few = window_sigmas(problem, Sizes(30.0), {}, {"x": 8}, fastest=5.0)
    assert equation.value == pytest.approx(1e-5 * 30.0 / 4.0) and equation.origin == "default"
    assert start.value == pytest.approx(1e-4 * 30.0) and start.origin == "default"
    assert wall.value == pytest.approx(1e-9 * 10.0) and wall.origin == "default"
    assert (many.origin, many.is_open, many.value) == ("estimated", True, pytest.approx(3.0))
    assert (few.origin, few.is_open, few.value) == ("default", False, pytest.approx(0.3))


def test_fast_waves_raise_the_sigma_of_an_equation_to_rounding() -> None:
    problem = rod(START)
    equation, _ = window_sigmas(problem, Sizes(30.0), {}, {"x": 8}, fastest=1e9)
    assert equation.value == pytest.approx(10.0 * 1e-12 * 30.0 * 1e9)


@pytest.mark.parametrize("make", ["block", "windows"])
def test_a_given_sigma_stays(make: str) -> None:
    """Whatever it qualifies, and one per measurement too."""
    each = np.linspace(0.1, 0.2, 9)
    problem = rod(
        ff.Initial("u = 30", sigma=0.7), ff.Boundary("u = 10", at={"x": 0}, sigma=0.3),
        ff.Observations(x=np.linspace(0.1, 1.9, 9), t=1.0, u=np.full(9, 20.0), sigma=each),
        equation=ff.Equation("u_t = 0.5*u_xx", sigma=0.01),
    )  # fmt: skip
    size = Sizes(30.0)
    found = block_sigmas(problem, size) if make == "block" else window_sigmas(problem, size, {}, {"x": 8}, 5.0)
    assert [s.origin for s in found] == ["given"] * 4 and not any(s.is_open for s in found)
    assert [s.stated for s in found[:3]] == [0.01, 0.7, 0.3]
    assert found[0].value == 0.01 and found[1].value == BESIDE_ERROR * 0.7  # of a start beside its smooth error
    assert float(found[2].value) <= BESIDE_ERROR * 0.3
    assert_allclose(found[3].value, each)
    assert found[3].typical == pytest.approx(np.sqrt(np.mean(each**2)))
    model = block_model(problem, modes={"x": 4, "t": 4}) if make == "block" else window_model(problem, modes={"x": 4})
    assert model.given == {"initial: u = 30", "boundary x = 0: u = 10", "observations of u"}


def test_a_sigma_below_rounding_is_one_line() -> None:
    with pytest.raises(ff.ProblemError, match=r"sigma of the equation of at least .*: rounding is larger, received"):
        tight = rod(START, equation=ff.Equation("u_t = u_xx", sigma=1e-13))
        window_sigmas(tight, Sizes(30.0), {}, {"x": 8}, fastest=50.0)


def test_the_spectrum_of_a_start_tells_its_noise_and_adds_what_the_modes_leave_out() -> None:
    noise = 0.05 * np.random.default_rng(0).standard_normal(64)
    problem = ring(ff.Observations(x=X, t=0.0, u=np.sin(2 * np.pi * X) + noise))
    spectra = spectra_of(problem, {})
    _, labels = window_sigmas(problem, Sizes(1.0), spectra, {"x": 1}, fastest=5.0)
    assert labels.origin == "estimated" and not labels.is_open
    assert labels.noise == spectra["u"].sigma == pytest.approx(0.05, rel=0.3)
    assert labels.value == pytest.approx(np.sqrt(spectra["u"].sigma ** 2 + spectra["u"].left_out(1)))
    told = ring(ff.Observations(x=X, t=0.0, u=np.sin(2 * np.pi * X), sigma=0.05))
    _, given = window_sigmas(told, Sizes(1.0), spectra, {"x": 1}, fastest=5.0)
    assert given.origin == "given" and given.noise == 0.05
    assert given.value == pytest.approx(np.sqrt(0.05**2 + spectra["u"].left_out(1)))


def test_the_noise_of_one_more_measurement_is_over_all_groups_of_the_field() -> None:
    problem = rod(
        ff.Observations(x=[0.5], t=1.0, u=[20.0], sigma=0.1),
        ff.Observations(x=[0.5, 0.6], t=1.5, u=[20.0, 20.0], sigma=1.0),
        ff.Observations(x=[0.5], t=1.0, of="u_x", value=[0.0], sigma=9.0), ff.Initial("u = 30", sigma=5.0),
    )  # fmt: skip
    sigmas = block_sigmas(problem, Sizes(20.0))
    assert observation_noise(problem, sigmas) == {"u": pytest.approx(np.sqrt((0.01 + 1.0 + 1.0) / 3.0))}
    apart = [
        Sigma(7.0, "given", noise=0.2) if s.kind == "observation" else Sigma(1.0, "given") for s in problem.statements
    ]
    assert observation_noise(problem, apart) == {"u": pytest.approx(0.2)}  # not what the basis leaves out
    assert observation_noise(rod(START), block_sigmas(rod(START), Sizes(30.0))) == {}


# -- modes


def test_given_modes_are_kept_and_checked() -> None:
    problem = rod(START)
    assert (
        checked_counts({"x": np.int64(5)}, problem, "modes") == {"x": 5}
        and checked_counts(None, problem, "modes") == {}
    )
    for wrong in ({"y": 3}, {"x": 0}, {"x": 2.5}, {"x": True}, {"x": 10**6}):
        with pytest.raises(ff.ProblemError, match=r"^expected .*modes.*; try modes="):
            checked_counts(wrong, problem, "modes")  # type: ignore[arg-type]
    chosen, advice = block_modes(problem, {"x": 5, "t": 7})
    assert (chosen, advice) == ({"x": 5, "t": 7}, ())
    assert window_modes(problem, {"x": 5}, {}, 30.0) == {"x": 5}


def test_polynomials_have_to_outlast_derivatives() -> None:
    statements = rod(START).statements
    check_orders(statements, {"x": 3, "t": 2})
    for degrees, remedy in (({"x": 2}, r"modes=\{'x': 10\}"), ({"t": 1}, "degree=9")):
        with pytest.raises(ff.ProblemError, match=f"above the highest derivative .*; try {remedy}"):
            check_orders(statements, degrees)


def test_fast_waves_ask_for_a_higher_degree_in_time_than_a_small_block_has() -> None:
    labels = ff.Observations(x=X, t=0.0, u=np.sin(4 * np.pi * X), sigma=0.01)
    slow, nothing = block_modes(ring(labels, horizon=0.1), {})
    assert slow["x"] == 2 and 12 <= slow["t"] < 20 and nothing == ()
    fast, (said,) = block_modes(ring(labels, horizon=50.0), {"x": 8})
    assert (said.kind, said.about) == ("modes", "t") and "keeps the model small" in said.text
    assert fast["t"] * 17 < 1200


def test_data_show_how_many_frequencies_they_have() -> None:
    values = np.sin(2 * np.pi * X) + 0.5 * np.cos(6 * np.pi * X)
    exact = ring(ff.Observations(x=X, t=0.0, u=values, sigma=0.01))
    assert block_modes(exact, {})[0]["x"] == 3
    assert window_modes(exact, {}, spectra_of(exact, {}), 1.0)["x"] >= 3
    assert block_modes(ring(), {})[0]["x"] == 8 and window_modes(ring(), {}, {}, 1.0)["x"] == 16
    bent = ring(ff.Observations(x=X, t=0.0, u=values, sigma=0.01), equation="u_t + u*u_x")
    assert 8 <= window_modes(bent, {}, spectra_of(bent, {}), 1.0)["x"] <= 12  # products of modes make new ones


def test_known_functions_show_the_degree_that_holds_them() -> None:
    domain = {"x": ff.Interval(0, 1)}
    assert modes_of_functions(ff.Problem("u_xx = 3*x**4 - x", domain), "x") == 4
    assert modes_of_functions(ff.Problem("u_xx = 1", domain), "x") == 0
    around = {"x": ff.Periodic(0, 1)}
    assert modes_of_functions(ff.Problem("u_xx - u = sin(14*pi*x)", around), "x") == 7
    narrow = ff.Problem("u_xx = exp(-200*(x-0.5)**2)", domain)
    assert modes_of_functions(narrow, "x") > 30
    assert block_modes(narrow, {})[0]["x"] == modes_of_functions(narrow, "x") + 2


def test_automatic_modes_stay_affordable_and_given_ones_are_not_touched() -> None:
    problem = ff.Problem("u_xx + u_yy = 1", {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)})
    assert affordable_modes(problem, {"x": 90, "y": 20}, ["x"]) == {"x": 56, "y": 20}
    both = affordable_modes(problem, {"x": 90, "y": 90}, ["x", "y"])
    assert (both["x"] + 1) * (both["y"] + 1) <= 1200 and abs(both["x"] - both["y"]) <= 1
    assert affordable_modes(problem, {"x": 90, "y": 90}, []) == {"x": 90, "y": 90}


# -- priors


def test_the_prior_of_a_block_has_the_fields_size_and_the_coefficients_own_moments() -> None:
    problem = ff.Problem(
        "u_t = k*u_xx", {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}, {"k": ff.Unknown(0.5, 0.2)}, [START]
    )
    model = block_model(problem, modes={"x": 3, "t": 3})
    block = model.representation.latents["k"].block
    assert_allclose(model.prior.mean[block], 0.5)
    assert_allclose(model.prior.std[block], 0.2)
    assert_allclose(np.delete(model.prior.std, block.start), 30.0)
    assert model.prior.mean[0] == pytest.approx(30.0)  # the constant weight is about the field's offset
    assert_allclose(np.delete(model.prior.mean, [0, block.start]), 0.0)


def test_the_prior_of_a_window_is_broad_for_states_open_inside_and_the_spectrum_at_a_measured_start() -> None:
    wave = ring(ff.Initial("u = 2"), equation="u_tt = 4*u_xx")
    model = window_model(wave, modes={"x": 2}, degree=6)
    state, inner = model.layout
    fastest = 2.0 * 2 * np.pi * 2
    assert_allclose(model.prior.std[state[:5]], 10.0 * 2.0)
    assert_allclose(model.prior.std[state[5:]], 10.0 * 2.0 * fastest)  # of u_t
    assert_allclose(model.prior.std[inner], 1e3 * 2.0)
    measured = ring(ff.Observations(x=X, t=0.0, u=np.sin(2 * np.pi * X), sigma=0.1))
    model, (spectrum,) = window_model(measured, modes={"x": 2}), spectra_of(measured, {"u": 0.0}).values()
    sds = [spectrum.constant, *np.repeat(np.sqrt(spectrum.variance[:2]), 2)]
    assert_allclose(model.prior.std[model.layout[0]], sds)
