"""The second way to unknown coefficients: held while the rest is solved, then moved where the chain wants them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import factorfield as ff
from factorfield.methods.chain.passes import filter_between, smooth
from factorfield.methods.chain.profile import _profile, is_lost, profile_search
from factorfield.methods.chain.solver import WindowSolver
from factorfield.model.windowed import window_model
from factorfield.solution import Status

T = np.linspace(0.0, 2.0, 21)
RATE = 1.2


def growth(mean: float = 0.8, std: float = 0.4, sigma: float = 0.02) -> WindowSolver:
    """u' = a u from exact values of exp(1.2 t): one coefficient, found by anyone who searches."""
    problem = ff.Problem(
        ff.Equation("u_t = a*u", sigma=1e-3), {"t": ff.Interval(0, 2)}, {"a": ff.Unknown(mean, std)},
        [ff.Observations(t=T, u=np.exp(RATE * T), sigma=sigma)],
    )  # fmt: skip
    return WindowSolver(window_model(problem, degree=10), 30)


def test_coefficients_are_held_at_a_place() -> None:
    solver = growth()
    levels = {}
    for place in (1.0, RATE, 1.4):
        found = _profile(solver.model, np.array([place]), 1e-6, 30)
        assert found is not None
        path, levels[place] = found
        belief = path.smoothed(len(path.links) - 1)
        assert belief.mean[solver.model.field_states] == pytest.approx(place, abs=2e-3)
    assert levels[RATE] < levels[1.0] and levels[RATE] < levels[1.4]


def test_a_place_from_which_the_path_runs_away_is_none() -> None:
    """u' = a u^2 from 1 blows up at t = 1 / a."""
    problem = ff.Problem(
        "u_t = a*u**2", {"t": ff.Interval(0, 2)}, {"a": ff.Unknown(0.1, 5.0)},
        [ff.Initial("u = 1", sigma=1e-3)],
    )  # fmt: skip
    model = window_model(problem, degree=8)
    assert _profile(model, np.array([0.1]), 1e-3, 10) is not None
    assert _profile(model, np.array([2.0]), 1e-3, 10) is None


def test_the_search_climbs_to_the_most_probable_coefficients() -> None:
    solver = growth()
    told: list[str] = []
    path = profile_search(solver, 1e-6, lambda text, _: told.append(text))
    assert path is not None and told[0] == "coefficients, step 1"
    status, _ = smooth(solver, path, None)
    belief = path.smoothed(len(path.links) - 1)
    at = solver.model.field_states
    assert status == "converged" and abs(belief.mean[at] - RATE) < 4 * belief.std[at] < 0.05
    assert not is_lost(solver, path, status)


def test_a_path_far_from_the_data_or_without_an_end_is_lost() -> None:
    solver = growth()
    path = filter_between(solver, (0.0, 1.0, 2.0), [], False)
    status, _ = smooth(solver, path, None)
    assert not is_lost(solver, path, status)
    assert is_lost(solver, path, Status("max-iterations"))
    certain = growth(mean=0.5, std=1e-4, sigma=0.01)  # a prior that does not let it go where the data are
    path = filter_between(certain, (0.0, 1.0, 2.0), [], False)
    status, _ = smooth(certain, path, None)
    assert is_lost(certain, path, Status("converged"))


def test_a_search_that_filtering_loses_is_found_by_profiles() -> None:
    """An epidemic that has hardly begun sends the rates anywhere; the profile finds the way."""
    t = np.linspace(0.0, 40.0, 21)
    from scipy.integrate import solve_ivp

    run = solve_ivp(lambda _, y: [0.5 * y[0] * (1 - y[0] / 500.0)], (0, 40), [1.0], t_eval=t, rtol=1e-10, atol=1e-10)
    values = run.y[0] + 5.0 * np.random.default_rng(0).standard_normal(len(t))
    problem = ff.Problem(
        "u_t = r*u*(1 - u/k)", {"t": ff.Interval(0, 40)},
        {"r": ff.Unknown(1.0, 0.5, positive=True), "k": ff.Unknown(300.0, 200.0, positive=True)},
        [ff.Initial("u = 1", sigma=0.05), ff.Observations(t=t, u=values, sigma=5.0)],
    )  # fmt: skip
    found: dict[str, Any] = dict(ff.solve(problem).parameters)
    assert abs(found["r"]["mean"] - 0.5) < 4 * found["r"]["std"] < 0.1
    assert abs(found["k"]["mean"] - 500.0) < 4 * found["k"]["std"] < 50.0
