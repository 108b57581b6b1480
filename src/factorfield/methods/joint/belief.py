"""The joint belief's arithmetic: linearised factors, the Gaussian they give, and how two Gaussians compare.

Everything is in whitened weights v = (w - prior mean) / prior sd.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.errors import ProblemError, expected
from factorfield.messages.gaussian import LOG_TWO_PI, Dense, LowRank, Message, triangle
from factorfield.model.factors import FactorGroup, has_slopes, times, transposed_times
from factorfield.model.linearisation import Linearised, linearise
from factorfield.model.model import BlockModel
from factorfield.model.representation import with_constants
from factorfield.problem.reference import constant_fields

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
ARRIVED = 1e-3  # nats: a step that gains less has arrived
Gaussian = Dense | Message | LowRank  # one Gaussian over whitened weights, in the storage its factors ask for
CACHED_ROWS = 512  # a block of rows should stay in cache between being formed and being multiplied
FOLDED = 4  # times the weights: rows that one QR takes in, because every QR folds the weights' own triangle again
SAMPLE = 128  # factors per group from which the effect of a refinement is estimated


def unwhitened(model: BlockModel, position: Array) -> Array:
    return model.prior.mean + model.prior.std * position


def negative_log_joint(model: BlockModel, position: Array) -> float:
    with np.errstate(all="ignore"):
        value = -model.log_joint(unwhitened(model, position))
    return value if math.isfinite(value) else math.inf


def divergence(new: Gaussian, old: Gaussian) -> float:
    """KL(new || old)."""
    ratio = old.stretch(new.root)
    gap = new.log_determinant - old.log_determinant
    return 0.5 * (float(np.sum(np.square(ratio))) - len(ratio) + quadratic(old, new.mean - old.mean) + gap)


def quadratic(belief: Gaussian, step: Array) -> float:
    """step' precision step."""
    half = belief.stretch(step[:, None])
    return float(np.sum(half**2))


def tangents(model: BlockModel, weights: Array) -> list[Linearised]:
    return [
        linearise(group.relation, group.project(weights), None, group.parameters, group.points)
        for group in model.groups
    ]


def starting_place(model: BlockModel) -> Array:
    """Whitened weights where a search begins: the prior mean, or constants that data and walls tell if it has no value
    or no slope there, such as log(u) and sqrt(u) at 0."""
    weights = model.prior.mean
    candidates = (with_constants(model.representation, weights, each) for each in constant_fields(model.problem))
    for place in chain((weights,), candidates):
        if has_slopes(model.groups, place):
            return (place - weights) / model.prior.std
    raise expected(
        "equations and conditions that have a value where the fields are what is told of them",
        "one that has none, such as log(0)", "ff.Initial, ff.Boundary or ff.Observations that say how large they are",
    )  # fmt: skip


def starting_lines(model: BlockModel, position: Array) -> list[Linearised]:
    """Tangents at a position, except that observations u = g(z) are met where they hold: at z = g^-1(target)."""
    weights = unwhitened(model, position)
    lines = tangents(model, weights)
    for index, group in enumerate(model.groups):
        activation = group.relation.is_activation
        if activation is not None:
            there = activation.inverse(group.target)
            slope = activation(there, 1)
            value = group.target + slope * (group.project(weights)[:, 0] - there)
            lines[index] = Linearised(value, slope[:, None], np.zeros_like(value), np.zeros_like(value))
    return lines


def lines_under(model: BlockModel, belief: Gaussian) -> list[Linearised]:
    """The best line of every factor under the belief."""
    weights = unwhitened(model, belief.mean)
    lines = []
    for group in model.groups:
        covariance = functional_covariance(group, model.prior.std, belief)
        lines.append(linearise(group.relation, group.project(weights), covariance, group.parameters, group.points))
    return lines


def functional_covariance(group: FactorGroup, sd: Array, belief: Gaussian) -> Array:
    """Covariance (N, J, J) of a group's functionals: rows times the inverse of the belief's triangular factor."""
    count = len(group.rows)
    covariance = np.empty((group.count, count, count))
    if group.shared is not None:  # a face: the covariance of its few combinations, then features along the face
        starts = list(dict.fromkeys(block.start for block in group.blocks))
        seen = [_spread(belief, group.shared, next(b for b in group.blocks if b.start == s), sd) for s in starts]
        for i in range(count):
            for j in range(i + 1):
                a, b = (seen[starts.index(group.blocks[k].start)] for k in (i, j))
                covariance[:, i, j] = np.einsum("nk,nk->n", group.rows[i] @ (a.T @ b), group.rows[j])
                covariance[:, j, i] = covariance[:, i, j]
        return covariance
    for start in range(0, group.count, CACHED_ROWS):
        chosen = slice(start, start + CACHED_ROWS)
        spread = [_spread(belief, r[chosen], b, sd) for r, b in zip(group.rows, group.blocks, strict=True)]
        for i in range(count):
            for j in range(i + 1):
                covariance[chosen, i, j] = np.einsum("pn,pn->n", spread[i], spread[j])
                covariance[chosen, j, i] = covariance[chosen, i, j]
    return covariance


def _spread(belief: Gaussian, rows: Array, block: slice, sd: Array) -> Array:
    """X (weights, rows) with X'X = covariance of the rows."""
    if block.stop - block.start == len(sd):
        scaled = rows if np.all(sd == 1.0) else rows * sd
    else:
        scaled = np.zeros((len(rows), len(sd)))
        scaled[:, block] = rows * sd[block]
    return belief.whiten(scaled.T)


def free_energy(model: BlockModel, belief: Gaussian, lines: Sequence[Linearised]) -> float:
    """F(q) = E_q[-log joint] - entropy(q), from the first two moments of every factor's relation."""
    size = model.size
    trace = float(np.sum(belief.variance))
    total = 0.5 * (float(belief.mean @ belief.mean) + trace) + 0.5 * belief.log_determinant - 0.5 * size
    for group, line in zip(model.groups, lines, strict=True):
        misfit = (line.value - group.target) / group.sigma
        total += 0.5 * float(misfit @ misfit) + float(np.sum(np.log(group.sigma))) + 0.5 * group.count * LOG_TWO_PI
        total += 0.5 * float(np.sum((line.explained + line.excess) / group.sigma**2))
    return total if math.isfinite(total) else math.inf


def between(old: Gaussian, new: Gaussian, length: float) -> Dense:
    """Part of the way from one belief to another in natural parameters."""
    a, b = old.dense(), new.dense()
    return Dense((1.0 - length) * a.precision + length * b.precision, (1.0 - length) * a.shift + length * b.shift)


def sampled_change(model: BlockModel, belief: Gaussian, lines: Sequence[Linearised], position: Array) -> float:
    """An upper estimate of KL(next || belief), next being the belief from the best lines under this one.

    With D the change of the whitened rows and h that of the gradient at the mean, both measured in the belief's own
    metric, KL <= 1/2 |h|^2 + |D|^2 (to second order; the rows themselves have norm at most one in it). Both sums are
    estimated from a sample of factors: most models are so nearly Gaussian that a full pass would change nothing.
    """
    rng = np.random.default_rng(0)
    weights, old_weights = unwhitened(model, belief.mean), unwhitened(model, position)
    pull, spread = np.zeros(model.size), 0.0
    for group, line in zip(model.groups, lines, strict=True):
        chosen = np.sort(rng.choice(group.count, min(group.count, SAMPLE), replace=False))
        share = group.count / len(chosen)
        part = group.part(chosen)
        zeta = part.project(weights)
        covariance = functional_covariance(part, model.prior.std, belief)
        new = linearise(part.relation, zeta, covariance, part.parameters, part.points)
        old_value = line.value[chosen] + np.sum(line.slopes[chosen] * (zeta - part.project(old_weights)), axis=1)
        noises = np.sqrt(part.sigma**2 + line.excess[chosen]), np.sqrt(part.sigma**2 + new.excess)
        old_rows = part.pull_back(line.slopes[chosen] / noises[0][:, None], model.size) * model.prior.std
        new_rows = part.pull_back(new.slopes / noises[1][:, None], model.size) * model.prior.std
        pull += share * (
            (part.target - new.value) / noises[1] @ new_rows - (part.target - old_value) / noises[0] @ old_rows
        )
        spread += share * float(np.sum(belief.whiten((new_rows - old_rows).T) ** 2))
    return 0.5 * float(np.sum(belief.whiten(pull[:, None]) ** 2)) + spread


def condition(
    model: BlockModel, lines: Sequence[Linearised], position: Array, largest_condition: float
) -> tuple[Gaussian, float]:
    """The belief over whitened weights given linearised factors, and its information's reciprocal condition number.

    Through the factors' own space where they are fewer than the weights; else by Cholesky of the summed information,
    or by QR of the rows where its condition number is larger than allowed. Where no information is summed there is no
    condition number to limit: its reciprocal is infinite.
    """
    size = model.size
    if sum(group.count if group.shared is None else len(group.shared) for group in model.groups) < size:
        blocks = list(whitened_blocks(model, lines, position))
        rows, target = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return LowRank.from_rows(rows, target), math.inf
    precision = np.asfortranarray(np.eye(size))
    shift = np.zeros(size)
    for rows, target in whitened_blocks(model, lines, position):
        precision = linalg.blas.dsyrk(1.0, rows.T, beta=1.0, c=precision, lower=1, overwrite_c=1)
        shift += transposed_times(rows, target)
    if not (np.all(np.isfinite(shift)) and np.all(np.isfinite(np.diag(precision)))):
        raise ProblemError(
            "expected finite factors, received overflow: the equation may have no solution here (exp(u) that grows "
            "without end), or a sigma be far too small; try other coefficients, or larger sigmas"
        )
    factor, info = linalg.lapack.dpotrf(precision, lower=1, clean=1)
    norm = float(np.max(np.abs(np.diag(precision)))) * math.sqrt(size)
    rcond, refused = linalg.lapack.dpocon(factor, norm, uplo="L") if info == 0 else (0.0, 0)
    if info == 0 and refused == 0 and rcond * largest_condition > 1.0:
        belief = Dense(precision, shift)
        belief.__dict__.update(cholesky=factor)  # the cached property, already at hand
        return belief, float(rcond)
    root = Message(np.eye(size), np.zeros(size))
    for rows, target in whitened_blocks(model, lines, position, max(CACHED_ROWS, FOLDED * size)):
        root = root * Message(rows, target)
    return root, math.inf


def onto_equation(model: BlockModel, position: Array, free: Indices, most: int) -> tuple[Array, float]:
    """The fields that suit coefficients held where they are, and the negative log joint there.

    Newton steps in the `free` weights alone; between them the last factor serves again while each step gains far less
    than the one before, which also corrects its rounding. Of an equation linear in the fields one factor is enough.
    """
    merit = negative_log_joint(model, position)
    for _ in range(most if math.isfinite(merit) else 0):
        gained, factor = math.inf, None
        while True:
            gradient, curvature = _slope_and_curvature(model, position, free, factor is None)
            if factor is None:
                factor, info = linalg.lapack.dpotrf(curvature, lower=1, clean=0)
                if info != 0:
                    return position, merit
            candidate = position.copy()
            candidate[free] -= linalg.cho_solve((factor, True), gradient, check_finite=False)
            value = negative_log_joint(model, candidate)
            if not value < merit:
                break
            before, gained = gained, merit - value
            position, merit = candidate, value
            if gained < ARRIVED:
                return position, merit
            if gained > 0.1 * before:
                break
        if gained == math.inf:
            break
    return position, merit


def _slope_and_curvature(
    model: BlockModel, position: Array, free: Indices, with_curvature: bool
) -> tuple[Array, Array | None]:
    """Gradient of the negative log joint by the free weights, and its Gauss-Newton curvature (lower triangle)."""
    weights = unwhitened(model, position)
    if not with_curvature:
        pull = sum((group.log_likelihood_gradient(weights) for group in model.groups), np.zeros(model.size))
        return (position - model.prior.std * pull)[free], None
    curvature = np.asfortranarray(np.eye(len(free)))
    gradient = position[free].copy()
    for rows, target in whitened_blocks(model, tangents(model, weights), position):
        own = rows[:, free]
        curvature = linalg.blas.dsyrk(1.0, own.T, beta=1.0, c=curvature, lower=1, overwrite_c=1)
        gradient += transposed_times(own, times(rows, position) - target)
    return gradient, curvature


def whitened_blocks(
    model: BlockModel, lines: Sequence[Linearised], position: Array, count: int = CACHED_ROWS
) -> Iterator[tuple[Array, Array]]:
    """Linearised factors as rows . v = target +- 1, in blocks of at most `count` rows.

    A group on a face is first reduced by QR to as many rows as the face has features: the same information.
    """
    sd = model.prior.std
    plain = bool(np.all(sd == 1.0))
    for group, line in zip(model.groups, lines, strict=True):
        noise = np.sqrt(group.sigma**2 + line.excess)
        slopes = line.slopes / noise[:, None]
        if group.shared is None:
            for start in range(0, group.count, count):
                chosen = slice(start, start + count)
                rows = group.pull_back(slopes[chosen], model.size, chosen)
                if not plain:
                    rows *= sd
                gap = (group.target[chosen] - line.value[chosen]) / noise[chosen]
                yield rows, gap + times(rows, position)
        else:
            yield _reduced(group, slopes, (group.target - line.value) / noise, sd, position)


def _reduced(group: FactorGroup, slopes: Array, gap: Array, sd: Array, position: Array) -> tuple[Array, Array]:
    assert group.shared is not None
    parts = group.combined(slopes)
    triangular = triangle(np.column_stack([*parts.values(), gap]))
    width, height = triangular.shape[1] - 1, min(triangular.shape[1] - 1, len(triangular))
    rows = np.zeros((height, len(sd)))
    for index, (low, high) in enumerate(parts):
        left = triangular[:height, index * len(group.shared) : (index + 1) * len(group.shared)]
        rows[:, low:high] = (left @ group.shared) * sd[low:high]
    return rows, triangular[:height, width] + times(rows, position)


def log_evidence(model: BlockModel, position: Array) -> float | None:
    """log p(measurements | equation, conditions, prior), factors linearised at a position in whitened weights."""
    lines = tangents(model, unwhitened(model, position))
    others = [group.statement.kind != "observation" for group in model.groups]
    if all(others):
        return 0.0
    kept = replace(model, groups=tuple(group for group, keep in zip(model.groups, others, strict=True) if keep))
    kept_lines = [line for line, keep in zip(lines, others, strict=True) if keep]
    noise = sum(
        float(np.sum(np.log(group.sigma))) + 0.5 * group.count * LOG_TWO_PI
        for group, keep in zip(model.groups, others, strict=True)
        if not keep
    )
    return _level(model, lines, position) - _level(kept, kept_lines, position) - noise


def _level(model: BlockModel, lines: Sequence[Linearised], position: Array) -> float:
    """The log of the integral of linearised factors over whitened weights, without the factors' own normalisers."""
    if not model.groups:
        return 0.0
    belief, _ = condition(model, lines, position, 0.0)
    total = float(belief.mean @ belief.mean) + belief.log_determinant
    there, here = unwhitened(model, belief.mean), unwhitened(model, position)
    for group, line in zip(model.groups, lines, strict=True):
        moved = np.sum(line.slopes * (group.project(there) - group.project(here)), axis=1)
        misfit = (line.value + moved - group.target) / group.sigma
        total += float(misfit @ misfit)
    return -0.5 * total
