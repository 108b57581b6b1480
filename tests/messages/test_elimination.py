"""Elimination of a block: the inner weights given the interface, and what is left about the interface."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from factorfield.messages.elimination import (
    InteriorNoise,
    NoiseBlock,
    Segment,
    assembled,
    components,
    conditioned,
    eliminate,
    segment,
)
from factorfield.messages.gaussian import Belief, Message

seeds = st.integers(0, 10_000)


@given(seeds, st.integers(1, 4), st.integers(1, 3), st.integers(0, 9))
@settings(deadline=None)
def test_elimination_is_the_schur_complement(seed: int, inner: int, state: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    rows, target = rng.standard_normal((count, inner + state)), rng.standard_normal(count)
    prior_std = rng.uniform(0.5, 2.0, inner)
    found = eliminate(rows, target, prior_std)
    precision, shift = rows.T @ rows, rows.T @ target
    own = precision[:inner, :inner] + np.diag(prior_std**-2.0)
    across = precision[:inner, inner:]
    assert_allclose(found.root @ found.root.T, np.linalg.inv(own), atol=1e-10)
    assert_allclose(found.slope, -np.linalg.solve(own, across), atol=1e-9)
    assert_allclose(found.offset, np.linalg.solve(own, shift[:inner]), atol=1e-9)
    left, aim = found.remainder[:, :-1], found.remainder[:, -1]
    assert len(left) <= state
    assert_allclose(left.T @ left, precision[inner:, inner:] - across.T @ np.linalg.solve(own, across), atol=1e-9)
    assert_allclose(left.T @ aim, shift[inner:] - across.T @ np.linalg.solve(own, shift[:inner]), atol=1e-9)


def test_a_prior_far_weaker_than_the_factors_is_left_out() -> None:
    """It would be lost in rounding anyway: the result is that without one."""
    rng = np.random.default_rng(0)
    rows, target = 1e4 * rng.standard_normal((6, 4)), rng.standard_normal(6)
    found, without = eliminate(rows, target, np.full(3, 1e5)), np.linalg.lstsq(rows[:, :3], rows[:, 3], rcond=None)
    assert_allclose(found.slope[:, 0], -without[0], rtol=1e-10)


def interface(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Positions of inner weights and state, prior sds and the map to the end of a window of seven weights."""
    state, inner = np.array([0, 4]), np.array([1, 2, 3, 5, 6])
    return inner, state, rng.uniform(0.5, 2.0, 5), rng.standard_normal((2, 7))


@given(seeds, st.integers(0, 9))
@settings(deadline=None)
def test_a_segment_is_the_dense_conditional_of_end_and_inner_weights(seed: int, count: int) -> None:
    """Given the start s: mean and covariance of the inner weights, of the end, and of both together."""
    rng = np.random.default_rng(seed)
    inner, state, prior_std, end = interface(rng)
    rows, target = rng.standard_normal((count, 7)), rng.standard_normal(count)
    link = segment(rows, target, inner, state, prior_std, end)
    s = rng.standard_normal(2)
    precision = rows[:, inner].T @ rows[:, inner] + np.diag(prior_std**-2.0)
    covariance = np.linalg.inv(precision)
    mean = covariance @ rows[:, inner].T @ (target - rows[:, state] @ s)
    assert_allclose(link.offset + link.slope @ s, mean, atol=1e-9)
    assert_allclose(link.transition @ s + link.shift, end[:, state] @ s + end[:, inner] @ mean, atol=1e-9)
    interior = link.interior.dense()
    assert_allclose(interior @ interior.T + link.end_noise @ link.end_noise.T, covariance, atol=1e-9)
    assert_allclose(link.noise_root @ link.noise_root.T, end[:, inner] @ covariance @ end[:, inner].T, atol=1e-9)
    assert_allclose(link.end_noise @ link.noise_root.T, covariance @ end[:, inner].T, atol=1e-9)
    assert_allclose(end[:, inner] @ interior, 0.0, atol=1e-9)  # the end does not see the noise that stays inside


def test_rows_about_the_state_alone_go_into_the_message_as_they_are() -> None:
    rng = np.random.default_rng(1)
    inner, state, prior_std, end = interface(rng)
    rows, target = np.zeros((3, 7)), rng.standard_normal(3)
    rows[:, state] = rng.standard_normal((3, 2))
    link = segment(rows, target, inner, state, prior_std, end)
    dense = Message(rows[:, state], target).dense()
    assert_allclose(link.message.dense().precision, dense.precision, atol=1e-12)
    assert_allclose(link.message.dense().shift, dense.shift, atol=1e-12)
    assert_allclose(link.slope, 0.0, atol=1e-15)


def separated(rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Weights in two sets (even and odd positions) that no factor joins, each with an interface of one weight."""
    inner, state = np.array([2, 3, 4, 5, 6, 7]), np.array([0, 1])
    rows = np.zeros((8, 8))
    rows[:4, ::2], rows[4:, 1::2] = rng.standard_normal((4, 4)), rng.standard_normal((4, 4))
    end = np.zeros((2, 8))
    end[0, ::2], end[1, 1::2] = rng.standard_normal(4), rng.standard_normal(4)
    order = rng.permutation(8)
    return inner, state, rows[order], rng.standard_normal(8), rng.uniform(0.5, 2.0, 6), end


def test_components_are_the_sets_of_weights_that_no_factor_joins() -> None:
    inner, state, rows, _, _, end = separated(np.random.default_rng(2))
    found = components(rows, end, inner, state)
    assert sorted(sorted(inner[v]) for v, _, _ in found) == [[2, 4, 6], [3, 5, 7]]
    for v, s, chosen in found:
        mine = np.concatenate([inner[v], state[s]])
        others = np.setdiff1d(np.arange(8), mine)
        assert len(chosen) == 4 and np.all(rows[np.ix_(chosen, others)] == 0.0)


def test_a_dense_block_is_one_component() -> None:
    rng = np.random.default_rng(3)
    inner, state, _, end = interface(rng)
    (v, s, chosen), *others = components(rng.standard_normal((9, 7)), end, inner, state)
    assert not others and (len(v), len(s), len(chosen)) == (5, 2, 9)


def test_components_eliminated_one_by_one_give_the_same_segment() -> None:
    inner, state, rows, target, prior_std, end = separated(np.random.default_rng(4))
    split = segment(rows, target, inner, state, prior_std, end)
    assert len(split.interior.parts) == 2
    everything = np.arange(len(inner)), np.arange(len(state)), rows[:, [*inner, *state]], target
    whole = assembled([everything], Message.nothing(2), inner, state, prior_std, end)
    for name in ("slope", "offset", "transition", "shift"):
        assert_allclose(getattr(split, name), getattr(whole, name), atol=1e-12, err_msg=name)
    assert_allclose(split.message.dense().precision, whole.message.dense().precision, atol=1e-12)
    for one, other in ((split, whole),):
        assert_allclose(one.noise_root @ one.noise_root.T, other.noise_root @ other.noise_root.T, atol=1e-12)
        assert_allclose(one.end_noise @ one.noise_root.T, other.end_noise @ other.noise_root.T, atol=1e-12)


@pytest.mark.parametrize("directions", [0, 2])
def test_interior_noise_is_a_matrix_of_blocks(directions: int) -> None:
    rng = np.random.default_rng(5)
    ways = np.linalg.qr(rng.standard_normal((3, 3)))[0][:, :directions]
    root = np.triu(rng.standard_normal((3, 3)))
    noise = InteriorNoise(5, (NoiseBlock(np.array([0, 2, 3]), root, ways),))
    matrix = noise.dense()
    assert np.all(matrix[[1, 4]] == 0.0) and np.all(matrix[:, [1, 4]] == 0.0)
    assert_allclose(matrix[np.ix_([0, 2, 3], [0, 2, 3])], root @ (np.eye(3) - ways @ ways.T), atol=1e-14)
    vector = rng.standard_normal(5)
    assert_allclose(noise @ vector, matrix @ vector, atol=1e-14)


# -- further factors for a window that is known


def same_window(ours: Segment, theirs: Segment) -> None:
    """Conditional moments of inner weights and end, and the message with its level at a few states."""
    for name in ("slope", "offset", "transition", "shift"):
        wanted = getattr(theirs, name)
        assert_allclose(getattr(ours, name), wanted, atol=1e-7 * (1.0 + np.abs(wanted).max()), err_msg=name)
    covariances = []
    for link in (ours, theirs):
        interior = link.interior.dense()
        at_end = np.column_stack([0.0 * interior[:2], link.noise_root])
        both = np.vstack([np.column_stack([interior, link.end_noise]), at_end])
        covariances.append(both @ both.T)
    assert_allclose(*covariances, atol=1e-8 * np.abs(covariances[1]).max())
    likely = Belief(np.zeros(2), np.eye(2)) * theirs.message
    for place in np.random.default_rng(0).standard_normal((4, 2)):
        state = likely.mean + likely.root @ place
        values = [m.level - 0.5 * np.sum((m.rows @ state - m.target) ** 2) for m in (ours.message, theirs.message)]
        assert values[0] == pytest.approx(values[1], rel=1e-8, abs=1e-8)


@given(seeds, st.integers(0, 9), st.integers(1, 6))
@settings(deadline=None)
def test_a_window_given_further_factors_is_the_window_of_all_factors(seed: int, count: int, further: int) -> None:
    rng = np.random.default_rng(seed)
    inner, state, prior_std, end = interface(rng)
    rows, target = rng.standard_normal((count + further, 7)), rng.standard_normal(count + further)
    # one block, whatever links the rows have
    known = assembled(
        [(np.arange(5), np.arange(2), rows[:count][:, np.concatenate([inner, state])], target[:count])],
        Message.nothing(2), inner, state, prior_std, end,
    )  # fmt: skip
    found = conditioned(known, rows[count:][:, inner], rows[count:][:, state], target[count:])
    assert found is not None
    same_window(found, segment(rows, target, inner, state, prior_std, end))


@pytest.mark.parametrize("sigma", [1.0, 1e-7])
def test_factors_that_feel_the_noise_inside_several_blocks_are_left_to_the_whole(sigma: float) -> None:
    """They would link the blocks; without such noise they move only what the end sees, and the way to it."""
    rng = np.random.default_rng(2)
    inner, state, rows, target, prior_std, end = separated(rng)
    rows, target = rows / sigma, target / sigma
    known = segment(rows, target, inner, state, prior_std, end)
    more, aim = rng.standard_normal((3, 8)), rng.standard_normal(3)
    found = conditioned(known, more[:, inner], more[:, state], aim)
    assert len(known.interior.parts) == 2 and (found is None) == (sigma == 1.0)
    if found is not None:
        whole = segment(np.vstack([rows, more]), np.concatenate([target, aim]), inner, state, prior_std, end)
        same_window(found, whole)
