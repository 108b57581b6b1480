"""Schroedinger i h_t + h_xx / 2 + |h|^2 h = 0 as a real system for h = u + i v: a moving bright soliton.

Domain x in [-10, 10), t in [0, 1.5], periodic. Truth: exact. Solitons 1 / cosh side by side, one per period, add up to
a dnoidal wave (a Jacobi elliptic function), which the equation carries along like one of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem
from factorfield.problems._gallery import Array, Fields, start, truth_on

PERIOD = 20.0
WAVE = 2.0 * np.pi / PERIOD * 3.0  # a wave number that fits the period
SHIFTS = (-2.0 * PERIOD, -PERIOD, 0.0, PERIOD, 2.0 * PERIOD)  # of the solitons that reach the domain, to rounding
# twice the rate at which the phase turns: b^2 (2 - m) with the period pi K(m) / K(1 - m) and b = 2 K(1 - m) / pi, to
# first order in the smallness of exp(-period)
TURN = 1.0 + 24.0 * np.exp(-PERIOD)


def exact(p: Mapping[str, Array]) -> Fields:
    x, t = p["x"], p["t"]
    phase = WAVE * x + 0.5 * (TURN - WAVE**2) * t
    size = np.sum([1.0 / np.cosh(x + 1.0 + shift - WAVE * t) for shift in SHIFTS], axis=0)
    return {"u": size * np.cos(phase), "v": size * np.sin(phase)}


def problem(noise: float = 0.0, labels: int | None = None, seed: int = 0) -> Problem:
    space = {"x": Periodic(-0.5 * PERIOD, 0.5 * PERIOD)}
    size = " + ".join(f"1/cosh(x + {1.0 + shift!r})" for shift in SHIFTS).replace("+ -", "- ")
    texts = [f"u = cos({WAVE!r}*x)*({size})", f"v = sin({WAVE!r}*x)*({size})"]
    return Problem(
        ["u_t = -0.5*v_xx - (u**2 + v**2)*v", "v_t = 0.5*u_xx + (u**2 + v**2)*u"],
        {**space, "t": Interval(0.0, 1.5)}, {}, start(texts, exact, space, noise, labels, seed),
        truth=truth_on({"x": space["x"].cells(160), "t": np.linspace(0, 1.5, 31)}, exact), name="schroedinger",
    )  # fmt: skip
