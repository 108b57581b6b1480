"""Slow, obvious references that the library is tested against: loops, quadrature and dense textbook formulas."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable

import numpy as np
from scipy import integrate

from factorfield.model.model import BlockModel, Model


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


def log_joint_gradient(model: BlockModel, weights: np.ndarray) -> np.ndarray:
    """The gradient of `log_joint`: every factor's misfit pulled back by its linearised rows, and the prior's pull."""
    gradient = model.prior.shift - model.prior.precision * weights
    for group in model.groups:
        misfit, rows = group.linear_misfit(weights)
        gradient = gradient - rows.T @ misfit
    return gradient


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
        dense = [group.dense_rows(j) for j in range(len(group.blocks))]
        for n in range(group.count):
            row = np.zeros(size, np.longdouble)
            for j, block in enumerate(group.blocks):
                row[block] += slopes[n, j] * dense[j][n]
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


# -- messages of one factor, written as the derivation has them (docs/messages.md): loops and quadrature


def conditional_mean(
    f: Callable[[float], float], m: float, v: float, other: float, cross: float, power: int, spread: float
) -> float:
    """E[f(z) y^power] for jointly Gaussian (z, y), Cov = cross, Var[y] = spread, by quadrature over z; power 1 or 2."""

    def integrand(z: float) -> float:
        centre = other + cross / v * (z - m)
        return f(z) * (centre if power == 1 else centre**2 + spread - cross**2 / v)

    return gaussian_expectation(integrand, m, v)


def semilinear_mean(
    g: object, coefficients: dict[str, float], mean: np.ndarray, covariance: np.ndarray, kinks: bool
) -> float:
    """E[p0 + p1 u + p2 u^2 + c1 g'(z) r + c2 g''(z) q^2] for (z, r, q); without kinks, the paper's."""
    c = {"p0": 0.0, "p1": 0.0, "p2": 0.0, "c1": 0.0, "c2": 0.0, **coefficients}
    m, v = mean[0], covariance[0, 0]

    def expectation(order: int, power: int = 1) -> float:
        return gaussian_expectation(lambda z: float(g(z, order)) ** power, m, v)  # type: ignore[operator]

    total = c["p0"] + c["p1"] * expectation(0) + c["p2"] * expectation(0, 2)
    if len(mean) > 1:
        if kinks:
            product = conditional_mean(lambda z: float(g(z, 1)), m, v, mean[1], covariance[0, 1], 1, covariance[1, 1])  # type: ignore[operator]
        else:
            product = expectation(1) * mean[1] + covariance[0, 1] * expectation(2)
        total += c["c1"] * product
    if len(mean) > 2:
        if kinks:
            # g'' is a function plus a point mass jump(1) delta(z) where g' jumps: E[delta(z) q^2] in closed form
            smooth = conditional_mean(lambda z: float(g(z, 2)), m, v, mean[2], covariance[0, 2], 2, covariance[2, 2])  # type: ignore[operator]
            at_zero = mean[2] + covariance[0, 2] / v * (0.0 - m)
            weight = math.exp(-0.5 * m * m / v) / math.sqrt(2 * math.pi * v)
            mass = g.jump(1) * weight * (at_zero**2 + covariance[2, 2] - covariance[0, 2] ** 2 / v)  # type: ignore[attr-defined]
            total += c["c2"] * (smooth + mass)
        else:
            total += c["c2"] * expectation(2) * (mean[2] ** 2 + covariance[2, 2])
    return total


def semilinear_slopes(
    g: object, coefficients: dict[str, float], mean: np.ndarray, covariance: np.ndarray, kinks: bool
) -> np.ndarray:
    """dE[R]/d mean: by differences of quadratures; without kinks term by term, every E[g^(k)] without the jumps."""
    if kinks:
        h = 1e-4
        shifts = [h * e for e in np.eye(len(mean))]
        values = [
            [semilinear_mean(g, coefficients, mean + sign * s, covariance, True) for sign in (1, -1)] for s in shifts
        ]
        return np.array([(up - down) / (2 * h) for up, down in values])
    c = {"p0": 0.0, "p1": 0.0, "p2": 0.0, "c1": 0.0, "c2": 0.0, **coefficients}
    m, v = mean[0], covariance[0, 0]
    e = [gaussian_expectation(lambda z, k=k: float(g(z, k)), m, v) for k in range(4)]  # type: ignore[operator]
    product = gaussian_expectation(lambda z: float(g(z)) * float(g(z, 1)), m, v)  # type: ignore[operator]
    slopes = np.zeros(len(mean))
    slopes[0] = c["p1"] * e[1] + 2 * c["p2"] * product
    if len(mean) > 1:
        slopes[0] += c["c1"] * (mean[1] * e[2] + covariance[0, 1] * e[3])
        slopes[1] = c["c1"] * e[1]
    if len(mean) > 2:
        slopes[0] += c["c2"] * e[3] * (mean[2] ** 2 + covariance[2, 2])
        slopes[2] = 2 * c["c2"] * e[2] * mean[2]
    return slopes


def isolated_messages(
    a: np.ndarray, m: np.ndarray, v: np.ndarray, target: float, value: float, noise: float
) -> tuple[np.ndarray, np.ndarray]:
    """value + sum_j a_j (W_j - m_j) = target +- noise, solved for each W_k with the others at their moments."""
    precision, shift = np.zeros(len(a)), np.zeros(len(a))
    for k in range(len(a)):
        if a[k] == 0.0:
            continue
        mean = m[k] + (target - value) / a[k]  # the other weights at their means contribute nothing
        variance = (noise + sum(a[j] ** 2 * v[j] for j in range(len(a)) if j != k)) / a[k] ** 2
        precision[k], shift[k] = 1.0 / variance, mean / variance
    return precision, shift


# -- fields behind a wall that is off by a smooth random function, without any basis: kernels, series, differences


def matern(distance: np.ndarray, length: float) -> np.ndarray:
    """The Matern kernel of order 5/2 with unit variance."""
    scaled = math.sqrt(5.0) * np.abs(distance) / length
    return (1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled)


def harmonic_std(x: np.ndarray, sigma: float, length: float, period: float = 1.0) -> np.ndarray:
    """Std of u_xx + u_yy = 0 over 0 < x < 1, periodic in y, with u = 0 at x = 1 and a wall u +- sigma at x = 0.

    Each wave of the wall's error fades as sinh(k (1 - x)) / sinh(k); its variance is the kernel's Fourier coefficient.
    """
    count = 512
    around = np.arange(count) / count
    chord = period / math.pi * np.sin(math.pi * around)
    variance = np.abs(np.fft.fft(matern(chord, length))) / count
    waves = 2.0 * math.pi * np.abs(np.fft.fftfreq(count, 1.0 / count)) / period
    kept = waves < 300.0
    k, inside = waves[kept][:, None], np.atleast_1d(x)[None, :]
    with np.errstate(invalid="ignore"):
        fades = np.where(k > 0.0, np.sinh(k * (1.0 - inside)) / np.sinh(k), 1.0 - inside)
    return sigma * np.sqrt(variance[kept] @ fades**2)


def heated_std(x: float, times: np.ndarray, diffusion: float, sigma: float, length: float) -> np.ndarray:
    """Std at x of u_t = D u_xx over 0 < x < 1 from u = 0, with u = 0 at x = 1 and a wall u +- sigma at x = 0.

    The start is exact, so the wall's error is 0 there. Crank-Nicolson on a fine grid carries every value of it inside.
    """
    cells, steps, end = 80, 400, float(times[-1])
    dt = end / steps
    second = (np.diag(np.ones(cells - 2), 1) - 2.0 * np.eye(cells - 1) + np.diag(np.ones(cells - 2), -1)) * cells**2
    half = 0.5 * dt * diffusion
    forward, back = np.eye(cells - 1) + half * second, np.linalg.inv(np.eye(cells - 1) - half * second)
    field, at = np.zeros((cells - 1, steps + 1)), round(x * cells) - 1
    found = np.zeros((steps + 1, steps + 1))  # the field at x after each step, by the wall's value at each time
    for step in range(1, steps + 1):
        wall = np.zeros((cells - 1, steps + 1))
        wall[0, [step - 1, step]] = half * cells**2
        field = back @ (forward @ field + wall)
        found[step] = field[at]
    t = np.linspace(0.0, end, steps + 1)
    kernel = matern(t[:, None] - t[None, :], length)
    kernel = kernel - np.outer(kernel[0], kernel[0])  # the start tells the error at t = 0
    std = sigma * np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", found, kernel, found), 0.0))
    return np.interp(times, t, std)


def struck_std(x: float, times: np.ndarray, sigma: float, length: float) -> np.ndarray:
    """Std at x of u_tt = u_xx over 0 < x < 1 from an exact start, between walls u +- sigma: sums of travelling errors.

    The start tells each wall's error and its rate at t = 0. By d'Alembert the field at x is the error of a wall at the
    time it left, each time it passes: +, and - on its way back.
    """
    rate, found = math.sqrt(5.0) / length, []
    for t in times:
        variance = 0.0
        for way in (x, 1.0 - x):
            left = [(t - way - 2.0 * n, 1.0) for n in range(9)] + [(t - 2.0 + way - 2.0 * n, -1.0) for n in range(9)]
            ago, sign = np.array([(at, plus) for at, plus in left if at > 0.0]).reshape(-1, 2).T
            value, slope = matern(ago, length), rate**2 / 3.0 * ago * (1.0 + rate * ago) * np.exp(-rate * ago)
            kernel = matern(ago[:, None] - ago[None, :], length) - np.outer(value, value)
            kernel -= np.outer(slope, slope) / (rate**2 / 3.0)
            variance += float(sign @ kernel @ sign)
        found.append(sigma * math.sqrt(max(variance, 0.0)))
    return np.array(found)


def conductivity_std(
    readings: tuple[np.ndarray, np.ndarray, np.ndarray], sigma: float, std: float, length: float, places: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and std of log k at places (n, 2) of the unit square: div(k grad u) = -10, u = 0 on walls, readings x, y, u.

    log k has a Matern 5/2 kernel along each axis, about the log-normal's own mean. Collocation at Chebyshev's points,
    Gauss-Newton in the kernel's principal components by differences, Laplace's covariance: no code of the package.
    """
    (x, y, values), count = readings, 13
    node = np.cos(np.pi * np.arange(count) / (count - 1))
    sign = np.r_[2.0, np.ones(count - 2), 2.0] * (-1.0) ** np.arange(count)
    gap = node[:, None] - node + np.eye(count)
    along = np.outer(sign, 1.0 / sign) / gap
    along = 2.0 * (along - np.diag(along.sum(axis=1)))  # d/dx on [0, 1]
    grid, eye = 0.5 * (node + 1.0), np.eye(count)
    d_x, d_y = np.kron(along, eye), np.kron(eye, along)
    wall = np.any(np.isin(np.stack(np.meshgrid(grid, grid, indexing="ij"), -1).reshape(-1, 2), (0.0, 1.0)), axis=1)

    def lagrange(at: np.ndarray) -> np.ndarray:
        weight = 1.0 / sign
        ratio = weight / (at[:, None] - grid + 1e-14)
        return ratio / ratio.sum(axis=1, keepdims=True)

    def kernel(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        scaled = np.sqrt(5.0) * np.abs(a[:, None] - b) / length
        return (1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled)

    read = np.einsum("ni,nj->nij", lagrange(x), lagrange(y)).reshape(len(x), -1)
    own, vectors = np.linalg.eigh(kernel(grid, grid))
    own, vectors = np.kron(own, own), np.kron(vectors, vectors)
    kept = np.argsort(own)[::-1][:40]
    variance = np.log1p(std**2)
    features = np.sqrt(variance) * vectors[:, kept] * np.sqrt(own[kept])

    def seen(weights: np.ndarray) -> np.ndarray:
        k = np.exp(features @ weights - 0.5 * variance)
        matrix = d_x @ (k[:, None] * d_x) + d_y @ (k[:, None] * d_y)
        matrix[wall] = np.eye(count**2)[wall]
        return read @ np.linalg.solve(matrix, np.where(wall, 0.0, -10.0))

    weights = np.zeros(len(kept))
    for _ in range(8):
        here = seen(weights)
        slopes = np.column_stack([(seen(weights + 1e-5 * e) - here) / 1e-5 for e in np.eye(len(kept))]) / sigma
        precision = np.eye(len(kept)) + slopes.T @ slopes
        weights = weights + np.linalg.solve(precision, slopes.T @ (values - here) / sigma - weights)
    at = np.einsum("ni,nj->nij", lagrange(places[:, 0]), lagrange(places[:, 1])).reshape(len(places), -1) @ features
    covariance = at @ np.linalg.inv(precision) @ at.T
    return at @ weights - 0.5 * variance, np.sqrt(np.diag(covariance))
