"""The PINN point estimate: Adam on mean((u - y)^2) / eps_D^2 + mean(R^2) / eps_C^2 (extra `baselines`).

Groups that share a relation - residuals at the collocation points and at the labels - share one mean.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from factorfield.methods.baselines.adam import Descent, Loss, Schedule, descend
from factorfield.methods.baselines.density import Batch, Batched, Facts, Shape, Shared, double_precision, half_squares
from factorfield.methods.continuation import stages
from factorfield.posterior.sampled import SampledPosterior
from factorfield.progress import Progress
from factorfield.solution import Solution, Status

if TYPE_CHECKING:
    from jax import Array as JaxArray

Array = NDArray[np.float64]


@lru_cache(maxsize=32)
def mean_squares(shapes: tuple[Shape, ...]) -> Loss:
    """The PINN loss of whitened weights."""

    def loss(
        parameters: tuple[JaxArray, ...], key: JaxArray, shared: Shared[JaxArray], facts: tuple[Facts[JaxArray], ...]
    ) -> tuple[JaxArray, tuple[JaxArray, ...]]:
        designs, prior = shared
        counts: dict[int, int] = {}
        for shape, fact in zip(shapes, facts, strict=True):
            counts[id(shape.relation)] = counts.get(id(shape.relation), 0) + len(fact.target)
        shares = [2.0 / counts[id(shape.relation)] for shape in shapes]
        value, gradient = half_squares(shapes, designs, facts, shares, prior.mean + prior.std * parameters[0])
        return value, (prior.std * gradient,)

    return loss


@dataclass(frozen=True)
class SGD(Batched):
    """Settings. `continuation`: a parameter that grows in four passes, None: the model's choice, "": none."""

    schedule: Schedule = field(default_factory=Schedule)
    continuation: str | None = None
    seed: int = 0

    name = "sgd"

    def _run(self, batch: Batch, progress: Progress | None) -> list[Solution]:
        begin = time.perf_counter()
        start = np.zeros((len(batch.models), batch.models[0].size))
        with double_precision():
            end, trace = anneal(mean_squares(batch.shapes), batch, (start,), self, progress)
        seconds = (time.perf_counter() - begin) / len(batch.models)
        weights = batch.shared.prior.mean + batch.shared.prior.std * np.asarray(end.parameters[0])
        return [
            Solution(
                SampledPosterior(model.problem, model.representation, model.noise, weights[i : i + 1]),
                adam_status(end, i, self.schedule),
                {"loss": losses_of(trace, i)},
                {"solve": seconds},
                {**model.settings, "method": self.name, "batch": len(batch.models), "method_seed": self.seed},
                model=model,
                advice=model.advice,
            )
            for i, model in enumerate(batch.models)
        ]


class Annealed(Protocol):
    """Settings of a method that descends through the passes of a continuation."""

    @property
    def name(self) -> str: ...
    @property
    def schedule(self) -> Schedule: ...
    @property
    def continuation(self) -> str | None: ...
    @property
    def seed(self) -> int: ...


def anneal(
    loss: Loss, batch: Batch, parameters: tuple[Array, ...], method: Annealed, progress: Progress | None
) -> tuple[Descent, list[Array]]:
    """Adam through the passes of a continuation, the iterations split evenly over them."""
    passes = [stages(model, method.continuation) for model in batch.models]
    count = len(passes[0])
    trace: list[Array] = []
    for index in range(count):

        def tell(fraction: float, value: float, index: int = index) -> None:
            if progress is not None:
                progress(f"{method.name}, pass {index + 1}/{count}, mean loss {value:.4g}", (index + fraction) / count)

        facts = batch.facts([models[index] for models in passes])
        schedule = method.schedule.shortened(count)
        end = descend(loss, parameters, batch.shared, facts, schedule, method.seed + index, tell)
        parameters = end.parameters
        trace += end.losses
    return end, trace


def losses_of(trace: Sequence[Array], index: int) -> list[float]:
    return [float(values[index]) for values in trace if not np.isnan(values[index])]


def adam_status(end: Descent, index: int, schedule: Schedule) -> Status:
    if end.diverged[index]:
        return Status("diverged", "the loss is not finite: try a smaller rate, or method='joint'")
    if end.stopped[index]:
        return Status("converged", f"no gain above {schedule.gain:.1%} per window at the smallest rate")
    return Status(
        "max-iterations",
        f"{schedule.iterations} iterations while the loss still fell: usable, but more iterations would move it",
    )
