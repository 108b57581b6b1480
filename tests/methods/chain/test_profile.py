"""The second way to unknown coefficients: held while the rest is solved, then moved where the chain wants them."""

from __future__ import annotations

import numpy as np
import pytest

import factorfield as ff
from factorfield.methods.chain import chain
from factorfield.methods.chain.passes import filter_between, smooth
from factorfield.methods.chain.profile import _profile, is_lost, profile_search
from factorfield.methods.chain.solver import WindowSolver
from factorfield.model.model import WindowModel
from factorfield.model.windowed import window_model
from factorfield.solution import Status

T = np.linspace(0.0, 2.0, 21)
RATE = 1.2


def growth(mean: float = 0.8, std: float = 0.4, sigma: float = 0.02) -> WindowSolver:
    """u' = a u (1 - u / 20) from exact values for a = 1.2: one coefficient, found by anyone who searches."""
    problem = ff.Problem(
        ff.Equation("u_t = a*u*(1 - u/20)", sigma=1e-3), {"t": ff.Interval(0, 2)}, {"a": ff.Unknown(mean, std)},
        [ff.Observations(t=T, u=20.0 / (1.0 + 19.0 * np.exp(-RATE * T)), sigma=sigma)],
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


def test_a_lost_search_goes_along_the_profile_and_the_model_remembers_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if filtering had lost the rate: smoothing begins where the profile leads, and does so again, bit for bit."""
    verdicts = iter([True, False])
    problem = growth().model.problem
    with monkeypatch.context() as patch:
        patch.setattr(chain, "is_lost", lambda *_: next(verdicts))
        solution = ff.solve(problem, degree=10)
    assert solution.status == "converged" and isinstance(solution.model, WindowModel) and solution.model.path
    direct = ff.solve(problem, degree=10)
    assert isinstance(direct.model, WindowModel) and not direct.model.path
    found, known = solution.parameters["a"], direct.parameters["a"]
    assert abs(found["mean"] - known["mean"]) < 0.05 * known["std"]
    assert found["std"] == pytest.approx(known["std"], rel=0.05)
    again = ff.solve(solution.model, adapt=False)
    t = np.linspace(0.0, 2.0, 7)
    assert np.array_equal(again.predict(t=t)["mean"], solution.predict(t=t)["mean"])
    assert np.array_equal(again.predict(t=t)["std"], solution.predict(t=t)["std"])
    assert again.parameters == solution.parameters


def test_a_profile_that_leads_nowhere_leaves_the_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain, "is_lost", lambda *_: True)
    monkeypatch.setattr(chain, "profile_search", lambda *_: None)
    solution = ff.solve(growth().model.problem, degree=10)
    assert isinstance(solution.model, WindowModel) and not solution.model.path
    assert solution.parameters["a"]["mean"] == pytest.approx(RATE, abs=0.01)
