"""Waves: how fast an equation lets them grow, and how large they are at the start.

The spectrum is the evidence's, of labels along a periodic axis, with three parameters:

Labels y = u(x) + noise, u = sum of modes with a_k ~ N(0, p_k), p_k = A^2 (1 + (k / k_0)^2)^(-q), noise N(0, sigma^2).
Modes beyond what the labels can tell (k > M) act as further noise of variance sum p_k. A, k_0, q and - where it is not
given - sigma maximise the evidence. What a basis of K modes leaves out keeps its second moment: it is not certain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize

from factorfield.model.activation import Activation
from factorfield.model.basis import Fourier
from factorfield.problem.domain import TIME, Periodic
from factorfield.problem.problem import Problem
from factorfield.problem.reference import linear_terms
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
MOST_FREQUENCIES = 512  # frequencies that are followed at all
MOST_DENSE = 48  # of them, those inferred jointly when the labels are not evenly spread
FLOOR = 1e-4  # smallest noise that is believed, in units of the labels' size: rounding and modelling are never exact


@dataclass(frozen=True, eq=False)
class Spectrum:
    """`variance` and `second_moment` (posterior) of a coefficient at frequencies 1, 2, ...; sigma of the labels."""

    sigma: float
    variance: Array
    second_moment: Array
    constant: float  # prior sd of the constant mode

    def left_out(self, modes: int) -> float:
        """Variance of the field that `modes` frequencies cannot represent: sine and cosine, half a square each."""
        return float(np.sum(self.second_moment[modes:]))

    def enough(self, tolerance: float, most: int, lasting: Array | float = 1.0) -> int:
        """The fewest frequencies that leave out less than tolerance^2, at most `most`; `lasting` weighs them."""
        tails = np.append(np.cumsum((self.second_moment * lasting)[::-1])[::-1], 0.0)
        return int(min(max(1, np.flatnonzero(tails <= tolerance**2)[0]), most))


@dataclass(frozen=True, eq=False)
class _Labels:
    """Labels reduced to what their evidence needs; theta = log (A, k_0, q[, sigma]).

    On evenly spread points the features are orthogonal, and `gram` holds their squares only; else it is the matrix.
    """

    gram: Array
    seen: Array  # products of the features with the labels
    square: float
    count: int
    modes: int
    size: float
    sigma: float | None

    @staticmethod
    def of(x: Array, y: Array, lower: float, period: float, sigma: float | None) -> _Labels:
        modes = max(1, min(MOST_FREQUENCIES, (len(np.unique(x)) - 1) // 2))
        spacing = np.diff(np.sort((x - lower) % period))
        if len(x) > 2 and np.allclose(spacing, period / len(x), rtol=1e-6):
            gram, seen = _even(x, y, lower, period, modes)
        else:
            modes = min(modes, MOST_DENSE)
            features = Fourier(modes, lower, period)(x)
            gram, seen = features.T @ features, features.T @ y
        return _Labels(gram, seen, float(y @ y), len(y), modes, float(np.sqrt(np.mean(y**2))) or 1.0, sigma)

    @property
    def constant(self) -> float:
        """Prior sd of the constant mode."""
        return 10.0 * self.size

    def variance(self, theta: Array) -> Array:
        amplitude, corner, decay = np.exp(theta[:3])
        return amplitude**2 * (1.0 + (np.arange(1, MOST_FREQUENCIES + 1) / corner) ** 2) ** -decay

    def noise(self, theta: Array) -> float:
        return (FLOOR * self.size) ** 2 + float(np.exp(2.0 * theta[3])) if self.sigma is None else self.sigma**2

    def _terms(self, theta: Array) -> tuple[Array, float]:
        """Prior variances of the coefficients inferred, and the noise with the modes beyond them."""
        p = self.variance(theta)
        prior = np.concatenate([[self.constant**2], np.repeat(p[: self.modes], 2)])
        return prior, self.noise(theta) + float(p[self.modes :].sum())

    def negative_evidence(self, theta: Array) -> float:
        prior, level = self._terms(theta)
        if self.gram.ndim == 1:
            fitted = float(np.sum(self.seen**2 * prior / (level + prior * self.gram))) / level
            determinant = float(np.sum(np.log1p(prior * self.gram / level)))
        else:
            root = np.sqrt(prior)
            inner = np.eye(len(prior)) + root[:, None] * self.gram * root / level
            factor = linalg.cholesky(inner, lower=True, check_finite=False)
            half = linalg.solve_triangular(factor, root * self.seen, lower=True) / level
            fitted, determinant = float(half @ half), 2.0 * float(np.sum(np.log(np.diag(factor))))
        # weak priors keep the search where a spectrum makes sense: k_0 near a few, decay of one to ten
        regular = 0.5 * ((theta[1] - np.log(4.0)) / 1.5) ** 2 + 0.5 * ((theta[2] - np.log(2.0)) / 0.7) ** 2
        return 0.5 * (self.square / level - fitted + determinant + self.count * np.log(level)) + regular

    def second_moment(self, theta: Array) -> Array:
        """Of the coefficients at each frequency, given the labels; beyond those inferred, the prior's."""
        prior, level = self._terms(theta)
        if self.gram.ndim == 1:
            mean = self.seen * prior / (level + prior * self.gram)
            left = prior * level / (level + prior * self.gram)
        else:
            covariance = np.linalg.inv(np.diag(1.0 / prior) + self.gram / level)
            mean, left = covariance @ self.seen / level, np.diag(covariance)
        second = self.variance(theta)
        second[: self.modes] = 0.5 * (mean**2 + left)[1:].reshape(-1, 2).sum(1)
        return second


def _even(x: Array, y: Array, lower: float, period: float, modes: int) -> tuple[Array, Array]:
    """Squares and products with y of the features [1, sin, cos, ...] at evenly spread x, by one fast transform."""
    place = (x - lower) % period
    order = np.argsort(place)
    k = np.arange(modes + 1)
    waves = np.exp(-2j * np.pi * k * place[order[0]] / period) * np.fft.rfft(y[order])[: modes + 1]
    seen = np.concatenate([[waves[0].real], np.column_stack([-waves[1:].imag, waves[1:].real]).ravel()])
    return np.concatenate([[len(x)], np.full(2 * modes, 0.5 * len(x))]), seen


def fit(x: Array, y: Array, lower: float, period: float, sigma: float | None) -> Spectrum:
    """Evidence maximum for labels y at x; `sigma` fixes the noise."""
    labels, best = _Labels.of(x, y, lower, period, sigma), None
    for start in (0.3, 0.01):
        initial = np.log([labels.size, 4.0, 2.0, start * labels.size])[: 3 if sigma else 4]
        found = optimize.minimize(
            labels.negative_evidence, initial, method="Nelder-Mead",
            options={"maxfev": 400, "xatol": 0.02, "fatol": 0.02},
        )  # fmt: skip
        best = found if best is None or found.fun < best.fun else best
        if labels.gram.ndim == 2 or sigma is not None:
            break
    assert best is not None
    noise = float(np.sqrt(labels.noise(best.x)))
    return Spectrum(noise, labels.variance(best.x), labels.second_moment(best.x), labels.constant)


# -- of a problem


def rates(problem: Problem, statement: Statement, waves: Mapping[str, ArrayLike]) -> Complex | None:
    """lambda for waves of wave numbers k (arrays per space axis), coefficients taken at the domain's centre
    and at the values that are told of the fields.

    Of a second-order equation, one root of lambda^2; None if the equation has no time derivative to lead.
    """
    centre = {n: np.array([0.5 * (problem.domain[n].lower + problem.domain[n].upper)]) for n in problem.domain.names}
    order = statement.relation.order(TIME)
    lead, total = 0.0, np.zeros(1, complex)
    for jet, slope in linear_terms(problem, statement.relation, centre).items():
        size, times = float(np.ravel(slope)[0]), dict(jet.orders)
        if times.get(TIME, 0) == order:
            lead = size if times.keys() <= {TIME} else lead
            continue
        if TIME in times:  # damping and the like: small beside the leading terms of fast waves
            continue
        factor: Complex = np.ones(1, complex)
        for axis, n in times.items():
            factor = factor * (1j * np.asarray(waves[axis], float)) ** n
        total = total + size * factor
    if not order or not lead:
        return None
    return np.asarray((-total / lead) ** (1.0 / order), complex)


def fastest_rates(problem: Problem, modes: Mapping[str, int]) -> Complex:
    """Rates of the highest waves that modes per space axis hold, one per equation that has them."""
    turns = {n: count * (1.0 if isinstance(problem.domain[n], Periodic) else 0.5) for n, count in modes.items()}
    waves = {n: 2.0 * np.pi * count / problem.domain[n].length for n, count in turns.items()}
    found = [rates(problem, statement, waves) for statement in problem.statements if statement.kind == "equation"]
    return np.concatenate([np.zeros(0, complex), *(np.ravel(f) for f in found if f is not None)])


@dataclass(frozen=True, eq=False)
class Tail:
    """Modes that the basis leaves out: wave numbers, variances at the start, complex rates of the linear equation."""

    axis: str
    wave: Array
    variance: Array
    rate: NDArray[np.complex128]

    def of(self, orders: Mapping[str, int], times: Array) -> Array:
        """Variance of a derivative of the left-out part at each time (from the start)."""
        grown = np.exp(2.0 * np.minimum(np.outer(times, self.rate.real), 0.0))
        size = self.wave ** (2 * orders.get(self.axis, 0)) * np.abs(self.rate) ** (2 * orders.get(TIME, 0))
        return grown @ (size * self.variance)


def spectra_of(problem: Problem) -> dict[str, Spectrum]:
    """The spectrum of each field whose values are observed at the start, along the one periodic axis."""
    space = problem.domain.space
    found: dict[str, Spectrum] = {}
    if len(space) != 1 or not isinstance(problem.domain[space[0]], Periodic):
        return found
    axis, start = problem.domain[space[0]], problem.domain[TIME].lower
    for s in problem.statements:
        if s.points is None or len(s.relation.jets) != 1 or len(s.target) < 8 or s.stencil:
            continue
        jet = s.jet
        if jet.orders or not s.relation.is_linear or np.any(s.points[TIME] != start) or jet.field in found:
            continue
        if np.ptp(s.points[space[0]]) == 0.0:
            continue
        sigma = None if s.sigma is None else float(np.sqrt(np.mean(np.square(s.sigma))))
        found[jet.field] = fit(s.points[space[0]], s.target, axis.lower, axis.length, sigma)
    return found


def tails_of(
    problem: Problem, spectra: Mapping[str, Spectrum], modes: Mapping[str, int], activation: Activation
) -> dict[str, Tail]:
    """What the basis leaves out of each observed field, carried along by the equation's linear part."""
    tails: dict[str, Tail] = {}
    equations = [s for s in problem.statements if s.kind == "equation"]
    if len(problem.fields) != 1 or len(equations) != 1 or activation.name != "identity":
        return tails
    for name, spectrum in spectra.items():
        space = problem.domain.space[0]
        kept = modes[space]
        k = np.arange(kept + 1.0, len(spectrum.second_moment) + 1.0)
        wave = np.asarray(2.0 * np.pi * k / problem.domain[space].length, float)
        found = rates(problem, equations[0], {space: wave})
        if found is not None and len(k):
            rate = np.broadcast_to(found, wave.shape).astype(complex)
            tails[name] = Tail(space, wave, spectrum.second_moment[kept:], rate)
    return tails
