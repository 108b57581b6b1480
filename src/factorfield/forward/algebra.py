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

    def stage_factor(self, slopes: Array, masses: Array, rates: Array, exact: bool = True) -> Factor:
        """Of the coupled system of all instants of a window: block (i, j) is rates[i, j] masses[i] + [i = j] slopes[i].

        `slopes`, `masses` have a row per instant. Vectors are instants after each other. Where `exact` is not asked,
        the factorisation may be that of the same system with mean slopes."""
        ...


@dataclass(frozen=True)
class Tuning:
    """When which kind of matrix is used; measured on lines and planes."""

    dense_size: int = 24  # up to this size a matrix is dense
    dense_share: float = 0.4  # of its entries: with more of them it is dense
    widest_band: int = 60  # beyond this half width general sparse elimination is faster
    coupled_size: int = 40  # up to this size the instants of a window are eliminated together, where matrices are dense
    exact_size: int = 400  # the same where solutions have to be exact: many columns are cheaper without corrections
    refined: float = 1e-13  # relative size of the last correction of a refined solution
    most_corrections: int = 25


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

    def stage_factor(self, slopes: Array, masses: Array, rates: Array, exact: bool = True) -> Factor:
        largest = TUNING.coupled_size if not exact else TUNING.exact_size
        if self.n > largest and len(slopes) > 1:
            return Apart.of(self, slopes, masses, rates, exact)
        return self.coupled_factor(slopes, masses, rates)

    def complex_factor(self, values: Array) -> ComplexFactor:
        return DenseComplexFactor(values.reshape(self.n, self.n))

    def coupled_factor(self, slopes: Array, masses: Array, rates: Array) -> Factor:
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

    def stage_factor(self, slopes: Array, masses: Array, rates: Array, exact: bool = True) -> Factor:
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

    def stage_factor(self, slopes: Array, masses: Array, rates: Array, exact: bool = True) -> Factor:
        return Apart.of(self, slopes, masses, rates, exact)

    def complex_factor(self, values: Array) -> ComplexFactor:
        return SparseFactor(self.matrix(values))

    def coupled_factor(self, slopes: Array, masses: Array, rates: Array) -> Factor:
        stages = len(slopes)
        blocks = [
            [rates[i, j] * self.matrix(masses[i]) + (self.matrix(slopes[i]) if i == j else 0.0) for j in range(stages)]
            for i in range(stages)
        ]
        return SparseFactor(sparse.bmat(blocks, format="csr"))


class ComplexFactor(Protocol):
    def solve(self, right: Any) -> Any: ...


class DenseComplexFactor:
    def __init__(self, matrix: Any) -> None:
        self._lu, self._pivots, info = lapack.zgetrf(matrix)
        if info != 0 or not np.all(np.isfinite(self._lu)):
            raise Singular("a matrix without an inverse")

    def solve(self, right: Any) -> Any:
        return lapack.zgetrs(self._lu, self._pivots, right)[0].reshape(right.shape)


class Divisible(Protocol):
    """A pattern whose windows are taken apart into instants."""

    @property
    def n(self) -> int: ...

    def product(self, values: Array, vectors: Array) -> Array: ...

    def complex_factor(self, values: Any) -> ComplexFactor: ...

    def coupled_factor(self, slopes: Array, masses: Array, rates: Array) -> Factor: ...


@dataclass(frozen=True, eq=False)
class Apart:
    """The coupled system taken apart by the eigenvectors of the rates: with the mean of the slopes over the instants,
    one complex system of the size of one instant for each pair of eigenvalues. Solutions are corrected until those
    with the slopes of every instant are met; where they are not met, the coupled system is eliminated."""

    pattern: Divisible
    slopes: Array
    masses: Array
    rates: Array
    vectors: Any
    inverse: Any
    factors: tuple[tuple[int, float, ComplexFactor], ...]  # the eigenvalue's number, how often it counts, the system
    is_same: bool  # do all instants have the same slopes?

    @staticmethod
    def of(pattern: Divisible, slopes: Array, masses: Array, rates: Array, exact: bool) -> Apart:
        eigenvalues, vectors = np.linalg.eig(rates)
        mean, mass = slopes.mean(axis=0), masses.mean(axis=0)
        factors = []
        for number in np.flatnonzero(eigenvalues.imag >= 0.0):
            twice = 1.0 if eigenvalues[number].imag == 0.0 else 2.0  # its conjugate adds the conjugate
            factors.append((int(number), twice, pattern.complex_factor(eigenvalues[number] * mass + mean)))
        is_same = not exact or (_constant(slopes) and _constant(masses))
        return Apart(pattern, slopes, masses, rates, vectors, np.linalg.inv(vectors), tuple(factors), is_same)

    def solve(self, right: Array) -> Array:
        solution = self._once(right)
        if self.is_same:
            return solution
        size, before = float(np.max(np.abs(solution), initial=0.0)), np.inf
        for _ in range(TUNING.most_corrections):
            step = self._once(right - self._product(solution))
            now = float(np.max(np.abs(step), initial=0.0))
            if not now < 0.7 * before:
                break
            solution, before = solution + step, now
            if now <= TUNING.refined * size:
                return solution
        if before <= 1e3 * TUNING.refined * size:
            return solution
        return self.pattern.coupled_factor(self.slopes, self.masses, self.rates).solve(right)

    def solve_transposed(self, right: Array) -> Array:
        return self.pattern.coupled_factor(self.slopes, self.masses, self.rates).solve_transposed(right)

    def _once(self, right: Array) -> Array:
        stages = len(self.rates)
        table = right.reshape(stages, self.pattern.n, -1)
        apart = np.tensordot(self.inverse, table, 1)
        result = np.zeros(table.shape)
        for number, twice, factor in self.factors:
            solved = factor.solve(np.ascontiguousarray(apart[number]))
            result += twice * (self.vectors[:, number, None, None] * solved).real
        return result.reshape(right.shape)

    def _product(self, vectors: Array) -> Array:
        stages = len(self.rates)
        table = vectors.reshape(stages, self.pattern.n, -1)
        moved = np.tensordot(self.rates, table, 1)
        parts = [
            self.pattern.product(self.slopes[i], table[i]) + self.pattern.product(self.masses[i], moved[i])
            for i in range(stages)
        ]
        return np.stack(parts).reshape(vectors.shape)


def _constant(rows: Array) -> bool:
    return bool(np.all(rows == rows[:1]))


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


