"""Schroedinger i h_t + h_xx / 2 + |h|^2 h = 0 as a real system for h = u + i v: a moving bright soliton.

Domain x in [-10, 10), t in [0, 1.5], periodic. Truth: exact on the line, h = sech(x + 1 - t) exp(i x), whose tails at
the ends are below 3e-4.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem
from factorfield.problems._gallery import Array, Fields, start, truth_on

WAVE = np.pi / 10.0 * 3.0  # a wave number that fits the period


def exact(p: Mapping[str, Array]) -> Fields:
    x, t = p["x"], p["t"]
    phase = WAVE * x + 0.5 * (1.0 - WAVE**2) * t
    size = 1.0 / np.cosh(x + 1.0 - WAVE * t)
    return {"u": size * np.cos(phase), "v": size * np.sin(phase)}


def problem(noise: float = 0.0, labels: int | None = None, seed: int = 0) -> Problem:
    space = {"x": Periodic(-10.0, 10.0)}
    texts = [f"u = cos({WAVE!r}*x)/cosh(x + 1)", f"v = sin({WAVE!r}*x)/cosh(x + 1)"]
    return Problem(
        ["u_t = -0.5*v_xx - (u**2 + v**2)*v", "v_t = 0.5*u_xx + (u**2 + v**2)*u"],
        {**space, "t": Interval(0.0, 1.5)}, {}, start(texts, exact, space, noise, labels, seed),
        truth=truth_on({"x": space["x"].cells(160), "t": np.linspace(0, 1.5, 31)}, exact), name="schroedinger",
    )  # fmt: skip
