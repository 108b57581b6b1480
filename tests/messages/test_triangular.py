"""Triangular factors: what LAPACK says about them is looked at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import linalg

from factorfield.messages.gaussian import inverse_triangular, lower_root, triangle

shapes = st.tuples(st.integers(1, 9), st.integers(1, 6), st.integers(0, 10_000))


@given(shapes)
@settings(deadline=None)
def test_a_triangle_keeps_the_products_of_columns(shape: tuple[int, int, int]) -> None:
    rows, columns, seed = shape
    matrix = np.random.default_rng(seed).standard_normal((rows, columns))
    upper = triangle(matrix)
    assert upper.shape == (min(rows, columns), columns)
    assert np.all(np.tril(upper, -1) == 0.0)
    assert_allclose(upper.T @ upper, matrix.T @ matrix, atol=1e-12)


@given(shapes)
@settings(deadline=None)
def test_a_lower_root_has_the_same_covariance_in_a_square(shape: tuple[int, int, int]) -> None:
    rows, columns, seed = shape
    root = np.random.default_rng(seed).standard_normal((rows, columns))
    square = lower_root(root)
    assert square.shape == (rows, rows)
    assert np.all(np.triu(square, 1) == 0.0)
    assert_allclose(square @ square.T, root @ root.T, atol=1e-12)


@pytest.mark.parametrize("lower", [False, True])
def test_the_inverse_of_a_triangle_is_its_inverse(lower: bool) -> None:
    full = np.random.default_rng(0).standard_normal((6, 6)) + 4 * np.eye(6)
    matrix = np.tril(full) if lower else np.triu(full)
    inverse = inverse_triangular(full, lower=lower)  # the other half is not looked at
    assert_allclose(inverse @ matrix, np.eye(6), atol=1e-12)
    assert np.all((np.triu(inverse, 1) if lower else np.tril(inverse, -1)) == 0.0)


def test_nothing_gives_nothing() -> None:
    assert triangle(np.zeros((0, 4))).shape == (0, 4)
    assert triangle(np.zeros((4, 0))).shape == (0, 0)
    assert inverse_triangular(np.zeros((0, 0))).shape == (0, 0)


def test_a_singular_triangle_is_an_error_that_names_the_row() -> None:
    singular = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 4.0], [0.0, 0.0, 5.0]])
    with pytest.raises(linalg.LinAlgError, match="inverse of a triangular matrix: singular at row 2"):
        inverse_triangular(singular)


def test_what_lapack_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linalg.lapack, "dgeqrf", lambda rows, lwork: (rows, None, None, -4))
    with pytest.raises(linalg.LinAlgError, match="QR decomposition: LAPACK refused argument 4"):
        triangle(np.eye(3))
