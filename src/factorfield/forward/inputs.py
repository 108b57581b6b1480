"""Inputs of the map: what equations, walls and starts read besides the fields.

An input is a number or a function z = features(place) @ coefficients. The coefficients are what latents move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from factorfield.problem.domain import TIME, Orders, Points
from factorfield.space.grid import Grid

Array = NDArray[np.float64]
Matrix = Any  # an array or a sparse matrix


class TimeBasis(Protocol):
    """Functions of time."""

    @property
    def size(self) -> int: ...

    def features(self, t: Array, order: int = 0) -> Array:
        """(instants, functions)"""
        ...


@dataclass(frozen=True, eq=False)
class Input:
    """A number (neither basis), a function of space, of time, or of both: coefficients (time, space), space fastest."""

    name: str
    space: Grid | None = None
    time: TimeBasis | None = None
    _kept: dict[tuple[int, Orders], Matrix] = field(default_factory=dict)
    _alive: list[Points] = field(default_factory=list)

    @property
    def size(self) -> int:
        return self.times * (self.space.size if self.space else 1)

    @property
    def times(self) -> int:
        """Functions of time."""
        return self.time.size if self.time else 1

    def over_time(self, t: Array, orders: Orders) -> Array:
        """Features along time, (instants, functions of time)."""
        order = dict(orders).get(TIME, 0)
        if self.time is not None:
            return self.time.features(t, order)
        return np.full((len(t), 1), 0.0 if order else 1.0)

    def over_space(self, points: Points, orders: Orders) -> Matrix:
        """Features at places, (places, functions of space); kept for places that are asked again."""
        key = id(points), orders
        if key not in self._kept:
            self._kept[key] = self._read(points, orders)
            self._alive.append(points)  # an id stays unique as long as its object lives
        return self._kept[key]

    def _read(self, points: Points, orders: Orders) -> Matrix:
        count = len(next(iter(points.values()))) if points else 1
        inner = tuple((axis, times) for axis, times in orders if axis != TIME)
        if self.space is None:
            return np.full((count, 1), 0.0 if inner else 1.0)
        index, values = self.space.read(points, inner)
        starts = np.arange(0, index.size + 1, index.shape[1])
        features = sparse.csr_matrix((values.ravel(), index.ravel(), starts), shape=(count, self.space.size))
        return features.toarray() if values.shape[1] > 0.3 * self.space.size else features

    def values(self, coefficients: Array, points: Points, t: Array, orders: Orders) -> Array:
        """At all places and instants, (places, instants)."""
        table = coefficients.reshape(self.times, -1)
        return np.asarray(self.over_space(points, orders) @ (self.over_time(t, orders) @ table).T)


Coefficients = Mapping[str, Array]  # by input
Directions = Mapping[str, Array]  # by input, (coefficients, columns): how latents move the coefficients
