"""Gray-Scott u_t = 4e-4 u_xx - u v^2 + F (1 - u), v_t = 2e-4 v_xx + u v^2 - (F + k) v: a spot of v that feeds on u.

Domain x in [0, 1), t in [0, 40], periodic, from a smooth spot. Truth: 96 points in space with derivatives by FFT,
scipy's DOP853 at rtol 1e-10 in time, accurate to about 1e-9. Good values: F = 0.04, k = 0.06 and near them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem
from factorfield.problems._gallery import Array, Fields, start, truth_on
from factorfield.problems._initial_value import finite_number

CELLS, HORIZON = 96, 40.0
SPREAD = np.array([[4e-4], [2e-4]])  # of u and v
TEXTS = ["u = 1 - 0.5*exp(-3*(1 + cos(2*pi*x)))", "v = 0.25*exp(-3*(1 + cos(2*pi*x)))"]


def initial(p: Mapping[str, Array]) -> Fields:
    spot = np.exp(-3.0 * (1.0 + np.cos(2.0 * np.pi * p["x"])))
    return {"u": 1.0 - 0.5 * spot, "v": 0.25 * spot}


def fields(feed: float, kill: float, x: Array, t: Array, rtol: float = 1e-10) -> Array:
    """u and v on equally spaced cells x at times t: (2, times, cells)."""
    from scipy.integrate import solve_ivp

    cells = len(x)
    square = -((2.0 * np.pi * np.fft.rfftfreq(cells, d=1.0 / cells)) ** 2)

    def slope(_: float, y: Array) -> Array:
        u, v = both = y.reshape(2, cells)
        spread = np.fft.irfft(SPREAD * square * np.fft.rfft(both), cells)
        eaten = u * v**2
        return np.asarray(spread + np.stack([feed * (1.0 - u) - eaten, eaten - (feed + kill) * v])).ravel()

    first = np.concatenate(list(initial({"x": x}).values()))
    run = solve_ivp(slope, (t[0], t[-1]), first, "DOP853", t_eval=t, rtol=rtol, atol=0.01 * rtol)
    return np.asarray(run.y.reshape(2, cells, -1).transpose(0, 2, 1))


@lru_cache(maxsize=8)
def truth(feed: float, kill: float) -> Array:
    return fields(feed, kill, Periodic(0.0, 1.0).cells(CELLS), np.linspace(0.0, HORIZON, 41))


def problem(
    F: float = 0.04, k: float = 0.06, noise: float = 0.0, labels: int | None = None, seed: int = 0
) -> Problem:  # fmt: skip
    feed, kill = finite_number(F, "F"), finite_number(k, "k")
    space = {"x": Periodic(0.0, 1.0)}
    x, t = space["x"].cells(CELLS), np.linspace(0.0, HORIZON, 41)
    u, v = truth(feed, kill)
    return Problem(
        ["u_t = 4e-4*u_xx - u*v**2 + F*(1 - u)", "v_t = 2e-4*v_xx + u*v**2 - (F + k)*v"],
        {**space, "t": Interval(0.0, HORIZON)}, {"F": feed, "k": kill},
        start(TEXTS, initial, space, noise, labels, seed),
        truth=truth_on({"x": x, "t": t}, lambda _: {"u": u, "v": v}), name="gray-scott",
    )  # fmt: skip
