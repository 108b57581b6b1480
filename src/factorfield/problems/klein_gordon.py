"""Klein-Gordon u_tt = u_xx - u^2 + f with a source and moving ends (an example of DeepXDE's).

Domain x in [-1, 1], t in [0, 10]. Truth: exact, u = x cos(t); the source is what this takes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.problem.domain import Interval
from factorfield.problem.problem import Boundary, Problem
from factorfield.problems._gallery import Array, Fields, start, truth_on


def exact(p: Mapping[str, Array]) -> Fields:
    return {"u": p["x"] * np.cos(p["t"])}


def problem(noise: float = 0.0, labels: int | None = None, seed: int = 0) -> Problem:
    space = {"x": Interval(-1.0, 1.0)}
    ends = [Boundary("u = -cos(t)", at={"x": -1.0}), Boundary("u = cos(t)", at={"x": 1.0})]
    return Problem(
        "u_tt = u_xx - u**2 - x*cos(t) + x**2*cos(t)**2", {**space, "t": Interval(0.0, 10.0)}, {},
        [*start(["u = x", "u_t = 0"], exact, space, noise, labels, seed), *ends],
        truth=truth_on({"x": np.linspace(-1, 1, 81), "t": np.linspace(0, 10, 101)}, exact), name="klein-gordon",
    )  # fmt: skip
