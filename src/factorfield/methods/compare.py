"""Several methods on one model: the same features, points, prior and noise for all, one row of numbers each."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from factorfield import metrics
from factorfield.methods import Method
from factorfield.model.model import Model
from factorfield.progress import Progress
from factorfield.solution import Solution

if TYPE_CHECKING:
    import xarray as xr

REFERENCE = "hmc"
COLUMNS = {
    "RMSE": "rmse", "coverage 90 %": "coverage90", "CRPS": "crps", "NLL": "nll",
    "fit [s]": "fit", "predict [s]": "predict", "std / HMC": "std_ratio", "mean to HMC [sd]": "mean_distance",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Contender:
    """One method's answer within the model, what that leaves out aside; seconds to fit include compilation, seconds to
    predict are those of the second call."""

    method: str
    solution: Solution
    field: xr.Dataset
    fit: float
    predict: float

    def numbers(self, truth: xr.DataArray | None, reference: xr.Dataset | None) -> dict[str, float]:
        """Scores against the truth, and against HMC's field: median ratio of std, rms difference of means in its sd."""
        row = dict.fromkeys(COLUMNS.values(), math.nan)
        if truth is not None:
            row |= {key: value for key, value in metrics.score(self.field, truth).items() if key in row}
        if reference is not None:
            spread = np.asarray(reference["std"])
            row["std_ratio"] = float(np.median(np.asarray(self.field["std"]) / spread))
            distance = (np.asarray(self.field["mean"]) - np.asarray(reference["mean"])) / spread
            row["mean_distance"] = float(np.sqrt(np.mean(distance**2)))
        return {**row, "fit": self.fit, "predict": self.predict}


def compare(model: Model, methods: Sequence[Method], progress: Progress | None = None) -> Iterator[Contender]:
    """Fit and predict with each method in turn."""
    for method in methods:
        begin = time.perf_counter()
        solution = _solved(method, model, progress)
        fitted = time.perf_counter() - solution.timings.get("compare", 0.0)
        grid: Any = solution.default_grid()
        solution.predict(numerical=False, **grid)  # what a method compiles or caches is not its steady cost
        warm = time.perf_counter()
        field = solution.predict(numerical=False, **grid)
        yield Contender(method.name, solution, field, fitted - begin, time.perf_counter() - warm)


def _solved(method: Any, model: Model, progress: Progress | None) -> Solution:
    """By a method that solves models, or one that makes none and solves their problem."""
    solution: Solution = (
        method.run(model, progress) if hasattr(method, "run") else method.solve(model.problem, progress)
    )
    return solution


def table(contenders: Sequence[Contender]) -> list[dict[str, str | float]]:
    """One row per method: its name, status and numbers."""
    reference = next((c.field for c in contenders if c.method == REFERENCE), None)
    return [
        {"method": c.method, "status": str(c.solution.status), **c.numbers(c.solution.problem.truth, reference)}
        for c in contenders
    ]
