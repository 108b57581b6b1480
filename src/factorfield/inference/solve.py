"""From a problem to its posterior: layout, latents, the first resolution, Gauss-Newton, and finer ones if needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from factorfield.forward.algebra import Singular
from factorfield.forward.discrete import Layout
from factorfield.forward.map import ForwardMap
from factorfield.forward.newton import NotConverged
from factorfield.inference.fit import ROUGH, Counter, Fit, Task, fit
from factorfield.inference.ladder import RUNGS, Estimate, Ladder, Rungs
from factorfield.inference.latents import Latents, latents_of
from factorfield.inference.measurements import Measurements
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
Report = Callable[[str, float], None]


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
    """The posterior at its last resolution."""

    fit: Fit
    estimate: Estimate
    ladder: Ladder
    level: int
    windows_tolerance: float
    ended_by: str  # which rule ended the refinement

    @property
    def is_resolved(self) -> bool:
        return self.ended_by != "no finer resolution"


def infer(problem: Problem, search: Search = Search(), rungs: Rungs = RUNGS, report: Report | None = None) -> Inferred:
    """The posterior of the latents, at a resolution whose error is as small as asked."""
    tell = report or (lambda text, share: None)
    layout = Layout.of(problem)
    ladder = Ladder(layout, Latents(latents_of(problem)), search.tolerance, rungs)
    start = np.zeros(ladder.latents.size)
    tell("choosing a resolution", 0.05)
    level, forward = ladder.first_map(start)
    task = Task(forward, ladder.latents, with_noise(Measurements.of(problem), search))
    tell("fitting", 0.3)
    fitted = fit(task, approach(task, start, search), ROUGH)
    tolerance = rungs.time_share * search.tolerance
    for number in range(search.most_rounds):
        tell(f"comparing resolutions, round {number + 1}", 0.5 + 0.4 * number / search.most_rounds)
        estimate = ladder.estimate(fitted, level)
        ended = _enough(estimate, search, rungs)
        if ended:
            return Inferred(polished(fitted), estimate, ladder, level, tolerance, ended)
        finer = _finer(ladder, fitted, estimate, level, tolerance, search)
        if finer is None:
            break
        level, tolerance, forward = finer
        fitted = fit(replace(fitted.task, map=forward), fitted.point.e, ROUGH)
    return Inferred(polished(fitted), estimate, ladder, level, tolerance, "no finer resolution")


def polished(fitted: Fit) -> Fit:
    """The mode to full accuracy."""
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
            sigma = None if group.sigma is None else group.sigma[chosen]
            groups.append(replace(group, statement=group.statement.part(chosen), sigma=sigma))
    kept = sum(len(group.statement.target) for group in groups)
    if kept in (0, task.measurements.count):
        return None
    edges = task.map.edges
    last = int(np.searchsorted(edges, until)) + 1
    return Task(
        replace(task.map, edges=edges[:last] if last > 1 else edges[:2]), task.latents,
        replace(task.measurements, groups=tuple(groups)), task.counter,
    )  # fmt: skip


def refit(fitted: Fit, measurements: Measurements, forward: ForwardMap, latents: Latents) -> Fit:
    """The same map with other measurements, from the mode that is known."""
    task = Task(forward, latents, measurements, Counter())
    start = np.zeros(latents.size)
    start[: len(fitted.point.e)] = fitted.point.e
    return fit(task, start, known=fitted if forward is fitted.task.map else None)


