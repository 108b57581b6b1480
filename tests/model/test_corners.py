"""A start and a wall that disagree: the start is believed less near it, and the user is told."""

from __future__ import annotations

import numpy as np
import pytest

import factorfield as ff
from factorfield.model.windowed import window_model

DOMAIN = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}


def rod(start: str, *walls: ff.Boundary, sigma: float | None = None) -> ff.Problem:
    return ff.Problem("u_t = 0.1*u_xx", DOMAIN, {}, [ff.Initial(start, sigma=sigma), *walls])


LEFT, RIGHT = ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})


def test_where_they_agree_nothing_changes_but_the_wall_is_held_at_the_start() -> None:
    model = window_model(rod("u = sin(pi*x)", LEFT, RIGHT), modes={"x": 8})
    assert model.advice == () and np.ndim(model.sigmas[1].value) == 0
    assert [s.face for s in model.held_at_start] == [{"x": 0.0, "t": 0.0}, {"x": 1.0, "t": 0.0}]
    assert [s.sigma for s in model.held_at_start] == [model.sigmas[2].value, model.sigmas[3].value]


def test_a_jump_is_told_and_believed_only_away_from_the_wall() -> None:
    model = window_model(rod("u = 2", LEFT, ff.Boundary("u_x = 0", at={"x": 1})), modes={"x": 8})
    (said,) = model.advice
    assert (said.kind, said.about) == ("corner", "initial: u = 2") and "disagree by 2 where they meet" in said.text
    sigma, x = np.asarray(model.sigmas[1].value), model.space.points["x"]
    near, far = sigma[np.argmin(x)], sigma[np.argmax(x)]
    assert 1.9 < near < 2.2 and 1e-9 * 2.0 <= far < 5e-9  # nearly as if there were no jump
    assert np.all(np.diff(sigma[np.argsort(x)]) < 1e-12)  # less and less with the distance
    held = {s.name: s.sigma for s in model.held_at_start}
    assert held["start of boundary x = 0: u = 0"] == pytest.approx(2e-9)


def test_a_jump_of_the_slope_counts_by_what_the_features_resolve() -> None:
    """u = x at a wall without flux: a slope of one over the spacing of the features is a small gap of the field."""
    slope = window_model(rod("u = x", ff.Boundary("u_x = 0", at={"x": 1}), LEFT), modes={"x": 8})
    (said,) = slope.advice
    gap = float(said.text.split("disagree by ")[1].split()[0])
    assert gap == pytest.approx(2.0 / 9.0, rel=0.01)


def test_a_disagreement_within_the_sigma_of_the_start_is_none() -> None:
    assert window_model(rod("u = 0.02", LEFT, RIGHT, sigma=0.01), modes={"x": 8}).advice == ()
    assert len(window_model(rod("u = 0.02", LEFT, RIGHT, sigma=1e-4), modes={"x": 8}).advice) == 2


def test_measured_starts_and_other_fields_have_no_corners() -> None:
    x = np.linspace(0.05, 0.95, 10)
    labels = ff.Observations(x=x, t=0.0, u=np.ones(10), sigma=0.01)
    assert window_model(ff.Problem("u_t = 0.1*u_xx", DOMAIN, {}, [labels, LEFT, RIGHT])).advice == ()
    system = ff.Problem(
        ["u_t = 0.1*u_xx", "v_t = 0.1*v_xx"], DOMAIN, {},
        [ff.Initial("v = 1"), ff.Initial("u = 0"), LEFT, RIGHT],
    )  # fmt: skip
    assert window_model(system, modes={"x": 6}).advice == ()


def test_a_wall_that_moves_is_not_held_at_the_start() -> None:
    """A condition on u_t at a wall says nothing about the state there."""
    model = window_model(rod("u = 0", ff.Boundary("u_t = 1", at={"x": 0}), RIGHT), modes={"x": 6})
    assert [s.name for s in model.held_at_start] == ["start of boundary x = 1: u = 0"]


def test_two_walls_that_disagree_alike_are_treated_alike() -> None:
    """A hot rod between cold walls is symmetric, and so is what is believed of its start."""
    model = window_model(rod("u = 1", LEFT, RIGHT), modes={"x": 8})
    assert [said.kind for said in model.advice] == ["corner", "corner"]
    sigma, x = np.asarray(model.sigmas[1].value), model.space.points["x"]
    np.testing.assert_allclose(sigma[np.argsort(x)], sigma[np.argsort(1.0 - x)], rtol=1e-12)
    assert {s.sigma for s in model.held_at_start} == {1e-9}
