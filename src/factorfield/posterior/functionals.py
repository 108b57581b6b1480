"""Linear functionals of the weights: sums of derivatives of latents, on a tensor grid or at scattered points.

Whatever is asked of a field becomes one by its best line under the belief. How two places go together, and where the
next measurement tells most, are then covariances of such functionals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from factorfield.model.basis import Orders
from factorfield.problem.domain import TIME

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Atom = tuple[str, Orders]  # one derivative of one latent
READ_BYTES = 1 << 24  # of what is read at once and not kept
TOGETHER = 16  # neighbouring places along an axis that are multiplied at once


@dataclass(frozen=True, eq=False)
class Functionals:
    """Functional n is the sum over a of slopes[a, n] times the derivative atoms[a] at place n of a grid (axes in the
    domain's order, first axis slowest) or of scattered `points`."""

    atoms: tuple[Atom, ...]
    slopes: Array
    grid: Mapping[str, Array]
    points: bool
    held: dict[str, Any] = field(init=False, default_factory=dict, repr=False)  # what a posterior made of them once

    @property
    def count(self) -> int:
        return self.slopes.shape[1]

    @cached_property
    def flat(self) -> dict[str, Array]:
        """Every place by its coordinates."""
        if self.points:
            return dict(self.grid)
        mesh = np.meshgrid(*self.grid.values(), indexing="ij")
        return {name: x.ravel() for name, x in zip(self.grid, mesh, strict=True)}

    @cached_property
    def scattered(self) -> Functionals:
        """The same, as points."""
        return replace(self, grid=self.flat, points=True)

    def during(self, chosen: Indices) -> tuple[Functionals, Indices]:
        """Those at some entries of the axis of time (of the points, where these are scattered), and their numbers."""
        if self.points:
            part = {name: x[chosen] for name, x in self.grid.items()}
            return replace(self, grid=part, slopes=self.slopes[:, chosen]), chosen
        across = self.count // len(self.grid[TIME])  # time is the first axis
        numbers = (chosen[:, None] * across + np.arange(across)).ravel()
        return replace(self, grid={**self.grid, TIME: self.grid[TIME][chosen]}, slopes=self.slopes[:, numbers]), numbers


def contract(matrices: Sequence[Array], columns: Array) -> Array:
    """(kron of matrices) columns, one axis at a time: (features, k) -> (places of the grid, k)."""
    found, done, count = columns, 1, columns.shape[1]
    for matrix in matrices:
        found = _product(matrix, found.reshape(done, matrix.shape[1], -1))
        done *= len(matrix)
    return found.reshape(done, count)


def _product(matrix: Array, field: Array) -> Array:
    """(places, features) times (any, features, k). Neighbouring places read few of features that are local."""
    if field.shape[2] == 1:
        return (field[:, :, 0] @ matrix.T)[:, :, None]
    if 2 * np.count_nonzero(matrix) > matrix.size:
        return np.matmul(matrix, field)
    found = np.zeros((len(field), len(matrix), field.shape[2]))
    for start in range(0, len(matrix), TOGETHER):
        part = matrix[start : start + TOGETHER]
        read = np.flatnonzero(np.any(part, axis=0))
        if len(read):
            own = slice(read[0], read[-1] + 1)
            np.matmul(part[:, own], field[:, own], out=found[:, start : start + TOGETHER])
    return found


def weighted_sum(parts: Sequence[Array], slopes: Array) -> Array:
    """What functionals read, (n, k), from what each of their derivatives reads; `parts` are used up."""
    for part, own in zip(parts, slopes, strict=True):
        if np.any(own != 1.0):
            part *= own[:, None]
    for part in parts[1:]:
        parts[0][:] += part
    return parts[0]


class Shared(Protocol):
    """Covariances of functionals with places."""

    def squares(self) -> Array:
        """Their sums of squares over the functionals, at every place."""
        ...

    def at(self, one: Functionals, place: int) -> Array:
        """Of every functional with one place, given with its number."""
        ...

    def along(self, shares: Array) -> Array:
        """Of a weighted sum of the functionals with every place."""
        ...


@dataclass(frozen=True, eq=False)
class SharedDirectly:
    """Held as they are."""

    covariance: Array  # (functionals, places)

    def squares(self) -> Array:
        return np.asarray(np.einsum("mn,mn->n", self.covariance, self.covariance))

    def at(self, one: Functionals, place: int) -> Array:
        return np.asarray(self.covariance[:, place])

    def along(self, shares: Array) -> Array:
        return np.asarray(shares @ self.covariance)


@dataclass(frozen=True, eq=False)
class SharedByWeights:
    """Held as covariances of the functionals with all weights, which places read: less where places are many."""

    columns: Array  # (weights, functionals)
    places: Functionals
    read: Callable[[Functionals, Array], Array]  # what functionals read of weight vectors (weights, k)

    def squares(self) -> Array:
        found, block = np.zeros(self.places.count), max(1, READ_BYTES // (8 * self.places.count))
        for start in range(0, self.columns.shape[1], block):
            part = self.read(self.places, self.columns[:, start : start + block])
            found += np.einsum("nk,nk->n", part, part)
        return found

    def at(self, one: Functionals, place: int) -> Array:
        return np.asarray(self.read(one, self.columns)[0])

    def along(self, shares: Array) -> Array:
        return np.asarray(self.read(self.places, self.columns @ shares[:, None])[:, 0])
