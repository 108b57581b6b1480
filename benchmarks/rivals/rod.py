"""The rod by the method of lines: Chebyshev points, the linear system diagonalised once, then least squares.

python benchmarks/rivals/rod.py
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, linalg, optimize

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from rivals.cases import Rod, matern, rod
from rivals.fit import Fit, fitted

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    alpha: dict[str, float]
    mean: Array  # of the field at the case's places
    std: Array
    log_evidence: float
    fit: Fit


def chebyshev(cells: int, length: float) -> tuple[Array, Array]:
    """Points on [0, length], ends included, and the matrix of the first derivative there."""
    x = np.cos(np.pi * np.arange(cells + 1) / cells)
    weights = np.where((np.arange(cells + 1) == 0) | (np.arange(cells + 1) == cells), 2.0, 1.0)
    weights *= (-1.0) ** np.arange(cells + 1)
    gaps = x[:, None] - x + np.eye(cells + 1)
    slopes = np.outer(weights, 1.0 / weights) / gaps
    slopes -= np.diag(slopes.sum(axis=1))
    return 0.5 * length * (1.0 - x), -2.0 / length * slopes


def start_modes(case: Rod, count: int, nodes: int = 200) -> Array:
    """Sine coefficients of the start's error per latent: the Matern process projected onto functions zero at walls."""
    assert case.start is not None
    place, share = np.polynomial.legendre.leggauss(nodes)
    x = 0.5 * case.length * (1.0 + place)
    sines = np.sin(np.pi * np.outer(np.arange(1, count + 1), x) / case.length) * share  # times 2/L times L/2
    covariance = sines @ matern(x[:, None] - x, case.start, 0.25 * case.length) @ sines.T
    return linalg.cholesky(covariance, lower=True)


def interpolation(x: Array, at: Array) -> Array:
    """Rows that read a function given at Chebyshev points."""
    degree = len(x) - 1
    scaled, there = (2.0 * v / (x[-1] - x[0]) - 1.0 for v in (x, at))
    inverse = np.linalg.inv(np.polynomial.chebyshev.chebvander(scaled, degree))
    return np.polynomial.chebyshev.chebvander(there, degree) @ inverse


class Lines:
    """u' = alpha A u between the walls, exact in time by the eigenvectors of A."""

    def __init__(self, case: Rod, cells: int, modes: int) -> None:
        self.x, slope = chebyshev(cells, case.length)
        inside = (slope @ slope)[1:-1, 1:-1]
        rates, vectors = np.linalg.eig(inside)
        self.rates, self.vectors = rates.real, vectors.real  # of this matrix both are real
        starts = case.rise * np.sin(np.pi * self.x / case.length)[:, None]
        if case.start is not None:
            sines = np.sin(np.pi * np.outer(self.x, np.arange(1, modes + 1)) / case.length)
            starts = np.hstack([starts, sines @ start_modes(case, modes)])
        self.starts = np.linalg.solve(self.vectors, starts[1:-1])  # the mean start, then one column per latent

    def at(self, x: Array, t: Array) -> tuple[Array, Array]:
        """Rows over the eigenvectors, and the times, of readings at points."""
        places, which = np.unique(x, return_inverse=True)
        return (interpolation(self.x, places)[:, 1:-1] @ self.vectors)[which], t[:, None]

    def read(self, rows: Array, t: Array, alpha: float) -> tuple[Array, Array]:
        """Answers to the mean start and to each latent of it, and their derivatives by alpha."""
        fading = rows * np.exp(alpha * self.rates * t)
        return fading @ self.starts, (fading * self.rates * t) @ self.starts


def fit(case: Rod, cells: int = 40, modes: int = 16) -> Answer:
    """alpha and, where it is uncertain, the start."""
    lines = Lines(case, cells, modes)
    centre, scale = case.alpha.latent
    readings = lines.at(np.full(len(case.t), case.x), case.t)

    def both(e: Array, rows: Array, t: Array) -> tuple[Array, Array]:
        """Values and slopes at points."""
        alpha = float(np.exp(centre + scale * e[0]))
        answers, by_alpha = lines.read(rows, t, alpha)
        whole = np.append(1.0, e[1:])
        return case.wall + answers @ whole, np.column_stack([scale * alpha * by_alpha @ whole, answers[:, 1:]])

    done = fitted(
        lambda e: (both(e, *readings)[0] - case.u) / case.sigma,
        lambda e: both(e, *readings)[1] / case.sigma,
        np.zeros(lines.starts.shape[1]),
    )
    mean, rows = both(done.mean, *lines.at(*case.places))
    evidence = done.log_evidence(np.full(len(case.u), case.sigma))
    return Answer(done.log_normal(0, centre, scale), mean, done.std_of(rows), evidence, done)


def fit_by_steps(case: Rod, cells: int = 50, rtol: float = 1e-6) -> dict[str, float]:
    """What most would write: central differences, BDF and least squares without derivatives, for a start that holds."""
    x = np.linspace(0.0, case.length, cells + 1)
    width = x[1]
    matrix = np.diag(np.full(cells - 1, -2.0)) + np.diag(np.ones(cells - 2), 1) + np.diag(np.ones(cells - 2), -1)
    matrix /= width**2
    begin = case.rise * np.sin(np.pi * x[1:-1] / case.length)
    sensor = round(case.x / width) - 1  # a node
    centre, scale = case.alpha.latent

    def residuals(e: Array) -> Array:
        alpha = float(np.exp(centre + scale * e[0]))
        run = integrate.solve_ivp(
            lambda t, u: alpha * (matrix @ u), (0.0, case.t[-1]), begin, "BDF", case.t, jac=alpha * matrix, rtol=rtol,
            atol=1e-4,
        )  # fmt: skip
        return np.append(e, (case.wall + run.y[sensor] - case.u) / case.sigma)

    done = optimize.least_squares(residuals, np.zeros(1), diff_step=1e-4, xtol=1e-8)
    (root,) = linalg.qr(done.jac, mode="r")
    return Fit(done.x, root[:1], float(done.cost), int(done.nfev), bool(done.success)).log_normal(0, centre, scale)


def main() -> None:
    for start in (None, 2.0):
        case = rod(start)
        begin = time.process_time()
        answer = fit(case)
        seconds = time.process_time() - begin
        alpha = answer.alpha
        label = "known" if start is None else f"+- {start}"
        print(f"start {label}: alpha {alpha['mean']:.4f} +- {alpha['std']:.4f}", end="")
        print(f", log evidence {answer.log_evidence:.4f}, {answer.fit.evaluations} evaluations, {seconds:.4f} s")
        print("  u", np.round(answer.mean, 3), "\n  +-", np.round(answer.std, 4))
    begin = time.process_time()
    alpha = fit_by_steps(rod(None))
    print(f"by steps: alpha {alpha['mean']:.4f} +- {alpha['std']:.4f}, {time.process_time() - begin:.4f} s")


if __name__ == "__main__":
    main()
