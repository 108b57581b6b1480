"""One Gaussian over all weights: every factor sends a rank-one message, and all messages are added at once.

In whitened weights v = (w - prior mean) / prior sd the belief is exp(-1/2 |v|^2 - 1/2 |J v - r|^2), J the factors'
rows over sigma and r their targets over sigma. The information J'J is summed in blocks of rows; where its condition
number would cost too many digits, the same belief is found by QR of the rows instead.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.errors import AdviceWarning, ProblemError, expected
from factorfield.factors import FactorGroup, linearise
from factorfield.gaussian import Dense, SquareRoot
from factorfield.methods import Report
from factorfield.model import Model, observation_noise
from factorfield.posterior import GaussianPosterior
from factorfield.solution import Solution, Status

Array = NDArray[np.float64]
ROWS_PER_BLOCK = 2048
LARGEST_CONDITION = 1e6  # Cholesky of the information then keeps ten digits of the answer


@dataclass(frozen=True)
class Joint:
    """The exact Gaussian posterior of linear models."""

    name = "joint"

    def run(self, model: Model, report: Report | None = None) -> Solution:
        if not model.is_linear:
            names = ", ".join(group.name for group in model.groups if not group.relation.is_linear)
            raise expected("a model that is linear in the weights", f"nonlinear factors ({names})", "a linear equation")
        begin = time.perf_counter()
        belief = solve_linear(model)
        sd = model.prior.std
        mean = model.prior.mean + sd * belief.mean
        root = sd[:, None] * belief.root
        seconds = time.perf_counter() - begin
        warn_of_free_directions(belief.root, model)
        posterior = GaussianPosterior(model.problem, model.representation, mean, root, observation_noise(model))
        return Solution(
            posterior,
            Status("converged", "linear and Gaussian: the posterior is exact"),
            trace={"iterations": 1},
            timings={"solve": seconds},
            settings={**model.settings, "method": self.name, "path": type(belief).__name__},
        )


def solve_linear(model: Model) -> Dense | SquareRoot:
    """The belief over whitened weights: Cholesky of the summed information, or QR where that would lose digits."""
    precision, shift = np.eye(model.size), np.zeros(model.size)
    for rows, target in whitened_blocks(model):
        precision += rows.T @ rows
        shift += rows.T @ target
    if not (np.all(np.isfinite(precision)) and np.all(np.isfinite(shift))):
        raise ProblemError("expected finite factors, received overflow in rows / sigma; try a larger sigma")
    belief = Dense(precision, shift)
    try:
        rcond, _ = linalg.lapack.dpocon(belief.cholesky, np.linalg.norm(precision, 1), uplo="L")
    except linalg.LinAlgError:
        rcond = 0.0
    return belief if rcond * LARGEST_CONDITION > 1.0 else by_qr(model)


def by_qr(model: Model) -> SquareRoot:
    """The same belief with the rows folded into a triangular factor block by block."""
    belief = SquareRoot(np.eye(model.size), np.zeros(model.size))
    for rows, target in whitened_blocks(model, max(ROWS_PER_BLOCK, model.size)):
        belief = belief * SquareRoot(rows, target)
    return belief


def whitened_blocks(model: Model, count: int = ROWS_PER_BLOCK) -> Iterator[tuple[Array, Array]]:
    """Linear factors as rows . v = target +- 1, in blocks of at most `count` factors."""
    mean, sd = model.prior.mean, model.prior.std
    for group in model.groups:
        for start in range(0, group.count, count):
            yield _whitened(group.part(slice(start, start + count)), mean, sd)


def _whitened(group: FactorGroup, mean: Array, sd: Array) -> tuple[Array, Array]:
    line = linearise(group.relation, group.project(mean), None, group.parameters, group.points)
    rows = group.pull_back(line.slopes / group.sigma[:, None], len(mean))
    rows *= sd
    return rows, (group.target - line.value) / group.sigma


def warn_of_free_directions(root: Array, model: Model) -> None:
    """trace(posterior / prior) counts the directions that neither data nor equation settled."""
    free = float(np.sum(root**2))
    if free >= 0.5 and model.settings.get("model") != "paper":
        warnings.warn(
            f"about {free:.0f} of {model.size} directions are settled by neither data nor equation and stay with the "
            "prior; add observations, initial or boundary conditions if the std is too large",
            AdviceWarning,
            stacklevel=4,
        )
