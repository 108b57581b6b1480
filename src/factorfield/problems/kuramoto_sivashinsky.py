"""Kuramoto-Sivashinsky u_t + u u_x + u_xx + u_xxxx = 0: long waves grow, short ones are damped, on the way to chaos.

Domain x in [0, 22), t in [0, 10], periodic, short enough for errors not to have grown. Truth: exponential integrator
(ETDRK4) on 128 cells, step 1e-2.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.data.reference import exponential_integrator, laplace_symbol
from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem
from factorfield.problems._gallery import Array, Fields, start, truth_on

CELLS, LENGTH = 128, 22.0


def initial(p: Mapping[str, Array]) -> Fields:
    angle = 2.0 * np.pi * p["x"] / LENGTH
    return {"u": np.cos(angle) + 0.5 * np.sin(2.0 * angle)}


def problem(noise: float = 0.0, labels: int | None = None, seed: int = 0) -> Problem:
    space = {"x": Periodic(0.0, LENGTH)}
    x, t = space["x"].cells(CELLS), np.linspace(0.0, 10.0, 41)
    square = laplace_symbol((CELLS,), LENGTH)
    wave = 2j * np.pi * np.fft.rfftfreq(CELLS, d=LENGTH / CELLS)

    def steepen(u: Array) -> Array:
        return np.fft.irfft(-0.5 * wave * np.fft.rfft(u**2), CELLS)

    solved = exponential_integrator(initial({"x": x})["u"], -square - square**2, steepen, t, step=1e-2)
    texts = ["u = cos(2*pi*x/22) + 0.5*sin(4*pi*x/22)"]
    return Problem(
        "u_t + u*u_x + u_xx + u_xxxx = 0", {**space, "t": Interval(0.0, 10.0)}, {},
        start(texts, initial, space, noise, labels, seed),
        truth=truth_on({"x": x, "t": t}, lambda _: {"u": solved}), name="kuramoto-sivashinsky",
    )  # fmt: skip
