"""Fisher-KPP in two dimensions, u_t = nu (u_xx + u_yy) + rho u (1 - u): uneven patches spread and saturate at 1.

Domain x, y in [0, 1), t in [0, 1], periodic. Truth: Strang splitting with Richardson extrapolation on 64 x 64 cells
(`data.reference.fisher_kpp`, step 1e-2), accurate to about 1e-8. Good values: nu = 0.005, rho = 5; 8 frequencies
per axis hold the field to about 4e-6.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.data.reference import fisher_kpp
from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem
from factorfield.problems._gallery import Array, Fields, start, truth_on
from factorfield.problems._initial_value import finite_number

CELLS, STEP = 64, 1e-2
TEXT = "u = 0.3 + 0.15*sin(2*pi*x)*cos(2*pi*y) + 0.1*cos(4*pi*x + 2*pi*y)"


def initial(p: Mapping[str, Array]) -> Fields:
    x, y = 2.0 * np.pi * p["x"], 2.0 * np.pi * p["y"]
    return {"u": 0.3 + 0.15 * np.sin(x) * np.cos(y) + 0.1 * np.cos(2.0 * x + y)}


def problem(
    nu: float = 0.005, rho: float = 5.0, noise: float = 0.0, labels: int | None = None, seed: int = 0
) -> Problem:  # fmt: skip
    spread, growth = finite_number(nu, "nu"), finite_number(rho, "rho")
    space = {"x": Periodic(0.0, 1.0), "y": Periodic(0.0, 1.0)}
    cells, t = space["x"].cells(CELLS), np.linspace(0.0, 1.0, 51)
    x, y = np.meshgrid(cells, cells, indexing="ij")
    solved = fisher_kpp(initial({"x": x, "y": y})["u"], spread, growth, t, step=STEP)
    return Problem(
        "u_t = nu*(u_xx + u_yy) + rho*u*(1 - u)", {**space, "t": Interval(0.0, 1.0)}, {"nu": spread, "rho": growth},
        start([TEXT], initial, space, noise, labels, seed),
        truth=truth_on({"x": cells, "y": cells, "t": t}, lambda _: {"u": solved}), name="fisher-kpp-2d",
    )  # fmt: skip
