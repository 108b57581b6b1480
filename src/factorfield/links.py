"""Gaussian messages along a chain, in square-root form: what a window of time says about its state and to the next.

A window's weights are its state s at the start and the rest v. All its linearised factors, whitened, and the prior of v
are rows [J_v J_s | r]; one QR puts them as
    v = offset + slope s + noise,        R s = r +- 1
- the window's content, whatever arrives from outside. The state at its end is s' = F s + f + G eta, eta ~ N(0, I),
and the part of the noise that the end does not see stays inside. Forward and backward messages then cost only QRs of
the size of the state; covariances are never subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse import csgraph

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def triangle(rows: Array) -> Array:
    """R of a QR decomposition, (min(rows, columns), columns)."""
    if 0 in rows.shape:
        return rows[:0]
    stored = linalg.lapack.dgeqrf(rows)[0]
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

    @staticmethod
    def nothing(size: int) -> Message:
        return Message(np.zeros((0, size)), np.zeros(0))

    def __mul__(self, other: Message) -> Message:
        both = np.vstack([np.column_stack([m.rows, m.target]) for m in (self, other)])
        upper = triangle(both)[: self.rows.shape[1]]
        return Message(np.ascontiguousarray(upper[:, :-1]), upper[:, -1].copy())


@dataclass(frozen=True, eq=False)
class Belief:
    """N(mean, root root')."""

    mean: Array
    root: Array

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


@dataclass(frozen=True, eq=False)
class Segment:
    """A window's content: v = offset + slope s + inside + outside eta, the message to s, and the way to its end."""

    slope: Array  # (rest, state)
    offset: Array  # (rest,)
    inside: Array  # (rest, rest): noise that the end does not see
    outside: Array  # (rest, state): noise that it does, as seen through eta
    message: Message
    forward: Array  # F
    shift: Array  # f
    kick: Array  # G


def segment(rows: Array, target: Array, rest: Indices, state: Indices, spread: Array, end: Array) -> Segment:
    """From whitened factors rows w = target +- 1, the prior sds of w[rest], and the end's state = end w."""
    within = np.any(rows[:, rest] != 0.0, axis=1)  # initial labels speak of the state alone: a small QR of their own
    outer = Message(rows[~within][:, state], target[~within])
    rows, target = rows[within], target[within]
    count, width = len(rest), len(state)
    inverse, slope, offset = np.zeros((count, count)), np.zeros((count, width)), np.zeros(count)
    own = [np.column_stack([outer.rows, outer.target])]
    for inner_part, state_part in components(rows, rest, state):
        few, part = len(inner_part), np.concatenate([rest[inner_part], state[state_part]])
        stacked = np.zeros((len(rows) + few, len(part) + 1))
        stacked[: len(rows), :-1] = rows[:, part]
        stacked[: len(rows), -1] = target
        stacked[len(rows) + np.arange(few), np.arange(few)] = 1.0 / spread[inner_part]
        upper = triangle(stacked)
        corner = linalg.lapack.dtrtri(upper[:few, :few])[0] if few else np.zeros((0, 0))
        inverse[np.ix_(inner_part, inner_part)] = corner
        slope[np.ix_(inner_part, state_part)] = -corner @ upper[:few, few:-1]
        offset[inner_part] = corner @ upper[:few, -1]
        message = np.zeros((len(upper[few : len(part)]), width + 1))
        message[:, np.append(state_part, width)] = upper[few : len(part), few:]
        own.append(message)
    reduced = triangle(np.vstack(own))[:width]
    to_end = end[:, rest] @ inverse  # (state, rest) = kick @ directions, directions with orthonormal rows
    directions, corner = linalg.qr(to_end.T, mode="economic") if count else (np.zeros((0, 0)), np.zeros((0, width)))
    kick, outside = np.zeros((width, width)), np.zeros((count, width))
    kick[:, : len(corner)] = corner.T
    seen = inverse @ directions
    outside[:, : directions.shape[1]] = seen
    forward = end[:, state] + end[:, rest] @ slope
    return Segment(
        slope, offset, inverse - seen @ directions.T, outside, Message(reduced[:, :-1], reduced[:, -1]), forward,
        end[:, rest] @ offset, kick,
    )  # fmt: skip


def components(rows: Array, rest: Indices, state: Indices) -> list[tuple[Indices, Indices]]:
    """Sets of columns that are orthogonal to each other, as positions in `rest` and `state`.

    The waves of a linear equation with constant coefficients do not mix on evenly spread points: each frequency is then
    a small QR of its own, with the same result.
    """
    count, size = len(rest), len(rest) + len(state)
    order = np.concatenate([rest, state])
    gram = linalg.blas.dsyrk(1.0, rows[:, order].T) if len(rows) else np.zeros((size, size))
    norm = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    linked = np.abs(gram) > 1e-10 * np.outer(norm, norm)
    _, label = csgraph.connected_components(sparse.csr_matrix(linked), directed=False)
    parts = []
    for number in range(label.max() + 1):
        members = np.flatnonzero(label == number)
        parts.append((members[members < count], members[members >= count] - count))
    return parts


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
