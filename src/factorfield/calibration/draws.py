"""What the cells of the registry share: truths drawn from stated priors, and z of a truth in a posterior.

Nothing here uses the models that are judged: processes are drawn by the covariance that the pages state, on grids of
their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from factorfield.problem.problem import Problem
from factorfield.solution import Solution

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]
Z90 = 1.6448536269514722  # half the width of a 90 % interval, in standard deviations
TURN = 2.0 * np.pi
Read = Callable[[Solution], Array]  # z of what is judged; the first is the draw's scalar


@dataclass(frozen=True)
class Posed:
    """A problem with data that were drawn, and how its truth is compared with a solution."""

    problem: Problem
    read: Read


# -- priors


def log_normal(rng: np.random.Generator, mean: float, std: float) -> float:
    """A positive number with these moments of its own."""
    variance = np.log1p((std / mean) ** 2)
    return float(np.exp(np.log(mean) - variance / 2.0 + np.sqrt(variance) * rng.standard_normal()))


def matern(gap: Array, length: float) -> Array:
    """Covariance of a process of smoothness 5/2 and unit variance."""
    scaled = np.sqrt(5.0) * gap / length
    return (1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled)


def process(rng: np.random.Generator, x: Array, length: float) -> Array:
    """Values at x of a process along a line."""
    covariance = matern(np.abs(x[:, None] - x), length) + 1e-10 * np.eye(len(x))
    return np.asarray(linalg.cholesky(covariance, lower=True) @ rng.standard_normal(len(x)), float)


@dataclass(frozen=True)
class Ring:
    """A process on the ring 0..1, distances across the circle, as a sum of its waves, which diffuse exactly."""

    cosines: Array
    sines: Array

    @staticmethod
    def drawn(rng: np.random.Generator, length: float, points: int = 256) -> Ring:
        strength = ring_spectrum(length, points)[: points // 2]
        size = np.sqrt(strength * np.where(np.arange(len(strength)) == 0, 1.0, 2.0))
        return Ring(size * rng.standard_normal(len(size)), size * rng.standard_normal(len(size)))

    def heat(self, x: ArrayLike, t: ArrayLike, diffusion: float, width: float = 0.0) -> Array:
        """As the start of u_t = diffusion u_xx: at scattered points, or averaged over cells of that width."""
        count = np.arange(len(self.cosines))
        phase = TURN * np.outer(np.atleast_1d(x), count)
        size = np.exp(-diffusion * np.outer(np.atleast_1d(t), (TURN * count) ** 2)) * np.sinc(count * width)
        return np.asarray((size * np.cos(phase)) @ self.cosines + (size * np.sin(phase)) @ self.sines, float)


def ring_spectrum(length: float, points: int) -> Array:
    """Variance of each wave exp(2 pi i k x) of the process on the ring, k = 0, 1, ..., then the negative ones."""
    gap = np.sin(np.pi * np.arange(points) / points) / np.pi
    return np.maximum(np.fft.fft(matern(gap, length)).real, 0.0) / points


# -- z of a truth


def predicted(solution: Solution, of: str | None, at: Mapping[str, ArrayLike]) -> xr.Dataset:
    points: dict[str, Any] = {name: np.atleast_1d(x) for name, x in at.items()}
    return solution.predict(points=True, of=of, **points)


def of_number(name: str, truth: float) -> Read:
    """Of an unknown number; of the logarithm of a positive one."""

    def read(solution: Solution) -> Array:
        ends, at = np.array(solution.parameters[name]["interval"]), truth
        if solution.problem.unknowns[name].positive:
            ends, at = np.log(ends), float(np.log(truth))
        return np.array([(at - ends.mean()) / (np.ptp(ends) / (2.0 * Z90))])

    return read


def of_field(truth: ArrayLike, of: str | None = None, **at: ArrayLike) -> Read:
    """Of a field, or an expression of it, at scattered points."""

    def read(solution: Solution) -> Array:
        shown = predicted(solution, of, at)
        with np.errstate(divide="ignore", invalid="ignore"):  # a std of zero: infinite, which fails
            return np.asarray((np.atleast_1d(truth) - shown["mean"].values) / shown["std"].values, float)

    return read
