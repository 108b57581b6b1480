"""Scores of a Gaussian prediction against a known field, in the definitions of the paper's appendix."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from factorfield.errors import expected

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]


def crps(mean: ArrayLike, std: ArrayLike, truth: ArrayLike) -> Array:
    """Closed-form CRPS of N(mean, std^2), point by point; the absolute error where std is 0 or NaN."""
    mean, std, truth = (np.asarray(a, float) for a in np.broadcast_arrays(mean, std, truth))
    certain = ~(std > 0.0)
    safe = np.where(certain, 1.0, std)
    z = (truth - mean) / safe
    pdf = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    score = safe * (z * (2.0 * special.ndtr(z) - 1.0) + 2.0 * pdf - 1.0 / math.sqrt(math.pi))
    return np.where(certain, np.abs(truth - mean), score)


def coverage(mean: ArrayLike, std: ArrayLike, truth: ArrayLike, level: float = 0.9) -> float:
    """Share of points inside the central interval of that level; NaN without a std."""
    mean, std, truth = (np.asarray(a, float) for a in (mean, std, truth))
    if np.any(np.isnan(std)):
        return math.nan
    return float(np.mean(np.abs(truth - mean) <= special.ndtri(0.5 + 0.5 * level) * std))


def nll(mean: ArrayLike, std: ArrayLike, truth: ArrayLike) -> float:
    """Mean negative log density; NaN without a std, infinite where a std of 0 is wrong."""
    mean, std, truth = (np.asarray(a, float) for a in (mean, std, truth))
    if np.any(np.isnan(std)):
        return math.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        values = 0.5 * ((truth - mean) / std) ** 2 + np.log(std) + 0.5 * math.log(2.0 * math.pi)
    return float(np.mean(values)) if np.all(std > 0.0) else math.inf


def pit_histogram(mean: ArrayLike, std: ArrayLike, truth: ArrayLike, bins: int = 20) -> list[float]:
    """Shares of points per bin of the probability integral transform: flat if calibrated; NaN without a std."""
    mean, std, truth = (np.asarray(a, float) for a in (mean, std, truth))
    if np.any(np.isnan(std)):
        return [math.nan] * bins
    with np.errstate(divide="ignore", invalid="ignore"):
        level = special.ndtr(np.nan_to_num((truth - mean) / std))
    counts = np.histogram(level, bins, (0.0, 1.0))[0]
    return (counts / counts.sum()).tolist()


def score(field: xr.Dataset, truth: xr.DataArray) -> dict[str, float]:
    """All scores of a predicted field (mean and std) against the truth on the same coordinates."""
    if not {"mean", "std"} <= set(getattr(field, "data_vars", ())):
        raise expected("a Dataset with mean and std", type(field).__name__, "solution.predict(x=..., t=...)")
    exact = _aligned(truth, field["mean"])
    mean, std = np.asarray(field["mean"], float), np.asarray(field["std"], float)
    if "inside" in field.coords:  # of a region: nothing is predicted elsewhere
        inside = np.asarray(field["inside"].broadcast_like(field["mean"]).transpose(*field["mean"].dims), bool)
        mean, std, exact = mean[inside], std[inside], exact[inside]
    return scores(mean, std, exact)


def scores(mean: Array, std: Array, exact: Array) -> dict[str, float]:
    """The same for plain arrays of one shape."""
    error = mean - exact
    norm = float(np.sqrt(np.mean(exact**2)))
    rmse = float(np.sqrt(np.mean(error**2)))
    return {
        "rmse": rmse,
        "relative_l2": rmse / norm if norm > 0.0 else math.inf,
        "max_error": float(np.max(np.abs(error))),
        "coverage50": coverage(mean, std, exact, 0.5),
        "coverage90": coverage(mean, std, exact, 0.9),
        "coverage95": coverage(mean, std, exact, 0.95),
        "crps": float(np.mean(crps(mean, std, exact))),
        "nll": nll(mean, std, exact),
        "mean_std": float(np.mean(std)),
    }


def _aligned(truth: Any, like: xr.DataArray) -> Array:
    """The truth with the prediction's order of dimensions; different coordinates are an error, not a guess."""
    if set(truth.dims) != set(like.dims):
        raise expected(
            f"truth over {', '.join(map(str, like.dims))}", ", ".join(map(str, truth.dims)), "equal dimensions"
        )
    exact = truth.transpose(*like.dims)
    for name in like.dims:
        same = exact.sizes[name] == like.sizes[name] and (
            name not in exact.coords or np.array_equal(exact[name].values, like[name].values)
        )
        if not same:
            raise expected(f"the prediction on the truth's coordinates along {name}", "others", f"{name}=truth.{name}")
    return np.asarray(exact, float)
