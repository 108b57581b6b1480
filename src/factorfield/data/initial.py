"""Initial conditions: the distribution of PDEBench's 1-D files, smooth random fields, and the paper's bump.

PDEBench draws (facts of its generator, our own code): two wave numbers of 1..4 with replacement, four amplitudes
U[0,1) and phases; a wave number drawn twice becomes one mode of twice the number, one not drawn a constant. A tenth are
folded to |u|, half change sign, and a tenth are cut by a smooth window that always has the width 0.45.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
WINDOW_EDGE = 0.01


@dataclass(frozen=True, eq=False)
class Wave:
    """One PDEBench initial condition, by its parameters."""

    counts: NDArray[np.int64]  # how often each wave number 1..4 was drawn
    amplitudes: Array
    phases: Array
    folded: bool
    sign: float
    window: float | None  # left edge of the window, if there is one

    def __call__(self, x: ArrayLike) -> Array:
        """Values at cell centres of [0, 1]; the period is the distance of the outer centres, as in the files."""
        x = np.asarray(x, float)
        length = x[-1] - x[0]
        numbers = np.arange(1, 5) * self.counts
        u = np.sin(2.0 * np.pi * np.outer(x / length, numbers) + self.phases) @ self.amplitudes
        if self.folded:
            u = np.abs(u)
        u = self.sign * u
        if self.window is not None:
            left, right = self.window, self.window + 0.45
            u = u * 0.5 * (np.tanh((x - left) / WINDOW_EDGE) - np.tanh((x - right) / WINDOW_EDGE))
        return u


def pdebench_wave(row: int, seed: int = 0) -> Wave:
    """Row `row` of an endless file of initial conditions; the same row and seed give the same wave."""
    rng = np.random.default_rng([seed, row])
    drawn = rng.integers(0, 4, 2)
    amplitudes, phases = rng.random(4), 2.0 * np.pi * rng.random(4)
    folded = rng.random() < 0.1
    sign = 1.0 if rng.random() < 0.5 else -1.0
    chance = rng.random()
    window = 0.1 + 0.35 * chance if chance < 0.1 else None
    return Wave(np.bincount(drawn, minlength=4), amplitudes, phases, bool(folded), sign, window)


def normalised(u: Array) -> Array:
    """Scaled to [0, 1] as PDEBench does for reaction-diffusion."""
    return (u - u.min()) / (u.max() - u.min())


def bump(x: ArrayLike) -> Array:
    """The paper's Gaussian bump on [0, 2 pi)."""
    return np.exp(-((np.asarray(x, float) - np.pi) ** 2) / (2.0 * (np.pi / 4.0) ** 2))


@dataclass(frozen=True, eq=False)
class FourierField:
    """offset + sum_k (sines_k sin(2 pi k x) + cosines_k cos(2 pi k x)), k = 1, 2, ... on [0, 1]."""

    offset: float
    sines: Array
    cosines: Array

    def __call__(self, x: ArrayLike, decay: ArrayLike = 0.0) -> Array:
        """Values at x, mode k damped by exp(-k^2 decay): heat flow is decay = nu (2 pi)^2 t."""
        k = np.arange(1, len(self.sines) + 1)
        angle = 2.0 * np.pi * np.multiply.outer(np.asarray(x, float), k)
        damping = np.exp(-np.multiply.outer(np.asarray(decay, float), k**2))
        return self.offset + (damping * self.sines) @ np.sin(angle).T + (damping * self.cosines) @ np.cos(angle).T


def smooth_field(row: int, modes: int = 4, seed: int = 0) -> FourierField:
    """A random smooth periodic field: Gaussian coefficients that fall as 1/k."""
    rng = np.random.default_rng([seed, row])
    k = np.arange(1, modes + 1)
    return FourierField(0.5 * rng.standard_normal(), rng.standard_normal(modes) / k, rng.standard_normal(modes) / k)
