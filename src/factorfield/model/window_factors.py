"""The factors of one window: equations and walls at collocation points, measurements and instants that fall into it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from factorfield.model.basis import Tensor
from factorfield.model.face_errors import error_basis, with_error, without_error
from factorfield.model.factors import FactorGroup, build_group, chosen_group
from factorfield.model.folding import MANY, folded
from factorfield.model.graded import GradedSpline
from factorfield.model.grid import grid_group
from factorfield.model.model import WindowModel, is_standing
from factorfield.model.moving import moved_to
from factorfield.model.representation import (
    Representation,
    at_one_instant,
    end_map,
    states_of,
    window_representation,
)
from factorfield.problem.domain import TIME, Interval
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]
HELD = 1e-8  # of the field: what walls of a plane tell of its start to
BEFORE = 1e-9  # of a window: how far before a jump something is asked that belongs to the time before
Indices = NDArray[np.int64]
Key = tuple[float, GradedSpline | None, GradedSpline | None]  # a window's length, its cells and those of the next one


class WindowFactors:
    """Builds the factors of windows of one model; those that windows of equal length share are kept."""

    def __init__(self, model: WindowModel) -> None:
        self.model = model
        self._standing: dict[tuple[int, Key], FactorGroup] = {}
        self._ends: dict[Key, Array] = {}
        self._moved: dict[GradedSpline, WindowModel] = {}
        self._lengths: dict[str, float] = {}
        self._errors: dict[str, Tensor] = {}

    def representation(self, lower: float, upper: float) -> Representation:
        return window_representation(self.model.representation, lower, upper, self._cells(lower))

    def _cells(self, lower: float, further: int = 0) -> GradedSpline | None:
        """Of the window that begins at `lower`, or of a later one; None where cells do not move."""
        if not self.model.cells:
            return None
        assert self.model.edges is not None
        index = int(np.searchsorted(self.model.edges, lower, side="right")) - 1 + further
        return self.model.cells[min(index, len(self.model.cells) - 1)]

    def _here(self, lower: float) -> WindowModel:
        """The model as the window that begins at `lower` reads it in space."""
        cells = self._cells(lower)
        if cells is None:
            return self.model
        if cells not in self._moved:
            self._moved[cells] = moved_to(self.model, cells)
        return self._moved[cells]

    def key(self, lower: float, upper: float) -> Key:
        """Windows with one key have the same equations and walls, if these do not depend on time, and the same way to
        their end."""
        return self.length(lower, upper), self._cells(lower), self._cells(lower, 1)

    def length(self, lower: float, upper: float) -> float:
        """A window's length: one number for windows that are equal up to rounding, which share a factorisation.

        Windows found by halving have exactly a power of two of the horizon, wherever they lie and whichever was tried
        first: found and given edges then lead to the same bits.
        """
        horizon = self.model.problem.domain[TIME].length
        cell = horizon * 2.0 ** round(math.log2((upper - lower) / horizon))
        length = cell if math.isclose(upper - lower, cell) else upper - lower
        return self._lengths.setdefault(f"{length:.9g}", length)

    def end_map(self, lower: float, upper: float) -> Array:
        """The state at the window's end as a linear map of its weights."""
        key = self.key(lower, upper)
        if key not in self._ends:
            self._ends[key] = end_map(window_representation(self.model.representation, 0.0, *key[:2]), key[2])
        return self._ends[key]

    def standing(self, lower: float, upper: float) -> list[FactorGroup]:
        """Factors that every window has: equations and walls. Without explicit time they depend on its length only."""
        standing = [number for number, s in enumerate(self.model.problem.statements) if is_standing(s)]
        numbers = [] if self.model.in_plane else standing  # there they are never formed as rows (instants.py)
        if not self.model.traits.autonomous:
            return [self._gridded(number, lower, upper, self._here(lower)) for number in numbers]
        key = self.key(lower, upper)
        for number in numbers:
            if (number, key) not in self._standing:
                self._standing[number, key] = self._gridded(number, 0.0, key[0], self._here(lower))
        return [self._standing[number, key] for number in numbers]

    def at_one_instant(self) -> list[FactorGroup]:
        """Equations and walls at the start of time, each time derivative read from a weight of its own."""
        start = np.array([self.model.problem.domain[TIME].lower])
        numbers = [number for number, s in enumerate(self.model.problem.statements) if is_standing(s)]
        model = self.model
        return [self._at_instants(number, at_one_instant(model.representation), start, model) for number in numbers]

    def own(self, lower: float, upper: float, first: bool) -> list[FactorGroup]:
        """What distinguishes a window: measurements and instants that fall into it, and how it starts."""
        problem = self.model.problem
        representation = self.representation(lower, upper)
        groups: list[FactorGroup] = []
        for number, (statement, sigma) in enumerate(zip(problem.statements, self.model.sigmas, strict=True)):
            if is_standing(statement) or not speaks_within(statement, lower, upper, first):
                continue
            if statement.points is None:
                groups.append(self._gridded(number, lower, upper, self._here(lower)))
                continue
            t = statement.points[TIME]
            inside = np.flatnonzero((t <= upper) & ((t > lower) | first))
            few = len(inside) <= MANY * representation.size
            if few or not representation.read(statement.relation).is_linear:
                groups.append(chosen_group(statement, representation, inside, sigma.value, self.model.constants))
            else:
                groups += folded(statement, representation, inside, lower, sigma.value, self.model.constants)
        for statement in self.model.held_at_start if first else ():
            axes = {name: np.array([at]) for name, at in (statement.face or {}).items()}
            where = problem.domain.tensor({**self._here(lower).space.points, **axes})
            sigma_there = 1.0 if statement.sigma is None else statement.sigma
            if self.model.in_plane:  # walls hold by themselves from then on: a sharper start would be lost in rounding
                sigma_there = np.maximum(sigma_there, HELD * self.model.scale)
            group = build_group(statement, representation, where, sigma_there, self.model.constants)
            groups.append(group if statement.error is None else with_error(group, representation))
        return groups

    def _gridded(self, number: int, lower: float, upper: float, here: WindowModel) -> FactorGroup:
        """An equation or a face at collocation points."""
        instants = self.instants(self.model.problem.statements[number], lower, upper)
        return self._at_instants(number, window_representation(here.representation, lower, upper), instants, here)

    def _at_instants(
        self, number: int, representation: Representation, instants: Array, here: WindowModel
    ) -> FactorGroup:
        problem, space, constants = here.problem, here.space, here.constants
        statement, sigma = problem.statements[number], here.sigmas[number].value
        axes = {TIME: instants, **space.points}
        if here.in_plane:  # as many as splines, for a start of many cells
            axes |= {axis: cells.places for axis, cells in here.local.items()}
            sigma = float(np.min(sigma))
        axes |= {name: np.array([at]) for name, at in (statement.face or {}).items()}
        where = problem.domain.tensor(axes)
        if statement.name in space.projections:
            through = space.projections[statement.name]
            return grid_group(statement, representation, axes, where, sigma, constants, through)
        group = build_group(statement, representation, where, sigma, constants)
        if statement.error is None:
            return group
        return with_error(group, representation) if is_standing(statement) else self._error_summed_out(group)

    def _error_summed_out(self, group: FactorGroup) -> FactorGroup:
        if group.name not in self._errors:
            self._errors[group.name] = error_basis(group.statement, self.model.problem.domain, self.model.modes)
        return without_error(group, self._errors[group.name])

    def instants(self, statement: Statement, lower: float, upper: float) -> Array:
        """When an equation or a wall is asked to hold in a window: as often as it has polynomials to settle.

        Then it can be met exactly, whatever the state at the start: asked more often it would bend the start where
        the window is too long. Radau's points, the last at the end: stiff decays are damped, as in the implicit
        Runge-Kutta methods of that name. With second derivatives in time the same points let fast waves in space
        explode, and without any the state at the start is to be settled too: both are asked more often than needed.
        """
        latents = self.model.representation.latents
        size = next(iter(latents.values())).basis.shape[0]
        order = statement.relation.order(TIME)
        if statement.face is not None:
            order = max(states_of(latents[jet.field]) for jet in statement.relation.jets.values())
        exactly = order == 1 or (order > 1 and not self.model.problem.domain.space)
        if upper in self.model.jumps:  # what is asked at the end is still what was before the jump
            upper -= BEFORE * (upper - lower)
        return radau(size - order, lower, upper) if exactly else Interval(lower, upper).collocation(size + 2)


def speaks_within(statement: Statement, lower: float, upper: float, first: bool) -> bool:
    """Does a measurement, or a condition at one instant, fall into a window (the first one holds its start)?"""
    if statement.points is not None:
        t = statement.points[TIME]
        return bool(np.any((t <= upper) & ((t > lower) | first)))
    at = (statement.face or {}).get(TIME)
    return at is None or lower < at <= upper or (first and at <= lower)


def radau(count: int, lower: float, upper: float) -> Array:
    interior, _ = special.roots_jacobi(count - 1, 1.0, 0.0)
    return lower + 0.5 * (upper - lower) * (1.0 + np.append(interior, 1.0))
