"""Size and length of unknown functions that nobody stated: found on the evidence, and averaged over a few values.

Where the map is linearised, the readings are Gaussian for any size and length: their density needs no further run of
the map. So the search alternates: the best size and length for this linearisation, then the mode for these. At the end
a few nodes around the best, each with its own mode, make the posterior a weighted list of Gaussians.

Priors are penalised complexity priors (Fuglstad, Simpson, Lindgren and Rue 2019): short lengths and large sizes are
unlikely unless readings ask for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize, special

from factorfield.forward.layout import Layout
from factorfield.inference.fit import ROUGH, Fit, fit
from factorfield.inference.latents import Latents, OverSpace, OverTime, typical
from factorfield.inference.sites import with_sites
from factorfield.problem.coefficients import DEFAULT_LENGTH

Array = NDArray[np.float64]
SIZE, LENGTH = "std", "length"


@dataclass(frozen=True)
class Weak:
    """Priors and how they are integrated over."""

    short: float = 0.1  # share of an axis: a length below it has the probability `unlikely`
    large: float = 3.0  # times the scale of a function: a size above it has that probability
    unlikely: float = 0.05
    least_share: float = 0.08  # of an axis: shorter lengths than the grid of a function shows are not tried
    most_share: float = 10.0
    most_rounds: int = 8
    settled: float = 0.02  # of a logarithm
    nodes: tuple[float, ...] = (-1.7, 0.0, 1.7)  # along each principal direction, in its std
    least_weight: float = 1e-3
    fine: int = 17  # values of each for intervals
    reach: float = 3.5


WEAK = Weak()


@dataclass(frozen=True)
class Coordinate:
    """The logarithm of the size, or of the length as a share of the axes, of one function."""

    function: str
    kind: str
    dimensions: int
    scale: float  # of a size

    def log_prior(self, value: float, weak: Weak = WEAK) -> float:
        """Density of the logarithm."""
        if self.kind == SIZE:
            rate = -np.log(weak.unlikely) / (weak.large * self.scale)
            return float(np.log(rate) - rate * np.exp(value) + value)
        half = 0.5 * self.dimensions
        rate = -np.log(weak.unlikely) * weak.short**half
        power = np.exp(-half * value)
        return float(np.log(half * rate) - half * value - rate * power)


@dataclass(frozen=True, eq=False)
class Node:
    """A size and length of each function with the posterior there, and its weight."""

    values: Array
    fit: Fit
    log_density: float


@dataclass(frozen=True, eq=False)
class Marginal:
    """The coordinates, nodes with weights that add up to one, the best first, and the log density of the readings."""

    coordinates: tuple[Coordinate, ...]
    nodes: tuple[Node, ...]
    weights: Array
    log_evidence: float
    means: Array  # of the logarithms
    covariance: Array

    def quantiles(self, levels: Sequence[float]) -> dict[tuple[str, str], Array]:
        """Of sizes, and of lengths as shares of the axes, by function and kind: log-normal ones."""
        reach = special.ndtri(np.asarray(levels))
        stds = np.sqrt(np.diag(self.covariance))
        return {
            (c.function, c.kind): np.exp(mean + reach * std)
            for c, mean, std in zip(self.coordinates, self.means, stds, strict=True)
        }


def _latents(fitted: Fit) -> Latents:
    """Those of a fit whose latents no other segment handed on."""
    assert isinstance(fitted.task.latents, Latents)
    return fitted.task.latents


def coordinates_of(layout: Layout) -> tuple[Coordinate, ...]:
    """What is not stated of unknown functions, starts and walls that are not stated among them."""
    result, problem = [], layout.problem
    for name, unknown in problem.functions.items():
        if unknown.std is None:
            scale = 1.0 if unknown.positive else abs(unknown.mean)
            result.append(Coordinate(name, SIZE, len(unknown.over), scale))
        if unknown.length is None:
            result.append(Coordinate(name, LENGTH, len(unknown.over), 1.0))
    for missing in layout.missing:
        if missing.axes:
            scale = typical(problem, missing.state)[1]
            result.append(Coordinate(missing.name, SIZE, len(missing.axes), scale))
            result.append(Coordinate(missing.name, LENGTH, len(missing.axes), 1.0))
    return tuple(result)


def first_values(latents: Latents, coordinates: Sequence[Coordinate]) -> Array:
    parts = {part.name: part for part in latents.parts}
    values = []
    for coordinate in coordinates:
        part = parts[coordinate.function]
        assert isinstance(part, OverSpace | OverTime)
        values.append(np.log(part.std if coordinate.kind == SIZE else DEFAULT_LENGTH))
    return np.array(values)


def with_values(latents: Latents, coordinates: Sequence[Coordinate], values: Array) -> Latents:
    """Latents whose functions have other sizes and lengths."""
    chosen: dict[str, dict[str, float]] = {}
    for coordinate, value in zip(coordinates, values, strict=True):
        chosen.setdefault(coordinate.function, {})[coordinate.kind] = float(np.exp(value))
    parts = [
        part if part.name not in chosen else _changed(part, chosen[part.name]) for part in latents.parts
    ]  # fmt: skip
    return Latents(tuple(parts))


def _changed(part: object, chosen: dict[str, float]) -> OverSpace | OverTime:
    assert isinstance(part, OverSpace | OverTime)
    return part.with_prior(chosen.get(SIZE, part.std), chosen.get(LENGTH, part.share))


@dataclass(frozen=True, eq=False)
class Linear:
    """The readings as a linear function of coefficients around a fit: seen = known + changing + noise of size one."""

    fit: Fit
    coordinates: tuple[Coordinate, ...]

    @cached_property
    def _names(self) -> list[str]:
        return list(dict.fromkeys(coordinate.function for coordinate in self.coordinates))

    @cached_property
    def _parts(self) -> tuple[Array, Array, dict[str, Array]]:
        """The readings less their mean, whitened; the covariance of what does not change; slopes by coefficients."""
        task, point = self.fit.task, self.fit.point
        rows = task.coefficient_slopes(point, self._names)
        seen = self.fit.slopes @ point.e - point.residual
        still = np.eye(len(seen))
        for part, where in _latents(self.fit).slices():
            if part.name not in self._names:
                still = still + self.fit.slopes[:, where] @ self.fit.slopes[:, where].T
        return seen, still, rows

    def log_density(self, values: Array) -> float:
        """Of the readings and the coordinates."""
        seen, still, rows = self._parts
        latents = with_values(_latents(self.fit), self.coordinates, values)
        covariance = still
        for part in latents.parts:
            if part.name in self._names:
                assert isinstance(part, OverSpace | OverTime)
                spread = part.times_root(rows[part.name])
                covariance = covariance + spread @ spread.T
        factor = linalg.cholesky(covariance, lower=True)
        white = linalg.solve_triangular(factor, seen, lower=True)
        prior = sum(c.log_prior(v) for c, v in zip(self.coordinates, values, strict=True))
        return -0.5 * float(white @ white) - float(np.sum(np.log(np.diag(factor)))) + prior


def marginalised(start: Fit, coordinates: tuple[Coordinate, ...], weak: Weak = WEAK) -> Marginal:
    """The posterior over sizes and lengths around their best, each with the mode of all latents there."""
    values, fitted = first_values(_latents(start), coordinates), start
    linear = Linear(fitted, coordinates)
    for _ in range(weak.most_rounds):
        better = _best(linear, values, weak)
        fitted = moved(fitted, coordinates, better)
        linear = Linear(fitted, coordinates)
        change, values = float(np.max(np.abs(better - values))), better
        if change < weak.settled:
            break
    curvature = _curvature(linear, values)
    covariance = np.asarray(np.linalg.inv(curvature), float)
    return _nodes(fitted, coordinates, values, covariance, weak)


def _bounds(coordinates: Sequence[Coordinate], weak: Weak) -> list[tuple[float, float]]:
    length = float(np.log(weak.least_share)), float(np.log(weak.most_share))
    return [
        length if c.kind == LENGTH else (float(np.log(1e-3 * c.scale)), float(np.log(1e3 * c.scale)))
        for c in coordinates
    ]


def _best(linear: Linear, values: Array, weak: Weak) -> Array:
    result = optimize.minimize(
        lambda x: -linear.log_density(x), values, method="L-BFGS-B", bounds=_bounds(linear.coordinates, weak),
        options={"maxiter": 40, "ftol": 1e-10, "eps": 1e-4},
    )  # fmt: skip
    return np.asarray(result.x)


def _curvature(linear: Linear, values: Array, step: float = 0.05) -> Array:
    """Minus the second derivatives of the log density, at least those of a std of three."""
    size = len(values)
    steps = step * np.eye(size)
    centre = linear.log_density(values)
    result = np.empty((size, size))
    for i in range(size):
        for j in range(i + 1):
            if i == j:
                sides = linear.log_density(values + steps[i]) + linear.log_density(values - steps[i])
                result[i, i] = -(sides - 2.0 * centre) / step**2
            else:
                corners = [linear.log_density(values + a * steps[i] + b * steps[j]) * a * b
                           for a in (1.0, -1.0) for b in (1.0, -1.0)]  # fmt: skip
                result[i, j] = result[j, i] = -sum(corners) / (4.0 * step**2)
    eigenvalues, vectors = np.linalg.eigh(result)
    return np.asarray((vectors * np.maximum(eigenvalues, 1.0 / 9.0)) @ vectors.T)


def moved(fitted: Fit, coordinates: tuple[Coordinate, ...], values: Array) -> Fit:
    """The fit with other sizes and lengths, from the coefficients of this one."""
    latents = with_values(_latents(fitted), coordinates, values)
    task = replace(fitted.task, latents=latents)
    before = {part.name: fitted.point.e[where] for part, where in _latents(fitted).slices()}
    e = np.zeros(latents.size)
    changed = {coordinate.function for coordinate in coordinates}
    for part, where in latents.slices():
        if part.name in changed:
            assert isinstance(part, OverSpace | OverTime)
            e[where] = np.clip(part.latents_at(fitted.point.path.inputs[part.name]), -5.0, 5.0)
        else:
            e[where] = before[part.name]
    return fit(task, e, ROUGH)


def _nodes(
    centre: Fit, coordinates: tuple[Coordinate, ...], values: Array, covariance: Array, weak: Weak
) -> Marginal:  # fmt: skip
    """Nodes of a rule along principal directions, each weighted by the true density there over the Gaussian's."""
    eigenvalues, vectors = np.linalg.eigh(covariance)
    directions = vectors * np.sqrt(eigenvalues)
    size, along = len(values), np.array(weak.nodes)
    mesh = np.stack(np.meshgrid(*[along] * size, indexing="ij"), axis=-1).reshape(-1, size)
    if size > 2:  # a star: the centre, and one step along each direction
        mesh = mesh[np.count_nonzero(mesh, axis=1) <= 1]
    order = np.argsort(np.sum(mesh**2, axis=1), kind="stable")
    lower, upper = np.array(_bounds(coordinates, weak)).T
    nodes: list[Node] = []
    for place in mesh[order]:
        at = np.clip(values + directions @ place, lower, upper)
        one = centre if not np.any(place) else moved(centre, coordinates, at)
        one = with_sites(one, ROUGH)
        prior = sum(c.log_prior(v) for c, v in zip(coordinates, at, strict=True))
        nodes.append(Node(at, one, one.log_evidence + prior))
    shares = _rule(mesh[order], along, size)
    logs = np.array([node.log_density for node in nodes]) + shares
    weights = np.exp(logs - logs.max())
    evidence = float(np.log(np.sum(weights)) + logs.max() + 0.5 * np.sum(np.log(2.0 * np.pi * eigenvalues)))
    weights = weights / weights.sum()
    kept = np.flatnonzero(weights >= weak.least_weight * weights.max())
    weights = weights[kept] / weights[kept].sum()
    table = np.array([nodes[number].values for number in kept])
    means = weights @ table
    spread = (table - means).T @ (weights[:, None] * (table - means))
    best = np.argsort(-weights, kind="stable")
    return Marginal(
        coordinates, tuple(nodes[kept[number]] for number in best), weights[best], evidence, means, spread,
    )  # fmt: skip


def _rule(places: Array, along: Array, size: int) -> Array:
    """Log weights of the nodes for a density over the standard normal density, which is divided out."""
    outer = along[-1] ** 2
    one = {True: 1.0 - 1.0 / outer, False: 0.5 / outer}  # the centre, a step: exact for second moments
    if size <= 2:
        shares = np.array([np.prod([one[bool(z == 0.0)] for z in place]) for place in places])
    else:
        is_centre = ~np.any(places, axis=1)
        step = 0.5 / outer
        shares = np.where(is_centre, max(1.0 - size / outer, 0.05), step)
    return np.asarray(np.log(shares) + 0.5 * np.sum(places**2, axis=1))
