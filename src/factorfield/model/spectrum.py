"""Waves: how fast an equation lets them grow, and how large they are at the start.

The spectrum is the evidence's, of labels along a periodic axis, with four parameters:

Labels y = u(x) + noise, u = sum of modes with a_k ~ N(0, p_k), p_k = A^2 (1 + (k / k_0)^2)^(-q) + B^2 / k^4, noise
N(0, sigma^2). The first part is a smooth field. The second is that of kinks: beside a few large waves the first alone
would take weak ones for nothing. Modes beyond what the labels can tell (k > M) act as further noise of variance sum
p_k. A, k_0, q, B and - where it is not given - sigma maximise the evidence. What a basis of K modes leaves out keeps
its second moment: it is not certain.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize

from factorfield.model.activation import Activation
from factorfield.model.basis import Fourier
from factorfield.problem.domain import PLACES, TIME, Periodic
from factorfield.problem.places import everywhere
from factorfield.problem.problem import Problem
from factorfield.problem.reference import reference_values
from factorfield.problem.relation import Jet, Relation, evaluate_coefficient
from factorfield.problem.statement import Statement

if TYPE_CHECKING:
    import sympy

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
MOST_FREQUENCIES = 512  # frequencies that are followed at all
MOST_DENSE = 48  # of them, those inferred jointly when the labels are not evenly spread
FEWEST_LABELS = 8  # fewer can tell neither their noise nor a spectrum
CORNER = (4.0, 2.0)  # where k_0 and q are expected
KINKS = 0.01  # the same of B, in units of the labels' size
LARGEST_LOG = 50.0  # of any parameter
SPREADS = np.array([1.5, 0.7, 2.0])  # of the logarithms of these three
FLOOR = 1e-6  # smallest noise that is believed, in units of the labels' size: rounding and modelling are never exact


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
    """Labels reduced to what their evidence needs; theta = log (A, k_0, q, B[, sigma]).

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
        smooth, kinks, _ = self._parts(theta)
        return smooth + kinks

    def _parts(self, theta: Array) -> tuple[Array, Array, Array]:
        """Variances of the smooth part and of kinks, and 1 + (k / k_0)^2."""
        amplitude, corner, decay, kinks = np.exp(theta[:4])
        k = np.arange(1, MOST_FREQUENCIES + 1)
        beyond = 1.0 + (k / corner) ** 2
        return amplitude**2 * beyond**-decay, (kinks / k**2) ** 2, beyond

    def noise(self, theta: Array) -> float:
        return (FLOOR * self.size) ** 2 + float(np.exp(2.0 * theta[4])) if self.sigma is None else self.sigma**2

    def _terms(self, theta: Array) -> tuple[Array, float]:
        """Prior variances of the coefficients inferred, and the noise with the modes beyond them."""
        p = self.variance(theta)
        prior = np.concatenate([[self.constant**2], np.repeat(p[: self.modes], 2)])
        return prior, self.noise(theta) + float(p[self.modes :].sum())

    def negative_evidence(self, theta: Array) -> tuple[float, Array]:
        """With weak priors that keep the search where a spectrum makes sense, and its slopes by theta."""
        theta = np.clip(theta, -LARGEST_LOG, LARGEST_LOG)  # a first step may go anywhere
        prior, level = self._terms(theta)
        value, by_prior, by_level = (_even_evidence if self.gram.ndim == 1 else _dense_evidence)(self, prior, level)
        by_variance = np.full(MOST_FREQUENCIES, by_level)
        by_variance[: self.modes] = by_prior[1:].reshape(-1, 2).sum(axis=1)
        (smooth, kinks, beyond), decay = self._parts(theta), float(np.exp(theta[2]))
        moved = [
            2.0 * smooth,
            2.0 * decay * smooth * (1.0 - 1.0 / beyond),
            -decay * np.log(beyond) * smooth,
            2.0 * kinks,
        ]
        slopes = np.array([by_variance @ each for each in moved])
        if self.sigma is None:
            slopes = np.append(slopes, by_level * 2.0 * np.exp(2.0 * theta[4]))
        away = (theta[1:4] - np.log([*CORNER, KINKS * self.size])) / SPREADS
        slopes[1:4] += away / SPREADS
        return value + 0.5 * float(away @ away), slopes

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


def _even_evidence(labels: _Labels, prior: Array, level: float) -> tuple[float, Array, float]:
    """Minus the log evidence of labels on even points, and its slopes by prior variances and noise.

    With V the labels' covariance it is (y' V^-1 y + log |V|) / 2."""
    total, squares = level + prior * labels.gram, labels.seen**2
    value = labels.square / level - float(np.sum(squares * prior / total)) / level
    value += float(np.sum(np.log(total / level))) + labels.count * np.log(level)
    far = labels.square - float(np.sum(squares * prior * (level + total) / total**2))  # level^2 y' V^-2 y
    trace = (labels.count - float(np.sum(prior * labels.gram / total))) / level
    return 0.5 * value, 0.5 * (labels.gram / total - squares / total**2), 0.5 * (trace - far / level**2)


def _dense_evidence(labels: _Labels, prior: Array, level: float) -> tuple[float, Array, float]:
    """The same on any points."""
    root, gram = np.sqrt(prior), labels.gram / level
    inner = np.eye(len(prior)) + root[:, None] * gram * root
    factor = linalg.cholesky(inner, lower=True, check_finite=False)
    half = linalg.solve_triangular(
        factor, np.column_stack([root[:, None] * gram, root * labels.seen / level]), lower=True
    )
    fitted = linalg.solve_triangular(factor, half[:, -1], lower=True, trans=1)
    determinant = 2.0 * float(np.sum(np.log(np.diag(factor))))
    value = labels.square / level - float(half[:, -1] @ half[:, -1]) + determinant + labels.count * np.log(level)
    left = labels.seen / level - gram @ (root * fitted)  # features' V^-1 y
    by_prior = np.diag(gram) - np.sum(half[:, :-1] ** 2, axis=0) - left**2
    weights = root * fitted
    far = labels.square - 2.0 * float(weights @ labels.seen) + level * float(weights @ gram @ weights)
    inverse = linalg.solve_triangular(factor, np.eye(len(prior)), lower=True)
    trace = (labels.count - len(prior) + float(np.sum(inverse**2))) / level
    return 0.5 * value, 0.5 * by_prior, 0.5 * (trace - far / level**2)


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
    return _fit(np.asarray(x, float).tobytes(), np.asarray(y, float).tobytes(), lower, period, sigma)


@lru_cache(maxsize=8)
def _fit(places: bytes, values: bytes, lower: float, period: float, sigma: float | None) -> Spectrum:
    """Found once for all numbers of modes that the same labels are solved with."""
    labels = _Labels.of(np.frombuffer(places), np.frombuffer(values), lower, period, sigma)
    middle = [labels.size, *CORNER, KINKS * labels.size]
    starts = [middle] if sigma is not None else [[*middle, share * labels.size] for share in (0.3, 0.01)]
    ends = [
        optimize.minimize(labels.negative_evidence, np.log(start), method="BFGS", jac=True, options={"gtol": 1e-3})
        for start in starts
    ]
    best = min(ends, key=lambda end: float(end.fun))
    noise = float(np.sqrt(labels.noise(best.x)))
    return Spectrum(noise, labels.variance(best.x), labels.second_moment(best.x), labels.constant)


# -- of a problem


def over_domain(problem: Problem, coefficient: sympy.Expr) -> Array:
    """A coefficient at a few places along every axis, its centre among them: (instants, places), or (1, 1) if it is a
    number. NaN where it has no finite value, such as 1/x at 0."""
    where = everywhere(problem.domain, problem.shape)
    return _by_instants(problem, evaluate_coefficient(coefficient, problem.typical_parameters, where))


@lru_cache(maxsize=32)  # a model of one problem asks for the same terms many times
def terms_over_domain(problem: Problem, relation: Relation) -> dict[Jet, Array]:
    """The same of every term of a relation, its slope, unknowns at their mean; terms that are not linear are linearised
    at the values told of the fields."""
    told = {} if relation.is_linear else reference_values(problem, relation)
    known, where = {**told, **problem.typical_parameters}, everywhere(problem.domain, problem.shape)
    own = {jet: entry for jet, entry in relation.jacobian.items() if jet.field not in relation.functions}
    return {jet: _by_instants(problem, evaluate_coefficient(entry, known, where)) for jet, entry in own.items()}


def _by_instants(problem: Problem, values: float | Array) -> Array:
    found = np.asarray(values, float)
    found = found.reshape(1, 1) if found.ndim == 0 else found.reshape(PLACES if TIME in problem.domain else 1, -1)
    return np.where(np.isfinite(found), found, np.nan)


def largest(values: ArrayLike) -> float:
    """The largest of the absolute values that are numbers; 0 if none is."""
    return float(np.max(np.abs(np.nan_to_num(np.asarray(values, float))), initial=0.0))


def rates(problem: Problem, statement: Statement, waves: Mapping[str, ArrayLike]) -> Complex | None:
    """lambda for waves of wave numbers k (arrays per space axis) at the values that are told of the fields, and at
    a few instants and places where coefficients depend on them: (instants, places, waves); NaN where it has no value.

    Of a second-order equation, one root of lambda^2; None if the equation has no time derivative to lead.
    """
    order = statement.relation.order(TIME)
    lead, total = np.zeros((1, 1)), np.zeros((1, 1, 1), complex)
    for jet, size in terms_over_domain(problem, statement.relation).items():
        times = dict(jet.orders)
        leads = times.get(TIME, 0) == order
        if (leads and not times.keys() <= {TIME}) or (TIME in times and not leads):
            continue  # damping and the like: small beside the leading terms of fast waves
        if leads:
            lead = size
            continue
        factor: Complex = np.ones(1, complex)
        for axis, n in times.items():
            factor = factor * (1j * np.asarray(waves[axis], float)) ** n
        total = total + size[:, :, None] * factor
    if not order or not largest(lead):
        return None
    lead = np.where(lead == 0.0, np.nan, lead)
    return np.asarray((-total / lead[:, :, None]) ** (1.0 / order), complex)


def lasting_rates(found: Complex) -> Complex:
    """Of rates at instants and places, per wave: their mean over time, where the wave lasts longest."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # places without any value
        over_time = np.nanmean(found, axis=0)
    slowest = np.argmax(np.nan_to_num(over_time.real, nan=-np.inf), axis=0)
    return np.asarray(np.nan_to_num(np.take_along_axis(over_time, slowest[None], axis=0)[0]), complex)


def fastest_rates(problem: Problem, modes: Mapping[str, int]) -> tuple[float, Complex]:
    """Of the highest waves that modes per space axis hold: how fast the fastest is anywhere, and the mean over time
    of their rates at every place, of all equations that have them."""
    waves = _highest(problem, modes)
    found = [rates(problem, statement, waves) for statement in problem.statements if statement.kind == "equation"]
    all_rates = [np.nan_to_num(each) for each in found if each is not None]
    fastest = max((largest(np.abs(each)) for each in all_rates), default=0.0)
    return fastest, np.concatenate([np.zeros(0, complex), *(np.ravel(each.mean(axis=0)) for each in all_rates)])


def _highest(problem: Problem, modes: Mapping[str, int]) -> dict[str, float]:
    """Wave numbers of the highest waves that modes per space axis hold."""
    turns = {n: count * (1.0 if isinstance(problem.domain[n], Periodic) else 0.5) for n, count in modes.items()}
    return {n: 2.0 * np.pi * count / problem.domain[n].length for n, count in turns.items()}


def system_growth(problem: Problem, modes: Mapping[str, int]) -> float:
    """The rate at which the highest waves grow by all equations together: where u drives v and v drives u, they may
    turn only. The largest real part of the eigenvalues, as a mean over time at the place where it is largest.

    With y of waves exp(lambda t + i k x) the equations are (A_0 + lambda A_1 + lambda^2 A_2 ...) y = 0.
    """
    equations = [s for s in problem.statements if s.kind == "equation"]
    order, count = max(s.relation.order(TIME) for s in equations), len(problem.fields)
    if order == 0 or len(equations) != count:
        return 0.0
    waves = _highest(problem, modes)
    terms = [terms_over_domain(problem, s.relation) for s in equations]
    shape = np.broadcast_shapes((1, 1), *(size.shape for own in terms for size in own.values()))
    pencil = np.zeros((order + 1, *shape, count, count), complex)
    for row, own in enumerate(terms):
        for jet, size in own.items():
            times = dict(jet.orders)
            wave = np.prod([(1j * waves[axis]) ** n for axis, n in times.items() if axis != TIME])
            pencil[times.get(TIME, 0), :, :, row, problem.fields.index(jet.field)] += np.nan_to_num(size) * wave
    left, right = np.zeros((2, *shape, order * count, order * count), complex)
    for power in range(order):  # y, y_t, ... of one order after the other
        here = slice(power * count, (power + 1) * count)
        if power + 1 < order:
            left[..., here, here] = np.eye(count)
            right[..., here, (power + 1) * count : (power + 2) * count] = np.eye(count)
        right[..., -count:, here] = -pencil[power]
    left[..., -count:, -count:] = pencil[order]
    growth = np.zeros(shape)
    for place in np.ndindex(*shape):
        found = linalg.eigvals(right[place], left[place])
        growth[place] = np.max(found.real, where=np.isfinite(found), initial=-np.inf)
    return float(np.max(np.mean(np.nan_to_num(growth, neginf=0.0), axis=0)))


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

    def waves(self, orders: Mapping[str, int], places: Mapping[str, Array]) -> Complex:
        """A derivative of every left-out wave at places (times from the start): (places, waves). The real part of its
        product with the conjugate of another's is what both go together, per variance."""
        times = np.asarray(places[TIME])[:, None]
        phase = 1j * (np.outer(places[self.axis], self.wave) + times * self.rate.imag)
        slopes = (1j * self.wave) ** orders.get(self.axis, 0) * self.rate ** orders.get(TIME, 0)
        return np.asarray(slopes * np.exp(times * np.minimum(self.rate.real, 0.0) + phase), complex)


def spectra_of(problem: Problem, offsets: Mapping[str, float]) -> dict[str, Spectrum]:
    """The spectrum of each field whose values are observed at the start, along the one periodic axis, about offsets."""
    space = problem.domain.space
    found: dict[str, Spectrum] = {}
    if len(space) != 1 or not isinstance(problem.domain[space[0]], Periodic):
        return found
    axis, start = problem.domain[space[0]], problem.domain[TIME].lower
    for s in problem.statements:
        if s.points is None or len(s.relation.jets) != 1 or len(s.target) < FEWEST_LABELS or s.stencil:
            continue
        jet = s.jet
        if jet.orders or not s.relation.is_linear or np.any(s.points[TIME] != start) or jet.field in found:
            continue
        if np.ptp(s.points[space[0]]) == 0.0:
            continue
        sigma = None if s.sigma is None else float(np.sqrt(np.mean(np.square(s.sigma))))
        values = s.target - offsets.get(jet.field, 0.0)
        found[jet.field] = fit(s.points[space[0]], values, axis.lower, axis.length, sigma)
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
            rate = np.broadcast_to(lasting_rates(found), wave.shape).astype(complex)
            tails[name] = Tail(space, wave, spectrum.second_moment[kept:], rate)
    return tails
