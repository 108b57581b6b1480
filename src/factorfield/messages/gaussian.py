"""Gaussians, and how they are multiplied: a Gaussian times a Gaussian is a Gaussian of the same kind.

In natural form, exp(-1/2 x' K x + tau' x) with K = `precision` and tau = `shift` = K mean (paper, appendix A.1),
products add and a zero precision says nothing: `Diagonal` holds any batch of independent scalars, `Dense` one vector,
`LowRank` one vector of which fewer rows than it has entries are known.

In square-root form information is added by QR, covariances are never subtracted, and no digits are lost to forming K: a
`Message` holds information, exp(-1/2 |rows x - target|^2), perhaps about some directions only; a `Belief` holds
moments, N(mean, root root'). A belief times a message is a belief.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

Array = NDArray[np.float64]
LOG_TWO_PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class Diagonal:
    """Independent scalar Gaussians, one per entry of `precision` and `shift` (equal shapes)."""

    precision: Array
    shift: Array

    @staticmethod
    def from_moments(mean: ArrayLike, variance: ArrayLike) -> Diagonal:
        m, v = np.broadcast_arrays(np.asarray(mean, float), np.asarray(variance, float))
        return Diagonal(1.0 / v, m / v)

    @property
    def mean(self) -> Array:
        """Means; NaN where the precision is zero (no mean exists there)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.precision == 0.0, np.nan, self.shift / self.precision)

    @property
    def variance(self) -> Array:
        """Variances; infinite where the precision is zero."""
        with np.errstate(divide="ignore"):
            return 1.0 / self.precision

    @property
    def std(self) -> Array:
        return np.sqrt(self.variance)

    def __mul__(self, other: Diagonal) -> Diagonal:
        return Diagonal(self.precision + other.precision, self.shift + other.shift)

    def __truediv__(self, other: Diagonal) -> Diagonal:
        return Diagonal(self.precision - other.precision, self.shift - other.shift)

    @property
    def log_normaliser(self) -> Array:
        """log of the integral of exp(-1/2 K x^2 + tau x), entry by entry."""
        return 0.5 * (LOG_TWO_PI - np.log(self.precision) + self.shift**2 / self.precision)

    def log_density(self, x: ArrayLike) -> Array:
        x = np.asarray(x, float)
        return -0.5 * self.precision * x**2 + self.shift * x - self.log_normaliser

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        return self.mean + self.std * rng.standard_normal((count, *np.shape(self.shift)))


@dataclass(frozen=True)
class Dense:
    """One Gaussian over a vector: `precision` (n, n) symmetric, `shift` (n,)."""

    precision: Array
    shift: Array

    @staticmethod
    def from_moments(mean: ArrayLike, covariance: ArrayLike) -> Dense:
        factor = linalg.cho_factor(np.asarray(covariance, float), lower=True)
        precision = linalg.cho_solve(factor, np.eye(len(factor[0])))
        return Dense(0.5 * (precision + precision.T), linalg.cho_solve(factor, np.asarray(mean, float)))

    @cached_property
    def cholesky(self) -> Array:
        """Lower triangular L with L L' = precision; raises LinAlgError where the Gaussian is improper."""
        return linalg.cholesky(self.precision, lower=True, check_finite=False)

    @cached_property
    def mean(self) -> Array:
        return linalg.cho_solve((self.cholesky, True), self.shift, check_finite=False)

    @cached_property
    def root(self) -> Array:
        """C with covariance = C C': the inverse transpose of the Cholesky factor."""
        return inverse_triangular(self.cholesky, lower=True).T

    @property
    def covariance(self) -> Array:
        return self.root @ self.root.T

    @property
    def variance(self) -> Array:
        return np.einsum("ij,ij->i", self.root, self.root)

    @property
    def std(self) -> Array:
        return np.sqrt(self.variance)

    def __mul__(self, other: Dense) -> Dense:
        return Dense(self.precision + other.precision, self.shift + other.shift)

    def __truediv__(self, other: Dense) -> Dense:
        return Dense(self.precision - other.precision, self.shift - other.shift)

    @property
    def log_determinant(self) -> float:
        """log det of the precision."""
        return 2.0 * float(np.sum(np.log(np.diag(self.cholesky))))

    def whiten(self, columns: Array) -> Array:
        """X with X'X = columns' covariance columns."""
        return linalg.blas.dtrsm(1.0, self.cholesky, columns, lower=1)

    def stretch(self, columns: Array) -> Array:
        """X with X'X = columns' precision columns."""
        return linalg.blas.dtrmm(1.0, self.cholesky, columns, lower=1, trans_a=1)

    def dense(self) -> Dense:
        return self

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        return self.mean + rng.standard_normal((count, len(self.shift))) @ self.root.T


@dataclass(frozen=True)
class LowRank:
    """exp(-1/2 |x|^2 - 1/2 |rows x - target|^2) with fewer rows than unknowns: everything through the rows' SVD.

    rows = U diag(strength) directions, with `directions` (n, size) orthonormal; `shift` (n,) is U' target.
    """

    directions: Array
    strength: Array
    shift: Array

    @staticmethod
    def from_rows(rows: Array, target: Array) -> LowRank:
        left, strength, directions = linalg.svd(rows, full_matrices=False, check_finite=False)
        return LowRank(directions, strength, left.T @ target)

    @property
    def mean(self) -> Array:
        return (self.strength / (1.0 + self.strength**2) * self.shift) @ self.directions

    @cached_property
    def root(self) -> Array:
        """The symmetric square root of the covariance."""
        return np.eye(self.directions.shape[1]) - (self.directions.T * self._loss) @ self.directions

    @property
    def _loss(self) -> Array:
        return 1.0 - 1.0 / np.sqrt(1.0 + self.strength**2)

    @property
    def variance(self) -> Array:
        return 1.0 - (self.strength**2 / (1.0 + self.strength**2)) @ self.directions**2

    @property
    def log_determinant(self) -> float:
        return float(np.sum(np.log1p(self.strength**2)))

    def whiten(self, columns: Array) -> Array:
        return columns - self.directions.T @ (self._loss[:, None] * (self.directions @ columns))

    def stretch(self, columns: Array) -> Array:
        gain = np.sqrt(1.0 + self.strength**2) - 1.0
        return columns + self.directions.T @ (gain[:, None] * (self.directions @ columns))

    def dense(self) -> Dense:
        precision = np.eye(self.directions.shape[1]) + (self.directions.T * self.strength**2) @ self.directions
        return Dense(precision, (self.strength * self.shift) @ self.directions)


# -- square roots


@dataclass(frozen=True, eq=False)
class Message:
    """Whitened rows about a vector x: rows x = target +- 1. Where its rows determine x it has moments of its own.

    It stands for exp(level - 1/2 |rows x - target|^2): `level` keeps what eliminations and products leave behind, so
    that normalisers come for free.
    """

    rows: Array
    target: Array
    level: float = 0.0

    def __post_init__(self) -> None:
        """One layout in memory: BLAS rounds others differently, and a file would not give back the same bits."""
        object.__setattr__(self, "rows", np.ascontiguousarray(self.rows))
        object.__setattr__(self, "target", np.ascontiguousarray(self.target))

    @staticmethod
    def nothing(size: int) -> Message:
        """The message that says nothing."""
        return Message(np.zeros((0, size)), np.zeros(0))

    @property
    def size(self) -> int:
        return self.rows.shape[1]

    def compressed(self) -> Message:
        """The same information in upper-triangular rows, at most as many as x has entries."""
        upper = triangle(np.column_stack([self.rows, self.target]))
        left = upper[self.size :, -1]  # a misfit that no x takes away
        return Message(upper[: self.size, :-1], upper[: self.size, -1], self.level - 0.5 * float(left @ left))

    def __mul__(self, other: Message) -> Message:
        rows, target = np.vstack([self.rows, other.rows]), np.concatenate([self.target, other.target])
        return Message(rows, target, self.level + other.level).compressed()

    # -- moments: of a compressed message with as many rows as x has entries

    @cached_property
    def mean(self) -> Array:
        return linalg.solve_triangular(self.rows, self.target, check_finite=False)

    @cached_property
    def root(self) -> Array:
        """C with covariance = C C'."""
        return inverse_triangular(self.rows)

    @property
    def covariance(self) -> Array:
        return self.root @ self.root.T

    @property
    def variance(self) -> Array:
        return np.einsum("ij,ij->i", self.root, self.root)

    @property
    def log_determinant(self) -> float:
        """log det of the precision."""
        return 2.0 * float(np.sum(np.log(np.abs(np.diag(self.rows)))))

    def whiten(self, columns: Array) -> Array:
        """X with X'X = columns' covariance columns."""
        return linalg.blas.dtrsm(1.0, self.rows, columns, trans_a=1)

    def stretch(self, columns: Array) -> Array:
        """X with X'X = columns' precision columns."""
        return linalg.blas.dtrmm(1.0, self.rows, columns)

    def dense(self) -> Dense:
        return Dense(self.rows.T @ self.rows, self.rows.T @ self.target)


@dataclass(frozen=True, eq=False)
class Belief:
    """exp(level) N(mean, root root'); `level` is the log of the integral of all that was multiplied."""

    mean: Array
    root: Array
    level: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", np.ascontiguousarray(self.root))

    @property
    def std(self) -> Array:
        return np.sqrt(np.sum(self.root**2, axis=1))

    def standard(self, message: Message) -> Belief:
        """Conditioned on a message, in the coordinates where this belief is standard normal."""
        size = self.root.shape[1]
        if not len(message.rows):
            return Belief(np.zeros(size), np.eye(size), self.level + message.level)
        gap = message.target - message.rows @ self.mean
        stacked = np.vstack([np.column_stack([message.rows @ self.root, gap]), np.eye(size, size + 1)])
        upper = triangle(stacked)
        factor = upper[:size, :size]
        left = upper[size:, size]
        level = self.level + message.level - float(np.sum(np.log(np.abs(np.diag(factor))))) - 0.5 * float(left @ left)
        return Belief(linalg.solve_triangular(factor, upper[:size, size]), inverse_triangular(factor), level)

    def __mul__(self, message: Message) -> Belief:
        """Conditioned on a message."""
        if not len(message.rows):
            return replace(self, level=self.level + message.level) if message.level else self
        standard = self.standard(message)
        return Belief(self.mean + self.root @ standard.mean, self.root @ standard.root, standard.level)


# -- triangular factors by LAPACK, its verdict (`info`) always looked at


def triangle(rows: Array) -> Array:
    """R of a QR decomposition, (min(rows, columns), columns)."""
    if 0 in rows.shape:
        return rows[:0]
    stored, _, _, info = linalg.lapack.dgeqrf(rows, lwork=64 * rows.shape[1])  # room for blocks: several times faster
    _check(info, "QR decomposition")
    return np.triu(stored[: min(rows.shape)])


def lower_root(root: Array) -> Array:
    """A square lower-triangular root of root root'."""
    size = len(root)
    upper = triangle(root.T)
    square = np.zeros((size, size))
    square[: len(upper)] = upper
    return square.T


def inverse_triangular(matrix: Array, lower: bool = False) -> Array:
    """Inverse of a triangular matrix (LAPACK's trtri: a third of the work of solving against the identity)."""
    if not len(matrix):
        return np.zeros((0, 0))
    inverse, info = linalg.lapack.dtrtri(matrix, lower=lower)
    _check(info, "inverse of a triangular matrix")
    return np.tril(inverse) if lower else np.triu(inverse)


def _check(info: int, what: str) -> None:
    if info > 0:
        raise linalg.LinAlgError(f"{what}: singular at row {info}")
    if info < 0:
        raise linalg.LinAlgError(f"{what}: LAPACK refused argument {-info}")
