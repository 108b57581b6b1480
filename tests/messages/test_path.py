"""Messages along a path of blocks: forward and backward together give the marginals of the joint posterior."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from factorfield.messages.elimination import Segment, backward, backward_messages, propagate, segment, smoothed
from factorfield.messages.gaussian import Belief, Message
from factorfield.messages.paths import Readings, SmoothedPath

STATE, INNER = np.array([0, 4]), np.array([1, 2, 3, 5, 6])
ORDER = np.concatenate([STATE, INNER])


def whole(known: Belief, link: Segment) -> np.ndarray:
    """The covariance of state and inner weights, with the noise that stays inside."""
    covariance = known.root @ known.root.T
    interior = link.interior.dense()
    covariance[len(STATE) :, len(STATE) :] += interior @ interior.T
    return covariance


def test_one_window_agrees_with_dense_conditioning() -> None:
    rng = np.random.default_rng(0)
    rows, target = rng.standard_normal((9, 7)), rng.standard_normal(9)
    end, prior_std = rng.standard_normal((2, 7)), rng.uniform(0.5, 2.0, 5)
    link = segment(rows, target, INNER, STATE, prior_std, end)
    prior = Belief(rng.standard_normal(2), np.tril(rng.standard_normal((2, 2))) + 2 * np.eye(2))
    future = Message(rng.standard_normal((2, 2)), rng.standard_normal(2))
    inverse = np.zeros((7, 7))
    inverse[np.ix_(STATE, STATE)] = np.linalg.inv(prior.root @ prior.root.T)
    inverse[INNER, INNER] = 1.0 / prior_std**2
    shift = np.zeros(7)
    shift[STATE] = inverse[np.ix_(STATE, STATE)] @ prior.mean
    precision = inverse + rows.T @ rows
    shift = shift + rows.T @ target
    filtered = np.linalg.inv(precision)
    start = prior * link.message
    assert_allclose(start.mean, (filtered @ shift)[STATE], atol=1e-10)
    assert_allclose(propagate(start, link).mean, end @ filtered @ shift, atol=1e-10)
    there = propagate(start, link).root
    assert_allclose(there @ there.T, end @ filtered @ end.T, atol=1e-10)
    seen = future.rows @ end
    covariance = np.linalg.inv(precision + seen.T @ seen)
    mean = covariance @ (shift + seen.T @ future.target)
    known = smoothed(start, link, future)
    assert_allclose(known.mean, mean[ORDER], atol=1e-9)
    assert_allclose(whole(known, link), covariance[np.ix_(ORDER, ORDER)], atol=1e-9)
    back = prior * backward(future, link)
    assert_allclose(back.mean, mean[STATE], atol=1e-9)


class Path:
    """Random windows, and their joint posterior as one dense Gaussian in (s_0, v_0, v_1, ...)."""

    def __init__(self, seed: int, windows: int) -> None:
        rng = np.random.default_rng(seed)
        width, count = len(STATE), len(INNER)
        size = width + windows * count
        self.prior = Belief(rng.standard_normal(width), np.tril(rng.standard_normal((width, width)), -1) + np.eye(2))
        to_state = np.eye(width, size)
        precision, shift = np.zeros((size, size)), np.zeros(size)
        start = np.linalg.inv(self.prior.root @ self.prior.root.T)
        precision[:width, :width], shift[:width] = start, start @ self.prior.mean
        self.links: list[Segment] = []
        self.maps = []
        for k in range(windows):
            rows, target = rng.standard_normal((6, 7)), rng.standard_normal(6)
            end, prior_std = 0.5 * rng.standard_normal((2, 7)), rng.uniform(0.5, 2.0, count)
            self.links.append(segment(rows, target, INNER, STATE, prior_std, end))
            own = np.zeros((7, size))
            own[STATE] = to_state
            own[INNER, width + k * count + np.arange(count)] = 1.0
            self.maps.append(own)
            precision += (rows @ own).T @ (rows @ own)
            precision[width + k * count + np.arange(count), width + k * count + np.arange(count)] += prior_std**-2.0
            shift += (rows @ own).T @ target
            to_state = end @ own
        self.covariance = np.linalg.inv(precision)
        self.mean = self.covariance @ shift
        self.end = to_state

    def filtered(self) -> list[Belief]:
        """At the windows' starts, their own messages included; the belief at the path's end comes last."""
        found, arrival = [], self.prior
        for link in self.links:
            found.append(arrival * link.message)
            arrival = propagate(found[-1], link)
        return [*found, arrival]


@given(st.integers(0, 10_000), st.integers(1, 4))
@settings(deadline=None, max_examples=40)
def test_forward_and_backward_give_the_marginals_of_the_joint_posterior(seed: int, windows: int) -> None:
    path = Path(seed, windows)
    *starts, end = path.filtered()
    futures = backward_messages(path.links)
    assert len(futures) == windows and not len(futures[-1].rows)
    for start, link, future, own in zip(starts, path.links, futures, path.maps, strict=True):
        known = smoothed(start, link, future)
        assert_allclose(known.mean, (own @ path.mean)[ORDER], atol=1e-8)
        exact = (own @ path.covariance @ own.T)[np.ix_(ORDER, ORDER)]
        assert_allclose(whole(known, link), exact, atol=1e-8)
    assert_allclose(end.mean, path.end @ path.mean, atol=1e-8)
    assert_allclose(end.root @ end.root.T, path.end @ path.covariance @ path.end.T, atol=1e-8)


@given(st.integers(0, 10_000), st.integers(1, 5))
@settings(deadline=None, max_examples=30)
def test_functionals_of_any_two_windows_covary_as_in_the_joint_posterior(seed: int, windows: int) -> None:
    path = Path(seed, windows)
    smooth = SmoothedPath(path.filtered()[:-1], path.links, backward_messages(path.links))
    rng = np.random.default_rng(seed + 2)
    sides = [(np.sort(rng.integers(windows, size=n)), rng.standard_normal((n, 7))) for n in (6, 4)]
    (at, rows), (others_at, others) = sides
    read = [[Readings(k, *(r[i == k] @ own for own in smooth.columns(k))) for k in np.unique(i)] for i, r in sides]
    found = smooth.covariances(*read)
    for index in range(windows):  # the noise that stays inside is shared with nobody else
        inside = path.links[index].interior.between(rows[at == index, len(STATE) :])
        found[np.ix_(at == index, others_at == index)] += inside @ others[others_at == index, len(STATE) :].T
    left, right = (np.stack([row @ path.maps[k][ORDER] for k, row in zip(i, r, strict=True)]) for i, r in sides)
    exact = left @ path.covariance @ right.T
    assert_allclose(found, exact, atol=1e-8 * max(1.0, np.abs(exact).max()))


@given(st.integers(0, 10_000))
@settings(deadline=None, max_examples=30)
def test_a_message_from_the_end_moves_back_through_every_window(seed: int) -> None:
    """backward(backward(m)): what three windows and the message behind them say about the first state."""
    path = Path(seed, 3)
    rng = np.random.default_rng(seed + 1)
    future = Message(rng.standard_normal((1, 2)), rng.standard_normal(1))
    back = future
    for link in reversed(path.links):
        back = backward(back, link)
    known = path.prior * back
    seen = future.rows @ path.end
    covariance = np.linalg.inv(np.linalg.inv(path.covariance) + seen.T @ seen)
    mean = covariance @ (np.linalg.solve(path.covariance, path.mean) + seen.T @ future.target)
    assert_allclose(known.mean, mean[:2], atol=1e-8)
    assert_allclose(known.root @ known.root.T, covariance[:2, :2], atol=1e-8)


def test_no_message_from_later_leaves_the_windows_own() -> None:
    path = Path(0, 1)
    assert backward(Message.nothing(2), path.links[0]) is path.links[0].message
    start = path.filtered()[0]
    assert_allclose(smoothed(start, path.links[0], Message.nothing(2)).mean[:2], start.mean, atol=1e-14)
