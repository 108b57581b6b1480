"""A conductivity from temperatures: u_t = (D u_x)_x with the positive function D(x) unknown.

Domain x in [0, 1), t in [0, 0.4], periodic; the start is given, `labels` noisy measurements anywhere later. Truth:
D = 0.1 exp(0.4 sin(2 pi x)) (`conductivity`); u by Fourier differentiation on 128 points and a matrix exponential,
within 1e-9 of the same on 256.
"""

from __future__ import annotations

import numpy as np
from scipy import fft

from factorfield.problem.coefficients import Unknown
from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Initial, Problem
from factorfield.problems._gallery import Array, measured

CELLS, HORIZON = 128, 0.4


def conductivity(x: Array) -> Array:
    return 0.1 * np.exp(0.4 * np.sin(2.0 * np.pi * x))


def temperatures(times: Array, cells: int = CELLS) -> tuple[Array, Array]:
    """Positions, and the field (times, cells)."""
    x = np.arange(cells) / cells
    wave = 2j * np.pi * fft.fftfreq(cells, 1.0 / cells)
    wave[cells // 2] = 0.0
    slope = fft.ifft(wave[:, None] * fft.fft(np.eye(cells), axis=0), axis=0).real
    values, vectors = np.linalg.eig(slope @ (conductivity(x)[:, None] * slope))
    start = np.linalg.solve(vectors, np.sin(2.0 * np.pi * x) + 0.5 * np.cos(4.0 * np.pi * x))
    return x, np.real((np.exp(np.outer(times, values)) * start) @ vectors.T)


def problem(noise: float = 0.01, labels: int = 200, seed: int = 0) -> Problem:
    import xarray as xr

    t = np.linspace(0.0, HORIZON, 41)
    x, field = temperatures(t)
    rng = np.random.default_rng(seed)
    place, when = rng.integers(0, len(x), labels), rng.integers(1, len(t), labels)
    seen = measured({"x": x[place], "t": t[when]}, "u", field[when, place], noise, rng)
    return Problem(
        "u_t = D*u_xx + D_x*u_x", {"x": Periodic(0.0, 1.0), "t": Interval(0.0, HORIZON)},
        {"D": Unknown(0.1, 0.1, positive=True, over="x")},
        [Initial("u = sin(2*pi*x) + 0.5*cos(4*pi*x)"), seen],
        truth=xr.DataArray(field, dims=("t", "x"), coords={"t": t, "x": x}, name="u"), name="heat-conductivity",
    )  # fmt: skip
