"""Has one block enough modes? Solved again with fewer along each axis, it tells its numerical error; more are taken
where that is larger than asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from factorfield.messages.gaussian import Diagonal
from factorfield.methods.resolution import (
    ROUNDING,
    NumericalError,
    beside,
    beyond,
    fewer,
    field_sizes,
    share_left,
    transferred,
)
from factorfield.methods.starts import HELD
from factorfield.model.block import held_names, holding_model
from factorfield.model.choices import (
    GROWTH,
    HOLDS,
    LEAST_GROWTH,
    affordable_modes,
    natural_size,
    starts_by_formula,
)
from factorfield.model.linearisation import linearise
from factorfield.model.model import BlockModel
from factorfield.posterior.gaussian import GaussianPosterior
from factorfield.problem.domain import TIME, Interval, Periodic

Array = NDArray[np.float64]
HELPED = 0.5  # of the error that two growths may leave: else rounding, or a place without derivatives, is what is left
CRUDE = 1e-2  # of the field: an error from which nothing can be said about its decrease
GROSS = 100.0  # sigmas that an equation had if it did not hold, a tenth of its largest term: it is not met at all
FELT = 1e-2  # of the sigmas that statements had if they did not hold: less is rounding
ASIDE = 0.3  # of the tolerance: what an axis may leave without being given more modes


def numerical_error(
    model: BlockModel, weights: Array, std: Array, solve: Callable[[BlockModel], Array]
) -> NumericalError | None:
    """Of the mean `weights`, which are known to `std`; `solve` gives the mean of another model. None where there is
    nothing to compare with."""
    fields, representation = model.problem.fields, model.representation
    about = np.array(weights)
    for name in fields:  # the size of a field is that of its variation about its offset
        about[representation.latents[name].block.start] -= model.prior.mean[representation.latents[name].block.start]
    scale = np.maximum(field_sizes(representation, fields, about), 1e-3 * model.scale)
    columns, axes = [], dict.fromkeys(model.modes, 0.0)
    by_labels = TIME in model.modes and not starts_by_formula(model.problem)
    for axis in (TIME,) if by_labels else model.modes:  # labels of a start show the modes that they need
        coarse = with_fewer(model, axis, weights)
        if coarse is None:
            return None
        found = solve(coarse)
        change = weights - transferred(representation, coarse.representation, found)
        size = field_sizes(representation, fields, change)
        coarser, before = with_fewer(coarse, axis, found), None
        if coarser is not None:
            step = found - transferred(coarse.representation, coarser.representation, solve(coarser))
            before = float(np.max(field_sizes(coarse.representation, fields, step) / scale))
        share = share_left(float(np.max(size / scale)), before)
        change = beyond(share * change, std)
        size = field_sizes(representation, fields, change)
        partner = beside(representation, axis, change, fields)
        length = float(np.max(field_sizes(representation, fields, partner) / scale))
        ratio = float(np.max(size / scale)) / length if length else 0.0
        columns += [change, ratio * partner]
        axes[axis] = float(np.max(size / scale))
    inflation, off = missed(model, weights, np.column_stack(columns))
    everywhere = np.zeros((model.size, len(fields)))
    for index, name in enumerate(fields):
        everywhere[representation.latents[name].block.start, index] = ROUNDING * model.scale + off
    root = np.column_stack([inflation * np.column_stack(columns), everywhere])
    axes = {axis: inflation * size + off / float(np.max(scale)) for axis, size in axes.items()}
    return NumericalError(root, math.hypot(*axes.values()), axes)


def missed(model: BlockModel, weights: Array, root: Array) -> tuple[float, float]:
    """How much more the solution misses what should hold than errors of this root would, at least 1; and by how
    much of a field it misses walls, or equations grossly.

    Too few modes for a layer may agree with fewer still, and both leave out the wall that the layer meets. A field that
    misses a wall is off everywhere.
    """
    found, off, held = [1.0], 0.0, held_names(model)
    for group in (group for group in model.groups if group.name in held):
        misfit = group.misfit(weights)
        if np.mean(misfit**2) > (FELT / HOLDS) ** 2:
            line = linearise(group.relation, group.project(weights), None, group.parameters, group.points)
            spread = group.pull_back(line.slopes, len(weights)) @ root / group.sigma[:, None]
            explained = float(np.mean(np.sum(spread**2, axis=1)))
            if explained > 0.0:  # else modes differ by no more than the belief allows
                found.append(float(np.sqrt(np.mean(misfit**2) / explained)))
            least = GROSS / HOLDS if group.statement.face is None else 0.0
            if np.mean(misfit**2) > least**2:
                missing = float(np.sqrt(np.mean((misfit * group.sigma) ** 2)))
                off = max(off, missing / natural_size(group.statement.relation, model.problem, 1.0))
    return max(found), off


def with_fewer(model: BlockModel, axis: str, weights: Array) -> BlockModel | None:
    """The same model with fewer modes along one axis, from given weights; None: there are too few."""
    problem = model.problem
    order = max(statement.relation.order(axis) for statement in problem.statements)
    least = order + 1 if isinstance(problem.domain[axis], Interval) else 1
    count = fewer(model.modes[axis], least)
    if count is None:
        return None
    # an equation's given sigma speaks at every point: equally many points say as much
    told = any(s.kind == "equation" and s.sigma is not None for s in problem.statements)
    points = model.settings["collocation"] if told else model.collocation
    readout = model.representation.forms[problem.fields[0]].readout
    few = holding_model(problem, modes={**model.modes, axis: count}, collocation=points, readout=readout)
    few = replace(few.with_sigmas(model.sigmas), start=model.start)
    if model.is_linear:
        return few
    near = transferred(few.representation, model.representation, weights, few.prior.mean)
    return replace(few, first_weights=near)


def with_held_coefficients(coarse: BlockModel, model: BlockModel, weights: Array) -> BlockModel:
    """A model with fewer modes whose unknown coefficients are those that were found: what is left is the error of the
    fields alone, and no search among coefficients blurs it."""
    mean, std = np.array(coarse.prior.mean), np.array(coarse.prior.std)
    for name in (*model.problem.unknowns, *model.problem.functions):
        for unit in model.representation.forms[name].latents:
            block = coarse.representation.latents[unit].block
            mean[block] = weights[model.representation.latents[unit].block]
            std[block] *= HELD
    prior = Diagonal.from_moments(mean, std**2)
    return replace(coarse, prior=prior, first_weights=transferred(coarse.representation, model.representation, weights))


def answered(model: BlockModel, posterior: GaussianPosterior, root: Array) -> Array:
    """Errors of the fields at given coefficients, with what all weights do about them: where a field is off at a
    sensor, the belief moves as if the reading were off by as much to the other side."""
    pulled = np.zeros_like(root)
    for group in (group for group in model.groups if group.statement.kind == "observation"):
        _, rows = group.linear_misfit(posterior.mean)
        pulled += rows.T @ (rows @ root)
    return root - posterior.root @ (posterior.root.T @ pulled)


def richer(model: BlockModel, axes: dict[str, float], tolerance: float) -> BlockModel | None:
    """The same problem with more modes along the axes whose errors are too large, or None; points and readout stay as
    asked.

    Along an axis there are at most as many features as points that the user asked for: those settle no more.
    """
    problem, automatic, wanted = model.problem, model.automatic, dict(model.modes)
    for axis in automatic:
        if axes[axis] > ASIDE * tolerance:
            wanted[axis] = math.ceil((2.0 if axes[axis] > CRUDE else GROWTH) * model.modes[axis])
    for axis in model.collocation.keys() & set(automatic):
        points, of_mode = model.collocation[axis], 2 if isinstance(problem.domain[axis], Periodic) else 1
        wanted[axis] = max(model.modes[axis], min(wanted[axis], (points - 1) // of_mode))
    counts = affordable_modes(problem, wanted, automatic, model.is_linear)
    if not any(counts[axis] > LEAST_GROWTH * model.modes[axis] for axis in automatic):
        return None
    readout = model.representation.forms[problem.fields[0]].readout
    more = holding_model(problem, modes=counts, collocation=model.collocation, readout=readout)
    history = (*model.errors_before, math.hypot(*axes.values()))
    settings = {**more.settings, "automatic": list(automatic)}
    return replace(more, automatic=automatic, settings=settings, errors_before=history)


def is_helping(model: BlockModel, error: float) -> bool:
    """Have the last two growths reduced the error?"""
    return error > CRUDE or len(model.errors_before) < 2 or error < HELPED * model.errors_before[-2]
