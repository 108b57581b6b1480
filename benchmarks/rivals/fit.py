"""Least squares with priors: the fit that all inverse rivals share, and its Laplace approximation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

Array = NDArray[np.float64]
QUANTILE = 1.6448536269514722  # of the normal distribution, for intervals that hold 90 %


@dataclass(frozen=True)
class Fit:
    """A Gaussian about the best point: N(mean, (root' root)^-1)."""

    mean: Array
    root: Array  # upper triangular
    misfit: float  # half the sum of squares of all residuals
    evaluations: int
    success: bool

    @property
    def std(self) -> Array:
        return self.std_of(np.eye(len(self.mean)))

    def std_of(self, rows: Array) -> Array:
        """Std of rows @ latents."""
        spread = linalg.solve_triangular(self.root, np.atleast_2d(rows).T, trans="T")
        return np.sqrt(np.sum(spread**2, axis=0))

    def log_evidence(self, sigmas: Array) -> float:
        """Laplace's approximation, for latents that are all N(0, 1) before the readings."""
        normaliser = np.sum(np.log(sigmas)) + 0.5 * len(sigmas) * np.log(2.0 * np.pi)
        return float(-self.misfit - normaliser - np.sum(np.log(np.abs(np.diag(self.root)))))

    def log_normal(self, index: int, centre: float, scale: float) -> dict[str, float]:
        """The positive number exp(centre + scale * latent): its moments, median and 90 % interval."""
        middle, spread = centre + scale * self.mean[index], scale * self.std[index]
        mean = float(np.exp(middle + spread**2 / 2.0))
        return {
            "mean": mean,
            "std": mean * float(np.sqrt(np.expm1(spread**2))),
            "median": float(np.exp(middle)),
            "low": float(np.exp(middle - QUANTILE * spread)),
            "high": float(np.exp(middle + QUANTILE * spread)),
        }


def fitted(
    values: Callable[[Array], Array], slopes: Callable[[Array], Array], start: Array, prior: int | None = None,
    bounds: tuple[Array, Array] | None = None, tolerance: float = 1e-8,
) -> Fit:  # fmt: skip
    """Gauss-Newton on whitened readings; the first `prior` latents (all of them, unless given) are N(0, 1)."""
    count = len(start) if prior is None else prior
    rows = np.eye(count, len(start))
    done = optimize.least_squares(
        lambda e: np.concatenate([e[:count], values(e)]), start, lambda e: np.vstack([rows, slopes(e)]),
        bounds=(-np.inf, np.inf) if bounds is None else bounds, x_scale=1.0 if prior is None else "jac",
        xtol=tolerance, ftol=tolerance, gtol=tolerance,
    )  # fmt: skip
    (root,) = linalg.qr(done.jac, mode="r")
    return Fit(done.x, root[: len(start)], float(done.cost), int(done.nfev), bool(done.success))


def linear(matrix: Array, target: Array) -> Fit:
    """The exact posterior of readings matrix @ latents, all whitened, with latents N(0, I)."""
    count = matrix.shape[1]
    stacked = np.vstack([np.eye(count), matrix])
    right = np.concatenate([np.zeros(count), target])
    basis, root = linalg.qr(stacked, mode="economic")
    mean = linalg.solve_triangular(root, basis.T @ right)
    return Fit(mean, root, 0.5 * float(np.sum((stacked @ mean - right) ** 2)), 1, True)
