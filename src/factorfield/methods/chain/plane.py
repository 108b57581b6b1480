"""Windows over cells of a plane, and paths of a plane that a formula tells: by steps of stages.py, no rows formed.

A problem that only a formula for its start informs, and whose statements all hold, has a path and no other uncertainty
than what its features leave out: its windows are not eliminated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import FAILED, expected
from factorfield.messages.elimination import Segment, conditioned, told
from factorfield.messages.gaussian import Belief, Message
from factorfield.methods.chain.modes import unresolved_axis
from factorfield.methods.chain.passes import Path, stretches
from factorfield.methods.chain.solver import Window, WindowSolver
from factorfield.methods.chain.stages import Stages
from factorfield.methods.chain.windows import last_polynomials
from factorfield.model.factors import FactorGroup, whitened_rows
from factorfield.model.inside import equations_of, start_of
from factorfield.model.model import WindowModel, available_memory
from factorfield.problem.domain import TIME
from factorfield.progress import Progress

Array = NDArray[np.float64]
ALLOWED = 1e-6  # of the field: what the last polynomial in time may carry over cells
ARRIVED = 1e-7  # of the field: a step of Gauss and Newton that moves a window less has arrived
MOST_WINDOWS = 2000


class PlaneSolver(WindowSolver):
    """Solves windows over cells of a plane."""

    unnoticed = 1e-9  # walls hold without any noise: beside them rounding alone moves a path

    def __init__(self, model: WindowModel, most_iterations: int) -> None:
        super().__init__(model, most_iterations)
        equations = equations_of(model)
        if equations is None:
            wanted = "one equation of first order in time for each field, and walls that hold, over cells of a plane"
            raise expected(wanted, repr(model.problem), "method='tree'")
        self.stages = Stages(model, equations)
        self._linear: dict[float, Segment] = {}

    def solve(self, arrival: Belief, lower: float, upper: float, first: bool) -> Window:
        groups = self.factors.own(lower, upper, first)
        weights = self.forward(self._begin(arrival, groups, lower)[0][self.state], lower, upper)
        for _ in range(self.most_iterations):
            link = self.eliminate(groups, weights, lower, upper)
            self.iterations += 1
            start = arrival * link.message
            before, weights = weights, self.weights(start, link)
            moved = float(np.max(np.abs(weights - before))) / self.model.scale
            if moved < ARRIVED:
                return Window(start, link, weights, groups)
        return Window(start, link, weights, groups, moved)

    def eliminate(self, groups: Sequence[FactorGroup], weights: Array, lower: float, upper: float) -> Segment:
        """The window linearised at weights, given further factors of it."""
        link = self._segment(weights, lower, upper)
        rows, target = whitened_rows(groups, weights)
        within = np.any(rows[:, self.inner] != 0.0, axis=1)
        if np.any(within):
            inside = rows[within]
            found = conditioned(link, inside[:, self.inner], inside[:, self.state], target[within])
            assert found is not None  # no noise stays inside
            link = found
        return replace(link, message=link.message * Message(rows[~within][:, self.state], target[~within]))

    def linear_segment(self, groups: list[FactorGroup], lower: float, upper: float) -> Segment:
        return self.eliminate(groups, np.zeros(len(self.order)), lower, upper)

    def _segment(self, weights: Array, lower: float, upper: float) -> Segment:
        """Of equations and walls; of linear ones without explicit time, windows of one length share it."""
        traits, length = self.model.traits, self.factors.length(lower, upper)
        shared = traits.linear and traits.autonomous
        if shared and length in self._linear:
            return self._linear[length]
        self.factorisations += 1
        found = self.stages.segment(weights, lower, upper)
        if shared:
            self._linear[length] = found
        return found

    def forward(self, state: Array, lower: float, upper: float) -> Array:
        found = self.stages.forward(state, lower, upper)
        self.stages.keep()
        return found

    def at_walls(self, state: Array, time: float) -> Array:
        return self.stages.at_walls(state, time)

    def end(self, weights: Array, lower: float, upper: float) -> Array:
        return self.stages.end(weights)

    def path_merit(self, groups: Sequence[list[FactorGroup]], weights_of: Callable[[int], Array]) -> float:
        total = super().path_merit(groups, weights_of)
        for index, (lower, upper) in enumerate(pairwise(self.model.edges or ())):
            total += self.stages.merit(weights_of(index), lower, upper)
        return total

    def merit(self, groups: Sequence[FactorGroup], weights: Array, white_state: Array) -> float:
        """Without a prior of the inner weights: equations settle all of them."""
        nowhere = weights.copy()
        nowhere[self.inner] = 0.0
        none = super().merit((), nowhere, white_state)
        return none + sum(0.5 * float(own @ own) for own in (group.misfit(weights) for group in groups))


def solver_of(model: WindowModel, iterations: int) -> WindowSolver:
    return PlaneSolver(model, iterations) if model.in_plane else WindowSolver(model, iterations)


# -- the mean path


def is_told(model: WindowModel) -> bool:
    """Is all of a plane's field told by formulas that hold, so that only its features leave anything out?

    Linear equations over modes share the elimination of their windows, and need no path of their own."""
    if len(model.problem.domain.space) != 2 or (model.traits.linear and not model.local):
        return False
    by_default = all(sigma.origin == "default" for sigma in model.sigmas)
    measured = any(statement.points is not None for statement in model.problem.statements)
    plain = model.holds and by_default and not measured and not model.problem.unknowns
    jumps = any(advice.kind == "corner" for advice in model.advice)
    return plain and not (jumps and not model.local) and _told_start(model) is not None


def _told_start(model: WindowModel) -> Array | None:
    return None if equations_of(model) is None else start_of(model)


def told_path(model: WindowModel, tolerance: float, adapt: bool, progress: Progress | None) -> Path:
    """The path of a told model: windows between its edges, or found by what they leave to their last polynomials."""
    equations, state = equations_of(model), start_of(model)
    assert equations is not None and state is not None
    path = Path([model.problem.domain[TIME].lower], [])
    if model.path and model.edges is not None:
        for upper, weights in zip(model.edges[1:], model.path, strict=True):
            path.append(told_window(Stages(model, equations), weights), upper)
        return path
    walk = Walk(Stages(model, equations), tolerance, progress)
    for upper, weights in walk.windows(state):
        window = told_window(walk.stages, weights)
        path.append(window, upper)
        path.unresolved = unresolved_axis(model, weights, window.start, {}) if adapt and model.growing else None
        if path.unresolved:
            break
    path.rejected = walk.rejected
    return path


def told_window(stages: Stages, weights: Array) -> Window:
    state, powers = stages.table(weights)
    link = told(stages.inner(powers[:, :, None])[:, 0], stages.end(weights))
    return Window(Belief(state, np.zeros((len(state), 0))), link, weights, [])


def walked(model: WindowModel, iterations: int, progress: Progress | None) -> WindowModel:
    """The model over cells with windows and the path to linearise at, by a walk forward from where it begins."""
    solver, horizon = PlaneSolver(model, iterations), model.problem.domain[TIME]
    state = start_of(model) if is_told(model) else solver.state_at_start(horizon.lower, horizon.upper)
    assert state is not None
    edges, path = [horizon.lower], []
    for upper, weights in Walk(solver.stages, ALLOWED, progress).windows(state):
        edges.append(upper)
        path.append(weights)
    if not is_told(model):
        _check_memory(model, len(path))
    return replace(model, edges=tuple(edges), path=tuple(path))


def _check_memory(model: WindowModel, windows: int) -> None:
    """Refuse windows whose eliminations do not fit: how every inner weight follows the state and its noise."""
    width = len(model.layout[0])
    kept = 1 if model.traits.linear and model.traits.autonomous else windows
    needed, free = 8.0 * width**2 * (2 * kept * (model.degree + 2) + 3 * windows), available_memory()
    if needed > free:
        received = f"{needed / 2**30:.1f} GiB ({windows} windows of {width} coefficients)"
        raise expected(f"windows of at most {free / 2**30:.1f} GiB", received, "fewer cells=")


class Walk:
    """Windows of a mean path one after the other; `tolerance` is what the last polynomials may carry, of the field."""

    def __init__(self, stages: Stages, tolerance: float, progress: Progress | None) -> None:
        self.stages, self.tolerance, self._progress = stages, tolerance, progress
        self.rejected = 0

    def windows(self, state: Array) -> Iterator[tuple[float, Array]]:
        """(end of a window, its weights), from a state."""
        model, stages = self.stages.model, self.stages
        state = stages.at_walls(state, model.problem.domain[TIME].lower)
        if model.edges is not None:
            for lower, upper in pairwise(model.edges):
                weights = stages.forward(state, lower, upper)
                stages.keep()
                state = stages.end(weights)
                yield upper, weights
            return
        lower, last = model.problem.domain[TIME].lower, self._last()
        for control in stretches(model, [lower]):
            while not control.done:
                upper, error = control.end, np.inf
                try:
                    weights = stages.forward(state, lower, upper)
                    error = self._left(weights[last]) / (self.tolerance * model.scale)
                except FAILED:
                    weights = np.zeros(0)
                if not control.judge(error):
                    continue
                stages.keep()
                state, lower = stages.end(weights), upper
                if control.accepted > MOST_WINDOWS:
                    raise expected(f"at most {MOST_WINDOWS} windows", "more", "more cells= or modes=")
                self._tell(control.accepted, upper)
                yield upper, weights
            self.rejected += control.rejected

    def _last(self) -> NDArray[np.int64]:
        """Weights of the last two polynomials in time, over cells of the last one."""
        found, model = last_polynomials(self.stages.model), self.stages.model
        if not model.local:
            return found
        across = self.stages.equations.sizes[0]
        return found.reshape(len(model.problem.fields), 2, across)[:, 1].ravel()

    def _left(self, last: Array) -> float:
        """What the last polynomials carry; in a region at places inside."""
        inside = self.stages.equations.inside
        return float(np.abs(last if inside is None else inside @ last).max())

    def _tell(self, count: int, upper: float) -> None:
        if self._progress is not None:
            horizon = self.stages.model.problem.domain[TIME]
            self._progress(f"window {count}, t = {upper:.4g}", (upper - horizon.lower) / horizon.length)
