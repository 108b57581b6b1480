"""Reference solutions in float64, independent of the solver.

Advection: exact translate of the initial cells. Semilinear equations u_t = L u + N(u) on periodic grids in one or two
dimensions: `fisher_kpp` by Strang splitting with both flows exact, anything else by `exponential_integrator` (ETDRK4,
Cox and Matthews 2002, coefficients by contour integrals as Kassam and Trefethen 2005 propose).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
CONTOUR_POINTS = 32


def translate(u0: ArrayLike, shifts: ArrayLike, period: float = 1.0, dtype: type = np.float64) -> Array:
    """u0(x - shift) for cell values on a periodic axis: u0 (..., cells), result (shifts, ..., cells).

    Cells are joined by the periodic cubic spline: fourth order where the field is smooth, and a kink stays local (a
    Fourier shift would ring along the whole axis). In B-spline form a shift is four neighbours times four numbers;
    `dtype` is that of this last step and of the result.
    """
    values = np.asarray(u0, float)
    cells = values.shape[-1]
    angle = 2.0 * np.pi * np.fft.rfftfreq(cells)
    spline = np.fft.irfft(np.fft.rfft(values) / ((2.0 + np.cos(angle)) / 3.0), cells)
    padded: Array = np.concatenate([spline[..., -2:], spline, spline, spline[..., :2]], axis=-1).astype(dtype)
    steps = np.mod(-np.atleast_1d(np.asarray(shifts, float)) * cells / period, cells)  # cells to look ahead
    result: Array = np.empty((len(steps), *values.shape), dtype)
    term: Array = np.empty(values.shape, dtype)
    for frame, step in zip(result, steps, strict=True):
        whole = int(step) % cells
        f = step - int(step)
        taps = ((1.0 - f) ** 3, 3.0 * f**3 - 6.0 * f**2 + 4.0, -3.0 * f**3 + 3.0 * f**2 + 3.0 * f + 1.0, f**3)
        weights = [dtype(tap / 6.0) for tap in taps]
        np.multiply(padded[..., whole + 1 : whole + 1 + cells], weights[0], out=frame)
        for neighbour in (1, 2, 3):
            start = whole + 1 + neighbour
            np.multiply(padded[..., start : start + cells], weights[neighbour], out=term)
            frame += term
    return result


def fisher_kpp(
    u0: ArrayLike, nu: float, rho: float, times: ArrayLike, period: float | tuple[float, ...] = 1.0, step: float = 1e-3
) -> Array:
    """u_t = nu Laplace(u) + rho u (1-u), periodic in one or two dimensions, from u0 at times[0]: result (times, ...).

    Strang splitting of the exact diffusion (FFT) and the exact logistic flow, with steps `step` and `step`/2 combined
    by Richardson extrapolation: fourth order.
    """
    times = np.asarray(times, float)
    start = np.asarray(u0, float)
    decay = nu * laplace_symbol(start.shape, period)
    coarse = _strang(start, decay, rho, times, step)
    fine = _strang(start, decay, rho, times, 0.5 * step)
    return (4.0 * fine - coarse) / 3.0


def coarsened(u: ArrayLike, cells: int) -> Array:
    """What `cells` hold of the waves of a periodic field on cells that are finer by an odd number: its values instead
    would take a kink's other waves for these."""
    fine = np.asarray(u, float)
    waves, finer = np.fft.rfft(fine), len(fine) // cells
    waves[cells // 2 :] = 0.0
    return np.asarray(np.fft.irfft(waves, len(fine))[finer // 2 :: finer], float)


def laplace_symbol(shape: tuple[int, ...], period: float | tuple[float, ...]) -> Array:
    """Minus the squared wave number on the grid of `rfftn`."""
    periods = (period,) * len(shape) if isinstance(period, int | float) else period
    waves = [2.0 * np.pi * np.fft.fftfreq(n, d=p / n) for n, p in zip(shape, periods, strict=True)]
    waves[-1] = 2.0 * np.pi * np.fft.rfftfreq(shape[-1], d=periods[-1] / shape[-1])
    mesh = np.meshgrid(*waves, indexing="ij")
    return -np.sum([w**2 for w in mesh], axis=0)


def _strang(u: Array, decay: Array, rho: float, times: Array, step: float) -> Array:
    rows = [u]
    for gap in np.diff(times):
        count = max(1, int(np.ceil(gap / step - 1e-9)))
        h = gap / count
        spread = np.exp(decay * h)
        half, whole = np.exp(-0.5 * rho * h), np.exp(-rho * h)
        u = _logistic(u, half)
        for index in range(count):  # neighbouring half steps of the reaction are one whole step
            u = np.fft.irfftn(spread * np.fft.rfftn(u), u.shape, axes=range(u.ndim))
            u = _logistic(u, half if index == count - 1 else whole)
        rows.append(u)
    return np.stack(rows)


def _logistic(u: Array, decay: float) -> Array:
    """Exact flow of u' = rho u (1-u), decay = exp(-rho h)."""
    return u / (u + (1.0 - u) * decay)


def exponential_integrator(
    u0: ArrayLike, linear: NDArray[np.complexfloating] | Array, nonlinear: Callable[[Array], Array], times: ArrayLike,
    step: float = 1e-3,
) -> Array:  # fmt: skip
    """u_t = L u + N(u) with L diagonal in Fourier space (`linear`, on the grid of rfftn): result (times, ...)."""
    times = np.asarray(times, float)
    u = np.asarray(u0, float)
    axes = tuple(range(u.ndim))
    hat = np.fft.rfftn(u)
    rows = [u]

    def force(state: NDArray[np.complex128]) -> NDArray[np.complex128]:
        return np.fft.rfftn(nonlinear(np.fft.irfftn(state, u.shape, axes=axes)))

    known: dict[float, tuple[NDArray[np.complex128], ...]] = {}
    for gap in np.diff(times):
        count = max(1, int(np.ceil(gap / step - 1e-9)))
        h = float(gap / count)
        key = round(h, 15)
        if key not in known:
            known[key] = _etdrk4(np.asarray(linear, np.complex128) * h, h)
        whole, half, q, f1, f2, f3 = known[key]
        for _ in range(count):
            n0 = force(hat)
            a = half * hat + q * n0
            na = force(a)
            b = half * hat + q * na
            nb = force(b)
            c = half * a + q * (2.0 * nb - n0)
            hat = whole * hat + n0 * f1 + 2.0 * (na + nb) * f2 + force(c) * f3
        rows.append(np.fft.irfftn(hat, u.shape, axes=axes))
    return np.stack(rows)


def _etdrk4(z: NDArray[np.complex128], h: float) -> tuple[NDArray[np.complex128], ...]:
    """Coefficients of ETDRK4 for z = h L, by means over a circle around z (direct formulas cancel near 0)."""
    circle = np.exp(2j * np.pi * (np.arange(CONTOUR_POINTS) + 0.5) / CONTOUR_POINTS)
    r = z[..., None] + circle
    q = h * np.mean((np.exp(r / 2) - 1.0) / r, axis=-1)
    f1 = h * np.mean((-4.0 - r + np.exp(r) * (4.0 - 3.0 * r + r**2)) / r**3, axis=-1)
    f2 = h * np.mean((2.0 + r + np.exp(r) * (-2.0 + r)) / r**3, axis=-1)
    f3 = h * np.mean((-4.0 - 3.0 * r - r**2 + np.exp(r) * (4.0 - r)) / r**3, axis=-1)
    return np.exp(z), np.exp(z / 2), q, f1, f2, f3
