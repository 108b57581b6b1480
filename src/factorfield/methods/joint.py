"""One Gaussian over all weights: every factor sends a rank-one message, and all messages are added at once.

In whitened weights v = (w - prior mean) / prior sd, linearised factors say J v = r +- 1, and the belief is
exp(-1/2 |v|^2 - 1/2 |J v - r|^2). An iteration projects (BLAS 2), linearises in jet space, sums J'J by symmetric rank
updates over blocks of rows (BLAS 3) and factorises. Linear models take one step. Nonlinear ones

  1. by tangents at the mean (Gauss-Newton), steps halved until the negative log joint does not rise; its end is the
     Laplace approximation (`linearisation="taylor"`, method="laplace");
  2. then, by default, by the best line under the belief itself (posterior linearisation), steps halved until the
     variational free energy F(q) = E_q[-log joint] - entropy(q) does not rise.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.continuation import stages
from factorfield.errors import AdviceWarning, ProblemError, expected
from factorfield.factors import FactorGroup, Linearised, linearise
from factorfield.gaussian import LOG_TWO_PI, Dense, LowRank, SquareRoot
from factorfield.methods import Report
from factorfield.model import Model, observation_noise
from factorfield.posterior import GaussianPosterior
from factorfield.solution import Solution, Status

Array = NDArray[np.float64]
Belief = Dense | SquareRoot | LowRank
ROWS_PER_BLOCK = 512  # a block of rows should stay in cache between being formed and being multiplied
EXACT_CONDITION = (
    1e6  # a linear problem is exact: Cholesky keeps ten digits of the answer below this, QR takes over above
)
ITERATED_CONDITION = 1e12  # a linearised one is not: Cholesky may keep four
STARTED = 50.0  # tangents stop at a promised gain of this many tolerances when posterior linearisation follows
REFINED = 10.0  # posterior linearisation stops at a KL of this many tolerances, over all weights together
CONTRADICTION = 100.0  # root mean square misfit, in sigmas, from which a group is said to contradict the others


@dataclass(frozen=True)
class Joint:
    """Settings. `linearisation`: "moments" (under the belief) or "taylor" (at the mean: Laplace).

    tolerance      stop when a step promises to gain less than this in log joint or free energy (nats)
    continuation   a parameter that grows to its value in four passes, None: the model's choice, "": none
    """

    linearisation: Literal["moments", "taylor"] = "moments"
    iterations: int = 50
    tolerance: float = 1e-3
    continuation: str | None = None

    def __post_init__(self) -> None:
        if self.linearisation not in ("moments", "taylor"):
            raise expected("linearisation 'moments' or 'taylor'", self.linearisation, "'moments'")
        if self.iterations < 1 or not self.tolerance > 0.0:
            raise expected("iterations >= 1 and tolerance > 0", f"{self.iterations}, {self.tolerance}", "iterations=50")

    @property
    def name(self) -> str:
        return "joint" if self.linearisation == "moments" else "laplace"

    def run(self, model: Model, report: Report | None = None) -> Solution:
        begin = time.perf_counter()
        trace: dict[str, Any] = {"negative_log_joint": [], "free_energy": [], "iterations": 0}
        if model.is_linear:
            belief = condition(model, tangents(model, model.prior.mean), np.zeros(model.size), EXACT_CONDITION)
            status = Status("converged", "linear and Gaussian: the posterior is exact")
            trace |= {"iterations": 1, "log_evidence": laplace_evidence(model, belief)}
        else:
            belief, status = self._iterate(model, trace, report)
        mean = model.prior.mean + model.prior.std * belief.mean
        root = model.prior.std[:, None] * belief.root
        timings = {"solve": time.perf_counter() - begin}
        advise(model, belief, mean)
        posterior = GaussianPosterior(model.problem, model.representation, mean, root, observation_noise(model))
        settings = {**model.settings, "method": self.name, "path": type(belief).__name__}
        return Solution(posterior, status, trace, timings, settings)

    def _iterate(self, model: Model, trace: dict[str, Any], report: Report | None) -> tuple[Belief, Status]:
        position = np.zeros(model.size)
        passes = stages(model, self.continuation)
        start: list[Linearised] | None = starting_lines(passes[0])
        refining = self.linearisation == "moments"
        for index, stage in enumerate(passes):
            last = index == len(passes) - 1
            # an early pass has to reach the next one's neighbourhood, and tangents that of the refinement
            tolerance = (STARTED if refining else 1.0) * self.tolerance if last else 1.0
            belief, done = self._descend(stage, position, start, trace, report, tolerance)
            position, start = belief.mean, None
        if refining:
            belief, done = self._refine(model, belief, trace, report)
        else:
            trace["log_evidence"] = laplace_evidence(model, belief)
        if not np.all(np.isfinite(belief.mean)):
            return belief, Status("diverged")
        if done:
            return belief, Status("converged", f"a further step would gain less than {self.tolerance:g} nats")
        return belief, Status("max-iterations")

    def _descend(
        self, model: Model, position: Array, start: list[Linearised] | None, trace: dict[str, Any],
        report: Report | None, tolerance: float,
    ) -> tuple[Belief, bool]:  # fmt: skip
        """Gauss-Newton on the negative log joint from a position in whitened weights."""
        merit = negative_log_joint(model, position)
        for _ in range(self.iterations):
            lines = start or tangents(model, unwhitened(model, position))
            start = None
            belief = condition(model, lines, position, ITERATED_CONDITION)
            trace["iterations"] += 1
            trace["negative_log_joint"].append(merit)
            step = belief.mean - position
            promised = 0.5 * quadratic(belief, step)  # what the linearised factors say the step gains
            if report is not None:
                report(f"iteration {trace['iterations']}, promised gain {promised:.1e} nats", 0.5)
            if promised < tolerance:
                return belief, True
            length = 1.0
            while True:
                candidate = position + length * step
                value = negative_log_joint(model, candidate)
                if value <= merit:
                    break
                length *= 0.5
                if length < 1e-6:
                    return belief, False
            position, merit = candidate, value
        return belief, False

    def _refine(
        self, model: Model, belief: Belief, trace: dict[str, Any], report: Report | None
    ) -> tuple[Belief, bool]:
        """Posterior linearisation from a belief, accepted only while the free energy falls."""
        lines = lines_under(model, belief)
        merit = free_energy(model, belief, lines)
        trace["free_energy"].append(merit)
        for _ in range(self.iterations):
            proposal = condition(model, lines, belief.mean, ITERATED_CONDITION)
            trace["iterations"] += 1
            trace["log_evidence"] = -merit
            change = divergence(proposal, belief)
            if report is not None:
                report(f"refinement {len(trace['free_energy'])}, KL to the last belief {change:.1e}", 0.8)
            if change < REFINED * self.tolerance:  # the free energy is flat here: nothing left to judge
                return proposal, True
            length = 1.0
            while True:
                candidate = proposal if length == 1.0 else between(belief, proposal, length)
                new_lines = lines_under(model, candidate)
                value = free_energy(model, candidate, new_lines)
                if value <= merit:
                    break
                length *= 0.25
                if length < 1e-2:  # not even a short step helps: the belief is as good as the free energy can tell
                    return belief, True
            belief, lines, merit = candidate, new_lines, value
            trace["free_energy"].append(merit)
        return belief, False


def Laplace(**options: Any) -> Joint:
    """method="laplace": Joint with tangents at the mean."""
    return Joint(linearisation="taylor", **options)


# -- one step


def unwhitened(model: Model, position: Array) -> Array:
    return model.prior.mean + model.prior.std * position


def negative_log_joint(model: Model, position: Array) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        value = -model.log_joint(unwhitened(model, position))
    return value if math.isfinite(value) else math.inf


def divergence(new: Belief, old: Belief) -> float:
    """KL(new || old)."""
    ratio = old.stretch(new.root)
    gap = new.log_determinant - old.log_determinant
    return 0.5 * (float(np.sum(np.square(ratio))) - len(ratio) + quadratic(old, new.mean - old.mean) + gap)


def quadratic(belief: Belief, step: Array) -> float:
    """step' precision step."""
    half = belief.stretch(step[:, None])
    return float(np.sum(half**2))


def tangents(model: Model, weights: Array) -> list[Linearised]:
    return [
        linearise(group.relation, group.project(weights), None, group.parameters, group.points)
        for group in model.groups
    ]


def starting_lines(model: Model) -> list[Linearised]:
    """Tangents at the prior mean, except that observations u = g(z) are met where they hold: at z = g^-1(target)."""
    zeta = [group.project(model.prior.mean) for group in model.groups]
    lines = tangents(model, model.prior.mean)
    for index, group in enumerate(model.groups):
        activation = group.relation.is_activation
        if activation is not None:
            there = activation.inverse(group.target)
            slope = activation(there, 1)
            value = group.target + slope * (zeta[index][:, 0] - there)
            lines[index] = Linearised(value, slope[:, None], np.zeros_like(value), np.zeros_like(value))
    return lines


def lines_under(model: Model, belief: Belief) -> list[Linearised]:
    """The best line of every factor under the belief."""
    weights = unwhitened(model, belief.mean)
    lines = []
    for group in model.groups:
        covariance = functional_covariance(group, model.prior.std, belief)
        lines.append(linearise(group.relation, group.project(weights), covariance, group.parameters, group.points))
    return lines


def functional_covariance(group: FactorGroup, sd: Array, belief: Belief) -> Array:
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
    for start in range(0, group.count, ROWS_PER_BLOCK):
        chosen = slice(start, start + ROWS_PER_BLOCK)
        spread = [_spread(belief, r[chosen], b, sd) for r, b in zip(group.rows, group.blocks, strict=True)]
        for i in range(count):
            for j in range(i + 1):
                covariance[chosen, i, j] = np.einsum("pn,pn->n", spread[i], spread[j])
                covariance[chosen, j, i] = covariance[chosen, i, j]
    return covariance


def _spread(belief: Belief, rows: Array, block: slice, sd: Array) -> Array:
    """X (weights, rows) with X'X = covariance of the rows."""
    if block.stop - block.start == len(sd):
        scaled = rows if np.all(sd == 1.0) else rows * sd
    else:
        scaled = np.zeros((len(rows), len(sd)))
        scaled[:, block] = rows * sd[block]
    return belief.whiten(scaled.T)


def free_energy(model: Model, belief: Belief, lines: Sequence[Linearised]) -> float:
    """F(q) = E_q[-log joint] - entropy(q), from the first two moments of every factor's relation."""
    size = model.size
    trace = float(np.sum(belief.variance))
    total = 0.5 * (float(belief.mean @ belief.mean) + trace) + 0.5 * belief.log_determinant - 0.5 * size
    for group, line in zip(model.groups, lines, strict=True):
        misfit = (line.value - group.target) / group.sigma
        total += 0.5 * float(misfit @ misfit) + float(np.sum(np.log(group.sigma))) + 0.5 * group.count * LOG_TWO_PI
        total += 0.5 * float(np.sum((line.explained + line.excess) / group.sigma**2))
    return total if math.isfinite(total) else math.inf


def between(old: Belief, new: Belief, length: float) -> Dense:
    """Part of the way from one belief to another in natural parameters."""
    a, b = old.dense(), new.dense()
    return Dense((1.0 - length) * a.precision + length * b.precision, (1.0 - length) * a.shift + length * b.shift)


def condition(model: Model, lines: Sequence[Linearised], position: Array, largest_condition: float) -> Belief:
    """The belief over whitened weights given linearised factors.

    Through the factors' own space where they are fewer than the weights; else by Cholesky of the summed information,
    or by QR of the rows where that would lose the digits.
    """
    size = model.size
    if sum(group.count if group.shared is None else len(group.shared) for group in model.groups) < size:
        blocks = list(whitened_blocks(model, lines, position))
        return LowRank.from_rows(np.concatenate([b[0] for b in blocks]), np.concatenate([b[1] for b in blocks]))
    precision = np.asfortranarray(np.eye(size))
    shift = np.zeros(size)
    for rows, target in whitened_blocks(model, lines, position):
        precision = linalg.blas.dsyrk(1.0, rows.T, beta=1.0, c=precision, lower=1, overwrite_c=1)
        shift += target @ rows
    if not (np.all(np.isfinite(shift)) and np.all(np.isfinite(np.diag(precision)))):
        raise ProblemError("expected finite factors, received overflow in rows / sigma; try a larger sigma")
    factor, info = linalg.lapack.dpotrf(precision, lower=1, clean=1)
    norm = float(np.max(np.abs(np.diag(precision)))) * math.sqrt(size)
    rcond = linalg.lapack.dpocon(factor, norm, uplo="L")[0] if info == 0 else 0.0
    if rcond * largest_condition > 1.0:
        belief = Dense(precision, shift)
        belief.__dict__["cholesky"] = factor  # the cached property, already at hand
        return belief
    root = SquareRoot(np.eye(size), np.zeros(size))
    for rows, target in whitened_blocks(model, lines, position, max(ROWS_PER_BLOCK, size)):
        root = root * SquareRoot(rows, target)
    return root


def whitened_blocks(
    model: Model, lines: Sequence[Linearised], position: Array, count: int = ROWS_PER_BLOCK
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
                yield rows, (group.target[chosen] - line.value[chosen]) / noise[chosen] + rows @ position
        else:
            yield _reduced(group, slopes, (group.target - line.value) / noise, sd, position)


def _reduced(group: FactorGroup, slopes: Array, gap: Array, sd: Array, position: Array) -> tuple[Array, Array]:
    assert group.shared is not None
    parts = group.combined(slopes)
    triangular = linalg.qr(np.column_stack([*parts.values(), gap]), mode="r", check_finite=False)[0]
    width, height = triangular.shape[1] - 1, min(triangular.shape[1] - 1, len(triangular))
    rows = np.zeros((height, len(sd)))
    for index, (low, high) in enumerate(parts):
        left = triangular[:height, index * len(group.shared) : (index + 1) * len(group.shared)]
        rows[:, low:high] = (left @ group.shared) * sd[low:high]
    return rows, triangular[:height, width] + rows @ position


def laplace_evidence(model: Model, belief: Belief) -> float:
    """log p(all factors): log joint at the mean + P/2 log 2 pi - 1/2 log det precision; exact for linear models."""
    whitening = float(np.sum(np.log(model.prior.std)))
    level = model.log_joint(unwhitened(model, belief.mean)) + whitening
    return level + 0.5 * model.size * LOG_TWO_PI - 0.5 * belief.log_determinant


# -- what a user should know


def advise(model: Model, belief: Belief, mean: Array) -> None:
    """Warn of directions that neither data nor equation settled, and of groups that contradict the rest."""
    if model.settings.get("model") == "paper":  # the paper's protocol leaves both as they are
        return
    free = float(np.sum(belief.variance))  # trace(posterior / prior)
    if free >= 0.5:
        warnings.warn(
            f"about {free:.0f} of {model.size} directions are settled by neither data nor equation and stay with the "
            "prior; add observations, initial or boundary conditions if the std is too large",
            AdviceWarning,
            stacklevel=4,
        )
    for group in model.groups:
        value = group.relation.value(group.project(mean), group.parameters, group.points)
        misfit = float(np.sqrt(np.mean(((value - group.target) / group.sigma) ** 2)))
        if misfit > CONTRADICTION:
            warnings.warn(
                f"{group.name}: misses its values by {misfit:.3g} sigma (root mean square), so it contradicts the "
                "other factors or the basis cannot follow it; check the values, enlarge its sigma or add modes",
                AdviceWarning,
                stacklevel=4,
            )
