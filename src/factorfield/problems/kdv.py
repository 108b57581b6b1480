"""Korteweg-de Vries u_t + 6 u u_x + u_xxx = 0: one soliton keeps its shape.

Domain x in [-10, 10), t in [0, 1], periodic. Truth: exact on the line, (c/2) sech^2(sqrt(c)/2 (x + 2 - c t)), whose
tails at the ends are below 1e-6 for c = 4.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem
from factorfield.problems._gallery import Array, Fields, start, truth_on


def exact(p: Mapping[str, Array]) -> Fields:
    return {"u": 2.0 / np.cosh(p["x"] + 2.0 - 4.0 * p["t"]) ** 2}


def problem(noise: float = 0.0, labels: int | None = None, seed: int = 0) -> Problem:
    space = {"x": Periodic(-10.0, 10.0)}
    return Problem(
        "u_t + 6*u*u_x + u_xxx = 0", {**space, "t": Interval(0.0, 1.0)}, {},
        start(["u = 2/cosh(x + 2)**2"], exact, space, noise, labels, seed),
        truth=truth_on({"x": space["x"].cells(200), "t": np.linspace(0, 1, 51)}, exact), name="kdv",
    )  # fmt: skip
