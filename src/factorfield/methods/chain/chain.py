"""Time windows, each a joint belief, linked by exact Gaussian messages on their interface (the default method).

Forward, every window's factors are eliminated to a message about its state at the start and a way to its end
(passes.py, windows.py); backward, what later windows know returns (passes.py). On a path this is exact: for a linear
equation the result is that of one joint solve over all windows. Nonlinear factors are linearised at the mean, window
by window on the way forward (solver.py), then - if there are later data - along the smoothed path.

Around that, in this order: several starts, a profile search where unknown coefficients got lost (profile.py); and, as
`refine`, more modes (modes.py) and better noise levels (methods/noise.py).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from factorfield import threads
from factorfield.errors import FAILED, Advice, expected
from factorfield.messages.gaussian import Message
from factorfield.methods import taken
from factorfield.methods.advice import is_missed
from factorfield.methods.chain import fewer_cells, fewer_modes
from factorfield.methods.chain.advice import advice_about
from factorfield.methods.chain.following import followed, is_dear, on_cells_instead, on_more_cells, starts_steep
from factorfield.methods.chain.modes import grown, grown_modes
from factorfield.methods.chain.passes import (
    Beliefs,
    Path,
    filter_along,
    filter_between,
    filter_windows,
    log_evidence,
    smooth,
)  # fmt: skip
from factorfield.methods.chain.plane import is_told, solver_of, told_path
from factorfield.methods.chain.profile import is_lost, profile_search
from factorfield.methods.chain.remade import is_complete, longer, model_of
from factorfield.methods.chain.searched import Searched, search_marginal, searched, windows_of
from factorfield.methods.chain.sensitivity import felt_by_coefficients, felt_by_numbers
from factorfield.methods.chain.solver import WindowSolver
from factorfield.methods.marginal import MARGINAL, UNSETTLED, elsewhere
from factorfield.methods.noise import next_sigmas, of_windows
from factorfield.methods.resolution import NumericalError
from factorfield.methods.starts import best_of, ends_of, start_values
from factorfield.model.functions import with_numbers
from factorfield.model.model import Model, WindowModel
from factorfield.model.searched import latents, number_coordinates, position
from factorfield.model.windowed import window_model
from factorfield.posterior.stored import StoredBeliefs
from factorfield.posterior.windows import ChainPosterior
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Problem
from factorfield.progress import Progress
from factorfield.solution import Solution, Status, unresolved

Array = NDArray[np.float64]
MOST_SEARCHED = 1300  # weights of a window of a nonlinear equation that are worth a smaller numerical error
CRUDE = 10.0  # tolerances: an error for which cells are worth trying
INNER = 1e-2  # of the tolerance: the most that a window may leave to its last polynomials


@dataclass(frozen=True, eq=False)
class Search:
    """One search for the posterior of a model: where it began, the path it found, and what it took."""

    solver: WindowSolver
    path: Path
    status: Status
    moves: Sequence[float] = ()  # of the smoothed path, in its standard deviations
    centres: tuple[Array, ...] = ()  # where smoothing began, if not at the filtered path
    searched: Searched | None = None  # what was found on the marginal likelihood, at whose mean the path is
    near: Mapping[str, float] = field(default_factory=dict)  # latent values of that

    @property
    def model(self) -> WindowModel:
        """The last model solved: final modes, sigmas, windows (`edges`) and, after a profile search, where factors were
        linearised (`path`). The same method settings with adapt=False give the same bits; not with store=, nor where
        noise is not Gaussian.
        """
        model = self.solver.model if self.searched is None else self.searched.model
        return replace(model, edges=tuple(self.path.edges), path=self.centres)

    @property
    def solved(self) -> WindowModel:
        """The model that the path is of: at the mean of what was searched."""
        return replace(self.solver.model, edges=tuple(self.path.edges))

    @property
    def posterior(self) -> ChainPosterior:
        model, path = self.solver.model, self.path
        numbers = self.searched.numbers if self.searched is not None else None
        representation = model.representation if numbers is None else with_numbers(model.representation, model.problem)
        return ChainPosterior(
            model.problem, representation, model.noise, np.array(path.edges), path.starts, path.links, path.futures,
            model.tails, numbers, model.cells,
        )  # fmt: skip

    @property
    def evidence(self) -> Callable[[], float | None]:
        """Computes the log evidence, when it is asked for."""
        if self.path.is_told:
            return float  # nothing is measured
        if self.searched is None:
            return partial(log_evidence, self.solver, self.path)
        return partial(float, self.searched.marginal.level)

    @property
    def merit(self) -> float:
        """The negative log density at the posterior mean, up to a constant."""
        path = self.path
        if self.searched is not None:
            return -self.searched.marginal.level
        return self.solver.path_merit(path.groups, lambda i: self.solver.in_order(path.mean(i)))


@dataclass(frozen=True)
class Chain:
    """How to search; what is represented are options of the model (modes, degree, windows, activation).

    tolerance         of the numerical error, relative to the field: modes chosen automatically grow until it is met
    window_tolerance  largest coefficient, in units of the field, that a window may leave to its last polynomials
    iterations        of Gauss-Newton, within a window and along the path
    store             a file that finished windows are written to: memory then does not grow with the horizon. For
                      linear equations that nothing but labels at the start informs; nothing is sent backward then
    starts            so many searches from unknowns spread over their prior; the most probable end is kept
    adapt             may modes grow and noise levels be estimated?
    """

    tolerance: float = 1e-5
    window_tolerance: float = 1e-7
    iterations: int = 30
    store: str | os.PathLike[str] | None = None
    starts: int = 1
    adapt: bool = True

    name = "chain"
    model_for = staticmethod(window_model)

    def __post_init__(self) -> None:
        if not min(self.tolerance, self.window_tolerance) > 0.0 or min(self.iterations, self.starts) < 1:
            received = f"{self.tolerance}, {self.window_tolerance}, {self.iterations}, {self.starts}"
            raise expected("tolerance, window_tolerance > 0, iterations, starts >= 1", received, "tolerance=1e-5")

    @property
    def _left(self) -> float:
        """What a window may leave to its last polynomials."""
        return min(self.window_tolerance, INNER * self.tolerance)

    def run(self, model: Model, progress: Progress | None = None) -> Solution:
        windows = taken(model, WindowModel, self.name)
        begin = time.perf_counter()
        if self.store is not None and (windows.traits.has_later_data or not windows.traits.linear):
            wanted = "store= with a linear equation and labels at the start only"
            raise expected(wanted, repr(model.problem), "no store")
        with threads.suited_to(model.size):
            several = self.starts > 1 and bool(windows.held or not windows.traits.linear) and not windows.start
            found, advice = self._several(windows, progress) if several else (self._search(windows, progress), ())
            return self._solution(found, time.perf_counter() - begin, advice)

    def refine(self, model: Model, solution: Solution) -> WindowModel | None:
        """The next model: more modes where the path ended for lack of them, or cells where those would be too many,
        else better noise levels; None: neither.

        Noise rounds keep the windows found in the first round; more modes begin with new windows.
        """
        windows = taken(solution.model, WindowModel, self.name)
        posterior = solution.posterior
        assert isinstance(posterior, ChainPosterior)
        if windows.in_plane and solution.status == "unresolved" and is_told(windows):
            more = on_more_cells(windows, solution.trace.get("numerical_error", np.inf), self.tolerance)
            if more is not None:
                return more
        if not windows.local and is_dear(windows, solution):
            local = on_cells_instead(windows, self.iterations)
            if local is not None:
                return local
        better = self._richer(windows, solution)
        if better is not None:
            return better
        other = self._elsewhere(windows, solution)
        if other is not None:
            return other
        near: Mapping[str, float] = solution.trace.get("searched", {})
        is_open = not solution.unresolved and any(sigma.is_open for sigma in windows.sigmas)
        sigmas = next_sigmas(windows, of_windows(windows, posterior)) if is_open else None
        if not (solution.unresolved or sigmas):
            return None
        if isinstance(posterior.starts, StoredBeliefs):
            posterior.starts.close()  # the next attempt writes the same file
        return grown(windows, solution.unresolved, near) if solution.unresolved else windows.with_sigmas(sigmas or ())

    def _richer(self, model: WindowModel, solution: Solution) -> WindowModel | None:
        """More modes along the axis that the numerical error asks them for."""
        along = solution.trace.get("numerical_error_along", {})
        error = solution.trace.get("numerical_error", 0.0)
        if solution.status != "unresolved" or not error > self.tolerance or not model.growing or model.local:
            return None
        axis = max(model.growing, key=lambda name: along[name])
        more = grown_modes(model, axis) if along[axis] > INNER * self.tolerance else None
        searched = 0.0 if more is None or model.traits.linear else model.size * more[axis] / model.modes[axis]
        if more is not None and searched < MOST_SEARCHED:
            return grown(model, axis, solution.trace.get("searched", {}))
        # a kink that waves carry along never ends: cells would follow it at far greater cost, and not hold it either
        worth = error > CRUDE * self.tolerance and not model.traits.separable
        return on_cells_instead(model, self.iterations) if worth else None

    def _elsewhere(self, found: WindowModel, solution: Solution) -> WindowModel | None:
        """Where measurements are missed, the marginal likelihood may have a higher maximum: a search from there."""
        if solution.unresolved or not found.held or not is_missed(solution):
            return None
        with threads.suited_to(found.size):
            evidence, near = windows_of(found, self.iterations).evidence, solution.trace["searched"]
            better = elsewhere(evidence, found.coordinates, near, len(found.held))
        return None if better is None else replace(found, edges=found.asked.edges, path=(), start=better)

    # -- searches

    def _several(self, model: WindowModel, progress: Progress | None) -> tuple[Search, tuple[Advice, ...]]:
        """From unknowns spread over their prior; a start from which the path runs away is left out."""
        starts = start_values(model.problem, self.starts)
        found = ends_of(starts, lambda values: self._search(replace(model, start=values), progress))
        unresolved = [search for search in found if search.path.unresolved is not None]
        if unresolved:
            return unresolved[0], ()
        best, said, advice = best_of([(search.merit, search.posterior.parameters()) for search in found])
        status = found[best].status
        return replace(found[best], status=Status(str(status), f"{status.help}; {said}")), advice

    def _search(self, model: WindowModel, progress: Progress | None) -> Search:
        """Filter and smooth; where that loses unknown coefficients, along their profile."""
        if self.adapt and not model.local and starts_steep(model):
            model = on_cells_instead(model, self.iterations) or model
        if model.local and not (model.cells or model.path):
            model = followed(model, self.iterations, progress)
        if model.coordinates:
            return self._on_marginal(model, progress)
        solver = solver_of(model, self.iterations)
        if is_told(model):
            return self._smoothed(solver, told_path(model, self._left, self.adapt, progress), progress, model.path)
        if model.path and model.edges is not None:
            return self._smoothed(solver, filter_along(solver, model.edges, model.path), progress, model.path)
        failed, found = None, None
        try:
            found = self._smoothed(solver, self._filtered(solver, progress), progress)
        except FAILED as problem:
            failed = problem
        unknown = bool(model.problem.unknowns or model.problem.functions)
        may_climb = unknown and not model.traits.linear and model.edges is None
        if may_climb and (found is None or (not found.path.unresolved and is_lost(solver, found.path, found.status))):
            path = profile_search(solver, self._left, progress)
            if path is not None:
                climbed = self._smoothed(solver, path, progress, tuple(path.centres))
                if failed or not is_lost(solver, climbed.path, climbed.status):
                    return climbed
        if found is None:
            local = on_cells_instead(model, self.iterations) if self.adapt else None
            if local is not None:
                return self._search(local, progress)
            assert failed is not None
            raise failed
        return found

    def _on_marginal(self, model: WindowModel, progress: Progress | None) -> Search:
        """Numbers and spectrum from the marginal likelihood, then windows at its mean: chosen anew if they may be, and
        where they changed, the search goes on with those."""
        begin = position(model.coordinates, model.start)
        while True:
            solver = WindowSolver(model.at(begin), self.iterations)
            path = self._filtered(solver, progress) if model.edges is None else Path(list(model.edges), [])
            if path.unresolved is not None and model.start:
                return self._smoothed(solver, path, progress)
            if path.unresolved is not None:  # of numbers that are but guessed: details may be what measurements deny
                path = replace(self, adapt=False)._filtered(solver, progress)
            frozen = replace(model, edges=tuple(path.edges))
            windows = windows_of(frozen, self.iterations)
            found = search_marginal(frozen, windows, begin, progress)
            solver = WindowSolver((model if model.edges is None else frozen).at(found.mean), self.iterations)
            final = self._filtered(solver, progress)
            near = latents(model.coordinates, found.mean)
            if final.unresolved is not None or final.edges == path.edges:
                break
            model = replace(model, edges=tuple(final.edges), start=near)
            begin = position(model.coordinates, model.start)
        search = replace(self._smoothed(solver, final, progress), near=near)
        if search.path.unresolved is not None:
            return search
        if not found.settled:
            search = replace(search, status=Status("max-iterations", UNSETTLED))
        elif search.status == "converged":
            search = replace(search, status=Status("converged", f"{MARGINAL}; {search.status.help}"))
        return replace(search, searched=searched(frozen, windows, found))

    def _filtered(self, solver: WindowSolver, progress: Progress | None) -> Path:
        starts: Beliefs = [] if self.store is None else StoredBeliefs(self.store, len(solver.state))
        if solver.model.edges is not None:
            return filter_between(solver, solver.model.edges, starts, self.adapt)
        return filter_windows(solver, self._left, starts, self.adapt, progress)

    def _smoothed(
        self, solver: WindowSolver, path: Path, progress: Progress | None, centres: tuple[Array, ...] = ()
    ) -> Search:
        if path.unresolved is not None:
            path.futures = [Message.nothing(len(solver.state))] * len(path.links)
            return Search(solver, path, Status("unresolved", f"more modes are needed along {path.unresolved}"))
        status, moves = smooth(solver, path, progress)
        return Search(solver, path, status, moves, centres)

    def resume(
        self, model: WindowModel, problem: Problem, near: Mapping[str, float], known: Path | None = None
    ) -> Solution:
        """A solved model taken up again for its problem with more conditions, or up to a later end of time.

        near   the unknowns and the spectrum that were found, where they are searched
        known  its path, if it is still there
        """
        begin = time.perf_counter()
        assert model.edges is not None
        is_longer = problem.domain[TIME].upper > model.edges[-1]
        if is_longer and model.local:  # where cells go cannot be told from where they were
            form = model.representation.forms[problem.fields[0]]
            cells: Mapping[str, int] | Literal["auto"] = model.modes if model.in_plane else "auto"
            again = window_model(problem, cells=cells, degree=model.degree, activation=form.activation)
            return self._solution(self._search(again, None), time.perf_counter() - begin)
        more = replace(longer(model, problem) if is_longer else model.with_condition(problem), start=near)
        same = more.representation is model.representation and not near
        with threads.suited_to(model.size):
            solver = solver_of(more.at(position(more.coordinates, near)) if near else more, self.iterations)
            path = filter_between(solver, model.edges, [], False, (model, known) if known and same else None)
            if is_longer:
                path = filter_windows(solver, self._left, [], False, None, path)
            if more.coordinates:
                found = self._on_marginal(replace(more, edges=tuple(path.edges)), None)
            else:
                found = self._smoothed(solver, path, None)
            return self._solution(found, time.perf_counter() - begin)

    def taken_up(self, stored: Solution) -> Callable[[Problem], Solution] | None:
        """`resume` of a solution that was read from a file; None where the file does not hold what it takes."""
        if not is_complete(stored):
            return None
        judged = "numerical_error" in stored.trace  # before that was known, the word meant windows alone
        method = replace(self, tolerance=stored.settings["tolerance"]) if judged else self
        return lambda problem: method.resume(model_of(stored), problem, stored.trace.get("searched", {}))

    # -- what comes back

    def _numerical_error(self, search: Search) -> NumericalError | None:
        """By the same windows on fewer cells, or with fewer modes; None: nothing to compare with."""
        model, path = search.model, search.path
        if path.unresolved is not None or path.is_stored:
            return None
        if model.local:
            solved, weights = replace(model, held=search.solver.model.held), path.centres
            if model.in_plane:
                weights = [search.solver.in_order(path.mean(index)) for index in range(len(path.links))]
            error = fewer_cells.numerical_error(solved, weights, self.iterations, path.starts[-1])
        else:
            place = None if search.searched is None else search.searched.marginal.mean
            error = fewer_modes.numerical_error(search.solved, path, self.iterations, place)
        return None if error is None else replace(error, root=self._felt(search, error.root))

    def _felt(self, search: Search, root: Array) -> Array:
        """Errors of the windows' weights, with those that they give to unknown coefficients."""
        numbers = None if search.searched is None else search.searched.numbers
        if numbers is not None:
            return felt_by_numbers(root, search.path, numbers, number_coordinates(search.model.problem))
        if search.model.local:
            return felt_by_coefficients(root, search.path, search.solved)
        return root  # fewer modes find coefficients of their own

    def _judged(self, status: Status, model: WindowModel, error: NumericalError | None) -> Status:
        """The status beside the numerical error."""
        if status != "converged" or (error is None and not model.local):
            return status
        if error is not None and error.is_met(self.tolerance):
            return Status("converged", f"{status.help}; numerical error {error.relative:.1g} of the field")
        counts = " x ".join(str(count) for count in model.modes.values())
        kind = "cells" if model.local else "modes"
        relative = np.inf if error is None else error.relative
        return unresolved(relative, self.tolerance, f"{counts} {kind}" if counts else "these windows", kind)

    def _solution(self, search: Search, seconds: float, advice: Sequence[Advice] = ()) -> Solution:
        model, path, solver = search.model, search.path, search.solver
        posterior, error = search.posterior, self._numerical_error(search)
        if error is not None:
            posterior = replace(posterior, numerical=error.root)
        settings: Mapping[str, object] = {
            **model.settings, "method": self.name, "tolerance": self.tolerance,
            "windows": [float(edge) for edge in path.edges], "factorisations": solver.factorisations,
        }  # fmt: skip
        trace: dict[str, object] = {
            "windows": len(path.links), "iterations": solver.iterations, "rejected": path.rejected,
        }  # fmt: skip
        if search.moves:
            trace["moved"] = list(search.moves)
        if error is not None:
            trace["numerical_error"], trace["numerical_error_along"] = error.relative, dict(error.axes)
            trace["left_open"] = error.left_open

        if search.near:
            trace["searched"] = search.near
        if search.searched is not None:
            trace["evaluations"] = search.searched.marginal.evaluations
        told = () if path.unresolved else (*advice, *advice_about(solver, path, posterior))
        return Solution(
            posterior, self._judged(search.status, model, error), trace, {"solve": seconds}, settings, model=model,
            resume=lambda problem: self.resume(model, problem, search.near, path),
            advice=(*model.advice, *told), unresolved=path.unresolved, evidence=search.evidence,
        )  # fmt: skip
