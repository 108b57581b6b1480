"""Square matrices of one fixed pattern: dense, banded or sparse. They are filled by adding up entries in slots.

A pattern knows where an entry (row, column) is kept. Values of a matrix are one flat array, so that matrices of several
instants are the columns of one table. A factorisation solves with the matrix and with its transpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import lapack
from scipy.sparse import csgraph
from scipy.sparse import linalg as sparse_linalg

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class Singular(ArithmeticError):
    """A matrix that cannot be inverted."""


class Factor(Protocol):
    """Solves with a matrix; right-hand sides are columns."""

    def solve(self, right: Array) -> Array: ...

    def solve_transposed(self, right: Array) -> Array: ...


class Pattern(Protocol):
    """Where the entries of n x n matrices are kept."""

    @property
    def n(self) -> int: ...

    @property
    def slots(self) -> int: ...

    def positions(self, rows: Indices, columns: Indices) -> Indices: ...

    def product(self, values: Array, vectors: Array) -> Array: ...

    def product_transposed(self, values: Array, vectors: Array) -> Array: ...

    def factor(self, values: Array) -> Factor: ...

    def stage_factor(self, slopes: Array, masses: Array, rates: Array) -> Factor:
        """Of the coupled system of all instants of a window: block (i, j) is rates[i, j] masses[i] + [i = j] slopes[i].

        `slopes`, `masses` have a row per instant. Vectors are instants after each other."""
        ...


@dataclass(frozen=True)
class Tuning:
    """When which kind of matrix is used; measured on lines and planes."""

    dense_size: int = 24  # up to this size a matrix is dense
    dense_share: float = 0.4  # of its entries: with more of them it is dense
    widest_band: int = 60  # beyond this half width general sparse elimination is faster


TUNING = Tuning()


def pattern_of(n: int, rows: Indices, columns: Indices, tuning: Tuning = TUNING) -> Pattern:
    """The kind of matrix that suits entries at these places."""
    keys = np.unique(np.concatenate([rows * n + columns, np.arange(n) * (n + 1)]))
    if n <= tuning.dense_size or len(keys) > tuning.dense_share * n * n:
        return Dense(n)
    graph = sparse.csr_matrix((np.ones(len(keys)), (keys // n, keys % n)), shape=(n, n))
    order = csgraph.reverse_cuthill_mckee(sparse.csr_matrix(graph + graph.T), symmetric_mode=True)
    place = np.empty(n, np.int64)
    place[order] = np.arange(n)
    width = int(np.max(np.abs(place[keys // n] - place[keys % n])))
    return Banded(n, place, width) if width <= tuning.widest_band else Sparse(n, keys)


@dataclass(frozen=True, eq=False)
class Dense:
    n: int

    @property
    def slots(self) -> int:
        return self.n * self.n

    def positions(self, rows: Indices, columns: Indices) -> Indices:
        return rows * self.n + columns

    def product(self, values: Array, vectors: Array) -> Array:
        return np.asarray(values.reshape(self.n, self.n) @ vectors)

    def product_transposed(self, values: Array, vectors: Array) -> Array:
        return np.asarray(values.reshape(self.n, self.n).T @ vectors)

    def factor(self, values: Array) -> Factor:
        return DenseFactor(values.reshape(self.n, self.n))

    def stage_factor(self, slopes: Array, masses: Array, rates: Array) -> Factor:
        n, stages = self.n, len(slopes)
        whole = np.einsum("ij,iab->iajb", rates, masses.reshape(stages, n, n))
        for i in range(stages):
            whole[i, :, i, :] += slopes[i].reshape(n, n)
        return DenseFactor(whole.reshape(stages * n, stages * n))


class DenseFactor:
    def __init__(self, matrix: Array) -> None:
        self._lu, self._pivots, info = lapack.dgetrf(matrix)
        if info != 0 or not np.all(np.isfinite(self._lu)):
            raise Singular("a matrix without an inverse")

    def solve(self, right: Array) -> Array:
        return np.asarray(lapack.dgetrs(self._lu, self._pivots, right)[0]).reshape(right.shape)

    def solve_transposed(self, right: Array) -> Array:
        return np.asarray(lapack.dgetrs(self._lu, self._pivots, right, trans=1)[0]).reshape(right.shape)


@dataclass(frozen=True, eq=False)
class Banded:
    """Entries near the diagonal after renumbering (`place`): entry (r, c) is at [width + r - c, c]."""

    n: int
    place: Indices
    width: int

    @property
    def slots(self) -> int:
        return (2 * self.width + 1) * self.n

    def positions(self, rows: Indices, columns: Indices) -> Indices:
        r, c = self.place[rows], self.place[columns]
        return (self.width + r - c) * self.n + c

    @cached_property
    def order(self) -> Indices:
        return np.argsort(self.place)

    @cached_property
    def _entries(self) -> tuple[Indices, Indices, Indices]:
        """Slots inside the matrix, with their rows and columns in the numbers of the user."""
        offset, column = np.divmod(np.arange(self.slots), self.n)
        row = column + offset - self.width
        inside = np.flatnonzero((row >= 0) & (row < self.n))
        return inside, self.order[row[inside]], self.order[column[inside]]

    def _matrix(self, values: Array) -> Any:
        slots, rows, columns = self._entries
        return sparse.csr_matrix((values[slots], (rows, columns)), shape=(self.n, self.n))

    def product(self, values: Array, vectors: Array) -> Array:
        return np.asarray(self._matrix(values) @ vectors)

    def product_transposed(self, values: Array, vectors: Array) -> Array:
        return np.asarray(self._matrix(values).T @ vectors)

    def factor(self, values: Array) -> Factor:
        return self.stage_factor(values[None, :], np.zeros((1, self.slots)), np.zeros((1, 1)))

    def stage_factor(self, slopes: Array, masses: Array, rates: Array) -> Factor:
        """Instants of one place stand together, so that the coupled matrix is banded too."""
        stages, n, b = len(slopes), self.n, self.width
        wide = stages * (b + 1) - 1
        band = np.zeros((3 * wide + 1, stages * n))
        flat = band.reshape(-1)
        flat[self._coupled(stages)] = rates[:, :, None] * masses[:, None, :]
        for i in range(stages):
            flat[self._coupled(stages)[i, i]] += slopes[i]
        order = (self.order[:, None] + n * np.arange(stages)).ravel()
        return BandFactor(band, wide, order)

    def _coupled(self, stages: int) -> Indices:
        """Where in the band of the coupled matrix the slots of block (i, j) are."""
        if stages not in self._kept:
            b, n, wide = self.width, self.n, stages * (self.width + 1) - 1
            offset, column = np.divmod(np.arange(self.slots), n)
            i, j = np.arange(stages)[:, None, None], np.arange(stages)[None, :, None]
            row = 2 * wide + (offset - b) * stages + i - j
            self._kept[stages] = row * (stages * n) + column * stages + j
        return self._kept[stages]

    @cached_property
    def _kept(self) -> dict[int, Indices]:
        return {}


class BandFactor:
    def __init__(self, band: Array, width: int, order: Indices) -> None:
        self._lu, self._pivots, info = lapack.dgbtrf(band, width, width)
        if info != 0 or not np.all(np.isfinite(self._lu)):
            raise Singular("a matrix without an inverse")
        self._width, self._order = width, order

    def solve(self, right: Array) -> Array:
        return self._solved(right, 0)

    def solve_transposed(self, right: Array) -> Array:
        return self._solved(right, 1)

    def _solved(self, right: Array, transposed: int) -> Array:
        columns = right.reshape(len(right), -1)[self._order]
        solved, _ = lapack.dgbtrs(self._lu, self._width, self._width, columns, self._pivots, trans=transposed)
        result = np.empty_like(solved)
        result[self._order] = solved
        return result.reshape(right.shape)


@dataclass(frozen=True, eq=False)
class Sparse:
    """Entries by their numbers row * n + column, in ascending order."""

    n: int
    keys: Indices

    @property
    def slots(self) -> int:
        return len(self.keys)

    def positions(self, rows: Indices, columns: Indices) -> Indices:
        return np.searchsorted(self.keys, rows * self.n + columns)

    @cached_property
    def _columns_and_starts(self) -> tuple[Indices, Indices]:
        starts = np.searchsorted(self.keys, np.arange(self.n + 1) * self.n)
        return self.keys % self.n, starts

    def matrix(self, values: Array) -> Any:
        columns, starts = self._columns_and_starts
        return sparse.csr_matrix((values, columns, starts), shape=(self.n, self.n))

    def product(self, values: Array, vectors: Array) -> Array:
        return np.asarray(self.matrix(values) @ vectors)

    def product_transposed(self, values: Array, vectors: Array) -> Array:
        return np.asarray(self.matrix(values).T @ vectors)

    def factor(self, values: Array) -> Factor:
        return SparseFactor(self.matrix(values))

    def stage_factor(self, slopes: Array, masses: Array, rates: Array) -> Factor:
        stages = len(slopes)
        blocks = [
            [rates[i, j] * self.matrix(masses[i]) + (self.matrix(slopes[i]) if i == j else 0.0) for j in range(stages)]
            for i in range(stages)
        ]
        return SparseFactor(sparse.bmat(blocks, format="csr"))


class SparseFactor:
    def __init__(self, matrix: Any) -> None:
        try:  # the transpose of CSR is CSC without a copy: its factorisation solves both
            self._lu = sparse_linalg.splu(sparse.csc_matrix(matrix), permc_spec="COLAMD")
        except RuntimeError:
            raise Singular("a matrix without an inverse") from None

    def solve(self, right: Array) -> Array:
        return np.asarray(self._lu.solve(np.asarray(right)))

    def solve_transposed(self, right: Array) -> Array:
        return np.asarray(self._lu.solve(np.asarray(right), trans="T"))


