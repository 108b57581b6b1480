"""The noise of labels by MacKay's fixed point: one step, and where it rests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import factorfield as ff
from factorfield.methods.chain.chain import Chain
from factorfield.methods.noise import NOISE_ROUNDS, next_sigmas, of_windows
from factorfield.model.model import WindowModel
from factorfield.model.windowed import window_model
from factorfield.posterior.windows import ChainPosterior

COUNT, NOISE = 60, 0.1


def line(sigma: float | None = None) -> ff.Problem:
    """u_t = 0: one unknown number, measured sixty times. Everything about it is known in closed form."""
    rng = np.random.default_rng(0)
    t = rng.uniform(0.0, 1.0, COUNT)
    observed = ff.Observations(t=t, u=3.0 + NOISE * rng.standard_normal(COUNT), sigma=sigma)
    return ff.Problem("u_t = 0", {"t": ff.Interval(0, 1)}, {}, [observed])


def solved(model: WindowModel) -> tuple[WindowModel, ChainPosterior]:
    solution = Chain(adapt=False).run(model)
    assert isinstance(solution.model, WindowModel) and isinstance(solution.posterior, ChainPosterior)
    return solution.model, solution.posterior


def test_one_step_is_the_misfit_over_the_labels_less_the_directions_they_settle() -> None:
    model, posterior = solved(window_model(line()))
    assert [sigma.is_open for sigma in model.sigmas] == [False, True]
    y = model.problem.statements[1].target
    found = next_sigmas(model, of_windows(model, posterior))
    assert found is not None
    exact = np.sqrt(np.sum((y - y.mean()) ** 2) / (COUNT - 1))  # gamma: one direction, settled
    assert found[1].value == pytest.approx(exact, rel=1e-3)
    assert (found[1].rounds, found[1].origin, found[1].is_open) == (1, "estimated", True)
    assert found[0] is model.sigmas[0]


def test_steps_end_when_sigma_rests() -> None:
    model, posterior = solved(window_model(line()))
    while (sigmas := next_sigmas(model, of_windows(model, posterior))) is not None:
        model, posterior = solved(model.with_sigmas(sigmas))
    assert 1 <= model.sigmas[1].rounds < 5
    assert model.sigmas[1].typical == pytest.approx(np.std(model.problem.statements[1].target, ddof=1), rel=0.03)
    assert dict(model.settings["sigma"])["observations of u"] == model.sigmas[1].typical  # type: ignore[call-overload]


def test_rounds_are_limited() -> None:
    model, posterior = solved(window_model(line()))
    tired = replace(model, sigmas=(model.sigmas[0], replace(model.sigmas[1], rounds=NOISE_ROUNDS)))
    assert next_sigmas(tired, of_windows(tired, posterior)) is None


@pytest.mark.parametrize("options", [{"sigma": 0.5}])
def test_a_given_sigma_is_left_alone(options: dict[str, Any]) -> None:
    model, posterior = solved(window_model(line(**options)))
    assert next_sigmas(model, of_windows(model, posterior)) is None


def test_labels_without_any_noise_keep_a_smallest_sigma() -> None:
    problem = line()
    exact = problem.replace(conditions=[ff.Observations(t=np.linspace(0, 1, 20), u=np.full(20, 3.0))])
    model, posterior = solved(window_model(exact))
    found = next_sigmas(model, of_windows(model, posterior))
    assert found is not None and found[1].value == pytest.approx(1e-5 * 3.0, rel=1e-6)


def test_groups_have_noise_of_their_own() -> None:
    rng = np.random.default_rng(1)
    t = rng.uniform(0.0, 1.0, 200)
    groups = [ff.Observations(t=t, u=3.0 + noise * rng.standard_normal(200)) for noise in (0.02, 0.5)]
    solution = ff.solve(ff.Problem("u_t = 0", {"t": ff.Interval(0, 1)}, {}, groups))
    assert solution.model is not None
    quiet, loud = (sigma.typical for sigma in solution.model.sigmas[1:])
    assert 0.7 < quiet / 0.02 < 1.4 and 0.7 < loud / 0.5 < 1.4


def test_one_block_estimates_noise_by_the_same_rule() -> None:
    """A straight line through two walls, one of them unknown: the misfit over the labels less one direction."""
    rng = np.random.default_rng(2)
    x = rng.uniform(0.1, 1.0, COUNT)
    y = 2.0 * x + NOISE * rng.standard_normal(COUNT)
    wall = ff.Boundary("u = 0", at={"x": 0})
    problem = ff.Problem("u_xx = 0", {"x": ff.Interval(0, 1)}, {}, [wall, ff.Observations(x=x, u=y)])
    solution = ff.solve(problem)
    assert solution.model is not None
    slope = float(x @ y / (x @ x))
    exact = np.sqrt(np.sum((y - slope * x) ** 2) / (COUNT - 1))
    assert solution.model.sigmas[-1].typical == pytest.approx(exact, rel=0.03)
    assert (solution.model.sigmas[-1].origin, solution.settings["method"]) == ("estimated", "joint")
