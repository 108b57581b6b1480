"""Readings with outliers: each likelihood has a Gaussian site, found by expectation propagation.

Within one linearisation the readings are a linear function of the latents. A round divides a reading's site out of the
posterior at that reading (the cavity), takes the moments of cavity times likelihood, and chooses the site that gives
them. Then the mode is found anew with these sites, and the map is linearised there.

Log-normal noise needs no sites: it is Gaussian in the logarithm of the reading (measurements.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from factorfield.inference.fit import ROUGH, Fit, Gaussian, Tuning, fit
from factorfield.inference.measurements import Measurements
from factorfield.problem.noise import StudentT, matched, tilted

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rounds:
    """When sites have settled."""

    most_fits: int = 20
    most_rounds: int = 60
    damping: float = 0.3  # share of the last site that is kept
    inner: float = 1e-4  # largest move of a mean between rounds, in its std
    outer: float = 1e-3  # the same between fits


ROUNDS = Rounds()
LEAST = 0.05  # precision of a direction that outliers widen, in units of the prior's
NEGLIGIBLE = 1e-10  # of the noise's variance: what is known exactly has no less


def has_sites(measurements: Measurements) -> bool:
    return any(group.site is not None for group in measurements.groups)


def with_sites(start: Fit, tuning: Tuning, rounds: Rounds = ROUNDS) -> Fit:
    """The posterior with settled sites; where no reading has them, the fit as it is."""
    current = start
    if not has_sites(current.task.measurements):
        return current
    for _ in range(rounds.most_fits):
        measurements, change = settled(current, rounds)
        task = replace(current.task, measurements=measurements)
        current = fit(task, current.point.e, tuning if change < 10.0 * rounds.outer else ROUGH)
        if change < rounds.outer:
            break
    return _finished(current)


def _rows_of_sites(measurements: Measurements) -> NDArray[np.intp]:
    marks = [np.full(len(g.target), g.site is not None) for g in measurements.groups]
    return np.flatnonzero(np.concatenate(marks))


def _marginals(current: Fit, sigmas: Array) -> tuple[Array, Array]:
    """Mean and variance of all readings in the linearised posterior with the present sites."""
    before, measurements = current.point, current.task.measurements
    slopes = current.slopes * (measurements.sigmas / sigmas)[:, None]
    offset = before.reading.values - (current.slopes * measurements.sigmas[:, None]) @ before.e
    wanted = (measurements.targets - offset) / sigmas
    belief = Gaussian.of(np.zeros(slopes.shape[1]), slopes)
    mean = belief.covariance_times(slopes.T @ wanted)
    rows = slopes * sigmas[:, None]
    variance = np.sum(belief.spread(rows) ** 2, axis=1)
    return offset + rows @ mean, np.maximum(variance, NEGLIGIBLE * sigmas**2)


def settled(current: Fit, rounds: Rounds) -> tuple[Measurements, float]:
    """The measurements with sites that have settled for this linearisation, and how far the means moved in all."""
    measurements = current.task.measurements
    chosen = _rows_of_sites(measurements)
    before = None
    for _ in range(rounds.most_rounds):
        scaled = current.slopes * (current.task.measurements.sigmas / measurements.sigmas)[:, None]
        trial = replace(current, task=replace(current.task, measurements=measurements), kept_slopes=scaled)
        mean, variance = _marginals(trial, measurements.sigmas)
        moved = np.inf if before is None else float(np.max(np.abs(mean - before)[chosen] / np.sqrt(variance[chosen])))
        before = mean
        if moved < rounds.inner:
            break
        measurements = _updated(measurements, mean, variance, rounds)
    start = current.point.reading.values
    change = float(np.max(np.abs(before - start)[chosen] / np.sqrt(variance[chosen]))) if before is not None else 0.0
    return measurements, change


def _cavities(measurements: Measurements, mean: Array, variance: Array) -> tuple[Array, Array]:
    precision = 1.0 / measurements.sigmas**2
    left = np.maximum(1.0 / variance - precision, 1e-3 / variance)
    return (mean / variance - precision * measurements.targets) / left, 1.0 / left


def _updated(measurements: Measurements, mean: Array, variance: Array, rounds: Rounds) -> Measurements:
    centre, spread = _cavities(measurements, mean, variance)
    groups, begin = [], 0
    for group in measurements.groups:
        rows = slice(begin, begin + len(group.statement.target))
        begin = rows.stop
        if group.site is not None and group.stated is not None and group.statement.noise is not None:
            target, precision = matched(
                group.statement.noise, group.statement.target, group.stated, centre[rows], spread[rows]
            )  # fmt: skip
            noise = group.statement.noise
            assert isinstance(noise, StudentT)
            precision = np.minimum(precision, _steepest(noise, group.stated))
            kept = rounds.damping
            sigma = np.exp(-0.5 * ((1.0 - kept) * np.log(precision) - 2.0 * kept * np.log(group.site[1])))
            group = replace(group, site=((1.0 - kept) * target + kept * group.site[0], sigma))
        groups.append(group)
    return replace(measurements, groups=tuple(groups))


def _finished(current: Fit) -> Fit:
    """With the evidence that sites stand for, and the posterior with the moments of the likelihoods themselves: those
    of outliers widen it, which no site of positive precision can."""
    measurements = current.task.measurements
    mean, variance = _marginals(current, measurements.sigmas)
    centre, spread = _cavities(measurements, mean, variance)
    total, begin, precision = 0.0, 0, 1.0 / measurements.sigmas**2
    for group in measurements.groups:
        rows = slice(begin, begin + len(group.target))
        begin, noise = rows.stop, group.statement.noise
        if group.site is None or group.stated is None:
            continue
        assert isinstance(noise, StudentT)
        _, tilted_variance, log_mass = tilted(noise, group.target, group.stated, centre[rows], spread[rows])
        precision[rows] = np.minimum(1.0 / tilted_variance - 1.0 / spread[rows], _steepest(noise, group.stated))
        width, apart = spread[rows] + group.site[1] ** 2, centre[rows] - group.site[0]
        exact = log_mass + noise.log_normaliser(group.stated)
        total += float(np.sum(exact + 0.5 * np.log(2.0 * np.pi * width) + 0.5 * apart**2 / width))
    slopes = current.slopes * measurements.sigmas[:, None]
    values, vectors = np.linalg.eigh(slopes.T @ (precision[:, None] * slopes))
    shares = 1.0 - 1.0 / np.sqrt(np.maximum(1.0 + values, LEAST))
    belief = Gaussian(current.belief.mean, vectors, shares)
    total += 0.5 * (belief.log_determinant - current.belief.log_determinant)  # the evidence is that of the sites
    return replace(current, belief=belief, log_sites=total)


def _steepest(noise: StudentT, sigma: Array) -> Array:
    """No likelihood bends more."""
    return np.asarray((1.0 + 1.0 / noise.dof) / sigma**2)
