"""Solutions are taken up again: with more data, or to a later end of time, in one session or through a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import factorfield as ff

WALLS = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
LATER = ff.Observations(x=[0.1, 0.5], t=[0.3, 0.7], u=[0.27, 0.70], sigma=0.02)
GRID = {"x": np.linspace(0, 1, 7)[1:-1], "t": np.linspace(0, 1, 6)}


def rod(equation: str = "u_t = nu*u_xx", **changes: Any) -> ff.Problem:
    """Its start measured without a sigma, so that an estimated noise level has to be kept."""
    x = np.linspace(0.02, 0.98, 24)
    seen = np.sin(np.pi * x) + 0.02 * np.random.default_rng(0).standard_normal(24)
    known: dict[str, Any] = {
        "parameters": {"nu": 0.05}, "conditions": [*WALLS, ff.Observations(x=x, t=0.0, u=seen)], **changes,
    }  # fmt: skip
    return ff.Problem(equation, {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}, **known)


def drifting() -> ff.Problem:
    """A wall that is off by a smooth function of time, whose length is a quarter of the horizon unless told."""
    return rod(conditions=[ff.Initial("u = 0"), ff.Boundary("u = 0", at={"x": 0}, sigma=0.1), WALLS[1]])


def unknown() -> ff.Problem:
    return rod(
        parameters={"nu": ff.Unknown(0.1, 0.05, positive=True)},
        conditions=[*WALLS, ff.Initial("u = sin(pi*x)"), LATER],
    )


def growing() -> ff.Problem:
    """Nonlinear, its rate unknown."""
    seen = ff.Observations(x=[0.1, 0.5], t=[0.3, 0.7], u=[0.6, 0.35], sigma=0.05)
    return ff.Problem(
        "u_t = 0.01*u_xx + r*u*(1 - u)", {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)},
        {"r": ff.Unknown(2.0, 1.0, positive=True)}, [ff.Initial("u = 0.3 + 0.2*cos(2*pi*x)", sigma=0.01), seen],
    )  # fmt: skip


PROBLEMS = {"linear": rod, "drifting": drifting, "unknown": unknown, "growing": growing}
SEEN = {"linear": [0.86, 0.61], "drifting": [0.01, -0.02], "unknown": [0.86, 0.61], "growing": [0.19, 0.49]}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_file_keeps_what_it_takes_to_condition_and_to_extend(name: str, tmp_path: Path) -> None:
    """Every choice is made again from the same numbers, so not a bit differs."""
    solution = ff.solve(PROBLEMS[name]())
    solution.save(tmp_path / "run.nc")
    loaded = ff.load(tmp_path / "run.nc")
    more = ff.Observations(x=0.4, t=[0.2, 0.9], u=SEEN[name], sigma=0.05)
    for here, there in (
        (solution.condition(more), loaded.condition(more)), (solution.extend(1.5), loaded.extend(1.5)),
    ):  # fmt: skip
        ours, theirs = here.predict(**GRID), there.predict(**GRID)
        np.testing.assert_array_equal(ours["mean"], theirs["mean"])
        np.testing.assert_array_equal(ours["std"], theirs["std"])
        assert here.status == there.status == "converged"


def test_data_and_a_later_end_may_come_in_any_order() -> None:
    more = ff.Observations(x=0.4, t=[0.2, 0.9], u=SEEN["drifting"], sigma=0.05)
    solution = ff.solve(drifting())
    first, last = solution.extend(1.5).condition(more), solution.condition(more).extend(1.5)
    ours, theirs = (each.predict(x=GRID["x"], t=[0.5, 1.2]) for each in (first, last))
    assert float((np.abs(ours["mean"] - theirs["mean"]) / theirs["std"]).max()) < 1e-3  # windows may differ
    np.testing.assert_allclose(ours["std"], theirs["std"], rtol=1e-3, atol=2e-5)  # the equation's own sigma is 1e-5


@pytest.mark.parametrize("name", PROBLEMS)
def test_extending_is_solving_to_the_later_end(name: str) -> None:
    problem = PROBLEMS[name]()
    solution = ff.solve(problem)
    longer = solution.extend(2.0)
    windows = len(solution.settings["windows"])
    assert longer.settings["windows"][:windows] == solution.settings["windows"]  # those are kept
    lengths = [ff.Boundary("u = 0", at={"x": 0}, sigma=0.1, length=0.25)] if name == "drifting" else []
    conditions = [*lengths, *(c for c in problem.conditions if not (lengths and getattr(c, "sigma", None)))]
    at_once = ff.solve(problem.replace(domain={**problem.domain, "t": ff.Interval(0, 2)}, conditions=conditions))
    grid = {"x": GRID["x"], "t": np.linspace(0.2, 2, 7)}
    ours, theirs = longer.predict(**grid), at_once.predict(**grid)
    assert float((np.abs(ours["mean"] - theirs["mean"]) / theirs["std"]).max()) < 0.05  # other windows, other modes
    np.testing.assert_allclose(ours["std"], theirs["std"], rtol=0.05)
    for key, found in longer.parameters.items():
        assert found["mean"] == pytest.approx(solution.parameters[key]["mean"], abs=0.02 * found["std"])


def test_a_plane_in_a_file_can_be_conditioned(tmp_path: Path) -> None:
    walls = [ff.Boundary("u = 0", at={axis: end}) for axis in "xy" for end in (0, 1)]
    problem = ff.Problem("u_xx + u_yy = -1", {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}, {}, walls)
    solution = ff.solve(problem, "tree", cells={"x": 16, "y": 16})
    solution.save(tmp_path / "run.nc")
    more = ff.Observations(x=[0.3], y=[0.4], u=[0.07], sigma=0.01)
    grid = {"x": GRID["x"], "y": GRID["x"]}
    ours, theirs = (each.condition(more).predict(**grid) for each in (solution, ff.load(tmp_path / "run.nc")))
    np.testing.assert_allclose(ours["mean"], theirs["mean"], atol=1e-9)
    np.testing.assert_allclose(ours["std"], theirs["std"], rtol=1e-6)
    with pytest.raises(ff.ProblemError, match="time axis"):
        solution.extend(2.0)


def test_what_cannot_be_extended_is_told() -> None:
    solution = ff.solve(rod(), modes={"x": 4})
    with pytest.raises(ff.ProblemError, match="a later end of time than 1"):
        solution.extend(1.0)
    with pytest.raises(ff.ProblemError, match=r"one by joint; try ff\.solve with the longer"):
        ff.solve(rod(conditions=[*WALLS, ff.Initial("u = 0")]), "joint", modes={"x": 4, "t": 4}).extend(2.0)
    moving = rod(parameters={"nu": ff.Unknown(0.1, 0.05, over="t")}, conditions=[*WALLS, LATER])
    with pytest.raises(ff.ProblemError, match="nu over t"):
        ff.solve(moving, modes={"x": 4}).extend(2.0)
