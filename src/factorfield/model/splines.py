"""Local features: B-splines of one degree over equal cells of an axis, as smooth as their degree allows.

Each spline lives on degree + 1 neighbouring cells, so a row of features at a point has degree + 1 entries per axis that
are not zero, and what two distant boxes of cells know meets only in the weights between them. All splines are
translates of one, also those that reach over the ends of the axis: boxes of cells that look alike have equal rows, bit
by bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
DEGREES = (3, 5)


@dataclass(frozen=True)
class Spline:
    """`cells` equal cells of [lower, upper]; weight i belongs to the spline on cells i - degree .. i.

    A periodic axis has as many splines as cells, a bounded one `degree` more.
    """

    degree: int
    cells: int
    lower: float = 0.0
    upper: float = 1.0
    periodic: bool = False

    @property
    def size(self) -> int:
        return self.cells if self.periodic else self.cells + self.degree

    @property
    def width(self) -> float:
        """Of a cell."""
        return (self.upper - self.lower) / self.cells

    def __call__(self, x: ArrayLike, order: int = 0) -> Array:
        """All features as a matrix (points, size), mostly zeros; `local` gives the others alone."""
        cell, values = self.local(x, order)
        features, weights, points = np.zeros((len(cell), self.size)), self.weights_of(cell), np.arange(len(cell))
        for j in range(self.degree + 1):  # a spline that meets itself around a ring of few cells is added twice
            features[points, weights[:, j]] += values[:, j]
        return features

    def local(self, x: ArrayLike, order: int = 0) -> tuple[Indices, Array]:
        """The cell of each point, and the values (points, degree + 1) of the features that live there."""
        scaled = (np.atleast_1d(np.asarray(x, float)) - self.lower) / self.width
        if self.periodic:
            scaled = np.mod(scaled, self.cells)
        cell = np.clip(np.floor(scaled), 0, self.cells - 1).astype(np.int64)
        return cell, self.within(scaled - cell, order)

    def within(self, share: Array, order: int = 0) -> Array:
        """Values (points, degree + 1) at shares 0..1 of a cell, the same for every cell."""
        if order > self.degree:
            return np.zeros((len(share), self.degree + 1))
        values = np.ones((len(share), 1))
        for q in range(1, self.degree - order + 1):  # Cox and de Boor's recursion for equal knots
            lower, j = values, np.arange(q)
            values = np.zeros((len(share), q + 1))
            values[:, 1:] = (share[:, None] + (q - 1 - j)) * lower
            values[:, :-1] += (1.0 - share[:, None] + j) * lower
            values /= q
        for _ in range(order):  # a derivative is a difference of splines of one degree less
            lower = values
            values = np.zeros((len(share), lower.shape[1] + 1))
            values[:, 1:] = lower
            values[:, :-1] -= lower
        return values / self.width**order

    def weights_of(self, cell: Indices) -> Indices:
        """The weights (points, degree + 1) that are read in given cells."""
        found = cell[:, None] + np.arange(self.degree + 1)
        return found % self.cells if self.periodic else found

    def spec(self) -> dict[str, Any]:
        return {
            "family": "spline", "degree": self.degree, "cells": self.cells, "lower": self.lower, "upper": self.upper,
            "periodic": self.periodic,
        }  # fmt: skip


def halved(spline: Spline) -> Array:
    """The matrix from the weights on cells twice as wide to those of the same function on these (knot insertion)."""
    degree, coarse = spline.degree, spline.cells // 2
    row = np.array([1.0])
    for _ in range(degree + 1):
        row = np.convolve(row, [1.0, 1.0])
    row /= 2.0**degree  # of one spline on wide cells: binomial coefficients over 2^degree
    wide = coarse if spline.periodic else coarse + degree
    matrix = np.zeros((spline.size, wide))
    for i in range(wide):
        for j, share in enumerate(row):  # the spline ending with wide cell i begins at narrow cell 2 (i - degree)
            at = 2 * i - degree + j
            if spline.periodic:
                matrix[at % spline.cells, i] += share
            elif 0 <= at < spline.size:
                matrix[at, i] = share
    return matrix
