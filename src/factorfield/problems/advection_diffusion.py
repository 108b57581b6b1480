"""Advection-diffusion u_t + (1 + 0.5 sin(2 pi x)) u_x = nu u_xx: a speed that varies in space.

Domain x in [0, 1), t in [0, 1], periodic. Truth: 128 Fourier modes in space, scipy's DOP853 at rtol 1e-10 in time.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.errors import expected
from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem
from factorfield.problems._gallery import Array, Fields, start, truth_on
from factorfield.problems._initial_value import finite_number

CELLS = 128


def initial(p: Mapping[str, Array]) -> Fields:
    return {"u": np.exp(np.sin(2.0 * np.pi * p["x"]))}


def problem(nu: float = 0.01, noise: float = 0.0, labels: int | None = None, seed: int = 0) -> Problem:
    from scipy.integrate import solve_ivp

    spread = finite_number(nu, "nu")
    space = {"x": Periodic(0.0, 1.0)}
    x, t = space["x"].cells(CELLS), np.linspace(0.0, 1.0, 51)
    wave = 2j * np.pi * np.fft.rfftfreq(CELLS, d=1.0 / CELLS)
    speed = 1.0 + 0.5 * np.sin(2.0 * np.pi * x)

    def slope(_: float, u: Array) -> Array:
        hat = np.fft.rfft(u)
        return np.asarray(spread * np.fft.irfft(wave**2 * hat, CELLS) - speed * np.fft.irfft(wave * hat, CELLS))

    found = solve_ivp(slope, (0.0, 1.0), initial({"x": x})["u"], "DOP853", t_eval=t, rtol=1e-10, atol=1e-12)
    if not found.success:
        raise expected("a nu that the reference solver can follow", nu, "nu=0.02")
    solved = found.y.T
    return Problem(
        "u_t + (1 + 0.5*sin(2*pi*x))*u_x = nu*u_xx", {**space, "t": Interval(0.0, 1.0)}, {"nu": spread},
        start(["u = exp(sin(2*pi*x))"], initial, space, noise, labels, seed),
        truth=truth_on({"x": x, "t": t}, lambda _: {"u": solved}), name="advection-diffusion",
    )  # fmt: skip
