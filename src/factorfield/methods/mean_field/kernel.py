"""The compiled sweep of mean-field message passing: factors one after another, weights in straight loops.

One kernel serves every equation. It works on jet moments and coefficients: a factor's functionals are rows of one
flat `design` array, the closed form of a semilinear relation is five numbers, a linear one its slopes, and any other
relation a compiled function passed as an argument, so that a new equation compiles a few lines and never the kernel.
Without such relations (the paper's models have none) that argument is None, and the kernel is compiled without them.

Per factor (paper, Algorithm 1):
  1. incoming moments of each weight - the cavity belief / own message, or the belief itself;
  2. moments of the functionals, and the line  relation ~ value + slopes . (zeta - mean);
  3. coefficients A_k of the line in weight space and D = noise + sum A_k^2 v_k;
  4. message to weight k: precision A_k^2 / (D - A_k^2 v_k), shift A_k (delta + A_k m_k) / (D - A_k^2 v_k).
The reciprocals 1/(D - ...) and 1/belief precision are the only divisions per weight; the logarithm of the KL rule is
taken only where a cheap bound says that the largest KL of the epoch could be exceeded.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from factorfield.compiled import compiled, numba

njit, types = numba().njit, numba().types

# Sums may be reassociated and contracted (vector units); NaN and infinity keep their meaning.
ARITHMETIC: dict[str, Any] = {"fastmath": {"reassoc", "contract", "arcp", "nsz"}, "error_model": "numpy"}
# What only `sweep` calls needs no entry from Python or C and is kept on disk as a part of it: half a second less to
# compile. For the same reason nothing here assigns to a slice: Numba would compile its error message for two seconds.
INSIDE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
PART = {**ARITHMETIC, **INSIDE}
LINEAR, SEMILINEAR, GENERAL = 0, 1, 2
Relation = Callable[[int, np.ndarray, np.ndarray], None]
RELATION = types.void(types.int64, types.float64[::1], types.float64[::1])  # (group, arguments, value and slopes)
MOST_READS = 16
SQRT_HALF = math.sqrt(0.5)
NORMAL = 1.0 / math.sqrt(2.0 * math.pi)


@njit(**PART, inline="always")
def exponentials(m: float, v: float, rate: float) -> tuple[float, float]:
    """Lemma 1: E[e^{rate z} 1(z>0)] and E[e^{-rate z} 1(z<=0)]."""
    sd = math.sqrt(v)
    a = m / sd
    growth = 0.5 * rate * rate * v
    upper = math.exp(rate * m + growth) * 0.5 * math.erfc(-(a + rate * sd) * SQRT_HALF)
    lower = math.exp(-rate * m + growth) * 0.5 * math.erfc((a - rate * sd) * SQRT_HALF)
    return upper, lower


@njit(**ARITHMETIC)
def activation_moments(m: float, v: float, alpha: float, beta: float, kinks: bool, out: np.ndarray) -> None:
    """out: E[g], Var[g], E[g g'], then S_k = d^k E[g]/dm^k for k = 1..5 (S_k = E[g^(k)] where no jump contributes)."""
    v = max(v, 1e-300)
    upper, lower = exponentials(m, v, beta)
    upper2, lower2 = exponentials(m, v, 2.0 * beta)
    above = 0.5 * math.erfc(-m / math.sqrt(v) * SQRT_HALF)
    below = 1.0 - above
    first = (upper - above) - alpha * (lower - below)
    second = (upper2 - 2.0 * upper + above) + alpha * alpha * (lower2 - 2.0 * lower + below)
    out[0] = first
    out[1] = max(second - first * first, 0.0)
    out[2] = beta * ((upper2 - upper) - alpha * alpha * (lower2 - lower))
    even, odd = upper - alpha * lower, upper + alpha * lower
    b2 = beta * beta
    out[3], out[4], out[5], out[6], out[7] = (
        beta * odd,
        b2 * even,
        b2 * beta * odd,
        b2 * b2 * even,
        b2 * b2 * beta * odd,
    )
    if kinks:  # each jump of g^(k) at 0 adds a Gaussian density and its derivatives to the higher sensitivities
        n0 = NORMAL / math.sqrt(v) * math.exp(-0.5 * m * m / v)
        n1 = -m / v * n0
        n2 = (m * m / (v * v) - 1.0 / v) * n0
        n3 = (3.0 * m / (v * v) - m * m * m / (v * v * v)) * n0
        j1, j2 = beta * (1.0 - alpha), b2 * (1.0 + alpha)
        j3, j4 = b2 * beta * (1.0 - alpha), b2 * b2 * (1.0 + alpha)
        out[4] += j1 * n0
        out[5] += j2 * n0 + j1 * n1
        out[6] += j3 * n0 + j2 * n1 + j1 * n2
        out[7] += j4 * n0 + j3 * n1 + j2 * n2 + j1 * n3


@njit(**PART)
def semilinear_line(
    units: np.ndarray, readout: np.ndarray, coefficients: np.ndarray, mean: np.ndarray, covariance: np.ndarray,
    alpha: float, beta: float, kinks: bool, slopes: np.ndarray, moments: np.ndarray,
) -> tuple[float, float]:  # fmt: skip
    """Value, slopes and excess variance of
        p0 + p1 u + p2 u^2 + sum_h a_h (c1 g'(z_h) r_h + c2 g''(z_h) q_h^2),   u = sum_h a_h g(z_h),
    units independent. `units[h]` are the positions of z_h, r_h, q_h among the functionals (-1: absent).
    """
    p0, p1, p2, c1, c2 = coefficients[0], coefficients[1], coefficients[2], coefficients[3], coefficients[4]
    field = 0.0
    spread = 0.0
    excess = 0.0
    for h in range(len(units)):
        z = units[h, 0]
        if z < 0:  # another group has more units
            continue
        activation_moments(mean[z], covariance[z, z], alpha, beta, kinks, moments[h])
        field += readout[h] * moments[h, 0]
        spread += readout[h] * readout[h] * moments[h, 1]
        excess += readout[h] * readout[h] * max(moments[h, 1] - moments[h, 3] * moments[h, 3] * covariance[z, z], 0.0)
    value = p0 + p1 * field + p2 * (spread + field * field)
    for h in range(len(units)):
        z, r, q, a, s = units[h, 0], units[h, 1], units[h, 2], readout[h], moments[h]
        if z < 0:
            continue
        slope = p1 * s[3] + 2.0 * p2 * (a * (s[2] - s[0] * s[3]) + field * s[3])
        if r >= 0:  # E[g' r] = E[g'] E[r] + Cov(z, r) dE[g']/dm (Stein)
            value += a * c1 * (s[3] * mean[r] + covariance[z, r] * s[4])
            slope += c1 * (mean[r] * s[4] + covariance[z, r] * s[5])
            slopes[r] = a * c1 * s[3]
        if q >= 0:
            square = mean[q] * mean[q] + covariance[q, q]
            cross = covariance[z, q] if kinks else 0.0  # the paper takes g''(z) and q^2 as independent
            value += a * c2 * (s[4] * square + 2.0 * mean[q] * cross * s[5] + cross * cross * s[6])
            slope += c2 * (s[5] * square + 2.0 * mean[q] * cross * s[6] + cross * cross * s[7])
            slopes[q] = 2.0 * a * c2 * (s[4] * mean[q] + cross * s[5])
        slopes[z] = a * slope
    pure = c1 == 0.0 and c2 == 0.0 and p2 == 0.0  # u itself; residuals keep the paper's first-order variance
    return value, p1 * p1 * excess if pure else 0.0


@njit(**PART)
def activation_derivative(z: float, order: int, alpha: float, beta: float) -> float:
    """g^(order)(z)."""
    grown = math.exp(beta * abs(z))
    if order == 0:
        return grown - 1.0 if z > 0.0 else -alpha * (grown - 1.0)
    sign = 1.0 if z > 0.0 else (alpha if order % 2 == 1 else -alpha)
    return sign * beta**order * grown


@njit(**PART)
def cubature_line(
    relation: Relation, group: int, constants: np.ndarray, derivatives: np.ndarray, nodes: np.ndarray,
    weights: np.ndarray, mean: np.ndarray, covariance: np.ndarray, count: int, alpha: float, beta: float,
    slopes: np.ndarray, arguments: np.ndarray, outputs: np.ndarray,
) -> tuple[float, float]:  # fmt: skip
    """Value, slopes = E[gradient] and excess variance of any relation by the degree-five rule in jet space."""
    root = np.zeros((count, count))
    for i in range(count):  # Cholesky of the (semidefinite) covariance
        for j in range(i + 1):
            entry = covariance[i, j]
            for k in range(j):
                entry -= root[i, k] * root[j, k]
            if i == j:
                root[i, i] = math.sqrt(max(entry, 0.0))
            elif root[j, j] > 0.0:
                root[i, j] = entry / root[j, j]
    value = 0.0
    second = 0.0
    centre = 0.0
    for i in range(count):
        slopes[i] = 0.0
    for n in range(len(weights)):
        for i in range(count):
            shifted = mean[i]
            for j in range(i + 1):
                shifted += root[i, j] * nodes[n, j]
            arguments[i] = shifted
        for b in range(len(derivatives)):
            arguments[count + b] = activation_derivative(arguments[derivatives[b, 0]], derivatives[b, 1], alpha, beta)
        for c in range(len(constants)):
            arguments[count + len(derivatives) + c] = constants[c]
        relation(group, arguments, outputs)
        if n == 0:
            centre = outputs[0]  # the first node is the mean
        value += weights[n] * (outputs[0] - centre)
        second += weights[n] * (outputs[0] - centre) ** 2
        for i in range(count):
            slopes[i] += weights[n] * outputs[1 + i]
    explained = 0.0
    for i in range(count):
        for j in range(count):
            explained += slopes[i] * covariance[i, j] * slopes[j]
    return centre + value, max(second - value * value - explained, 0.0)


@njit(**PART)
def functional_moments(
    design: np.ndarray, starts: np.ndarray, offsets: np.ndarray, lengths: np.ndarray, count: int, m: np.ndarray,
    v: np.ndarray, mean: np.ndarray, covariance: np.ndarray,
) -> None:  # fmt: skip
    """Means and covariances of a factor's functionals under independent weights (m, v)."""
    for i in range(count):
        row = design[starts[i] : starts[i] + lengths[i]]
        first, second = m[offsets[i] : offsets[i] + lengths[i]], v[offsets[i] : offsets[i] + lengths[i]]
        total = 0.0
        square = 0.0
        for k in range(len(row)):
            total += row[k] * first[k]
            square += row[k] * row[k] * second[k]
        mean[i] = total
        covariance[i, i] = square
        for j in range(i):
            product = 0.0
            if offsets[j] == offsets[i]:
                other = design[starts[j] : starts[j] + lengths[j]]
                for k in range(len(row)):
                    product += row[k] * other[k] * second[k]
            covariance[i, j] = product
            covariance[j, i] = product


@njit(**PART)
def cavity(
    precision: np.ndarray,
    shift: np.ndarray,
    own_precision: np.ndarray,
    own_shift: np.ndarray,
    m: np.ndarray,
    v: np.ndarray,
) -> None:
    """Moments of belief / own message."""
    for k in range(len(precision)):
        variance = 1.0 / (precision[k] - own_precision[k])
        v[k] = variance
        m[k] = (shift[k] - own_shift[k]) * variance


@njit(**PART)
def coefficients_in_weights(
    design: np.ndarray, starts: np.ndarray, offsets: np.ndarray, lengths: np.ndarray, count: int, slopes: np.ndarray,
    offset: int, floor: float, v: np.ndarray, a: np.ndarray,
) -> float:  # fmt: skip
    """A_k = sum_j slope_j row_jk for one block of weights; returns sum A_k^2 v_k."""
    started = False
    for i in range(count):
        if offsets[i] != offset:
            continue
        row = design[starts[i] : starts[i] + lengths[i]]
        slope = slopes[i]
        if started:
            for k in range(len(row)):
                a[k] += slope * row[k]
        else:
            for k in range(len(row)):
                a[k] = slope * row[k]
            started = True
    if floor > 0.0:
        for k in range(len(a)):
            a[k] = max(a[k], floor) if a[k] >= 0.0 else min(a[k], -floor)
    total = 0.0
    for k in range(len(a)):
        total += a[k] * a[k] * v[k]
    return total


@njit(**PART)
def send(
    a: np.ndarray, m: np.ndarray, v: np.ndarray, scale: float, delta: float, keep: float, precision: np.ndarray,
    shift: np.ndarray, mean: np.ndarray, variance: np.ndarray, own_precision: np.ndarray, own_shift: np.ndarray,
    ratio: np.ndarray, moved: np.ndarray,
) -> tuple[float, int]:  # fmt: skip
    """Messages to one block of weights and the new beliefs; returns a bound on the sum of KLs and the rejections.

    `ratio` and `moved` keep what the exact KL(old || new) = 1/2 (x - log(1+x) + y) needs: x and y, per weight.
    """
    bound = 0.0
    rejected = 0
    for k in range(len(a)):
        rest = scale - a[k] * a[k] * v[k]
        inverse = 1.0 / rest if rest > 0.0 else 0.0  # not positive or NaN: the uniform message
        rejected += 0 if rest > 0.0 else 1
        new_precision = a[k] * a[k] * inverse
        new_shift = a[k] * (delta + a[k] * m[k]) * inverse
        new_precision += keep * (own_precision[k] - new_precision)
        new_shift += keep * (own_shift[k] - new_shift)
        belief_precision = precision[k] + (new_precision - own_precision[k])
        belief_shift = shift[k] + (new_shift - own_shift[k])
        own_precision[k] = new_precision
        own_shift[k] = new_shift
        belief_variance = 1.0 / belief_precision
        belief_mean = belief_shift * belief_variance
        x = belief_precision * variance[k] - 1.0
        step = belief_mean - mean[k]
        y = belief_precision * step * step
        ratio[k] = x
        moved[k] = y
        bound += x * x + y
        precision[k] = belief_precision
        shift[k] = belief_shift
        variance[k] = belief_variance
        mean[k] = belief_mean
    return 0.5 * bound, rejected


@njit(**INSIDE)
def largest_kl(ratio: np.ndarray, moved: np.ndarray, largest: float) -> float:
    """The largest KL among these weights and `largest`; x - log(1+x) <= x^2 for x > -0.6 spares most logarithms."""
    for k in range(len(ratio)):
        x, y = ratio[k], moved[k]
        if not (x > -0.6) or 0.5 * (x * x + y) > largest:
            kl = 0.5 * (x - math.log1p(x) + y) if x > -1.0 else math.inf
            if not (kl <= largest):
                largest = kl
    return largest


@compiled(**ARITHMETIC)
def sweep(
    order: np.ndarray, group_of: np.ndarray, kind: np.ndarray, uses_belief: np.ndarray, floor: np.ndarray,
    design: np.ndarray, starts: np.ndarray, offsets: np.ndarray, lengths: np.ndarray, reads: np.ndarray,
    blocks: np.ndarray, block_counts: np.ndarray, message_start: np.ndarray,
    target: np.ndarray, noise: np.ndarray, coefficients: np.ndarray, units: np.ndarray, readout: np.ndarray,
    relation: Relation | None, constants: np.ndarray, constant_counts: np.ndarray, derivatives: np.ndarray,
    derivative_counts: np.ndarray,
    nodes: np.ndarray, weights: np.ndarray, node_start: np.ndarray, alpha: float, beta: float, kinks: bool, keep: float,
    precision: np.ndarray, shift: np.ndarray, mean: np.ndarray, variance: np.ndarray,
    own_precision: np.ndarray, own_shift: np.ndarray,
) -> tuple[float, int]:  # fmt: skip
    """Visit the factors in the given order once; returns the largest KL and the number of rejected messages.

    Per factor: group, target, noise, starts (of its rows in `design`), coefficients. Per group: kind, input, floor,
    offsets and lengths of the blocks its functionals read, units, relation. Messages lie block after block.
    """
    size = len(precision)
    m, v, a = np.empty(size), np.empty(size), np.empty(size)
    ratio, moved = np.empty(size), np.empty(size)
    zeta, covariance = np.empty(MOST_READS), np.empty((MOST_READS, MOST_READS))
    slopes, moments = np.empty(MOST_READS), np.empty((MOST_READS, 8))
    arguments, outputs = np.empty(8 * MOST_READS), np.empty(MOST_READS + 1)
    largest = 0.0
    rejected = 0
    for f in order:
        g = group_of[f]
        count = reads[g]
        first = message_start[f]
        at = first
        for b in range(block_counts[g]):
            low, length = blocks[g, b, 0], blocks[g, b, 1]
            high = low + length
            if uses_belief[g]:
                for k in range(low, high):
                    m[k] = mean[k]
                    v[k] = variance[k]
            else:
                cavity(
                    precision[low:high], shift[low:high], own_precision[at : at + length], own_shift[at : at + length],
                    m[low:high], v[low:high],
                )  # fmt: skip
            at += length
        functional_moments(design, starts[f], offsets[g], lengths[g], count, m, v, zeta, covariance)
        value, excess = 0.0, 0.0
        if kind[g] == SEMILINEAR:
            value, excess = semilinear_line(
                units[g], readout[g], coefficients[f], zeta, covariance, alpha, beta, kinks, slopes, moments
            )
        elif kind[g] == LINEAR:
            value = coefficients[f, count]
            for i in range(count):
                slopes[i] = coefficients[f, i]
                value += slopes[i] * zeta[i]
        elif relation is not None:
            chosen = slice(node_start[g], node_start[g + 1])
            value, excess = cubature_line(
                relation, g, constants[f, : constant_counts[g]], derivatives[g, : derivative_counts[g]], nodes[chosen],
                weights[chosen], zeta, covariance, count, alpha, beta, slopes, arguments, outputs,
            )  # fmt: skip
        scale = noise[f] + excess
        for b in range(block_counts[g]):
            low, high = blocks[g, b, 0], blocks[g, b, 0] + blocks[g, b, 1]
            scale += coefficients_in_weights(
                design, starts[f], offsets[g], lengths[g], count, slopes, low, floor[g], v[low:high], a[low:high]
            )
        at = first
        for b in range(block_counts[g]):
            low, length = blocks[g, b, 0], blocks[g, b, 1]
            high = low + length
            bound, lost = send(
                a[low:high], m[low:high], v[low:high], scale, target[f] - value, keep, precision[low:high],
                shift[low:high], mean[low:high], variance[low:high], own_precision[at : at + length],
                own_shift[at : at + length], ratio[low:high], moved[low:high],
            )  # fmt: skip
            rejected += lost
            if not (bound <= largest):
                largest = largest_kl(ratio[low:high], moved[low:high], largest)
            at += length
    return largest, rejected
