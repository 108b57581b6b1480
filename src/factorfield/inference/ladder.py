"""The ladder of resolutions: which grid and which windows show what is asked, and what they leave out.

Resolutions are compared at fixed places: the path at the posterior mean, and how it moves along latents. The
difference of two is scaled by the rate at which three of them decrease. Each path is computed once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield.forward.algebra import Singular
from factorfield.forward.discrete import Discrete, discretised
from factorfield.forward.landmarks import cells_along
from factorfield.forward.layout import Layout
from factorfield.forward.map import START, ForwardMap, Steps, choose_windows
from factorfield.forward.newton import NotConverged
from factorfield.forward.paths import Path, read, values_at
from factorfield.forward.relations import Expression, expression_of
from factorfield.inference.fit import Fit, Gaussian
from factorfield.inference.latents import Latents
from factorfield.problem.domain import TIME, Periodic
from factorfield.problem.problem import Problem
from factorfield.space.axes import DEGREE, Basis, Fourier, Spline
from factorfield.space.grid import Grid
from factorfield.space.region import CutGrid

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rungs:
    """Resolutions and when one is enough."""

    first_cells: int = 8
    first_modes: int = 6
    growth: float = 1.5
    most_functions: tuple[int, ...] = (1, 700, 5_000, 6_000)  # by the number of axes of space
    # instants of a window, the more the less error is asked: (tolerance from which on, without space, with space)
    stages: tuple[tuple[float, int, int], ...] = ((1e-4, 5, 5), (1e-6, 7, 5), (0.0, 9, 7))
    probes: int = 3  # draws of the prior along which windows and grids are compared
    tangent_error: float = 0.01  # of what a draw moves: its share that a resolution may miss
    std_change: float = 0.03
    beside_std: float = 0.1  # of the posterior std: a smaller error need not be reduced
    places: tuple[int, ...] = (1, 41, 13, 7)  # along each axis of space, by their number
    instants: tuple[int, ...] = (201, 23, 17, 11)  # by the number of axes of space
    coarsest: int = -2  # level, for comparisons
    least_rate: float = 1e-3  # of the decrease of errors from grid to grid that is relied on
    least_rate_in_time: float = 0.02  # the same for windows of half the length
    most_rate: float = 0.5
    safety: float = 3.0
    floor: float = 0.25  # of the error's root mean square: where two resolutions agree by chance, it is not less
    most_waves: int = 640  # coefficients of all fields together, where an axis is a ring: their matrices are dense
    joined_stages: int = 5  # with more of them windows are cut, not joined
    few_windows: int = 8  # so few are compared with finer ones, not with coarser ones
    time_share: float = 0.3  # of the tolerance, for windows of time


RUNGS = Rungs()


def grid_of(layout: Layout, level: float, rungs: Rungs = RUNGS) -> Grid | CutGrid:
    """The grid of a level: cells or modes along each axis grow by a factor a level."""
    axes = _axes_of(layout, level, rungs)
    shape = layout.problem.shape
    return Grid(axes) if shape is None else CutGrid.of(axes, shape)


def _axes_of(layout: Layout, level: float, rungs: Rungs) -> dict[str, Basis]:
    return {name: _basis(layout, name, rungs.growth**level, rungs) for name in layout.problem.domain.space}


def _basis(layout: Layout, name: str, factor: float, rungs: Rungs) -> Basis:
    """Modes on a ring where nothing is sudden, splines otherwise; at a jump they have as many derivatives as the
    equation keeps continuous."""
    axis, marks = layout.problem.domain[name], layout.landmarks[name]
    is_ring, layers = isinstance(axis, Periodic), layout.layers(name)
    is_plain = marks.is_empty and not layers
    if is_ring and is_plain:
        return Fourier(max(1, round(rungs.first_modes * factor)), axis.lower, axis.length)
    cells = max(2, round(rungs.first_cells * factor))
    if is_plain:
        return Spline.uniform(axis.lower, axis.upper, cells)
    repeats = DEGREE + 1 - max(layout.order(name), 1)
    breaks = cells_along(axis, max(cells, DEGREE + 1) if is_ring else cells, marks, repeats, layers)
    return Spline(tuple(map(float, breaks)), DEGREE, is_ring)


@dataclass(frozen=True, eq=False)
class ErrorColumn:
    """One direction of the numerical error: a combination of paths, whose shares add up to zero, and what it does to
    the latents."""

    paths: tuple[Path, ...]
    shares: tuple[float, ...]
    latents: Array

    def at(self, expression: Expression, points: Mapping[str, Array], inputs: Mapping[str, Any]) -> Array:
        """Of a relation at points, the latents apart."""
        parts = zip(self.shares, self.paths, strict=True)
        return np.asarray(sum(share * values_at(expression, path, points, inputs) for share, path in parts))


@dataclass(frozen=True, eq=False)
class Estimate:
    """The numerical error of a fit: columns, its size over the field's, and whether the std has settled."""

    columns: tuple[ErrorColumn, ...]
    floors: tuple[float, ...]  # by state: the least std of its error
    space: float
    time: float
    std_change: float
    beside_std: float  # the error over the posterior std, root mean square

    @property
    def size(self) -> float:
        return max(self.space, self.time)


@dataclass(eq=False)
class Ladder:
    """The maps of one problem at all resolutions that were tried."""

    layout: Layout
    latents: Latents
    tolerance: float
    rungs: Rungs = RUNGS
    _grids: dict[int, Discrete] = field(default_factory=dict)

    @property
    def problem(self) -> Problem:
        return self.layout.problem

    @property
    def stages(self) -> int:
        """Instants of a window."""
        without, with_space = next(pair for least, *pair in self.rungs.stages if self.tolerance >= least)
        return with_space if self.problem.domain.space else without

    def discrete(self, level: int) -> Discrete:
        if level not in self._grids:
            grid = grid_of(self.layout, level, self.rungs)
            self._grids[level] = discretised(self.layout, grid, self.latents.inputs)
        return self._grids[level]

    def has_level(self, level: int) -> bool:
        """Is there such a resolution, and is it affordable?"""
        axes = len(self.problem.domain.space)
        if axes == 0:
            return level == 0
        if level < self.rungs.coarsest:
            return False
        wanted = float(np.prod([basis.size for basis in _axes_of(self.layout, level, self.rungs).values()]))
        if any(isinstance(basis, Fourier) for basis in _axes_of(self.layout, level, self.rungs).values()):
            wanted *= len(self.layout.states)
            return level <= 1 or wanted <= self.rungs.most_waves
        return level <= 1 or wanted <= self.rungs.most_functions[axes]

    # -- maps

    def map_at(self, level: int, e: Array, tolerance: float) -> ForwardMap:
        """The map on a grid with windows chosen at latents."""
        discrete = self.discrete(level)
        steady = ForwardMap(discrete, np.empty(0), self.stages)
        if not self.layout.moves:
            return steady
        inputs = self.latents.coefficients(e)
        start, time = steady.start(inputs), self.problem.domain[TIME]
        probes = None
        if self.latents.size:
            probes = self.latents.directions(self.draws)
            first = Path(discrete.grid, np.empty(0), start[None, None, :], inputs)
            probes[START] = steady.tangent(first, probes)[0, 0]
        edges = choose_windows(
            discrete, inputs, tolerance, time.upper, (time.lower, start), probes, Steps(self.stages)
        )  # fmt: skip
        return replace(steady, edges=edges)

    @property
    def draws(self) -> Array:
        """A few draws of the prior, (latents, draws)."""
        return np.random.default_rng(0).standard_normal((self.latents.size, self.rungs.probes))

    def first_map(self, e: Array) -> tuple[int, ForwardMap]:
        """The coarsest resolution whose path, and its move along draws, agree with those of a coarser one."""
        tolerance = self.rungs.time_share * self.tolerance
        level, before, missed = 0, None, np.inf
        while True:
            try:
                forward = self.map_at(level, e, tolerance)
                if not self.has_level(level + 1):
                    return level, forward
                seen = self._seen(forward, e)
            except (NotConverged, Singular):
                if not self.has_level(level + 1):
                    raise
                level, before = level + 1, None
                continue
            if before is not None:
                now = _difference(seen, before, self.tolerance, self.rungs)
                rate = float(np.clip(now / missed, self.rungs.least_rate, 1.0)) if np.isfinite(missed) else 1.0
                if now * rate <= 1.0:
                    return level, forward
                missed = now
            level, before = level + 1, seen

    def _seen(self, forward: ForwardMap, e: Array) -> tuple[Array, Array]:
        """The fields, and their moves along draws, at places: (fields, places) and (fields, places, draws)."""
        path = forward.run(self.latents.coefficients(e))
        tangent = None
        if self.latents.size:
            tangent = forward.tangent(path, self.latents.directions(self.draws))
        readings = [read(expression, path, self.everywhere, self.latents.inputs) for expression in self.values]
        means = np.stack([reading.values for reading in readings])
        if tangent is None:
            return means, np.zeros((*means.shape, 0))
        return means, np.stack([reading.moved(tangent, {}) for reading in readings])

    @cached_property
    def values(self) -> list[Expression]:
        """The fields themselves."""
        return [expression_of(self.problem, self.problem.relation(f)) for f in self.problem.fields]

    @cached_property
    def everywhere(self) -> dict[str, Array]:
        """Uneven places all over the domain."""
        problem = self.problem
        count = self.rungs.places[len(problem.domain.space)]
        axes = {}
        for name in problem.domain.names:
            number = self.rungs.instants[len(problem.domain.space)] if name == TIME else count
            axes[name] = problem.domain[name].lower + problem.domain[name].length * _uneven(number, name == TIME)
        points = problem.domain.tensor(axes)
        if problem.shape is not None:
            inside = problem.shape.contains({axis: points[axis] for axis in problem.shape.axes})
            points = {axis: x[inside] for axis, x in points.items()}
        return points

    def places(self, edges: Array) -> dict[str, Array]:
        """Where resolutions are compared: those places, in time between the ends of a path."""
        points, time = self.everywhere, self.problem.domain.get(TIME)
        if time is None or not len(edges) or (edges[0] == time.lower and edges[-1] == time.upper):
            return points
        share = (points[TIME] - time.lower) / time.length
        return {**points, TIME: edges[0] + share * (edges[-1] - edges[0])}

    # -- errors

    def estimate(self, fitted: Fit, level: int) -> Estimate:
        """Of a fit, by coarser grids and other windows at the same latents."""
        columns: list[ErrorColumn] = []
        forward, inputs = fitted.task.map, fitted.point.path.inputs
        paths = [fitted.point.path, *self._coarser_paths(fitted, level, inputs)]
        columns += self._columns(fitted, paths, self.rungs.least_rate)
        space, beside = self._relative(fitted, columns), self._beside_std(fitted, columns)
        if space > self.tolerance and beside > self.rungs.beside_std:  # a finer grid is needed in any case
            return Estimate(tuple(columns), self._floors(fitted, columns), space, 0.0, 0.0, beside)
        try:
            timed = self._by_windows(fitted, forward, inputs) if self.layout.moves else []
            in_time = self._relative(fitted, timed)
        except (NotConverged, Singular):
            timed, in_time = [], np.inf
        floors = self._floors(fitted, columns + timed)
        return Estimate(
            tuple(columns + timed), floors, space, in_time, self._std_change(fitted, level),
            self._beside_std(fitted, columns + timed),
        )  # fmt: skip

    def _coarser_paths(self, fitted: Fit, level: int, inputs: Mapping[str, Array]) -> list[Path]:
        paths = []
        for coarser in (level - 1, level - 2):
            if not self.has_level(coarser):
                break
            try:
                fitted.task.counter.runs += 1
                paths.append(self._on_grid(fitted, coarser).run(self._projected(fitted, inputs, coarser)))
            except (NotConverged, Singular):
                break
        return paths

    def _breaks(self, forward: ForwardMap) -> list[float]:
        return [t for t in self.layout.breaks if forward.edges[0] <= t <= forward.edges[-1]]

    def _on_grid(self, fitted: Fit, level: int) -> ForwardMap:
        """The map of a fit on the grid of another level."""
        discrete = discretised(self.layout, self.discrete(level).grid, fitted.task.latents.inputs)
        return replace(fitted.task.map, discrete=discrete)

    def _projected(self, fitted: Fit, inputs: Mapping[str, Array], level: int) -> Mapping[str, Array]:
        """The inputs on another grid: where a segment begins later, its start is one of them."""
        if START not in inputs:
            return inputs
        fields = inputs[START].reshape(len(self.layout.states), -1)
        grid: Any = fitted.point.path.grid  # both are of one kind
        moved = [grid.projected(field, self.discrete(level).grid) for field in fields]
        return {**inputs, START: np.concatenate(moved)}

    def _by_windows(self, fitted: Fit, forward: ForwardMap, inputs: Mapping[str, Array]) -> list[ErrorColumn]:
        """By windows joined in pairs and fours; by windows cut in two where there are few, or where joined ones would
        be far too long for their order."""
        count = len(forward.edges) - 1
        may_join = bool(self.problem.domain.space) and forward.stages <= self.rungs.joined_stages
        if count > self.rungs.few_windows and may_join:
            paths = [fitted.point.path]
            try:
                for joined in (2, 4):
                    edges = np.unique([*forward.edges[:-1:joined], forward.edges[-1], *self._breaks(forward)])
                    fitted.task.counter.runs += 1
                    paths.append(replace(forward, edges=edges).run(inputs))
            except (NotConverged, Singular):
                pass
            if len(paths) == 3:
                return self._columns(fitted, paths, self.rungs.least_rate_in_time)
        middle = 0.5 * (forward.edges[1:] + forward.edges[:-1])
        fitted.task.counter.runs += 1
        finer = replace(forward, edges=np.sort(np.concatenate([forward.edges, middle]))).run(inputs)
        return [self._column(fitted, (finer, fitted.point.path), 1.0)]

    def _columns(self, fitted: Fit, paths: Sequence[Path], least: float) -> list[ErrorColumn]:
        """From paths of ever coarser resolutions, the finest first."""
        if len(paths) < 2:
            return []
        seen = [self._fields(path) for path in paths]
        sizes = self._sizes(seen[0])
        first = _rms((seen[0] - seen[1]) / sizes)
        if len(paths) == 2:
            return [self._column(fitted, (paths[0], paths[1]), self.rungs.most_rate)]
        second = _rms((seen[1] - seen[2]) / sizes)
        rate = float(np.clip(first / max(second, 1e-300), least, self.rungs.most_rate))
        share = self.rungs.safety * rate / (1.0 - rate)
        return [
            self._column(fitted, (paths[0], paths[1]), share),
            self._column(fitted, (paths[1], paths[2]), share * rate),
        ]

    def _column(self, fitted: Fit, paths: tuple[Path, Path], share: float) -> ErrorColumn:
        latents = fitted.task.latents
        column = ErrorColumn(paths, (share, -share), np.zeros(latents.size))
        if not latents.size or not fitted.task.measurements.count:
            return column
        readings = [fitted.task.measurements.reading(path, latents.inputs).values for path in paths]
        missed = share * (readings[0] - readings[1]) / fitted.task.measurements.sigmas
        return replace(column, latents=-fitted.belief.covariance_times(fitted.slopes.T @ missed))

    def _fields(self, path: Path) -> Array:
        return np.stack([values_at(e, path, self.places(path.edges), self.latents.inputs) for e in self.values])

    def _sizes(self, seen: Array) -> Array:
        """Of every field: half of the range of its values, or their size where they hardly differ."""
        spread = 0.5 * np.ptp(seen, axis=1)
        return np.maximum(spread, 1e-3 * np.max(np.abs(seen), axis=1, initial=0.0) + 1e-300)[:, None]

    def _error_at_places(self, fitted: Fit, columns: Sequence[ErrorColumn]) -> Array:
        """(columns, fields, places), the latents' part included where the tangent is known."""
        inputs = self.latents.inputs
        places = self.places(fitted.point.path.edges)
        parts = [[column.at(e, places, inputs) for e in self.values] for column in columns]
        return np.array(parts).reshape(len(columns), len(self.values), -1)

    def _floors(self, fitted: Fit, columns: Sequence[ErrorColumn]) -> tuple[float, ...]:
        """By state, a share of the root mean square of its error; none for derivatives in time."""
        floors = np.zeros(len(self.layout.states))
        if columns:
            squares = np.sum(self._error_at_places(fitted, columns) ** 2, axis=0)
            fields = [number for number, state in enumerate(self.layout.states) if state.level == 0]
            floors[fields] = self.rungs.floor * np.sqrt(np.mean(squares, axis=1))
        return tuple(map(float, floors))

    def _relative(self, fitted: Fit, columns: Sequence[ErrorColumn]) -> float:
        if not columns:
            return 0.0
        sizes = self._sizes(self._fields(fitted.point.path))
        error = np.sqrt(np.sum(self._error_at_places(fitted, columns) ** 2, axis=0))
        return float(np.max(error / sizes))

    def _beside_std(self, fitted: Fit, columns: Sequence[ErrorColumn]) -> float:
        """The error of the measured functionals over their posterior std."""
        if not columns or not fitted.task.measurements.count or not fitted.task.latents.size:
            return np.inf
        std = np.sqrt(np.sum(fitted.belief.spread(fitted.slopes) ** 2, axis=1))
        sigmas = fitted.task.measurements.sigmas
        missed = np.zeros(len(sigmas))
        for column in columns:
            parts = [fitted.task.measurements.reading(path, fitted.task.latents.inputs).values for path in column.paths]
            missed += (np.tensordot(column.shares, parts, 1) / sigmas) ** 2
        return float(np.sqrt(np.sum(missed) / max(np.sum(std**2), 1e-300)))

    def _std_change(self, fitted: Fit, level: int) -> float:
        """How much the std of what is measured changes from the coarser grid to this one."""
        task = fitted.task
        is_plain = task.measurements.count and task.latents.size and START not in fitted.point.path.inputs
        if not self.has_level(level - 1) or not is_plain:
            return 0.0
        coarse = replace(task, map=self._on_grid(fitted, level - 1))
        try:
            slopes = coarse.slopes(coarse.at(fitted.point.e))
        except (NotConverged, Singular):
            return np.inf
        stds = [
            np.linalg.norm(belief.spread(rows), axis=1)
            for belief, rows in ((fitted.belief, fitted.slopes), (Gaussian.of(fitted.point.e, slopes), slopes))
        ]
        relevant = stds[0] > 0.05 * np.max(stds[0])
        return float(np.max(np.abs(stds[1][relevant] / stds[0][relevant] - 1.0), initial=0.0))


def _difference(seen: tuple[Array, Array], before: tuple[Array, Array], tolerance: float, rungs: Rungs) -> float:
    """Of two resolutions, over what is allowed."""
    means, moves = (np.abs(now - then) for now, then in zip(seen, before, strict=True))
    sizes = np.maximum(0.5 * np.ptp(seen[0], axis=1), 1e-3 * np.max(np.abs(seen[0]), axis=1) + 1e-300)
    result = float(np.max(np.max(means, axis=1) / sizes)) / tolerance
    if moves.size:
        reach = np.max(np.abs(seen[1]), axis=1) + 1e-300
        result = max(result, float(np.max(np.max(moves, axis=1) / reach)) / rungs.tangent_error)
    return result


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _uneven(count: int, with_end: bool) -> Array:
    """Places in (0, 1) that no even grid shares; the end of time is among them."""
    golden = np.mod(0.5 + np.arange(count) * 0.6180339887498949, 1.0)
    return np.append(np.sort(golden)[:-1], 1.0) if with_end else np.sort(golden)
