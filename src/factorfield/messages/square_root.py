"""Gaussians in square-root form: information is added by QR, covariances are never subtracted, no digits are lost.

A `Message` holds information, exp(-1/2 |rows x - target|^2), perhaps about some directions only. A `Belief` holds
moments, N(mean, root root'). A belief times a message is a belief; a message times a message is a message.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.messages.gaussian import Dense
from factorfield.messages.triangular import inverse_triangular, triangle

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Message:
    """Whitened rows about a vector x: rows x = target +- 1. Where its rows determine x it has moments of its own."""

    rows: Array
    target: Array

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

    def misfit(self, x: Array) -> Array:
        return self.rows @ x - self.target

    def compressed(self) -> Message:
        """The same information in upper-triangular rows, at most as many as x has entries."""
        upper = triangle(np.column_stack([self.rows, self.target]))[: self.size]
        return Message(upper[:, :-1], upper[:, -1])

    def __mul__(self, other: Message) -> Message:
        rows, target = np.vstack([self.rows, other.rows]), np.concatenate([self.target, other.target])
        return Message(rows, target).compressed()

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
    """N(mean, root root')."""

    mean: Array
    root: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", np.ascontiguousarray(self.root))

    @property
    def std(self) -> Array:
        return np.sqrt(np.sum(self.root**2, axis=1))

    def standard(self, message: Message) -> Belief:
        """Conditioned on a message, in the coordinates where this belief is standard normal."""
        size = self.root.shape[1]
        if not len(message.rows):
            return Belief(np.zeros(size), np.eye(size))
        gap = message.target - message.rows @ self.mean
        stacked = np.vstack([np.column_stack([message.rows @ self.root, gap]), np.eye(size, size + 1)])
        upper = triangle(stacked)
        factor = upper[:size, :size]
        return Belief(linalg.solve_triangular(factor, upper[:size, size]), inverse_triangular(factor))

    def __mul__(self, message: Message) -> Belief:
        """Conditioned on a message."""
        if not len(message.rows):
            return self
        standard = self.standard(message)
        return Belief(self.mean + self.root @ standard.mean, self.root @ standard.root)
