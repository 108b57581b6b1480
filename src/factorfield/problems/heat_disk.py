"""Heat in a disk whose rim is kept cold: u_t = D (u_xx + u_yy), from the first Bessel mode.

Domain x, y in [-1, 1], t in [0, 1], the region x**2 + y**2 < 1. Truth: exact, exp(-D j^2 t) J_0(j r) with j the first
zero of J_0. The start is a table of it, or (noise > 0) noisy measurements all over the disk.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import special

from factorfield.problem.coefficients import Table
from factorfield.problem.domain import Interval
from factorfield.problem.problem import Boundary, Condition, Initial, Problem
from factorfield.problem.region import Region
from factorfield.problems._gallery import Array, Fields, measured, truth_on

ZERO = float(special.jn_zeros(0, 1)[0])


def exact(p: Mapping[str, Array], D: float = 0.1) -> Fields:
    return {"u": np.exp(-D * ZERO**2 * p["t"]) * special.j0(ZERO * np.hypot(p["x"], p["y"]))}


def problem(D: float = 0.1, noise: float = 0.0, labels: int = 200, seed: int = 0) -> Problem:
    line = np.linspace(-1.0, 1.0, 101)
    x, y = np.meshgrid(line, line, indexing="ij")
    parameters: dict[str, float | Table] = {"D": D}
    if noise > 0.0:
        rng = np.random.default_rng(seed)
        radius, angle = np.sqrt(rng.uniform(0.0, 1.0, labels)), rng.uniform(0.0, 2.0 * np.pi, labels)
        points = {"x": radius * np.cos(angle), "y": radius * np.sin(angle), "t": np.zeros(labels)}
        start: Condition = measured(points, "u", exact(points, D)["u"], noise, rng)
    else:
        parameters["f"] = Table(x=line, y=line, value=special.j0(ZERO * np.hypot(x, y)))
        start = Initial("u = f")
    axes = {"t": np.linspace(0.0, 1.0, 11), "x": np.linspace(-1, 1, 41), "y": np.linspace(-1, 1, 41)}
    return Problem(
        "u_t = D*(u_xx + u_yy)", {"x": Interval(-1.0, 1.0), "y": Interval(-1.0, 1.0), "t": Interval(0.0, 1.0)},
        parameters, [start, Boundary("u = 0")], truth=truth_on(axes, lambda p: exact(p, D)), name="heat-disk",
        region=Region("x**2 + y**2 < 1"),
    )  # fmt: skip
