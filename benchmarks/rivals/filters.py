"""Ensemble filters on Kuramoto-Sivashinsky: LETKF and EnKF with a symmetric square root.

python benchmarks/rivals/filters.py [--cycles 100] [--seeds 5]

Written from Hunt, Kostelich and Szunyogh (2007) for LETKF, Sakov and Oke (2008) for the square root and its random
rotation, Gaspari and Cohn (1999) for the taper. Sizes, radii and inflations are those that a public benchmark tuned
for this problem (DAPPER's bocquet2019; its radius of 51 points is half of ours).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from rivals.cases import Etdrk4, KuramotoSivashinsky, kuramoto_sivashinsky

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    means: Array  # analyses, one row per cycle
    spread: Array  # std of the ensemble, averaged over points, per cycle
    rmse: float  # of cycles 21 and later
    seconds: Array  # processor time per cycle


def gaspari_cohn(gap: Array, reach: float) -> Array:
    """1 at a gap of 0, falls to 0 at `reach`."""
    r = np.minimum(2.0 * gap / reach, 2.0)
    near = 1.0 - r**2 * (5.0 / 3.0) + r**3 * (5.0 / 8.0) + r**4 / 2.0 - r**5 / 4.0
    safe = np.maximum(r, 1.0)
    far = 4.0 - 5.0 * safe + safe**2 * (5.0 / 3.0) + safe**3 * (5.0 / 8.0) - safe**4 / 2.0 + safe**5 / 12.0
    return np.where(r < 1.0, near, np.maximum(far - 2.0 / (3.0 * safe), 0.0))


def rotation(rng: np.random.Generator, members: int) -> Array:
    """A random orthogonal matrix that keeps the mean of the ensemble."""
    basis, _ = np.linalg.qr(np.column_stack([np.ones(members), rng.standard_normal((members, members - 1))]))
    turn, triangle = np.linalg.qr(rng.standard_normal((members - 1, members - 1)))
    turn *= np.sign(np.diag(triangle))
    return np.outer(basis[:, 0], basis[:, 0]) + basis[:, 1:] @ turn @ basis[:, 1:].T


def sqrt_analysis(ensemble: Array, reading: Array, sigma: float) -> Array:
    """The ensemble after the reading: mean by Kalman's formula, anomalies by a symmetric square root."""
    members = len(ensemble)
    mean = ensemble.mean(axis=0)
    anomalies = ensemble - mean
    scaled = anomalies / sigma
    values, vectors = np.linalg.eigh(scaled @ scaled.T + (members - 1.0) * np.eye(members))
    weights = vectors @ ((vectors.T @ (scaled @ (reading - mean))) / values) / sigma
    square_root = (vectors * np.sqrt((members - 1.0) / values)) @ vectors.T
    return mean + weights @ anomalies + square_root @ anomalies


def local_analysis(ensemble: Array, reading: Array, sigma: float, taper: Array) -> Array:
    """The same at every point by itself, with readings weighted by their distance: taper, points by readings."""
    members = len(ensemble)
    mean = ensemble.mean(axis=0)
    anomalies = ensemble - mean
    scaled = anomalies / sigma
    # all points at once: a small symmetric matrix each
    grams = np.einsum("pr,kr,lr->pkl", taper, scaled, scaled, optimize=True) + (members - 1.0) * np.eye(members)
    values, vectors = np.linalg.eigh(grams)
    pull = np.einsum("pr,kr,r->pk", taper, scaled, (reading - mean) / sigma, optimize=True)
    inside = np.einsum("pkl,pk->pl", vectors, pull) / values
    weights = np.einsum("pkl,pl->pk", vectors, inside)
    along = np.einsum("pkl,kp->pl", vectors, anomalies) * np.sqrt((members - 1.0) / values)
    shifts = np.einsum("pkl,pl->kp", vectors, along)
    return mean + np.einsum("pk,kp->p", weights, anomalies) + shifts


def cycled(
    case: KuramotoSivashinsky, analysis: Callable[[Array, Array], Array], members: int, inflation: float, seed: int,
    step: float,
) -> Answer:  # fmt: skip
    """Forecast and analysis in turn; after each analysis anomalies are rotated and inflated."""
    rng = np.random.default_rng(seed)
    march = Etdrk4(len(case.x), case.length, step)
    ensemble = case.start + case.start_sigma * rng.standard_normal((members, len(case.x)))
    means, spread, seconds = [], [], []
    for reading in case.readings:
        begin = time.process_time()
        ensemble = analysis(march(ensemble, 1.0), reading)
        mean = ensemble.mean(axis=0)
        ensemble = mean + inflation * rotation(rng, members) @ (ensemble - mean)
        seconds.append(time.process_time() - begin)
        means.append(mean)
        spread.append(np.sqrt(np.mean(np.var(ensemble, axis=0, ddof=1))))
    path = np.array(means)
    return Answer(path, np.array(spread), case.rmse(path), np.array(seconds))


def letkf(
    case: KuramotoSivashinsky, members: int = 16, radius: float = 102.0, inflation: float = 1.02, seed: int = 1,
    step: float = 0.25,
) -> Answer:  # fmt: skip
    """`radius` in points: where the weight of a reading becomes 0."""
    points = len(case.x)
    gap = np.abs(np.arange(points)[:, None] - np.arange(points))
    taper = gaspari_cohn(np.minimum(gap, points - gap).astype(float), radius)
    return cycled(case, lambda e, y: local_analysis(e, y, case.sigma, taper), members, inflation, seed, step)


def enkf_sqrt(
    case: KuramotoSivashinsky, members: int = 20, inflation: float = 1.03, seed: int = 1, step: float = 0.25
) -> Answer:
    return cycled(case, lambda e, y: sqrt_analysis(e, y, case.sigma), members, inflation, seed, step)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    for seed in range(arguments.seeds):
        case = kuramoto_sivashinsky(arguments.cycles, seed)
        for filter_ in (letkf, enkf_sqrt):
            answer = filter_(case)
            print(
                f"seed {seed} {filter_.__name__}: analysis RMSE of cycles 21 on {answer.rmse:.4f}, spread "
                f"{np.mean(answer.spread[20:]):.4f}, {np.median(answer.seconds):.4f} s a cycle", flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    main()
