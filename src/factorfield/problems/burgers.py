"""Viscous Burgers u_t + u u_x = nu u_xx: a sine that steepens into a shock of width about nu.

Domain x in [-1, 1), t in [0, 1], periodic (the solution is odd, so its values at -1 and 0 stay 0 as in the literature's
version with fixed ends). Truth: the Cole-Hopf formula by Gauss-Hermite quadrature. Good values: nu from 0.01/pi (the
literature's, a thin shock) to 0.3/pi.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.errors import expected
from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem
from factorfield.problems._gallery import Array, Fields, start, truth_on
from factorfield.problems._initial_value import finite_number

NODES = 200


def cole_hopf(x: Array, t: Array, nu: float) -> Array:
    """u from -sin(pi x): a mean of -sin(pi y) over y around x, weighted by exp(-cos(pi y) / (2 pi nu))."""
    nodes, weights = np.polynomial.hermite.hermgauss(NODES)
    y = x[..., None] - np.sqrt(4.0 * nu * t)[..., None] * nodes
    height = -np.cos(np.pi * y) / (2.0 * np.pi * nu)
    share = weights * np.exp(height - height.max(axis=-1, keepdims=True))
    return -np.sum(share * np.sin(np.pi * y), axis=-1) / np.sum(share, axis=-1)


def problem(nu: float = 0.1 / np.pi, noise: float = 0.0, labels: int | None = None, seed: int = 0) -> Problem:
    viscosity = finite_number(nu, "nu")
    if viscosity <= 0.0:
        raise expected("nu > 0", nu, "nu=0.03")

    def exact(p: Mapping[str, Array]) -> Fields:
        return {"u": cole_hopf(p["x"], p["t"], viscosity)}

    space = {"x": Periodic(-1.0, 1.0)}
    return Problem(
        "u_t + u*u_x = nu*u_xx", {**space, "t": Interval(0.0, 1.0)}, {"nu": viscosity},
        start(["u = -sin(pi*x)"], exact, space, noise, labels, seed),
        truth=truth_on({"x": Periodic(-1.0, 1.0).cells(200), "t": np.linspace(0, 1, 51)}, exact), name="burgers",
    )  # fmt: skip
