"""A source from its response: u_xx + f = 0 on [0, 1] with the function f(x) unknown, u measured with noise.

Zero at both ends; `labels` measurements of u at random points. Truth: f = 4 sin(2 pi x) + 2 x (`source`), u exact.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.problem.coefficients import Unknown
from factorfield.problem.domain import Interval
from factorfield.problem.problem import Problem
from factorfield.problems._gallery import Array, Fields, scattered, truth_on, walls


def source(x: Array) -> Array:
    return 4.0 * np.sin(2.0 * np.pi * x) + 2.0 * x


def exact(p: Mapping[str, Array]) -> Fields:
    x = p["x"]
    return {"u": np.sin(2.0 * np.pi * x) / np.pi**2 - x**3 / 3.0 + x / 3.0}


def problem(noise: float = 1e-3, labels: int = 60, seed: int = 0) -> Problem:
    domain = {"x": Interval(0.0, 1.0)}
    return Problem(
        "u_xx + f = 0", domain, {"f": Unknown(0.0, 5.0, over="x")},
        [*walls("u = 0", x=(0.0, 1.0)), *scattered(labels, exact, domain, noise, seed)],
        truth=truth_on({"x": np.linspace(0, 1, 201)}, exact), name="poisson-source",
    )  # fmt: skip
