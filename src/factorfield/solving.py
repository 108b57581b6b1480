"""The one verb, and the loop that it is: solve a model, refine it, until nothing is left to refine."""

from __future__ import annotations

import copyreg
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

from factorfield import methods
from factorfield.errors import FAILED, expected, warn_of
from factorfield.methods import Method
from factorfield.methods.sites import solve_with_sites
from factorfield.model.model import Model
from factorfield.problem.problem import Problem
from factorfield.progress import Progress, bar
from factorfield.solution import Solution, with_std_parts
from factorfield.solution import load as read_solution

FILE = "solution.nc"
RESUMABLE = ("chain", "tree")  # methods whose solutions can be conditioned


@overload
def solve(
    problem: Problem | Model, method: str | Method | None = ..., progress: Any = ..., *, adapt: bool = ...,
    **options: Any,
) -> Solution: ...  # fmt: skip
@overload
def solve(
    problem: Sequence[Problem | Model], method: str | Method | None = ..., progress: Any = ..., *, adapt: bool = ...,
    **options: Any,
) -> list[Solution]: ...  # fmt: skip
def solve(
    problem: Problem | Model | Sequence[Problem | Model],
    method: str | Method | None = None,
    progress: bool | Progress | None = None,
    *,
    adapt: bool = True,
    **options: Any,
) -> Solution | list[Solution]:
    """Find the posterior of a Problem (through the method's first model) or of a Model; a list gives a list
    (sampling and gradient methods then advance all models that share their design at once).

    method    a name, or a configured object such as ff.methods.Joint(); None: "tree" in three axes of space, else
              "chain" with time, else "joint", and "tree" where that cannot resolve the field; "forward", the equation
              as a map, is chosen by name only
    options   tolerance= is asked of the numerical error, relative to the field (1e-5); other options of a method given
              by name, and of the model made for a problem: modes=, and collocation=, activation=
              (one block), degree=, windows=, activation= (chain) or cells=, degree= (tree)
    adapt     False: no new modes or noise levels. A solution's own model then gives the same numbers again
    progress  True for a bar on a terminal, or a callback (text, fraction done)
    """
    items = list(problem) if isinstance(problem, Sequence) else [problem]
    chosen = [_prepared(item, method, options, adapt) for item in items]
    with bar() if progress is True else nullcontext(progress if callable(progress) else None) as report:
        together = getattr(chosen[0][0], "run_all", None) if chosen else None  # trajectories in lockstep
        if together and method is not None and all(_is_gaussian(_problem_of(item)) for item in items):
            models = [_as_model(item, *one) for item, one in zip(items, chosen, strict=True)]
            solutions = together(models, report)
        else:
            solutions = [_solve_one(item, *one, report) for item, one in zip(items, chosen, strict=True)]
        if method is None and adapt and options.keys() <= {"tolerance"}:
            found = zip(items, solutions, strict=True)
            solutions = [_or_local(item, solution, options, report) for item, solution in found]
        solutions = [with_std_parts(solution) for solution in solutions]
    for solution in solutions:
        if solution.advice:
            warn_of(solution.advice, stacklevel=2)
    return solutions if isinstance(problem, Sequence) else solutions[0]


def load(path: str | os.PathLike[str]) -> Solution:
    """Read a solution back; it predicts exactly what the saved one did, and can be conditioned and extended as that."""
    found = read_solution(path)
    name = found.settings.get("method")
    if name == "forward":
        return methods.get(name).taken_up(found)  # type: ignore[attr-defined]
    return replace(found, resume=methods.get(name).taken_up(found)) if name in RESUMABLE else found  # type: ignore


def _as_bytes(solution: Solution) -> tuple[Callable[[bytes], Solution], tuple[bytes]]:
    """How pickle, copy.deepcopy and workers hand a solution on: as the bytes of its file, which `load` checks."""
    with tempfile.TemporaryDirectory() as folder:
        return _from_bytes, (solution.save(Path(folder) / FILE).read_bytes(),)


def _from_bytes(content: bytes) -> Solution:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        path.write_bytes(content)
        return load(path)


copyreg.pickle(Solution, _as_bytes)  # here: what continues a solution are methods


def default_model(problem: Problem, *, method: str = "joint", **options: Any) -> Model:
    """The first model that ff.solve(problem, method=method, **options) would solve; options are the model's."""
    chosen, of_model = methods.configured(method, options)
    return _as_model(problem, chosen, of_model)


def _prepared(
    item: Problem | Model, method: str | Method | None, options: Mapping[str, Any], adapt: bool
) -> tuple[Method, dict[str, Any]]:
    """The method, and the options that are the model's."""
    problem = _problem_of(item)
    name = methods.default_method(item if isinstance(item, Model) else problem) if method is None else method
    if isinstance(name, str):
        chosen, of_model = methods.configured(name, options)
    else:
        chosen, of_model = name, dict(options)
    if of_model and isinstance(item, Model):
        remedy = "ff.default_model(problem, ...)"
        raise expected(f"a problem, not a model, with {', '.join(of_model)}", "a model", remedy)
    if not adapt and hasattr(chosen, "adapt"):
        chosen = replace(chosen, adapt=False)  # type: ignore[type-var]
    return chosen, of_model


def _solve_one(
    item: Problem | Model, method: Method, of_model: Mapping[str, Any], progress: Progress | None
) -> Solution:
    def run(problem: Problem | Model, start: Mapping[str, float]) -> Solution:
        if hasattr(method, "solve"):
            if isinstance(problem, Model):
                raise expected("a problem, not a model, for method='forward'", "a model", "ff.solve(problem)")
            solution: Solution = method.solve(problem, progress)
            return solution
        model = _as_model(problem, method, of_model)
        return _refined(replace(model, start=start) if start else model, method, progress)

    if _is_gaussian(_problem_of(item)) or hasattr(method, "solve"):
        return run(item, {})
    if isinstance(item, Model):
        raise expected("a problem, not a model, where noise is not Gaussian", repr(item.problem), "ff.solve(problem)")
    return solve_with_sites(item, run)


def _or_local(
    item: Problem | Model, solution: Solution, options: Mapping[str, Any], progress: Progress | None
) -> Solution:
    """The solution, or the one on local features where those of one block lost details and these lose fewer."""
    if isinstance(item, Model) or solution.settings.get("method") != "joint" or solution.status != "unresolved":
        return solution
    try:
        local = _solve_one(item, methods.get("tree", **options), {}, progress)
    except FAILED:
        return solution
    lost, left = solution.trace["numerical_error"], local.trace["numerical_error"]
    if not (local.status == "converged" or (local.status == "unresolved" and left < lost)):
        return solution
    modes = " x ".join(str(count) for count in solution.settings["modes"].values())
    why = f"local splines: one block of {modes} modes has a numerical error of {lost:.1g} of the field"
    return replace(local, settings={**local.settings, "features": why})


def _refined(model: Model, method: Method, progress: Progress | None) -> Solution:
    """Modes and noise levels are found in this loop; windows inside `run`."""
    while True:
        solution = method.run(model, progress)
        better = method.refine(model, solution) if getattr(method, "adapt", False) else None
        if better is None:
            return solution
        model = better


def _is_gaussian(problem: Problem) -> bool:
    return all(statement.noise is None for statement in problem.statements)


def _problem_of(item: Problem | Model) -> Problem:
    if not isinstance(item, Problem | Model):
        raise expected("an ff.Problem or a model", type(item).__name__, "ff.solve(ff.Problem(...))")
    return item.problem if isinstance(item, Model) else item


def _as_model(problem: Problem | Model, method: Method, of_model: Mapping[str, Any]) -> Model:
    if isinstance(problem, Model):
        return problem
    known = methods.model_options(method)
    for key in of_model:
        if key not in known:
            raise expected(f"options of {method.name}'s model among {', '.join(known)}", key, "leaving it out")
    if not hasattr(method, "model_for"):
        raise expected("a method that makes a model first", f"method={method.name!r}", "ff.solve(problem)")
    return method.model_for(problem, **of_model)
