"""Time windows, each a joint belief, linked by exact Gaussian messages on their interface (the default method).

Forward, every window turns its factors into a message to its state at the start, a rule for the rest, and a way to its
end (links.py); backward, what later windows know returns. On a chain this is exact: for a linear equation the result is
that of one joint solve over all windows. Nonlinear factors are linearised at the mean, window by window on the way
forward, then - if anything later speaks - along the smoothed path until it stops moving.

The passes themselves are in chain_walk.py, all choices made before them in chain_setup.py.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield import threads
from factorfield.errors import ProblemError, expected, overheard, repeat
from factorfield.methods.chain import noise as chain_noise
from factorfield.methods.chain.advice import advise
from factorfield.methods.chain.modes import Unresolved, grown
from factorfield.methods.chain.profile import climb, is_lost, may_climb
from factorfield.methods.chain.walk import Walk
from factorfield.methods.starts import best_of, start_values
from factorfield.model.activation import Activation, Identity
from factorfield.model.model import Model
from factorfield.model.windowed import Setup, enlarged, set_up
from factorfield.posterior.windows import ChainPosterior
from factorfield.problem.problem import Problem
from factorfield.progress import Progress
from factorfield.solution import Solution, Status

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Chain:
    """Settings; what is None is chosen from the data and reported in solution.settings.

    degree      of the polynomials in time within a window (20, or 12 where modes mix)
    tolerance   largest coefficient, in units of the field, that a window may leave to its last polynomials
    modes       per space axis: frequencies (periodic) or polynomial degrees (interval)
    windows     edges of the windows, instead of error control
    store       a file that finished windows are written to: memory then does not grow with the horizon. For linear
                equations that nothing but labels at the start informs
    starts      so many searches from unknowns spread over their prior; the most probable end is kept
    """

    degree: int | None = None
    tolerance: float = 1e-7
    modes: Mapping[str, int] | None = None
    windows: Any = None
    activation: Activation = field(default_factory=Identity)
    iterations: int = 30
    store: str | os.PathLike[str] | None = None
    starts: int = 1

    name = "chain"
    takes_problem = True

    def __post_init__(self) -> None:
        counts = min(self.iterations, self.starts)
        if (self.degree is not None and self.degree < 4) or not self.tolerance > 0.0 or counts < 1:
            received = f"{self.degree}, {self.tolerance}, {self.iterations}, {self.starts}"
            raise expected("degree >= 4, tolerance > 0, iterations and starts >= 1", received, "degree=12")

    def run(self, model: Model | Problem, progress: Progress | None = None) -> Solution:
        problem = model.problem if isinstance(model, Model) else model
        begin = time.perf_counter()
        edges = None if self.windows is None else np.asarray(self.windows, float)
        setup = set_up(problem, self.degree, self.modes, self.activation)
        if self.starts == 1 or setup.is_linear:
            return self._run(setup, edges, progress, begin)
        found, ends, advice = [], [], []
        for values in start_values(problem, self.starts):
            try:
                with overheard() as told:
                    found.append(self._run(replace(setup, start=values), edges, progress, begin))
                advice.append(told)
            except ProblemError:
                if not values:
                    raise
                continue  # a start from which the path runs away
            ends.append((found[-1].trace["negative_log_density"], found[-1].parameters))
        best, said = best_of(ends, 4)
        repeat(advice[best])
        status = found[best].status
        return replace(found[best], status=Status(str(status), f"{status.help}; {said}"))

    def _run(self, setup: Setup, edges: Array | None, progress: Progress | None, begin: float) -> Solution:
        while True:
            try:
                return self._solve(setup, edges, None, progress, begin)
            except Unresolved as found:
                more = grown(setup, found.axis)
                modes = {**(self.modes or {}), **(more or setup.settings["modes"])}
                growing = setup.growing if more else ()
                again = set_up(setup.problem, self.degree, modes, self.activation)
                setup = replace(again, growing=growing, start=setup.start)

    def _solve(
        self, setup: Setup, edges: Array | None, known: Walk | None, progress: Progress | None, begin: float
    ) -> Solution:
        chosen = time.perf_counter()
        if self.store is not None and (setup.speaks_later or not setup.is_linear):
            received = f"{setup.problem!r}"
            raise expected("store= with a linear equation and labels at the start only", received, "no store")
        walk, status, posterior = self._walked(setup, edges, known, progress)
        for _ in range(chain_noise.ROUNDS if setup.estimated else 0):
            better = chain_noise.updated(setup, posterior, walk.groups)
            if better is setup:
                break
            setup = better
            walk.release()
            walk, status, posterior = self._walked(setup, np.array(walk.edges), None, progress)
        timings = {"choose": chosen - begin, "solve": time.perf_counter() - begin}
        advise(setup, posterior, walk.groups)
        settings = {
            **setup.settings, "method": self.name, "tolerance": self.tolerance,
            "windows": [float(edge) for edge in walk.edges], "factorisations": walk.factorisations,
        }  # fmt: skip
        trace: dict[str, Any] = {"windows": len(walk.links), "iterations": walk.iterations, "rejected": walk.rejected}
        if walk.moves:
            trace["moved"] = walk.moves
        if self.starts > 1 and not setup.is_linear:
            trace["negative_log_density"] = walk.level(posterior.window_mean)

        def resume(problem: Problem) -> Solution:
            return self._solve(enlarged(setup, problem), np.array(walk.edges), walk, None, time.perf_counter())

        return Solution(posterior, status, trace, timings, settings, resume)

    def posterior(self, setup: Setup, edges: Array) -> ChainPosterior:
        """The belief with all choices made."""
        return self._walked(setup, edges, None, None)[2]

    def _walked(
        self, setup: Setup, edges: Array | None, known: Walk | None, progress: Progress | None
    ) -> tuple[Walk, Status, ChainPosterior]:
        walk = Walk(setup, self.tolerance, self.iterations, self.store, progress, known)
        with threads.suited_to(setup.representation.size), np.errstate(all="ignore"):  # steps that leave are judged
            failed = None
            try:
                walk.forward(edges, setup.start_belief())
                status = walk.smooth()
            except Unresolved:
                walk.release()
                raise
            except ProblemError as problem:
                failed = problem
            if edges is None and may_climb(setup) and (failed or is_lost(walk, status)):
                found = climb(setup, self.tolerance, self.iterations, progress)
                if found is not None and (failed or not is_lost(*found)):
                    (walk, status), failed = found, None
            if failed is not None:
                raise failed
        posterior = ChainPosterior(
            setup.problem, setup.representation, setup.noise, np.array(walk.edges), walk.starts, walk.links,
            walk.futures, setup.tails,
        )  # fmt: skip
        return walk, status, posterior
