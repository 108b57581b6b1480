"""Adam with the plateau schedule that the paper's baselines share (extra `baselines`: Optax).

Every `window` iterations the window's mean loss is compared with the last one's; an improvement below `gain` halves
the rate, at most `halvings` times, and the next plateau stops. Trajectories of a batch advance in lockstep, each with
its own rate; one that has stopped keeps its parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected, needed
from factorfield.methods.baselines.density import Facts, Shared

if TYPE_CHECKING:
    from jax import Array as JaxArray
    from jax.stages import Wrapped
    from optax import ScaleByAdamState

    Carry = tuple[tuple[JaxArray, ...], ScaleByAdamState]

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


class Loss(Protocol):
    """Value and gradient for one trajectory; hashable, so that a sweep compiles it once."""

    def __hash__(self) -> int: ...

    def __call__(
        self, parameters: tuple[JaxArray, ...], key: JaxArray, shared: Shared[JaxArray],
        facts: tuple[Facts[JaxArray], ...],
    ) -> tuple[JaxArray, tuple[JaxArray, ...]]: ...  # fmt: skip


@dataclass(frozen=True)
class Schedule:
    rate: float = 3e-4
    iterations: int = 30_000
    window: int = 500
    gain: float = 1e-3
    halvings: int = 4

    def __post_init__(self) -> None:
        if not (self.rate > 0.0 and self.iterations >= 1 and self.window >= 1 and self.halvings >= 0):
            raise expected("rate > 0, iterations >= 1, window >= 1, halvings >= 0", self, "Schedule(iterations=30000)")

    def shortened(self, passes: int) -> Schedule:
        """The same schedule for one of several continuation passes."""
        return Schedule(self.rate, max(1, self.iterations // passes), self.window, self.gain, self.halvings)


@dataclass
class Descent:
    """Where each trajectory of a batch ended."""

    parameters: tuple[Array, ...]
    losses: list[Array] = field(default_factory=list)  # mean loss of each window; NaN where a trajectory has stopped
    stopped: Flags = field(default_factory=lambda: np.zeros(0, bool))
    diverged: Flags = field(default_factory=lambda: np.zeros(0, bool))
    iterations: int = 0


@lru_cache(maxsize=32)
def _window(loss: Loss, length: int) -> Wrapped:
    """`length` iterations for a batch, compiled: (parameters, state, keys, rates, shared, facts) -> ..., mean loss."""
    jax = needed("jax", "baselines")
    optax = needed("optax", "baselines")
    scaled = optax.scale_by_adam()

    def one(
        parameters: tuple[JaxArray, ...], state: ScaleByAdamState, key: JaxArray, rate: JaxArray,
        shared: Shared[JaxArray], facts: tuple[Facts[JaxArray], ...],
    ) -> tuple[tuple[JaxArray, ...], ScaleByAdamState, JaxArray]:  # fmt: skip
        def step(carry: Carry, key: JaxArray) -> tuple[Carry, JaxArray]:
            parameters, state = carry
            value, gradient = loss(parameters, key, shared, facts)
            direction, state = scaled.update(gradient, state)
            parameters = jax.tree.map(lambda p, d: p - rate * d, parameters, direction)
            return (parameters, state), value

        (parameters, state), values = jax.lax.scan(step, (parameters, state), jax.random.split(key, length))
        return parameters, state, values.mean()

    return jax.jit(jax.vmap(one, in_axes=(0, 0, 0, 0, None, 0)))


def descend(
    loss: Loss,
    parameters: tuple[Array, ...],
    shared: Shared[Array],
    facts: tuple[Facts[Array], ...],
    schedule: Schedule,
    seed: int,
    progress: Callable[[float, float], None] | None = None,
) -> Descent:
    """Minimise a loss for every trajectory; `parameters` and `facts` carry a leading axis that counts them.

    Call inside `double_precision()`. `progress(fraction done, mean loss)` is called after each window.
    """
    jax = needed("jax", "baselines")
    optax = needed("optax", "baselines")
    count = len(parameters[0])
    state = jax.vmap(optax.scale_by_adam().init)(parameters)
    rates, halved = np.full(count, schedule.rate), np.zeros(count, int)
    result = Descent(parameters, [], np.zeros(count, bool), np.zeros(count, bool))
    key = jax.random.key(seed)
    while result.iterations < schedule.iterations and not result.stopped.all():
        length = min(schedule.window, schedule.iterations - result.iterations)
        key, own_key = jax.random.split(key)
        keys = jax.random.split(own_key, count)
        step = _window(loss, length)
        moved, state, mean = step(result.parameters, state, keys, rates, shared, facts)
        mean = np.asarray(mean)
        kept = result.stopped
        result.parameters = jax.tree.map(
            lambda new, old, kept=kept: np.where(kept.reshape(-1, *[1] * (new.ndim - 1)), old, new),
            moved,
            result.parameters,
        )
        result.iterations += length
        result.diverged = result.diverged | (~np.isfinite(mean) & ~kept)
        result.stopped = kept | result.diverged
        if result.losses:
            before = result.losses[-1]
            flat = (before - mean < schedule.gain * np.abs(before)) & ~kept
            result.stopped |= flat & (halved >= schedule.halvings)
            rates = np.where(flat, 0.5 * rates, rates)
            halved = halved + flat
        result.losses.append(np.where(kept, np.nan, mean))
        if progress is not None:
            progress(result.iterations / schedule.iterations, float(np.mean(mean)))
    return result
