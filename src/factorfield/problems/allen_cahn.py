"""Allen-Cahn u_t = nu u_xx + 5 u - 5 u^3: plateaus at -1 and 1 with thin layers between them.

Domain x in [-1, 1), t in [0, 1], periodic, from x^2 cos(pi x), which has a kink at the seam. Truth: exponential
integrator (ETDRK4) on 512 cells, step 1e-3, from the kink's waves as a grid 255 times finer tells them: cells alone
would be 1e-4 off near it. Twice the cells and half the step change it by less than 1e-9 from t = 0.02 on. nu = 1e-4 is
the literature's; the default 1e-2 has wider layers.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.data.reference import coarsened, exponential_integrator, laplace_symbol
from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem
from factorfield.problems._gallery import Array, Fields, start, truth_on
from factorfield.problems._initial_value import finite_number

CELLS, FINER = 512, 255


def problem(nu: float = 1e-2, noise: float = 0.0, labels: int | None = None, seed: int = 0) -> Problem:
    width = finite_number(nu, "nu")
    space = {"x": Periodic(-1.0, 1.0)}
    x, t = space["x"].cells(CELLS), np.linspace(0.0, 1.0, 51)

    def initial(p: Mapping[str, Array]) -> Fields:
        return {"u": p["x"] ** 2 * np.cos(np.pi * p["x"])}

    linear = width * laplace_symbol((CELLS,), 2.0) + 5.0
    begin = coarsened(initial({"x": space["x"].cells(FINER * CELLS)})["u"], CELLS)
    solved = exponential_integrator(begin, linear, lambda u: -5.0 * u**3, t)
    solved[0] = initial({"x": x})["u"]
    return Problem(
        "u_t = nu*u_xx + 5*u - 5*u**3", {**space, "t": Interval(0.0, 1.0)}, {"nu": width},
        start(["u = x**2*cos(pi*x)"], initial, space, noise, labels, seed),
        truth=truth_on({"x": x[::2], "t": t}, lambda _: {"u": solved[:, ::2]}), name="allen-cahn",
    )  # fmt: skip
