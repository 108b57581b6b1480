"""One window: linear ones exactly, nonlinear ones by Gauss-Newton, against dense algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.messages.elimination import segment
from factorfield.messages.gaussian import Belief
from factorfield.methods.chain.solver import Window, WindowSolver
from factorfield.model.factors import whitened_rows
from factorfield.model.windowed import window_model

X = np.arange(16) / 16
LABELS = ff.Observations(x=X, t=0.0, u=np.sin(2 * np.pi * X), sigma=0.1)
LATER = ff.Observations(x=[0.2, 0.7], t=[0.2, 0.4], u=[0.5, -0.5], sigma=0.1)


def solver_of(equation: Any, *conditions: Any, modes: int = 2, degree: int = 6, **parameters: Any) -> WindowSolver:
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    return WindowSolver(
        window_model(ff.Problem(equation, domain, parameters, list(conditions)), modes={"x": modes}, degree=degree), 30
    )


def dense(solver: WindowSolver, arrival: Belief, window: Window, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of all weights from the factors linearised at some weights, by least squares."""
    groups = window.groups
    if not any(group.statement.kind == "equation" for group in groups):
        groups = [*solver.factors.standing(0.0, 0.5), *groups]
    rows, target = whitened_rows(groups, at)
    size = len(solver.order)
    prior = np.zeros((size, size))
    prior[: len(solver.state), solver.state] = np.linalg.inv(arrival.root)
    prior[len(solver.state) + np.arange(len(solver.inner)), solver.inner] = 1.0 / solver.inner_std
    aim = np.concatenate([target, np.linalg.solve(arrival.root, arrival.mean), np.zeros(len(solver.inner))])
    q, upper = np.linalg.qr(np.vstack([rows, prior]))
    root = np.linalg.inv(upper)
    return root @ (q.T @ aim), root @ root.T


def agrees(solver: WindowSolver, window: Window, mean: np.ndarray, covariance: np.ndarray) -> None:
    sd = np.sqrt(np.diag(covariance))
    state, inner = solver.state, solver.inner
    assert np.max(np.abs(window.start.mean - mean[state]) / sd[state]) < 1e-6
    assert_allclose(window.start.std, sd[state], rtol=1e-6)
    known = window.link.offset + window.link.slope @ window.start.mean
    assert np.max(np.abs(known - mean[inner]) / sd[inner]) < 1e-5


@pytest.mark.parametrize(
    ("equation", "conditions", "sigma", "factorisations"),
    [
        ("u_t + 0.3*u_x = 0.01*u_xx", [LABELS], 0.05, 1),
        # where data inside feel the noise of the equation they link all waves, and the window is eliminated as a whole
        ("u_t + 0.3*u_x = 0.01*u_xx", [LABELS, LATER], 0.05, 2),
        ("u_t + 0.3*u_x = 0.01*u_xx", [LABELS, LATER], 1e-6, 1),
        ("u_t + (0.3 + 0.1*sin(2*pi*x))*u_x", [LABELS], 0.05, 1),
        ("u_t + (0.3 + 0.1*sin(2*pi*x))*u_x", [LABELS, LATER], 0.05, 1),
        ("u_t + 0.3*u_x = sin(t)", [LABELS], 0.05, 1),
    ],
    ids=[
        "separable", "separable with data inside", "separable with data inside and no noise", "modes that mix",
        "modes that mix with data inside", "explicit time",
    ],
)  # fmt: skip
def test_a_linear_window_is_dense_conditioning(
    equation: str, conditions: list[Any], sigma: float, factorisations: int
) -> None:
    solver = solver_of(ff.Equation(equation, sigma=sigma), *conditions)
    arrival = solver.model.first_state()
    window = solver.solve(arrival, 0.0, 0.5, True)
    agrees(solver, window, *dense(solver, arrival, window, np.zeros(len(solver.order))))
    assert solver.iterations == 0 and solver.factorisations == factorisations


def test_frequencies_eliminated_one_by_one_are_the_whole_window() -> None:
    """The short cut for waves that do not mix, against one elimination of all rows."""
    solver = solver_of("u_t + 0.3*u_x = 0.01*u_xx", LABELS)
    assert solver.in_space is not None
    quick = solver._by_components(solver.in_space, 0.5)
    rows, target = whitened_rows(solver.factors.standing(0.0, 0.5), np.zeros(len(solver.order)))
    whole = segment(rows, target, solver.inner, solver.state, solver.inner_std, solver.factors.end_map(0.0, 0.5))
    assert len(quick.interior.parts) == 3
    for name in ("slope", "offset", "transition", "shift"):
        ours, theirs = getattr(quick, name), getattr(whole, name)
        assert_allclose(ours, theirs, atol=1e-9 * (1.0 + np.abs(theirs).max()), err_msg=name)
    ours, theirs = quick.noise_root @ quick.noise_root.T, whole.noise_root @ whole.noise_root.T
    assert_allclose(ours, theirs, atol=1e-8 * np.abs(theirs).max())


def test_windows_of_one_length_share_all_but_what_labels_say() -> None:
    solver = solver_of("u_t + 0.3*u_x", LABELS)
    arrival = solver.model.first_state()
    first = solver.solve(arrival, 0.0, 0.5, True)
    second = solver.solve(first.start, 0.5, 1.0, False)
    assert first.link.slope is second.link.slope and first.link.message is not second.link.message
    assert solver.factorisations == 1
    solver.solve(first.start, 0.5, 0.75, False)
    assert solver.factorisations == 2


def test_the_order_of_weights_is_the_representations() -> None:
    solver = solver_of("u_tt = u_xx", LABELS)
    values = np.arange(float(len(solver.order)))
    weights = solver.in_order(values)
    assert_allclose(weights[solver.state], values[: len(solver.state)])
    assert_allclose(weights[solver.inner], values[len(solver.state) :])


# -- nonlinear windows


def test_newtons_end_is_a_maximum_of_the_density() -> None:
    """In units of the posterior's standard deviations nothing is left to gain, and the window is the linearised one."""
    solver = solver_of(ff.Equation("u_t + u*u_x = 0.05*u_xx", sigma=0.05), LABELS, LATER, modes=3)
    arrival = solver.model.first_state()
    window = solver.solve(arrival, 0.0, 0.5, True)
    mean, covariance = dense(solver, arrival, window, window.weights)
    sd = np.sqrt(np.diag(covariance))
    assert np.max(np.abs(mean - window.weights) / sd) < 0.1  # a further step would move it by next to nothing
    place = np.linalg.solve(arrival.root, window.weights[solver.state] - arrival.mean)
    best = solver.merit(window.groups, window.weights, place)
    rng = np.random.default_rng(0)
    root = np.linalg.cholesky(covariance)
    for _ in range(5):
        other = window.weights + 0.5 * root @ rng.standard_normal(len(mean))
        there = np.linalg.solve(arrival.root, other[solver.state] - arrival.mean)
        assert solver.merit(window.groups, other, there) > best
    assert solver.iterations > 0


def test_a_mean_path_is_followed_onto_the_equation() -> None:
    """Logistic growth from a given state: the weights land on the solution, whose form is known."""
    problem = ff.Problem("u_t = u*(1 - u)", {"t": ff.Interval(0, 2)}, {}, [ff.Initial("u = 0.1")])
    solver = WindowSolver(window_model(problem), 30)
    window = solver.solve(solver.model.first_state(), 0.0, 1.0, True)
    family = solver.factors.representation(0.0, 1.0).latents["u"].basis.families["t"]
    t = np.linspace(0, 1, 9)
    exact = 0.1 * np.exp(t) / (1.0 - 0.1 + 0.1 * np.exp(t))
    assert_allclose(family(t) @ window.weights, exact, atol=1e-7)


def test_a_density_that_is_nowhere_finite_is_one_line() -> None:
    seen = ff.Observations(t=[0.5], u=[1.0], sigma=1.0)
    problem = ff.Problem("u_t = log(-1 - u**2)", {"t": ff.Interval(0, 1)}, {}, [seen])
    solver = WindowSolver(window_model(problem), 30)
    with pytest.raises(
        ff.ProblemError, match=r"^expected a finite density near the data, received none at t = 0 .*; try"
    ):
        solver.solve(solver.model.first_state(), 0.0, 1.0, True)


@pytest.mark.parametrize(
    ("equation", "end"), [("u_t = -sqrt(u)", (np.sqrt(2) - 0.5) ** 2), ("u_t = 1/u", np.sqrt(6.0))], ids=["sqrt", "1/u"]
)
def test_equations_without_a_linear_part_at_zero_are_followed_from_their_start(equation: str, end: float) -> None:
    """Torricelli's law: the derivative of sqrt(u) has no value at the zero field, where equations are sized up."""
    problem = ff.Problem(equation, {"t": ff.Interval(0, 1)}, {}, [ff.Initial("u = 2", sigma=1e-3)])
    assert float(ff.solve(problem).predict(t=[1.0])["mean"][0]) == pytest.approx(end, abs=1e-5)


def test_the_merit_is_the_negative_log_density_up_to_a_constant() -> None:
    solver = solver_of("u_t + u*u_x", LABELS)
    groups = [*solver.factors.standing(0.0, 0.5), *solver.factors.own(0.0, 0.5, True)]
    rng = np.random.default_rng(1)
    weights, place = 0.1 * rng.standard_normal(len(solver.order)), rng.standard_normal(len(solver.state))
    inner = weights[solver.inner] / solver.inner_std
    misfits = np.concatenate([group.misfit(weights) for group in groups])
    total = 0.5 * (misfits @ misfits + inner @ inner + place @ place)
    assert solver.merit(groups, weights, place) == pytest.approx(total, rel=1e-12)
    assert solver.merit(groups, np.full_like(weights, np.nan), place) == np.inf
