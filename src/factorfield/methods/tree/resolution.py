"""Are the cells small enough? The same problem on cells twice as wide tells, and on cells four times as wide, how fast
halving them helps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from factorfield.methods.tree.search import search
from factorfield.model.splines import Spline
from factorfield.model.tree import TreeModel, prolonged, with_cells

Array = NDArray[np.float64]
SLOWEST = 0.5  # what is left of an error when cells are halved, at most: beyond, nothing has been seen to converge


@dataclass(frozen=True, eq=False)
class NumericalError:
    """Standard deviations of every weight's numerical error, and its size relative to the fields."""

    std: Array
    relative: float


def coarser(model: TreeModel) -> TreeModel | None:
    """On cells twice as wide, along the axes that have enough of them."""
    least = model.degree + 1
    cells = {name: n // 2 if n % 2 == 0 and n // 2 >= least else n for name, n in model.modes.items()}
    return with_cells(model, cells) if cells != model.modes else None


def numerical_error(model: TreeModel, weights: Array, iterations: int) -> NumericalError:
    """By comparing two resolutions, and a third for the rate; smoothed over neighbouring weights."""
    wide = coarser(model)
    if wide is None:
        return NumericalError(np.zeros(model.size), np.nan)
    on_wide = search(wide, iterations, None).weights
    change = weights - prolonged(model, wide, on_wide)
    left = SLOWEST
    wider = coarser(wide)
    if wider is not None and wider.modes.keys() == wide.modes.keys() and _all_halved(wide, wider):
        before = on_wide - prolonged(wide, wider, search(wider, iterations, None).weights)
        fields = _size(model, change), _size(wide, before)
        left = float(np.clip(fields[0] / fields[1] if fields[1] else 0.0, 2.0 ** -(model.degree + 1), SLOWEST))
    std = left / (1.0 - left) * _smoothed(model, change)
    about = _size(model, weights - model.prior_mean)
    return NumericalError(std, _size(model, std) / about if about else 0.0)


def _all_halved(fine: TreeModel, coarse: TreeModel) -> bool:
    return all(2 * coarse.modes[name] == n for name, n in fine.modes.items())


def _size(model: TreeModel, weights: Array) -> float:
    """The root mean square of the field of which it is largest."""
    blocks = [model.representation.latents[name].block for name in model.problem.fields]
    return max(float(np.sqrt(np.mean(weights[block] ** 2))) for block in blocks)


def _smoothed(model: TreeModel, change: Array) -> Array:
    """Root mean squares over the splines that meet in a cell."""
    found = np.abs(change)
    for latent in model.representation.latents.values():
        squares = change[latent.block].reshape(latent.basis.shape) ** 2
        for position, spline in enumerate(latent.basis.families.values()):
            assert isinstance(spline, Spline)
            mode = "wrap" if spline.periodic else "nearest"
            squares = ndimage.uniform_filter1d(squares, model.degree, axis=position, mode=mode)
        found[latent.block] = np.sqrt(np.maximum(squares, 0.0)).ravel()
    return found
