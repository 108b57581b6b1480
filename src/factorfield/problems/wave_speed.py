"""The speed of a wave from a hundred measurements: u_tt = c^2 u_xx with c unknown.

Domain x in [0, 1], t in [0, 1], fixed ends, start known. Truth: u = sin(pi x) cos(c pi t), c = 1.3 by default.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.problem.domain import Interval
from factorfield.problem.problem import Initial, Problem, Unknown
from factorfield.problems._gallery import Array, Fields, scattered, truth_on, walls
from factorfield.problems._initial_value import finite_number


def problem(c: float = 1.3, noise: float = 0.02, labels: int = 100, seed: int = 0) -> Problem:
    speed = finite_number(c, "c")

    def exact(p: Mapping[str, Array]) -> Fields:
        return {"u": np.sin(np.pi * p["x"]) * np.cos(speed * np.pi * p["t"])}

    domain = {"x": Interval(0.0, 1.0), "t": Interval(0.0, 1.0)}
    start = [Initial("u = sin(pi*x)"), Initial("u_t = 0"), *walls("u = 0", x=(0.0, 1.0))]
    return Problem(
        "u_tt = c**2*u_xx", domain, {"c": Unknown(1.0, 0.5, positive=True)},
        [*start, *scattered(labels, exact, domain, noise, seed)],
        truth=truth_on({"x": np.linspace(0, 1, 101), "t": np.linspace(0, 1, 51)}, exact), name="wave-speed",
    )  # fmt: skip
