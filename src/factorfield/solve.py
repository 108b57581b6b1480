"""The one verb."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from typing import Any, overload

from factorfield import methods
from factorfield.errors import expected
from factorfield.methods import Method, Report
from factorfield.model import Model, default_model
from factorfield.problem import Problem
from factorfield.solution import Solution

DEFAULT_METHOD = "joint"


@overload
def solve(problem: Problem | Model, method: str | Method = ..., progress: Any = ..., **options: Any) -> Solution: ...
@overload
def solve(
    problem: Sequence[Problem | Model], method: str | Method = ..., progress: Any = ..., **options: Any
) -> list[Solution]: ...
def solve(
    problem: Problem | Model | Sequence[Problem | Model],
    method: str | Method = DEFAULT_METHOD,
    progress: bool | Report | None = None,
    **options: Any,
) -> Solution | list[Solution]:
    """Find the posterior of a Problem (through the default model) or of a Model; a list gives a list.

    method    a name, or a configured object such as ff.methods.Joint(); `options` configure a method given by name
    progress  True for a bar on a terminal, or a callback (text, fraction done)
    """
    if isinstance(problem, list | tuple):
        return [solve(item, method, progress, **options) for item in problem]
    if not isinstance(problem, Problem | Model):
        raise expected("an ff.Problem or a model", type(problem).__name__, "ff.solve(ff.Problem(...))")
    chosen = methods.get(method, **options) if isinstance(method, str) else method
    model = problem if isinstance(problem, Model) else default_model(problem)
    if progress is True:
        from factorfield.progress import bar

        with bar() as report:
            return chosen.run(model, report)
    return chosen.run(model, progress if callable(progress) else None)


class _Verb(types.ModuleType):
    """`factorfield.solve` is this module and the public verb at once: importing the module must not hide the verb."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return solve(*arguments, **options)


sys.modules[__name__].__class__ = _Verb
