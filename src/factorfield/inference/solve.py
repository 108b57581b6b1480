"""From a problem to its posterior: layout, latents, the first resolution, Gauss-Newton, and finer ones if needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from factorfield.forward.algebra import Singular
from factorfield.forward.discrete import discretised
from factorfield.forward.layout import Layout, NotAMap
from factorfield.forward.map import START, ForwardMap, Steps, choose_windows
from factorfield.forward.newton import NotConverged
from factorfield.inference.fit import ROUGH, STEP, TUNING, Counter, Fit, Task, fit
from factorfield.inference.hyper import Marginal, coordinates_of, marginalised
from factorfield.inference.ladder import RUNGS, Estimate, Ladder, Rungs
from factorfield.inference.latents import Latents, OverSpace, OverTime, latents_of
from factorfield.inference.measurements import Measurements
from factorfield.inference.segments import Segment, carried
from factorfield.inference.sites import has_sites, with_sites
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
Report = Callable[[str, float], None]
UNRESOLVED = "no finer resolution"
SHORTER = 3  # times that windows are shortened for a first fit


@dataclass(frozen=True)
class Search:
    """How the mode is approached."""

    tolerance: float = 1e-5
    most_rounds: int = 8  # of finer resolutions
    horizons: tuple[float, ...] = (0.1, 0.25, 0.5)  # shares of the readings, in order of time, that are taken in first
    far: float = 4.0  # mean squared residual at the prior mean above which that is done
    much: float = 300.0  # errors over the tolerance from which on a grid is skipped
    first_noise: float = 0.05  # of the readings' range: a sigma that is estimated begins there


@dataclass(frozen=True, eq=False)
class Inferred:
    """The posterior at its last resolution, in segments of time; `ladder` and `level` are those of the last one."""

    problem: Problem
    segments: tuple[Segment, ...]
    estimate: Estimate
    ladder: Ladder
    level: int
    windows_tolerance: float
    ended_by: str  # which rule ended the refinement
    search: Search
    marginal: Marginal | None = None  # over sizes and lengths that are not stated

    @property
    def log_evidence(self) -> float:
        """Of all measurements."""
        if self.marginal is not None:
            return self.marginal.log_evidence
        return sum(segment.fit.log_evidence for segment in self.segments)

    @property
    def fit(self) -> Fit:
        return self.segments[-1].fit

    @property
    def is_resolved(self) -> bool:
        return self.ended_by != UNRESOLVED


def infer(problem: Problem, search: Search = Search(), rungs: Rungs = RUNGS, report: Report | None = None) -> Inferred:
    """The posterior of the latents, at a resolution whose error is as small as asked."""
    tell = report or (lambda text, share: None)
    layout = Layout.of(problem)
    ladder = Ladder(layout, Latents(latents_of(layout)), search.tolerance, rungs)
    start = np.zeros(ladder.latents.size)
    tell("choosing a resolution", 0.05)
    level, forward = ladder.first_map(start)
    task = Task(forward, ladder.latents, with_noise(Measurements.of(problem), search))
    tell("fitting", 0.3)
    tolerance = rungs.time_share * search.tolerance
    fitted, tolerance = _first_fit(ladder, task, approach(task, start, search), level, tolerance)
    for number in range(search.most_rounds):
        tell(f"comparing resolutions, round {number + 1}", 0.5 + 0.4 * number / search.most_rounds)
        estimate = ladder.estimate(fitted, level)
        ended = _enough(estimate, search, rungs)
        if ended:
            break
        finer = _finer(ladder, fitted, estimate, level, tolerance, search)
        ended = UNRESOLVED
        if finer is None:
            break
        level, tolerance, forward = finer
        fitted = fit(replace(fitted.task, map=forward), fitted.point.e, ROUGH)
    tell("averaging over sizes and lengths", 0.92)
    final, marginal = averaged(layout, polished(fitted))
    segments = (Segment(final, estimate.columns, estimate.floors),)
    return Inferred(problem, segments, estimate, ladder, level, tolerance, ended, search, marginal)


def _first_fit(ladder: Ladder, task: Task, e: Array, level: int, tolerance: float) -> tuple[Fit, float]:
    """A rough fit from e; where the windows of the prior mean are too long for it, with windows that suit e."""
    for _ in range(SHORTER):
        try:
            return fit(task, e, ROUGH), tolerance
        except (NotConverged, Singular):
            if not ladder.layout.moves:
                raise
            tolerance *= 0.1
            task = replace(task, map=ladder.map_at(level, e, tolerance))
    return fit(task, e, ROUGH), tolerance


def averaged(layout: Layout, fitted: Fit) -> tuple[Fit, Marginal | None]:
    """The fit at the best sizes and lengths of functions, and their distribution, where they are not stated."""
    coordinates = coordinates_of(layout)
    if not coordinates or not fitted.task.measurements.count:
        return fitted, None
    marginal = marginalised(fitted, coordinates)
    return marginal.nodes[0].fit, marginal


def polished(fitted: Fit) -> Fit:
    """The mode to full accuracy, with settled sites of outliers."""
    if has_sites(fitted.task.measurements):
        return with_sites(fitted, TUNING)
    if fitted.task.is_affine and not fitted.task.measurements.open:
        return fitted
    return fit(fitted.task, fitted.point.e, known=fitted)


def _enough(estimate: Estimate, search: Search, rungs: Rungs) -> str:
    """The rule by which a resolution is enough; empty where none does."""
    if estimate.std_change > rungs.std_change:
        return ""
    if estimate.size <= search.tolerance:
        return "tolerance"
    if estimate.beside_std <= rungs.beside_std:
        return "a tenth of the posterior std"
    return ""


def _finer(
    ladder: Ladder, fitted: Fit, estimate: Estimate, level: int, tolerance: float, search: Search
) -> tuple[int, float, ForwardMap] | None:
    """A map of a finer grid or with shorter windows, whichever errs more; None where there is none."""
    in_space = estimate.space >= estimate.time or estimate.std_change > ladder.rungs.std_change
    if in_space and ladder.has_level(level + 1):
        is_far = estimate.space > search.much * search.tolerance and estimate.beside_std > 1.0
        level += 2 if is_far and ladder.has_level(level + 2) else 1
    elif ladder.layout.moves and estimate.time > search.tolerance:
        tolerance *= max(0.02, 0.3 * search.tolerance / estimate.time)
    else:
        return None
    try:
        return level, tolerance, ladder.map_at(level, fitted.point.e, tolerance)
    except (NotConverged, Singular):
        return None


def with_noise(measurements: Measurements, search: Search) -> Measurements:
    """A first value for sigmas that are estimated."""
    first = {
        group.statement.name: max(search.first_noise * float(np.ptp(group.statement.target)), 1e-9)
        for group in measurements.open
    }
    return replace(measurements, estimated=first)


def approach(task: Task, start: Array, search: Search) -> Array:
    """Where the search begins: after fits of ever more readings in order of time, where the start is far."""
    if task.is_affine or not len(task.map.edges) or not task.measurements.count or not task.latents.size:
        return start
    try:
        residual = task.at(start).residual
        is_near = float(np.mean(residual**2)) < search.far
    except (NotConverged, Singular):
        is_near = False
    if is_near:
        return start
    times = np.concatenate([group.statement.points[TIME] for group in task.measurements.groups])  # type: ignore[index]
    for share in search.horizons:
        until = float(np.quantile(times, share))
        part = shortened(task, until)
        if part is not None:
            try:
                start = fit(part, start, ROUGH).point.e
            except (NotConverged, Singular):
                continue
    return start


def shortened(task: Task, until: float) -> Task | None:
    """The task up to an instant; None where nothing is measured by then, or everything."""
    groups = []
    for group in task.measurements.groups:
        points = group.statement.points or {}
        chosen = np.flatnonzero(points[TIME] <= until)
        if len(chosen):
            part = group.part(chosen)
            if part.stated is None:  # few readings do not tell their noise: it stays as it is for now
                part = replace(part, stated=np.full(len(chosen), task.measurements.estimated[group.statement.name]))
            groups.append(part)
    kept = sum(len(group.statement.target) for group in groups)
    if kept in (0, task.measurements.count):
        return None
    edges = task.map.edges
    last = int(np.searchsorted(edges, until)) + 1
    return Task(
        replace(task.map, edges=edges[:last] if last > 1 else edges[:2]), task.latents,
        replace(task.measurements, groups=tuple(groups)), task.counter,
    )  # fmt: skip


# -- more measurements, and a later end


def conditioned(inferred: Inferred, problem: Problem) -> Inferred:
    """The posterior with further measurements and up to a later end, on the same grid and windows.

    `problem` has them all; what it says after the statements of the solved one is new."""
    last, more = inferred.segments[-1], _new_groups(inferred, problem)
    is_longer = TIME in problem.domain and problem.domain[TIME].upper > inferred.problem.domain[TIME].upper
    if len(inferred.segments) > 1:
        _check_late(last, more)
        if is_longer:
            return advanced(inferred, problem)
    task = last.fit.task
    measurements = replace(task.measurements, groups=(*task.measurements.groups, *more.groups),
                           estimated={**more.estimated, **task.measurements.estimated})  # fmt: skip
    ladder, start = inferred.ladder, last.fit.point.e
    known: Fit | None = last.fit
    forward, latents = task.map, task.latents
    if is_longer:
        ladder, forward, start = _longer(inferred, problem)
        latents, known = ladder.latents, None
    fitted = with_sites(fit(Task(forward, latents, measurements, Counter()), start, known=known), TUNING)
    marginal = None
    if len(inferred.segments) == 1:
        fitted, marginal = averaged(ladder.layout, fitted)
    estimate = ladder.estimate(fitted, inferred.level)
    segments = (*inferred.segments[:-1], Segment(fitted, estimate.columns, estimate.floors))
    ended = _enough(estimate, inferred.search, ladder.rungs) or UNRESOLVED
    return replace(
        inferred, problem=problem, segments=segments, estimate=estimate, ladder=ladder, ended_by=ended,
        marginal=marginal,
    )  # fmt: skip


def _new_groups(inferred: Inferred, problem: Problem) -> Measurements:
    added = problem.statements[len(inferred.problem.statements) :]
    for statement in added:
        if statement.kind != "observation":
            raise NotAMap(f"{statement.name!r} is no measurement")
    return with_noise(Measurements.of(problem, added), inferred.search)


def _check_late(last: Segment, more: Measurements) -> None:
    for group in more.groups:
        if float(np.min((group.statement.points or {})[TIME])) <= last.begin:
            raise NotAMap(f"{group.statement.name!r} is of a time before the last update")


def _check_extendable(latents: Latents) -> None:
    """Functions of time alone are Markov processes; those of space and time are known up to the end only."""
    for part in latents.parts:
        if isinstance(part, OverSpace) and TIME in part.lengths:
            name = part.name.removeprefix("_")
            raise NotAMap(f"{name} over space and time, which cannot go on beyond its end")


def _longer(inferred: Inferred, problem: Problem) -> tuple[Ladder, ForwardMap, Array]:
    """The ladder and the map until the later end, and the latents known so far among the new ones."""
    old, task = inferred.fit, inferred.fit.task
    known_parts, end = task.latents, problem.domain[TIME].upper
    assert isinstance(known_parts, Latents)
    _check_extendable(known_parts)
    latents = Latents(tuple(p.extended(end) if isinstance(p, OverTime) else p for p in known_parts.parts))
    ladder = Ladder(Layout.of(problem), latents, inferred.search.tolerance, inferred.ladder.rungs)
    drawn = old.belief.spread(np.eye(task.latents.size)) @ inferred.ladder.draws
    e, along = np.zeros(latents.size), ladder.draws
    before = {part.name: where for part, where in known_parts.slices()}
    for part, where in latents.slices():  # the first latents of every part are known, later ones are new
        known = before[part.name]
        same = slice(where.start, where.start + known.stop - known.start)
        e[same], along[same] = old.point.e[known], drawn[known]
    discrete = ladder.discrete(inferred.level)
    probes = latents.directions(along)
    probes[START] = old.tangent[-1, -1] @ drawn
    edges = choose_windows(
        discrete, latents.coefficients(e), inferred.windows_tolerance, problem.domain[TIME].upper,
        (float(task.map.edges[-1]), old.point.path.end), probes if latents.size else None, Steps(task.map.stages),
    )  # fmt: skip
    return ladder, ForwardMap(discrete, np.append(task.map.edges, edges[1:]), task.map.stages), e


def advanced(inferred: Inferred, problem: Problem) -> Inferred:
    """The posterior until a later end as a new segment: what is known of the end so far becomes its latents."""
    more, end = _new_groups(inferred, problem), problem.domain[TIME].upper
    _check_extendable(inferred.ladder.latents)
    last = inferred.segments[-1]
    ladder = Ladder(Layout.of(problem), inferred.ladder.latents, inferred.search.tolerance, inferred.ladder.rungs)
    functions = {part.name: part for part in inferred.ladder.latents.parts if isinstance(part, OverTime)}
    for group in more.groups:
        if float(np.min((group.statement.points or {})[TIME])) < inferred.problem.domain[TIME].upper:
            raise NotAMap(f"{group.statement.name!r} is of a time before the last update")
    linked, latents = carried(last, end, functions)
    discrete = discretised(ladder.layout, last.fit.point.path.grid, latents.inputs)
    begin, stages = latents.begin, last.fit.task.map.stages
    draws = np.random.default_rng(0).standard_normal((latents.size, ladder.rungs.probes))
    edges = choose_windows(
        discrete, latents.coefficients(np.zeros(latents.size)), inferred.windows_tolerance, end,
        (begin, latents.means[START]), latents.directions(draws), Steps(stages),
    )  # fmt: skip
    task = Task(ForwardMap(discrete, edges, stages), latents, more, Counter())
    fitted = with_sites(fit(task, np.zeros(latents.size), STEP), STEP)
    estimate = ladder.estimate(fitted, inferred.level)
    segments = (*inferred.segments[:-1], linked, Segment(fitted, estimate.columns, estimate.floors))
    ended = _enough(estimate, inferred.search, ladder.rungs) or UNRESOLVED
    return replace(
        inferred, problem=problem, segments=segments, estimate=estimate, ladder=ladder, ended_by=ended, marginal=None
    )  # fmt: skip
