"""Poisson's equation in one dimension with a known source, zero on the boundary.

Stationary: no time axis. Truth: exact, a product of sines. noise > 0 adds noisy measurements at random points.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.problem.domain import Interval
from factorfield.problem.problem import Problem
from factorfield.problems._gallery import Array, Fields, scattered, truth_on, walls


def exact(p: Mapping[str, Array]) -> Fields:
    return {"u": np.sin(np.pi * p["x"])}


def problem(noise: float = 0.0, labels: int = 50, seed: int = 0) -> Problem:
    domain = {"x": Interval(0.0, 1.0)}
    measured = scattered(labels, exact, domain, noise, seed) if noise > 0.0 else []
    return Problem(
        "u_xx = -pi**2*sin(pi*x)", domain, {},
        [*walls("u = 0", x=(0.0, 1.0)), *measured],
        truth=truth_on({"x": np.linspace(0, 1, 201)}, exact), name="poisson",
    )  # fmt: skip
