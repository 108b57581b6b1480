"""Where statements become rows: the factors of one window."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.model.factors import whitened_rows
from factorfield.model.folding import Summary
from factorfield.model.grid import GridGroup
from factorfield.model.window_factors import WindowFactors, speaks_within
from factorfield.model.windowed import window_model

X = np.arange(16) / 16
LABELS = ff.Observations(x=X, t=0.0, u=np.sin(2 * np.pi * X), sigma=0.1)
RING = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
TORUS = {"x": ff.Periodic(0, 1), "y": ff.Periodic(0, 2), "t": ff.Interval(0, 1)}


def factors(problem: ff.Problem, **options: object) -> WindowFactors:
    return WindowFactors(window_model(problem, **options))  # type: ignore[arg-type]


# -- an observation becomes rows


def test_an_observation_becomes_rows_of_features_over_its_sigma() -> None:
    """Row of a value: phi(t, x) / sigma, and its target y / sigma."""
    later = ff.Observations(x=[0.2, 0.7], t=[0.1, 0.4], u=[1.5, -2.0], sigma=[0.5, 0.25])
    made = factors(ff.Problem("u_t = 0.1*u_xx", RING, {}, [LABELS, later]), modes={"x": 2}, degree=6)
    (group,) = made.own(0.05, 0.5, False)
    assert (group.statement.name, group.statement.kind, group.count) == ("observations of u (2)", "observation", 2)
    rows, target = whitened_rows([group], np.zeros(made.model.size))
    basis = made.representation(0.05, 0.5).latents["u"].basis
    in_time, in_space = basis.families["t"]([0.1, 0.4]), basis.families["x"]([0.2, 0.7])
    exact = np.einsum("nt,nx->ntx", in_time, in_space).reshape(2, -1) / [[0.5], [0.25]]
    assert_allclose(rows, exact, atol=1e-12)
    assert_allclose(target, [3.0, -8.0])


def test_measurements_go_to_the_window_they_fall_into() -> None:
    later = ff.Observations(x=[0.2, 0.5, 0.7], t=[0.0, 0.5, 0.6], u=[1.0, 2.0, 3.0], sigma=0.5)
    made = factors(ff.Problem("u_t = 0.1*u_xx", RING, {}, [later]), modes={"x": 2})

    def held(lower: float, upper: float, first: bool) -> list[float]:
        return [float(value) for group in made.own(lower, upper, first) for value in group.target]

    assert held(0.0, 0.5, True) == [1.0, 2.0]  # its end is a window's own, its start only the first one's
    assert held(0.5, 1.0, False) == [3.0]
    assert held(0.7, 1.0, False) == []


def test_conditions_at_an_instant_belong_to_one_window() -> None:
    start, end = ff.Initial("u = 1"), ff.Observations(x=[0.5], t=1.0, u=[1.0], sigma=1.0)
    problem = ff.Problem("u_t = 0.1*u_xx", RING, {}, [start, end])
    _, initial, measured = problem.statements
    assert speaks_within(initial, 0.0, 0.5, True) and not speaks_within(initial, 0.5, 1.0, False)
    assert not speaks_within(measured, 0.0, 0.5, True) and speaks_within(measured, 0.5, 1.0, False)
    made = factors(problem, modes={"x": 2})
    assert [g.statement.kind for g in made.own(0.0, 0.5, True)] == ["initial"]
    assert [g.statement.kind for g in made.own(0.5, 1.0, False)] == ["observation"]


def test_walls_are_held_at_the_start_too() -> None:
    walls = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u_x = 0", at={"x": 1})]
    domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    made = factors(ff.Problem("u_t = 0.1*u_xx", domain, {}, [ff.Initial("u = x*(2-x)"), *walls]), modes={"x": 6})
    assert [g.statement.kind for g in made.standing(0.0, 0.5)] == ["equation", "boundary", "boundary"]
    held = [f"start of {wall.name}" for wall in made.model.problem.statements[2:]]
    assert [group.name for group in made.own(0.0, 0.5, True)][1:] == held
    assert made.own(0.5, 1.0, False) == []


def test_many_measurements_are_folded_and_few_are_not() -> None:
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0, 1, 400), rng.uniform(0, 0.5, 400)
    many = ff.Observations(x=x, t=t, u=np.cos(x), sigma=0.1)
    made = factors(ff.Problem("u_t = 0.1*u_xx", RING, {}, [many]), modes={"x": 1}, degree=6)
    (group,) = made.own(0.0, 0.5, True)
    assert isinstance(group, Summary) and group.count == 400 and len(group.target) == made.model.size + 1
    (few,) = made.own(0.45, 0.5, False)
    assert not isinstance(few, Summary) and few.count == int(np.sum(t > 0.45))


# -- equations


def test_an_equation_of_first_order_is_asked_as_often_as_it_has_polynomials_to_settle() -> None:
    made = factors(ff.Problem("u_t = 0.1*u_xx", RING, {}, [LABELS]), modes={"x": 2}, degree=6)
    (group,) = made.standing(0.0, 0.5)
    instants = np.unique(group.points["t"])
    assert len(instants) == 6 and instants[0] > 0.0 and instants[-1] == 0.5  # Radau's points: the last at the end
    wave = factors(ff.Problem("u_tt = u_xx", RING, {}, [LABELS]), modes={"x": 2}, degree=6)
    assert len(np.unique(wave.standing(0.0, 0.5)[0].points["t"])) == 9  # of second order: more often


def test_windows_of_one_length_share_their_factors_unless_time_is_explicit() -> None:
    steady = factors(ff.Problem("u_t = 0.1*u_xx", RING, {}, [LABELS]), modes={"x": 2})
    assert steady.standing(0.0, 0.25)[0] is steady.standing(0.5, 0.75)[0]
    assert steady.standing(0.0, 0.25)[0] is not steady.standing(0.0, 0.5)[0]
    assert steady.end_map(0.0, 0.25) is steady.end_map(0.5, 0.75)
    moving = factors(ff.Problem("u_t = 0.1*u_xx + sin(t)", RING, {}, [LABELS]), modes={"x": 2})
    one, other = moving.standing(0.0, 0.25)[0], moving.standing(0.5, 0.75)[0]
    assert one is not other and not np.array_equal(one.points["t"], other.points["t"])


@pytest.mark.parametrize("horizon", [1.0, 100 / np.pi, 0.3])
def test_the_length_of_a_window_does_not_depend_on_where_it_lies(horizon: float) -> None:
    """Rounding of the edges differs from place to place; found and given windows have to lead to the same bits."""
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0.1, 0.1 + horizon)}
    made = factors(ff.Problem("u_t + u_x", domain, {}, [ff.Initial("u = 1")]), modes={"x": 2})
    length = made.model.problem.domain["t"].length
    edges = [0.1 + position / 64 * length for position in range(65)]
    assert {made.length(a, b) for a, b in pairwise(edges)} == {length / 64}
    thirds = np.linspace(0.1, 0.1 + horizon, 4)
    assert len({made.length(a, b) for a, b in pairwise(thirds)}) == 1
    assert made.length(*thirds[:2]) == pytest.approx(horizon / 3, rel=1e-12)


def test_an_equation_in_space_is_a_grid_and_one_without_is_not() -> None:
    in_space = factors(ff.Problem("u_t = 0.1*u_xx", RING, {}, [LABELS]), modes={"x": 2})
    ode = factors(ff.Problem("u_t = -u", {"t": ff.Interval(0, 1)}, {}, [ff.Initial("u = 1")]))
    assert isinstance(in_space.standing(0.0, 1.0)[0], GridGroup)
    assert not isinstance(ode.standing(0.0, 1.0)[0], GridGroup)
