"""Measurement noise that is not Gaussian, by expectation propagation: each value's likelihood has a Gaussian site.

The rest of the graph believes N(m, v) about what was measured: the cavity. The cavity times the true likelihood has
moments, and the site of this one value is the Gaussian factor that reproduces them (moment matching, as in the paper).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected

Array = NDArray[np.float64]
NODES = 161  # quadrature nodes around the cavity's mean, and as many around the value
REACH = 9.0  # standard deviations that the nodes span to either side
LEAST_PRECISION = 1e-6  # of a site, relative to the cavity's
WEAKEST = 0.25  # a matched site weaker than this share of the site centred at the value is replaced by the latter


class Noise(Protocol):
    name: str

    def log_likelihood(self, value: Array, target: Array, sigma: Array) -> Array: ...

    def first_guess(self, target: Array, sigma: Array) -> tuple[Array, Array]: ...

    def spread(self, sigma: float) -> float: ...


@dataclass(frozen=True)
class StudentT:
    """value = truth + sigma * t with `dof` degrees of freedom: outliers are expected, and then hardly count."""

    dof: float = 4.0
    name = "student-t"

    def log_normaliser(self, sigma: Array) -> Array:
        """What makes `log_likelihood` the logarithm of a density."""
        half = math.lgamma(0.5 * (self.dof + 1.0)) - math.lgamma(0.5 * self.dof) - 0.5 * math.log(self.dof * math.pi)
        return half - np.log(sigma)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.dof) and self.dof > 0.0):
            raise expected("degrees of freedom dof > 0", self.dof, "ff.StudentT(dof=4)")

    def log_likelihood(self, value: Array, target: Array, sigma: Array) -> Array:
        return -0.5 * (self.dof + 1.0) * np.log1p(((value - target) / sigma) ** 2 / self.dof)

    def first_guess(self, target: Array, sigma: Array) -> tuple[Array, Array]:
        return target, 1.5 * sigma

    def spread(self, sigma: float) -> float:
        """Standard deviation of a value about the truth; infinite for heavy tails."""
        return sigma * float(np.sqrt(self.dof / (self.dof - 2.0))) if self.dof > 2.0 else float("inf")


@dataclass(frozen=True)
class LogNormal:
    """log(value) = log(truth) + sigma * N(0, 1): sigma is relative, values and truth are positive."""

    name = "log-normal"

    def log_likelihood(self, value: Array, target: Array, sigma: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(value > 0.0, -0.5 * ((np.log(value) - np.log(target)) / sigma) ** 2, -np.inf)

    def first_guess(self, target: Array, sigma: Array) -> tuple[Array, Array]:
        return target, target * sigma

    def spread(self, sigma: float) -> float:
        return float("nan")  # depends on the truth


KINDS = {"student-t": StudentT, "log-normal": LogNormal}


def noise_spec(noise: str | Noise) -> str | tuple[str, float]:
    """What a file holds of it."""
    if isinstance(noise, StudentT):
        return noise.name, noise.dof
    return noise if isinstance(noise, str) else noise.name


def noise_from_spec(spec: str | tuple[str, float]) -> str | Noise:
    return StudentT(spec[1]) if isinstance(spec, list | tuple) else spec


def checked_noise(noise: object, target: Array, sigma: object, what: str) -> Noise | None:
    """What an observation's `noise` means; None for Gaussian."""
    if noise == "gaussian" or noise is None:
        return None
    kind = KINDS[noise]() if isinstance(noise, str) and noise in KINDS else noise
    if not isinstance(kind, StudentT | LogNormal):
        raise expected("noise 'gaussian', 'student-t', 'log-normal', or ff.StudentT(dof=...)", noise, "'student-t'")
    if sigma is None:
        raise expected(f"a sigma for {kind.name} noise ({what})", "none", "sigma=0.1")
    if isinstance(kind, LogNormal) and np.any(target <= 0.0):
        raise expected(f"positive values with log-normal noise ({what})", f"{target.min():g}", "noise='gaussian'")
    return kind


def trapezoid(values: Array, nodes: Array) -> Array:
    """Integrals along the last axis. (SciPy's would import its solvers and optimisers with every problem.)"""
    return np.sum(0.5 * (values[:, 1:] + values[:, :-1]) * np.diff(nodes, axis=1), axis=1)


def tilted(
    noise: Noise, target: Array, sigma: Array, cavity_mean: Array, cavity_variance: Array
) -> tuple[Array, Array, Array]:
    """Mean and variance of each cavity times likelihood, and the log of its integral; the likelihood without its
    normaliser."""
    width = np.sqrt(cavity_variance)
    guess, reach = noise.first_guess(target, sigma)
    steps = np.linspace(-REACH, REACH, NODES)
    nodes = np.concatenate([cavity_mean[:, None] + width[:, None] * steps, guess[:, None] + reach[:, None] * steps], 1)
    nodes = np.sort(nodes, axis=1)
    level = noise.log_likelihood(nodes, target[:, None], sigma[:, None])
    level = level - 0.5 * ((nodes - cavity_mean[:, None]) / width[:, None]) ** 2
    largest = level.max(axis=1)
    density = np.exp(level - largest[:, None])
    mass = trapezoid(density, nodes)
    mean = trapezoid(density * nodes, nodes) / mass
    variance = trapezoid(density * (nodes - mean[:, None]) ** 2, nodes) / mass
    # a value that is all but excluded leaves one node: nothing narrower than nodes can be seen
    variance = np.maximum(variance, 1e-12 * np.minimum(cavity_variance, reach**2))
    return mean, variance, largest + np.log(mass) - 0.5 * np.log(2.0 * np.pi * cavity_variance)


def matched(
    noise: Noise, target: Array, sigma: Array, cavity_mean: Array, cavity_variance: Array
) -> tuple[Array, Array]:
    """Mean and precision of each value's Gaussian site.

    A likelihood that would widen the cavity (the tail of an outlier) has no matching site of positive precision; a
    site centred at the value itself then moves the mean to where the true likelihood moves it.
    """
    guess, reach = noise.first_guess(target, sigma)
    mean, variance, _ = tilted(noise, target, sigma, cavity_mean, cavity_variance)
    precision = 1.0 / variance - 1.0 / cavity_variance
    pull = (mean - cavity_mean) / cavity_variance
    gap = guess - mean
    outside = np.where(np.abs(gap) > 1e-9 * reach, pull / np.where(gap == 0.0, 1.0, gap), 0.0)
    outside = np.maximum(outside, LEAST_PRECISION / cavity_variance)
    proper = precision > WEAKEST * outside
    centre = np.where(proper, mean + pull / np.where(proper, precision, 1.0), guess)
    return centre, np.where(proper, precision, outside)
