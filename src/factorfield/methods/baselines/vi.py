"""Variational inference by reparameterised gradients (extra `baselines`): a Gaussian per weight, or a full one.

The negative evidence bound is E_q[-log joint] - entropy(q); the expectation is a mean over a few samples
w = mu + S eps, the entropy is exact. `covariance="full"` learns a triangular S; its gradients leave out the score of q
("sticking the landing"), whose mean is zero, so that their noise vanishes where q meets a Gaussian posterior.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.methods.baselines.adam import Loss, Schedule
from factorfield.methods.baselines.density import Batch, Batched, Facts, Shape, Shared, double_precision, log_joint
from factorfield.methods.baselines.sgd import adam_status, anneal, losses_of
from factorfield.posterior.gaussian import GaussianPosterior
from factorfield.progress import Progress
from factorfield.solution import Solution

if TYPE_CHECKING:
    from jax import Array as JaxArray

Array = NDArray[np.float64]
INITIAL_RAW_STD = -3.0  # softplus(-3) = log(e^-3 + 1) = 0.049: the initial std


@lru_cache(maxsize=32)
def negative_bound(shapes: tuple[Shape, ...], samples: int, full: bool) -> Loss:
    """(value, gradient) of the negative bound; parameters (mu, rho) or (mu, rho, below the diagonal), whitened."""

    def loss(
        parameters: tuple[JaxArray, ...], key: JaxArray, shared: Shared[JaxArray], facts: tuple[Facts[JaxArray], ...]
    ) -> tuple[JaxArray, tuple[JaxArray, ...]]:
        import jax
        import jax.numpy as jnp

        prior = shared.prior
        mu, rho = parameters[0], parameters[1]
        std = jnp.logaddexp(rho, 0.0)
        noise = jax.random.normal(key, (samples, len(mu)))
        lower = jnp.tril(parameters[2], -1) if full else None
        offsets = noise * std if lower is None else noise * std + noise @ lower.T

        def density(position: JaxArray) -> tuple[JaxArray, JaxArray]:
            value, gradient = log_joint(shapes, shared, facts, prior.mean + prior.std * position)
            return value, prior.std * gradient

        values, gradients = jax.vmap(density)(mu + offsets)
        bound = jnp.mean(values) + jnp.sum(jnp.log(std))
        slope = jax.nn.sigmoid(rho)  # of softplus
        if lower is None:
            by_std = jnp.mean(gradients * noise, 0) + 1.0 / std
            return -bound, (-jnp.mean(gradients, 0), -by_std * slope)
        root = lower + jnp.diag(std)
        score = jax.scipy.linalg.solve_triangular(root.T, noise.T, lower=False).T  # -d log q / d w at each sample
        path = gradients + score
        by_root = path.T @ noise / samples
        return -bound, (-jnp.mean(path, 0), -jnp.diag(by_root) * slope, -jnp.tril(by_root, -1))

    return loss


@dataclass(frozen=True)
class VI(Batched):
    """Settings. `covariance`: "diagonal" (mean-field, the paper's baseline) or "full"."""

    covariance: Literal["diagonal", "full"] = "diagonal"
    samples: int = 8
    schedule: Schedule = field(default_factory=Schedule)
    continuation: str | None = None
    seed: int = 0

    name = "vi"

    def __post_init__(self) -> None:
        if self.covariance not in ("diagonal", "full"):
            raise expected("covariance 'diagonal' or 'full'", self.covariance, "'diagonal'")
        if self.samples < 1:
            raise expected("samples >= 1", self.samples, "samples=8")

    def _run(self, batch: Batch, progress: Progress | None) -> list[Solution]:
        begin = time.perf_counter()
        count, size, full = len(batch.models), batch.models[0].size, self.covariance == "full"
        start: tuple[Array, ...] = (np.zeros((count, size)), np.full((count, size), INITIAL_RAW_STD))
        if full:
            start = (*start, np.zeros((count, size, size)))
        with double_precision():
            end, trace = anneal(negative_bound(batch.shapes, self.samples, full), batch, start, self, progress)
        seconds = (time.perf_counter() - begin) / count
        parameters = [np.asarray(part) for part in end.parameters]
        solutions = []
        for i, model in enumerate(batch.models):
            root = np.logaddexp(parameters[1][i], 0.0)
            if full:
                root = np.diag(root) + np.tril(parameters[2][i], -1)
            scale = model.prior.std
            posterior = GaussianPosterior(
                model.problem, model.representation, model.noise,
                model.prior.mean + scale * parameters[0][i], scale[:, None] * root if full else scale * root,
            )  # fmt: skip
            settings = {
                **model.settings, "method": self.name, "covariance": self.covariance, "samples": self.samples,
                "batch": count, "method_seed": self.seed,
            }  # fmt: skip
            trace_i = {"negative_bound": losses_of(trace, i)}
            status, timings = adam_status(end, i, self.schedule), {"solve": seconds}
            found = Solution(posterior, status, trace_i, timings, settings, model=model, advice=model.advice)
            solutions.append(found)
        return solutions
