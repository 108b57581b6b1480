"""Slow, obvious references that the library is tested against: loops, quadrature and dense textbook formulas."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable

import numpy as np
from scipy import integrate

from factorfield.model import Model


def gaussian_expectation(f: Callable[[float], float], mean: float, variance: float, rate: float = 0.2) -> float:
    """E[f(z)], z ~ N(mean, variance), by adaptive quadrature split at 0; f may grow like exp(rate |z|)."""
    if variance == 0.0:
        return f(mean)
    sd = math.sqrt(variance)
    tilt = rate * sd  # in units of sd, the integrand peaks within +- tilt of the mean
    low, high = -tilt - 12.0, tilt + 12.0
    kink = -mean / sd
    marks = [low, -tilt - 4.0, -tilt, 0.0, tilt, tilt + 4.0, high, *([kink] if low < kink < high else [])]

    def integrand(y: float) -> float:
        return f(mean + sd * y) * math.exp(-0.5 * y * y) / math.sqrt(2.0 * math.pi)

    with warnings.catch_warnings():
        # rounding of mean + sd y can keep quad from its 1e-12; the tests' own tolerance is the judge
        warnings.simplefilter("ignore", integrate.IntegrationWarning)
        pieces = [
            integrate.quad(integrand, a, b, epsabs=1e-15, epsrel=1e-12, limit=200)[0]
            for a, b in itertools.pairwise(sorted(set(marks)))
        ]
    return math.fsum(pieces)


def textbook_posterior(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of a linear model: (K0 + A'A/s^2)^-1, one factor at a time, in 80-bit arithmetic.

    Extended precision, because these normal equations square the condition number of the factors.
    """
    size = model.size
    precision = np.diag(model.prior.precision).astype(np.longdouble)
    shift = model.prior.shift.astype(np.longdouble)
    zero = np.zeros(size)
    for group in model.groups:
        value, slopes = group.relation.value_and_gradient(group.project(zero), group.parameters, group.points)
        for n in range(group.count):
            row = np.zeros(size, np.longdouble)
            for j, block in enumerate(group.blocks):
                row[block] += slopes[n, j] * group.rows[j][n]
            weight = 1 / np.longdouble(group.sigma[n]) ** 2
            precision += weight * np.outer(row, row)
            shift += weight * (group.target[n] - value[n]) * row
    covariance = gauss_jordan_inverse(precision)
    return (covariance @ shift).astype(float), covariance.astype(float)


def gauss_jordan_inverse(matrix: np.ndarray) -> np.ndarray:
    """Inverse of a symmetric positive definite matrix in the precision of its type (LAPACK has only doubles)."""
    size = len(matrix)
    work = np.concatenate([matrix, np.eye(size, dtype=matrix.dtype)], axis=1)
    for k in range(size):
        work[k] /= work[k, k]
        column = work[:, k].copy()
        column[k] = 0
        work -= np.outer(column, work[k])
    return work[:, size:]


def finite_difference(f: Callable[[np.ndarray], float], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    gradient = np.empty_like(x)
    for k in range(len(x)):
        e = np.zeros_like(x)
        e[k] = step
        gradient[k] = (f(x + e) - f(x - e)) / (2.0 * step)
    return gradient
