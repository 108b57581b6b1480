"""Triangular factors by LAPACK, its verdict (`info`) always looked at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

Array = NDArray[np.float64]


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
