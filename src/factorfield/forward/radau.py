"""Radau IIA collocation in a window of time: instants, rates from values, and the polynomial between them.

With s instants the values at a window's end are of order 2s - 1, those in between of order s + 1. The method damps what
is stiff, and equations without a rate hold at every instant, the end included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rule:
    """`instants` of a window of length one; `rates` (s, s): from what values depart from the start to their rates;
    `legendre` (s + 1, s + 1): from values at the start and the instants to coefficients of Legendre's polynomials."""

    instants: Array
    rates: Array
    nodes: Array  # the start and the instants
    legendre: Array
    powers: Array  # (s + 1, s + 1): from the same values to coefficients of powers

    @property
    def stages(self) -> int:
        return len(self.instants)

    def weights(self, at: Array, order: int = 0) -> Array:
        """The polynomial's value, or a derivative, at shares of the window, from values at nodes, (points, s + 1)."""
        at, degrees = np.asarray(at, float), np.arange(order, self.stages + 1)
        factors = np.prod(degrees[:, None] - np.arange(order), axis=1)
        return np.asarray((at[..., None] ** (degrees - order) * factors) @ self.powers[order:])


@lru_cache(maxsize=16)
def rule_of(stages: int) -> Rule:
    inner = special.roots_jacobi(stages - 1, 1.0, 0.0)[0] if stages > 1 else np.empty(0)
    instants = np.append(0.5 * (1.0 + inner), 1.0)
    nodes = np.append(0.0, instants)
    legendre = np.asarray(np.linalg.inv(np.polynomial.legendre.legvander(2.0 * nodes - 1.0, stages)), float)
    powers = np.asarray(np.linalg.inv(np.vander(nodes, increasing=True)), float)
    rule = Rule(instants, np.empty(0), nodes, legendre, powers)
    return replace(rule, rates=rule.weights(instants, 1)[:, 1:])
