"""A reaction coefficient from sensors: -u_xx + k u = f on [0, 1] with k unknown (jNO's Bayesian tutorial).

Stationary, zero at both ends, f = (pi^2 + 2) sin(pi x); sensor noise 0.02. Truth: u = sin(pi x), k = 2. Reported there:
k = 1.94 +- 0.05 by four NUTS chains over a frozen network.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.problem.domain import Interval
from factorfield.problem.problem import Equation, Problem, Unknown
from factorfield.problems._gallery import Array, Fields, scattered, truth_on, walls


def exact(p: Mapping[str, Array]) -> Fields:
    return {"u": np.sin(np.pi * p["x"])}


def problem(noise: float = 0.02, labels: int = 50, seed: int = 0, sigma: float | None = None) -> Problem:
    """`sigma` is that of the equation (their physics scale is 0.05); None: the default, nearly exact."""
    domain = {"x": Interval(0.0, 1.0)}
    return Problem(
        Equation("-u_xx + k*u = (pi**2 + 2)*sin(pi*x)", sigma=sigma), domain, {"k": Unknown(1.0, 1.0)},
        [*walls("u = 0", x=(0.0, 1.0)), *scattered(labels, exact, domain, noise, seed)],
        truth=truth_on({"x": np.linspace(0, 1, 201)}, exact), name="reaction-coefficient",
    )  # fmt: skip
