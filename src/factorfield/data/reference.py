"""Reference solutions in float64, independent of the solver: exact translate and Strang splitting with exact flows."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import CubicSpline

Array = NDArray[np.float64]


def translate(u0: ArrayLike, shifts: ArrayLike, period: float = 1.0) -> Array:
    """u0(x - shift) for cell values u0 on a periodic axis, one row per shift.

    Cell values are joined by a periodic cubic spline: fourth order where the field is smooth, and a kink stays local
    (a Fourier shift would ring along the whole axis).
    """
    values = np.asarray(u0, float)
    cells = len(values)
    centres = (np.arange(cells) + 0.5) * (period / cells)
    spline = CubicSpline(np.append(centres, centres[0] + period), np.append(values, values[0]), bc_type="periodic")
    return np.stack(
        [spline(centres[0] + np.mod(centres - shift - centres[0], period)) for shift in np.atleast_1d(shifts)]
    )


def fisher_kpp(
    u0: ArrayLike, nu: float, rho: float, times: ArrayLike, period: float = 1.0, step: float = 5e-4
) -> Array:
    """u_t = nu u_xx + rho u (1-u), periodic, from cell values u0 at times[0]: rows u(times).

    Strang splitting of the exact diffusion (FFT) and the exact logistic flow, with steps `step` and `step`/2 combined
    by Richardson extrapolation: fourth order.
    """
    times = np.asarray(times, float)
    coarse = _strang(np.asarray(u0, float), nu, rho, times, period, step)
    fine = _strang(np.asarray(u0, float), nu, rho, times, period, 0.5 * step)
    return (4.0 * fine - coarse) / 3.0


def _strang(u: Array, nu: float, rho: float, times: Array, period: float, step: float) -> Array:
    wave = 2.0 * np.pi * np.fft.rfftfreq(len(u), d=period / len(u))
    rows = [u]
    for gap in np.diff(times):
        count = max(1, int(np.ceil(gap / step - 1e-9)))
        h = gap / count
        spread = np.exp(-nu * wave**2 * h)
        half, whole = np.exp(-0.5 * rho * h), np.exp(-rho * h)
        u = _logistic(u, half)
        for index in range(count):  # neighbouring half steps of the reaction are one whole step
            u = np.fft.irfft(spread * np.fft.rfft(u), len(u))
            u = _logistic(u, half if index == count - 1 else whole)
        rows.append(u)
    return np.stack(rows)


def _logistic(u: Array, decay: float) -> Array:
    """Exact flow of u' = rho u (1-u), decay = exp(-rho h)."""
    return u / (u + (1.0 - u) * decay)
