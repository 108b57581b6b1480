"""Waves of a round drum: u_tt = u_xx + u_yy, clamped at its rim, from rest.

Domain x, y in [-1, 1], t in [0, 1.5], the region x**2 + y**2 < 1. Truth: exact, the mode J_1(j r) cos(angle) cos(j t)
with j the first zero of J_1. The start is a table of it, or (noise > 0) noisy measurements all over the drum.
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

ZERO, HORIZON = float(special.jn_zeros(1, 1)[0]), 1.5


def exact(p: Mapping[str, Array]) -> Fields:
    radius = np.hypot(p["x"], p["y"])
    mode = special.j1(ZERO * radius) * p["x"] / np.where(radius > 0.0, radius, 1.0)
    return {"u": mode * np.cos(ZERO * p["t"])}


def problem(noise: float = 0.0, labels: int = 200, seed: int = 0) -> Problem:
    line = np.linspace(-1.0, 1.0, 101)
    x, y = np.meshgrid(line, line, indexing="ij")
    parameters: dict[str, float | Table] = {}
    if noise > 0.0:
        rng = np.random.default_rng(seed)
        radius, angle = np.sqrt(rng.uniform(0.0, 1.0, labels)), rng.uniform(0.0, 2.0 * np.pi, labels)
        points = {"x": radius * np.cos(angle), "y": radius * np.sin(angle), "t": np.zeros(labels)}
        start: Condition = measured(points, "u", exact(points)["u"], noise, rng)
    else:
        parameters["f"] = Table(x=line, y=line, value=exact({"x": x, "y": y, "t": np.zeros(x.shape)})["u"])
        start = Initial("u = f")
    axes = {"t": np.linspace(0.0, HORIZON, 13), "x": np.linspace(-1, 1, 41), "y": np.linspace(-1, 1, 41)}
    return Problem(
        "u_tt = u_xx + u_yy", {"x": Interval(-1.0, 1.0), "y": Interval(-1.0, 1.0), "t": Interval(0.0, HORIZON)},
        parameters, [start, Initial("u_t = 0"), Boundary("u = 0")], truth=truth_on(axes, exact), name="wave-disk",
        region=Region("x**2 + y**2 < 1"),
    )  # fmt: skip
