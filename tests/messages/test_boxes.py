"""Elimination on a tree of boxes: against dense algebra, in both forms, and in 80 bits where digits are short."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import linalg

from factorfield.messages.boxes import Box, BoxTree, eliminate_boxes, nested_boxes

Array = NDArray[np.float64]
# eight leaves in a row, each reading its own three weights, the next leaf's first one, and weight 24, which all read
SIZE, LEAVES = 25, 8
CHILDREN = [(), (), (0, 1), (), (), (3, 4), (2, 5), (), (), (7, 8), (), (), (10, 11), (9, 12), (6, 13)]
TILES = [index for index, below in enumerate(CHILDREN) if not below]


def boxes(whole: bool = False) -> tuple[Box, ...]:
    reads = [np.zeros(0, np.int64)] * len(CHILDREN)
    for leaf, index in enumerate(TILES):
        own = np.arange(3 * leaf, min(3 * leaf + 4, SIZE - 1))
        reads[index] = np.append(own, SIZE - 1)
    small = [whole and not below for below in CHILDREN]
    return nested_boxes(SIZE, reads, CHILDREN, small, np.array([SIZE - 1]))


def factors(nested: tuple[Box, ...], seed: int = 0, alike: bool = False) -> dict[int, Array]:
    """Rows of every leaf over the weights that it reads, in ascending order; as many as it reads, and two more."""
    rng = np.random.default_rng(seed)
    found = {index: rng.standard_normal((len(nested[index].front) + 2, len(nested[index].front))) for index in TILES}
    if alike:
        for index in TILES[1:-1]:
            found[index] = found[TILES[1]]
    return found


def dense(nested: tuple[Box, ...], rows: dict[int, Array]) -> Array:
    parts = []
    for index, own in rows.items():
        part = np.zeros((len(own), SIZE))
        part[:, np.sort(nested[index].front)] = own
        parts.append(part)
    return np.concatenate(parts)


def eliminated(
    nested: tuple[Box, ...], rows: dict[int, Array], square_root: bool, known: BoxTree | None = None, keep: bool = False
) -> BoxTree:
    keys = [rows[index].tobytes() if index in rows else b"" for index in range(len(nested))]

    def own(index: int) -> Array:
        return rows[index] if square_root else rows[index].T @ rows[index]

    return eliminate_boxes(nested, keys, own, square_root, known, keep)


def test_every_weight_is_eliminated_once_and_after_all_that_read_it() -> None:
    nested = boxes()
    assert np.array_equal(np.sort(np.concatenate([box.eliminated for box in nested])), np.arange(SIZE))
    assert len(nested[-1].interface) == 0 and SIZE - 1 in nested[-1].eliminated
    for box in nested:
        for child in box.children:
            assert np.all(np.isin(nested[child].interface, box.front))


@pytest.mark.parametrize("square_root", [False, True])
@pytest.mark.parametrize("whole", [False, True])
def test_mean_covariance_and_determinant_are_those_of_dense_algebra(square_root: bool, whole: bool) -> None:
    nested = boxes(whole)
    rows = factors(nested)
    tree = eliminated(nested, rows, square_root)
    precision = dense(nested, rows).T @ dense(nested, rows)
    covariance = np.linalg.inv(precision)
    pull = np.random.default_rng(1).standard_normal(SIZE)
    assert np.allclose(tree.solve(pull), covariance @ pull, rtol=1e-9, atol=1e-12)
    assert np.isclose(tree.log_determinant, np.linalg.slogdet(precision)[1], rtol=1e-12)
    gathered = tree.gather(np.eye(SIZE))
    assert np.allclose(gathered.T @ gathered, covariance, rtol=1e-9, atol=1e-12)  # also of the two ends
    root = tree.spread(np.eye(SIZE))
    assert np.allclose(root @ root.T, covariance, rtol=1e-9, atol=1e-12)
    for index, found in tree.marginals(range(len(nested))):
        front = nested[index].front
        assert np.allclose(found, covariance[np.ix_(front, front)], rtol=1e-9, atol=1e-12)


def test_marginals_visit_only_the_boxes_around_those_that_are_asked_for() -> None:
    nested = boxes()
    tree = eliminated(nested, factors(nested), False)
    visited: list[int] = []
    original = BoxTree._front_covariance

    def counted(self: BoxTree, index: int, outside: Array) -> Array:
        visited.append(index)
        return original(self, index, outside)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BoxTree, "_front_covariance", counted)
        assert [index for index, _ in tree.marginals([0])] == [0]
    assert visited == [14, 6, 2, 0]


@pytest.mark.parametrize("square_root", [False, True])
def test_equal_boxes_are_eliminated_once(square_root: bool) -> None:
    nested = boxes()
    rows = factors(nested, alike=True)
    tree = eliminated(nested, rows, square_root)
    distinct = {id(conditional) for conditional in tree.conditionals}
    assert len(distinct) < 0.8 * len(nested)
    whole = dense(nested, rows)
    pull = np.ones(SIZE)
    assert np.allclose(tree.solve(pull), np.linalg.solve(whole.T @ whole, pull), rtol=1e-9)


@pytest.mark.parametrize("square_root", [False, True])
def test_only_the_path_from_a_changed_box_to_the_root_is_eliminated_again(square_root: bool) -> None:
    nested = boxes()
    rows = factors(nested)
    first = eliminated(nested, rows, square_root, keep=True)
    rows[TILES[2]] = 1.5 * rows[TILES[2]]
    again = eliminated(nested, rows, square_root, first, keep=True)
    pairs = zip(first.conditionals, again.conditionals, strict=True)
    changed = [index for index, (old, new) in enumerate(pairs) if old is not new]
    assert changed == [3, 5, 6, 14]
    alone = eliminated(nested, rows, square_root)
    assert np.array_equal(again.solve(np.ones(SIZE)), alone.solve(np.ones(SIZE)))


def test_square_roots_keep_the_digits_of_an_ill_conditioned_tree() -> None:
    """Against 80 bits: nearly equal columns, condition 1e9 of the rows, 1e18 of information."""
    nested = boxes()
    rows = factors(nested, seed=2)
    for index in TILES:  # nearly equal columns, on the scale of 1e-8
        rows[index][:, 1] = rows[index][:, 0] + 3e-8 * rows[index][:, 1]
    exact = _covariance_in_80_bits(dense(nested, rows))
    gathered = eliminated(nested, rows, True).gather(np.eye(SIZE))
    found = np.sum(gathered**2, axis=0)
    assert np.max(np.abs(found / np.diagonal(exact) - 1.0)) < 1e-6
    try:
        squared = np.sum(eliminated(nested, rows, False).gather(np.eye(SIZE)) ** 2, axis=0)
    except linalg.LinAlgError:
        return  # information that rounding made negative
    assert np.max(np.abs(squared / np.diagonal(exact) - 1.0)) > 1e-2


def _covariance_in_80_bits(rows: Array) -> NDArray[np.longdouble]:
    """By Householder's QR in extended precision."""
    upper = rows.astype(np.longdouble)
    for k in range(SIZE):
        vector = upper[k:, k].copy()
        vector[0] += np.copysign(np.sqrt(vector @ vector), vector[0])
        upper[k:] -= np.outer(vector, 2.0 * (vector @ upper[k:]) / (vector @ vector))
    inverse = np.zeros((SIZE, SIZE), np.longdouble)
    for k in range(SIZE - 1, -1, -1):
        unit = np.zeros(SIZE, np.longdouble)
        unit[k] = 1.0
        inverse[k] = (unit - upper[k, k + 1 : SIZE] @ inverse[k + 1 :]) / upper[k, k]
    return inverse @ inverse.T
