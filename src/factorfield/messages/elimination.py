"""Elimination of a block, in square-root form: its inner weights given its interface, and what it says about that.

A block's weights are its interface s and the inner weights v that nobody outside reads. All its linearised factors,
whitened, and the prior of v are rows [J_v J_s | r]; one QR puts them as
    v = offset + slope s + noise,        R s = r +- 1
- the block's content, whatever arrives from outside. A time window's interface is the state at its start; the state at
its end is s' = F s + f + G eta, eta ~ N(0, I), and the part of the noise that the end does not see stays interior.
Messages along a path of blocks then cost only QRs of the size of the state: the belief is propagated forward,
information is sent backward, and both meet in the smoothed marginals.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse import csgraph

from factorfield.messages.gaussian import Belief, Message, inverse_triangular, lower_root, triangle

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Component = tuple[Indices, Indices, Array, Array]  # positions in inner weights and state, rows over both, targets
INTERIOR_FELT = 1e-9  # nats: factors that tell less of the noise inside a window leave it as it is
DEPENDENT = 1e-10  # of the largest singular value: conditions that say the same twice
NEGLIGIBLE_PRIOR = 1e6  # factors that say this many times more than the prior leave it nothing to say


@dataclass(frozen=True, eq=False)
class Elimination:
    """v = offset + slope s + root noise given the interface s, and `remainder` = rows and target about s alone.

    `level` is the log of the integral over v, up to what the remainder holds.
    """

    slope: Array
    offset: Array
    root: Array
    remainder: Array
    level: float


def eliminate(rows: Array, target: Array, prior_std: Array) -> Elimination:
    """Eliminate the first len(prior_std) columns of whitened factors rows (v, s) = target +- 1; v has mean zero."""
    few, size = len(prior_std), rows.shape[1]
    upper = triangle(np.column_stack([rows, target]))
    determined = len(upper) >= few and np.all(np.abs(np.diag(upper)[:few]) * prior_std > NEGLIGIBLE_PRIOR)
    if not determined:  # the prior is felt; elsewhere it would vanish in rounding
        prior = np.zeros((few, size + 1))
        prior[np.arange(few), np.arange(few)] = 1.0 / prior_std
        upper = triangle(np.vstack([upper, prior]))
    root = inverse_triangular(upper[:few, :few])
    left = upper[size:, -1]
    level = -float(np.sum(np.log(np.abs(np.diag(upper)[:few]) * prior_std))) - 0.5 * float(left @ left)
    return Elimination(-root @ upper[:few, few:-1], root @ upper[:few, -1], root, upper[few:size, few:], level)


@dataclass(frozen=True, eq=False)
class NoiseBlock:
    """One block of the interior noise: `root` with the directions that the end sees taken out.

    Kept as its two factors because the root is a triangle, which a file holds in half the space.
    """

    where: Indices  # rows and columns of the whole
    root: Array
    directions: Array  # columns of norm one, or less where they are taken out in part; none leave the root as it is

    @property
    def block(self) -> Array:
        return self.root - (self.root @ self.directions) @ self.directions.T


@dataclass(frozen=True, eq=False)
class InteriorNoise:
    """A square matrix that is zero outside blocks, each on its own set of rows and columns."""

    size: int
    parts: tuple[NoiseBlock, ...]

    def __matmul__(self, vector: Array) -> Array:
        result = np.zeros(self.size)
        for part in self.parts:
            own = vector[part.where]
            result[part.where] = part.root @ (own - part.directions @ (part.directions.T @ own))
        return result

    def between(self, rows: Array) -> Array:
        """Covariances of functionals, rows (n, size), with all."""
        result = np.zeros(rows.shape)
        for part in self.parts:
            noise = rows[:, part.where] @ part.root
            noise -= (noise @ part.directions) @ part.directions.T
            noise -= (noise @ part.directions) @ part.directions.T
            result[:, part.where] = noise @ part.root.T
        return result

    def dense(self) -> Array:
        result = np.zeros((self.size, self.size))
        for part in self.parts:
            result[np.ix_(part.where, part.where)] = part.block
        return result


@dataclass(frozen=True, eq=False)
class Segment:
    """A window after elimination: v = offset + slope s + interior + end_noise eta, its message, and the way to its end.

    The end's state is s' = transition s + shift + noise_root eta.
    """

    slope: Array  # (inner, state)
    offset: Array  # (inner,)
    interior: InteriorNoise  # (inner, inner): noise that the end does not see
    end_noise: Array  # (inner, state): noise that it does, through eta
    message: Message
    transition: Array  # F
    shift: Array  # f
    noise_root: Array  # G


def segment(rows: Array, target: Array, inner: Indices, state: Indices, prior_std: Array, end: Array) -> Segment:
    """From whitened factors rows w = target +- 1, the prior sds of w[inner], and the end's state = end w."""
    moving = np.ones(rows.shape[1], bool)
    moving[state] = False
    within = np.any((rows != 0.0) & moving, axis=1)  # initial labels speak of the state alone: a small QR of their own
    outer = Message(rows[~within][:, state], target[~within])
    if not within.all():
        rows, target = rows[within], target[within]
    parts = (
        (v, s, rows[np.ix_(chosen, np.concatenate([inner[v], state[s]]))], target[chosen])
        for v, s, chosen in components(rows, end, inner, state)
    )
    return assembled(parts, outer, inner, state, prior_std, end)


def met(conditions: Array, equations: Array, inner: Indices) -> tuple[Array, Array]:
    """Factors (rows, target last) of which there are more than inner weights to meet them: what says how these follow,
    as many as there are of them, and what the conditions say about the state alone.

    Conditions are met first and equations then in least squares. What is left of the equations is what the features
    cannot follow, and nothing that is known about the state.
    """
    left, size, _ = linalg.svd(conditions[:, inner], full_matrices=False)
    left = left[:, size > DEPENDENT * size.max(initial=0.0)]
    kept = left.T @ conditions
    about_state = conditions - left @ kept
    about_state[:, inner] = 0.0
    free = linalg.qr(kept[:, inner].T)[0][:, len(kept) :]
    seen = linalg.qr(equations[:, inner] @ free, mode="economic")[0]
    return np.vstack([kept, seen.T @ equations]), triangle(about_state)


def assembled(
    parts: Iterable[Component], outer: Message, inner: Indices, state: Indices, prior_std: Array, end: Array
) -> Segment:
    """From factors in components that share no weight, and what is said about the state alone."""
    count, width = len(inner), len(state)
    slope, offset, end_noise = np.zeros((count, width)), np.zeros(count), np.zeros((count, width))
    transition, noise_root = np.zeros((width, width)), np.zeros((width, width))
    about_state, interior, level = [np.column_stack([outer.rows, outer.target])], [], outer.level
    for v, s, rows, target in parts:
        found = eliminate(rows, target, prior_std[v])
        slope[np.ix_(v, s)], offset[v] = found.slope, found.offset
        level += found.level
        remainder = np.zeros((len(found.remainder), width + 1))
        remainder[:, np.append(s, width)] = found.remainder
        about_state.append(remainder)
        to_end = end[s][:, inner[v]]
        transition[np.ix_(s, s)] = end[s][:, state[s]] + to_end @ found.slope
        seen = to_end @ found.root  # (s, v) = corner' directions', directions with orthonormal columns
        directions, corner = linalg.qr(seen.T, mode="economic", check_finite=False) if len(v) else (seen.T, seen)
        noise_root[np.ix_(s, s[: len(corner)])] = corner.T if len(v) else 0.0
        end_noise[np.ix_(v, s[: directions.shape[1]])] = found.root @ directions
        # in the order of a file's numbers: products of what was stored and loaded then round alike
        interior.append(NoiseBlock(v, np.ascontiguousarray(found.root), np.ascontiguousarray(directions)))
    rows = np.vstack(about_state)
    message = Message(rows[:, :-1], rows[:, -1], level).compressed()
    return Segment(
        slope, offset, InteriorNoise(count, tuple(interior)), end_noise, message, transition, end[:, inner] @ offset,
        noise_root,
    )  # fmt: skip


def conditioned(link: Segment, inner: Array, state: Array, target: Array) -> Segment | None:
    """A window that is known, given further whitened factors inner v + state s = target +- 1: few, beside its weights.

    They are noise of two kinds away from functionals of s: what stays inside and eta, which the end sees. None where
    they tell of the noise inside and it lies in several blocks: they would link them.
    """
    none = np.zeros((len(target), 0))
    within = np.column_stack([none, *(inner[:, part.where] @ part.block for part in link.interior.parts)])
    told = within @ within.T
    felt = float(np.trace(told)) > INTERIOR_FELT
    if felt and len(link.interior.parts) > 1:
        return None
    whiten = np.linalg.inv(linalg.cholesky(np.eye(len(target)) + told, lower=True))
    at_end, at_start, gap = (
        whiten @ part for part in (inner @ link.end_noise, inner @ link.slope + state, target - inner @ link.offset)
    )
    width = len(link.transition)
    found = eliminate(np.column_stack([at_end, at_start]), gap, np.ones(width))  # of eta
    offset, slope = link.offset + link.end_noise @ found.offset, link.slope + link.end_noise @ found.slope
    end_noise, interior = link.end_noise @ found.root, link.interior
    if felt:
        (part,) = link.interior.parts
        gain = np.zeros((len(offset), len(target)))
        gain[part.where] = part.block @ (whiten @ within).T
        offset = offset + gain @ (gap - at_end @ found.offset)
        slope = slope - gain @ (at_start + at_end @ found.slope)
        end_noise = end_noise - gain @ (at_end @ found.root)
        _, strength, directions = linalg.svd(within, full_matrices=False)
        taken = directions.T * np.sqrt(1.0 - 1.0 / np.sqrt(1.0 + strength**2))
        root = part.root - part.root @ part.directions @ part.directions.T
        interior = InteriorNoise(link.interior.size, (NoiseBlock(part.where, root, taken),))
    rows = found.remainder
    level = found.level + float(np.sum(np.log(np.diag(whiten))))
    return Segment(
        slope, offset, interior, end_noise, Message(rows[:, :-1], rows[:, -1], level) * link.message,
        link.transition + link.noise_root @ found.slope, link.shift + link.noise_root @ found.offset,
        link.noise_root @ found.root,
    )  # fmt: skip


def components(rows: Array, end: Array, inner: Indices, state: Indices) -> list[tuple[Indices, Indices, Indices]]:
    """Sets of weights that no factor joins, as positions in `inner` and `state`, with the factors that read them.

    The waves of a linear equation with constant coefficients do not mix, and seen through the modes that the basis
    holds (model/windowed.py) each frequency has factors of its own: a small QR each, with the same result.
    """
    size = np.abs(rows)
    linked = size > 1e-12 * size.max(axis=1, initial=0.0, keepdims=True)
    if np.count_nonzero(linked) > 0.5 * linked.size:
        return [(np.arange(len(inner)), np.arange(len(state)), np.arange(len(rows)))]
    # most rows read the same weights as others: a graph of the distinct patterns is far smaller
    _, first, kind = np.unique(np.packbits(linked, axis=1), axis=0, return_index=True, return_inverse=True)
    pattern = sparse.csr_matrix(np.vstack([linked[first], end != 0.0]))
    joint = sparse.bmat([[None, pattern], [pattern.T, None]])
    _, label = csgraph.connected_components(joint, directed=False)
    of_rows, of_inner = label[kind.ravel()], label[pattern.shape[0] + inner]
    of_state = label[pattern.shape[0] + state]
    return [
        (np.flatnonzero(of_inner == number), np.flatnonzero(of_state == number), np.flatnonzero(of_rows == number))
        for number in np.unique(np.concatenate([of_inner, of_state]))
    ]


def told(offset: Array, end: Array) -> Segment:
    """A window of which nothing is uncertain: its inner weights, and the state at its end."""
    none = np.zeros((len(offset), 0))
    slope, transition = (np.broadcast_to(0.0, (count, len(end))) for count in (len(offset), len(end)))
    return Segment(
        slope, offset, InteriorNoise(len(offset), ()), none, Message.nothing(len(end)), transition, end,
        np.zeros((len(end), 0)),
    )  # fmt: skip


# -- messages along a path of windows


def propagate(belief: Belief, link: Segment) -> Belief:
    """The belief about the end's state, from that about the start's (the window's message included)."""
    root = lower_root(np.column_stack([link.transition @ belief.root, link.noise_root]))
    return Belief(link.transition @ belief.mean + link.shift, root, belief.level)


def backward(message: Message, link: Segment) -> Message:
    """What a message about the end's state says about the start's, the window's own message included."""
    if not len(message.rows):
        return link.message
    width = len(link.transition)
    gap = message.target - message.rows @ link.shift
    top = np.column_stack([message.rows @ link.noise_root, message.rows @ link.transition, gap])
    upper = triangle(np.vstack([top, np.eye(width, 2 * width + 1)]))[width:]
    return Message(upper[:, width:-1], upper[:, -1]) * link.message


def backward_messages(links: Sequence[Segment]) -> list[Message]:
    """For every window, what all later windows say about the state at its end."""
    message, found = Message.nothing(len(links[0].transition)), []
    for link in reversed(links):
        found.append(message)
        message = backward(message, link)
    return found[::-1]


def smoothed(belief: Belief, link: Segment, future: Message) -> Belief:
    """Belief about (s, v) up to the interior noise, given everything: root (state + inner, 2 state).

    `belief` is the filtered one at the start, `future` what later windows say about the end's state.
    """
    return smoothed_with_end(belief, link, future)[0]


def smoothed_with_end(belief: Belief, link: Segment, future: Message) -> tuple[Belief, Array]:
    """The smoothed belief, and a root of the end's state in the same noises: products with it are covariances."""
    width, known = belief.root.shape
    start = np.zeros((width + len(link.offset), known + link.end_noise.shape[1]))
    start[:width, :known] = belief.root
    start[width:, :known] = link.slope @ belief.root
    start[width:, known:] = link.end_noise
    mean = np.concatenate([belief.mean, link.offset + link.slope @ belief.mean])
    end = _both(belief, link)
    if not len(future.rows):
        return Belief(mean, start), end.root
    standard = end.standard(future)
    return Belief(mean + start @ standard.mean, start @ standard.root), end.root @ standard.root


def smoothed_mean(belief: Belief, link: Segment, future: Message) -> Array:
    """The mean of (s, v) given everything, without the far dearer root."""
    state, eta, width = belief.mean, np.zeros(link.end_noise.shape[1]), belief.root.shape[1]
    if len(future.rows):
        moved = _both(belief, link).standard(future).mean
        state, eta = state + belief.root @ moved[:width], moved[width:]
    return np.concatenate([state, link.offset + link.slope @ state + link.end_noise @ eta])


def _both(belief: Belief, link: Segment) -> Belief:
    """About the end's state, in the coordinates of the belief at the start and of the window's noise."""
    root = np.column_stack([link.transition @ belief.root, link.noise_root])
    return Belief(link.transition @ belief.mean + link.shift, root)


def following(link: Segment, future: Message) -> tuple[Array, Array]:
    """Given all that is known, what moves with the state s at a window's start: (s, v), and the end's state.

    What later windows say ties the noise eta to s: eta = -U^-1 V s + ..., from a QR of [rows G, rows F; I, 0].
    """
    width = len(link.transition)
    if not len(future.rows):
        return np.vstack([np.eye(width), link.slope]), link.transition
    told = np.column_stack([future.rows @ link.noise_root, future.rows @ link.transition])
    upper = triangle(np.vstack([told, np.eye(width, 2 * width)]))[:width]
    noise = -linalg.solve_triangular(upper[:, :width], upper[:, width:], check_finite=False)
    weights = np.vstack([np.eye(width), link.slope + link.end_noise @ noise])
    return weights, link.transition + link.noise_root @ noise
