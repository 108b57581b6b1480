"""The one verb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, overload

from factorfield import methods
from factorfield.errors import expected, recorded
from factorfield.methods import Method
from factorfield.methods.sites import needs_sites, solve_with_sites
from factorfield.model.model import Model, default_model
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Problem
from factorfield.progress import Progress, bar
from factorfield.solution import Solution

OF_MODEL = ("modes", "collocation", "activation")  # options that a method leaves to its model; the chain has its own


@overload
def solve(
    problem: Problem | Model, method: str | Method | None = ..., progress: Any = ..., **options: Any
) -> Solution: ...
@overload
def solve(
    problem: Sequence[Problem | Model], method: str | Method | None = ..., progress: Any = ..., **options: Any
) -> list[Solution]: ...
def solve(
    problem: Problem | Model | Sequence[Problem | Model],
    method: str | Method | None = None,
    progress: bool | Progress | None = None,
    **options: Any,
) -> Solution | list[Solution]:
    """Find the posterior of a Problem (through the default model) or of a Model; a list gives a list
    (sampling and gradient methods then advance all models that share their design at once).

    method    a name, or a configured object such as ff.methods.Joint(); None: "chain" for problems with time, "joint"
              for models and problems without
    options   of a method given by name, and modes=, collocation=, activation= of the default model it solves
    progress  True for a bar on a terminal, or a callback (text, fraction done)
    """
    many = isinstance(problem, Sequence)
    items = list(problem) if isinstance(problem, Sequence) else [problem]
    name = _suited(items) if method is None else method
    of_model = {} if name == "chain" else {key: options.pop(key) for key in OF_MODEL if key in options}
    if of_model and any(isinstance(item, Model) for item in items):
        raise expected(
            f"a problem, not a model, with {', '.join(of_model)}", "a model", "ff.default_model(problem, ...)"
        )
    chosen = methods.get(name, **options) if isinstance(name, str) else name
    together = getattr(chosen, "run_all", None)  # methods that advance trajectories in lockstep
    with bar() if progress is True else nullcontext(progress if callable(progress) else None) as report:
        if together and not any(needs_sites(_problem_of(item)) for item in items):
            with recorded() as told:  # which of them it is about, the methods do not say
                found = together([_as_model(item, chosen, of_model) for item in items], report)
            solutions = [replace(solution, warnings=tuple(told)) for solution in found]
        else:
            solutions = []
            for item in items:
                with recorded() as told:
                    solutions.append(_solve_one(item, chosen, report, of_model))
                solutions[-1] = replace(solutions[-1], warnings=tuple(told))
    return solutions if many else solutions[0]


def _solve_one(item: Problem | Model, chosen: Method, report: Progress | None, of_model: Mapping[str, Any]) -> Solution:
    def run(problem: Problem | Model) -> Solution:
        return chosen.run(_as_model(problem, chosen, of_model), report)

    if not needs_sites(_problem_of(item)):
        return run(item)
    if isinstance(item, Model):
        raise expected("a problem, not a model, where noise is not Gaussian", repr(item.problem), "ff.solve(problem)")
    return solve_with_sites(item, run)


def _suited(items: Sequence[Problem | Model]) -> str:
    """The default method: windows of time where there is time and the representation is still open."""
    return "chain" if all(isinstance(item, Problem) and suited(item) == "chain" for item in items) else "joint"


def suited(problem: Problem) -> str:
    return "chain" if TIME in problem.domain else "joint"


def _problem_of(item: Problem | Model) -> Problem:
    if not isinstance(item, Problem | Model):
        raise expected("an ff.Problem or a model", type(item).__name__, "ff.solve(ff.Problem(...))")
    return item.problem if isinstance(item, Model) else item


def _as_model(problem: Problem | Model, method: Method, of_model: Mapping[str, Any]) -> Any:
    """What a method takes: a model, or the problem itself if it chooses its own (chain)."""
    plain = getattr(method, "takes_problem", False)
    return problem if plain or isinstance(problem, Model) else default_model(problem, **of_model)
