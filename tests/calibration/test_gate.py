"""The gate fails a perfect method once in a hundred runs, and a wrong one nearly always."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from factorfield.calibration.gate import FALSE_ALARM, band, distance, inside, passes

RUNS = 6000


def perfect(draws: int, runs: int = RUNS) -> np.ndarray:
    return np.random.default_rng(draws).standard_normal((runs, draws))


@pytest.mark.parametrize("draws", [12, 100, 360, 1000])
def test_a_perfect_method_fails_a_row_about_once_in_a_hundred_runs(draws: int) -> None:
    z = perfect(draws, RUNS if draws < 1000 else 3000)
    failed = 1.0 - np.mean(passes(z))
    error = np.sqrt(FALSE_ALARM / len(z))  # of the share of failures
    assert 0.005 - 3.0 * error < failed < FALSE_ALARM + 3.5 * error


@pytest.mark.parametrize("draws", [12, 200])
def test_the_probability_of_staying_in_the_band_is_that_of_a_simulation(draws: int) -> None:
    wide = band(draws, 0.2)  # a level that a simulation can tell
    share = np.mean(wide.holds(special.ndtr(perfect(draws))))
    assert share == pytest.approx(wide.level, abs=4.0 * np.sqrt(0.16 / RUNS))
    assert 0.8 <= wide.level < 0.86  # the narrowest that keeps its promise, in whole counts


def test_the_probability_of_staying_in_a_band_is_that_of_all_samples_counted() -> None:
    """Three numbers and two points: the multinomial probabilities of allowed counts, one by one."""
    points, low, high = np.array([0.3, 0.6]), np.array([0, 1]), np.array([2, 3])
    total = 0.0
    for first in range(4):
        for second in range(4 - first):
            if low[0] <= first <= high[0] and low[1] <= first + second <= high[1]:
                total += stats.multinomial.pmf([first, second, 3 - first - second], 3, [0.3, 0.3, 0.4])
    assert inside(3, points, low, high) == pytest.approx(total, rel=1e-12)


@pytest.mark.parametrize("width", [0.7, 1.4])
def test_widths_that_are_off_by_two_fifths_fail_at_a_hundred_draws_to_either_side(width: float) -> None:
    assert np.mean(passes(perfect(100, 500) * width)) < 0.1


@pytest.mark.parametrize("width", [0.3, 3.0])
def test_the_small_version_sees_widths_that_are_off_by_three(width: float) -> None:
    assert np.mean(passes(perfect(12, 500) * width, 1e-3)) < 0.2


def test_a_bias_of_a_third_of_a_standard_deviation_fails_at_two_hundred_draws() -> None:
    assert np.mean(passes(perfect(200, 500) + 0.35)) < 0.1


def test_what_is_no_number_fails() -> None:
    z = perfect(100, 1)[0]
    z[3] = np.nan
    assert not passes(z)
    z[3] = np.inf
    assert not passes(z)


def test_the_distance_is_that_of_kolmogorov_and_smirnov() -> None:
    assert distance(np.zeros(1000)) == pytest.approx(0.5)
    ends = special.ndtri((np.arange(1000) + 0.5) / 1000)
    assert distance(ends) == pytest.approx(0.0005, rel=1e-6)
