"""How weights of any two windows of a path go together: covariances carried forward and backward from each functional.

Given everything, the windows are a chain: the state at a window's start is all that it shares with those before. So a
covariance with a functional of one window is carried to later ones by what the state makes of itself, and the
functional's share in the state is pulled back to earlier ones. Neither forms a covariance of more than one window.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorfield.messages.elimination import Segment, following, smoothed_with_end
from factorfield.messages.gaussian import Belief, Message

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SmoothedPath:
    """Windows in a row: filtered beliefs at their starts, what each is after elimination, what later ones say."""

    starts: Sequence[Belief]
    links: Sequence[Segment]
    futures: Sequence[Message]

    def covariances(
        self, rows: Array, at: Indices, wanted: Collection[int]
    ) -> Iterator[tuple[int, NDArray[np.bool_], Array]]:
        """Of functionals `rows` (n, state + inner), of the windows `at` (n,), with the weights of the windows `wanted`:
        (window, which functionals, their covariances with its weights), every pair once."""
        if len(at) and len(wanted):
            yield from self._later(rows, at, wanted)
            yield from self._earlier(rows, at, wanted)

    def _later(
        self, rows: Array, at: Indices, wanted: Collection[int]
    ) -> Iterator[tuple[int, NDArray[np.bool_], Array]]:
        """In the functional's own window and after it."""
        state = np.zeros((len(at), len(self.links[0].transition)))  # covariances with the state at the start
        for index in range(int(at.min()), max(wanted) + 1):
            before, own = at < index, at == index
            if np.any(before):
                weights, end = following(self.links[index], self.futures[index])
                if index in wanted:
                    yield index, before, state[before] @ weights.T
                state[before] = state[before] @ end.T
            if np.any(own):
                known, end_root = smoothed_with_end(self.starts[index], self.links[index], self.futures[index])
                noises = rows[own] @ known.root
                if index in wanted:
                    yield index, own, noises @ known.root.T + self._inside(index, rows[own])
                state[own] = noises @ end_root.T

    def _earlier(
        self, rows: Array, at: Indices, wanted: Collection[int]
    ) -> Iterator[tuple[int, NDArray[np.bool_], Array]]:
        share = np.zeros((len(at), len(self.links[0].transition)))  # of the functional in the state at a window's start
        for index in range(int(at.max()), min(wanted) - 1, -1):
            after, own = at > index, at == index
            if index in wanted and np.any(after):
                known, end_root = smoothed_with_end(self.starts[index], self.links[index], self.futures[index])
                yield index, after, (share[after] @ end_root) @ known.root.T
            weights, end = following(self.links[index], self.futures[index])
            share[after] = share[after] @ end
            share[own] = rows[own] @ weights

    def _inside(self, index: int, rows: Array) -> Array:
        """What the noise that stays inside a window adds."""
        link = self.links[index]
        width, found = len(link.transition), np.zeros(rows.shape)
        for part in link.interior.parts:
            block, where = part.block, width + part.where
            found[:, where] += (rows[:, where] @ block) @ block.T
        return found
