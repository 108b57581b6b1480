"""Automatic choices: how large fields and the terms of equations are, and what they vary about."""

from __future__ import annotations

import numpy as np
import pytest

import factorfield as ff
from factorfield.model.activation import Identity
from factorfield.model.block import block_model
from factorfield.model.choices import field_offsets, natural_size
from factorfield.model.sizes import sizes_of
from factorfield.model.spectrum import fastest_rates
from factorfield.model.windowed import window_model

LINE, STRIP = {"x": ff.Interval(0, 1)}, {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}


def wall(text: str, x: float) -> ff.Boundary:
    return ff.Boundary(text, at={"x": x})


@pytest.mark.parametrize(
    ("equation", "size"),
    [("x*u_x = 0", 8 / 9 / 2), ("3*u_x = 0", 1.5), ("u_x/x = 0", 9 / 2 / 2), ("0.01*u_xx + sin(pi*x)*u = 0", 1.0)],
)
def test_the_size_of_a_term_is_read_over_the_whole_domain(equation: str, size: float) -> None:
    """At the centre x*u_x vanishes, and u_x/x has no value there."""
    problem = ff.Problem(equation, {"x": ff.Interval(-1, 1)}, {}, [wall("u = 1", -1)])
    relation = problem.statements[0].relation
    assert natural_size(relation, problem, 1.0) == pytest.approx(size, rel=0.02)


def test_rates_are_the_fastest_anywhere_and_grow_on_average() -> None:
    problem = ff.Problem("u_t = 300*cos(2*pi*t)*x*u", STRIP, {}, [ff.Initial("u = 1")])
    fastest, rates = fastest_rates(problem, {"x": 8})
    assert fastest > 250.0
    assert np.max(np.abs(rates)) < 1.0  # over a period nothing grows: no reason to refuse it


def test_sources_count_among_the_terms_of_an_equation() -> None:
    problem = ff.Problem("u_xx = 400*sin(20*x)", LINE, {}, [wall("u = 0", 0), wall("u = 1", 1)])
    assert block_model(problem).sigmas[0].value == pytest.approx(0.4 / np.sqrt(2), rel=0.1)


@pytest.mark.parametrize(
    ("equation", "conditions", "offset"),
    [
        ("u_t = u_xx", [ff.Initial("u = 290 + x")], 290.5),
        ("u_t = u_xx", [ff.Initial("u = 300"), wall("u = 290", 0), wall("u = 292", 1)], 291.0),  # walls first
        ("u_t = u_xx - 8*(u - 20)", [ff.Initial("u = 90")], 20.0),  # where a constant field rests
        ("u_t = -4*u", [ff.Initial("u = 5")], 0.0),
        ("u_t = u_xx", [ff.Observations(x=0.5, t=[0.1, 0.2], of="u_x", value=[1.0, 2.0])], 0.0),  # no value tells
        ("u_t = u_xx", [ff.Initial("u = 7"), ff.Boundary("u", at={"x": (0, 1)})], 7.0),  # a difference tells none
    ],
)
def test_what_a_field_varies_about(equation: str, conditions: list[ff.Initial], offset: float) -> None:
    assert field_offsets(ff.Problem(equation, STRIP, {}, conditions))["u"] == pytest.approx(offset)


@pytest.mark.parametrize("equation", ["u_t = u_xx + u*(1 - u)", "u_t + u*u_x = 0", "u_t = (1 + u)*u_xx"])
def test_a_field_whose_zero_matters_has_no_offset(equation: str) -> None:
    assert field_offsets(ff.Problem(equation, STRIP, {}, [ff.Initial("u = 0.9")])) == {}


def test_fields_of_a_system_have_offsets_of_their_own() -> None:
    start = [ff.Initial("a = 101"), ff.Initial("b = 3")]
    found = field_offsets(ff.Problem(["a_t = b - 3", "b_t = 100 - a"], {"t": ff.Interval(0, 4)}, {}, start))
    assert (found["a"], found["b"]) == pytest.approx((100.0, 3.0))


def test_the_prior_is_centred_at_the_offset() -> None:
    problem = ff.Problem("u_t = u_xx", STRIP, {}, [ff.Initial("u = 290 + cos(pi*x)")])
    for model in (window_model(problem), block_model(problem)):
        assert model.prior.mean[0] == pytest.approx(290.0)
        assert not np.any(model.prior.mean[1:])
        assert model.scale == pytest.approx(np.sqrt(0.5), rel=1e-3)
    assert not np.any(block_model(problem, activation=ff.PiecewiseExponential()).prior.mean)


@pytest.mark.parametrize("offset", [0.0, 290.0])
@pytest.mark.parametrize("load", [1.0, 1e4])
def test_a_load_is_no_size_of_the_field(load: float, offset: float) -> None:
    ends = [wall(text, x) for x in (0, 1) for text in (f"u = {offset}", "u_x = 0")]
    sizes = sizes_of(ff.Problem(f"u_xxxx = {load}", LINE, {}, ends), Identity())
    exact = load / 24 / np.sqrt(630)  # root mean square of x^2 (1 - x)^2 / 24
    assert sizes.scale == pytest.approx(exact, rel=0.05)
    assert sizes.offsets["u"] == offset


def test_told_values_that_loads_exceed_by_far_do_not_tell_the_size() -> None:
    ends = [wall("u = 290", 0), wall("u = 290.001", 1)]
    assert sizes_of(ff.Problem("u_xx = -1e4", LINE, {}, ends), Identity()).scale == pytest.approx(913.0, rel=0.05)


def test_a_given_sigma_is_kept_away_from_a_corner() -> None:
    conditions = [ff.Initial("u = 200", sigma=0.2), wall("u = 10", 0), wall("u = 10", 1)]
    model = window_model(ff.Problem("u_t = u_xx", STRIP, {}, conditions, units={"u": "degC", "x": "m"}))
    sigma, x = np.asarray(model.sigmas[1].value), model.space.points["x"]
    assert np.all(sigma[(x > 0.25) & (x < 0.75)] < 0.2 * 1.001)
    assert sigma[0] > 100.0
    assert sigma[-1] > 100.0  # both corners
    assert dict(model.settings["sigma"])["initial: u = 200"] == pytest.approx(0.2)  # type: ignore[call-overload]
    assert [a.kind for a in model.advice] == ["corner", "corner"]
    assert "disagree by 190 degC where they meet, at t = 0, x = 0 m" in model.advice[0].text


def test_only_the_part_of_a_wall_that_disagrees_is_softened() -> None:
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    conditions = [ff.Initial("u = y**4", sigma=1e-2), wall("u = 0", 0)]
    model = window_model(ff.Problem("u_t = u_xx + u_yy", domain, {}, conditions))
    shape = [len(model.space.points[name]) for name in ("x", "y")]
    along = np.reshape(model.sigmas[1].value, shape)[0]
    assert along[0] < 0.011
    assert along[-1] > 0.5
