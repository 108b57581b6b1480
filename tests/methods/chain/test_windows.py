"""How long a window is: halving, doubling and patience, and the error they are judged by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import factorfield as ff
from factorfield.errors import ProblemError
from factorfield.messages.gaussian import Belief
from factorfield.methods.chain.solver import WindowSolver
from factorfield.methods.chain.windows import (
    IN_A_ROW,
    MOST_HALVINGS,
    MOST_SHRINKING,
    MOST_WINDOWS,
    WindowControl,
    last_polynomials,
    start_bias,
    truncation_error,
    window_error,
)
from factorfield.model.windowed import window_model

HORIZON = ff.Interval(2.0, 6.0)


def control(level: int = 0, quiet: float = 0.01, patient: bool = False) -> WindowControl:
    return WindowControl(HORIZON, level, quiet, patient)


def ends(judged: WindowControl, errors: list[float]) -> list[float]:
    """The ends that are proposed, one for each error that is answered."""
    found = []
    for error in errors:
        found.append(judged.end)
        judged.judge(error)
    return found


def test_a_window_that_is_too_long_is_halved_until_it_is_not() -> None:
    one = control()
    assert ends(one, [5.0, 3.0, 0.5]) == [6.0, 4.0, 3.0]
    assert (one.accepted, one.rejected, one.fraction, one.start) == (1, 2, 0.25, 3.0) and not one.done


def test_an_error_of_exactly_the_tolerance_is_accepted() -> None:
    one = control()
    assert one.judge(1.0) and one.done and (one.accepted, one.rejected) == (1, 0)


def test_windows_are_cells_of_a_binary_grid_and_the_last_one_ends_at_the_horizon() -> None:
    odd = WindowControl(ff.Interval(0.0, 0.3), 0, 0.01, False)
    rng, edges = np.random.default_rng(0), [0.0]
    while not odd.done:
        end = odd.end
        if odd.judge(float(rng.choice([0.001, 0.5, 2.0], p=[0.2, 0.6, 0.2]))):
            edges.append(end)
    assert edges[-1] == 0.3 and np.all(np.diff(edges) > 0.0)
    levels = np.log2(0.3 / np.diff(edges))
    np.testing.assert_allclose(levels, np.round(levels), atol=1e-9)


def test_a_quiet_window_is_doubled_where_the_grid_allows_it() -> None:
    one = control(level=3)
    assert ends(one, [1e-3, 1e-3, 1e-3]) == [2.5, 3.0, 4.0]  # two cells of an eighth, then a quarter
    assert one.end == 6.0  # and the rest in one
    busy = control(level=3)
    assert ends(busy, [0.5] * 4) == [2.5, 3.0, 3.5, 4.0]


def test_after_a_refusal_a_much_smaller_error_is_needed_to_double() -> None:
    one = control(level=3)
    assert ends(one, [5e-3, 5e-3, 7.0]) == [2.5, 3.0, 4.0]  # doubled, and refused
    assert ends(one, [5e-3, 5e-3, 1e-4]) == [3.5, 4.0, 4.5]  # as quiet as before: not doubled again
    assert ends(one, [1e-4, 0.5]) == [5.0, 6.0]  # far quieter


def test_patience_tries_a_longer_window_every_few_windows() -> None:
    patient, steady = control(level=5, patient=True), control(level=5)
    cell = 4.0 / 32
    lengths = np.diff([2.0, *ends(patient, [0.2] * 6)])
    assert list(lengths / cell) == [1, 1, 1, 1, 2, 2]
    assert list(np.diff([2.0, *ends(steady, [0.2] * 6)]) / cell) == [1] * 6
    worried = control(level=5, patient=True)
    assert list(np.diff([2.0, *ends(worried, [0.7] * 6)]) / cell) == [1] * 6  # the error leaves no room


def test_a_refusal_doubles_the_patience() -> None:
    one = control(level=6, patient=True)
    waits, waited, before = [], 0, 0
    while len(waits) < 3:
        long = one.end - one.start > 1.5 * 4.0 / 64
        one.judge(9.0 if long else 0.2)
        if long:
            waits.append(waited)
            waited = 0
        else:
            waited += 1
        assert (before := before + 1) < 100
    assert waits == [4, 8, 16]


def test_too_many_halvings_are_one_line() -> None:
    one = control()
    with pytest.raises(ProblemError) as error:
        for _ in range(MOST_HALVINGS + 1):
            one.judge(np.inf)
    text = str(error.value)
    assert text.startswith(
        "expected windows of at least 2^-30 of the horizon, received a solution that changes too fast"
    )
    assert "at t = 2: it may blow up" in text and "; try " in text and "\n" not in text
    assert one.rejected == MOST_HALVINGS + 1 and one.accepted == 0


def test_too_many_windows_are_seen_long_before_they_are_solved() -> None:
    one = control(level=20)
    told = rf"expected a horizon of at most {MOST_WINDOWS} windows, received windows of .* up to t = 2\.000"
    with pytest.raises(ProblemError, match=told):
        for _ in range(MOST_WINDOWS):
            assert one.judge(0.5)
    assert one.accepted < 200


# -- the error of a window


def solved(problem: ff.Problem, upper: float, **options: Any) -> tuple[WindowSolver, Belief, Any]:
    model = window_model(problem, **options)
    solver = WindowSolver(model, 30)
    arrival = model.first_state()
    return solver, arrival, solver.solve(arrival, 0.0, upper, True)


def ring(equation: str, *conditions: Any) -> ff.Problem:
    return ff.Problem(equation, {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 4)}, {}, list(conditions))


X = np.arange(16) / 16
LABELS = ff.Observations(x=X, t=0.0, u=np.sin(2 * np.pi * X), sigma=0.01)


def test_the_last_polynomials_are_the_last_two_of_every_field() -> None:
    system = ring("u_t + u_x", LABELS).replace(equation=["u_t = v_x", "v_t = u_x"])
    model = window_model(system, modes={"x": 1}, degree=6)
    found = last_polynomials(model)
    assert list(found) == [*range(15, 21), *range(36, 42)]
    unknown = ring("u_t + u_x", LABELS).replace(equation="u_t + b*u_x", parameters={"b": ff.Unknown(1.0, 0.1)})
    last = last_polynomials(window_model(unknown, modes={"x": 1}, degree=6))
    assert list(last) == list(range(15, 21))  # a coefficient has none


def test_the_error_falls_with_the_length_of_a_window() -> None:
    """Polynomials of degree 10 on a wave: shorter by half, smaller by about 2^9."""
    errors = []
    for length in (1.0, 0.5, 0.25):
        solver, arrival, window = solved(ring("u_t + u_x", LABELS), length, modes={"x": 1}, degree=10)
        errors.append(window_error(solver, 1e-7, arrival, window, 0.0))
        assert errors[-1] == truncation_error(solver.model, 1e-7, window)  # of first order: nothing else to judge
    assert errors[0] > 1.0 > errors[2]
    assert np.all(np.log2(np.divide(errors[:-1], errors[1:])) > 5.0)


def test_the_error_is_in_tolerances_of_the_field() -> None:
    solver, _, window = solved(ring("u_t + u_x", ff.Initial("u = 50*sin(2*pi*x)")), 1.0, modes={"x": 1}, degree=10)
    last = np.abs(window.weights[last_polynomials(solver.model)]).max()
    found = truncation_error(solver.model, 1e-5, window)
    assert found == pytest.approx(last / (1e-5 * solver.model.scale), rel=1e-12)


def test_a_window_that_is_not_finite_is_too_long() -> None:
    solver, _, window = solved(ring("u_t + u_x", LABELS), 0.25, modes={"x": 1})
    broken = replace(window, weights=np.full_like(window.weights, np.nan))
    assert truncation_error(solver.model, 1e-7, broken) == np.inf


def test_noisy_walls_leave_windows_as_long_as_they_are() -> None:
    """The error of a wall is a smooth function of time, which polynomials follow as they follow the field."""
    counts = []
    for sigma in (None, 0.1):
        walls = [ff.Boundary("u = 0", at={"x": at}, sigma=sigma) for at in (0, 1)]
        domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 4)}
        problem = ff.Problem("u_t = 0.1*u_xx", domain, {}, [ff.Initial("u = sin(pi*x)", sigma=0.1), *walls])
        counts.append(ff.solve(problem, method="chain", modes={"x": 12}).trace["windows"])
    assert counts[0] == counts[1]


def test_an_equation_of_second_order_moves_the_start_of_too_long_a_window() -> None:
    problem = ring("u_tt = u_xx", LABELS, ff.Initial("u_t = 0", sigma=0.05))
    biases = []
    for length in (4.0, 0.125):
        solver, arrival, window = solved(problem, length, modes={"x": 2}, degree=12)
        biases.append(start_bias(solver, 1e-7, arrival, window))
    assert biases[0] > 10.0 and biases[1] < 0.5
    assert window_error(solver, 1e-7, arrival, window, 0.0) >= biases[1]


def test_windows_that_become_ever_shorter_are_given_up_after_a_few() -> None:
    """As before a blow-up: every window is half as long as the last one."""
    one, count = control(level=2), 0
    with pytest.raises(ProblemError, match="windows that need not become ever shorter"):
        for error in [0.5, *[2.0, 0.5] * 100]:
            one.judge(error)
            count += 1
    assert count <= 2 * MOST_SHRINKING + 2


def test_windows_may_become_shorter_slowly_or_longer_again() -> None:
    slowly, again = control(level=6), control(level=6, quiet=0.1)
    for _ in range(MOST_SHRINKING + 4):  # a pitch that rises
        for error in [*[0.5] * (IN_A_ROW + 1), 2.0]:
            slowly.judge(error)
    for error in [0.5, 0.5, *[2.0, 0.05, 0.05, 0.5, 0.5, 0.5] * (MOST_SHRINKING + 4)]:
        again.judge(error)
    assert min(slowly.rejected, again.rejected) > MOST_SHRINKING
