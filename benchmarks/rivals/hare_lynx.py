"""Hares and lynxes by DOP853 in logarithms with its sensitivity equations, then least squares on rates and starts.

python benchmarks/rivals/hare_lynx.py
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import integrate

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from rivals.cases import HareLynx, hare_lynx
from rivals.fit import Fit, fitted

Array = NDArray[np.float64]
GOOD = {"alpha": 0.55, "beta": 0.028, "gamma": 0.8, "delta": 0.024}  # where a published analysis ended
LEAST = 0.05  # thousand animals at the start: the prior is normal, the logarithm needs them positive


@dataclass(frozen=True)
class Answer:
    rates: dict[str, dict[str, float]]
    mean: Array  # of h and l at the case's places
    std: Array
    log_evidence: float
    starts: int  # points from which the fit was begun
    fit: Fit


class Animals:
    """h and l as functions of the latents: four rates, two starts."""

    def __init__(self, case: HareLynx, rtol: float) -> None:
        self.latent = np.array([p.latent for p in case.rates.values()])
        self.starts = np.array([p.latent for p in case.starts])
        self.rtol = rtol

    def values(self, e: Array, times: Array) -> Array:
        """Logarithms, of h and then of l."""
        alpha, beta, gamma, delta = np.exp(self.latent[:, 0] + self.latent[:, 1] * e[:4])

        def slope(t: float, y: Array) -> list[float]:
            h, l = np.exp(y)  # noqa: E741 - the equation's own name
            return [alpha - beta * l, delta * h - gamma]

        return self.run(slope, np.log(self.starts[:, 0] + self.starts[:, 1] * e[4:]), times)

    def slopes(self, e: Array, times: Array) -> Array:
        """Derivatives of the logarithms by the latents."""
        alpha, beta, gamma, delta = np.exp(self.latent[:, 0] + self.latent[:, 1] * e[:4])
        size = self.latent[:, 1]
        begin = self.starts[:, 0] + self.starts[:, 1] * e[4:]
        first = np.zeros((2, 7))
        first[:, 0] = np.log(begin)
        first[0, 5], first[1, 6] = self.starts[:, 1] / begin
        result = np.empty((2, 7))

        def slope(t: float, y: Array) -> Array:
            y = y.reshape(2, 7)
            h, l = np.exp(y[0, 0]), np.exp(y[1, 0])  # noqa: E741
            result[0] = -beta * l * y[1]
            result[1] = delta * h * y[0]
            result[0, :3] = alpha - beta * l, result[0, 1] + size[0] * alpha, result[0, 2] - size[1] * beta * l
            result[1, 0] = delta * h - gamma
            result[1, 3] -= size[2] * gamma
            result[1, 4] += size[3] * delta * h
            return result.ravel().copy()

        return self.run(slope, first.ravel(), times).reshape(2, 7, -1)[:, 1:].transpose(0, 2, 1)

    def run(self, slope: Callable[[float, Array], ArrayLike], first: Array, times: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            done = integrate.solve_ivp(
                slope, (times[0], times[-1]), first, "DOP853", times, rtol=self.rtol, atol=self.rtol
            )
        return done.y if done.success else np.full((len(first), len(times)), np.inf)


def fit(case: HareLynx, begin: str = "good", rtol: float = 1e-6, most: int = 20, seed: int = 0) -> Answer:
    """Rates and starts, begun at the published rates ("good"), at the prior's centre ("prior") or at a draw ("draw").

    A fit whose misfit a model of this kind would hardly have is begun anew at a draw of the prior, at most `most`
    times; the best one counts.
    """
    path = Animals(case, rtol)
    target = np.stack([case.log_hare, case.log_lynx])
    rng = np.random.default_rng(seed)
    least = np.concatenate([np.full(4, -np.inf), (LEAST - path.starts[:, 0]) / path.starts[:, 1]])

    def values(e: Array) -> Array:
        return np.nan_to_num((path.values(e, case.t) - target).ravel() / case.sigma, posinf=1e6, neginf=-1e6)

    def slopes(e: Array) -> Array:
        return np.nan_to_num(path.slopes(e, case.t).reshape(-1, 6) / case.sigma)

    best, plausible = None, target.size + 4.0 * np.sqrt(2.0 * target.size)  # of the sum of squares
    for number in range(most):
        drawn = number > 0 or begin == "draw"
        e = np.maximum(rng.standard_normal(6), least + 0.01) if drawn else np.zeros(6)
        if number == 0 and begin == "good":
            e[:4] = (np.log(list(GOOD.values())) - path.latent[:, 0]) / path.latent[:, 1]
        done = fitted(values, slopes, e, bounds=(least, np.full(6, np.inf)))
        if best is None or done.misfit < best.misfit:
            best = done
        if 2.0 * best.misfit < plausible:
            break
    assert best is not None
    rates = {name: best.log_normal(i, *path.latent[i]) for i, name in enumerate(case.rates)}
    animals = np.exp(path.values(best.mean, case.places)).ravel()
    rows = animals[:, None] * path.slopes(best.mean, case.places).reshape(-1, 6)
    evidence = best.log_evidence(np.full(target.size, case.sigma))
    return Answer(rates, animals, best.std_of(rows), evidence, number + 1, best)


def main() -> None:
    case = hare_lynx()
    for begin, seed in (("good", 0), ("prior", 0), *(("draw", seed) for seed in range(5))):
        start = time.process_time()
        answer = fit(case, begin, seed=seed)
        seconds = time.process_time() - start
        for name, value in answer.rates.items():
            print(f"{name} {value['mean']:.5f} +- {value['std']:.5f}", end=", ")
        print(f"log evidence {answer.log_evidence:.4f}; from {begin} start: {answer.starts} fits, {seconds:.3f} s")


if __name__ == "__main__":
    main()
