"""How many modes, how much noise: the evidence of labels along a periodic axis, for a spectrum of three parameters.

Labels y = u(x) + noise, u = sum of modes with a_k ~ N(0, p_k), p_k = A^2 (1 + (k / k_0)^2)^(-q), noise N(0, sigma^2).
Modes beyond what the labels can tell (k > M) act as further noise of variance sum p_k. A, k_0, q and - where it is not
given - sigma maximise the evidence. What a basis of K modes leaves out keeps its second moment: it is not certain.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

from factorfield.model.basis import Fourier

Array = NDArray[np.float64]
MOST = 512  # frequencies that are followed at all
MOST_DENSE = 48  # of them, those inferred jointly when the labels are not evenly spread
FLOOR = 1e-4  # smallest noise that is believed, in units of the labels' size: rounding and modelling are never exact


@dataclass(frozen=True, eq=False)
class Spectrum:
    """`variance` and `second_moment` (posterior) of a coefficient at frequencies 1..MOST; sigma of the labels."""

    sigma: float
    variance: Array
    second_moment: Array
    constant: float  # prior sd of the constant mode

    def left_out(self, modes: int) -> float:
        """Variance of the field that `modes` frequencies cannot represent: sine and cosine, half a square each."""
        return float(np.sum(self.second_moment[modes:]))

    def enough(self, tolerance: float, most: int, lasting: Array | float = 1.0) -> int:
        """The fewest frequencies that leave out less than tolerance^2, at most `most`; `lasting` weighs them."""
        tails = np.append(np.cumsum((self.second_moment * lasting)[::-1])[::-1], 0.0)
        return int(min(max(1, np.flatnonzero(tails <= tolerance**2)[0]), most))


def _even(x: Array, y: Array, lower: float, period: float, modes: int) -> tuple[Array, Array]:
    """Squares and products with y of the features [1, sin, cos, ...] at evenly spread x, by one fast transform."""
    place = (x - lower) % period
    order = np.argsort(place)
    k = np.arange(modes + 1)
    waves = np.exp(-2j * np.pi * k * place[order[0]] / period) * np.fft.rfft(y[order])[: modes + 1]
    seen = np.concatenate([[waves[0].real], np.column_stack([-waves[1:].imag, waves[1:].real]).ravel()])
    return np.concatenate([[len(x)], np.full(2 * modes, 0.5 * len(x))]), seen


def fit(x: Array, y: Array, lower: float, period: float, sigma: float | None) -> Spectrum:
    """Evidence maximum for labels y at x; `sigma` fixes the noise."""
    size = float(np.sqrt(np.mean(y**2))) or 1.0
    modes = max(1, min(MOST, (len(np.unique(x)) - 1) // 2))
    spacing = np.diff(np.sort((x - lower) % period))
    even = len(x) > 2 and np.allclose(spacing, period / len(x), rtol=1e-6)
    basis = None
    if even:  # cosines and sines are orthogonal on even points: everything is one number per coefficient
        weights, seen = _even(x, y, lower, period, modes)
    else:
        modes = min(modes, MOST_DENSE)
        features = Fourier(modes, lower, period)(x)
        basis = features.T @ features
        seen = features.T @ y
    k = np.arange(1, MOST + 1)
    rest = float(y @ y)
    count, constant = len(y), 10.0 * size
    floor = (FLOOR * size) ** 2

    def spectrum(theta: Array) -> Array:
        amplitude, corner, decay = np.exp(theta[:3])
        return amplitude**2 * (1.0 + (k / corner) ** 2) ** -decay

    def noise(theta: Array) -> float:
        return floor + float(np.exp(2.0 * theta[3])) if sigma is None else sigma**2

    def terms(theta: Array) -> tuple[Array, float]:
        p = spectrum(theta)
        prior = np.concatenate([[constant**2], np.repeat(p[:modes], 2)])
        return prior, noise(theta) + float(p[modes:].sum())

    def negative_evidence(theta: Array) -> float:
        prior, level = terms(theta)
        if basis is None:
            gain = prior * weights / level
            fitted = float(np.sum(seen**2 * prior / (level + prior * weights))) / level
            determinant = float(np.sum(np.log1p(gain)))
        else:
            root = np.sqrt(prior)
            inner = np.eye(len(prior)) + root[:, None] * basis * root / level
            factor = linalg.cholesky(inner, lower=True, check_finite=False)
            half = linalg.solve_triangular(factor, root * seen, lower=True) / level
            fitted, determinant = float(half @ half), 2.0 * float(np.sum(np.log(np.diag(factor))))
        # weak priors keep the search where a spectrum makes sense: k_0 near a few, decay of one to ten
        regular = 0.5 * ((theta[1] - np.log(4.0)) / 1.5) ** 2 + 0.5 * ((theta[2] - np.log(2.0)) / 0.7) ** 2
        return 0.5 * (rest / level - fitted + determinant + count * np.log(level)) + regular

    best = None
    for start in (0.3, 0.01):
        initial = np.array([np.log(size), np.log(4.0), np.log(2.0), np.log(start * size)])[: 3 if sigma else 4]
        found = optimize.minimize(
            negative_evidence, initial, method="Nelder-Mead",
            options={"maxfev": 400, "xatol": 0.02, "fatol": 0.02},
        )  # fmt: skip
        best = found if best is None or found.fun < best.fun else best
        if basis is not None or sigma is not None:
            break
    assert best is not None
    prior, level = terms(best.x)
    if basis is None:
        mean, left = seen * prior / (level + prior * weights), prior * level / (level + prior * weights)
    else:
        covariance = np.linalg.inv(np.diag(1.0 / prior) + basis / level)
        mean, left = covariance @ seen / level, np.diag(covariance)
    pairs = (mean**2 + left)[1:].reshape(-1, 2)
    variance = spectrum(best.x)
    second = variance.copy()
    second[:modes] = 0.5 * pairs.sum(1)
    return Spectrum(float(np.sqrt(noise(best.x))), variance, second, constant)
