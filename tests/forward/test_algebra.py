"""Square matrices of one pattern: dense, banded and sparse ones say the same, solves and transposes are exact."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from factorfield.forward.algebra import Banded, Dense, Pattern, Singular, Sparse, pattern_of
from factorfield.forward.radau import rule_of

Array = NDArray[np.float64]
few = settings(max_examples=25, deadline=None, derandomize=True)


def places(n: int, width: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A band in numbers that are shuffled, every place twice: entries add up."""
    rows, columns = np.nonzero(np.abs(np.arange(n)[:, None] - np.arange(n)) <= width)
    order = np.random.default_rng(n).permutation(n)
    return np.tile(order[rows], 2), np.tile(order[columns], 2)


def patterns(n: int, width: int) -> dict[str, Pattern]:
    """The same places in every kind of pattern; band and sparse matrices have at least these."""
    rows, columns = places(n, width)
    keys = np.unique(np.concatenate([rows * n + columns, np.arange(n) * (n + 1)]))
    place = np.argsort(np.random.default_rng(n).permutation(n))
    return {"dense": Dense(n), "banded": Banded(n, place, width), "sparse": Sparse(n, keys)}


def filled(pattern: Pattern, entries: tuple[NDArray[np.int64], NDArray[np.int64]], values: Array) -> Array:
    table = np.zeros(pattern.slots)
    np.add.at(table, pattern.positions(*entries), values)
    return table


def matrices(n: int, width: int, count: int, seed: int) -> tuple[dict[str, list[Array]], list[Array]]:
    """Some matrices with the places of a band, in every pattern and as they are; their inverses are moderate."""
    rng, entries = np.random.default_rng(seed), places(n, width)
    values = [rng.standard_normal(len(entries[0])) + 8.0 * (entries[0] == entries[1]) for _ in range(count)]
    tables = {name: [filled(p, entries, v) for v in values] for name, p in patterns(n, width).items()}
    full = []
    for one in values:
        matrix = np.zeros((n, n))
        np.add.at(matrix, entries, one)
        full.append(matrix)
    return tables, full


sizes = st.tuples(st.integers(1, 60), st.integers(0, 6), st.integers(0, 10**6))


@few
@given(sizes)
def test_products_and_solves_are_those_of_the_full_matrix(drawn: tuple[int, int, int]) -> None:
    n, width, seed = drawn
    tables, (full,) = matrices(n, width, 1, seed)
    vectors = np.random.default_rng(seed).standard_normal((n, 3))
    for name, pattern in patterns(n, width).items():
        (values,) = tables[name]
        np.testing.assert_allclose(pattern.product(values, vectors), full @ vectors, atol=1e-11)
        np.testing.assert_allclose(pattern.product_transposed(values, vectors), full.T @ vectors, atol=1e-11)
        factor = pattern.factor(values)
        np.testing.assert_allclose(factor.solve(vectors), np.linalg.solve(full, vectors), atol=1e-10)
        np.testing.assert_allclose(factor.solve(vectors[:, 0]), np.linalg.solve(full, vectors[:, 0]), atol=1e-10)
        np.testing.assert_allclose(factor.solve_transposed(vectors), np.linalg.solve(full.T, vectors), atol=1e-10)


@few
@given(sizes, st.integers(1, 5), st.booleans())
def test_stages_are_the_coupled_matrix(drawn: tuple[int, int, int], stages: int, are_same: bool) -> None:
    """Block (i, j) is rates[i, j] masses[i], and slopes[i] on the diagonal, with slopes that differ or not."""
    n, width, seed = drawn
    tables, full = matrices(n, width, 2 * stages, seed)
    numbers = [0] * stages if are_same else list(range(stages))
    rates = rule_of(stages).rates
    whole = np.zeros((stages * n, stages * n))
    for i in range(stages):
        for j in range(stages):
            block = rates[i, j] * full[stages + numbers[i]] + (full[numbers[i]] if i == j else 0.0)
            whole[i * n : (i + 1) * n, j * n : (j + 1) * n] = block
    right = np.random.default_rng(seed).standard_normal((stages * n, 2))
    for name, pattern in patterns(n, width).items():
        slopes = np.stack([tables[name][number] for number in numbers])
        masses = np.stack([tables[name][stages + number] for number in numbers])
        factor = pattern.stage_factor(slopes, masses, rates)
        scale = float(np.linalg.cond(whole)) * 1e-13 + 1e-11
        for solved, expected in (
            (factor.solve(right), np.linalg.solve(whole, right)),
            (factor.solve_transposed(right), np.linalg.solve(whole.T, right)),
        ):
            assert np.max(np.abs(solved - expected)) <= scale * np.max(np.abs(expected)), name


@pytest.mark.parametrize("pattern", [Dense(4), Banded(4, np.arange(4), 1), Sparse(4, np.arange(4) * 5)], ids=repr)
def test_a_matrix_without_an_inverse_is_said_to_be_one(pattern: Pattern) -> None:
    diagonal = np.arange(4)
    values = filled(pattern, (diagonal, diagonal), np.array([1.0, 0.0, 2.0, 3.0]))
    with pytest.raises(Singular):
        pattern.factor(values)


def test_the_pattern_suits_the_places() -> None:
    assert isinstance(pattern_of(20, *places(20, 2)), Dense)
    assert isinstance(pattern_of(50, *np.nonzero(np.ones((50, 50)))), Dense)
    banded = pattern_of(200, *places(200, 3))
    assert isinstance(banded, Banded) and banded.width <= 6
    rows, columns = places(400, 2)
    far = np.random.default_rng(0).integers(0, 400, (2, 300))
    assert isinstance(pattern_of(400, np.append(rows, far[0]), np.append(columns, far[1])), Sparse)
