"""What a solve will roughly need, from the size of its model and how fast this machine multiplies matrices.

An order of magnitude: how many windows and iterations it takes shows only on the way. Nothing is solved but two first
short windows, which tell how many modes the start, the walls and sources ask for.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from factorfield import methods, threads
from factorfield.errors import FAILED, expected, nearest
from factorfield.forward.layout import Layout, NotAMap
from factorfield.inference.ladder import Ladder
from factorfield.inference.latents import Latents, latents_of
from factorfield.inference.measurements import Measurements
from factorfield.inference.solve import Search
from factorfield.methods import taken
from factorfield.methods.chain.modes import grown
from factorfield.methods.chain.passes import filter_between
from factorfield.methods.chain.solver import WindowSolver
from factorfield.model.block import block_model, block_plan
from factorfield.model.model import BlockModel, WindowModel, check_memory
from factorfield.model.searched import position
from factorfield.model.tree import TreeModel, cost_for
from factorfield.model.windowed import window_rows
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Problem
from factorfield.solving import default_model

MODELS = ("default", "paper")
SMALLEST_SOLVE = 0.3  # seconds that the smallest solve takes
FACTORISATION_SPEED = 0.25  # of the speed of matrix products that factorisations reach
STEP = 0.005  # seconds of Python around every factorisation
NONLINEAR = 4.0  # factorisations per window, or of a model, where the relations are not linear
WITH_UNKNOWNS = 8.0  # the same, where coefficients are unknown
# over cells of a plane: operations of a window's sparse steps and of its dense map, bytes for every point
SPARSE_WORK, DENSE_WORK, SPARSE_BYTES = 2e3, 150.0, 2e3
PASSES = 200.0  # operations per entry of a window's matrix where waves do not mix: copies and sums, no products
TRIED = 2.0  # windows tried, over those kept
TYPICAL_LEVEL = 2  # of the resolution of a map
TYPICAL_WINDOWS = 20  # typically: short ones where a fast start has died away become longer
LARGEST_TRIED, FEW_ITERATIONS = 1000, 10  # weights of a window that is tried, and its iterations
LARGEST_MADE = 1 << 28  # bytes of matrices up to which a model is made to be looked at
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


def estimate(
    problem: Problem, method: str | None, options: Mapping[str, object], model: Mapping[str, object]
) -> Estimate:
    """The size of the first model that `solve` would solve, and what it costs; a large one is not made for it."""
    large = _of_large_block(problem, method, options, model)
    if large is not None:
        return large
    subject = asked(problem, model)
    name = method or methods.default_method(subject)
    if isinstance(subject, BlockModel):
        methods.get(name, **options)
        return _of_block(subject, name)
    if name == "forward":
        methods.get(name, **options)
        return _of_map(problem)
    first = default_model(problem, method=name, **options)
    if isinstance(first, TreeModel):
        return _of_boxes(first)
    return _of_block(first, name) if isinstance(first, BlockModel) else _of_windows(taken(first, WindowModel, name))


def _of_large_block(
    problem: Problem, method: str | None, options: Mapping[str, object], model: Mapping[str, object]
) -> Estimate | None:
    """Of a model of one block whose matrices are large, by its plan; None of any other."""
    chosen: dict[str, Any] = {key: value for key, value in model.items() if key != "name"}
    name = method or ("joint" if chosen else methods.default_method(problem))
    if name in ("chain", "forward", "tree") or model.get("name") == "paper":
        return None
    if not chosen:
        chosen = methods.configured(name, options)[1]
    plan = block_plan(problem, **{key: chosen[key] for key in ("modes", "collocation") if key in chosen})
    size, rows = plan.representation.size, plan.rows
    if 8 * size * (size + rows) < LARGEST_MADE:
        return None
    check_memory(size, rows)
    return _of_size(problem, name, size, rows, 8 * size * rows, all(s.relation.is_linear for s in problem.statements))


def asked(problem: Problem, settings: Mapping[str, object]) -> Problem | BlockModel:
    """The problem, for which a method makes its own default model, or the model that was asked for."""
    return problem if settings in ({}, {"name": "default"}) else built(problem, settings)


def built(problem: Problem, settings: Mapping[str, object]) -> BlockModel:
    """The model that a file's [model] describes."""
    choices: dict[str, Any] = dict(settings)  # a file's are checked by its schema
    name = choices.pop("name", "default")
    if name not in MODELS:
        raise expected("the model default or paper", name, nearest(name, MODELS, "'default'"))
    if name == "default":
        return block_model(problem, **choices)
    from factorfield.model.paper import paper_model

    if "collocation" in choices:
        raise expected("modes only with the paper's model", "collocation", "leaving it out")
    return paper_model(problem, **choices)


def _of_block(model: BlockModel, name: str) -> Estimate:
    return _of_size(model.problem, name, model.size, model.factors, model.memory, model.is_linear)


def _of_size(problem: Problem, name: str, size: int, factors: int, design: int, is_linear: bool) -> Estimate:
    """Of one block by its numbers of weights and factors, and the bytes of its design rows."""
    rows, weights = float(factors), float(size)
    if name in SWEEPS:
        work, memory = SWEEPS[name] * 4.0 * rows * weights, 3.0 * design
    else:
        work = (2.0 * rows * weights**2 + weights**3) * _repeats(problem, is_linear)
        memory = design + 8.0 * (rows * weights + COPIES * weights**2)
    return Estimate(name, size, factors, 1, memory, SMALLEST_SOLVE + work / (FACTORISATION_SPEED * speed()))


def _with_enough_modes(model: WindowModel) -> WindowModel:
    """The model that the first windows ask for, at the coefficients that are thought likely."""
    horizon = model.problem.domain[TIME]
    length = horizon.length / 2 ** max(model.first_level, 1)
    edges = (horizon.lower, horizon.lower + length, horizon.lower + 2.0 * length)
    while model.growing and model.size < LARGEST_TRIED:
        begun = model.at(position(model.coordinates, model.start)) if model.coordinates else model
        try:
            axis = filter_between(WindowSolver(begun, FEW_ITERATIONS), edges, [], True).unresolved
        except FAILED:
            break
        if axis is None:
            break
        model = grown(model, axis, {})
    return model


def _of_windows(first: WindowModel) -> Estimate:
    if first.in_plane:
        return _of_plane(first)
    model = _with_enough_modes(first)
    weights, windows, traits = model.size, min(2**model.first_level, TYPICAL_WINDOWS), model.traits
    factors = window_rows(model.problem, model.representation, model.space.points)
    steps = TRIED * windows * _repeats(model.problem, traits.linear)
    if traits.separable:  # waves do not mix: each by itself
        work, rows = steps * PASSES * weights**2, 2.0 * weights**2
    else:
        lengths = min(windows, model.first_level + 1)  # one serves all windows of a length, at given coefficients
        factorised = lengths * (1.0 + len(model.coordinates)) if traits.linear and traits.autonomous else steps
        work, rows = factorised * (2.0 * factors * weights**2 + weights**3), COPIES * factors * weights
    memory = 8.0 * (rows + 2.0 * windows * weights**2 / model.degree)
    seconds = SMALLEST_SOLVE + STEP * steps + work / (FACTORISATION_SPEED * speed())
    return Estimate("chain", weights, factors, windows, memory, seconds)


def _of_plane(model: WindowModel) -> Estimate:
    """Over cells of a plane: sparse systems for the mean path and, unless formulas tell everything, dense windows."""
    windows, splines = TYPICAL_WINDOWS, len(model.layout[0])
    points = int(np.prod([len(x) for x in model.space.points.values()])) * model.degree
    work, memory = SPARSE_WORK * windows * splines**2, SPARSE_BYTES * points
    if not model.holds:
        work += DENSE_WORK * windows * splines**3
        memory += 8.0 * windows * splines**2 * (2 * model.degree + 7)
    seconds = SMALLEST_SOLVE + work / (FACTORISATION_SPEED * speed())
    return Estimate("chain", model.size, points, windows, memory, seconds)


def _of_map(problem: Problem) -> Estimate:
    """By the map from latents to fields: windows that are factorised, and a column of its tangent for every latent."""
    try:
        layout = Layout.of(problem)
        ladder = Ladder(layout, Latents(latents_of(layout)), Search.tolerance)
    except NotAMap as reason:
        raise expected("a problem whose equations give its fields", str(reason), "another method") from None
    system, count = ladder.discrete(TYPICAL_LEVEL).system, Measurements.of(problem).count
    windows, stages = (TYPICAL_WINDOWS, ladder.stages) if ladder.layout.moves else (1, 1)
    size, columns = stages * system.size, float(ladder.latents.size)
    if windows == 1:
        columns = min(columns, float(count))
    row = stages * system.pattern.slots / system.size  # entries of a row of what is factorised
    work = windows * size * (row**2 + 4.0 * row * (columns + 1.0)) * _repeats(problem, ladder.layout.is_affine)
    memory = 8.0 * (COPIES * size * row + windows * size * (columns + 1.0))
    seconds = SMALLEST_SOLVE + TRIED * work / (FACTORISATION_SPEED * speed())
    return Estimate("forward", system.size, count, windows, memory, seconds)


def _of_boxes(model: TreeModel) -> Estimate:
    cost, factors = cost_for(model.problem, model.modes, model.degree), sum(group.count for group in model.groups)
    repeats = _repeats(model.problem, model.is_linear)
    seconds = SMALLEST_SOLVE + repeats * (STEP * len(model.boxes) + cost.operations / (FACTORISATION_SPEED * speed()))
    return Estimate("tree", model.size, factors, 1, 8.0 * cost.numbers, seconds)


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
