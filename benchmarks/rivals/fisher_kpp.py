"""Fisher-KPP on a ring by Strang splitting with its exact tangent, then least squares on two rates and the start.

python benchmarks/rivals/fisher_kpp.py
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from rivals.cases import FisherKPP, fisher_kpp, matern
from rivals.fit import Fit, fitted

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Answer:
    nu: dict[str, float]
    rho: dict[str, float]
    mean: Array  # of the field at the case's places
    std: Array
    log_evidence: float | None  # None without a prior of the start
    fit: Fit


def waves(x: Array, count: int) -> Array:
    angle = 2.0 * np.pi * np.outer(x, np.arange(1, count + 1))
    return np.column_stack([np.ones(len(x)), np.cos(angle), np.sin(angle)])


def stated_start(case: FisherKPP, frequencies: int, points: int = 256) -> tuple[Array, Array]:
    """Mean of the wave coefficients, and their stds: distances on the ring are chords of its circle."""
    assert case.start is not None
    gap = np.sin(np.pi * np.arange(points) / points) / np.pi
    along = matern(gap, case.start.std, case.start.length)
    spectrum = np.maximum(np.fft.rfft(along).real[: frequencies + 1] / points, 0.0)
    std = np.sqrt(np.concatenate([spectrum[:1], 2.0 * spectrum[1:], 2.0 * spectrum[1:]]))
    mean = np.zeros(len(std))
    mean[0] = case.start.mean
    return mean, std


class Ring:
    """Fields on equidistant cells, with the derivatives by log nu, log rho and each latent of the start."""

    def __init__(self, case: FisherKPP, cells: int, frequencies: int, step: float) -> None:
        self.cells, self.step = cells, step
        grid = np.arange(cells) / cells
        if case.start is not None:
            self.mean, size = stated_start(case, frequencies)
        else:
            size = np.ones(2 * frequencies + 1)
            at_start = case.t == 0.0
            self.mean = np.linalg.lstsq(waves(case.x[at_start], frequencies), case.u[at_start], rcond=None)[0]
        self.start = waves(grid, frequencies) * size
        self.mean = waves(grid, frequencies) @ self.mean
        self.symbol = -((2.0 * np.pi * np.fft.rfftfreq(cells, 1.0 / cells)) ** 2)[:, None]
        self.most = cells // 2 - 1
        self.held = np.linalg.pinv(waves(grid, self.most))

    def react(self, u: Array, slopes: Array | None, rho: float, gap: float) -> tuple[Array, Array | None]:
        """The exact flow of u' = rho u (1 - u)."""
        fade = np.exp(-rho * gap)
        below = u + (1.0 - u) * fade
        if slopes is not None:
            slopes *= (fade / below**2)[:, None]
            slopes[:, 1] += gap * rho * u * (1.0 - u) * fade / below**2
        return u / below, slopes

    def spread(self, u: Array, slopes: Array | None, nu: float, gap: float) -> tuple[Array, Array | None]:
        """The exact flow of u_t = nu u_xx."""
        fade = np.exp(nu * gap * self.symbol)
        if slopes is None:
            return np.fft.irfft(fade[:, 0] * np.fft.rfft(u), self.cells), None
        hat = fade * np.fft.rfft(np.column_stack([u, slopes]), axis=0)
        hat[:, 1] += nu * gap * self.symbol[:, 0] * hat[:, 0]
        whole = np.fft.irfft(hat, self.cells, axis=0)
        return whole[:, 0], whole[:, 1:]

    def march(self, u: Array, slopes: Array | None, rates: tuple[float, float], times: Array) -> list[tuple]:
        """Fields and slopes at each of these times, from the first one on."""
        nu, rho = rates
        rows = [(u, None if slopes is None else slopes.copy())]
        for gap in np.diff(times):
            count = max(1, int(np.ceil(gap / self.step - 1e-9)))
            h = gap / count
            u, slopes = self.react(u, slopes, rho, h / 2.0)
            for index in range(count):  # neighbouring half steps of the reaction are one whole step
                u, slopes = self.spread(u, slopes, nu, h)
                u, slopes = self.react(u, slopes, rho, h / 2.0 if index == count - 1 else h)
            rows.append((u, None if slopes is None else slopes.copy()))
        return rows

    def at(self, x: Array, t: Array) -> tuple[Array, Array, Array]:
        """How to read points: rows over the cells, the times to stop at, and the number of each point's time."""
        times, when = np.unique(np.append(0.0, t), return_inverse=True)
        return waves(x, self.most) @ self.held, times, when[1:]

    def read(self, e: Array, rates: tuple[float, float], where: tuple[Array, Array, Array], slopes: bool) -> Array:
        rows, times, when = where
        tangent = np.column_stack([np.zeros((self.cells, 2)), self.start]) if slopes else None
        path = self.march(self.mean + self.start @ e[2:], tangent, rates, times)
        if not slopes:
            return np.einsum("nc,nc->n", rows, np.stack([u for u, _ in path])[when])
        result = np.empty((len(rows), len(e)))
        for number, (_, tangent) in enumerate(path):
            here = when == number
            result[here] = rows[here] @ tangent
        return result


def fit(case: FisherKPP, cells: int = 64, frequencies: int = 24, step: float = 0.01) -> Answer:
    """Both rates and the start."""
    ring = Ring(case, cells, frequencies, step)
    (m, s), (n, r) = case.nu.latent, case.rho.latent
    where = ring.at(case.x, case.t)

    def rates(e: Array) -> tuple[float, float]:
        return float(np.exp(m + s * e[0])), float(np.exp(n + r * e[1]))

    def slopes(e: Array, where: tuple[Array, Array, Array]) -> Array:
        rows = ring.read(e, rates(e), where, slopes=True)
        rows[:, :2] *= s, r
        return rows

    done = fitted(
        lambda e: (ring.read(e, rates(e), where, slopes=False) - case.u) / case.sigma,
        lambda e: slopes(e, where) / case.sigma,
        np.zeros(ring.start.shape[1] + 2), None if case.start is not None else 2,
    )  # fmt: skip
    there = ring.at(*case.places)
    return Answer(
        done.log_normal(0, m, s), done.log_normal(1, n, r), ring.read(done.mean, rates(done.mean), there, slopes=False),
        done.std_of(slopes(done.mean, there)),
        None if case.start is None else done.log_evidence(np.full(len(case.u), case.sigma)), done,
    )  # fmt: skip


def main() -> None:
    for stated in (False, True):
        case = fisher_kpp(stated)
        begin = time.process_time()
        answer = fit(case)
        seconds = time.process_time() - begin
        for name, value in (("nu", answer.nu), ("rho", answer.rho)):
            print(f"{name} {value['mean']:.6f} +- {value['std']:.6f} (truth {case.truth[name]})", end="; ")
        print(f"log evidence {answer.log_evidence}, {answer.fit.evaluations} evaluations, {seconds:.3f} s")
        print("  u", np.round(answer.mean, 4), "\n  +-", np.round(answer.std, 4))


if __name__ == "__main__":
    main()
