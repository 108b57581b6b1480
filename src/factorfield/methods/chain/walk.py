"""The passes over a chain's windows: forward with error control, backward with what later windows know.

A window is accepted when the last polynomials of its time basis carry almost nothing; otherwise it is halved. Windows
of equal length of a linear equation without explicit time share one factorisation.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.errors import ProblemError
from factorfield.messages.links import Belief, Message, Segment, assembled, carried, inner, returned, segment
from factorfield.methods.chain import modes as chain_modes
from factorfield.methods.chain.rows import (
    is_equation,
    last_polynomials,
    linear_misfit,
    own_groups,
    plain_blocks,
    projected,
    standing_groups,
    whitened,
)  # fmt: skip
from factorfield.methods.chain.truncation import bent, unfollowed
from factorfield.model.factors import FactorGroup
from factorfield.model.window import end_map, layout, window_representation
from factorfield.model.windowed import Setup, length_of
from factorfield.posterior.stored import StoredBeliefs
from factorfield.problem.domain import TIME
from factorfield.progress import Progress
from factorfield.solution import Status

Array = NDArray[np.float64]
Path = str | os.PathLike[str]
MOST_HALVINGS = 30  # a window shorter than 2^-30 of the horizon: the equation is too stiff, or wrong
MOST_WINDOWS = 20_000
STUCK = 100  # equal windows in a row after which the rest of the horizon is judged by their length
PATIENCE = 4  # windows after which a longer one is tried although the error is not tiny; twice that after a refusal
HOPELESS = 1e9  # standard deviations that a path may move in one step of smoothing
LINEAR = "linear and Gaussian: exact for the windows chosen"
NEAR, SHORTEST = 1.0, 1e-3  # standard deviations within which a step is taken as it is, and the least part of one
SETTLED = 1e-3  # nats: a step that gains less has arrived


class Walk:
    """The passes over the windows of one problem."""

    def __init__(
        self, setup: Setup, tolerance: float, iterations: int, store: Path | None, progress: Progress | None,
        known: Walk | None = None,
    ) -> None:  # fmt: skip
        self.setup, self.tolerance, self.most_iterations, self.progress = setup, tolerance, iterations, progress
        self.known = known  # an earlier walk over the same windows with fewer conditions
        self.state, self.rest = layout(setup.representation)
        self.order = np.concatenate([self.state, self.rest])
        self.last = np.flatnonzero(np.isin(self.rest, last_polynomials(setup.representation)))
        self.edges: list[float] = []
        self.starts: list[Belief] | StoredBeliefs  # at the start of each window, its own message included
        self.starts = [] if store is None else StoredBeliefs(store, len(self.state))
        self.links: list[Segment] = []
        self.futures: list[Message] = []
        self.centres: list[Array] = []  # where each window was linearised
        self.groups: list[list[FactorGroup] | None] = []
        self.shared: dict[float, Segment] = {}  # by length
        self.ends: dict[float, Array] = {}
        self.last_modes: dict[str, float] = {}  # what they carried at the start
        self.iterations = self.rejected = self.factorisations = 0
        self.moves: list[float] = []  # of the smoothed path, in its standard deviations

    def release(self) -> None:
        """Another walk takes over: its file must be free."""
        if isinstance(self.starts, StoredBeliefs):
            self.starts.close()

    # -- forward

    def forward(self, edges: Array | None, arrival: Belief) -> None:
        axis = self.setup.problem.domain[TIME]
        horizon = axis.length
        self.edges = [axis.lower]
        if edges is not None:
            for upper in edges[1:]:
                arrival = self._advance(arrival, float(upper))
            return
        level = self.setup.first_level
        position, cells = 0, 2**level  # time = lower + position / 2^level * horizon
        refused = np.inf  # error before the last window that proved too long
        error, doubled, waited, patience = np.inf, False, 0, PATIENCE
        while position < cells:
            upper = axis.upper if position + 1 == cells else axis.lower + (position + 1) / cells * horizon
            before, error = error, self._try(arrival, upper)
            if error > 1.0:
                self.rejected += 1
                level, position, cells = level + 1, 2 * position, 2 * cells
                if level > MOST_HALVINGS:
                    raise self._too_fast(f"windows of at least 2^-{MOST_HALVINGS} of the horizon", error)
                refused, patience = (before, 2 * patience) if doubled else (refused, patience)
                doubled, error, waited = False, before, 0
                continue
            arrival = self._accept(upper)
            position += 1
            stuck = waited > STUCK and cells - position > MOST_WINDOWS
            if stuck or len(self.links) > MOST_WINDOWS:
                raise self._too_fast(f"at most {MOST_WINDOWS} windows", error)
            # waves that do not decay keep their window; else a longer one is tried if the equation's misfit is watched
            bold = self.setup.changing
            ready = 0.01 if bold else 2.0 ** (1 - int(self.setup.settings["degree"]))
            waited = 0 if doubled else waited + 1
            due = self.setup.speaks_later and waited >= patience and error < 0.5  # it may not be the length's doing
            possible = position % 2 == 0 and level > 0 and position < cells
            doubled = possible and (due or error < min(ready, 0.1 * refused))
            if doubled:
                level, position, cells = level - 1, position // 2, cells // 2
            if self.progress is not None:
                self.progress(f"window {len(self.links)}, t = {self.edges[-1]:.4g}", position / cells)

    def _too_fast(self, wanted: str, error: float) -> ProblemError:
        return ProblemError(
            f"expected {wanted}, received a solution that changes too fast at t = {self.edges[-1]:.6g} (error "
            f"{error:.2g} tolerances): it may blow up there, the equation be stiff, or conditions contradict each "
            "other; try a larger sigma of the equation, fewer modes, a shorter horizon, or check the signs of terms"
        )

    def _advance(self, arrival: Belief, upper: float) -> Belief:
        self._try(arrival, upper)
        return self._accept(upper)

    def _try(self, arrival: Belief, upper: float) -> float:
        """Solve the next window; its error in tolerances."""
        lower, first = self.edges[-1], len(self.edges) == 1
        groups: list[FactorGroup] | None
        link: Segment | None
        if self.known is not None and self.setup.is_linear and not self.setup.is_new(lower, upper, first):
            link, groups = self.known.links[len(self.links)], self.known.groups[len(self.links)]
        else:
            groups = own_groups(self.setup, lower, upper, first)
            if not self.setup.plain:  # plain ones share the equation's part, which has no rows then
                groups = [*standing_groups(self.setup, lower, upper), *groups]
            link = self._linear_segment(groups, lower, upper) if self.setup.is_linear else None
        if link is None:
            start, link, weights = self._newton(arrival, groups or [], lower, upper)
        else:
            start = arrival * link.message
            weights = self._weights(start, link)
        self._candidate = (start, link, weights, groups)
        error = unfollowed(self, weights, start, link)
        silent = all(g.name in self.setup.standing or np.all(g.points[TIME] <= lower) for g in groups or [])
        if silent and error <= 1.0 and max(self.setup.orders.values()) > 1:
            error = max(error, bent(self, arrival, start, groups or []))
        return error

    def _linear_segment(self, groups: list[FactorGroup], lower: float, upper: float) -> Segment:
        """Of a linear equation; without explicit time, windows of one length share all but what labels say."""
        centre = np.zeros(len(self.order))
        if not self.setup.autonomous:
            return self.segment_at(groups, centre, lower, upper)
        labels = [group for group in groups if group.name not in self.setup.standing]
        rows, target = whitened(labels, centre)
        if np.any(rows[:, self.rest] != 0.0):
            if self.setup.plain:
                groups = [*standing_groups(self.setup, lower, upper), *groups]
            return self.segment_at(groups, centre, lower, upper)
        length = length_of(lower, upper)
        if length not in self.shared:
            standing = [group for group in groups if group.name in self.setup.standing]
            plain = self.setup.plain
            self.shared[length] = (
                self._wave_segment(lower, upper) if plain else self.segment_at(standing, centre, lower, upper)
            )
        link = self.shared[length]
        return replace(link, message=link.message * Message(rows[:, self.state], target)) if len(rows) else link

    def _wave_segment(self, lower: float, upper: float) -> Segment:
        """Of an equation whose waves do not mix: each frequency by itself."""
        self.factorisations += 1
        place = np.empty(len(self.order), int)
        place[self.rest], place[self.state] = np.arange(len(self.rest)), np.arange(len(self.state))
        moving = np.ones(len(self.order), bool)
        moving[self.state] = False
        blocks = []
        for weights, rows, target in plain_blocks(self.setup, lower, upper):
            inner_first = np.argsort(~moving[weights], kind="stable")
            weights, rows = weights[inner_first], rows[:, inner_first]
            few = int(moving[weights].sum())
            blocks.append((place[weights[:few]], place[weights[few:]], rows, target))
        nothing = Message.nothing(len(self.state))
        spread = self.setup.spread[self.rest]
        return assembled(blocks, nothing, self.rest, self.state, spread, self._end(lower, upper))

    def _end(self, lower: float, upper: float) -> Array:
        length = length_of(lower, upper)
        if length not in self.ends:
            self.ends[length] = end_map(window_representation(self.setup.representation, 0.0, upper - lower))
        return self.ends[length]

    def _accept(self, upper: float) -> Belief:
        start, link, weights, groups = self._candidate
        chain_modes.check(self.setup, weights, self.edges[-1], self.last_modes)
        self.edges.append(upper)
        self.starts.append(start)
        self.links.append(link)
        if self.setup.speaks_later:
            self.centres.append(weights)
        self.groups.append(groups)
        return carried(start, link)

    def _weights(self, start: Belief, link: Segment) -> Array:
        weights = np.empty(len(self.order))
        weights[self.order] = np.concatenate([start.mean, link.offset + link.slope @ start.mean])
        return weights

    def segment_at(self, groups: list[FactorGroup], weights: Array, lower: float, upper: float) -> Segment:
        rows, target = whitened(groups, weights)
        self.factorisations += 1
        return segment(rows, target, self.rest, self.state, self.setup.spread[self.rest], self._end(lower, upper))

    def _newton(
        self, arrival: Belief, groups: list[FactorGroup], lower: float, upper: float
    ) -> tuple[Belief, Segment, Array]:
        """Gauss-Newton within a window, given what arrives; steps are halved until the log density does not fall."""
        weights = np.zeros(len(self.order))
        weights[self.state] = arrival.mean
        standard = arrival.standard(self._labels(groups, weights))  # begin where the labels are, not at the prior
        place = standard.mean
        weights[self.state] = arrival.mean + arrival.root @ place
        weights, merit = self._followed(groups, weights, place)
        if not np.isfinite(merit):
            raise ProblemError(
                f"expected a finite density near the data, received none at t = {lower:g} (a function of a field may "
                "have no value at 0, such as log); try stating where the field starts: ff.Initial('u = 20', sigma=10)"
            )
        for _ in range(self.most_iterations):
            link = self.segment_at(groups, weights, lower, upper)
            self.iterations += 1
            standard = arrival.standard(link.message)
            start = Belief(arrival.mean + arrival.root @ standard.mean, arrival.root @ standard.root)
            step = self._weights(start, link) - weights, standard.mean - place
            weights, place, value = self._searched(groups, weights, place, step, merit)
            gained, merit = merit - value, value
            if abs(gained) < SETTLED:
                break
        return start, link, weights

    def _followed(self, groups: list[FactorGroup], weights: Array, place: Array) -> tuple[Array, float]:
        """The mean path from a given state: Newton steps by normal equations, a fraction of a factorisation each.

        Between them the last factor serves again as long as each step gains far less than the one before.
        """
        spread = self.setup.spread[self.rest]
        merit = self._merit(groups, weights, place)
        for _ in range(self.most_iterations):
            parts = [linear_misfit(group, weights) for group in groups]
            slopes = np.concatenate([rows[:, self.rest] for _, rows in parts])
            misfit = np.concatenate([own for own, _ in parts])
            curvature = slopes.T @ slopes
            curvature[np.diag_indices_from(curvature)] += spread**-2.0
            try:
                factor = linalg.cho_factor(curvature, overwrite_a=True, check_finite=False)
            except linalg.LinAlgError:
                break
            gained = np.inf
            while True:
                gradient = slopes.T @ misfit + weights[self.rest] / spread**2
                moved = weights.copy()
                moved[self.rest] -= linalg.cho_solve(factor, gradient, check_finite=False)
                value = self._merit(groups, moved, place)
                if not value < merit:
                    break
                before, gained = gained, merit - value
                weights, merit = moved, value
                if gained < SETTLED:
                    return weights, merit
                if gained > 0.1 * before:
                    break
                misfit = np.concatenate([self.misfit(group, weights) for group in groups])
            if gained == np.inf:
                break
        return weights, merit

    def _searched(
        self, groups: list[FactorGroup], weights: Array, place: Array, step: tuple[Array, Array], merit: float
    ) -> tuple[Array, Array, float]:
        """A step that does not fall back; where the equation bends away from it, back onto the equation first."""
        length = 1.0
        while True:
            new_weights, new_place = weights + length * step[0], place + length * step[1]
            value = self._merit(groups, new_weights, new_place)
            if value > 0.5 * merit and abs(merit - value) > SETTLED:
                followed, better = self._followed(groups, new_weights, new_place)
                if better < value:
                    new_weights, value = followed, better
            if value <= merit * (1.0 + 1e-12) + 1e-9 or length < 1e-4:
                return new_weights, new_place, value
            length *= 0.5

    def _labels(self, groups: list[FactorGroup], weights: Array) -> Message:
        """What linear factors say about the state alone."""
        labels = [g for g in groups if g.relation.is_linear and not is_equation(g)]
        rows, target = whitened(labels, weights)
        alone = ~np.any(rows[:, self.rest] != 0.0, axis=1)
        return Message(rows[alone][:, self.state], target[alone])

    def level(self, window_mean: Callable[[int], Array]) -> float:
        """Negative log density of the whole path at the posterior mean, up to a constant."""
        prior, total = self.setup.prior, 0.0
        for index, groups in enumerate(self.groups):
            weights = window_mean(index)
            away = (weights[self.state] - prior.mean) / np.diagonal(prior.root) if index == 0 else np.zeros(0)
            total += self._merit(groups or [], weights, away)
        return total

    def _merit(self, groups: list[FactorGroup], weights: Array, place: Array) -> float:
        departure = weights[self.rest] / self.setup.spread[self.rest]
        total = 0.5 * float(place @ place) + 0.5 * float(departure @ departure)
        with np.errstate(over="ignore", invalid="ignore"):
            for group in groups:
                misfit = self.misfit(group, weights)
                total += 0.5 * float(misfit @ misfit)
        return total if np.isfinite(total) else np.inf

    def misfit(self, group: FactorGroup, weights: Array) -> Array:
        value = group.relation.value(group.project(weights), group.parameters, group.points)
        return projected(group, (value - group.target) / group.sigma)

    # -- backward

    def smooth(self) -> Status:
        """Bring the future back; nonlinear chains are linearised along the smoothed path until it rests."""
        if isinstance(self.starts, list):
            self.backward()
        else:  # an equation alone says next to nothing (1e-5 of a standard deviation) about where it began
            self.futures = [Message.nothing(len(self.state))] * len(self.links)
        if self.setup.is_linear or not self.setup.speaks_later:
            return Status("converged", LINEAR if self.setup.is_linear else "every window settled")
        for _ in range(self.most_iterations):
            try:
                moved = self.relinearise()
                self.backward()
            except (ValueError, linalg.LinAlgError):  # infinite rows
                raise self._lost() from None
            self.moves.append(moved)
            if self.progress is not None:
                self.progress(f"smoothing, the path moved by {moved:.1e} sd", 0.9)
            if not moved < HOPELESS:
                break
            if moved < 1e-3:
                return Status("converged", f"the smoothed path rests to {moved:.1e} standard deviations")
        return Status("max-iterations", f"the smoothed path still moves by {moved:.1e} standard deviations")

    def _lost(self) -> ProblemError:
        text = (
            "expected a path that the data lead to, received one that runs away while it is corrected; try starts=5, "
        )
        return ProblemError(f"{text}priors of the unknowns nearer to what is expected, or conditions at the start")

    def backward(self) -> None:
        message = Message.nothing(len(self.state))
        self.futures = []
        for link in reversed(self.links):
            self.futures.append(message)
            message = returned(message, link)
        self.futures.reverse()

    def relinearise(self) -> float:
        """One Gauss-Newton step of the whole chain; how far it would move the states, in their standard deviations."""
        arrival, moved, wanted, beliefs = self.setup.prior, 0.0, [], self.starts
        assert isinstance(beliefs, list)
        for index, link in enumerate(self.links):
            known = inner(self.starts[index], link, self.futures[index])
            weights = np.empty(len(self.order))
            weights[self.order] = known.mean
            spread = np.sqrt(np.sum(known.root[: len(self.state)] ** 2, axis=1)) + 1e-12 * self.setup.scale
            change = np.abs(known.mean[: len(self.state)] - self.centres[index][self.state]) / spread
            moved = max(moved, float(change.max()))
            wanted.append(weights)
        self.centres = self._towards(wanted) if moved > NEAR else wanted
        for index in range(len(self.links)):
            lower, upper = self.edges[index], self.edges[index + 1]
            groups = self.groups[index]
            assert groups is not None
            self.links[index] = self.segment_at(groups, self.centres[index], lower, upper)
            beliefs[index] = arrival * self.links[index].message
            arrival = carried(beliefs[index], self.links[index])
        return moved

    def _towards(self, wanted: list[Array]) -> list[Array]:
        """As far as the density does not fall; from the filtered path, which has jumps, as far as there is one."""
        least = self.level(self.centres.__getitem__) if self.moves else np.finfo(float).max
        length = 1.0
        while True:
            path = [old + length * (new - old) for old, new in zip(self.centres, wanted, strict=True)]
            if length < SHORTEST or self.level(path.__getitem__) <= least:
                return path
            length *= 0.5
