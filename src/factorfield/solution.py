"""Solution: a posterior with its status, trace, timings and settings; saved to a file and loaded from it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorfield import threads
from factorfield.errors import Advice, expected, warn_of
from factorfield.files import results
from factorfield.model.model import Model
from factorfield.posterior.base import Estimate, Posterior
from factorfield.posterior.covariance import correlation, covariance
from factorfield.posterior.measuring import next_measurements
from factorfield.posterior.parts import std_parts
from factorfield.problem.domain import TIME
from factorfield.problem.horizon import extended
from factorfield.problem.problem import Condition, Problem
from factorfield.version import versions

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]
EXTENDABLE = ("chain", "forward")  # methods
HELP = {
    "converged": "the method met its own criterion",
    "unresolved": "what the representation leaves out is more than was asked: try more modes, or a smoother problem",
    "max-iterations": "the iteration limit came first: usable, but allow more iterations if the trace still moves",
    "diverged": "nothing here can be trusted: try damping, larger sigmas, fewer modes or method='joint'",
}


class Status(str):
    """One of converged, unresolved, max-iterations, diverged; `.help` says what it means and what to try."""

    help: str

    def __new__(cls, value: str, help: str = "") -> Status:
        if value not in HELP:
            raise expected("one of " + ", ".join(HELP), value, "'converged'")
        status = super().__new__(cls, value)
        status.help = help or HELP[value]
        return status


def unresolved(error: float, tolerance: float, resolution: str, more: str) -> Status:
    """The status of an answer whose numerical error is larger than asked: `resolution` in words, and what to add."""
    size = f"{error:.1g}" if np.isfinite(error) else "unknown (too few to compare)"
    text = f"the numerical error on {resolution} is {size} of the field, {tolerance:g} was asked"
    return Status("unresolved", f"{text}; it is part of the std. Try more {more}, or a larger tolerance")


@dataclass(frozen=True, eq=False)
class Solution:
    """What every method returns.

    `model` is the last model solved: final modes, sigmas, windows (`edges`) and, after a profile search, where factors
    were linearised (`path`). The same method settings with adapt=False give the same bits; not with store=, nor where
    noise is not Gaussian. None: read from a file.
    """

    posterior: Posterior
    status: Status
    trace: Mapping[str, Any] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    model: Model | None = None
    resume: Callable[[Problem], Solution] | None = None  # with more conditions or a later end, all choices kept
    advance: Callable[[Problem], Solution] | None = None  # the same until a later end, from the present end on
    advice: tuple[Advice, ...] | None = ()  # what a user should know; None: a file that does not say
    unresolved: str | None = None  # an axis along which `refine` has to add modes
    evidence: Callable[[], float | None] | None = None  # computes log_evidence, when it is asked for
    packages: Mapping[str, str] | None = None  # versions of those that solved it; None: the ones of this process

    def __repr__(self) -> str:
        method, weights = self.settings.get("method", "?"), self.posterior.representation.size
        found = "".join(f"; {n} = {p['mean']:.4g} +- {p['std']:.2g}" for n, p in self.parameters.items())
        return f"Solution({self.problem!r} by {method}, {weights} weights; {self.status}: {self.status.help}{found})"

    def __copy__(self) -> Solution:
        return replace(self)  # as it is; copy.deepcopy and pickle go through the file form (solving.py)

    @property
    def problem(self) -> Problem:
        return self.posterior.problem

    @property
    def versions(self) -> Mapping[str, str]:
        """Of the packages that solved it."""
        return versions() if self.packages is None else self.packages

    @cached_property
    def log_evidence(self) -> float | None:
        """Natural log of p(measurements | equation, conditions, priors): of all factors, less that of all but the
        measurements, both linearised at the posterior mode. Exact for linear equations with Gaussian noise, Laplace
        otherwise; None where the method cannot, or the solution was read from a file."""
        return None if self.evidence is None else self.evidence()

    @property
    def warnings(self) -> tuple[str, ...] | None:
        """The advice in words; None: a file that does not say."""
        return None if self.advice is None else tuple(dict.fromkeys(advice.text for advice in self.advice))

    @property
    def parameters(self) -> dict[str, Estimate]:
        """Posterior of each unknown coefficient: {"b": {"mean": ..., "std": ..., "interval": (low, high)}} (90 %).

        Other levels: solution.intervals(0.95).
        """
        return self.posterior.parameters()

    def intervals(self, level: float = 0.9) -> dict[str, Estimate]:
        """`parameters` with intervals that hold the coefficients with another probability."""
        return self.posterior.parameters(checked_level(level))

    @property
    def hyperparameters(self) -> dict[str, dict[str, Estimate]]:
        """Posterior of the std and the length of each unknown function for which none was stated."""
        found = getattr(self.posterior, "hyperparameters", None)
        return {} if found is None else found()

    def predict(
        self,
        *,
        of: str | None = None,
        noise: bool = False,
        points: bool = False,
        quantiles: Sequence[float] = (),
        level: float | None = None,
        numerical: bool = True,
        **axes: ArrayLike,
    ) -> xr.Dataset:
        """Mean and std on the tensor grid of the given axes: solution.predict(x=..., t=...).

        of="u_x" or of="residual" gives other quantities, points=True takes scattered points, noise=True adds the
        observation noise to std, level=0.95 adds the ends `lower` and `upper` of intervals that hold it with this
        probability, quantiles=[0.05, 0.95] adds quantiles, numerical=False leaves what the representation misses out
        of std. Outside a region everything is NaN, and the coordinate `inside` tells where that is. As a table:
        solution.predict(...).to_dataframe().
        """
        if level is not None and len(quantiles):
            raise expected("either level= or quantiles=", "both", "level=0.95")
        ends = () if level is None else ((1.0 - checked_level(level)) / 2.0, (1.0 + level) / 2.0)
        with threads.suited_to(self.posterior.representation.size):
            found = self.posterior.predict(axes, of, noise, points, ends or quantiles, numerical)
        return found if level is None else with_ends(found)

    def sample(self, count: int, *, seed: int = 0, of: str | None = None, **axes: ArrayLike) -> xr.DataArray:
        """Joint draws of the field on the tensor grid of the given axes."""
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise expected("a whole number of draws, 1 or more", count, "solution.sample(10, ...)")
        return self.posterior.sample(count, seed=seed, of=of, **axes)

    def covariance(
        self,
        of: str | Sequence[str] | None = None,
        *,
        points: bool = False,
        numerical: bool = True,
        **axes: ArrayLike,
    ) -> xr.DataArray:
        """Posterior covariances of any functionals anywhere with each other, however far apart:
        solution.covariance(of=["u", "u_x", "b"], x=..., t=..., points=True). Without arguments, of the unknowns.

        Dimensions are `functional` and `other`; the coordinates of, x, t (and other_of, ...) say what each is. Places
        are those of `predict`. An unknown coefficient has one entry. numerical=False leaves the numerical error out.
        """
        with threads.suited_to(self.posterior.representation.size):
            return covariance(self.posterior if numerical else self.posterior.exact, of, axes, points)

    def correlation(
        self,
        of: str | Sequence[str] | None = None,
        *,
        points: bool = False,
        numerical: bool = True,
        **axes: ArrayLike,
    ) -> xr.DataArray:
        """Posterior correlations, asked for as covariances are; without arguments, of the unknown coefficients."""
        return correlation(self.covariance(of, points=points, numerical=numerical, **axes))

    def next_measurements(
        self,
        count: int,
        sigma: float | None = None,
        *,
        candidates: object = None,
        of: str = "",
        target: object = None,
    ) -> xr.Dataset:
        """Where `count` further measurements of `of`, each +- sigma, tell most about the target: places chosen one
        after the other, the expected std of the target after each, and the share of its variance removed.

        candidates  a mapping of axes to values (a tuple is a stretch), or a table of places; None: a grid over the
                    domain, in time over what is measured
        of          what is measured, the first field unless given; sigma None: that of the measurements so far
        target      None: the field that is measured, everywhere. A coefficient or functional by name, or a mapping:
                    {"of": "u", "t": 2.0, "x": (0, 0.3)}. std is the root mean square over it
        """
        with threads.suited_to(self.posterior.representation.size):
            measured = of or self.problem.fields[0]
            return next_measurements(self.posterior, count, sigma, candidates, measured, target)

    def condition(self, more: Condition | Sequence[Condition]) -> Solution:
        """A new solution that also knows `more`, without starting over: equal to solving with everything at once."""
        added = list(more) if isinstance(more, Sequence) else [more]
        problem = self.problem.replace(conditions=[*self.problem.conditions, *added])
        return self._resumed(problem, "ff.solve(solution.problem.replace(conditions=[...])) with all conditions")

    def extend(self, t: float) -> Solution:
        """A new solution up to a later end of time, without starting over: a forecast beyond what was measured."""
        attempt, method = "ff.solve with the longer domain", self.settings.get("method")
        longer = extended(self.problem, t)
        if method not in EXTENDABLE:
            raise expected(f"a solution by method={' or '.join(map(repr, EXTENDABLE))}", f"one by {method}", attempt)
        for name, coefficient in self.problem.functions.items() if method == "chain" else ():
            if TIME in coefficient.over:
                raise expected("coefficients that do not depend on time", f"{name} over {TIME}", attempt)
        return self._resumed(longer, attempt)

    def update(self, more: Condition | Sequence[Condition] = (), *, until: float) -> Solution:
        """A new solution until a later end that also knows measurements since the present one: `extend` and `condition`
        in one step. What is known of the present end is where it begins, so that a step costs the same however long the
        past is."""
        added = list(more) if isinstance(more, Sequence) else [more]
        longer = extended(self.problem, until)
        problem = longer.replace(conditions=[*longer.conditions, *added]) if added else longer
        if self.advance is None:
            method = str(self.settings.get("method", "another method"))
            raise expected("a solution by method='forward'", f"one by {method}", "extend, condition")
        solution = self.advance(problem)
        warn_of(solution.advice or (), stacklevel=3)
        return solution

    def _resumed(self, problem: Problem, attempt: str) -> Solution:
        if self.resume is None:
            method = str(self.settings.get("method", "another method"))
            other = any(statement.noise is not None for statement in self.problem.statements)
            received = f"one by {method}{' with other noise' if other else ''}"
            raise expected("a solution by method='chain' or 'tree' with Gaussian noise", received, attempt)
        return self._announced(self.resume(problem))

    def _announced(self, solution: Solution) -> Solution:
        solution = with_std_parts(solution)
        warn_of(solution.advice or (), stacklevel=4)
        return solution

    def default_grid(self) -> dict[str, Array]:
        """The truth's coordinates where they are known, else a grid fit for looking at."""
        problem = self.problem
        if problem.truth is not None:
            return {name: np.asarray(problem.truth[name], float) for name in problem.domain.names}
        count = {1: 512, 2: 128, 3: 49}.get(len(problem.domain.names), 17)  # quarters of 48 and 16 are round
        axes = {name: problem.domain[name] for name in problem.domain.names}
        return {name: np.linspace(axis.lower, axis.upper, count) for name, axis in axes.items()}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to `path` (NetCDF); the file appears complete or not at all."""
        result = results.Result(
            self.posterior, str(self.status), self.status.help, self.trace, self.timings, self.settings, self.versions,
            self.advice,
        )  # fmt: skip
        with threads.suited_to(self.posterior.representation.size):  # as `predict`: the same bits before and after
            return results.write(result, self.default_grid(), path)


def with_std_parts(solution: Solution) -> Solution:
    """With settings that tell how much of the std is data, how much numerics, where that was estimated."""
    if solution.posterior.exact is solution.posterior:
        return solution
    with threads.suited_to(solution.posterior.representation.size):
        return replace(solution, settings={**solution.settings, "std": std_parts(solution.posterior)})


def checked_level(level: float) -> float:
    """The probability with which an interval holds what it is about."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0.0 < level < 1.0:
        raise expected("a level of intervals between 0 and 1", level, "level=0.95")
    return level


def with_ends(found: xr.Dataset) -> xr.Dataset:
    """A prediction with two quantiles as one with the ends of an interval, lower and upper."""
    ends = {name: found["quantiles"].isel(quantile=at, drop=True) for at, name in enumerate(("lower", "upper"))}
    return found.drop_dims("quantile").assign(ends)


def load(path: str | os.PathLike[str]) -> Solution:
    """Read a solution back; it predicts exactly what the saved one did."""
    found = results.read(path)
    return Solution(
        found.posterior, Status(found.status, found.status_help), found.trace, found.timings, found.settings,
        advice=found.advice, packages=found.versions,
    )  # fmt: skip
