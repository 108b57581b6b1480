"""An unknown flux by superposition: the answer to each of some forty nodes once, then linear least squares.

python benchmarks/rivals/flux.py
"""

from __future__ import annotations

import itertools
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from rivals.cases import Flux, flux, flux_response, matern
from rivals.fit import linear

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    mean: Array  # of q at the case's places
    std: Array
    log_evidence: float


def fit(case: Flux, nodes: int = 41) -> Answer:
    """q is linear between equidistant nodes; its values there have the stated prior.

    41 nodes are what one would take, and 0.2 std off; 161 are 0.01 std off.
    """
    times = np.linspace(0.0, case.end, nodes)
    prior = case.flux
    covariance = matern(times[:, None] - times, prior.std, prior.length)
    root = linalg.cholesky(covariance + 1e-12 * prior.std**2 * np.eye(nodes), lower=True)
    response = np.vstack([flux_response(x, case.t, times) for x in case.sensors])
    misfit = case.u.ravel() - prior.mean * response.sum(axis=1)
    done = linear(response @ root / case.sigma, misfit / case.sigma)
    read = np.maximum(0.0, 1.0 - np.abs(case.places[:, None] - times) / times[1]) @ root
    evidence = done.log_evidence(np.full(case.u.size, case.sigma))
    return Answer(prior.mean + read @ done.mean, done.std_of(read), evidence)


def exact(case: Flux) -> Answer:
    """The same on nodes so fine that the answer does not change: what both should find."""
    return fit(case, nodes=1001)


def main() -> None:
    for count, sensors, nodes in itertools.product((60, 100), ((0.2,), (0.2, 1.0)), (41, 161)):
        case = flux(count, sensors=sensors)
        begin = time.process_time()
        answer = fit(case, nodes)
        seconds = time.process_time() - begin
        fine = exact(case)
        truth = np.interp(case.places, *case.truth)
        rms = np.sqrt(np.mean(((answer.mean - truth) / answer.std) ** 2))
        print(
            f"{count} readings at x = {sensors}, {nodes} nodes: rms z {rms:.2f}, "
            f"off the fine answer by {np.max(np.abs(answer.mean - fine.mean) / fine.std):.1e} std, "
            f"std off by {np.max(np.abs(answer.std / fine.std - 1.0)):.1e}, log evidence {answer.log_evidence:.4f} "
            f"(fine {fine.log_evidence:.4f}), {seconds:.4f} s"
        )


if __name__ == "__main__":
    main()
