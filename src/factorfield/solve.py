"""The one verb."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, overload

from factorfield import methods
from factorfield.domain import TIME
from factorfield.errors import expected, recorded
from factorfield.methods import Method, Report
from factorfield.model import Model, default_model
from factorfield.problem import Problem
from factorfield.progress import bar
from factorfield.solution import Solution


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
    progress: bool | Report | None = None,
    **options: Any,
) -> Solution | list[Solution]:
    """Find the posterior of a Problem (through the default model) or of a Model; a list gives a list
    (sampling and gradient methods then advance all models that share their design at once).

    method    a name, or a configured object such as ff.methods.Joint(); `options` configure a method given by name.
              None: "chain" for problems with time, "joint" for models and problems without
    progress  True for a bar on a terminal, or a callback (text, fraction done)
    """
    many = isinstance(problem, Sequence)
    items = list(problem) if isinstance(problem, Sequence) else [problem]
    name = _suited(items) if method is None else method
    chosen = methods.get(name, **options) if isinstance(name, str) else name
    models, advice = [], []
    for item in items:
        with recorded() as told:
            models.append(_as_model(item, getattr(chosen, "takes_problem", False)))
        advice.append(told)
    with bar() if progress is True else nullcontext(progress if callable(progress) else None) as report:
        together = getattr(chosen, "run_all", None)  # methods that advance trajectories in lockstep
        if together:
            with recorded() as told:  # which of them it is about, the methods do not say
                solutions = together(models, report)
            advice = [[*one, *told] for one in advice]
        else:
            solutions = []
            for model, one in zip(models, advice, strict=True):
                with recorded() as told:
                    solutions.append(chosen.run(model, report))
                one += told
    solutions = [replace(s, warnings=tuple(one)) for s, one in zip(solutions, advice, strict=True)]
    return solutions if many else solutions[0]


def _suited(items: Sequence[Problem | Model]) -> str:
    """The default method: windows of time where there is time and the representation is still open."""
    return "chain" if all(isinstance(item, Problem) and TIME in item.domain for item in items) else "joint"


def _as_model(problem: Problem | Model, plain: bool) -> Any:
    """What a method takes: a model, or the problem itself if it chooses its own (chain)."""
    if not isinstance(problem, Problem | Model):
        raise expected("an ff.Problem or a model", type(problem).__name__, "ff.solve(ff.Problem(...))")
    return problem if plain or isinstance(problem, Model) else default_model(problem)


class _Verb(types.ModuleType):
    """`factorfield.solve` is this module and the public verb at once: importing the module must not hide the verb."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return solve(*arguments, **options)


sys.modules[__name__].__class__ = _Verb
