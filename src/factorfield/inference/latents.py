"""The latent variables of a problem: each kind says which input it is and how its coefficients hang on e ~ N(0, I)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.forward.discrete import NotAMap, error_input
from factorfield.forward.inputs import Input
from factorfield.inference.matern import RESOLUTION, TimeNodes, distances, kernel
from factorfield.problem.coefficients import DEFAULT_LENGTH, Unknown
from factorfield.problem.domain import TIME, Axis, Domain, Periodic
from factorfield.problem.problem import Problem
from factorfield.space.axes import Basis, Spline
from factorfield.space.grid import Grid

Array = NDArray[np.float64]
MOST_FUNCTIONS = 4000  # of space: beyond this their covariance does not fit


class Latent(Protocol):
    """One uncertain thing: coefficients of its input are mean + root e."""

    @property
    def name(self) -> str: ...

    @property
    def input(self) -> Input: ...

    @property
    def mean(self) -> Array: ...

    @property
    def root(self) -> Array: ...

    @property
    def size(self) -> int: ...


@dataclass(frozen=True, eq=False)
class Number:
    """An unknown number, or its logarithm where it is positive."""

    name: str
    unknown: Unknown

    @cached_property
    def input(self) -> Input:
        return Input(self.name)

    @property
    def mean(self) -> Array:
        return np.array([self.unknown.latent_moments[0]])

    @property
    def root(self) -> Array:
        return np.array([[np.sqrt(self.unknown.latent_moments[1])]])

    size = 1


@dataclass(frozen=True, eq=False)
class OverTime:
    """A random function of time, a Matern process as a state-space model: three latents a node."""

    name: str
    nodes: TimeNodes
    level: float
    std: float

    @cached_property
    def input(self) -> Input:
        return Input(self.name, time=self.nodes)

    @cached_property
    def mean(self) -> Array:
        mean = np.zeros(self.nodes.size)
        mean[::3] = self.level
        return mean

    @cached_property
    def root(self) -> Array:
        return self.std * self.nodes.root

    @property
    def size(self) -> int:
        return self.nodes.size

    def extended(self, end: float) -> OverTime:
        """The same process until later: earlier latents keep their meaning."""
        longer = TimeNodes.covering(self.nodes.begin, end, self.nodes.length)
        return replace(self, nodes=replace(self.nodes, count=max(longer.count, self.nodes.count)))


@dataclass(frozen=True, eq=False)
class OverSpace:
    """A random function of space on a grid of its own, a product of Matern kernels: its values at the places of the
    grid are jointly Gaussian with this covariance. The grid stays as it is when std and lengths change."""

    name: str
    grid: Grid
    domain: Mapping[str, Axis]
    level: float
    std: float
    lengths: Mapping[str, float]

    @cached_property
    def input(self) -> Input:
        return Input(self.name, space=self.grid)

    @cached_property
    def mean(self) -> Array:
        return np.full(self.grid.size, self.level)

    @cached_property
    def root(self) -> Array:
        """The Kronecker product of the roots along the axes."""
        result: Array = np.ones((1, 1))
        for axis, basis in self.grid.axes.items():
            result = np.asarray(np.kron(result, along_axis(self.domain[axis], basis, self.lengths[axis])), float)
        return self.std * result

    @property
    def size(self) -> int:
        return self.grid.size


def along_axis(axis: Axis, basis: Basis, length: float) -> Array:
    """A root of the covariance of coefficients: values at the places have the kernel's covariance."""
    x = basis.places
    values, vectors = np.linalg.eigh(kernel(distances(axis, x, x), length))
    index, local = basis.local(x)
    features = np.zeros((len(x), basis.size))
    np.put_along_axis(features, index, local, axis=1)
    return np.asarray(linalg.solve(features, vectors * np.sqrt(np.maximum(values, 0.0))), float)


def space_grid(domain: Mapping[str, Axis], lengths: Mapping[str, float]) -> Grid:
    """A grid that shows functions of these lengths."""
    axes: dict[str, Basis] = {}
    for name, length in lengths.items():
        axis = domain[name]
        cells = max(int(np.ceil(RESOLUTION.cells_per_length * axis.length / length)), RESOLUTION.fewest_cells)
        axes[name] = Spline.uniform(axis.lower, axis.upper, cells, periodic=isinstance(axis, Periodic))
    grid = Grid(axes)
    if grid.size > MOST_FUNCTIONS:
        raise NotAMap(f"a function of {', '.join(lengths)} of {grid.size} coefficients")
    return grid


def latents_of(problem: Problem) -> tuple[Latent, ...]:
    """Numbers, functions, and the errors of starts and walls, in this order."""
    latents: list[Latent] = [Number(name, unknown) for name, unknown in problem.unknowns.items()]
    for name, unknown in problem.functions.items():
        mean, variance = unknown.latent_moments
        lengths = {a: unknown.length or DEFAULT_LENGTH * problem.domain[a].length for a in unknown.over}
        latents.append(_function(name, problem.domain, lengths, mean, float(np.sqrt(variance))))
    for statement in problem.statements:
        if statement.kind in ("initial", "boundary") and statement.sigma is not None:
            sigma = float(np.max(statement.sigma))
            if statement.error is None:  # on a point
                latents.append(Number(error_input(statement), Unknown(0.0, sigma)))
            else:
                latents.append(_function(statement.error.name, problem.domain, statement.error.lengths, 0.0, sigma))
    return tuple(latents)


def _function(name: str, domain: Domain, lengths: Mapping[str, float], level: float, std: float) -> Latent:
    if TIME not in lengths:
        ordered = {axis: lengths[axis] for axis in domain.space if axis in lengths}
        return OverSpace(name, space_grid(domain, ordered), domain, level, std, ordered)
    if len(lengths) > 1:
        raise NotAMap(f"{name} varies over time and space")
    nodes = TimeNodes.covering(domain[TIME].lower, domain[TIME].upper, lengths[TIME])
    return OverTime(name, nodes, level, std)


class LatentVariables(Protocol):
    """e ~ N(0, I), and how the coefficients of all inputs hang on it."""

    @property
    def size(self) -> int: ...

    @property
    def inputs(self) -> Mapping[str, Input]: ...

    def coefficients(self, e: Array) -> dict[str, Array]: ...

    def directions(self, along: Array) -> dict[str, Array]: ...

    def gathered(self, rows: Mapping[str, Array], count: int) -> Array: ...


@dataclass(frozen=True, eq=False)
class Latents:
    """All of a problem, one after the other."""

    parts: tuple[Latent, ...]

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    @property
    def inputs(self) -> dict[str, Input]:
        return {part.name: part.input for part in self.parts}

    def slices(self) -> Iterator[tuple[Latent, slice]]:
        begin = 0
        for part in self.parts:
            yield part, slice(begin, begin + part.size)
            begin += part.size

    def coefficients(self, e: Array) -> dict[str, Array]:
        return {part.name: part.mean + part.root @ e[where] for part, where in self.slices()}

    def directions(self, along: Array) -> dict[str, Array]:
        """How coefficients move where e moves along columns, (latents, columns)."""
        return {part.name: part.root @ along[where] for part, where in self.slices()}

    def gathered(self, rows: Mapping[str, Array], count: int) -> Array:
        """The transpose: from rows over coefficients, (coefficients, count), to rows over latents, (latents, count)."""
        result = np.zeros((self.size, count))
        for part, where in self.slices():
            if part.name in rows:
                result[where] = part.root.T @ rows[part.name]
        return result


