"""How functionals of any two windows of a path go together: covariances carried forward and backward from each.

Given everything, the windows are a chain: the state at a window's start is all that it shares with those before. So a
covariance with a functional of one window is carried to later ones by what the state makes of itself, and the
functional's share in the state is pulled back to earlier ones. A functional takes part by what it reads of two small
sets of columns of its window; neither its row over all weights nor a covariance of weights is formed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from factorfield.messages.elimination import Segment, following, smoothed_with_end
from factorfield.messages.gaussian import Belief, Message

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Readings:
    """What functionals of one window read of its `SmoothedPath.columns`."""

    window: int
    noises: Array  # (n, 2 state): of the noises that the smoothed belief is made of
    start: Array  # (n, state): of the state at the window's start


_Placed = dict[int, tuple[slice, Readings]]  # by window, with the rows or columns that they take


@dataclass(frozen=True, eq=False)
class SmoothedPath:
    """Windows in a row: filtered beliefs at their starts, what each is after elimination, what later ones say."""

    starts: Sequence[Belief]
    links: Sequence[Segment]
    futures: Sequence[Message]

    def columns(self, index: int) -> tuple[Array, Array]:
        """Of a window's weights (state, inner): a root of their smoothed covariance up to the noise that stays inside,
        and what moves with the state at the start."""
        known, end_root = smoothed_with_end(self.starts[index], self.links[index], self.futures[index])
        moved, end = following(self.links[index], self.futures[index])
        self._ends[index] = end, end_root
        return known.root, moved

    def _end(self, index: int) -> tuple[Array, Array]:
        """Of the state at a window's end: what moves with the state at its start, and a root."""
        if index not in self._ends:
            self.columns(index)
        return self._ends[index]

    @cached_property
    def _ends(self) -> dict[int, tuple[Array, Array]]:
        return {}

    def covariances(self, left: Sequence[Readings], right: Sequence[Readings]) -> Array:
        """(all left, all right), both by ascending windows, without the noise that stays inside windows."""
        found = np.empty((sum(len(each.start) for each in left), sum(len(each.start) for each in right)))
        here, there = dict(_placed(left)), dict(_placed(right))
        if found.size:
            self._carry(found, here, there)
            self._pull(found, here, there)
        return found

    def _carry(self, found: Array, here: _Placed, there: _Placed) -> None:
        """In the functionals' own windows and after them."""
        state = np.empty((len(found), len(self.links[0].transition)))  # covariances with the state at the start
        begun = 0  # functionals of earlier windows are the first rows
        for index in range(min(here), max(there) + 1):
            if begun:
                if index in there:
                    columns, read = there[index]
                    found[:begun, columns] = state[:begun] @ read.start.T
                state[:begun] = state[:begun] @ self._end(index)[0].T
            if index in here:
                rows, own = here[index]
                if index in there:
                    columns, read = there[index]
                    found[rows, columns] = own.noises @ read.noises.T
                state[rows] = own.noises @ self._end(index)[1].T
                begun = rows.stop

    def _pull(self, found: Array, here: _Placed, there: _Placed) -> None:
        """In windows before the functionals' own."""
        share = np.empty((len(found), len(self.links[0].transition)))  # of each in the state at a window's start
        begun = len(found)  # functionals of later windows are the last rows
        for index in range(max(here), min(there) - 1, -1):
            if begun < len(found):
                if index in there:
                    columns, read = there[index]
                    found[begun:, columns] = (share[begun:] @ self._end(index)[1]) @ read.noises.T
                share[begun:] = share[begun:] @ self._end(index)[0]
            if index in here:
                rows, own = here[index]
                share[rows] = own.start
                begun = rows.start


def _placed(readings: Sequence[Readings]) -> Iterator[tuple[int, tuple[slice, Readings]]]:
    at = 0
    for each in readings:
        yield each.window, (slice(at, at + len(each.start)), each)
        at += len(each.start)
