"""Exact Gaussian processes of the linear heat equation on a line: plain NumPy, nothing of factorfield.

u_t = D u_xx on [0, L], t >= 0. At either end the value u is held at `level`, or the flux -u_x is given: q(t) at x = 0,
none at x = L. The start f is a mean plus a Matern-5/2 process, q as well. All that can be read is linear in f and q:

    u(x, t) = level + sum_n phi_n(x) exp(-rate_n t) integral of phi_n (f - level)  +  integral_0^t H(x, t - s) q(s) ds

so that readings and targets are jointly Gaussian and everything follows from one covariance matrix.

- The start's part is a series in the eigenfunctions phi_n, which vanish where the value is held. The double integrals
  of the kernel are split at its kink, so that Gauss points converge geometrically. At t = 0 the field is f itself.
- H, the answer to a short pulse of flux, is a sum over mirror images for short times and over eigenfunctions for long
  ones. On every panel of time q is a polynomial through Gauss points; integrals of H times such a polynomial are taken
  in the variable sqrt(t - s), in which H is smooth, on intervals that halve towards s = t. The error falls with the
  sixth power of the panels' width, since the process itself has no more smoothness.

    line = HeatLine(diffusion=1.0, length=1.0, walls=("flux", "value"), start=Process(0.0, 2.0, 0.25),
                    flux=Process(1.0, 0.5, 0.2), end=1.0)
    answer = line.posterior(Readings(x, t, y, sigma), Targets(x=[0.5], t=[1.0], flux=[0.2, 0.4]))
    answer.mean, answer.std, answer.covariance, answer.log_evidence     # targets: u at (x, t), then q at `flux`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
NEGLIGIBLE = 40.0  # exponents beyond this leave exp(-40) = 4e-18


@dataclass(frozen=True)
class Process:
    """A mean (a number, or a function of the place) plus a Matern-5/2 process of this std and length."""

    mean: float | Callable[[Array], Array]
    std: float
    length: float

    def means(self, at: Array) -> Array:
        return np.asarray(self.mean(at) if callable(self.mean) else np.full(np.shape(at), float(self.mean)))

    def kernel(self, gap: Array) -> Array:
        scaled = np.sqrt(5.0) * np.abs(gap) / self.length
        return self.std**2 * (1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled)


@dataclass(frozen=True)
class Targets:
    """u at the points (x, t), then q at the times `flux`."""

    x: ArrayLike = ()
    t: ArrayLike = ()
    flux: ArrayLike = ()

    @property
    def places(self) -> tuple[Array, Array, Array]:
        x, t = np.broadcast_arrays(np.atleast_1d(np.asarray(self.x, float)), np.atleast_1d(np.asarray(self.t, float)))
        return x, t, np.atleast_1d(np.asarray(self.flux, float))


@dataclass(frozen=True)
class Readings:
    """Values of u at the points (x, t) with independent errors of std sigma."""

    x: ArrayLike
    t: ArrayLike
    u: ArrayLike
    sigma: ArrayLike


@dataclass(frozen=True)
class Posterior:
    mean: Array
    covariance: Array
    log_evidence: float

    @property
    def std(self) -> Array:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))


@dataclass(frozen=True)
class HeatLine:
    """See the module. `walls` are "value" or "flux", at x = 0 and x = L; `level` is that of ends whose value is held.

    start    the process of f; None: f = 0 everywhere
    flux     the process of q, with walls[0] == "flux"; None: q = 0
    end      the last time that q is needed for
    panels, order   polynomials of q: their number, and the points of each
    nodes    Gauss points of integrals along the line, beyond two for each eigenfunction
    shortest the first time after t = 0 that can be read, as a share of length^2 / D: what the series has to resolve
    """

    diffusion: float
    length: float
    walls: tuple[str, str] = ("value", "value")
    level: float = 0.0
    start: Process | None = None
    flux: Process | None = None
    end: float = 1.0
    panels: int = 100
    order: int = 6
    nodes: int = 20
    shortest: float = 1e-3

    def __post_init__(self) -> None:
        assert set(self.walls) <= {"value", "flux"}
        assert self.flux is None or self.walls[0] == "flux"

    # -- the line's eigenfunctions

    @cached_property
    def waves(self) -> Array:
        """Wave numbers of all eigenfunctions that are left at the shortest time."""
        count = int(np.ceil(np.sqrt(NEGLIGIBLE / self.shortest) / np.pi)) + 1
        first = {("value", "value"): 1.0, ("flux", "flux"): 0.0}.get(self.walls, 0.5)
        return np.pi * (first + np.arange(count)) / self.length

    def eigenfunctions(self, x: Array) -> Array:
        """Rows of points, columns of functions of norm 1."""
        shape = np.sin if self.walls[0] == "value" else np.cos
        size = np.where(self.waves > 0.0, np.sqrt(2.0 / self.length), np.sqrt(1.0 / self.length))
        return size * shape(np.multiply.outer(x, self.waves))

    @cached_property
    def along(self) -> tuple[Array, Array]:
        """Gauss points and weights of the whole line."""
        return gauss(self.nodes + 2 * len(self.waves), 0.0, self.length)

    def projected_kernel(self, x: Array) -> Array:
        """integral of phi_n(y) k(x, y) dy, the two sides of the kink at y = x apart: points by functions."""
        assert self.start is not None
        rows = []
        for one in x:
            parts = [gauss(len(self.along[0]), *ends) for ends in ((0.0, one), (one, self.length))]
            y, weight = (np.concatenate(part) for part in zip(*parts, strict=True))
            rows.append((weight * self.start.kernel(y - one)) @ self.eigenfunctions(y))
        return np.array(rows).reshape(len(x), len(self.waves))

    @cached_property
    def start_covariance(self) -> Array:
        """Of the start's coefficients, the integrals of phi_n f."""
        y, weight = self.along
        both = self.eigenfunctions(y).T @ (weight[:, None] * self.projected_kernel(y))
        return (both + both.T) / 2.0

    @cached_property
    def start_mean(self) -> Array:
        y, weight = self.along
        mean = np.zeros(len(y)) if self.start is None else self.start.means(y)
        return self.eigenfunctions(y).T @ (weight * (mean - self.level))

    # -- the answer to the flux

    def pulse(self, x: float, time: Array) -> Array:
        """H(x, time): the field after a unit of flux at x = 0, time 0."""
        scaled = self.diffusion * time / self.length**2
        sign = 1.0 if self.walls[1] == "flux" else -1.0
        early, late = np.minimum(scaled, 0.1), np.maximum(scaled, 0.1)
        images = np.arange(-3, 4)
        far = (x / self.length - 2.0 * images) ** 2
        mirrored = np.exp(-np.divide.outer(far, 4.0 * early).T) @ (sign ** np.abs(images))
        mirrored *= self.diffusion / self.length / np.sqrt(np.pi * early)
        few = self.waves[:12] * self.length
        shares = self.eigenfunctions(np.array(x))[:12] * self.eigenfunctions(np.array(0.0))[:12]
        summed = self.diffusion * np.exp(-np.multiply.outer(late, few**2)) @ shares
        return np.where(scaled <= 0.1, mirrored, summed)

    @cached_property
    def flux_times(self) -> Array:
        """Where q is read: Gauss points of every panel."""
        edges = np.linspace(0.0, self.end, self.panels + 1)
        places, _ = gauss(self.order, 0.0, 1.0)
        return (edges[:-1, None] + np.diff(edges)[:, None] * places).ravel()

    def flux_row(self, x: float, t: float) -> Array:
        """Weights of q at `flux_times` in u(x, t)."""
        row = np.zeros((self.panels, self.order))
        if t <= 0.0:
            return row.ravel()
        width = self.end / self.panels
        edges = width * np.arange(self.panels + 1)
        halves = t * 0.25 ** np.arange(40)  # of t - s; its root halves
        breaks = np.unique(np.concatenate([[0.0], np.sqrt(halves), np.sqrt(t - edges[edges < t])]))
        places, shares = gauss(12, 0.0, 1.0)
        gaps = np.diff(breaks)[:, None]
        root = (breaks[:-1, None] + gaps * places).ravel()  # sqrt(t - s)
        weight = (gaps * shares).ravel() * 2.0 * root * self.pulse(x, root**2)
        s = t - root**2
        middle = np.repeat(t - ((breaks[:-1] + breaks[1:]) / 2.0) ** 2, len(places))
        panel = np.clip((middle / width).astype(int), 0, self.panels - 1)
        np.add.at(row, panel, weight[:, None] * lagrange(gauss(self.order, 0.0, 1.0)[0], s / width - panel))
        return row.ravel()

    # -- what is read and asked

    def joint(self, targets: Targets) -> tuple[Array, Array]:
        """Mean and covariance, before any reading, of u at the points and then of q at the times."""
        x, t, times = targets.places
        mean = np.full(len(x) + len(times), 0.0)
        covariance = np.zeros((len(mean), len(mean)))
        count = len(x)
        mean[:count], covariance[:count, :count] = self.from_start(x, t)
        if self.flux is not None:
            rows = np.array([self.flux_row(*point) for point in zip(x, t, strict=True)]).reshape(count, -1)
            nodes = self.flux_times
            every = np.concatenate([nodes, times])
            rows = np.vstack([
                np.hstack([rows, np.zeros((count, len(times)))]), np.eye(len(times), len(every), len(nodes))
            ])  # fmt: skip
            mean += rows @ self.flux.means(every)
            covariance += rows @ self.flux.kernel(every[:, None] - every) @ rows.T
        return mean, covariance

    def from_start(self, x: Array, t: Array) -> tuple[Array, Array]:
        """Mean and covariance of the part of u that comes from its start."""
        assert np.all((t == 0.0) | (t * self.diffusion / self.length**2 >= self.shortest)), "lower `shortest`"
        fading = self.eigenfunctions(x) * np.exp(-self.diffusion * np.multiply.outer(t, self.waves**2))
        mean = self.level + fading @ self.start_mean
        begin = t == 0.0
        if self.start is None:
            return np.where(begin, 0.0, mean), np.zeros((len(x), len(x)))
        mean[begin] = self.start.means(x[begin])
        covariance = fading @ self.start_covariance @ fading.T
        crossed = self.projected_kernel(x[begin]) @ fading.T
        covariance[begin], covariance[:, begin] = crossed, crossed.T
        covariance[np.ix_(begin, begin)] = self.start.kernel(x[begin][:, None] - x[begin])
        return mean, covariance

    def posterior(self, readings: Readings, targets: Targets) -> Posterior:
        """Given the readings: mean and covariance of the targets, and the log density of the readings."""
        x, t, times = targets.places
        there, when, _ = Targets(readings.x, readings.t).places
        y = np.broadcast_to(np.asarray(readings.u, float), there.shape)
        sigma = np.broadcast_to(np.asarray(readings.sigma, float), there.shape)
        count = len(there)
        mean, covariance = self.joint(Targets(np.concatenate([there, x]), np.concatenate([when, t]), times))
        root = np.linalg.cholesky(covariance[:count, :count] + np.diag(sigma**2))
        misfit = np.linalg.solve(root, y - mean[:count])
        shared = np.linalg.solve(root, covariance[:count, count:])
        evidence = -0.5 * misfit @ misfit - np.sum(np.log(np.diag(root))) - 0.5 * count * np.log(2.0 * np.pi)
        return Posterior(
            mean[count:] + shared.T @ misfit, covariance[count:, count:] - shared.T @ shared, float(evidence)
        )


legendre = lru_cache(np.polynomial.legendre.leggauss)


def gauss(count: int, low: float, high: float) -> tuple[Array, Array]:
    """Gauss-Legendre points and weights on an interval."""
    places, weights = legendre(count)
    return low + (high - low) * (places + 1.0) / 2.0, weights * (high - low) / 2.0


def lagrange(nodes: Array, at: Array) -> Array:
    """Values of the polynomials that are 1 at one node and 0 at the others: points by nodes."""
    gaps = at[:, None] - nodes
    columns = []
    for index, node in enumerate(nodes):
        others = np.delete(np.arange(len(nodes)), index)
        columns.append(np.prod(gaps[:, others] / (node - nodes[others]), axis=1))
    return np.stack(columns, axis=1)
