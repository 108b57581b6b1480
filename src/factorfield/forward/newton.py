"""Newton's method for square systems, steady or of the instants of one window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from factorfield.forward.algebra import Factor

Array = NDArray[np.float64]


class NotConverged(ArithmeticError):
    """A nonlinear system whose solution was not reached."""


@dataclass(frozen=True)
class Tuning:
    """Sizes are relative to the largest value of each field."""

    settled: float = 1e-10  # a last step this small ends the search
    rounding: float = 1e-8  # steps below this that shrink no further are rounding
    fast: float = 0.05  # the share of the step before above which slopes are taken anew
    most_steps: int = 40


TUNING = Tuning()


class Equations(Protocol):
    """What is solved."""

    @property
    def is_linear(self) -> bool: ...

    def residual(self, values: Array) -> Array: ...

    def linearise(self, values: Array) -> tuple[Array, Factor]:
        """The residual and its factorised slopes."""
        ...

    def size(self, step: Array, values: Array) -> float: ...


def solve(
    equations: Equations, start: Array, known: Factor | None = None, tuning: Tuning = TUNING
) -> tuple[Array, Factor]:
    """The root, and the last factorisation. Slopes are kept, also `known` ones, as long as steps shrink fast."""
    values, factor, before = start, known, np.inf
    for _ in range(tuning.most_steps):
        is_fresh = factor is None
        if factor is None:
            missed, factor = equations.linearise(values)
        else:
            missed = equations.residual(values)
        step = factor.solve(-missed)
        now = equations.size(step, values)
        if not is_fresh and not now <= tuning.fast * before:
            if now < tuning.rounding and before < tuning.rounding:
                return values, factor
            if before < np.inf or not np.isfinite(now):
                factor = None
                continue
        if not np.isfinite(now):
            raise NotConverged("a step that is no number")
        if is_fresh and before < tuning.rounding and now > before:
            return values, factor
        values = values + step
        if equations.is_linear or now < tuning.settled:
            return values, factor
        before = now
    raise NotConverged(f"no root in {tuning.most_steps} steps")
