"""Elimination on a tree of boxes: exact messages between boxes of weights that read few of each other's.

A box collects its own rows and its children's messages - together its front -, eliminates the weights v that nobody
outside reads, and sends what is left about its interface s to its parent:

    v = slope s + root noise,        noise ~ N(0, I)

This conditional is all that a box keeps; all of them together are one Gaussian whose covariance is W W', with W applied
from the root down (`spread`) and W' from the leaves up (`gather`). Messages are information matrices, eliminated by
Cholesky, or square-root rows, eliminated by QR, where the condition of a front asks for it.

Boxes with equal fronts have equal conditionals. Every front has a key, a digest of all that it is made of: it is
eliminated once for all boxes that share it, and not again when only other boxes change.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield import threads
from factorfield.messages.gaussian import inverse_triangular, triangle

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
MIRRORED = 256  # rows of a symmetric matrix that are copied at once


@dataclass(frozen=True, eq=False)
class Box:
    """Weights by their numbers, in ascending order; `children` are positions in the list of boxes, before this one.

    `places` are positions in the front: of each child's interface, or of the weights that a leaf's own rows read.
    """

    eliminated: Indices
    interface: Indices
    children: tuple[int, ...] = ()
    places: tuple[Indices, ...] = ()

    @property
    def front(self) -> Indices:
        return np.concatenate([self.eliminated, self.interface])

    @cached_property
    def pattern(self) -> bytes:
        """How the front is put together, wherever the box is."""
        digest = hashlib.blake2b(np.int64(len(self.eliminated)).tobytes(), digest_size=16)
        for place in self.places:
            digest.update(place.tobytes())
        return digest.digest()


def nested_boxes(
    size: int, reads: Sequence[Indices], children: Sequence[tuple[int, ...]], whole: Sequence[bool], last: Indices
) -> tuple[Box, ...]:
    """Boxes from the weights that each reads itself (none, where it has children), the root as the last one.

    A weight is eliminated in the lowest box with all of its readers inside, except in boxes that are handed on `whole`
    because they are too small to be worth it; the weights `last` wait for the root.
    """
    readers = np.bincount(np.concatenate([*reads, last]), minlength=size)
    readers[last] = len(reads) + 1
    position = np.zeros(size, np.int64)
    boxes: list[Box] = []
    counts: list[Indices] = []  # of each box's interface: leaves inside that read it
    for own, below, keep in zip(reads, children, whole, strict=True):
        parts = [boxes[child].interface for child in below] if below else [own]
        inside = [counts[child] for child in below] if below else [np.ones(len(own), np.int64)]
        front, where = np.unique(np.concatenate(parts), return_inverse=True)
        found = np.bincount(where, weights=np.concatenate(inside), minlength=len(front)).astype(np.int64)
        done = (found == readers[front]) & (not keep)
        if len(boxes) == len(reads) - 1:
            done[:] = True
        eliminated, interface = front[done], front[~done]
        position[eliminated] = np.arange(len(eliminated))
        position[interface] = len(eliminated) + np.arange(len(interface))
        boxes.append(Box(eliminated, interface, tuple(below), tuple(position[part] for part in parts)))
        counts.append(found[~done])
    return tuple(boxes)


@dataclass(frozen=True, eq=False)
class Conditional:
    """v = slope s + root noise; `root` is upper triangular, `rcond` the reciprocal condition of the front's scaled
    information about v (1 where no information matrix was formed)."""

    root: Array
    slope: Array
    rcond: float = 1.0

    @property
    def log_determinant(self) -> float:
        """Of the precision of v given s."""
        return -2.0 * float(np.sum(np.log(np.abs(np.diagonal(self.root)))))


def eliminate_information(front: Array, count: int) -> tuple[Conditional, Array]:
    """The conditional of the first `count` weights, and what is left about the others, by Cholesky."""
    scale = 1.0 / np.sqrt(np.diagonal(front)[:count])
    inner = np.asfortranarray(front[:count, :count] * scale[:, None] * scale)
    norm = float(np.abs(inner).sum(axis=0).max())
    upper, info = linalg.lapack.dpotrf(inner, lower=0, clean=1, overwrite_a=1)
    if info != 0:
        raise linalg.LinAlgError(f"information of a box is not positive at weight {info} of {count}")
    rcond, _ = linalg.lapack.dpocon(upper, norm, uplo="U")
    root = _plain(scale[:, None] * inverse_triangular(upper))
    if count == len(front):
        return Conditional(root, np.zeros((count, 0)), float(rcond)), np.zeros((0, 0))
    cross = linalg.blas.dtrsm(1.0, upper, scale[:, None] * front[:count, count:], trans_a=1)
    left = np.asfortranarray(front[count:, count:])
    left = linalg.blas.dsyrk(-1.0, cross, trans=1, beta=1.0, c=left, lower=1, overwrite_c=1)
    slope = -scale[:, None] * linalg.blas.dtrsm(1.0, upper, cross)
    return Conditional(root, _plain(slope), float(rcond)), _symmetric(left)


def eliminate_rows(rows: Array, count: int) -> tuple[Conditional, Array]:
    """The same from whitened rows, by QR: no digits are lost to squaring them."""
    upper = triangle(rows)
    if len(upper) < count:
        raise linalg.LinAlgError(f"{len(upper)} rows of a box for {count} weights")
    corner = upper[:count, :count]
    slope = -linalg.solve_triangular(corner, upper[:count, count:], check_finite=False)
    return Conditional(_plain(inverse_triangular(corner)), _plain(slope)), upper[count:, count:]


def _plain(matrix: Array) -> Array:
    """In the order of a file's numbers: products of what was stored and loaded then round alike."""
    return np.ascontiguousarray(matrix)


def _symmetric(lower: Array) -> Array:
    """The lower triangle copied over the upper one, block by block: large matrices do not fit in cache."""
    for start in range(0, len(lower), MIRRORED):
        stop = min(start + MIRRORED, len(lower))
        lower[:start, start:stop] = lower[start:stop, :start].T
        corner = np.tril(lower[start:stop, start:stop])
        lower[start:stop, start:stop] = corner + np.tril(corner, -1).T
    return lower


@dataclass(frozen=True, eq=False)
class BoxTree:
    """One Gaussian with mean zero over all weights, as the conditionals of boxes (None: nothing is eliminated there).

    `messages` by key: what boxes sent, kept for another elimination.
    """

    boxes: tuple[Box, ...]
    conditionals: tuple[Conditional | None, ...]
    keys: tuple[bytes, ...] = ()
    messages: dict[bytes, Array] = field(default_factory=dict)

    @property
    def steps(self) -> Iterator[tuple[Box, Conditional]]:
        """From the leaves to the root, where something is eliminated."""
        for box, conditional in zip(self.boxes, self.conditionals, strict=True):
            if conditional is not None:
                yield box, conditional

    @property
    def log_determinant(self) -> float:
        """Of the precision."""
        return sum(conditional.log_determinant for _, conditional in self.steps)

    @property
    def rcond(self) -> float:
        """The smallest of any front."""
        return min((conditional.rcond for _, conditional in self.steps), default=1.0)

    def gather(self, columns: Array) -> Array:
        """W' columns: the covariance of functionals is the product of what is gathered from each."""
        left, found = columns.astype(float), np.zeros(columns.shape)
        for box, conditional in self.steps:
            own = left[box.eliminated]
            there = np.any(own, axis=0) if own.ndim == 2 else np.any(own)
            if np.all(there):
                found[box.eliminated] = conditional.root.T @ own
                left[box.interface] += conditional.slope.T @ own
            elif np.any(there):  # functionals are local: few of many reach into a small box
                inside, few = np.flatnonzero(there), own[:, there]
                found[box.eliminated[:, None], inside] = conditional.root.T @ few
                left[box.interface[:, None], inside] += conditional.slope.T @ few
        return found

    def spread(self, noise: Array) -> Array:
        """W noise: a draw, of standard normal noise; a mean, of what was gathered from an information vector."""
        found = np.zeros(noise.shape)
        for box, conditional in reversed(list(self.steps)):
            found[box.eliminated] = conditional.root @ noise[box.eliminated] + conditional.slope @ found[box.interface]
        return found

    def solve(self, information: Array) -> Array:
        """covariance information."""
        return self.spread(self.gather(information))

    def marginals(self, wanted: Sequence[int]) -> Iterator[tuple[int, Array]]:
        """The covariance of the fronts of some boxes; only they and the boxes around them are visited."""
        visited = np.zeros(len(self.boxes), bool)
        visited[list(wanted)] = True
        asked = visited.copy()
        for index, box in enumerate(self.boxes):
            visited[index] |= any(visited[child] for child in box.children)
        stack = [(len(self.boxes) - 1, np.zeros((0, 0)))]
        while stack:
            index, outside = stack.pop()
            box = self.boxes[index]
            covariance = self._front_covariance(index, outside)
            if asked[index]:
                yield index, covariance
            for child, place in zip(box.children, box.places, strict=False):
                if visited[child]:
                    stack.append((child, covariance[place[:, None], place]))

    def _front_covariance(self, index: int, outside: Array) -> Array:
        conditional = self.conditionals[index]
        if conditional is None:
            return outside
        count, size = len(conditional.root), len(conditional.root) + len(outside)
        with threads.suited_to(size):
            covariance = np.empty((size, size))
            covariance[count:, count:] = outside
            moved = conditional.slope @ outside
            covariance[:count, count:], covariance[count:, :count] = moved, moved.T
            inner, _ = linalg.lapack.dlauum(np.asfortranarray(conditional.root), lower=0)
            covariance[:count, :count] = _symmetric(inner.T) + moved @ conditional.slope.T
        return covariance


def eliminate_boxes(
    boxes: Sequence[Box],
    leaf_keys: Sequence[bytes],
    own: Callable[[int], Array],
    square_root: bool,
    known: BoxTree | None = None,
    keep: bool = False,
) -> BoxTree:
    """All conditionals, from the leaves to the root. `own` gives a leaf's information matrix, or its rows, in the order
    of the weights that it reads; `leaf_keys` tells which are equal. What `known` has already is not done again."""
    keys = _keys(boxes, leaf_keys, square_root)
    found: dict[bytes, Conditional | None] = {}
    messages: dict[bytes, Array] = {}
    if known is not None:
        found = dict(zip(known.keys, known.conditionals, strict=True))
        messages = dict(known.messages)
    waiting = Counter(keys[child] for index in _first_of_each(keys) for child in boxes[index].children)
    for index in _first_of_each(keys):
        box, key = boxes[index], keys[index]
        if key in found and (key in messages or index == len(boxes) - 1):
            continue
        parts = [messages[keys[child]] for child in box.children] if box.children else [own(index)]
        with threads.suited_to(len(box.front)):
            found[key], messages[key] = _eliminated(box, parts, square_root)
        for child in box.children if not keep else ():
            waiting[keys[child]] -= 1
            if not waiting[keys[child]]:
                messages.pop(keys[child], None)
    return BoxTree(tuple(boxes), tuple(found[key] for key in keys), keys, messages if keep else {})


def _eliminated(box: Box, parts: Sequence[Array], square_root: bool) -> tuple[Conditional | None, Array]:
    size, count = len(box.eliminated) + len(box.interface), len(box.eliminated)
    if square_root:
        rows = np.zeros((sum(len(part) for part in parts), size))
        start = 0
        for part, place in zip(parts, box.places, strict=True):
            rows[start : start + len(part), place] = part
            start += len(part)
        return eliminate_rows(rows, count) if count else (None, triangle(rows))
    front = np.zeros((size, size))
    front[box.places[0][:, None], box.places[0]] = parts[0]
    for part, place in zip(parts[1:], box.places[1:], strict=True):
        front[place[:, None], place] += part
    return eliminate_information(front, count) if count else (None, front)


def _keys(boxes: Sequence[Box], leaf_keys: Sequence[bytes], square_root: bool) -> tuple[bytes, ...]:
    keys: list[bytes] = []
    for box, own in zip(boxes, leaf_keys, strict=True):
        below = b"".join(keys[child] for child in box.children)
        keys.append(hashlib.blake2b(bytes([square_root]) + own + below + box.pattern, digest_size=16).digest())
    return tuple(keys)


def _first_of_each(keys: Sequence[bytes]) -> list[int]:
    first: dict[bytes, int] = {}
    for index, key in enumerate(keys):
        first.setdefault(key, index)
    return list(first.values())
