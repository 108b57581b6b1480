"""The numbers that a report's page draws from: fields thinned to what a screen can show, packed as base64."""

from __future__ import annotations

import base64

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from factorfield.problem.domain import TIME
from factorfield.show.formula import plain
from factorfield.show.outline import outlines
from factorfield.show.views import LEVELS, Calibration, View, beliefs, calibration, data_of, density
from factorfield.solution import Solution

MOST = {1: 512, 2: 201, 3: 64}  # positions per axis of space, by the number of axes
MOST_FRAMES = {2: 101, 3: 41}
MOST_POINTS = 3000


def page_data(solution: Solution, shown: View, level: float = 0.9) -> dict[str, object]:
    """Everything the page's script reads; `band` is how many std its intervals reach."""
    return {
        "band": float(special.ndtri(0.5 + 0.5 * level)),
        "field": field_data(solution, thinned(shown)),
        "coefficients": coefficient_data(solution, level),
        "calibration": calibration_data(calibration(shown)),
    }


def thinned(shown: View) -> View:
    """Every n-th position of space; times spread evenly, the last one kept."""
    count = len(shown.axes)
    chosen: dict[str, slice | NDArray[np.int64]] = {
        name: slice(None, None, -(-len(shown.axes[name]) // MOST.get(count, 64))) for name in shown.space
    }
    if shown.times is not None and count > 1:
        last = len(shown.times) - 1
        frames = min(last + 1, MOST_FRAMES.get(count, 41))
        chosen[TIME] = np.unique(np.linspace(0, last, frames).round().astype(int))
    return shown.pick(**chosen)


def field_data(solution: Solution, shown: View) -> dict[str, object]:
    units = solution.problem.units
    return {
        "names": list(shown.names),
        "labels": [plain(name) for name in shown.names],
        "units": [units.get(name, "") for name in shown.names],
        "axes": [
            {"name": name, "unit": units.get(name, ""), "values": x.tolist()}  # as stored: the slider names them
            for name, x in shown.axes.items()
        ],
        "mean": [packed(values) for values in shown.mean],
        "std": [packed(values) for values in shown.std],
        "truth": None if shown.truth is None else [packed(values) for values in shown.truth],
        # subtracted here: in single precision small errors would be rounding only
        "errors": None if shown.truth is None else [packed(values) for values in shown.mean - shown.truth],
        "walls": [
            {"label": outline.label, "colour": outline.colour,
             "lines": [[rounded(line[:, 0]), rounded(line[:, 1])] for line in outline.lines]}
            for outline in outlines(solution.problem)
        ],
        "data": [
            {"field": data.field, "points": {name: packed(x[::thin]) for name, x in data.points.items()},
             "values": packed(data.values[::thin])}
            for data in data_of(solution.problem) for thin in [-(-len(data.values) // MOST_POINTS)]
        ],
    }  # fmt: skip


def packed(values: ArrayLike) -> str:
    """Single precision, little-endian, base64: a quarter of the text that digits would take; what is too large for it
    is infinite, and drawn as missing."""
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(values, dtype="<f4")
    return base64.b64encode(single.tobytes()).decode("ascii")


def coefficient_data(solution: Solution, level: float = 0.9) -> list[dict[str, object]]:
    entries: list[dict[str, object]] = []
    for name, (prior, after, interval) in beliefs(solution, level).items():
        x: NDArray[np.float64] = np.linspace(after.mean - 5.0 * after.spread, after.mean + 5.0 * after.spread, 201)
        x = x[x > 0.0] if prior.positive else x
        entries.append(
            {"name": plain(name), "unit": solution.problem.units.get(name, ""), "x": rounded(x),
             "after": rounded(density(after, x)), "prior": rounded(density(prior, x)), "interval": rounded(interval)}
        )  # fmt: skip
    return entries


def calibration_data(found: Calibration | None) -> dict[str, object] | None:
    if found is None:
        return None
    return {"levels": [0.0, *LEVELS, 1.0], "shares": [0.0, *rounded(found.reliability), 1.0], "pit": found.pit}


def frame_count(shown: View) -> int:
    """Positions of the slider: times, where there is space too."""
    return len(thinned(shown).axes[TIME]) if shown.times is not None and shown.space else 1


def rounded(values: ArrayLike) -> list[float | None]:
    """Six digits; what is not finite has no place in JSON."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in np.asarray(values, float)]
