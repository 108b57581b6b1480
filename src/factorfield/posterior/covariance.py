"""How functionals of the fields and unknown numbers go together: one labelled matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorfield.errors import expected
from factorfield.posterior.base import Posterior

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]
MOST = 5000  # functionals: their matrix takes 200 MB


def covariance(
    posterior: Posterior, of: str | Sequence[str] | None, axes: Mapping[str, ArrayLike], points: bool
) -> xr.DataArray:
    """Of everything asked, at all places: dimensions `functional` and `other`, with what and where each is. An unknown
    number has one entry, and no place; where nothing else is asked, names are the index. Nothing asked: all of them."""
    import xarray as xr

    names = _names(posterior, of, axes)
    asked, where = [], []
    labels: list[list[str]] = []
    for name in names:
        relation = posterior._relation(name)
        own = {} if name in posterior.problem.unknowns else axes
        grid, unused = posterior._coordinates(own, points and bool(own), [relation])
        count = len(next(iter(grid.values()))) if points else int(np.prod([len(x) for x in grid.values()]))
        if sum(len(each) for each in labels) + count > MOST:
            raise expected(f"at most {MOST} functionals in one covariance", "more", "fewer places, or points=True")
        flat = grid if points else posterior.problem.domain.tensor(grid)
        asked.append((relation, grid, points))
        labels.append([name] * count)
        where.append({axis: np.full(count, np.nan) if axis in unused else x for axis, x in flat.items()})
    with np.errstate(all="ignore"):
        matrix = posterior._joint_covariance(asked)
    _set_numbers(posterior, names, matrix, np.cumsum([0, *(len(each) for each in labels)]))
    shape = posterior.problem.shape
    if shape is not None:  # as predicted values are
        flat = {axis: np.concatenate([places[axis] for places in where]) for axis in shape.axes}
        outside = ~np.isnan(flat[shape.axes[0]])
        outside[outside] = ~shape.contains({axis: x[outside] for axis, x in flat.items()})
        matrix[outside], matrix[:, outside] = np.nan, np.nan
    if all(name in posterior.problem.unknowns for name in names):
        return xr.DataArray(matrix, coords={"functional": names, "other": names}, name="covariance")
    coords: dict[str, object] = {}
    for dim, prefix in (("functional", ""), ("other", "other_")):
        coords[f"{prefix}of"] = (dim, np.concatenate(labels))
        for axis in posterior.problem.domain.names:
            coords[f"{prefix}{axis}"] = (dim, np.concatenate([places[axis] for places in where]))
    return xr.DataArray(matrix, dims=("functional", "other"), coords=coords, name="covariance")


def correlation(found: xr.DataArray) -> xr.DataArray:
    """From covariances; NaN where something is known exactly."""
    std = np.sqrt(np.diagonal(found.values))
    with np.errstate(all="ignore"):
        values = np.clip(found.values / np.outer(std, std), -1.0, 1.0)
    return found.copy(data=values).rename("correlation")


def _names(posterior: Posterior, of: str | Sequence[str] | None, axes: Mapping[str, ArrayLike]) -> list[str]:
    if of is None:
        names = list(posterior.problem.fields) if axes else list(posterior.problem.unknowns)
    else:
        names = [of] if isinstance(of, str) else list(of)
    if not names:
        raise expected("something to relate", "no places and no unknown coefficients", "covariance(x=..., points=True)")
    return names


def _set_numbers(posterior: Posterior, names: Sequence[str], matrix: Array, starts: Array) -> None:
    """Between unknown numbers, the exact moments of Gaussian and log-normal ones instead of a line's."""
    unknown = list(posterior.problem.unknowns)
    both = [(int(start), unknown.index(name)) for name, start in zip(names, starts, strict=False) if name in unknown]
    if both:
        rows, numbers = (list(each) for each in zip(*both, strict=True))
        matrix[np.ix_(rows, rows)] = posterior._coefficient_covariance()[np.ix_(numbers, numbers)]
