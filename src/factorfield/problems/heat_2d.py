"""Heat in two dimensions u_t = nu (u_xx + u_yy): two patterns that fade at their own rates.

Domain x, y in [0, 1), t in [0, 1], periodic. Truth: exact. nu around 0.05.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem
from factorfield.problems._gallery import Array, Fields, start, truth_on
from factorfield.problems._initial_value import finite_number


def problem(nu: float = 0.02, noise: float = 0.0, labels: int | None = None, seed: int = 0) -> Problem:
    rate = 4.0 * np.pi**2 * finite_number(nu, "nu")

    def exact(p: Mapping[str, Array]) -> Fields:
        x, y, t = (2.0 * np.pi * p["x"], 2.0 * np.pi * p["y"], p["t"])
        return {"u": np.exp(-2.0 * rate * t) * np.sin(x) * np.cos(y) + 0.3 * np.exp(-4.0 * rate * t) * np.cos(2.0 * x)}

    space = {"x": Periodic(0.0, 1.0), "y": Periodic(0.0, 1.0)}
    cells = space["x"].cells(32)
    return Problem(
        "u_t = nu*(u_xx + u_yy)", {**space, "t": Interval(0.0, 1.0)}, {"nu": float(nu)},
        start(["u = sin(2*pi*x)*cos(2*pi*y) + 0.3*cos(4*pi*x)"], exact, space, noise, labels, seed),
        truth=truth_on({"x": cells, "y": cells, "t": np.linspace(0, 1, 11)}, exact), name="heat-2d",
    )  # fmt: skip
