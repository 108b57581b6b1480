"""When has a row failed? Two exact tests of one number per draw, which a perfect method fails once in a hundred runs.

A draw gives z = (truth - mean) / std of one scalar, in the scale in which its posterior is normal, so that Phi(z) is
the probability integral transform (PIT) of the truth. Over draws it is uniform if intervals of every level hold what
they say. Points of one draw are correlated, draws are not: so the draw is the unit.

- The empirical distribution of the PIT stays within a band that is simultaneous in all its points (after Saeilynoja,
  Buerkner and Vehtari, 2022): limits at each point are binomial quantiles of one level, and the level is set so that
  uniform samples leave the band anywhere with half the probability of a false alarm.
- The sum of z^2 is chi-square: the other half, to either side. It sees widths, and a few gross misses.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

Array = NDArray[np.float64]
FALSE_ALARM = 0.01  # probability that a perfect method fails a row
POINTS = 50  # steps of the band
BISECTIONS = 30


@dataclass(frozen=True)
class Band:
    """Counts of n uniform numbers below `points` that lie in low..high everywhere with probability `level`."""

    points: Array
    low: NDArray[np.int64]
    high: NDArray[np.int64]
    level: float

    def holds(self, pit: Array) -> NDArray[np.bool_]:
        """For each sample along the last axis: does its empirical distribution stay inside?"""
        counts = np.sum(pit[..., None] <= self.points, axis=-2)
        return np.all((self.low <= counts) & (counts <= self.high), axis=-1)


@lru_cache(maxsize=64)
def band(draws: int, outside: float) -> Band:
    """The narrowest band of binomial quantiles that uniform samples leave with probability `outside` at most."""
    points = np.arange(1, POINTS) / POINTS
    least, most = outside / POINTS / 4.0, outside  # levels of one point: all of it, or hardly any
    found = _quantiles(draws, points, least)
    for _ in range(BISECTIONS):
        pointwise = np.sqrt(least * most)
        tried = _quantiles(draws, points, pointwise)
        if tried.level >= 1.0 - outside:
            least, found = pointwise, tried
        else:
            most = pointwise
    return found


def _quantiles(draws: int, points: Array, pointwise: float) -> Band:
    low = stats.binom.ppf(pointwise / 2.0, draws, points).astype(int)
    high = stats.binom.isf(pointwise / 2.0, draws, points).astype(int)
    return Band(points, low, high, inside(draws, points, low, high))


def inside(draws: int, points: Array, low: NDArray[np.int64], high: NDArray[np.int64]) -> float:
    """Probability that counts of uniform numbers below the points stay within low..high.

    Counts are a Markov chain: of the numbers above one point, each lies below the next with the same probability.
    """
    log_factorial = special.gammaln(np.arange(draws + 1) + 1.0)
    states, chance, before = np.zeros(1, int), np.ones(1), 0.0
    for point, least, most in zip(points, low, high, strict=True):
        reached, step = np.arange(least, most + 1), (point - before) / (1.0 - before)
        new = reached[None, :] - states[:, None]
        left, possible = draws - states[:, None], new >= 0
        new = np.maximum(new, 0)
        ways = log_factorial[left] - log_factorial[new] - log_factorial[np.maximum(left - new, 0)]
        terms = ways + new * np.log(step) + (left - new) * np.log1p(-step)
        states, chance, before = reached, chance @ np.where(possible, np.exp(terms), 0.0), point
    return float(chance.sum())


def passes(z: Array, false_alarm: float = FALSE_ALARM) -> NDArray[np.bool_]:
    """For each row of draws along the last axis: is it within the band, and is its sum of squares?"""
    draws, half = z.shape[-1], false_alarm / 2.0
    low, high = stats.chi2.ppf([half / 2.0, 1.0 - half / 2.0], draws)
    squares = np.sum(z**2, axis=-1)
    return band(draws, half).holds(special.ndtr(z)) & (low <= squares) & (squares <= high)


def distance(z: Array) -> float:
    """Kolmogorov and Smirnov's: the largest gap between the empirical distribution of the PIT and the uniform one."""
    return float(stats.kstest(special.ndtr(z), "uniform").statistic)
