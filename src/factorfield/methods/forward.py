"""`method="forward"`: the equation as a map from latent variables to the fields."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from factorfield.errors import Advice, expected
from factorfield.forward.algebra import Singular
from factorfield.forward.layout import Layout, NotAMap
from factorfield.forward.newton import NotConverged
from factorfield.inference.fit import Fit
from factorfield.inference.ladder import RUNGS, Estimate, Ladder
from factorfield.inference.latents import Latents, OverSpace, OverTime
from factorfield.inference.segments import Segment
from factorfield.inference.sites import has_sites
from factorfield.inference.solve import Inferred, Search, advanced, conditioned, infer
from factorfield.posterior.latent import Frozen, LatentPosterior
from factorfield.problem.problem import Problem
from factorfield.progress import Progress
from factorfield.solution import Solution, Status, unresolved

FARTHEST = 10.0  # stds of its prior: a latent beyond has run away


@dataclass(frozen=True)
class Forward:
    """tolerance    asked of the numerical error, relative to the field's range"""

    tolerance: float = 1e-5

    name = "forward"

    def solve(self, problem: Problem, progress: Progress | None = None) -> Solution:
        return self._timed(lambda: infer(problem, Search(tolerance=self.tolerance), RUNGS, progress))

    def _timed(self, work: Callable[[], Inferred]) -> Solution:
        began, used = time.perf_counter(), time.process_time()
        try:
            inferred = work()
        except NotAMap as reason:
            raise expected("a problem whose equations give its fields", str(reason), "method=None") from None
        except (NotConverged, Singular) as reason:
            attempt = "a shorter horizon, a smoother start, or starting values of the unknowns nearer to what is meant"
            raise expected("fields that the equations give all over the domain", str(reason), attempt) from None
        timings = {"total": time.perf_counter() - began, "processor": time.process_time() - used}
        return self.solution(inferred, timings)

    def solution(self, inferred: Inferred, timings: Mapping[str, float]) -> Solution:
        fitted, estimate, problem = inferred.fit, inferred.estimate, inferred.problem
        path, counter = fitted.point.path, fitted.task.counter
        frozen = Frozen.of(inferred.segments)
        posterior = LatentPosterior(
            problem, frozen, _noise(problem, inferred), inferred.segments, mixture_of(inferred),  # type: ignore[arg-type]
            hyperparameters_of(inferred),
        )  # fmt: skip
        settings = {
            "method": self.name, "tolerance": self.tolerance, "modes": dict(path.grid.resolution),
            "windows": [float(t) for t in path.edges], "ended by": inferred.ended_by,
            "latents": fitted.task.latents.size, "evidence": _evidence(inferred), "level": inferred.level,
            "windows_tolerance": inferred.windows_tolerance, "sigma": _sigmas(inferred),
        }  # fmt: skip
        trace = {
            "numerical_error": estimate.size, "error in space": estimate.space, "error in time": estimate.time,
            "forward runs": counter.runs, "tangent columns": counter.tangents, "adjoint solves": counter.adjoints,
            "steps": fitted.steps,
        }  # fmt: skip
        return Solution(
            posterior, self._status(inferred), trace, timings, settings, advice=_advice(inferred),
            evidence=lambda: inferred.log_evidence,
            resume=lambda problem: self._timed(lambda: conditioned(inferred, problem)),
            advance=lambda problem: self._timed(lambda: advanced(inferred, problem)),
        )  # fmt: skip

    def taken_up(self, stored: Solution) -> Solution:
        """A solution that was read from a file, as it can be conditioned, extended and updated."""
        posterior, settings = stored.posterior, stored.settings
        known = {"tolerance": float, "level": int, "windows_tolerance": float}
        is_complete = all(isinstance(settings.get(key), kind) for key, kind in known.items())
        if not isinstance(posterior, LatentPosterior) or not is_complete:
            return stored
        method = Forward(settings["tolerance"])
        inferred = method.inferred(posterior, settings["level"], settings["windows_tolerance"])
        return replace(
            stored, resume=lambda problem: method._timed(lambda: conditioned(inferred, problem)),
            advance=lambda problem: method._timed(lambda: advanced(inferred, problem)),
        )  # fmt: skip

    def inferred(self, posterior: LatentPosterior, level: int, windows_tolerance: float) -> Inferred:
        """What a posterior was inferred from, as far as more measurements need it."""
        latents = posterior.segments[0].fit.task.latents
        assert isinstance(latents, Latents)
        ladder = Ladder(Layout.of(posterior.problem), latents, self.tolerance)
        estimate = Estimate(posterior.segments[-1].columns, posterior.segments[-1].floors, 0.0, 0.0, 0.0, 0.0)
        return Inferred(
            posterior.problem, posterior.segments, estimate, ladder, level, windows_tolerance, "read from a file",
            Search(tolerance=self.tolerance),
        )  # fmt: skip

    def _status(self, inferred: Inferred) -> Status:
        fitted = inferred.fit
        if fitted.task.latents.size and np.max(np.abs(fitted.point.e)) > FARTHEST:
            return Status("diverged")
        if not fitted.has_settled:
            return Status("max-iterations")
        if not inferred.is_resolved:
            size = " x ".join(map(str, fitted.point.path.grid.resolution.values())) or "1"
            return unresolved(inferred.estimate.size, self.tolerance, f"{size} functions", "cells")
        return Status("converged")


def _evidence(inferred: Inferred) -> str:
    """How it was found."""
    if inferred.marginal is not None:
        return "quadrature"
    if any(has_sites(segment.fit.task.measurements) for segment in inferred.segments):
        return "expectation propagation"
    return "exact" if all(segment.fit.task.is_affine for segment in inferred.segments) else "Laplace"


def mixture_of(inferred: Inferred) -> tuple[tuple[float, Segment], ...]:
    """The nodes over sizes and lengths with their weights, the best first."""
    marginal = inferred.marginal
    if marginal is None:
        return ()
    last = inferred.segments[-1]
    pairs = zip(marginal.weights, marginal.nodes, strict=True)
    return tuple((float(weight), Segment(node.fit, last.columns, last.floors)) for weight, node in pairs)


def hyperparameters_of(inferred: Inferred) -> dict[str, dict[str, tuple[float, float]]]:
    """Mean and std of the logarithms of sizes and lengths, in the units of the functions and of their first axis."""
    marginal, result = inferred.marginal, dict[str, dict[str, tuple[float, float]]]()
    if marginal is None:
        return result
    stds = np.sqrt(np.diag(marginal.covariance))
    parts = {part.name: part for part in _latents_of(marginal.nodes[0].fit).parts}
    for coordinate, mean, std in zip(marginal.coordinates, marginal.means, stds, strict=True):
        unit = 1.0
        if coordinate.kind == "length":
            part = parts[coordinate.function]
            assert isinstance(part, OverSpace | OverTime)
            unit = part.unit
        result.setdefault(coordinate.function, {})[coordinate.kind] = (float(mean + np.log(unit)), float(std))
    return result


def _latents_of(fitted: Fit) -> Latents:
    assert isinstance(fitted.task.latents, Latents)
    return fitted.task.latents


def _sigmas(inferred: Inferred) -> list[tuple[str, float]]:
    """Of all measurements by name of their statement, the root mean square."""
    every = [segment.fit.task.measurements for segment in inferred.segments]
    found = {
        group.statement.name: measurements.estimated[group.statement.name] if group.sigma is None else group.sigma
        for measurements in every for group in measurements.groups
    }  # fmt: skip
    return [(name, float(np.sqrt(np.mean(np.square(sigma))))) for name, sigma in found.items()]


def _advice(inferred: Inferred) -> tuple[Advice, ...]:
    """What is not stated, and is therefore unknown."""
    names = [missing.name.removeprefix("_") for missing in inferred.ladder.layout.missing]
    if not names:
        return ()
    text = f"no {' and no '.join(names)} is stated: unknown, smooth, of a size and length that the readings tell"
    return (Advice("missing", text),)


def _noise(problem: Problem, inferred: Inferred) -> dict[str, float]:
    """Of one more reading of each field that is measured directly: the root mean square of the sigmas."""
    squares: dict[str, list[Any]] = {}
    for segment in inferred.segments:
        measurements = segment.fit.task.measurements
        for group in measurements.groups:
            if group.statement.is_direct:
                estimated = measurements.estimated.get(group.statement.name, 0.0)
                sigma = np.asarray(estimated if group.stated is None else group.stated, float)
                if group.statement.noise is not None:
                    sigma = np.asarray(group.statement.noise.spread(float(np.max(sigma))))
                squares.setdefault(group.statement.jet.field, []).append(
                    np.broadcast_to(np.square(sigma), group.statement.target.shape)
                )
    noise = {name: float(np.sqrt(np.mean(np.concatenate(parts)))) for name, parts in squares.items()}
    return {name: size for name, size in noise.items() if np.isfinite(size)}  # some noise has no one size
