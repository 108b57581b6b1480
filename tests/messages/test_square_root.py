"""Messages and beliefs in square-root form against dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import linalg

from factorfield.messages.gaussian import Belief, Dense, Message

seeds = st.integers(0, 10_000)
counts = st.integers(0, 7)
SIZE = 4


def message(seed: int, count: int = 5, size: int = SIZE) -> Message:
    rng = np.random.default_rng(seed)
    return Message(rng.standard_normal((count, size)), rng.standard_normal(count))


def belief(seed: int, size: int = SIZE) -> Belief:
    rng = np.random.default_rng(seed)
    return Belief(rng.standard_normal(size), np.tril(rng.standard_normal((size, size)), -1) + 2.0 * np.eye(size))


def assert_same_information(one: Message, other: Message) -> None:
    """The same exp(-1/2 |rows x - target|^2) up to a constant, whatever the signs of the rows."""
    assert_allclose(one.dense().precision, other.dense().precision, atol=1e-11)
    assert_allclose(one.dense().shift, other.dense().shift, atol=1e-11)


# -- messages


@given(seeds, counts, seeds, counts)
@settings(deadline=None)
def test_the_order_of_a_product_does_not_matter(s1: int, n1: int, s2: int, n2: int) -> None:
    a, b = message(s1, n1), message(s2, n2)
    both = a * b
    assert_same_information(both, b * a)
    assert_same_information(both, Message(np.vstack([a.rows, b.rows]), np.concatenate([a.target, b.target])))
    assert len(both.rows) <= SIZE


@given(seeds, seeds, seeds)
@settings(deadline=None)
def test_products_associate(s1: int, s2: int, s3: int) -> None:
    a, b, c = message(s1, 3), message(s2, 4), message(s3, 2)
    assert_same_information((a * b) * c, a * (b * c))


@given(seeds, counts)
@settings(deadline=None)
def test_nothing_is_the_neutral_element(seed: int, count: int) -> None:
    a = message(seed, count)
    assert_same_information(a * Message.nothing(SIZE), a)
    assert_same_information(a.compressed(), a)
    assert a.compressed().size == a.size == SIZE


def test_the_product_of_two_messages_is_the_dense_one() -> None:
    rng = np.random.default_rng(5)
    rows, target = rng.standard_normal((12, 4)), rng.standard_normal(12)
    dense = Dense(rows.T @ rows, rows.T @ target)
    both = Message(rows[:5], target[:5]).compressed() * Message(rows[5:], target[5:]).compressed()
    assert_allclose(both.mean, dense.mean, rtol=1e-11)
    assert_allclose(both.covariance, dense.covariance, rtol=1e-10, atol=1e-13)
    assert_allclose(both.variance, dense.variance, rtol=1e-11)
    assert both.log_determinant == pytest.approx(dense.log_determinant)
    assert_allclose(both.dense().precision, dense.precision, rtol=1e-10, atol=1e-12)
    assert_allclose(both.rows @ both.mean, both.target, atol=1e-12)


def test_square_roots_keep_digits_that_normal_equations_lose() -> None:
    # Two nearly equal directions: the condition number of the rows is 1e7, of K = rows' rows 1e14
    rows = np.array([[1.0, 1.0], [1e-7, -1e-7]])
    truth = np.array([3.0, -2.0])
    exact = rows @ truth
    by_qr = Message(rows, exact).compressed().mean
    by_normal = Dense(rows.T @ rows, rows.T @ exact).mean
    assert np.abs(by_qr - truth).max() < 1e-8
    assert np.abs(by_normal - truth).max() > 1e-4


def test_a_message_that_leaves_a_direction_open_has_no_moments() -> None:
    silent = Message(np.array([[1.0, 2.0], [0.0, 0.0]]), np.zeros(2))
    with pytest.raises(linalg.LinAlgError):
        _ = silent.root


def test_arrays_have_one_layout_in_memory() -> None:
    """Whatever a caller hands over: products round alike, also after a file."""
    rows = np.asfortranarray(np.random.default_rng(0).standard_normal((3, 4)))
    assert Message(rows[:, ::-1], np.arange(6.0)[::2]).rows.flags.c_contiguous
    assert Message(rows, np.arange(6.0)[::2]).target.flags.c_contiguous
    assert Belief(np.zeros(4), rows.T).root.flags.c_contiguous


# -- beliefs


@given(seeds, seeds, st.integers(1, 7))
@settings(deadline=None)
def test_conditioning_is_the_dense_formula(s1: int, s2: int, count: int) -> None:
    before, told = belief(s1), message(s2, count)
    covariance = np.linalg.inv(np.linalg.inv(before.root @ before.root.T) + told.rows.T @ told.rows)
    shift = np.linalg.solve(before.root @ before.root.T, before.mean) + told.rows.T @ told.target
    after = before * told
    assert_allclose(after.mean, covariance @ shift, atol=1e-9)
    assert_allclose(after.root @ after.root.T, covariance, atol=1e-9)
    assert_allclose(after.std, np.sqrt(np.diag(covariance)), rtol=1e-9)


@given(seeds, seeds, seeds)
@settings(deadline=None)
def test_conditioning_twice_is_conditioning_once_on_both(s1: int, s2: int, s3: int) -> None:
    before, a, b = belief(s1), message(s2, 3), message(s3, 6)
    one_by_one, at_once = before * a * b, before * (a * b)
    assert_allclose(one_by_one.mean, at_once.mean, atol=1e-9)
    assert_allclose(one_by_one.root @ one_by_one.root.T, at_once.root @ at_once.root.T, atol=1e-10)


def test_conditioning_on_nothing_changes_nothing() -> None:
    before = belief(0)
    assert before * Message.nothing(SIZE) is before
    standard = before.standard(Message.nothing(SIZE))
    assert np.array_equal(standard.mean, np.zeros(SIZE)) and np.array_equal(standard.root, np.eye(SIZE))


@given(seeds, seeds)
@settings(deadline=None)
def test_standard_coordinates_are_those_of_the_belief(s1: int, s2: int) -> None:
    """x = mean + root z: conditioning in z and mapping back is conditioning in x."""
    before, told = belief(s1), message(s2)
    inside, after = before.standard(told), before * told
    assert_allclose(before.mean + before.root @ inside.mean, after.mean, atol=1e-11)
    precision = np.eye(SIZE) + (told.rows @ before.root).T @ (told.rows @ before.root)
    assert_allclose(inside.root @ inside.root.T, np.linalg.inv(precision), atol=1e-10)


def test_a_wide_root_and_certain_directions_are_conditioned_too() -> None:
    """A root may have more columns than rows, and a belief may be certain about a direction."""
    rng = np.random.default_rng(3)
    wide = Belief(np.zeros(3), rng.standard_normal((3, 5)))
    told = message(1, 4, 3)
    after = wide * told
    precision = np.linalg.inv(wide.root @ wide.root.T) + told.rows.T @ told.rows
    assert_allclose(after.root @ after.root.T, np.linalg.inv(precision), atol=1e-11)
    certain = Belief(np.array([1.0, 2.0]), np.diag([0.0, 1.0]))
    after = certain * Message(np.eye(2), np.array([5.0, 4.0]))
    assert_allclose(after.mean, [1.0, 3.0], atol=1e-14)
    assert_allclose(after.std, [0.0, np.sqrt(0.5)], atol=1e-14)
