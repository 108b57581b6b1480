"""Are the cells small enough? The same problem on cells twice as wide tells, and on cells four times as wide, how fast
halving them helps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from factorfield.model.choices import natural_size
from factorfield.model.representation import Latent
from factorfield.model.singular import reads_slopes, shares_beside, singular_places
from factorfield.model.splines import Spline
from factorfield.model.tree import TreeModel, prolonged, with_cells

Array = NDArray[np.float64]
FEWEST = 2  # cells of a bounded axis that are worth comparing with
GROSS = 0.1  # of its largest term: an equation that is missed by more is not met at all
FEW = 1e-9  # of the splines around: none of them lies in the region
ROUNDING = 1e-10  # of the field: a smaller error is none, also of a field that is constant
FELT = 1e-3  # of the field's size: a wall that is missed by more
FAST_BESIDE_CORNERS = 0.5  # what is left of an error when cells are halved, at least, where fields are singular
SLOW_BESIDE_CORNERS = 0.75  # the same where fields are singular: fluxes past a re-entrant corner come in slowly
SLOWEST = 0.5  # what is left of an error when cells are halved, at most: beyond, nothing has been seen to converge


@dataclass(frozen=True, eq=False)
class NumericalError:
    """Standard deviations of every weight's numerical error, and its size relative to the fields."""

    std: Array
    relative: float


def coarser(model: TreeModel) -> TreeModel | None:
    """On cells twice as wide, along the axes that have enough of them."""
    least = {name: model.degree + 1 if spline.periodic else FEWEST for name, spline in model.splines.items()}
    cells = {name: n // 2 if n % 2 == 0 and n // 2 >= least[name] else n for name, n in model.modes.items()}
    return with_cells(model, cells) if cells != model.modes else None


def numerical_error(model: TreeModel, weights: Array, mean: Callable[[TreeModel], Array]) -> NumericalError:
    """By comparing two resolutions, and a third for the rate; `mean` finds the weights on other cells."""
    wide = coarser(model)
    if wide is None:
        return NumericalError(np.zeros(model.size), np.nan)
    on_wide = mean(wide)
    fastest, slowest = 2.0 ** -(model.degree + 1), SLOWEST
    if singular_places(model.problem):
        fastest, slowest = FAST_BESIDE_CORNERS, SLOW_BESIDE_CORNERS
    change, left, wider = _values(model, weights - prolonged(model, wide, on_wide)), slowest, coarser(wide)
    if wider is not None and all(2 * wider.modes[name] == count for name, count in wide.modes.items()):
        before = _values(wide, on_wide - prolonged(wide, wider, mean(wider)))
        sizes = _size(model, change), _size(wide, before)
        left = float(np.clip(sizes[0] / sizes[1] if sizes[1] else 0.0, fastest, slowest))
    near = left / (1.0 - left) * _smoothed(model, change) + missed(model, weights)
    error = np.where(np.isfinite(change), near, np.nan)
    size, whole = _size(model, error), _size(model, _values(model, weights))
    about = _size(model, _values(model, weights - model.prior_mean)) if size > ROUNDING * whole else whole
    return NumericalError(_per_weight(model, near), size / about if about else 0.0)


def missed(model: TreeModel, weights: Array) -> float:
    """By how much of a field walls, or equations grossly, are missed that should hold: cells far wider than a layer
    agree with wider ones, and all leave out the wall that the layer meets."""
    off = 0.0
    pairs = zip(model.problem.statements, model.sigmas, strict=True)
    held = {s.name for s, sigma in pairs if sigma.origin == "default" and s.kind != "observation"}
    for group in (group for group in model.groups if group.name in held):
        statement = group.statement
        left = group.misfit(weights) * group.sigma
        if model.problem.shape is not None and (statement.kind == "equation" or reads_slopes(statement)):
            left = left[shares_beside(group.points, model.problem) == 1.0]  # corners are what cells are compared for
        missing = float(np.sqrt(np.mean(left**2))) if len(left) else 0.0
        share = missing / natural_size(statement.relation, model.problem, model.scale)
        if share > (GROSS if statement.face is None else FELT):
            off = max(off, share * model.scale)
    return off


def _values(model: TreeModel, weights: Array) -> Array:
    """The functions of given weights, each in the middle of every spline: where splines reach over an end, weights
    may be large and the function small. NaN outside a region."""
    found = np.empty(model.size)
    for latent in model.representation.latents.values():
        field = weights[latent.block].reshape(latent.basis.shape or (1,))
        for axis, middle in _middles(latent).items():
            field = np.tensordot(field, latent.basis.families[axis](middle), axes=(0, 1))
        found[latent.block] = np.where(_inside(model, latent), field.ravel(), np.nan)
    return found


def _middles(latent: Latent) -> dict[str, Array]:
    """The middle of every spline along each axis."""
    found: dict[str, Array] = {}
    for axis, spline in latent.basis.families.items():
        assert isinstance(spline, Spline)
        middle = spline.lower + (np.arange(spline.size) - 0.5 * (spline.degree - 1)) * spline.width
        found[axis] = np.asarray(middle if spline.periodic else np.clip(middle, spline.lower, spline.upper), float)
    return found


def _inside(model: TreeModel, latent: Latent) -> NDArray[np.bool_]:
    """Which of these lie in the region; all do of what varies along one of its axes only."""
    shape, middles = model.problem.shape, _middles(latent)
    if shape is None or not set(shape.axes) <= set(middles):
        return np.ones(latent.basis.size, bool)
    mesh = np.meshgrid(*middles.values(), indexing="ij")
    return shape.contains({axis: x.ravel() for axis, x in zip(middles, mesh, strict=True)})


def _size(model: TreeModel, values: Array) -> float:
    """The root mean square of the field of which it is largest."""
    blocks = [model.representation.latents[name].block for name in model.problem.fields]
    return max(float(np.sqrt(np.nanmean(values[block] ** 2))) for block in blocks)


def _smoothed(model: TreeModel, values: Array) -> Array:
    """Root mean squares over the splines that meet in a cell; those beside a region have their neighbours' inside."""
    found = np.abs(values)
    for latent in model.representation.latents.values():
        squares = values[latent.block].reshape(latent.basis.shape) ** 2
        known = np.isfinite(squares).astype(float)
        squares = np.nan_to_num(squares)
        for position, spline in enumerate(latent.basis.families.values()):
            assert isinstance(spline, Spline)
            mode = "wrap" if spline.periodic else "nearest"
            squares = ndimage.uniform_filter1d(squares, model.degree, axis=position, mode=mode)
            known = ndimage.uniform_filter1d(known, model.degree, axis=position, mode=mode)
        mean = squares / np.where(known > FEW, known, 1.0)
        found[latent.block] = np.sqrt(np.maximum(mean, 0.0)).ravel()
    return found


def _per_weight(model: TreeModel, error: Array) -> Array:
    """Standard deviations of independent weights that give the function these errors in the middle of splines."""
    found = error.copy()
    for latent in model.representation.latents.values():
        for spline in latent.basis.families.values():
            assert isinstance(spline, Spline)
            found[latent.block] /= np.linalg.norm(spline.within(np.zeros(1)))
    return found
