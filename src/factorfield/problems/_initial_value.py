"""What the initial-value problems share: labels at the start, and physics that a file may state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.problem.problem import Observations

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]


def initial_labels(
    x: Array, u: Array, noise: float, labels: int | None, seed: int, sigma: float | None, t: float = 0.0
) -> Observations:
    """Observations of the initial field: thinned to `labels` evenly spread cells, disturbed by N(0, noise^2)."""
    if labels is not None and (isinstance(labels, bool) or not 1 <= labels <= len(x)):
        raise expected(f"1 to {len(x)} labels", labels, "labels=256")
    if not (np.isfinite(noise) and noise >= 0.0):
        raise expected("noise >= 0 (a standard deviation)", noise, "noise=0.02")
    chosen = np.arange(len(x)) if labels is None else (np.arange(labels) * len(x)) // labels
    disturbance = noise * np.random.default_rng(seed).standard_normal(len(chosen)) if noise > 0.0 else 0.0
    return Observations(x=x[chosen], t=t, u=u[chosen] + disturbance, sigma=sigma)


def field_array(values: Array, x: Array, t: Array) -> xr.DataArray:
    import xarray as xr

    return xr.DataArray(values, dims=("t", "x"), coords={"t": t, "x": x}, name="u")


def from_file_or(given: float | None, stored: dict[str, float], name: str, default: float) -> float:
    """A coefficient from the file, the caller or the default; a caller who contradicts the file is stopped."""
    value = default if given is None else finite_number(given, name)
    if name not in stored:
        return value
    if given is not None and not np.isclose(given, stored[name]):
        raise expected(f"{name} = {stored[name]:g}, as the file says", given, f"leaving {name} out")
    return stored[name]


def finite_number(value: float, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise expected(f"a number for {name}", value, f"{name}=1.0") from None
    if not np.isfinite(number):
        raise expected(f"a finite {name}", value, f"{name}=1.0")
    return number
