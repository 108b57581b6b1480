"""Activations g of the ansatz u = g(z): derivatives, inverses and closed-form moments under z ~ N(mean, variance).

`PiecewiseExponential` is the paper's (Eq. 4):  g(z) = e^{bz} - 1 for z > 0,  -a (e^{-bz} - 1) for z <= 0.
Every moment reduces to Lemma 1, E[e^{lz} 1(z>0)] = exp(l m + l^2 v/2) Phi((m + l v)/sqrt v), evaluated with the
logarithm of Phi so that a huge and a tiny number never meet. `Identity` makes the field linear in the weights.

g' and g'' jump at 0, and Stein's lemma then has a second term:
    Cov(z, g^(k)(z)) = v (E[g^(k+1)(z)] + jump_k N(0; m, v)).
variant="exact" has it; variant="paper" leaves it out as the paper's formulas do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from factorfield.errors import ProblemError, expected

Array = NDArray[np.float64]
Variant = Literal["exact", "paper"]

LARGEST_EXPONENT = 705.0  # e^709 is the largest double; the rest is room for sums and squares
NEAR_KINK = 9.0  # beyond nine standard deviations the other branch weighs less than a rounding error
SERIES_BELOW = 0.05  # beta * sd under which E[g^2] - E[g]^2 would cancel; a power series takes over


@dataclass(frozen=True)
class Identity:
    """g(z) = z: the field is linear in the weights."""

    name = "identity"

    def __call__(self, z: Any, order: int = 0, xp: Any = np) -> Any:
        z = xp.asarray(z, float)
        return z if order == 0 else xp.full_like(z, 1.0 if order == 1 else 0.0)

    def inverse(self, y: ArrayLike) -> Array:
        return np.asarray(y, float)

    def expectation(self, mean: ArrayLike, variance: ArrayLike, order: int = 0) -> Array:
        return self(np.broadcast_arrays(np.asarray(mean, float), variance)[0], order)

    def second_moment(self, mean: ArrayLike, variance: ArrayLike, order: int = 0) -> Array:
        m, v = moments_as_arrays(mean, variance)
        return m**2 + v if order == 0 else self(m, order) ** 2

    def cross_moment(self, mean: ArrayLike, variance: ArrayLike) -> Array:
        return self.expectation(mean, variance)

    def covariance(self, mean: ArrayLike, variance: ArrayLike, order: int = 0, variant: Variant = "exact") -> Array:
        m, v = moments_as_arrays(mean, variance)
        return v * self(m, order + 1)

    def moments(self, mean: ArrayLike, variance: ArrayLike) -> tuple[Array, Array]:
        m, v = moments_as_arrays(mean, variance)
        return m, v

    def linearise(self, mean: ArrayLike, variance: ArrayLike) -> tuple[Array, Array, Array]:
        m, _ = moments_as_arrays(mean, variance)
        return m, np.ones_like(m), np.zeros_like(m)

    def inverse_moments(self, mean: ArrayLike, variance: ArrayLike) -> tuple[Array, Array]:
        return self.moments(mean, variance)


@dataclass(frozen=True)
class PiecewiseExponential:
    """The paper's activation; 0 < alpha <= 1 is the slope ratio at 0, beta > 0 the rate of both exponentials."""

    alpha: float = 0.9
    beta: float = 0.1
    name = "piecewise-exponential"

    def __post_init__(self) -> None:
        if not (0.0 < self.alpha <= 1.0 and self.beta > 0.0 and math.isfinite(self.beta)):
            raise expected(
                "0 < alpha <= 1 and beta > 0", f"alpha={self.alpha}, beta={self.beta}", "alpha=0.9, beta=0.1"
            )

    # -- the function, its derivatives and inverses

    def __call__(self, z: Any, order: int = 0, xp: Any = np) -> Any:
        """g^(order)(z); at z = 0 the lower branch speaks. `xp` computes: NumPy, or jax.numpy."""
        z = xp.asarray(z, float)
        rising = z > 0.0
        size = self.beta * xp.abs(z)
        if order == 0:
            grown = xp.expm1(size)
            return xp.where(rising, grown, -self.alpha * grown)
        scale = self.beta**order * xp.exp(size)
        return xp.where(rising, scale, -self.alpha * (-1.0) ** order * scale)

    def jump(self, order: int) -> float:
        """g^(order)(0+) - g^(order)(0-)."""
        return 0.0 if order == 0 else self.beta**order * (1.0 + self.alpha * (-1.0) ** order)

    def inverse(self, y: ArrayLike) -> Array:
        y = np.asarray(y, float)
        return np.where(
            y > 0.0, np.log1p(np.maximum(y, 0.0)), -np.log1p(np.maximum(-y, 0.0) / self.alpha)
        ) / self.beta  # fmt: skip

    def derivative_inverse(self, slope: ArrayLike, branch: Literal["positive", "negative"]) -> Array:
        """The z of one branch with g'(z) = slope; NaN where that branch never has this slope."""
        slope = np.asarray(slope, float)
        least, sign = (self.beta, 1.0) if branch == "positive" else (self.alpha * self.beta, -1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(slope >= least, sign * np.log(slope / least) / self.beta, np.nan)

    # -- moments under z ~ N(mean, variance)

    def expectation(self, mean: ArrayLike, variance: ArrayLike, order: int = 0) -> Array:
        """E[g^(order)(z)]."""
        m, v = self._checked(mean, variance)
        upper, lower = partial_exponentials(m, v, self.beta)
        if order == 0:
            above, below = partial_exponentials(m, v, 0.0)
            return (upper - above) - self.alpha * (lower - below)
        return self.beta**order * (upper - self.alpha * (-1.0) ** order * lower)

    def second_moment(self, mean: ArrayLike, variance: ArrayLike, order: int = 0) -> Array:
        """E[g^(order)(z)^2]."""
        m, v = self._checked(mean, variance)
        upper2, lower2 = partial_exponentials(m, v, 2.0 * self.beta)
        if order > 0:
            return self.beta ** (2 * order) * (upper2 + self.alpha**2 * lower2)
        upper, lower = partial_exponentials(m, v, self.beta)
        above, below = partial_exponentials(m, v, 0.0)
        positive = (upper2 - 2.0 * upper) + above
        negative = (lower2 - 2.0 * lower) + below
        return np.maximum(positive, 0.0) + self.alpha**2 * np.maximum(negative, 0.0)

    def cross_moment(self, mean: ArrayLike, variance: ArrayLike) -> Array:
        """E[g(z) g'(z)]."""
        m, v = self._checked(mean, variance)
        upper2, lower2 = partial_exponentials(m, v, 2.0 * self.beta)
        upper, lower = partial_exponentials(m, v, self.beta)
        return self.beta * ((upper2 - upper) - self.alpha**2 * (lower2 - lower))

    def covariance(self, mean: ArrayLike, variance: ArrayLike, order: int = 0, variant: Variant = "exact") -> Array:
        """Cov(z, g^(order)(z))."""
        m, v = self._checked(mean, variance)
        smooth = v * self.expectation(m, v, order + 1)
        if variant == "paper" or order == 0:
            return smooth
        sd = np.sqrt(v)
        return smooth + self.jump(order) * sd * density(standardised(m, sd))

    def moments(self, mean: ArrayLike, variance: ArrayLike) -> tuple[Array, Array]:
        """E[g(z)] and Var[g(z)], the variance to full relative accuracy however small `variance` is."""
        first, _, spread, _ = self._moments(*self._checked(mean, variance))
        return first, spread

    def linearise(self, mean: ArrayLike, variance: ArrayLike) -> tuple[Array, Array, Array]:
        """g(z) seen as E[g] + slope (z - mean) + N(0, excess): the best line and what it leaves over."""
        first, slope, _, excess = self._moments(*self._checked(mean, variance))
        return first, slope, excess

    def _moments(self, m: Array, v: Array) -> tuple[Array, Array, Array, Array]:
        """E[g], E[g'], Var[g] and Var[g] - E[g']^2 v.

        Nine standard deviations from the kink g is one exponential and all four are log-normal moments: most points
        of a large grid. The rest takes both branches, and near the kink with a narrow belief a power series.
        """
        shape, m, v = m.shape, m.ravel(), v.ravel()
        sd = np.sqrt(v)
        width = self.beta * sd
        scale = np.where(m > 0.0, 1.0, self.alpha)
        grown = scale * np.exp(self.beta * np.abs(m) + 0.5 * width**2)
        first = np.where(m > 0.0, 1.0, -1.0) * (grown - scale)
        slope = self.beta * grown
        spread = grown**2 * np.expm1(width**2)
        near = np.abs(standardised(m, sd)) <= NEAR_KINK + 2.0 * width
        if np.any(near):
            first[near], slope[near], spread[near] = self._near_moments(m[near], sd[near])
        results = first, slope, spread, np.maximum(spread - slope**2 * v, 0.0)
        return tuple(part.reshape(shape) for part in results)  # type: ignore[return-value]

    def inverse_moments(self, mean: ArrayLike, variance: ArrayLike) -> tuple[Array, Array]:
        """Mean and variance of g^-1(Y) with Y's branch variable matched to a log-normal (paper, appendix A.4.1)."""
        m, v = moments_as_arrays(mean, variance)
        rising = m > 0.0
        positive = np.where(rising, 1.0 + m, 1.0 - m / self.alpha)
        spread = np.where(rising, v, v / self.alpha**2)
        log_variance = np.log1p(spread / positive**2)
        log_mean = np.log(positive) - 0.5 * log_variance
        return np.where(rising, log_mean, -log_mean) / self.beta, log_variance / self.beta**2

    # -- helpers

    def _checked(self, mean: ArrayLike, variance: ArrayLike) -> tuple[Array, Array]:
        m, v = moments_as_arrays(mean, variance)
        exponent = 2.0 * self.beta * np.abs(m) + 2.0 * self.beta**2 * v
        if not np.all(exponent <= LARGEST_EXPONENT):
            raise ProblemError(
                f"expected 2 beta |mean| + 2 beta^2 variance <= {LARGEST_EXPONENT:g} (larger moments overflow), "
                f"received {float(np.nanmax(exponent)):.3g}; try a tighter prior, or scaling the field down"
            )
        return m, v

    def _near_moments(self, m: Array, sd: Array) -> tuple[Array, Array, Array]:
        """E[g], E[g'] and Var[g] within reach of the kink, where Phi itself (not its logarithm) is safe to use."""
        a, width = m / sd, self.beta * sd
        above = special.ndtr(a)
        below = 1.0 - above
        growth = np.exp(0.5 * width**2)
        tilt = np.exp(self.beta * m)
        upper, lower = tilt * growth * special.ndtr(a + width), growth / tilt * special.ndtr(width - a)
        first = (upper - above) - self.alpha * (lower - below)
        slope = self.beta * (upper + self.alpha * lower)
        narrow = width < SERIES_BELOW
        spread = np.empty_like(m)
        if np.any(narrow):
            spread[narrow] = self._variance_series(m[narrow], sd[narrow])
        if not np.all(narrow):
            w = ~narrow
            upper2 = tilt[w] ** 2 * growth[w] ** 4 * special.ndtr(a[w] + 2.0 * width[w])
            lower2 = growth[w] ** 4 / tilt[w] ** 2 * special.ndtr(2.0 * width[w] - a[w])
            positive = upper2 - 2.0 * upper[w] + above[w]
            negative = lower2 - 2.0 * lower[w] + below[w]
            spread[w] = np.maximum(positive + self.alpha**2 * negative - first[w] ** 2, 0.0)
        return first, slope, spread

    def _variance_series(self, m: Array, sd: Array) -> Array:
        """Var[g] near the kink for small beta sd: powers of beta z, with half-line moments of z / sd."""
        shift = standardised(m, sd)
        width = self.beta * sd
        reach = 4.0 * (NEAR_KINK + 1.0) * float(np.max(width))  # of 2 beta |z|, beyond which no mass is left
        terms = next(n for n in range(3, 60) if reach**n < 1e-18 * math.factorial(n))
        above = half_line_moments(shift, terms)
        below = half_line_moments(-shift, terms)  # moments of |z|/sd on z <= 0
        first = np.zeros_like(m)
        second = np.zeros_like(m)
        power = np.ones_like(m)
        for n in range(1, terms):
            power = power * width / n
            first += power * (above[n] - self.alpha * below[n])
            second += power * (2.0**n - 2.0) * (above[n] + self.alpha**2 * below[n])
        return np.maximum(second - first**2, 0.0)


def moments_as_arrays(mean: ArrayLike, variance: ArrayLike) -> tuple[Array, Array]:
    """Mean and variance as equal-shaped float arrays of at least one dimension's worth of checks."""
    m, v = np.broadcast_arrays(np.asarray(mean, float), np.asarray(variance, float))
    if not (np.all(np.isfinite(m)) and np.all(np.isfinite(v)) and np.all(v >= 0.0)):
        raise expected("finite means and variances >= 0", "NaN, infinite or negative ones", "checking the belief")
    return m, v


def standardised(m: Array, sd: Array) -> Array:
    """m / sd, with the sign of m at sd = 0 (and the lower branch at 0/0)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(sd > 0.0, m / sd, np.where(m > 0.0, np.inf, -np.inf))


def density(a: Array) -> Array:
    return np.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi)


def partial_exponentials(m: Array, v: Array, rate: float) -> tuple[Array, Array]:
    """Lemma 1: E[e^{rate z} 1(z > 0)] and E[e^{-rate z} 1(z <= 0)]."""
    sd = np.sqrt(v)
    a = standardised(m, sd)
    growth = 0.5 * rate**2 * v
    upper = np.exp(rate * m + growth + special.log_ndtr(a + rate * sd))
    lower = np.exp(-rate * m + growth + special.log_ndtr(rate * sd - a))
    return upper, lower


def half_line_moments(a: Array, count: int) -> list[Array]:
    """E[T^n 1(T > 0)] for T ~ N(a, 1), n = 0 .. count-1."""
    moments = [special.ndtr(a)]
    moments.append(a * moments[0] + density(a))
    for n in range(2, count):
        moments.append(a * moments[n - 1] + (n - 1) * moments[n - 2])
    return moments


Activation = Identity | PiecewiseExponential
ACTIVATIONS = {"identity": Identity, "piecewise-exponential": PiecewiseExponential}
