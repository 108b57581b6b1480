"""Scores against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr
from scipy import integrate, stats

import factorfield as ff
from factorfield import metrics


def test_crps_equals_the_integral_that_defines_it() -> None:
    for mean, std, y in [(0.3, 0.5, 1.0), (-1.0, 2.0, -1.2), (0.0, 0.1, 3.0)]:
        cdf = stats.norm(mean, std).cdf
        below = integrate.quad(lambda x: cdf(x) ** 2, mean - 12 * std, y)[0] if y > mean - 12 * std else 0.0  # noqa: B023
        above = integrate.quad(lambda x: (1 - cdf(x)) ** 2, y, max(y, mean) + 12 * std)[0]  # noqa: B023
        assert metrics.crps(mean, std, y) == pytest.approx(below + above, rel=1e-6)
    assert metrics.crps(1.0, 0.0, 3.0) == 2.0 and metrics.crps(1.0, np.nan, 3.0) == 2.0


def test_scores_of_a_known_prediction() -> None:
    rng = np.random.default_rng(0)
    truth = xr.DataArray(
        rng.standard_normal((50, 400)), dims=("t", "x"), coords={"t": np.arange(50.0), "x": np.arange(400.0)}
    )
    mean = truth + 0.3 * rng.standard_normal(truth.shape)
    field = xr.Dataset({"mean": mean, "std": xr.full_like(mean, 0.3)})
    score = ff.metrics.score(field, truth.transpose("x", "t"))
    # 20,000 points: coverage 0.9 +- 0.002, rmse 0.3 +- 0.5 %
    assert score["coverage90"] == pytest.approx(0.9, abs=0.01) and score["coverage50"] == pytest.approx(0.5, abs=0.015)
    assert score["rmse"] == pytest.approx(0.3, rel=0.02)
    assert score["nll"] == pytest.approx(0.5 + math.log(0.3) + 0.5 * math.log(2 * math.pi), abs=0.03)
    assert score["crps"] == pytest.approx(0.3 / math.sqrt(math.pi), rel=0.02)


def test_a_point_estimate_has_no_coverage_and_its_crps_is_the_absolute_error() -> None:
    truth = xr.DataArray([1.0, 2.0], dims="x", coords={"x": [0.0, 1.0]})
    field = xr.Dataset({"mean": truth + 0.5, "std": xr.full_like(truth, np.nan)})
    score = ff.metrics.score(field, truth)
    assert math.isnan(score["coverage90"]) and math.isnan(score["nll"]) and score["crps"] == 0.5


def test_other_coordinates_are_an_error_not_a_guess() -> None:
    truth = xr.DataArray([1.0, 2.0], dims="x", coords={"x": [0.0, 1.0]})
    field = xr.Dataset({"mean": truth, "std": truth})
    with pytest.raises(ff.ProblemError, match="coordinates along x"):
        ff.metrics.score(field, truth.assign_coords(x=[0.0, 1.5]))
    with pytest.raises(ff.ProblemError, match="truth over x"):
        ff.metrics.score(field, truth.rename(x="y"))
    with pytest.raises(ff.ProblemError, match="mean and std"):
        ff.metrics.score(truth, truth)  # type: ignore[arg-type]
