"""One window: its factors eliminated to a message about its state and a way to its end; nonlinear ones by Gauss-Newton.

Windows of equal length of a linear equation without explicit time share one factorisation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.errors import ProblemError
from factorfield.messages.elimination import Segment, assembled, conditioned, met, segment
from factorfield.messages.gaussian import Belief, Message
from factorfield.model.factors import FactorGroup, has_slopes, whitened_rows
from factorfield.model.model import WindowModel, is_standing
from factorfield.model.representation import with_constants
from factorfield.model.semidiscrete import Semidiscrete, semidiscrete
from factorfield.model.window_factors import Key, WindowFactors
from factorfield.problem.reference import constant_fields

Array = NDArray[np.float64]
ARRIVED = 1e-3  # nats: a step that gains less has arrived
ROUNDING = 1e-9  # of the negative log density: what sums of squares of this size cannot tell
SHORTEST_STEP = 1e-4
MET = 0.1  # nats per factor: an equation that is met
SLOW, MOST_SLOW = 0.1, 3  # of the negative log density that a step gains at least, and how many in a row may gain less
FAR = 100.0  # sigmas by which an equation is missed all over a window that is too long
FEW = 0.5  # of a window's inner weights: more factors of its own are eliminated together with those that it shares


@dataclass(frozen=True, eq=False)
class Window:
    """A solved window: the filtered belief about its state, its elimination, and the weights it is linearised at."""

    start: Belief
    link: Segment
    weights: Array
    groups: list[FactorGroup]
    unsettled: float = 0.0  # nats that the last step of the search within it still moved; 0: it rests
    is_far: bool = False  # was the search given up, the equation missed all over the window?


class WindowSolver:
    """Solves windows of one model, each given the belief that arrives at its start."""

    unnoticed = 1e-12  # of the field: the least that a path is said to move by
    def __init__(self, model: WindowModel, most_iterations: int) -> None:
        self.model, self.most_iterations = model, most_iterations
        self.factors = WindowFactors(model)
        self.state, self.inner = model.layout
        self.order = np.concatenate([self.state, self.inner])
        self.inner_std = model.prior.std[self.inner]
        self.iterations = self.factorisations = 0
        self._shared: dict[Key, Segment] = {}

    def solve(self, arrival: Belief, lower: float, upper: float, first: bool) -> Window:
        groups = self.factors.own(lower, upper, first)
        if not self.model.traits.separable:  # separable ones share the equation's part, which has no rows then
            groups = [*self.factors.standing(lower, upper), *groups]
        if not self.model.traits.linear:
            return self._newton(arrival, groups, lower, upper)
        return self.passed(arrival, self.linear_segment(groups, lower, upper), groups)

    def passed(self, arrival: Belief, link: Segment, groups: list[FactorGroup]) -> Window:
        """The window of a linear problem whose elimination is known."""
        start = arrival * link.message
        return Window(start, link, self.weights(start, link), groups)

    def weights(self, start: Belief, link: Segment) -> Array:
        return self.in_order(np.concatenate([start.mean, link.offset + link.slope @ start.mean]))

    def in_order(self, values: Array) -> Array:
        """Weights in the representation's order, from those of the state followed by the inner ones."""
        weights = np.empty_like(values)
        weights[self.order] = values
        return weights

    # -- elimination

    def eliminate(self, groups: Sequence[FactorGroup], weights: Array, lower: float, upper: float) -> Segment:
        """Factors linearised at `weights`, inner weights eliminated."""
        rows, target = self._rows(groups, weights)
        self.factorisations += 1
        if not np.all(np.isfinite(rows.sum(axis=0))):
            raise ProblemError(
                f"expected equations and conditions with a slope wherever the path goes, received one without between "
                f"t = {lower:g} and {upper:g} (such as sqrt(u) where u reaches 0); try a shorter horizon"
            )
        return segment(rows, target, self.inner, self.state, self.inner_std, self.factors.end_map(lower, upper))

    def _rows(self, groups: Sequence[FactorGroup], weights: Array) -> tuple[Array, Array]:
        """Factors linearised at `weights` as rows w = target +- 1."""
        if not self.model.traits.asked_too_often:
            return whitened_rows(groups, weights)
        kinds = [group.statement.kind if is_standing(group.statement) else "own" for group in groups]
        of_kind = {
            kind: np.column_stack(whitened_rows([g for g, k in zip(groups, kinds, strict=True) if k == kind], weights))
            for kind in ("boundary", "equation", "own")
        }
        rows = np.vstack([*met(of_kind["boundary"], of_kind["equation"], self.inner), of_kind["own"]])
        return np.ascontiguousarray(rows[:, :-1]), rows[:, -1]

    def linear_segment(self, groups: list[FactorGroup], lower: float, upper: float) -> Segment:
        """Of a linear equation; without explicit time, windows of one length share all but what labels say."""
        traits, centre = self.model.traits, np.zeros(len(self.order))
        if not traits.autonomous:
            return self.eliminate(groups, centre, lower, upper)
        rows, target = whitened_rows([g for g in groups if not is_standing(g.statement)], centre)
        within = np.any(rows[:, self.inner] != 0.0, axis=1)
        link = None
        if np.sum(within) < FEW * len(self.inner):
            link = self._shared_segment(lower, upper)
            inside = rows[within]
            if len(inside):
                link = conditioned(link, inside[:, self.inner], inside[:, self.state], target[within])
        if link is None:
            own = [group for group in groups if not is_standing(group.statement)]
            return self.eliminate([*self.factors.standing(lower, upper), *own], centre, lower, upper)
        about_state = Message(rows[~within][:, self.state], target[~within])
        return replace(link, message=link.message * about_state) if not within.all() else link

    def _shared_segment(self, lower: float, upper: float) -> Segment:
        """What windows of one length have in common: equations and walls, eliminated component by component."""
        key = self.factors.key(lower, upper)
        if key not in self._shared:
            self.factorisations += 1
            if self.in_space is None:
                rows, target = whitened_rows(self.factors.standing(lower, upper), np.zeros(len(self.order)))
                end = self.factors.end_map(lower, upper)
                self._shared[key] = segment(rows, target, self.inner, self.state, self.inner_std, end)
            else:
                self._shared[key] = self._by_components(self.in_space, key[0])
        return self._shared[key]

    def _by_components(self, in_space: Semidiscrete, length: float) -> Segment:
        place = np.empty(len(self.order), int)
        place[self.inner], place[self.state] = np.arange(len(self.inner)), np.arange(len(self.state))
        moving = np.ones(len(self.order), bool)
        moving[self.state] = False
        statement = next(s for s in self.model.problem.statements if is_standing(s))
        parts = []
        for weights, rows, target in in_space.parts(length, self.factors.instants(statement, 0.0, length)):
            inner_first = np.argsort(~moving[weights], kind="stable")
            weights, rows = weights[inner_first], rows[:, inner_first]
            few = int(moving[weights].sum())
            parts.append((place[weights[:few]], place[weights[few:]], rows, target))
        nothing, end = Message.nothing(len(self.state)), self.factors.end_map(0.0, length)
        return assembled(parts, nothing, self.inner, self.state, self.inner_std, end)

    @cached_property
    def in_space(self) -> Semidiscrete | None:
        """The equation between instants, where it is the same in all windows."""
        return None if self.model.cells else semidiscrete(self.model, self.factors)

    # -- mean paths

    def state_at_start(self, lower: float, upper: float) -> Array:
        """Where the first window begins by what speaks of that alone."""
        return self._begin(self.model.first_state(), self.factors.own(lower, upper, True), lower)[0][self.state]

    def forward(self, state: Array, lower: float, upper: float) -> Array:
        """The weights of the mean path from a state: equation and walls, and nothing else."""
        weights, at_rest = np.zeros(len(self.order)), np.zeros(len(state))
        weights[self.state] = state
        groups = self.factors.standing(lower, upper)
        weights, merit = self._onto_equation(groups, weights, at_rest)
        if not merit < MET * sum(group.count for group in groups):
            raise ProblemError(f"expected a window in which the equation is met, received none at t = {lower:g}")
        return weights

    def at_walls(self, state: Array, time: float) -> Array:
        """A state at the start as walls allow it; here labels and walls have told it together."""
        return state

    def end(self, weights: Array, lower: float, upper: float) -> Array:
        """The state at the end of a window of given weights."""
        return np.asarray(self.factors.end_map(lower, upper) @ weights, float)

    # -- Gauss-Newton

    def _newton(self, arrival: Belief, groups: list[FactorGroup], lower: float, upper: float) -> Window:
        """Gauss-Newton within a window, given what arrives; steps are halved until the log density does not fall.

        `white_state` is the state in the coordinates where the arriving belief is standard normal.
        """
        weights, white_state = self._begin(arrival, groups, lower)
        weights, merit = self._onto_equation(groups, weights, white_state)
        slow = 0
        for _ in range(self.most_iterations):
            link = self.eliminate(groups, weights, lower, upper)
            self.iterations += 1
            standard = arrival.standard(link.message)
            start = Belief(arrival.mean + arrival.root @ standard.mean, arrival.root @ standard.root, standard.level)
            step = self.weights(start, link) - weights, standard.mean - white_state
            weights, white_state, value = self._line_search(groups, weights, white_state, step, merit)
            gained, merit = merit - value, value
            if abs(gained) < ARRIVED + ROUNDING * abs(merit):
                return Window(start, link, weights, groups)
            slow = slow + 1 if gained < SLOW * merit else 0
            if slow == MOST_SLOW and self._is_far(groups, weights):
                return Window(start, link, weights, groups, abs(gained), is_far=True)
        return Window(start, link, weights, groups, abs(gained))

    def _is_far(self, groups: list[FactorGroup], weights: Array) -> bool:
        """Is the equation still missed by so much that the window is too long, however long it is searched?"""
        standing = [group for group in groups if is_standing(group.statement)]
        missed = sum(float(misfit @ misfit) for misfit in (group.misfit(weights) for group in standing))
        return missed > FAR**2 * sum(group.count for group in standing)

    def _begin(self, arrival: Belief, groups: list[FactorGroup], lower: float) -> tuple[Array, Array]:
        """Where the labels are, not at the prior; beside constants that are told of the fields, where a factor has no
        value or no slope without them."""
        weights = np.zeros(len(self.order))
        weights[self.state] = arrival.mean
        labels = self._about_state(groups, weights)
        representation, problem = self.model.representation, self.model.problem
        constants = (with_constants(representation, weights, each) for each in constant_fields(problem))
        for centre in chain((weights,), constants):
            near, start = replace(arrival, mean=centre[self.state]), weights.copy()
            white_state = near.standard(labels).mean
            start[self.state] = near.mean + near.root @ white_state
            if has_slopes(groups, start):
                shift = near.mean - arrival.mean
                moved = linalg.lstsq(arrival.root, shift)[0] if np.any(shift) else 0.0
                return start, white_state + moved
        raise ProblemError(
            f"expected a finite density near the data, received none at t = {lower:g} (a function of a field may "
            "have no value there, such as log(0)); try stating where the field starts: ff.Initial('u = 20', sigma=10)"
        )

    def _about_state(self, groups: list[FactorGroup], weights: Array) -> Message:
        """What linear factors that read the state alone say about it."""
        labels = [g for g in groups if g.relation.is_linear and g.statement.kind != "equation"]
        rows, target = whitened_rows(labels, weights)
        alone = ~np.any(rows[:, self.inner] != 0.0, axis=1)
        return Message(rows[alone][:, self.state], target[alone])

    def _onto_equation(self, groups: list[FactorGroup], weights: Array, white_state: Array) -> tuple[Array, float]:
        """The mean path from a given state: Newton steps by normal equations, a fraction of a factorisation each.

        Between them the last factor serves again as long as each step gains far less than the one before.
        """
        merit = self.merit(groups, weights, white_state)
        for _ in range(self.most_iterations if np.isfinite(merit) else 0):
            parts = [group.linear_misfit(weights) for group in groups]
            slopes = np.concatenate([rows[:, self.inner] for _, rows in parts])
            curvature = slopes.T @ slopes
            curvature[np.diag_indices_from(curvature)] += self.inner_std**-2.0
            try:
                factor = linalg.cho_factor(curvature, overwrite_a=True, check_finite=False)
            except linalg.LinAlgError:
                break
            misfit = np.concatenate([own for own, _ in parts])
            gained = np.inf
            while True:
                gradient = slopes.T @ misfit + weights[self.inner] / self.inner_std**2
                candidate = weights.copy()
                candidate[self.inner] -= linalg.cho_solve(factor, gradient, check_finite=False)
                value = self.merit(groups, candidate, white_state)
                if not value < merit:
                    break
                before, gained = gained, merit - value
                weights, merit = candidate, value
                if gained < ARRIVED:
                    return weights, merit
                if gained > 0.1 * before:
                    break
                misfit = np.concatenate([group.misfit(weights) for group in groups])
            if gained == np.inf:
                break
        return weights, merit

    def _line_search(
        self, groups: list[FactorGroup], weights: Array, white_state: Array, step: tuple[Array, Array], merit: float
    ) -> tuple[Array, Array, float]:
        """A step that does not fall back; where the equation bends away from it, back onto the equation first."""
        length = 1.0
        while True:
            new_weights, new_white_state = weights + length * step[0], white_state + length * step[1]
            value = self.merit(groups, new_weights, new_white_state)
            if value > 0.5 * merit and abs(merit - value) > ARRIVED:
                followed, better = self._onto_equation(groups, new_weights, new_white_state)
                if better < value:
                    new_weights, value = followed, better
            if value <= merit * (1.0 + 1e-12) + 1e-9 or length < SHORTEST_STEP:
                return new_weights, new_white_state, value
            length *= 0.5

    def merit(self, groups: Sequence[FactorGroup], weights: Array, white_state: Array) -> float:
        """The negative log density of a window up to a constant; infinite where there is none."""
        departure = weights[self.inner] / self.inner_std
        total = 0.5 * float(white_state @ white_state) + 0.5 * float(departure @ departure)
        with np.errstate(all="ignore"):  # a step may leave where a function has a value: that is judged here
            for group in groups:
                misfit = group.misfit(weights)
                total += 0.5 * float(misfit @ misfit)
        return total if np.isfinite(total) else np.inf

    def path_merit(self, groups: Sequence[list[FactorGroup]], weights_of: Callable[[int], Array]) -> float:
        """The negative log density of a path of windows up to a constant."""
        prior, total = self.model.prior_state, 0.0
        for index, own in enumerate(groups):
            weights = weights_of(index)
            away = linalg.solve(prior.root, weights[self.state] - prior.mean) if index == 0 else np.zeros(0)
            total += self.merit(own, weights, away)
        return total
