"""Cells that follow the field: a first pass, of the mean alone, finds the windows and the cells of each.

A window is solved on the cells it arrives on. Where the field asks for others by then, anywhere in the window, the
state is carried to those and the window is solved again. The number of cells is the same in all windows; unless it was
given, it grows until what cells cannot show is small.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import FAILED, expected
from factorfield.methods.chain.modes import MOST_OF_LINEAR, grown_modes
from factorfield.methods.chain.plane import is_told, walked
from factorfield.methods.chain.solver import WindowSolver
from factorfield.methods.chain.windows import WindowControl
from factorfield.model.basis import Departure
from factorfield.model.choices import modes_of_functions
from factorfield.model.graded import (
    MOST_CELLS,
    GradedSpline,
    cells_of,
    coarser,
    may_not_follow,
    monitor,
    sampling,
    transfer,
    uniform,
)  # fmt: skip
from factorfield.model.inside import start_of
from factorfield.model.model import WindowModel
from factorfield.model.moving import moved_to, on_cells, with_cells
from factorfield.model.representation import end_map, window_representation
from factorfield.model.windowed import window_model
from factorfield.problem.domain import TIME, Interval
from factorfield.progress import Progress
from factorfield.solution import Solution

Array = NDArray[np.float64]
MOST_MODES = 40  # along an axis: a field that asks for more has steep places
MOST_IN_PLANE = 20  # the same in a plane, where modes that mix are as many as their squares
MOST_WAVES = 110  # the same of waves that do not mix, which cost little
ALLOWED = 1e-6  # of the field: what the last polynomial in time, and what cells leave out, may carry
GROWTH = 1.5
WORN = 1.3  # cells that much wider than the field asks for are replaced
ORDER = 6.0  # of the error of quintic splines in the width of cells
MARGIN = 1.2  # times as many cells as that order asks for, at least
MOST_CHOSEN = 48  # cells along an axis of a plane, of those that are chosen: half a minute; more may be asked for
ENOUGH = 3e-5  # of the field: what cells of a plane may leave out of its start
LEFT = 2.0**-6  # of what is left out of quintic splines, when cells are halved
FINE = 8  # times as many cells to read the start on
FIRST_LEVEL = 6  # the first window is at most the horizon / 2^level
MOST_WINDOWS = 2000  # more say that cells are too few for the equation to be met
SMALLEST_FIELD = 1e-2  # of the scale: a field that varies less needs cells as if it varied that much


def is_dear(model: WindowModel, solution: Solution) -> bool:
    """Does a field ask for more modes than windows hold easily, or can have?"""
    axis = solution.unresolved
    more = grown_modes(model, axis) if axis else None
    lost = any(advice.kind == "modes" for advice in solution.advice or ())
    return lost if axis is None else more is None or more[axis] > _held_easily(model)


def starts_steep(model: WindowModel) -> bool:
    """Do the start's formula, sources or coefficients ask for more modes than windows hold easily?"""
    return any(modes_of_functions(model.problem, axis) > _held_easily(model) for axis in model.growing)


def _held_easily(model: WindowModel) -> int:
    """Modes along an axis that a window holds easily."""
    if model.traits.separable:
        return MOST_WAVES
    if model.traits.linear:
        return MOST_OF_LINEAR
    return MOST_MODES if len(model.problem.domain.space) == 1 else MOST_IN_PLANE


def on_cells_instead(model: WindowModel, iterations: int) -> WindowModel | None:
    """The problem over cells that follow the field, where modes that were chosen automatically do not resolve it.

    None where it is no such problem - three axes, waves, a start that no formula tells, coefficients searched on the
    marginal likelihood, in a plane anything but formulas, which would take minutes -, or where cells do not either.
    """
    problem, told = model.problem, model.traits.starts_by_formula and not model.coordinates
    if not told or len(problem.domain.space) > 2 or not model.growing or may_not_follow(problem):
        return None
    if len(problem.domain.space) == 2 and not model.holds:
        return None
    form = model.representation.forms[problem.fields[0]]
    try:
        local = window_model(
            problem, cells="auto", degree=model.asked.degree, windows=model.asked.edges, activation=form.activation
        )
        if local.in_plane and not is_told(local):
            return None
        found = followed(local, iterations, None)
    except FAILED:
        return None
    kind, along = "cells that follow the field" if found.cells else "cells", " and ".join(problem.domain.space)
    why = f"{kind}: modes along {along} do not resolve it, or would be too many"
    return replace(found, settings={**found.settings, "features": why})


@dataclass(eq=False)
class Course:
    """The windows of a first pass: edges, cells, weights, and the largest error that cells leave, in fields."""

    edges: list[float]
    cells: list[GradedSpline] = field(default_factory=list)
    weights: list[Array] = field(default_factory=list)
    error: float = 0.0


def followed(model: WindowModel, iterations: int, progress: Progress | None) -> WindowModel:
    """The model with windows, cells and the path to linearise at."""
    if model.in_plane:
        return walked(model if model.asked.cells else _enough_for_start(model), iterations, progress)
    (first,) = model.local.values()
    count, failed = first.cells, None
    while True:
        is_last = model.asked.cells or count == MOST_CELLS[1]
        try:
            own = on_cells(model, _cells_of_start(model, count, iterations))
            course = Follower(own, iterations).course(progress)
            if is_last or course.error < ALLOWED:
                return replace(own, edges=tuple(course.edges), cells=tuple(course.cells), path=tuple(course.weights))
        except FAILED as problem:
            if is_last or failed is not None:  # twice: more cells do not help either
                raise (failed or problem) from None
            failed = problem
        count = min(int(np.ceil(GROWTH * count)), MOST_CELLS[1])


def _enough_for_start(model: WindowModel) -> WindowModel:
    """A model of a plane with cells that hold the start, if a formula tells it."""
    count = max(own.cells for own in model.local.values())
    while True:
        state, fields = start_of(model), len(model.problem.fields)
        if state is None or count >= MOST_CHOSEN or _lost(model, state.reshape(fields, -1)) < ENOUGH:
            return model
        count = min(int(np.ceil(GROWTH * count)), MOST_CHOSEN)
        model = with_cells(model, {axis: uniform(model.problem.domain[axis], count) for axis in model.local})


def _lost(model: WindowModel, states: Array) -> float:
    """What cells of a plane leave out of fields, of their scale: what half as many leave of these."""
    (x, y), half = model.local.values(), [coarser(own, 0.5) for own in model.local.values()]
    found = 0.0
    for state in states:
        table = state.reshape(x.size, y.size)
        back = transfer(x, half[0]) @ table @ transfer(y, half[1]).T
        points = sampling(x), sampling(y)
        missed = x(points[0]) @ table @ y(points[1]).T - half[0](points[0]) @ back @ half[1](points[1]).T
        found = max(found, float(np.max(np.abs(missed))))
    return LEFT / (1.0 - LEFT) * found / model.scale


def on_more_cells(model: WindowModel, error: float, tolerance: float) -> WindowModel | None:
    """A model of a plane with as many cells as a numerical error asks for; None where there are as many as may be."""
    growth = float(np.clip((error / tolerance) ** (1.0 / ORDER) * MARGIN, MARGIN, 2.0))
    if model.asked.cells or all(own.cells >= MOST_CHOSEN for own in model.local.values()):
        return None
    counts = {axis: min(int(np.ceil(growth * own.cells)), MOST_CHOSEN) for axis, own in model.local.items()}
    found = with_cells(model, {axis: uniform(model.problem.domain[axis], count) for axis, count in counts.items()})
    return replace(found, settings={**found.settings, "features": model.settings.get("features", "cells")})


def _cells_of_start(model: WindowModel, count: int, iterations: int) -> GradedSpline:
    """As many as the field asks for at the start, read on far more."""
    (axis,), horizon = model.local, model.problem.domain[TIME]
    fine = uniform(model.problem.domain[axis], min(FINE * count, MOST_CELLS[1]))
    solver = WindowSolver(on_cells(model, fine), iterations)
    weights = np.zeros(solver.model.size)
    weights[solver.state] = solver.state_at_start(horizon.lower, horizon.upper)
    return _wanted(solver.model, fine, weights, count)


class Follower:
    """Walks through the windows of a model that begins on given cells."""

    def __init__(self, model: WindowModel, iterations: int) -> None:
        self.model, self._iterations = model, iterations
        self._solvers: dict[GradedSpline, WindowSolver] = {}

    def course(self, progress: Progress | None) -> Course:
        model, horizon, (cells,) = self.model, self.model.problem.domain[TIME], self.model.local.values()
        course, state = Course([horizon.lower]), self._solver(cells).state_at_start(horizon.lower, horizon.upper)
        for lower, upper in pairwise(model.asked.edges or ()):
            cells, weights = self._solved(cells, state, lower, upper)
            state = self._add(course, cells, weights, upper)
        if model.asked.edges is not None:
            return course
        level, quiet = min(model.first_level, FIRST_LEVEL), 2.0 ** -(model.degree + 1)
        for lower, upper in pairwise([horizon.lower, *model.jumps, horizon.upper]):
            control = WindowControl(Interval(lower, upper), level, quiet, False)
            cells, state = self._stretch(course, cells, state, control, progress)
        return course

    def _stretch(
        self, course: Course, cells: GradedSpline, state: Array, control: WindowControl, progress: Progress | None
    ) -> tuple[GradedSpline, Array]:
        """The windows up to the next jump, added to the course; the cells and the state at its end."""
        model, horizon = self.model, self.model.problem.domain[TIME]
        while not control.done:
            upper = control.end
            try:
                tried, weights = self._solved(cells, state, course.edges[-1], upper)
                error = self._last_polynomial(weights) / (ALLOWED * model.scale)
            except FAILED:
                error = np.inf
            if not control.judge(error):
                continue
            cells, state = tried, self._add(course, tried, weights, upper)
            if control.accepted > MOST_WINDOWS:
                wanted = f"at most {MOST_WINDOWS} windows over {cells.cells} cells"
                raise expected(wanted, "more, where the field changes too fast for them", "more cells=")
            if progress is not None:
                share = (upper - horizon.lower) / horizon.length
                progress(f"window {len(course.weights)}, t = {upper:.4g}", 0.3 * share)
        return cells, state

    def _solver(self, cells: GradedSpline) -> WindowSolver:
        if cells not in self._solvers:
            self._solvers = {cells: WindowSolver(moved_to(self.model, cells), self._iterations)}
        return self._solvers[cells]

    def _solved(self, cells: GradedSpline, state: Array, lower: float, upper: float) -> tuple[GradedSpline, Array]:
        """Cells that suit a window, and its weights on them; the state that arrives is on given cells."""
        weights = self._solver(cells).forward(state, lower, upper)
        wanted = _wanted(self.model, cells, weights, cells.cells)
        if _fits(cells, wanted):
            return cells, weights
        moved = self._way_to_end(cells, wanted)[:, self.model.layout[0]] @ state  # of a window that stands still
        return wanted, self._solver(wanted).forward(moved, lower, upper)

    def _way_to_end(self, cells: GradedSpline, onto: GradedSpline) -> Array:
        """From a window's weights to the state at its end, on other cells."""
        return end_map(window_representation(self.model.representation, 0.0, 1.0, cells), onto)

    def _add(self, course: Course, cells: GradedSpline, weights: Array, upper: float) -> Array:
        """The window as the next of the course; the state at its end, on the same cells."""
        course.edges.append(upper)
        course.cells.append(cells)
        course.weights.append(weights)
        course.error = max(course.error, _left_out(self.model, cells, weights))
        return self._way_to_end(cells, cells) @ weights

    def _last_polynomial(self, weights: Array) -> float:
        return max(float(np.abs(table[-1]).max()) for table in _tables(self.model, weights))


def _tables(model: WindowModel, weights: Array) -> Iterator[Array]:
    """Of every field, weights in time and space."""
    for name in model.problem.fields:
        for unit in model.representation.forms[name].latents:
            latent = model.representation.latents[unit]
            yield weights[latent.block].reshape(latent.basis.shape)


def _states(model: WindowModel, weights: Array, shares: tuple[float, ...]) -> Iterator[Array]:
    """The fields over space at shares of a window."""
    in_time = Departure(model.degree, 0.0, 1.0)(np.array(shares))
    for table in _tables(model, weights):
        yield from in_time @ table


def _wanted(model: WindowModel, cells: GradedSpline, weights: Array, count: int) -> GradedSpline:
    """The cells that the fields ask for: at the start, in the middle and at the end of a window."""
    (axis,), at = model.local, sampling(cells)
    density = np.zeros(len(at))
    for state in _states(model, weights, (0.0, 0.5, 1.0)):
        size = max(0.5 * float(np.ptp(state)), SMALLEST_FIELD * model.scale)
        density = np.maximum(density, monitor(cells, state, size, at))
    return cells_of(model.problem.domain[axis], count, at, density)


def _fits(cells: GradedSpline, wanted: GradedSpline) -> bool:
    """Is no cell much wider than it is wanted there?"""
    middles = 0.5 * (np.array(cells.breaks[1:]) + np.array(cells.breaks[:-1]))
    there = np.clip(np.searchsorted(wanted.breaks, middles) - 1, 0, wanted.cells - 1)
    return bool(np.max(np.diff(cells.breaks) / np.diff(wanted.breaks)[there]) < WORN)


def _left_out(model: WindowModel, cells: GradedSpline, weights: Array) -> float:
    """What cells leave out of the fields at the end of a window, of their scale: what half as many leave of these."""
    half = coarser(cells, 0.5)
    at, found = sampling(cells), 0.0
    back = transfer(cells, half)
    for state in _states(model, weights, (1.0,)):
        found = max(found, float(np.max(np.abs(cells(at) @ state - half(at) @ (back @ state)))))
    return LEFT / (1.0 - LEFT) * found / model.scale
