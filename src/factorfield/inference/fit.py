"""Gauss-Newton over the latents: the mode, the messages of the measurements there, and the evidence.

The measurements send exp(-|r|^2 / 2) with r the residuals in units of their sigma, linearised: r + J (e' - e). The
posterior precision is I + J'J. For a map that is affine in the latents all of this is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.forward.algebra import Singular
from factorfield.forward.map import ForwardMap
from factorfield.forward.newton import NotConverged
from factorfield.forward.paths import Path, Reading
from factorfield.inference.latents import LatentVariables
from factorfield.inference.measurements import Measurements

Array = NDArray[np.float64]
LOG_TWO_PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class Tuning:
    """When Gauss-Newton ends."""

    settled: float = 1e-8  # half of the squared step in units of the posterior's std
    most_steps: int = 60
    most_halvings: int = 12
    least_decrease: float = 1e-4  # share of the predicted one
    largest_step: float = 6.0  # of any latent: the prior says that larger ones are rare
    noise_settled: float = 1e-5  # relative change of an estimated sigma
    most_noise_steps: int = 100


TUNING = Tuning()
STEP = Tuning(settled=1e-4)  # in an update: to a hundredth of a std
ROUGH = Tuning(settled=1e-3, noise_settled=1e-2)  # while the resolution, or the horizon, is still to change


@dataclass(frozen=True, eq=False)
class Gaussian:
    """N(mean, L L') over latents with L = I - V diag(d) V': the prior where d = 0, certain where d = 1."""

    mean: Array
    vectors: Array  # (latents, directions that data inform)
    shares: Array

    @staticmethod
    def of(mean: Array, slopes: Array) -> Gaussian:
        """With precision I + J'J."""
        if slopes.shape[0] >= slopes.shape[1]:
            values, vectors = np.linalg.eigh(slopes.T @ slopes)
            squares = np.maximum(values, 0.0)
        else:
            _, sizes, right = np.linalg.svd(slopes, full_matrices=False)
            vectors, squares = right.T, sizes**2
        return Gaussian(mean, np.ascontiguousarray(vectors), 1.0 - 1.0 / np.sqrt(1.0 + squares))

    def spread(self, rows: Array) -> Array:
        """rows L: the covariance of functionals (rows, latents) is its product with its transpose."""
        return np.asarray(rows - ((rows @ self.vectors) * self.shares) @ self.vectors.T)

    def covariance_times(self, columns: Array) -> Array:
        """L L' columns."""
        shrunk = 1.0 - (1.0 - self.shares) ** 2
        return np.asarray(columns - (self.vectors * shrunk) @ (self.vectors.T @ columns))

    @property
    def log_determinant(self) -> float:
        """Of the precision."""
        return float(-2.0 * np.sum(np.log1p(-self.shares)))


@dataclass(frozen=True, eq=False)
class Point:
    """The map at latents: its path and the residuals of the measurements."""

    e: Array
    path: Path
    reading: Reading
    residual: Array  # in units of sigma

    @property
    def objective(self) -> float:
        return 0.5 * float(self.e @ self.e) + 0.5 * float(self.residual @ self.residual)


@dataclass(eq=False)
class Counter:
    """The currency: forward runs, columns of tangents, adjoint solves."""

    runs: int = 0
    tangents: int = 0
    adjoints: int = 0


@dataclass(frozen=True, eq=False)
class Task:
    """What is fitted: a map, latents, and measurements."""

    map: ForwardMap
    latents: LatentVariables
    measurements: Measurements
    counter: Counter = field(default_factory=Counter)

    @cached_property
    def is_affine(self) -> bool:
        """Are all measurements an affine function of the latents?"""
        return self.map.discrete.layout.is_affine and all(g.expression.is_affine for g in self.measurements.groups)

    def at(self, e: Array) -> Point:
        self.counter.runs += 1
        return self.read(e, self.map.run(self.latents.coefficients(e)))

    def read(self, e: Array, path: Path) -> Point:
        reading = self.measurements.reading(path, self.latents.inputs)
        residual = (reading.values - self.measurements.targets) / self.measurements.sigmas
        return Point(e, path, reading, residual)

    @property
    def by_adjoint(self) -> bool:
        """Are transposed solves for the measurements cheaper than solves for the latents?"""
        return not len(self.map.edges) and self.measurements.count < self.latents.size

    def tangent(self, path: Path) -> Array:
        self.counter.tangents += self.latents.size
        return self.map.tangent(path, self.latents.directions(np.eye(self.latents.size)))

    def slopes(self, point: Point, tangent: Array | None = None) -> Array:
        """J, (measurements, latents)."""
        if tangent is None and self.by_adjoint:
            return self._slopes_by_adjoint(point)
        tangent = self.tangent(point.path) if tangent is None else tangent
        moved = point.reading.moved(tangent, self.latents.directions(np.eye(self.latents.size)))
        return np.asarray(moved / self.measurements.sigmas[:, None])

    def coefficient_slopes(self, point: Point, names: Sequence[str]) -> dict[str, Array]:
        """Slopes of the measurements by the coefficients of some inputs, in units of sigma."""
        inputs, sigmas = self.latents.inputs, self.measurements.sigmas[:, None]
        if self.by_adjoint:
            rows = self._adjoint_rows(point)
            none = self.measurements.count
            return {name: rows.get(name, np.zeros((inputs[name].size, none))).T / sigmas for name in names}
        result = {}
        for name in names:
            directions = {name: np.eye(inputs[name].size)}
            self.counter.tangents += inputs[name].size
            tangent = self.map.tangent(point.path, directions)
            result[name] = point.reading.moved(tangent, directions) / sigmas
        return result

    def _slopes_by_adjoint(self, point: Point) -> Array:
        rows = self._adjoint_rows(point)
        return np.asarray(self.latents.gathered(rows, self.measurements.count).T / self.measurements.sigmas[:, None])

    def _adjoint_rows(self, point: Point) -> dict[str, Array]:
        """By input, (coefficients, measurements)."""
        self.counter.adjoints += self.measurements.count
        rows = self.map.adjoint(point.path, point.reading.rows.toarray())
        for name, direct in point.reading.input_rows.items():
            rows[name] = rows[name] + direct.T if name in rows else direct.T
        return rows


@dataclass(frozen=True, eq=False)
class Fit:
    """The posterior of the latents with what it was linearised at."""

    task: Task
    point: Point
    kept_slopes: Array | None  # None: computed when they are needed
    belief: Gaussian
    steps: int
    has_settled: bool
    kept_tangent: Array | None = None
    log_sites: float = 0.0  # what sites of outliers add to the evidence

    @cached_property
    def slopes(self) -> Array:
        """J, (measurements, latents)."""
        return self.task.slopes(self.point) if self.kept_slopes is None else self.kept_slopes

    @cached_property
    def tangent(self) -> Array:
        """Of the path by all latents."""
        return self.task.tangent(self.point.path) if self.kept_tangent is None else self.kept_tangent

    @property
    def log_evidence(self) -> float:
        """Natural log density of the measurements: exact for an affine map, by Laplace's method otherwise."""
        noise = float(np.sum(np.log(self.task.measurements.sigmas))) + 0.5 * len(self.point.residual) * LOG_TWO_PI
        jacobian = sum(group.log_jacobian for group in self.task.measurements.groups)
        return -self.point.objective - noise - 0.5 * self.belief.log_determinant + jacobian + self.log_sites


Report = Callable[[str, float], None]


def fit(task: Task, start: Array, tuning: Tuning = TUNING, known: Fit | None = None) -> Fit:
    """The posterior mode from a start; sigmas that are not given maximise the evidence.

    `known` is a fit of the same map with other measurements: an affine map needs no further run."""
    if not task.latents.size or not task.measurements.count:
        point = task.at(np.zeros(task.latents.size))
        slopes = np.zeros((task.measurements.count, task.latents.size))
        return _with_noise(Fit(task, point, slopes, Gaussian.of(point.e, slopes), 0, True), tuning)
    if task.is_affine:
        return _with_noise(_affine(task, known), tuning)
    return _with_noise(_searched(task, start, tuning, known), tuning)


def _affine(task: Task, known: Fit | None) -> Fit:
    """One linear solve: path and tangent serve all latents."""
    tangent: Array | None
    if known is not None:
        point, tangent = task.read(known.point.e, known.point.path), known.tangent
    else:
        point = task.at(np.zeros(task.latents.size))
        tangent = None if task.by_adjoint else task.tangent(point.path)
    slopes = task.slopes(point, tangent)
    belief = Gaussian.of(_step_to(point, slopes), slopes)
    moved = belief.mean - point.e
    if tangent is None:
        return Fit(task, task.at(belief.mean), slopes, belief, 1, True)
    values = point.path.values + np.tensordot(tangent, moved, 1)
    inputs = task.latents.coefficients(belief.mean)
    return Fit(task, task.read(belief.mean, replace(point.path, values=values, inputs=inputs)), slopes, belief, 1,
               True, tangent)  # fmt: skip


def _step_to(point: Point, slopes: Array) -> Array:
    """The mode of the linearised posterior."""
    count, size = slopes.shape
    wanted = slopes @ point.e - point.residual
    if count >= size:
        precision = slopes.T @ slopes + np.eye(size)
        return np.asarray(linalg.cho_solve(linalg.cho_factor(precision), slopes.T @ wanted))
    return np.asarray(slopes.T @ linalg.cho_solve(linalg.cho_factor(slopes @ slopes.T + np.eye(count)), wanted))


def _searched(task: Task, start: Array, tuning: Tuning, known: Fit | None = None) -> Fit:
    """Gauss-Newton with a line search on the true misfit."""
    point = task.at(start) if known is None else task.read(known.point.e, known.point.path)
    has_settled = False
    for step in range(1, tuning.most_steps + 1):
        tangent: Array | None = None
        if not task.by_adjoint:
            tangent = known.tangent if known is not None and step == 1 else task.tangent(point.path)
        slopes = task.slopes(point, tangent)
        move = _step_to(point, slopes) - point.e
        predicted = 0.5 * float(move @ move + np.sum((slopes @ move) ** 2))
        if predicted < tuning.settled:
            has_settled = True
            break
        better = _down(task, point, move, predicted, tuning)
        if better is None:
            break
        point = better
    belief = Gaussian.of(point.e, slopes)
    return Fit(task, point, slopes, belief, step, has_settled, tangent)


def _down(task: Task, point: Point, move: Array, predicted: float, tuning: Tuning) -> Point | None:
    """The first of ever shorter steps that lowers the objective enough."""
    share = min(1.0, tuning.largest_step / max(float(np.max(np.abs(move))), 1e-300))
    for _ in range(tuning.most_halvings):
        try:
            trial = task.at(point.e + share * move)
            if trial.objective <= point.objective - tuning.least_decrease * share * predicted:
                return trial
        except (NotConverged, Singular):
            pass
        share *= 0.5
    return None


def _with_noise(start: Fit, tuning: Tuning) -> Fit:
    """Estimated sigmas: the squared residuals over the measurements that the latents leave free, until they settle."""
    current = start
    for _ in range(tuning.most_noise_steps):
        measurements = current.task.measurements
        if not measurements.open:
            break
        sigmas = _noise_levels(current)
        change = max(abs(np.log(sigmas[name] / measurements.estimated[name])) for name in sigmas)
        task = replace(current.task, measurements=replace(measurements, estimated=sigmas))
        if not task.latents.size:
            current = replace(current, task=task, point=task.read(current.point.e, current.point.path))
            continue
        current = _affine(task, current) if task.is_affine else _searched(task, current.point.e, tuning)
        if change < tuning.noise_settled:
            break
    return current


def _noise_levels(current: Fit) -> dict[str, float]:
    measurements, sigmas, begin = current.task.measurements, {}, 0
    for group in measurements.groups:
        count = len(group.statement.target)
        rows = slice(begin, begin + count)
        if group.sigma is None:
            spread = current.belief.spread(current.slopes[rows])
            informed = float(np.sum(spread**2))
            before = measurements.estimated[group.statement.name]
            free = max(count - informed, 0.05 * count)
            missed = float(np.sum(current.point.residual[rows] ** 2))
            sigmas[group.statement.name] = before * float(np.sqrt(max(missed / free, 1e-12)))
        begin += count
    return sigmas
