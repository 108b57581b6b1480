"""What a solve will roughly need, from the size of its model and how fast this machine multiplies matrices.

An order of magnitude: how many windows and iterations it takes shows only on the way. Nothing is solved.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from factorfield import methods, threads
from factorfield.errors import expected, nearest
from factorfield.model.model import Model, default_model
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Problem

MODELS = ("default", "paper")
START = 0.3  # seconds that the smallest solve takes
SHARE = 0.25  # of the speed of matrix products that factorisations reach
STEP = 0.005  # seconds of Python around every factorisation
NONLINEAR = 4.0  # factorisations per window, or of a model, where the relations are not linear
WITH_UNKNOWNS = 8.0  # the same, where coefficients are unknown
PASSES = 200.0  # operations per entry of a window's matrix where waves do not mix: copies and sums, no products
TRIED = 2.0  # windows tried, over those kept
MOST_WINDOWS = 20  # typically: short ones where a fast start has died away become longer
WITHIN = 5.0  # factor that seconds were off by, at most, on 24 to 28 of 32 templates and problems of the gallery
COPIES = 4.0  # matrices of the size of the rows that live at once
SWEEPS = {"mean-field": 300.0, "sgd": 3e4, "vi": 3e5, "hmc": 4e5}  # passes over all rows, at most or typically


@dataclass(frozen=True)
class Estimate:
    method: str
    weights: int  # of one window, where there are windows
    factors: int
    windows: int  # typically
    memory: float  # bytes
    seconds: float


def estimate(problem: Problem, method: str | None, options: Mapping[str, Any], model: Mapping[str, Any]) -> Estimate:
    """The size of the model that `solve` would build, and what it costs."""
    name = method or ("chain" if TIME in problem.domain and not model else "joint")
    chosen: Any = methods.get(name, **options)
    return _of_chain(problem, chosen) if name == "chain" else _of_model(built(problem, model), name)


def built(problem: Problem, settings: Mapping[str, Any]) -> Model:
    """The model that a file's [model] describes."""
    choices = dict(settings)
    name = choices.pop("name", "default")
    if name not in MODELS:
        raise expected("the model default or paper", name, nearest(name, MODELS, "'default'"))
    if name == "default":
        return default_model(problem, **choices)
    from factorfield.model.paper import paper_model

    if "collocation" in choices:
        raise expected("modes only with the paper's model", "collocation", "leaving it out")
    return paper_model(problem, **choices)


def _of_model(model: Model, name: str) -> Estimate:
    rows, weights = float(model.factors), float(model.size)
    if name in SWEEPS:
        work, memory = SWEEPS[name] * 4.0 * rows * weights, 3.0 * model.memory
    else:
        work = (2.0 * rows * weights**2 + weights**3) * _repeats(model.problem, model.is_linear)
        memory = model.memory + 8.0 * (rows * weights + COPIES * weights**2)
    return Estimate(name, model.size, model.factors, 1, memory, START + work / (SHARE * speed()))


def _of_chain(problem: Problem, chosen: Any) -> Estimate:
    from factorfield.model.windowed import set_up, window_rows

    setup = set_up(problem, chosen.degree, chosen.modes, chosen.activation)
    weights, windows = setup.representation.size, min(2**setup.first_level, MOST_WINDOWS)
    factors = window_rows(problem, setup.representation, setup.points)
    steps = TRIED * windows * _repeats(problem, setup.is_linear)
    if setup.plain:  # waves do not mix: each by itself
        work, rows = steps * PASSES * weights**2, 2.0 * weights**2
    else:
        factorised = TRIED if setup.is_linear and setup.autonomous else steps  # one that serves all windows
        work, rows = factorised * (2.0 * factors * weights**2 + weights**3), COPIES * factors * weights
    memory = 8.0 * (rows + 2.0 * windows * weights**2 / setup.settings["degree"])
    return Estimate("chain", weights, factors, windows, memory, START + STEP * steps + work / (SHARE * speed()))


def _repeats(problem: Problem, is_linear: bool) -> float:
    if is_linear:
        return 1.0
    return WITH_UNKNOWNS if problem.unknowns or problem.functions else NONLINEAR


def speed(size: int = 192, repeats: int = 25) -> float:
    """Floating-point operations per second of a small matrix product on one thread, as small solves use it.

    The best of many: beside other work, most are interrupted, and several threads would wait for each other.
    """
    matrix = np.random.default_rng(0).standard_normal((size, size))
    best = np.inf
    with threads.suited_to(size):
        for _ in range(repeats):
            begin = time.perf_counter()
            matrix @ matrix
            best = min(best, time.perf_counter() - begin)
    return float(2.0 * size**3 / best)
