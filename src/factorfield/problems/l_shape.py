"""Laplace's equation in an L: at its re-entrant corner the field goes like r^(2/3), and its gradient is infinite.

Region: the square [-1, 1]^2 without its upper right quarter. Truth: exact, r^(2/3) sin(2/3 angle), which is zero on the
two walls of the corner. noise > 0 adds noisy measurements at random points.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.problem.domain import Interval
from factorfield.problem.problem import Boundary, Problem
from factorfield.problem.region import Region
from factorfield.problems._gallery import Array, Fields, measured, truth_on

CORNERS = [(-1.0, -1.0), (1.0, -1.0), (1.0, 0.0), (0.0, 0.0), (0.0, 1.0), (-1.0, 1.0)]
RADIUS = "sqrt(x**2 + y**2)"  # the angle is measured from the diagonal that halves the corner
WALL = f"u = exp(2/3*log({RADIUS}))*cos(4/3*atan((x - y)/(sqrt(2)*{RADIUS} - x - y)))"


def exact(p: Mapping[str, Array]) -> Fields:
    angle = np.mod(np.arctan2(p["y"], p["x"]) - 0.5 * np.pi, 2.0 * np.pi)
    return {"u": np.hypot(p["x"], p["y"]) ** (2.0 / 3.0) * np.sin(2.0 / 3.0 * angle)}


def problem(noise: float = 0.0, labels: int = 50, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(-1.0, 1.0, (2, 2 * labels))
    kept = np.flatnonzero((x < 0.0) | (y < 0.0))[:labels]
    points = {"x": x[kept], "y": y[kept]}
    seen = [measured(points, "u", exact(points)["u"], noise, rng)] if noise > 0.0 else []
    line = np.linspace(-1.0, 1.0, 61)
    return Problem(
        "u_xx + u_yy = 0", {"x": Interval(-1.0, 1.0), "y": Interval(-1.0, 1.0)}, {}, [Boundary(WALL), *seen],
        truth=truth_on({"x": line, "y": line}, exact), name="l-shape", region=Region.polygon(CORNERS),
    )  # fmt: skip
