"""The passes over a path of windows: forward with and without given edges, backward, and Newton's steps."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.messages.elimination import backward_messages, propagate
from factorfield.messages.gaussian import Message
from factorfield.methods.chain.passes import (
    LINEAR,
    Path,
    filter_along,
    filter_between,
    filter_windows,
    newton_step,
    refilter,
    smooth,
)
from factorfield.methods.chain.solver import WindowSolver
from factorfield.model.windowed import window_model
from factorfield.posterior.stored import StoredBeliefs

X = np.arange(16) / 16
LABELS = ff.Observations(x=X, t=0.0, u=np.sin(2 * np.pi * X), sigma=0.05)
LATER = ff.Observations(x=[0.2, 0.7], t=[0.3, 0.9], u=[0.5, -0.5], sigma=0.1)
EDGES = (0.0, 0.25, 0.5, 1.0)


def solver_of(equation: Any, *conditions: Any, **parameters: Any) -> WindowSolver:
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    model = window_model(ff.Problem(equation, domain, parameters, list(conditions)), modes={"x": 2}, degree=8)
    return WindowSolver(model, 30)


def heat(*more: Any) -> WindowSolver:
    return solver_of("u_t = 0.05*u_xx", LABELS, *more)


def burgers(*more: Any) -> WindowSolver:
    return solver_of(ff.Equation("u_t + u*u_x = 0.1*u_xx", sigma=0.01), LABELS, *more)


def speed() -> WindowSolver:
    """Later data inform the unknown speed: filtering alone does not settle the path.

    The source makes the equation nonlinear, so that the speed is a weight, and keeps sin(2 pi (x - b t)) a solution.
    """
    x, t = np.tile(X, 4), np.repeat([0.25, 0.5, 0.75, 1.0], 16)
    seen = ff.Observations(x=x, t=t, u=np.sin(2 * np.pi * (x - 0.6 * t)), sigma=0.05)
    equation = "u_t + b*u_x = u*(1 - u**2 - u_x**2/(4*pi**2))"
    return solver_of(equation, LABELS, seen, b=ff.Unknown(0.5, 0.3))


# -- forward


def test_a_path_between_edges_propagates_from_window_to_window() -> None:
    solver = heat()
    path = filter_between(solver, EDGES, [], False)
    assert path.edges == list(EDGES) and len(path.links) == len(path.groups) == len(path.centres) == 3
    arrival = solver.model.first_state()
    for start, link in zip(path.starts, path.links, strict=True):
        known = arrival * link.message
        assert_allclose(start.mean, known.mean, atol=1e-12)
        assert_allclose(start.std, known.std, rtol=1e-10)
        arrival = propagate(start, link)


def test_windows_are_found_that_meet_the_tolerance_and_fill_the_horizon() -> None:
    strict, loose = (filter_windows(heat(), tolerance, [], False, None) for tolerance in (1e-9, 1e-2))
    for path in (strict, loose):
        assert path.edges[0] == 0.0 and path.edges[-1] == 1.0 and np.all(np.diff(path.edges) > 0.0)
    assert len(strict.links) > len(loose.links)
    assert filter_windows(burgers(), 1e-9, [], False, None).rejected > 0


def test_progress_reports_every_window() -> None:
    told: list[tuple[str, float]] = []
    path = filter_windows(heat(), 1e-7, [], False, lambda text, share: told.append((text, share)))
    assert len(told) == len(path.links) and told[-1][0] == f"window {len(path.links)}, t = 1"


def test_found_windows_and_the_same_windows_given_lead_to_the_same_bits() -> None:
    found = filter_windows(burgers(), 1e-5, [], False, None)
    given = filter_between(burgers(), found.edges, [], False)
    for one, other in zip(found.starts, given.starts, strict=True):
        assert np.array_equal(one.mean, other.mean) and np.array_equal(one.root, other.root)


def test_a_path_ends_where_more_modes_are_needed_and_may_be_had() -> None:
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    steep = ff.Problem("u_t + u*u_x = 0.02*u_xx", domain, {}, [ff.Initial("u = sin(2*pi*x)")])
    model = replace(window_model(steep, modes={"x": 4}), growing=("x",))
    for path in (
        filter_windows(WindowSolver(model, 30), 1e-5, [], True, None),
        filter_between(WindowSolver(model, 30), (0.0, 0.25, 0.5, 1.0), [], True),
    ):
        assert path.unresolved == "x" and path.edges[-1] < 1.0
    held = filter_between(WindowSolver(model, 30), (0.0, 0.25), [], False)
    assert held.unresolved is None


def test_known_windows_without_new_conditions_are_passed_on_as_they_are() -> None:
    before = heat()
    known = filter_between(before, EDGES, [], False)
    enlarged = before.model.problem.replace(conditions=[*before.model.problem.conditions, LATER])
    after = WindowSolver(replace(before.model, edges=EDGES).with_condition(enlarged), 30)
    path = filter_between(after, EDGES, [], False, (before.model, known))
    assert path.links[0] is known.links[0]  # nothing was measured there
    assert path.links[1] is not known.links[1] and path.links[2] is not known.links[2]
    fresh = filter_between(WindowSolver(after.model, 30), EDGES, [], False)
    for one, other in zip(path.starts, fresh.starts, strict=True):
        assert_allclose(one.mean, other.mean, atol=1e-9)
        assert_allclose(one.std, other.std, rtol=1e-8)


def test_a_path_along_given_weights_is_linearised_there() -> None:
    solver = burgers(LATER)
    path = filter_between(solver, EDGES, [], False)
    along = filter_along(solver, EDGES, path.centres)
    for one, other in zip(along.centres, path.centres, strict=True):
        assert np.array_equal(one, other)
    rows = [
        solver.eliminate(g, w, a, b) for g, w, a, b in zip(path.groups, path.centres, EDGES, EDGES[1:], strict=False)
    ]
    for link, wanted in zip(along.links, rows, strict=True):
        assert_allclose(link.slope, wanted.slope, atol=1e-12 * (1 + np.abs(wanted.slope).max()))


# -- backward


def test_a_linear_path_is_exact_at_once() -> None:
    solver = heat(LATER)
    path = filter_between(solver, EDGES, [], False)
    status, moves = smooth(solver, path, None)
    assert (str(status), status.help, moves) == ("converged", LINEAR, [])
    assert len(path.futures) == 3 and not len(path.futures[-1].rows) and len(path.futures[0].rows)


def test_mean_and_covariance_are_continuous_where_windows_meet() -> None:
    solver = heat(LATER)
    path = filter_between(solver, EDGES, [], False)
    smooth(solver, path, None)
    width = len(solver.state)
    for index in range(2):
        left, right = path.smoothed(index), path.smoothed(index + 1)
        end = solver.factors.end_map(path.edges[index], path.edges[index + 1])[:, solver.order]
        assert_allclose(end @ left.mean, right.mean[:width], atol=1e-8)
        root, ours = end @ left.root, right.root[:width]
        assert_allclose(root @ root.T, ours @ ours.T, atol=1e-8)


def test_later_measurements_inform_the_start() -> None:
    precise = ff.Observations(x=[0.2, 0.7], t=[0.3, 0.9], u=[0.5, -0.5], sigma=0.002)
    solver = heat(precise)
    path = filter_between(solver, EDGES, [], False)
    smooth(solver, path, None)
    width = len(solver.state)
    before, after = filter_between(heat(), EDGES, [], False).starts[0].std, path.smoothed(0).std[:width]
    assert np.all(after < before * (1.0 + 1e-6)) and np.any(after < 0.7 * before)


def test_nonlinear_windows_without_later_data_are_settled_forward() -> None:
    solver = burgers()
    path = filter_between(solver, EDGES, [], False)
    status, moves = smooth(solver, path, None)
    assert (str(status), status.help, moves) == ("converged", "every window settled", [])


def test_a_smoothed_path_is_a_fixed_point_of_newtons_steps() -> None:
    solver = speed()
    path = filter_between(solver, EDGES, [], False)
    told: list[str] = []
    status, moves = smooth(solver, path, lambda text, _: told.append(text))
    assert status == "converged" and moves[-1] < 1e-3 and len(told) == len(moves) > 1
    belief = path.smoothed(2)
    at = len(solver.state) - 1
    assert abs(belief.mean[at] - 0.6) < 4 * belief.std[at] < 0.1
    merit = solver.path_merit(path.groups, lambda i: solver.in_order(path.smoothed(i).mean))
    assert newton_step(solver, path, first=False) < 1e-2
    again = solver.path_merit(path.groups, lambda i: solver.in_order(path.smoothed(i).mean))
    assert again == pytest.approx(merit, abs=1e-3)


def test_relinearising_at_the_same_weights_changes_nothing() -> None:
    solver = speed()
    path = filter_between(solver, EDGES, [], False)
    smooth(solver, path, None)
    before = [path.smoothed(index) for index in range(3)]
    refilter(solver, path)
    path.futures = backward_messages(path.links)
    for index, known in enumerate(before):
        assert np.array_equal(path.smoothed(index).mean, known.mean)
        assert np.array_equal(path.smoothed(index).root, known.root)


def test_a_limit_of_iterations_is_said() -> None:
    solver = speed()
    solver.most_iterations = 1
    path = filter_between(solver, EDGES, [], False)
    status, moves = smooth(solver, path, None)
    assert status == "max-iterations" and len(moves) == 1 and "still moves the field by" in status.help


def test_a_path_that_runs_away_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = speed()
    path = filter_between(solver, EDGES, [], False)

    def infinite(*_: Any) -> Any:
        raise np.linalg.LinAlgError("infinite rows")

    monkeypatch.setattr(solver, "eliminate", infinite)
    with pytest.raises(ff.ProblemError, match=r"^expected a path that the data lead to, received .*; try starts=5"):
        smooth(solver, path, None)


# -- in a file


def test_a_stored_path_keeps_its_beliefs_in_the_file_and_hears_nothing_from_later(tmp_path: File) -> None:
    solver = heat()
    stored = filter_between(solver, EDGES, StoredBeliefs(tmp_path / "windows.h5", len(solver.state)), False)
    plain = filter_between(heat(), EDGES, [], False)
    assert isinstance(stored, Path) and stored.centres == []
    for index in range(3):
        assert_allclose(stored.starts[index].mean, plain.starts[index].mean, atol=1e-14)
        assert_allclose(stored.starts[index].root, plain.starts[index].root, atol=1e-14)
    smooth(solver, stored, None)
    assert all(isinstance(m, Message) and not len(m.rows) for m in stored.futures)
    assert isinstance(stored.starts, StoredBeliefs)
    stored.starts.close()
