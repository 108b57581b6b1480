"""Gaussian messages along a chain, in square-root form: what a window of time says about its state and to the next.

A window's weights are its state s at the start and the rest v. All its linearised factors, whitened, and the prior of v
are rows [J_v J_s | r]; one QR puts them as
    v = offset + slope s + noise,        R s = r +- 1
- the window's content, whatever arrives from outside. The state at its end is s' = F s + f + G eta, eta ~ N(0, I),
and the part of the noise that the end does not see stays inside. Forward and backward messages then cost only QRs of
the size of the state; covariances are never subtracted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse import csgraph

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Block = tuple[Indices, Indices, Array, Array]  # positions in rest and state, rows over both, targets
FELT = 1e6  # factors that say this many times more than the prior leave it nothing to say


def triangle(rows: Array) -> Array:
    """R of a QR decomposition, (min(rows, columns), columns)."""
    if 0 in rows.shape:
        return rows[:0]
    stored = linalg.lapack.dgeqrf(rows, lwork=64 * rows.shape[1])[0]  # room for blocks: several times faster
    return np.triu(stored[: min(rows.shape)])


def compressed(root: Array) -> Array:
    """A square lower-triangular root of root root'."""
    size = len(root)
    upper = triangle(root.T)
    square = np.zeros((size, size))
    square[: len(upper)] = upper
    return square.T


@dataclass(frozen=True, eq=False)
class Message:
    """Information about a state: rows s = target +- 1, with at most as many rows as the state has entries."""

    rows: Array
    target: Array

    def __post_init__(self) -> None:
        """One layout in memory: BLAS rounds others differently, and a file would not give back the same bits."""
        object.__setattr__(self, "rows", np.ascontiguousarray(self.rows))
        object.__setattr__(self, "target", np.ascontiguousarray(self.target))

    @staticmethod
    def nothing(size: int) -> Message:
        return Message(np.zeros((0, size)), np.zeros(0))

    def misfit(self, state: Array) -> Array:
        return self.rows @ state - self.target

    def __mul__(self, other: Message) -> Message:
        both = np.vstack([np.column_stack([m.rows, m.target]) for m in (self, other)])
        upper = triangle(both)[: self.rows.shape[1]]
        return Message(upper[:, :-1], upper[:, -1])


@dataclass(frozen=True, eq=False)
class Belief:
    """N(mean, root root')."""

    mean: Array
    root: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", np.ascontiguousarray(self.root))

    def __mul__(self, message: Message) -> Belief:
        """Condition on a message, in the coordinates where this belief is standard normal."""
        if not len(message.rows):
            return self
        seen = message.rows @ self.root
        size = self.root.shape[1]
        gap = message.target - message.rows @ self.mean
        stacked = np.vstack([np.column_stack([seen, gap]), np.column_stack([np.eye(size), np.zeros(size)])])
        upper = triangle(stacked)
        factor = upper[:size, :size]
        shift = linalg.solve_triangular(factor, upper[:size, size])
        inverse = linalg.lapack.dtrtri(factor)[0]
        return Belief(self.mean + self.root @ shift, self.root @ inverse)

    def standard(self, message: Message) -> Belief:
        """The same, left in the coordinates where this belief was standard normal."""
        size = self.root.shape[1]
        gap = message.target - message.rows @ self.mean
        return Belief(np.zeros(size), np.eye(size)) * Message(message.rows @ self.root, gap)


@dataclass(frozen=True, eq=False)
class Inside:
    """One block of the noise inside a window: `root` with the directions that its end sees taken out.

    Kept as its two factors because the root is a triangle, which a file holds in half the space.
    """

    where: Indices  # rows and columns of the whole
    root: Array
    directions: Array  # orthonormal columns; none leave the root as it is

    @property
    def block(self) -> Array:
        return self.root - (self.root @ self.directions) @ self.directions.T


@dataclass(frozen=True, eq=False)
class Blocks:
    """A square matrix that is zero outside blocks, each on its own set of rows and columns."""

    size: int
    parts: tuple[Inside, ...]

    def __matmul__(self, vector: Array) -> Array:
        result = np.zeros(self.size)
        for part in self.parts:
            own = vector[part.where]
            result[part.where] = part.root @ (own - part.directions @ (part.directions.T @ own))
        return result

    def dense(self) -> Array:
        result = np.zeros((self.size, self.size))
        for part in self.parts:
            result[np.ix_(part.where, part.where)] = part.block
        return result


@dataclass(frozen=True, eq=False)
class Segment:
    """A window's content: v = offset + slope s + inside + outside eta, the message to s, and the way to its end."""

    slope: Array  # (rest, state)
    offset: Array  # (rest,)
    inside: Blocks  # (rest, rest): noise that the end does not see
    outside: Array  # (rest, state): noise that it does, as seen through eta
    message: Message
    forward: Array  # F
    shift: Array  # f
    kick: Array  # G


def segment(rows: Array, target: Array, rest: Indices, state: Indices, spread: Array, end: Array) -> Segment:
    """From whitened factors rows w = target +- 1, the prior sds of w[rest], and the end's state = end w."""
    moving = np.ones(rows.shape[1], bool)
    moving[state] = False
    within = np.any((rows != 0.0) & moving, axis=1)  # initial labels speak of the state alone: a small QR of their own
    outer = Message(rows[~within][:, state], target[~within])
    if not within.all():
        rows, target = rows[within], target[within]
    blocks = (
        (v, s, rows[np.ix_(chosen, np.concatenate([rest[v], state[s]]))], target[chosen])
        for v, s, chosen in components(rows, end, rest, state)
    )
    return assembled(blocks, outer, rest, state, spread, end)


def assembled(
    blocks: Iterable[Block], outer: Message, rest: Indices, state: Indices, spread: Array, end: Array
) -> Segment:
    """From factors in blocks that share no weight, and what is said about the state alone."""
    count, width = len(rest), len(state)
    slope, offset, outside = np.zeros((count, width)), np.zeros(count), np.zeros((count, width))
    forward, kick = np.zeros((width, width)), np.zeros((width, width))
    own, inside = [np.column_stack([outer.rows, outer.target])], []
    for v, s, rows, target in blocks:
        few, size = len(v), len(v) + len(s)
        upper = triangle(np.column_stack([rows, target]))
        settled = len(upper) >= few and np.all(np.abs(np.diag(upper)[:few]) * spread[v] > FELT)
        if not settled:  # the prior is felt; elsewhere it would vanish in rounding
            prior = np.zeros((few, size + 1))
            prior[np.arange(few), np.arange(few)] = 1.0 / spread[v]
            upper = triangle(np.vstack([upper, prior]))
        inverse = linalg.lapack.dtrtri(upper[:few, :few])[0] if few else np.zeros((0, 0))
        slope[np.ix_(v, s)] = own_slope = -inverse @ upper[:few, few:-1]
        offset[v] = inverse @ upper[:few, -1]
        message = np.zeros((len(upper[few:size]), width + 1))
        message[:, np.append(s, width)] = upper[few:size, few:]
        own.append(message)
        there = end[s]
        forward[np.ix_(s, s)] = there[:, state[s]] + there[:, rest[v]] @ own_slope
        to_end = there[:, rest[v]] @ inverse  # (s, v) = kick @ directions, directions with orthonormal rows
        directions, corner = linalg.qr(to_end.T, mode="economic", check_finite=False) if few else (to_end.T, to_end)
        seen = inverse @ directions
        kick[np.ix_(s, s[: len(corner)])] = corner.T if few else 0.0
        outside[np.ix_(v, s[: directions.shape[1]])] = seen
        # in the order of a file's numbers: products of what was stored and loaded then round alike
        inside.append(Inside(v, np.ascontiguousarray(inverse), np.ascontiguousarray(directions)))
    reduced = triangle(np.vstack(own))[:width]
    return Segment(
        slope, offset, Blocks(count, tuple(inside)), outside, Message(reduced[:, :-1], reduced[:, -1]), forward,
        end[:, rest] @ offset, kick,
    )  # fmt: skip


def components(rows: Array, end: Array, rest: Indices, state: Indices) -> list[tuple[Indices, Indices, Indices]]:
    """Sets of weights that no factor joins, as positions in `rest` and `state`, with the factors that speak of them.

    The waves of a linear equation with constant coefficients do not mix, and seen through the modes that the basis
    holds (chain_rows.projected) each frequency has factors of its own: a small QR each, with the same result.
    """
    size = np.abs(rows)
    linked = size > 1e-12 * size.max(axis=1, initial=0.0, keepdims=True)
    if np.count_nonzero(linked) > 0.5 * linked.size:
        return [(np.arange(len(rest)), np.arange(len(state)), np.arange(len(rows)))]
    # most rows speak of the same weights as others: a graph of the distinct patterns is far smaller
    _, first, kind = np.unique(np.packbits(linked, axis=1), axis=0, return_index=True, return_inverse=True)
    pattern = sparse.csr_matrix(np.vstack([linked[first], end != 0.0]))
    joint = sparse.bmat([[None, pattern], [pattern.T, None]])
    _, label = csgraph.connected_components(joint, directed=False)
    of_rows, of_rest = label[kind.ravel()], label[pattern.shape[0] + rest]
    of_state = label[pattern.shape[0] + state]
    return [
        (np.flatnonzero(of_rest == number), np.flatnonzero(of_state == number), np.flatnonzero(of_rows == number))
        for number in np.unique(np.concatenate([of_rest, of_state]))
    ]


def carried(belief: Belief, link: Segment) -> Belief:
    """The belief about the end's state, from that about the start's (window's message included)."""
    root = compressed(np.column_stack([link.forward @ belief.root, link.kick]))
    return Belief(link.forward @ belief.mean + link.shift, root)


def returned(message: Message, link: Segment) -> Message:
    """What a message about the end's state says about the start's, the window's own message included."""
    width = link.forward.shape[0]
    if not len(message.rows):
        return link.message
    through = message.rows @ link.kick
    gap = message.target - message.rows @ link.shift
    top = np.column_stack([through, message.rows @ link.forward, gap])
    bottom = np.column_stack([np.eye(width), np.zeros((width, width + 1))])
    upper = triangle(np.vstack([top, bottom]))[width:]
    return Message(upper[:, width:-1], upper[:, -1]) * link.message


def inner(belief: Belief, link: Segment, future: Message) -> Belief:
    """Belief about (s, v) up to the noise inside: root (state + rest, 2 state), given everything.

    `belief` is the filtered one at the start, `future` what later windows say about the end's state.
    """
    width = len(belief.mean)
    start = np.zeros((width + len(link.offset), 2 * width))
    start[:width, :width] = belief.root
    start[width:, :width] = link.slope @ belief.root
    start[width:, width:] = link.outside
    mean = np.concatenate([belief.mean, link.offset + link.slope @ belief.mean])
    if not len(future.rows):
        return Belief(mean, start)
    seen = future.rows @ np.column_stack([link.forward @ belief.root, link.kick])
    there = link.forward @ belief.mean + link.shift
    standard = Belief(np.zeros(2 * width), np.eye(2 * width)) * Message(seen, future.target - future.rows @ there)
    return Belief(mean + start @ standard.mean, start @ standard.root)
