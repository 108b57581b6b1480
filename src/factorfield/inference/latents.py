"""The latent variables of a problem: each kind says which input it is and how its coefficients hang on e ~ N(0, I)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.forward.inputs import Input
from factorfield.forward.layout import Layout, NotAMap, error_input
from factorfield.forward.relations import State
from factorfield.inference.matern import RESOLUTION, STATE, TimeNodes, distances, kernel
from factorfield.problem.coefficients import DEFAULT_LENGTH, Unknown
from factorfield.problem.domain import TIME, Axis, Domain, Periodic
from factorfield.problem.problem import Problem
from factorfield.space.axes import Basis, Spline, dense
from factorfield.space.grid import Grid

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
MOST_FUNCTIONS = 1200  # of space, where more are not needed for three cells a length
MOST_COEFFICIENTS = 3000  # of a function of space: beyond, its root does not fit
SHORTER = 0.5  # of the usual length: what the grid of a function shows whose length is not stated
WIDE = 3.0  # times half the range of the readings: the std of a level that is not stated
ROUNDING = 1e-15  # of the largest variance of a component


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
    length: float
    horizon: float  # of the problem that was solved first

    @cached_property
    def input(self) -> Input:
        return Input(self.name, time=self.nodes)

    @cached_property
    def mean(self) -> Array:
        mean = np.zeros(self.nodes.size)
        mean[::STATE] = self.level
        return mean

    @cached_property
    def root(self) -> Array:
        return self.std * self.nodes.root(self.length)

    @property
    def size(self) -> int:
        return self.nodes.size

    def latents_at(self, coefficients: Array) -> Array:
        """The latents that give these coefficients."""
        return np.asarray(np.linalg.solve(self.root, coefficients - self.mean))

    def times_root(self, rows: Array) -> Array:
        return np.asarray(rows @ self.root)

    @property
    def unit(self) -> float:
        """What shares of lengths are shares of."""
        return self.horizon

    @property
    def share(self) -> float:
        return self.length / self.horizon

    def with_prior(self, std: float, share: float) -> OverTime:
        """Of another size, and with a length that is a share of the horizon."""
        return replace(self, std=std, length=share * self.horizon)

    def extended(self, end: float) -> OverTime:
        """The same process until later: earlier latents keep their meaning."""
        return replace(self, nodes=self.nodes.until(end))


@dataclass(frozen=True)
class AlongTime:
    """Functions along the axis of time."""

    basis: Basis

    @property
    def size(self) -> int:
        return self.basis.size

    def features(self, t: Array, order: int = 0) -> Array:
        return dense(self.basis, np.asarray(t, float), order)


@dataclass(frozen=True, eq=False)
class Principal:
    """Along an axis: columns (functions, components) make coefficients from components of unit variance, rows
    (components, functions) the other way round; `variances` of the components."""

    columns: Array
    rows: Array
    variances: Array


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
    is_whole: bool = False  # are no components dropped, so that their number does not hang on the lengths?

    @cached_property
    def input(self) -> Input:
        if TIME not in self.grid.axes:
            return Input(self.name, space=self.grid)
        space = Grid({axis: basis for axis, basis in self.grid.axes.items() if axis != TIME})
        return Input(self.name, space=space, time=AlongTime(self.grid.axes[TIME]))

    @property
    def mean(self) -> Array:
        return np.full(self.grid.size, self.level)

    @cached_property
    def _along(self) -> list[Principal]:
        return [
            principal(self.domain[axis], basis, self.lengths[axis]) for axis, basis in self.grid.axes.items()
        ]  # fmt: skip

    @cached_property
    def _kept(self) -> Indices:
        """The components that are kept, largest first."""
        variances: Array = np.ones(1)
        for part in self._along:
            variances = np.asarray(np.kron(variances, part.variances), float)
        order = np.argsort(-variances, kind="stable")
        total = np.cumsum(variances[order])
        count = len(order) if self.is_whole else int(np.searchsorted(total, (1.0 - RESOLUTION.dropped) * total[-1])) + 1
        return order[:count]

    @cached_property
    def root(self) -> Array:
        """Principal components along the axes and their products."""
        result: Array = np.ones((1, 1))
        for part in self._along:
            result = np.asarray(np.kron(result, part.columns), float)
        return np.asarray(self.std * result[:, self._kept])

    @property
    def size(self) -> int:
        return len(self._kept)

    def latents_at(self, coefficients: Array) -> Array:
        """The latents that give these coefficients, as nearly as they can."""
        table = (coefficients - self.level).reshape([basis.size for basis in self.grid.axes.values()])
        for number, part in enumerate(self._along):
            table = np.moveaxis(np.tensordot(part.rows, table, axes=(1, number)), 0, number)
        return np.asarray(table.ravel()[self._kept] / self.std)

    def times_root(self, rows: Array) -> Array:
        """rows @ root with all components, (rows, components)."""
        table = rows.reshape(len(rows), *(basis.size for basis in self.grid.axes.values()))
        for number, part in enumerate(self._along):
            table = np.moveaxis(np.tensordot(table, part.columns, axes=(number + 1, 0)), -1, number + 1)
        return np.asarray(self.std * table.reshape(len(rows), -1))

    @property
    def unit(self) -> float:
        """What shares of the first length are shares of."""
        return self.domain[next(iter(self.lengths))].length

    @property
    def share(self) -> float:
        return next(iter(self.lengths.values())) / self.unit

    def with_prior(self, std: float, share: float) -> OverSpace:
        """Of another size, and with lengths that are a share of each axis."""
        lengths = {axis: share * self.domain[axis].length for axis in self.lengths}
        return replace(self, std=std, lengths=lengths)


def principal(axis: Axis, basis: Basis, length: float) -> Principal:
    """Of coefficients whose values at the places have the kernel's covariance."""
    x = basis.places
    values, vectors = np.linalg.eigh(kernel(distances(axis, x, x), length))
    values = np.maximum(values, ROUNDING * values[-1])
    features = dense(basis, x)
    columns = np.asarray(linalg.solve(features, vectors * np.sqrt(values)), float)
    return Principal(columns, (vectors / np.sqrt(values)).T @ features, values)


def space_grid(domain: Mapping[str, Axis], lengths: Mapping[str, float]) -> Grid:
    """A grid that shows functions of these lengths, or of somewhat longer ones where it would be too large."""
    if not lengths:
        raise NotAMap("an error along the boundary of a region")
    wanted = np.prod([domain[name].length / length for name, length in lengths.items()])
    per_length = RESOLUTION.cells_per_length
    most = (MOST_FUNCTIONS / wanted) ** (1.0 / len(lengths))
    per_length = float(np.clip(most - 2.0, min(3.0, per_length), per_length))
    axes: dict[str, Basis] = {}
    for name, length in lengths.items():
        axis = domain[name]
        cells = max(int(np.ceil(per_length * axis.length / length)), RESOLUTION.fewest_cells)
        axes[name] = Spline.uniform(axis.lower, axis.upper, cells, periodic=isinstance(axis, Periodic))
    grid = Grid(axes)
    if grid.size > MOST_COEFFICIENTS:
        raise NotAMap(f"a function of {', '.join(lengths)} of {grid.size} coefficients")
    return grid


def latents_of(layout: Layout) -> tuple[Latent, ...]:
    """Numbers, functions, the errors of starts and walls, and starts and walls that are not stated, in this order."""
    problem = layout.problem
    latents: list[Latent] = [Number(name, unknown) for name, unknown in problem.unknowns.items()]
    for name, unknown in problem.functions.items():
        mean, variance = unknown.latent_moments
        lengths = {a: unknown.length or DEFAULT_LENGTH * problem.domain[a].length for a in unknown.over}
        latents.append(
            _function(name, problem.domain, lengths, mean, float(np.sqrt(variance)), unknown.length is not None)
        )  # fmt: skip
    for statement in problem.statements:
        if statement.kind in ("initial", "boundary") and statement.sigma is not None:
            sigma = float(np.max(statement.sigma))
            if statement.error is None:  # on a point
                latents.append(Number(error_input(statement), Unknown(0.0, sigma)))
            else:
                latents.append(_function(statement.error.name, problem.domain, statement.error.lengths, 0.0, sigma))
    for equation, statement in zip(problem.equations, problem.statements, strict=False):
        if equation.sigma is not None:
            lengths = _lengths(problem.domain, equation.length)
            latents.append(_function(error_input(statement), problem.domain, lengths, 0.0, float(equation.sigma)))
    for missing in layout.missing:
        level, reach = typical(problem, missing.state)
        latents.append(Number(missing.level, Unknown(level, WIDE * reach)))
        if missing.axes:
            lengths = {axis: DEFAULT_LENGTH * problem.domain[axis].length for axis in missing.axes}
            latents.append(_function(missing.name, problem.domain, lengths, 0.0, reach, False))
    return tuple(latents)


def _lengths(domain: Domain, given: float | Mapping[str, float] | None) -> dict[str, float]:
    """Of the error of an equation: as given, or a quarter of every axis."""
    stated = given if isinstance(given, Mapping) else {} if given is None else dict.fromkeys(domain.names, given)
    return {name: float(stated.get(name, DEFAULT_LENGTH * axis.length)) for name, axis in domain.items()}


def typical(problem: Problem, state: State) -> tuple[float, float]:
    """The middle and half the range of a field, from its readings, or of its rate over the horizon."""
    readings = [s.target for s in problem.statements if s.is_direct and s.jet.field == state.field]
    if not readings:
        raise NotAMap(f"no start or wall of {state.field}, and no readings of it,")
    values = np.concatenate(readings)
    reach = max(0.5 * float(np.ptp(values)), 0.1 * float(np.max(np.abs(values))), 1e-12)
    if state.level:
        return 0.0, reach / problem.domain[TIME].length**state.level
    return 0.5 * float(np.max(values) + np.min(values)), reach


def _function(
    name: str, domain: Domain, lengths: Mapping[str, float], level: float, std: float, is_stated: bool = True
) -> Latent:  # fmt: skip
    """A function of these lengths; where they are not stated, on a grid that shows shorter ones too."""
    shown = lengths if is_stated else {axis: SHORTER * length for axis, length in lengths.items()}
    if TIME not in lengths:
        ordered = {axis: lengths[axis] for axis in domain.space if axis in lengths}
        grid = space_grid(domain, {axis: shown[axis] for axis in ordered})
        return OverSpace(name, grid, domain, level, std, ordered, not is_stated)
    if len(lengths) > 1:
        ordered = {axis: lengths[axis] for axis in domain.names if axis in lengths}
        grid = space_grid(domain, {axis: shown[axis] for axis in ordered})
        return OverSpace(name, grid, domain, level, std, ordered, not is_stated)
    nodes = TimeNodes.covering(domain[TIME].lower, domain[TIME].upper, shown[TIME])
    return OverTime(name, nodes, level, std, lengths[TIME], domain[TIME].length)


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


