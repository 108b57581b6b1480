"""A model of windows made again with the choices of a solved one: of a solution from a file, or to a later end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from factorfield.model.activation import Activation
from factorfield.model.model import WindowModel, is_standing
from factorfield.model.windowed import jumps_of, window_model
from factorfield.posterior.windows import ChainPosterior
from factorfield.problem.problem import Problem
from factorfield.solution import Solution

NEEDED = ("degree", "windows", "sigma")  # of the settings; files of early versions lack some


def is_complete(solution: Solution) -> bool:
    """Does a file hold what it takes? Sites of other than Gaussian noise are not kept."""
    settings = solution.settings
    modes = "modes" in settings or "cells" in settings
    gaussian = all(statement.noise is None for statement in solution.problem.statements)
    return modes and gaussian and all(key in settings for key in NEEDED)


def model_of(solution: Solution) -> WindowModel:
    """The model of a solution that was read from a file."""
    posterior = solution.posterior
    assert isinstance(posterior, ChainPosterior)
    activation = posterior.representation.forms[solution.problem.fields[0]].activation
    model = _remade(solution.problem, solution.settings, activation)
    return replace(model, edges=tuple(float(edge) for edge in posterior.edges), cells=posterior.cells)


def longer(model: WindowModel, problem: Problem) -> WindowModel:
    """The model up to a later end of time; its windows are still those up to the old one.

    The error of a wall is a sum of functions over the whole of time: with one of these, new ones have to be found.
    """
    if not any(statement.error is not None and is_standing(statement) for statement in problem.statements):
        return replace(model.with_condition(problem), jumps=jumps_of(problem))
    activation = model.representation.forms[problem.fields[0]].activation
    return replace(_remade(problem, model.settings, activation), edges=model.edges, growing=())


def _remade(problem: Problem, settings: Mapping[str, Any], activation: Activation) -> WindowModel:
    """Modes or cells and degree as they were; noise levels that had been estimated as they ended."""
    key = "cells" if "cells" in settings else "modes"
    model = window_model(problem, degree=settings["degree"], activation=activation, **{key: settings[key]})
    stated = dict(settings["sigma"])
    return model.with_sigmas([
        replace(sigma, value=stated[statement.name], origin="estimated", is_open=False) if sigma.is_open else sigma
        for statement, sigma in zip(problem.statements, model.sigmas, strict=True)
    ])  # fmt: skip
