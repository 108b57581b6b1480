"""A model between given edges of windows: its log evidence, and the posterior mean of its weights, wherever what is
searched on the marginal likelihood is.

Of a linear model, the belief about the state is propagated with the measurements and without them; the difference of
the two levels is the log density of the measurements under what equation, conditions and prior allow. A nonlinear one
is solved first, from where its last path was, and linearised there (Laplace's approximation).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import FAILED
from factorfield.messages.elimination import Segment, backward_messages, propagate, smoothed_mean
from factorfield.messages.gaussian import Message
from factorfield.methods.chain.dynamics import Dynamics, dynamics_of
from factorfield.methods.chain.passes import Path, filter_along, filter_between, log_evidence, smooth
from factorfield.methods.chain.solver import WindowSolver
from factorfield.model.factors import FactorGroup, whitened_rows
from factorfield.model.model import WindowModel, is_standing, log_noise

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OwnFactors:
    """What a window has besides equation and walls, whitened: of its state alone, and of what is inside."""

    about_state: Message
    rows: Array
    target: Array


class LinearWindows:
    """A linear model with edges, solved at positions of what is searched."""

    def __init__(self, model: WindowModel) -> None:
        assert model.edges is not None
        self.model, self.edges = model, list(pairwise(model.edges))
        own = [s for s in model.problem.statements if not is_standing(s)]
        self._is_fixed = not any(set(model.held) & set(statement.relation.parameters) for statement in own)
        self._groups: dict[int, list[FactorGroup]] = {}
        self._factors: dict[int, tuple[OwnFactors, OwnFactors]] = {}

    def evidence(self, position: Array) -> float:
        """log p(measurements | equation, conditions, prior)."""
        model = self.model.at(position)
        informed = uninformed = model.prior_state
        for with_all, without in self._windows(WindowSolver(model, 1)):
            informed = propagate(informed * with_all.message, with_all)
            uninformed = propagate(uninformed * without.message, without)
        return informed.level - uninformed.level - log_noise(model)

    def means(self, position: Array) -> Array:
        """The posterior mean of every window's weights, (windows, weights).

        Inner weights are kept here: measurements move them by the equation's noise, not by the state alone.
        """
        solver = WindowSolver(self.model.at(position), 1)
        belief, starts, links = solver.model.prior_state, [], []
        for index, (lower, upper) in enumerate(self.edges):
            links.append(_eliminated(solver, self._own(solver, index), lower, upper))
            starts.append(belief * links[-1].message)
            belief = propagate(starts[-1], links[-1])
        windows = zip(starts, links, backward_messages(links), strict=True)
        return np.stack([solver.in_order(smoothed_mean(start, link, future)) for start, link, future in windows])

    def _windows(self, solver: WindowSolver) -> Iterator[tuple[Segment, Segment]]:
        """Every window with all of its factors, and without the measurements."""
        dynamics = dynamics_of(solver.in_space)
        for index, (lower, upper) in enumerate(self.edges):
            if dynamics is not None:
                yield self._operated(solver, dynamics, index)
                continue
            groups = self._own(solver, index)
            others = [group for group in groups if group.statement.kind != "observation"]
            with_all = _eliminated(solver, groups, lower, upper)
            yield with_all, _eliminated(solver, others, lower, upper) if len(others) < len(groups) else with_all

    def _operated(self, solver: WindowSolver, dynamics: Dynamics, index: int) -> tuple[Segment, Segment]:
        """By the solution operator, with all of the window's factors and without the measurements."""
        others, measured = self._split(solver, index)
        rows, target = np.vstack([others.rows, measured.rows]), np.concatenate([others.target, measured.target])
        length = solver.factors.length(*self.edges[index])
        with_all, without = dynamics.segments(length, rows, target, (len(rows), len(others.rows)))
        said = others.about_state * measured.about_state
        return (
            replace(with_all, message=said * with_all.message),
            replace(without, message=others.about_state * without.message),
        )

    def _own(self, solver: WindowSolver, index: int) -> list[FactorGroup]:
        """What distinguishes a window; remembered where no held number is in it."""
        if index not in self._groups or not self._is_fixed:
            self._groups[index] = solver.factors.own(*self.edges[index], index == 0)
        return self._groups[index]

    def _split(self, solver: WindowSolver, index: int) -> tuple[OwnFactors, OwnFactors]:
        """Conditions and measurements of a window; remembered likewise."""
        if index not in self._factors or not self._is_fixed:
            groups = self._own(solver, index)
            self._factors[index] = (
                _split(solver, [group for group in groups if group.statement.kind != "observation"]),
                _split(solver, [group for group in groups if group.statement.kind == "observation"]),
            )
        return self._factors[index]


class NonlinearWindows:
    """A nonlinear model with edges, solved at positions of what is searched; each begins where the last one ended."""

    def __init__(self, model: WindowModel, most_iterations: int) -> None:
        self.model, self.most_iterations = model, most_iterations
        self._centres: list[Array] = []

    def evidence(self, position: Array) -> float:
        """log p(measurements | equation, conditions, prior), linearised at the most probable path."""
        found = log_evidence(*self._path(position))
        return -np.inf if found is None else found

    def means(self, position: Array) -> Array:
        """The most probable weights of every window, (windows, weights)."""
        solver, path = self._path(position)
        return np.stack([solver.in_order(path.mean(index)) for index in range(len(path.links))])

    def _path(self, position: Array) -> tuple[WindowSolver, Path]:
        solver, edges = WindowSolver(self.model.at(position), self.most_iterations), self.model.edges or ()
        if self._centres:
            try:
                path = filter_along(solver, edges, self._centres)
                smooth(solver, path, None)
            except FAILED:
                self._centres = []
        if not self._centres:
            path = filter_between(solver, edges, [], False)
            smooth(solver, path, None)
        self._centres = list(path.centres)
        return solver, path


def _split(solver: WindowSolver, groups: list[FactorGroup]) -> OwnFactors:
    rows, target = whitened_rows(groups, np.zeros(len(solver.order)))
    alone = ~np.any(rows[:, solver.inner] != 0.0, axis=1)
    about_state = Message(rows[alone][:, solver.state], target[alone]).compressed()
    return OwnFactors(about_state, rows[~alone], target[~alone])


def _eliminated(solver: WindowSolver, groups: list[FactorGroup], lower: float, upper: float) -> Segment:
    if not solver.model.traits.autonomous:
        groups = [*solver.factors.standing(lower, upper), *groups]
    return solver.linear_segment(groups, lower, upper)
