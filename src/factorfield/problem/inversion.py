"""Which field a measured function of it means, in numbers: formulas for an inverse may take for ever, or not exist."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Curve = Callable[[Array], Array]  # u -> f(u); over several places, (grid, 1) -> (grid, places)
SIDE = np.geomspace(1e-9, 1e9, 577)  # 32 to a decade
GRID = np.concatenate([-SIDE[::-1], [0.0], SIDE])
HALVINGS = 80
ACCURACY = 1e-6  # relative to the target: a jump across it, as of tan, is no root


def nearest_root(curve: Curve, targets: Array) -> Array:
    """For every target the u closest to zero (the positive one of two) with f(u) = target; NaN where there is none."""
    gap = np.broadcast_to(curve(GRID[:, None]), (len(GRID), len(targets))) - targets
    low, high = gap[:-1], gap[1:]
    crossed = ((low <= 0.0) & (high > 0.0)) | ((low >= 0.0) & (high < 0.0))
    crossed &= np.isfinite(low) & np.isfinite(high)
    centre = 0.5 * (GRID[1:] + GRID[:-1])
    order = np.lexsort((centre < 0.0, np.abs(centre)))
    rank = np.empty(len(order))
    rank[order] = np.arange(len(order))
    at = np.argmin(np.where(crossed, rank[:, None], np.inf), axis=0)
    found = _bisected(curve, targets, GRID[at], GRID[at + 1])
    return np.where(crossed.any(axis=0), found, np.nan)


def inverse(curve: Curve, targets: Array) -> Array | None:
    """The u of every target where f is one-to-one on all of its domain and each target has one; else None."""
    values = np.asarray(curve(GRID), float)
    known = np.flatnonzero(np.isfinite(values))
    steps = np.diff(values[known])
    one_to_one = np.all(steps >= 0.0) or np.all(steps <= 0.0)
    if len(known) < 2 or len(known) != known[-1] - known[0] + 1 or not one_to_one or not np.any(steps):
        return None
    x, y = GRID[known], values[known]
    if steps.sum() < 0.0:
        x, y = x[::-1], y[::-1]
    if np.any((targets < y[0]) | (targets > y[-1])):
        return None
    at = np.clip(np.searchsorted(y, targets, side="left"), 1, len(y) - 1)
    found = _bisected(curve, targets, x[at - 1], x[at])
    return found if np.all(np.isfinite(found)) else None


def _bisected(curve: Curve, targets: Array, low: Array, high: Array) -> Array:
    rising = curve(high) >= curve(low)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        above = (curve(middle) > targets) == rising
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    middle = 0.5 * (low + high)
    return np.where(np.abs(curve(middle) - targets) <= ACCURACY * (1.0 + np.abs(targets)), middle, np.nan)
