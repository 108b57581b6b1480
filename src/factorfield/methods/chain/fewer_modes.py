"""What modes and polynomials in time leave out: the same windows with fewer of both tell, and with fewer still, how
fast more of them help.

Labels of a start show the modes that they need, and the std knows what those leave out of them: there only polynomials
in time are fewer. Unknown coefficients stay as they were found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import FAILED
from factorfield.messages.elimination import smoothed
from factorfield.methods.chain.passes import Path, filter_between, smooth
from factorfield.methods.chain.plane import is_told, told_path
from factorfield.methods.chain.solver import WindowSolver
from factorfield.methods.resolution import (
    ROUNDING,
    SLOWEST,
    NumericalError,
    beside,
    beyond,
    fewer,
    field_sizes,
    likely_part,
    share_left,
    transferred,
)
from factorfield.model.model import WindowModel
from factorfield.model.representation import Representation, window_representation
from factorfield.model.windowed import window_model
from factorfield.problem.domain import Interval

Array = NDArray[np.float64]
LEAST_DEGREE = 4


def numerical_error(
    model: WindowModel, path: Path, iterations: int, place: Array | None = None
) -> NumericalError | None:
    """Of the mean path of a model between its edges, at a place of what was searched; None where there is nothing to
    compare with."""
    coarse = with_fewer(model, path.centres, place)
    found = None if coarse is None else mean_path(coarse, iterations)
    if coarse is None or found is None:
        return None
    weights, spreads = _believed(model, path)
    change = _difference(model, coarse, weights, found)
    coarser = with_fewer(coarse, found, place)
    fewest = None if coarser is None else mean_path(coarser, iterations)
    before = None
    if coarser is not None and fewest is not None:
        before = float(np.max(_sizes(coarse, _difference(coarse, coarser, found, fewest))))
    scale = np.maximum(_sizes(model, [own - model.prior.mean for own in weights]), 1e-3 * model.scale)
    of_modes, share = _share_of_modes(model, coarse, weights), share_left(float(np.max(_sizes(model, change))), before)
    likely = max(likely_part(share) if coarse.modes != model.modes else 1.0, min(1.0, of_modes / share))
    share = max(share, of_modes)
    errors = [beyond(share * own, spread) for own, spread in zip(change, spreads, strict=True)]
    partners = [_beside(model, index, own) for index, own in enumerate(errors)]
    columns = [errors]
    for partner in zip(*partners, strict=True):
        length = float(np.max(_sizes(model, partner) / scale))
        ratio = float(np.max(_sizes(model, errors) / scale)) / length if length else 0.0
        columns.append([ratio * own for own in partner])
    root = np.stack([np.column_stack(own) for own in zip(*columns, strict=True)])
    relative = likely * float(np.max(_sizes(model, errors) / scale))
    along = _along(model, coarse, errors, likely / scale)
    return NumericalError(_with_rounding(model, root), relative, along, _left_open(model, spreads, scale))


def with_fewer(model: WindowModel, weights: Sequence[Array], place: Array | None) -> WindowModel | None:
    """The same windows with fewer modes and polynomials, near given weights; None: there are too few."""
    problem, degree = model.problem, model.degree - 1
    if degree < LEAST_DEGREE:
        return None
    modes = dict(model.modes)
    for axis in modes if model.traits.starts_by_formula else ():
        order = max(statement.relation.order(axis) for statement in problem.statements)
        least = order + 1 if isinstance(problem.domain[axis], Interval) else 1
        modes[axis] = fewer(modes[axis], least) or modes[axis]
    form = model.representation.forms[problem.fields[0]]
    few = window_model(problem, modes=modes, degree=degree, windows=model.edges, activation=form.activation)
    start = {name: float(weights[-1][block.start]) for name, block in _numbers(model)}
    # a start that jumps at a wall is loosened point by point, and has other points here
    pairs = zip(few.sigmas, model.sigmas, strict=True)
    sigmas = [own if np.shape(own.value) != np.shape(told.value) else told for own, told in pairs]
    few = replace(few.with_sigmas(sigmas), growing=(), start={**model.start, **start})
    return few if place is None else few.at(place)


def mean_path(model: WindowModel, iterations: int) -> list[Array] | None:
    """The mean of all weights in every window, or None where the windows have no solution."""
    solver = WindowSolver(model, iterations)
    try:
        if is_told(model):
            return told_path(model, 0.0, False, None).centres
        path = filter_between(solver, model.edges or (), [], False)
        smooth(solver, path, None)
    except FAILED:
        return None
    return _believed(model, path)[0]


def _numbers(model: WindowModel) -> list[tuple[str, slice]]:
    latents = model.representation.latents
    return [(name, latents[name].block) for name in model.problem.unknowns if name in latents]


def _believed(model: WindowModel, path: Path) -> tuple[list[Array], list[Array]]:
    """Means and standard deviations of all weights, window by window."""
    order, means, spreads = np.concatenate(model.layout), [], []
    for start, link, future in zip(path.starts, path.links, path.futures, strict=True):
        known = smoothed(start, link, future)
        mean, spread = np.empty(len(order)), np.empty(len(order))
        mean[order], spread[order] = known.mean, np.sqrt(np.sum(known.root**2, axis=1))
        means.append(mean)
        spreads.append(spread)
    return means, spreads


def _moved(model: WindowModel) -> list[Representation]:
    return [window_representation(model.representation, *edges) for edges in pairwise(model.edges or ())]


def _difference(
    model: WindowModel, coarse: WindowModel, weights: Sequence[Array], others: Sequence[Array]
) -> list[Array]:
    pairs = zip(weights, others, strict=True)
    return [own - transferred(model.representation, coarse.representation, other) for own, other in pairs]


def _sizes(model: WindowModel, weights: Sequence[Array]) -> Array:
    """Root mean squares of the fields over space and time."""
    lengths = np.diff(model.edges or ())
    pairs = zip(_moved(model), weights, strict=True)
    squares = [field_sizes(moved, model.problem.fields, own) ** 2 for moved, own in pairs]
    return np.asarray(np.sqrt(lengths @ np.array(squares) / lengths.sum()), float)


def _beside(model: WindowModel, index: int, change: Array) -> list[Array]:
    """Derivatives of the difference along every axis."""
    edges, fields = model.edges or (), model.problem.fields
    moved = window_representation(model.representation, edges[index], edges[index + 1])
    return [beside(moved, axis, change, fields) for axis in model.problem.domain.names]


def _share_of_modes(model: WindowModel, coarse: WindowModel, weights: Sequence[Array]) -> float:
    """Of the modes that a coarser model has not, how much is likely to follow beyond the last one: by how they decay.

    With amplitudes b1 and b2 of the first and the second half of them, modes that decay geometrically leave out
    (b2 / b1)^2 of the whole. Three solutions alone are misled where a kink shows only after the smooth part is held.
    """
    lengths, found = np.diff(model.edges or ()), 0.0
    for axis in model.modes:
        for name in model.problem.fields:
            latent = model.representation.latents[model.representation.forms[name].latents[0]]
            position, shape = latent.basis.axes.index(axis), latent.basis.shape
            first = coarse.representation.latents[model.representation.forms[name].latents[0]].basis.shape[position]
            states = np.stack([own[latent.block].reshape(shape)[0] for own in weights])
            power = np.moveaxis(np.tensordot(lengths, states**2, 1), position - 1, 0)
            along = power.reshape(shape[position], -1).sum(axis=1)
            middle = (first + shape[position]) // 2
            lower, upper = float(np.sqrt(along[first:middle].sum())), float(np.sqrt(along[middle:].sum()))
            if lower > ROUNDING * float(np.sqrt(along.sum())):
                decay = min((upper / lower) ** 2, SLOWEST)
                found = max(found, decay / (1.0 - decay))
    return found


def _along(model: WindowModel, coarse: WindowModel, errors: Sequence[Array], counted: Array) -> dict[str, float]:
    """Per space axis, the part of errors in modes that the coarser model has not: what more of them would hold.

    `counted` is what a field's root mean square counts for."""
    found = {}
    for axis in model.modes:
        beyond_axis = [np.zeros_like(own) for own in errors]
        for name in model.problem.fields:
            for unit in model.representation.forms[name].latents:
                latent, other = model.representation.latents[unit], coarse.representation.latents[unit]
                position = latent.basis.axes.index(axis)
                for part, own in zip(beyond_axis, errors, strict=True):
                    table = np.moveaxis(np.array(own[latent.block].reshape(latent.basis.shape)), position, 0)
                    table[: other.basis.shape[position]] = 0.0
                    part[latent.block] = np.moveaxis(table, 0, position).ravel()
        found[axis] = float(np.max(_sizes(model, beyond_axis) * counted))
    return found


def _left_open(model: WindowModel, spreads: Sequence[Array], scale: Array) -> float:
    """Root mean square of the fields' standard deviation at the windows' starts: features of space are orthogonal, and
    the square of each but the first is one half on average."""
    found = []
    for index, name in enumerate(model.problem.fields):
        latent = model.representation.latents[model.representation.forms[name].latents[0]]
        states = [own[latent.block].reshape(latent.basis.shape)[0] for own in spreads]
        half = 0.5 ** (len(latent.basis.shape) - 1)
        found.append(float(np.sqrt(half * np.mean([np.sum(own**2) for own in states])) / scale[index]))
    return max(found)


def _with_rounding(model: WindowModel, root: Array) -> Array:
    """A column more for each field: no error is smaller than rounding."""
    everywhere = np.zeros((*root.shape[:2], len(model.problem.fields)))
    for index, name in enumerate(model.problem.fields):
        latent = model.representation.latents[model.representation.forms[name].latents[0]]
        everywhere[:, latent.block.start, index] = ROUNDING * model.scale
    return np.concatenate([root, everywhere], axis=2)
