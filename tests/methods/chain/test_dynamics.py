"""A window as the solution operator of its equation: against the elimination of all its weights at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.messages.elimination import Segment, segment
from factorfield.methods.chain.dynamics import dynamics_of
from factorfield.methods.chain.solver import WindowSolver
from factorfield.model.factors import whitened_rows
from factorfield.model.windowed import window_model

I01, RING = ff.Interval(0, 1), ff.Periodic(0, 1)
WALLS = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u_x = 0", at={"x": 1})]
SEEN = ff.Observations(x=[0.2, 0.7, 0.4], t=[0.3, 0.1, 0.25], u=[0.5, -0.5, 0.2], sigma=0.1)
START = ff.Initial("u = sin(pi*x)", sigma=0.1)


ON_LINE, ON_RING = {"x": I01, "t": I01}, {"x": RING, "t": I01}
PLANE = {"x": I01, "y": I01, "t": I01}
SPOTS = ff.Observations(x=[0.2, 0.6], y=[0.3, 0.8], t=[0.2, 0.4], u=[1.0, 0.3], sigma=0.1)
FLOW = ff.Observations(x=[0.2, 0.6], t=[0.2, 0.4], p=[1.0, 0.3], sigma=0.1)
# linear equations of first order without explicit time, each with what is known inside the first window
CASES: dict[str, tuple[list[str], dict[str, Any], list[Any], dict[str, int]]] = {
    "ring": (["u_t + 0.4*u_x = 0.02*u_xx"], ON_RING, [START, SEEN], {"x": 2}),
    "a source": (["u_t = 0.02*u_xx + cos(2*pi*x)"], ON_RING, [START, SEEN], {"x": 2}),
    "a system": (["p_t = -u_x", "u_t = -2*p_x - 0.1*u"], ON_RING, [ff.Initial("p = 1"), FLOW], {"x": 2}),
    "walls": (["u_t = 0.1*u_xx + x"], ON_LINE, [*WALLS, START, SEEN], {"x": 7}),
    "walls in two dimensions": (
        ["u_t = 0.1*(u_xx + u_yy)"],
        PLANE,
        [ff.Boundary("u = 0", at={axis: end}) for axis in "xy" for end in (0, 1)] + [SPOTS],
        {"x": 5, "y": 5},
    ),
    "an unknown source": (["u_t = 0.1*u_xx + f"], ON_LINE, [*WALLS, START, SEEN], {"x": 6}),
    "an ODE": (["u_t = -u"], {"t": I01}, [ff.Observations(t=[0.0, 0.3], u=[1.0, 0.7], sigma=0.1)], {}),
    "a condition at an instant inside": (
        ["u_t = 0.1*u_xx"],
        ON_LINE,
        [*WALLS, START, ff.Boundary("u = x*(2 - x)", at={"t": 0.5}, sigma=0.1, inside=True), SEEN],
        {"x": 6},
    ),
}


def solver_of(name: str, sigma: float) -> WindowSolver:
    texts, domain, known, modes = CASES[name]
    unknown = {"f": ff.Unknown(0.0, 1.0, over="x", length=0.5)} if "f" in texts[0] else {}
    problem = ff.Problem([ff.Equation(text, sigma=sigma) for text in texts], domain, unknown, known)
    return WindowSolver(window_model(problem, modes=modes, degree=5, windows=[0.0, 0.5, 1.0]), 1)


def whole(solver: WindowSolver, kinds: set[str]) -> Segment:
    """All rows of the first window at once, a prior that says nothing."""
    own = [g for g in solver.factors.own(0.0, 0.5, True) if g.statement.kind in kinds]
    rows, target = whitened_rows([*solver.factors.standing(0.0, 0.5), *own], np.zeros(len(solver.order)))
    return segment(rows, target, solver.inner, solver.state, solver.inner_std, solver.factors.end_map(0.0, 0.5))


def value(link: Segment, state: np.ndarray) -> float:
    return float(link.message.level - 0.5 * np.sum((link.message.rows @ state - link.message.target) ** 2))


@pytest.mark.parametrize("sigma", [0.3, 1e-5])
@pytest.mark.parametrize("name", CASES)
def test_the_operator_is_the_elimination_of_all_weights(name: str, sigma: float) -> None:
    """Way to the end, its noise, and what the window's own factors say of its start: with measurements, and without."""
    solver = solver_of(name, sigma)
    dynamics = dynamics_of(solver.in_space)
    assert dynamics is not None
    own = solver.factors.own(0.0, 0.5, True)
    order = sorted(own, key=lambda group: group.statement.kind == "observation")
    rows, target = whitened_rows(order, np.zeros(len(solver.order)))
    without = sum(group.count for group in order if group.statement.kind != "observation")
    links = dynamics.segments(solver.factors.length(0.0, 0.5), rows, target, (len(rows), without))
    kinds = {group.statement.kind for group in own}
    dense = [whole(solver, kinds), whole(solver, kinds - {"observation"})]
    for ours, theirs in zip(links, dense, strict=True):
        assert_allclose(ours.transition, theirs.transition, atol=1e-6 * (1.0 + np.abs(theirs.transition).max()))
        assert_allclose(ours.shift, theirs.shift, atol=1e-6 * (1.0 + np.abs(theirs.shift).max()))
        noise, wanted = (link.noise_root @ link.noise_root.T for link in (ours, theirs))
        assert_allclose(noise, wanted, atol=1e-5 * np.abs(wanted).max())
    # the levels of the two ways differ by the determinant of the equation, the same with measurements and without
    likely = solver.model.prior_state * dense[0].message
    states = likely.mean + np.random.default_rng(0).standard_normal((3, len(solver.state))) @ likely.root.T
    gains = [value(links[0], s) - value(links[1], s) for s in states]
    assert_allclose(gains, [value(dense[0], s) - value(dense[1], s) for s in states], rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize(
    ("equation", "known"),
    [("u_tt = u_xx", [START]), ("u_t = sin(t)*u_xx", [START]), ("u_t + u*u_x", [START])],
    ids=["second order", "explicit time", "nonlinear"],
)
def test_other_equations_have_no_such_operator(equation: str, known: list[Any]) -> None:
    problem = ff.Problem(equation, {"x": RING, "t": I01}, {}, known)
    assert dynamics_of(WindowSolver(window_model(problem, modes={"x": 2}, degree=5), 1).in_space) is None
