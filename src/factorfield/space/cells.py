"""Cells: points of integration with the local functions of a discretisation, and what is tested there.

All integrals have this one form, inside, on walls and in cells that a wall cuts: batches of small dense tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from factorfield.problem.domain import Orders

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cells:
    """Points (cells, points) by axis, their weights, and the functions (cells, functions) that differ from zero.

    Cells with fewer points than others are filled up with points of weight zero.
    """

    points: Mapping[str, Array]
    weights: Array
    index: Indices
    derivatives: Callable[[Orders], Array]
    _tables: dict[Orders, Array] = field(default_factory=dict)

    def table(self, orders: Orders) -> Array:
        """Derivatives of the functions of each cell at its points, (cells, points, functions)."""
        if orders not in self._tables:
            self._tables[orders] = np.ascontiguousarray(self.derivatives(orders))
        return self._tables[orders]

    @property
    def flat(self) -> dict[str, Array]:
        return {axis: x.ravel() for axis, x in self.points.items()}


@dataclass(frozen=True, eq=False)
class Weighting:
    """Test functions: rows (cells, functions) that an integral adds to, -1 for none, and their values (cells, points,
    functions)."""

    rows: Indices
    values: Array
