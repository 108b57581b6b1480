"""What the gallery's problems share: truths as labelled arrays, and starts that are formulas or noisy measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.problem.domain import TIME, Axis
from factorfield.problem.problem import Boundary, Condition, Initial, Observations

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]
Fields = Mapping[str, Array]
LABELS = 200  # noisy labels of an initial field, unless the caller says otherwise


def truth_on(axes: Mapping[str, Array], exact: Callable[[Mapping[str, Array]], Fields]) -> xr.DataArray:
    """The exact fields on a tensor grid, time first; several fields have a leading dimension `field`."""
    import xarray as xr

    names = sorted(axes, key=lambda name: name != TIME)
    mesh = dict(zip(names, np.meshgrid(*(axes[name] for name in names), indexing="ij"), strict=True))
    fields = {name: np.broadcast_to(values, next(iter(mesh.values())).shape) for name, values in exact(mesh).items()}
    coords = {name: np.asarray(axes[name], float) for name in names}
    if len(fields) == 1:
        name, values = next(iter(fields.items()))
        return xr.DataArray(values, dims=names, coords=coords, name=name)
    stacked = np.stack(list(fields.values()))
    return xr.DataArray(stacked, dims=("field", *names), coords={**coords, "field": list(fields)})


def start(
    texts: Sequence[str], exact: Callable[[Mapping[str, Array]], Fields], space: Mapping[str, Axis], noise: float,
    labels: int | None, seed: int,
) -> list[Condition]:  # fmt: skip
    """The state at t = 0: by formulas, or (noise > 0) by noisy labels of every field on evenly spread cells."""
    if not (np.isfinite(noise) and noise >= 0.0):
        raise expected("noise >= 0 (a standard deviation)", noise, "noise=0.02")
    if noise == 0.0:
        return [Initial(text) for text in texts]
    count = max(2, round((labels or LABELS) ** (1.0 / max(len(space), 1))))
    mesh = np.meshgrid(*(axis.cells(count) for axis in space.values()), indexing="ij")
    points: dict[str, Array] = {name: values.ravel() for name, values in zip(space, mesh, strict=True)}
    points[TIME] = np.zeros(len(next(iter(points.values()))) if points else 1)
    rng = np.random.default_rng(seed)
    observed = [measured(points, name, values, noise, rng) for name, values in exact(points).items()]
    return observed + [Initial(text) for text in texts if "_t" in text]  # velocities are given


def walls(text: str, **ends: tuple[float, float]) -> list[Condition]:
    """The same condition on both ends of each axis."""
    return [Boundary(text, at={axis: end}) for axis, both in ends.items() for end in both]


def scattered(
    count: int, exact: Callable[[Mapping[str, Array]], Fields], domain: Mapping[str, Axis], noise: float, seed: int
) -> list[Condition]:
    """Noisy measurements of every field at random points."""
    rng = np.random.default_rng(seed)
    points = {name: rng.uniform(axis.lower, axis.upper, count) for name, axis in domain.items()}
    return [measured(points, name, values, noise, rng) for name, values in exact(points).items()]


def measured(
    points: Mapping[str, Array], name: str, values: Array, noise: float, rng: np.random.Generator,
    sigma: float | None = None,
) -> Condition:  # fmt: skip
    """One field at points, disturbed by N(0, noise^2); `sigma` is what is believed of the noise, if not that."""
    columns = {**points, name: values + noise * rng.standard_normal(len(values))}
    return Observations(sigma=noise if sigma is None else sigma, of=None, noise="gaussian", average=None, **columns)
