"""What a solve will roughly need, from the size of its model and how fast this machine multiplies matrices.

An order of magnitude: how many windows and iterations it takes shows only on the way. Nothing is solved.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from factorfield import methods
from factorfield.domain import TIME
from factorfield.errors import expected
from factorfield.model import Model, default_model
from factorfield.problem import Problem

START = 0.3  # seconds that the smallest solve takes
SHARE = 0.25  # of the speed of matrix products that factorisations reach
NONLINEAR = 8.0  # factorisations per window, or of a model, where the relations are not linear
TRIED = 2.0  # windows tried, over those kept
MOST_WINDOWS = 20  # typically: short ones where a fast start has died away become longer
WITHIN = 10.0  # factor that seconds were off by, at most, on 17 of 20 problems of the gallery (10 of 20: at most 5)
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
    if choices.pop("name", "default") == "default":
        return default_model(problem, **choices)
    from factorfield.paper import paper_model

    if "collocation" in choices:
        raise expected("modes only with the paper's model", "collocation", "leaving it out")
    return paper_model(problem, **choices)


def _of_model(model: Model, name: str) -> Estimate:
    rows, weights = float(model.factors), float(model.size)
    if name in SWEEPS:
        work, memory = SWEEPS[name] * 4.0 * rows * weights, 3.0 * model.memory
    else:
        work = (2.0 * rows * weights**2 + weights**3) * (1.0 if model.is_linear else NONLINEAR)
        memory = model.memory + 8.0 * (rows * weights + COPIES * weights**2)
    return Estimate(name, model.size, model.factors, 1, memory, START + work / (SHARE * speed()))


def _of_chain(problem: Problem, chosen: Any) -> Estimate:
    from factorfield.methods.chain_setup import set_up, window_rows

    setup = set_up(problem, chosen.degree, chosen.modes, chosen.activation)
    weights, windows = setup.representation.size, min(2**setup.first_level, MOST_WINDOWS)
    factors = window_rows(problem, setup.representation, setup.points)
    tried = TRIED * windows
    if setup.plain:  # waves do not mix: each by itself, once
        blocks = max(1.0, float(np.prod([len(x) for x in setup.points.values()])))
        work = 2.0 * (weights / blocks) ** 3 * blocks * TRIED + tried * 20.0 * (weights / setup.settings["degree"]) ** 3
    else:
        shared = setup.is_linear and setup.autonomous
        times = TRIED if shared else tried * (1.0 if setup.is_linear else NONLINEAR)
        work = times * (2.0 * factors * weights**2 + weights**3)
    memory = 8.0 * (COPIES * factors * weights + 2.0 * windows * weights**2 / setup.settings["degree"])
    return Estimate("chain", weights, factors, windows, memory, START + work / (SHARE * speed()))


def speed(size: int = 192, repeats: int = 5) -> float:
    """Floating-point operations per second of a small matrix product: the best of a few milliseconds."""
    matrix = np.random.default_rng(0).standard_normal((size, size))
    best = np.inf
    for _ in range(repeats):
        begin = time.perf_counter()
        matrix @ matrix
        best = min(best, time.perf_counter() - begin)
    return float(2.0 * size**3 / best)
