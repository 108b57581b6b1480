"""A smooth random function on splines whose prior does not depend on how many there are.

Along one axis a Matern process of variance s^2 and length l is the stationary solution of (d/dx + r)^a u = white noise,
r = sqrt(2 a - 1) / l. Its negative log density is half of

    integral of ((d/dx + r)^a u)^2 / q  +  (u, u', ..) at the lower end, by its stationary covariance,

which is the norm of its reproducing kernel Hilbert space. The integral by Gauss points, exact for splines, gives rows
whose sum of squares converges as cells become smaller; the second part is what the axis beyond its end would say, so
that the variance is s^2 everywhere, ends included. A ring has no second part. Over several axes the kernel is the
product, and the rows are the products of rows along each axis: no corner is special.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.messages.gaussian import triangle
from factorfield.model.splines import Spline

Array = NDArray[np.float64]


@lru_cache(maxsize=64)  # most ranges of cells are alike
def matern_rows(spline: Spline, length: float, smoothness: int, std: float, count: int, is_first: bool) -> Array:
    """Whitened rows, at most as many as columns, about the weights that `count` neighbouring cells read.

    The rows of all ranges that an axis is cut into are, together, those of the axis; the first one has the lower end's.
    `smoothness` is a: 2 has one derivative (Matern 3/2), 3 has two (5/2).
    """
    rate, degree = np.sqrt(2.0 * smoothness - 1.0) / length, spline.degree
    power = _power(rate, smoothness) * std**2 * (_around(spline, rate, smoothness) if spline.periodic else 1.0)
    nodes, shares = np.polynomial.legendre.leggauss(degree + 1)
    within = sum(
        comb(smoothness, k) * rate ** (smoothness - k) * spline.within(0.5 + 0.5 * nodes, k)
        for k in range(smoothness + 1)
    )
    within = triangle(np.sqrt(0.5 * shares * spline.width / power)[:, None] * np.asarray(within))
    rows = np.zeros((count, len(within), count + degree))
    for c in range(count):
        rows[c, :, c : c + degree + 1] = within
    parts = [rows.reshape(-1, count + degree)]
    if is_first and not spline.periodic:
        state = np.stack([spline.within(np.zeros(1), k)[0] for k in range(smoothness)])
        lower = linalg.cholesky(_stationary(rate, smoothness) * std**2, lower=True)
        end = np.zeros((smoothness, count + degree))
        end[:, : degree + 1] = linalg.solve_triangular(lower, state, lower=True)
        parts.append(end)
    return triangle(np.vstack(parts))


def _power(rate: float, smoothness: int) -> float:
    """The white noise's spectral density for unit variance: (2 r)^(2a-1) ((a-1)!)^2 / (2a-2)!."""
    return (2.0 * rate) ** (2 * smoothness - 1) / comb(2 * smoothness - 2, smoothness - 1)


def _stationary(rate: float, smoothness: int) -> Array:
    """Covariance of (u, u', ..) of the process with unit variance: derivatives of its kernel at distance zero."""
    if smoothness == 2:
        return np.diag([1.0, rate**2])
    bend = rate**2 / 3.0
    return np.array([[1.0, 0.0, -bend], [0.0, bend, 0.0], [-bend, 0.0, rate**4]])


def _around(spline: Spline, rate: float, smoothness: int) -> float:
    """What gives a ring unit variance: around it, the kernel meets itself at every multiple of the length."""
    far = rate * (spline.upper - spline.lower) * np.arange(1, 200)
    kernel = (1.0 + far + (far**2 / 3.0 if smoothness == 3 else 0.0)) * np.exp(-far)
    return 1.0 / (1.0 + 2.0 * float(kernel.sum()))
