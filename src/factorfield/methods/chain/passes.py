"""The passes over a path of windows: forward, each accepted when it is short enough; backward; and Newton's steps.

Forward, the belief about the state is propagated from window to window (filter). Backward, what later windows know
returns to earlier ones (smooth); nonlinear factors are linearised along the smoothed path until it rests.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import FAILED, ProblemError
from factorfield.messages.elimination import Segment, backward_messages, propagate, smoothed, smoothed_mean
from factorfield.messages.gaussian import Belief, Message
from factorfield.methods.chain.modes import unresolved_axis
from factorfield.methods.chain.solver import Window, WindowSolver
from factorfield.methods.chain.windows import WindowControl, window_error
from factorfield.model.factors import FactorGroup
from factorfield.model.model import WindowModel, log_noise
from factorfield.model.window_factors import speaks_within
from factorfield.posterior.stored import StoredBeliefs
from factorfield.problem.domain import TIME, Interval
from factorfield.progress import Progress
from factorfield.solution import Status

Array = NDArray[np.float64]
Beliefs = list[Belief] | StoredBeliefs
FAR_OFF = 3.0  # sigmas by which a statement is missed from which an error names it
HOPELESS = 1e9  # standard deviations that a path may move in one step
PATH_SETTLED = 1e-3  # standard deviations: a path that moves less rests
NEAR, SHORTEST = 1.0, 1e-3  # standard deviations within which a step is taken as it is, and the least part of one
MOST_CUTS = 5  # steps in a row that are cut to the shortest: the path stalls
LINEAR = "linear and Gaussian: exact for the windows chosen"


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
    unsettled: str = ""  # where a window's own search did not come to rest
    cuts: int = 0  # steps in a row that had to be cut to the shortest
    unresolved: str | None = None  # an axis along which more modes are needed: the path ends there

    @property
    def is_stored(self) -> bool:
        """Are the beliefs in a file, to save memory?"""
        return isinstance(self.starts, StoredBeliefs)

    @property
    def is_told(self) -> bool:
        """Is nothing uncertain?"""
        return not self.is_stored and all(start.root.shape[1] == 0 for start in self.starts)

    def append(self, window: Window, upper: float) -> None:
        self.edges.append(upper)
        self.starts.append(window.start)
        self.links.append(window.link)
        self.groups.append(window.groups)
        if window.unsettled and not self.unsettled:
            self.unsettled = f"up to t = {upper:.4g} the search had not come to rest: try more iterations="
        if not self.is_stored:
            self.centres.append(window.weights)

    def smoothed(self, index: int) -> Belief:
        """The belief about a window's state and inner weights up to its interior noise, given everything."""
        return smoothed(self.starts[index], self.links[index], self.futures[index])

    def mean(self, index: int) -> Array:
        """The mean of a window's state and inner weights, given everything."""
        return smoothed_mean(self.starts[index], self.links[index], self.futures[index])


def filter_windows(
    solver: WindowSolver, tolerance: float, starts: Beliefs, adapt: bool, progress: Progress | None,
    known: Path | None = None,
) -> Path:  # fmt: skip
    """Windows found by error control, from the start or from the end of a `known` path on. With `adapt` the path ends
    where more modes are needed and may be had."""
    path = known or Path([solver.model.problem.domain[TIME].lower], starts)
    for control in stretches(solver.model, path.edges):
        _filter_stretch(solver, tolerance, path, control, adapt, progress)
        if path.unresolved:
            break
    return path


def stretches(model: WindowModel, edges: Sequence[float]) -> Iterator[WindowControl]:
    """A control of the windows from the last of some edges on to the next jump of something known, and so on."""
    horizon = model.problem.domain[TIME]
    first = edges[-1] - edges[-2] if len(edges) > 1 else horizon.length / 2**model.first_level
    # waves that keep their size keep their window; else a longer one is tried where the field is quiet, and where there
    # are later data, a longer window is tried every few windows, because data too can keep the error up
    quiet = 2.0 ** (1 - model.degree) if model.traits.steady_windows else 0.01
    for lower, upper in pairwise([edges[-1], *(t for t in model.jumps if t > edges[-1]), horizon.upper]):
        level = max(0, math.ceil(math.log2((upper - lower) / first) - 1e-9))
        yield WindowControl(Interval(lower, upper), level, quiet, model.traits.has_later_data)


def _filter_stretch(
    solver: WindowSolver, tolerance: float, path: Path, control: WindowControl, adapt: bool,
    progress: Progress | None,
) -> None:  # fmt: skip
    """The windows of one stretch, added to a path."""
    model = solver.model
    arrival = propagate(path.starts[-1], path.links[-1]) if path.links else model.first_state()
    at_start: dict[str, float] = {}  # what the last modes carried there
    failed: Exception | None = None
    window: Window | None = None
    while not control.done:
        lower, upper, first = path.edges[-1], control.end, len(path.edges) == 1
        try:
            window = solver.solve(arrival, lower, upper, first)
            error = window_error(solver, tolerance, arrival, window, lower)
        except FAILED as problem:  # a shorter window may stay where all factors have slopes
            failed, error = failed or problem, np.inf
        try:
            if not control.judge(error):
                continue
        except ProblemError as refused:
            if failed is not None and first:  # where no window is short enough, what failed first says more
                raise failed from None
            raise ProblemError(f"{refused}{_blamed(window)}") from None
        assert window is not None
        path.append(window, upper)
        if adapt and model.growing:
            path.unresolved = unresolved_axis(model, window.weights, window.start, at_start)
        if path.unresolved:
            break
        arrival = propagate(window.start, window.link)
        if progress is not None:
            horizon = model.problem.domain[TIME]
            progress(f"window {len(path.links)}, t = {upper:.4g}", (upper - horizon.lower) / horizon.length)
    path.rejected += control.rejected


def _blamed(window: Window | None) -> str:
    """What the last window that was tried met worst, if that is far off."""
    if window is None:
        return ""
    with np.errstate(all="ignore"):
        misfits = {group.name: float(np.sqrt(np.mean(group.misfit(window.weights) ** 2))) for group in window.groups}
    worst = max(misfits, key=lambda name: np.nan_to_num(misfits[name], nan=np.inf), default="")
    return f". Worst met there: {worst!r}, by {misfits[worst]:.2g} sigma" if misfits.get(worst, 0.0) > FAR_OFF else ""


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
        if adapt and solver.model.growing:
            path.unresolved = unresolved_axis(solver.model, window.weights, window.start, at_start)
        if path.unresolved:
            break
        arrival = propagate(window.start, window.link)
    return path


def filter_along(solver: WindowSolver, edges: Sequence[float], centres: Sequence[Array]) -> Path:
    """Windows whose factors are linearised at given weights."""
    groups = [
        [*solver.factors.standing(lower, upper), *solver.factors.own(lower, upper, index == 0)]
        for index, (lower, upper) in enumerate(pairwise(edges))
    ]
    path = Path(list(edges), [], groups=groups, centres=list(centres))
    refilter(solver, path)
    return path


def refilter(solver: WindowSolver, path: Path) -> None:
    """Eliminate and filter anew with all factors linearised at `centres`."""
    arrival = solver.model.prior_state
    path.starts, path.links = [], []
    for (lower, upper), groups, weights in zip(pairwise(path.edges), path.groups, path.centres, strict=True):
        link = solver.eliminate(groups, weights, lower, upper)
        path.starts.append(arrival * link.message)
        path.links.append(link)
        arrival = propagate(path.starts[-1], link)


def log_evidence(solver: WindowSolver, path: Path) -> float | None:
    """log p(measurements | equation, conditions, prior): of all factors less that of all but the measurements.

    Both normalisers are those of the factors linearised at `centres`: exact for linear equations, Laplace otherwise.
    """
    model, arrival = solver.model, solver.model.prior_state
    if path.is_stored or path.unresolved:
        return None
    for (lower, upper), groups, link, weights in zip(
        pairwise(path.edges), path.groups, path.links, path.centres, strict=True
    ):
        others = [group for group in groups if group.statement.kind != "observation"]
        if len(others) < len(groups) or not model.traits.linear:
            if model.traits.linear:
                link = solver.linear_segment(others, lower, upper)
            else:
                link = solver.eliminate(others, weights, lower, upper)
        arrival = propagate(arrival * link.message, link)
    return path.starts[-1].level - arrival.level - log_noise(model)


# -- backward


def smooth(solver: WindowSolver, path: Path, progress: Progress | None) -> tuple[Status, list[float]]:
    """Bring the future back; nonlinear chains are linearised along the smoothed path until it rests.

    Returns (status, moves): how far each step moved the states, in standard deviations.
    """
    if path.is_stored:  # an equation alone says next to nothing (1e-5 of a standard deviation) about where it began
        path.futures = [Message.nothing(len(solver.state))] * len(path.links)
    elif path.is_told:
        path.futures = [Message.nothing(len(solver.state))] * len(path.links)
        return Status("converged", "every window settled"), []
    else:
        path.futures = backward_messages(path.links)
    traits = solver.model.traits
    moves: list[float] = []
    if not traits.linear and not traits.has_later_data and path.unsettled:
        return Status("max-iterations", path.unsettled), []
    if traits.linear or not traits.has_later_data:
        return Status("converged", LINEAR if traits.linear else "every window settled"), []
    for _ in range(solver.most_iterations):
        try:
            moves.append(newton_step(solver, path, first=not moves))
        except FAILED:
            raise _lost() from None
        if progress is not None:
            progress(f"all times together, moved by {moves[-1]:.1e} std", 0.9)
        if not moves[-1] < HOPELESS:
            break
        if moves[-1] < PATH_SETTLED:
            said = f"its last step moved the field by {moves[-1]:.1e} of its std"
            return Status("converged", f"the search came to rest: {said}"), moves
        if path.cuts > MOST_CUTS:
            said = f"a step that would move the field by {moves[-1]:.1e} of its std helps in no part"
            return Status("max-iterations", f"the search stalls: {said}; take it with care, or try starts=5"), moves
    said = f"the search still moves the field by {moves[-1]:.1e} of its std"
    return Status("max-iterations", f"{said}: usable where that is small, else try more iterations="), moves


def newton_step(solver: WindowSolver, path: Path, first: bool) -> float:
    """One Gauss-Newton step of the whole chain; how far it would move the states, in their standard deviations.

    `first`: the path is the filtered one, which has jumps, and its density says nothing.
    """
    moved, wanted, count = 0.0, [], len(solver.state)
    for index in range(len(path.links)):
        known = path.smoothed(index)
        spread = np.sqrt(np.sum(known.root[:count] ** 2, axis=1)) + solver.unnoticed * solver.model.scale
        change = np.abs(known.mean[:count] - path.centres[index][solver.state]) / spread
        moved = max(moved, float(change.max()))
        wanted.append(solver.in_order(known.mean))
    path.centres = _towards(solver, path, wanted, first) if moved > NEAR else wanted
    refilter(solver, path)
    path.futures = backward_messages(path.links)
    return moved


def _towards(solver: WindowSolver, path: Path, wanted: list[Array], first: bool) -> list[Array]:
    """As far as the density does not fall; from the filtered path, any step whose density is finite."""
    least = np.finfo(float).max if first else solver.path_merit(path.groups, path.centres.__getitem__)
    length = 1.0
    while True:
        candidate = [old + length * (new - old) for old, new in zip(path.centres, wanted, strict=True)]
        if solver.path_merit(path.groups, candidate.__getitem__) <= least:
            path.cuts = 0
            return candidate
        if length < SHORTEST:
            path.cuts += 1
            return candidate
        length *= 0.5


def chi_squares(solver: WindowSolver, path: Path, among: Collection[str] | None = None) -> dict[str, tuple[float, int]]:
    """By statement, all or `among` those named: chi-square at the posterior mean, and the number of its factors."""
    found: dict[str, tuple[float, int]] = {}
    for index, groups in enumerate(path.groups):
        speaking = [group for group in groups if among is None or group.name in among]
        weights = solver.in_order(path.mean(index)) if speaking else np.zeros(0)
        for group in speaking:
            misfit = group.misfit(weights)
            total, count = found.get(group.name, (0.0, 0))
            found[group.name] = total + float(misfit @ misfit), count + group.count
    return found


def _lost() -> ProblemError:
    text = "expected a path that the data lead to, received one that runs away while it is corrected; try starts=5, "
    return ProblemError(f"{text}priors of the unknowns nearer to what is expected, or conditions at the start")
