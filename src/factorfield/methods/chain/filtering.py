"""The pass forward: window after window, each accepted when it is short enough, its belief propagated to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from factorfield.messages.elimination import Segment
from factorfield.messages.path import propagate, smoothed
from factorfield.messages.square_root import Belief, Message
from factorfield.methods.chain.modes import unresolved_axis
from factorfield.methods.chain.solver import Window, WindowSolver
from factorfield.methods.chain.truncation import window_error
from factorfield.methods.chain.windows import WindowControl
from factorfield.model.factors import FactorGroup
from factorfield.model.window_factors import speaks_within
from factorfield.model.windowed import WindowModel
from factorfield.posterior.stored import StoredBeliefs
from factorfield.problem.domain import TIME
from factorfield.progress import Progress

Array = NDArray[np.float64]
Beliefs = list[Belief] | StoredBeliefs


@dataclass(eq=False)
class Path:
    """Windows between `edges`: filtered beliefs at their starts (own message included), eliminations, factors.

    `centres` are the weights where factors were linearised, `futures` what later windows say about each end.
    """

    edges: list[float]
    starts: Beliefs
    links: list[Segment] = field(default_factory=list)
    groups: list[list[FactorGroup]] = field(default_factory=list)
    centres: list[Array] = field(default_factory=list)
    futures: list[Message] = field(default_factory=list)
    rejected: int = 0
    unresolved: str | None = None  # an axis along which more modes are needed: the path ends there

    def append(self, window: Window, upper: float) -> None:
        self.edges.append(upper)
        self.starts.append(window.start)
        self.links.append(window.link)
        self.groups.append(window.groups)
        self.centres.append(window.weights)

    def smoothed(self, index: int) -> Belief:
        """The belief about a window's state and inner weights up to its interior noise, given everything."""
        return smoothed(self.starts[index], self.links[index], self.futures[index])


def filter_windows(
    solver: WindowSolver, tolerance: float, starts: Beliefs, adapt: bool, progress: Progress | None
) -> Path:
    """Windows found by error control. With `adapt` the path ends where more modes are needed and may be had."""
    model = solver.model
    horizon = model.problem.domain[TIME]
    # waves that keep their size keep their window; else a longer one is tried if the equation's misfit is watched
    quiet = 2.0 ** (1 - model.degree) if model.traits.steady_windows else 0.01
    control = WindowControl(horizon, model.first_level, quiet, model.traits.has_later_data)
    path, arrival = Path([horizon.lower], starts), model.first_state()
    at_start: dict[str, float] = {}  # what the last modes carried there
    while not control.done:
        lower, upper, first = path.edges[-1], control.end, len(path.edges) == 1
        window = solver.solve(arrival, lower, upper, first)
        if not control.judge(window_error(solver, tolerance, arrival, window, lower)):
            continue
        path.append(window, upper)
        path.unresolved = unresolved_axis(model, window.weights, at_start) if adapt else None
        if path.unresolved:
            break
        arrival = propagate(window.start, window.link)
        if progress is not None:
            progress(f"window {control.accepted}, t = {upper:.4g}", control.fraction)
    path.rejected = control.rejected
    return path


def filter_between(
    solver: WindowSolver, edges: Sequence[float], starts: Beliefs, adapt: bool,
    known: tuple[WindowModel, Path] | None = None,
) -> Path:  # fmt: skip
    """Windows whose edges are given; `known` is an earlier path over them, of a model with fewer conditions."""
    path, arrival = Path([edges[0]], starts), solver.model.first_state()
    at_start: dict[str, float] = {}
    added = solver.model.problem.statements[len(known[0].problem.statements) :] if known else ()
    for index, upper in enumerate(edges[1:]):
        lower, first = path.edges[-1], index == 0
        if known and solver.model.traits.linear and not any(speaks_within(s, lower, upper, first) for s in added):
            window = solver.passed(arrival, known[1].links[index], known[1].groups[index])
        else:
            window = solver.solve(arrival, lower, upper, first)
        path.append(window, upper)
        path.unresolved = unresolved_axis(solver.model, window.weights, at_start) if adapt else None
        if path.unresolved:
            break
        arrival = propagate(window.start, window.link)
    return path


def filter_along(solver: WindowSolver, edges: Sequence[float], centres: Sequence[Array]) -> Path:
    """Windows whose factors are linearised at given weights."""
    path, arrival = Path([edges[0]], []), solver.model.prior_state
    for index, (upper, weights) in enumerate(zip(edges[1:], centres, strict=True)):
        lower = path.edges[-1]
        groups = [*solver.factors.standing(lower, upper), *solver.factors.own(lower, upper, index == 0)]
        link = solver.eliminate(groups, weights, lower, upper)
        path.append(Window(arrival * link.message, link, weights, groups), upper)
        arrival = propagate(path.starts[-1], link)
    return path
