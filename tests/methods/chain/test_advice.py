"""What a user should know about a solved chain, as values: kind, and what it is about."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import factorfield as ff
from factorfield.methods.chain.chain import Chain
from factorfield.model.windowed import window_model

X = np.arange(32) / 32
WAVE = np.sin(2 * np.pi * X)
START = ff.Observations(x=X, t=0.0, u=WAVE, sigma=0.01)
RING = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}


def said(problem: ff.Problem, **options: Any) -> set[tuple[str, str]]:
    """Kind and subject of the advice; the method itself never warns."""
    solution = Chain(adapt=False).run(window_model(problem, **options))
    return {(advice.kind, advice.about) for advice in solution.advice or ()}


def test_nothing_is_said_about_a_problem_that_is_well_posed() -> None:
    assert said(ff.Problem("u_t = 0.01*u_xx", RING, {}, [START])) == set()


def test_directions_that_nothing_settles_are_counted() -> None:
    solution = Chain().run(window_model(ff.Problem("u_t + u_x", RING), modes={"x": 4}))
    (advice,) = solution.advice or ()
    assert advice.kind == "free-directions"
    assert "about 9 of 9 details of the field at its start" in advice.text
    assert "0 of 1 conditions on u at t = 0" in advice.text


def test_groups_that_contradict_each_other_are_named() -> None:
    other = ff.Observations(x=X, t=0.5, u=WAVE + 1.0, sigma=0.01)
    found = said(ff.Problem("u_t + u_x", RING, {}, [START, other]), modes={"x": 4})
    assert found == {("contradiction", "observations of u"), ("contradiction", "observations of u (2)")}


def test_the_worst_reading_is_named_and_a_single_wrong_one_for_what_it_is() -> None:
    places = {"x": np.tile(X, 4), "t": np.repeat([0.0, 0.3, 0.5, 0.8], 32)}
    odd = ff.Observations(**places, u=np.where(np.arange(128) == 69, -999.0, np.tile(WAVE, 4)), sigma=0.01)
    solution = Chain(adapt=False).run(window_model(ff.Problem("u_t = 0", RING, {}, [odd]), modes={"x": 4}))
    text = next(advice.text for advice in solution.advice or () if advice.kind == "contradiction")
    assert "the worst: -999 at " in text and "x = 0.1562" in text and "noise='student-t'" in text
    shifted = ff.Observations(x=X, t=0.5, u=WAVE + 1.0, sigma=0.01)
    solution = Chain(adapt=False).run(window_model(ff.Problem("u_t = 0", RING, {}, [START, shifted]), modes={"x": 4}))
    assert all("student-t" not in advice.text for advice in solution.advice or ())


def test_a_field_that_nothing_holds_draws_no_word_about_equations_and_walls() -> None:
    """With one wall missing the field is as large as its prior, and all is missed in rounding."""
    rod = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    seen = ff.Observations(x=[0.2, 0.5, 0.8], t=0.5, u=[0.1, 0.2, 0.1], sigma=0.01)
    wall = ff.Boundary("u = 0", at={"x": 0})
    problem = ff.Problem("u_t = u_xx", rod, {}, [ff.Initial("u = 0"), wall, seen])
    kinds = {kind for kind, _ in said(problem, windows=[0.0, 0.5, 1.0])}  # found ones hang on rounding here
    assert "free-directions" in kinds and "misfit" not in kinds


def test_sigmas_of_our_choice_are_judged_by_far() -> None:
    """An equation that the data do not obey: its sigma was ours, and it is missed by many of them."""
    seen = ff.Observations(t=[0.0, 1.0], u=[0.0, 1.0], sigma=1e-6)
    found = said(ff.Problem("u_t = 0", {"t": ff.Interval(0, 1)}, {}, [seen]), windows=[0.0, 1.0])
    assert found == {("misfit", "equation"), ("contradiction", "observations of u")}


def test_unknown_coefficients_that_nothing_constrains_are_named() -> None:
    still = ff.Observations(x=X, t=0.0, u=0.0 * X + 2.0, sigma=0.01)
    problem = ff.Problem("u_t + b*u_x", RING, {"b": ff.Unknown(1.0, 0.1)}, [still])
    assert ("unconstrained", "b") in said(problem, modes={"x": 1})


def test_a_coefficient_that_its_prior_excludes_is_named() -> None:
    x, t = np.tile(X, 3), np.repeat([0.0, 0.5, 1.0], 32)
    seen = ff.Observations(x=x, t=t, u=np.sin(2 * np.pi * (x - 0.5 * t)), sigma=0.01)
    problem = ff.Problem("u_t + b*u_x", RING, {"b": ff.Unknown(0.3, 0.01)}, [seen])
    assert ("excluded-by-prior", "b") in said(problem, modes={"x": 1})


@pytest.mark.parametrize(("modes", "lost"), [(6, True), (24, False)])
def test_modes_that_are_too_few_for_what_the_field_became_are_told(modes: int, lost: bool) -> None:
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 0.3)}
    problem = ff.Problem("u_t + u*u_x = 0.02*u_xx", domain, {}, [ff.Initial("u = sin(2*pi*x)")])
    assert (("modes", "x") in said(problem, modes={"x": modes})) == lost
