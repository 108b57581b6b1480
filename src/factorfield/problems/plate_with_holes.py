"""The potential in a plate with two holes: given on three walls and on one hole, its flux on the others.

Region: [0, 2] x [0, 1] without disks of radius 0.2 about (0.6, 0.5) and 0.15 about (1.4, 0.4). Truth: exact,
x + log|z - z1| / 5 - log|z - z2| / 10, which is harmonic outside the holes. noise > 0 adds noisy measurements.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.problem.domain import Interval
from factorfield.problem.problem import Boundary, Problem
from factorfield.problem.region import Region
from factorfield.problems._gallery import Array, Fields, measured, truth_on

FIRST, SECOND = "((x - 0.6)**2 + (y - 0.5)**2)", "((x - 1.4)**2 + (y - 0.4)**2)"  # squared distances from the centres
FIELD = f"x + 0.1*log({FIRST}) - 0.05*log({SECOND})"
ALONG_X = f"(1 + 0.2*(x - 0.6)/{FIRST} - 0.1*(x - 1.4)/{SECOND})"
ALONG_Y = f"(0.2*(y - 0.5)/{FIRST} - 0.1*(y - 0.4)/{SECOND})"
INSIDE = f"{FIRST} > 0.04 and {SECOND} > 0.0225"


def exact(p: Mapping[str, Array]) -> Fields:
    first, second = (p["x"] - 0.6) ** 2 + (p["y"] - 0.5) ** 2, (p["x"] - 1.4) ** 2 + (p["y"] - 0.4) ** 2
    with np.errstate(divide="ignore"):
        return {"u": p["x"] + 0.1 * np.log(np.maximum(first, 1e-9)) - 0.05 * np.log(np.maximum(second, 1e-9))}


def problem(noise: float = 0.0, labels: int = 50, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0.0, 2.0, 2 * labels), rng.uniform(0.0, 1.0, 2 * labels)
    kept = np.flatnonzero(((x - 0.6) ** 2 + (y - 0.5) ** 2 > 0.04) & ((x - 1.4) ** 2 + (y - 0.4) ** 2 > 0.0225))[
        :labels
    ]
    points = {"x": x[kept], "y": y[kept]}
    seen = [measured(points, "u", exact(points)["u"], noise, rng)] if noise > 0.0 else []
    walls = [
        Boundary(f"u = {FIELD}", at={"x": 0.0}), Boundary(f"u = {FIELD}", at={"x": 2.0}),
        Boundary(f"u = {FIELD}", at={"y": 0.0}), Boundary(f"u_n = {ALONG_Y}", at={"y": 1.0}),
        Boundary(f"u = {FIELD}", at=f"{FIRST} < 0.05"),
        Boundary(f"u_n = -({ALONG_X}*(x - 1.4) + {ALONG_Y}*(y - 0.4))/0.15", at=f"{SECOND} < 0.03"),
    ]  # fmt: skip
    return Problem(
        "u_xx + u_yy = 0", {"x": Interval(0.0, 2.0), "y": Interval(0.0, 1.0)}, {}, [*walls, *seen],
        truth=truth_on({"x": np.linspace(0, 2, 81), "y": np.linspace(0, 1, 41)}, exact), name="plate-with-holes",
        region=Region(INSIDE),
    )  # fmt: skip
