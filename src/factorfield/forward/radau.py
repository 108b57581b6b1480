"""Radau IIA collocation in a window of time: instants, rates from values, and the polynomial between them.

With s instants the values at a window's end are of order 2s - 1, those in between of order s + 1. The method damps what
is stiff, and equations without a rate hold at every instant, the end included.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rule:
    """`instants` of a window of length one; `rates` (s, s): from what values depart from the start to their rates;
    `legendre` (s + 1, s + 1): from values at the start and the instants to coefficients of shifted Legendre polynomials."""

    instants: Array
    rates: Array
    nodes: Array  # the start and the instants
    legendre: Array

    @property
    def stages(self) -> int:
        return len(self.instants)

    def weights(self, at: Array, order: int = 0) -> Array:
        """The polynomial's value, or a derivative, at shares of the window from values at the nodes, (points, s + 1)."""
        basis = np.polynomial.legendre.Legendre
        columns = [
            (basis.basis(n, domain=[0.0, 1.0]).deriv(order) if order else basis.basis(n, domain=[0.0, 1.0]))(at)
            for n in range(self.stages + 1)
        ]
        return np.stack(columns, axis=-1) @ self.legendre


@lru_cache(maxsize=16)
def rule_of(stages: int) -> Rule:
    inner = special.roots_jacobi(stages - 1, 1.0, 0.0)[0] if stages > 1 else np.empty(0)
    instants = np.append(0.5 * (1.0 + inner), 1.0)
    nodes = np.append(0.0, instants)
    powers = np.polynomial.legendre.legvander(2.0 * nodes - 1.0, stages)
    legendre = np.linalg.inv(powers)
    rule = Rule(instants, np.empty(0), nodes, legendre)
    return Rule(instants, rule.weights(instants, 1)[:, 1:], nodes, legendre)
