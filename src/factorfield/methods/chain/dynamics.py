"""The windows of a linear equation of first order without explicit time, as its solution operator.

In space the equation and its walls read S1 u_t + S0 u + Sc c = r +- 1, u the fields' coefficients, c those of unknown
functions. In a window it is asked at Radau's instants, as often as there are polynomials to settle; with Y the field's
departure from its start at these instants, and D their matrix of differentiation,
    S1 Y D' + S0 Y = (r - S0 s - Sc c) 1' + noise.
Everything that others read of a window is a functional of Y, and only the adjoint equation S1' W D + S0' W = g is
solved, once for all functionals g. With Schur's D = U L U* it falls into one small system per instant: far less than
eliminating all weights of the window at once, with the same result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.messages.elimination import InteriorNoise, Segment, eliminate
from factorfield.messages.gaussian import Message, lower_root
from factorfield.model.basis import Departure
from factorfield.model.semidiscrete import Semidiscrete
from factorfield.model.window_factors import radau

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
SMALL = 64  # coefficients


@dataclass(frozen=True, eq=False)
class End:
    """The adjoint solutions W of the state at a window's end.

    Its noise is `root` (corner' block by block) of the equation's noise along `directions` (instants x rows, columns),
    orthonormal and one set a block; `summed` is W summed over instants.
    """

    summed: Array
    root: Array
    directions: tuple[Array, ...]


class Dynamics:
    """S1 u_t + S0 u + Sc c = r +- 1, as many rows as u has coefficients: S1 = `rates`, S0 = `values`, Sc = `steady`."""

    def __init__(self, in_space: Semidiscrete) -> None:
        ends = np.cumsum([0, *(len(each.level) for each in in_space.components)])
        blocks = [(slice(a, b), each.columns) for a, b, each in zip(ends, ends[1:], in_space.components, strict=False)]
        self.values, self.rates = np.zeros((ends[-1], ends[-1])), np.zeros((ends[-1], ends[-1]))
        for (rows, columns), each in zip(blocks, in_space.components, strict=True):
            self.values[rows, columns], self.rates[rows, columns] = each.orders
        self.steady = np.vstack([each.steady for each in in_space.components])
        self.level = np.concatenate([each.level for each in in_space.components])
        # small ones are solved together: the loop over them would cost more
        self.blocks = blocks if ends[-1] > SMALL else [(slice(0, int(ends[-1])), np.arange(ends[-1]))]
        self.degree = in_space.family.degree
        self.places = tuple(latent.block for latent in in_space.fields)
        self._ends: dict[float, End] = {}
        self._inverse: dict[float, list[Complex]] = {}

    def segments(self, length: float, rows: Array, target: Array, counts: Sequence[int]) -> list[Segment]:
        """A window eliminated with the first so many of its whitened factors rows w = target +- 1, for every count.

        No inner weights are kept. Factors are those of the window alone: measurements, conditions at an instant.
        """
        width, total = self.values.shape[1], self.values.shape[1] + self.steady.shape[1]
        inside, at_start = self._functionals(rows)
        solved, end = self._adjoint(inside, length), self._end(length)
        at_start = np.vstack([at_start, np.eye(width, total)])
        summed = np.vstack([solved.sum(axis=1), end.summed])
        from_start = at_start - np.column_stack([summed @ self.values, summed @ self.steady])
        shift, root = summed @ self.level, self._noise(solved, end)
        return [self._conditioned(few, len(rows), from_start, shift, root, target) for few in counts]

    def _conditioned(self, few: int, own: int, from_start: Array, shift: Array, root: Array, target: Array) -> Segment:
        """Functionals are from_start s + shift + root eta, the window's own factors and then its end: given `few`."""
        width, total = len(shift) - own, from_start.shape[1]
        rows = np.column_stack([root[:few, :few], from_start[:few]])
        found = eliminate(rows, target[:few] - shift[:few], np.ones(few))
        to_end = root[own:, :few]
        transition, noise_root, end_shift = np.eye(total), np.zeros((total, total)), np.zeros(total)
        transition[:width] = from_start[own:] + to_end @ found.slope
        noise_root[:width, :width] = lower_root(np.column_stack([to_end @ found.root, root[own:, few:]]))
        end_shift[:width] = shift[own:] + to_end @ found.offset
        message = Message(found.remainder[:, :-1], found.remainder[:, -1], found.level)
        none = np.zeros((0, total))
        return Segment(none, np.zeros(0), InteriorNoise(0, ()), none, message, transition, end_shift, noise_root)

    def _functionals(self, rows: Array) -> tuple[Array, Array]:
        """Rows as functionals of the departure, (rows, instants, coefficients), and of the state."""
        _, values, _ = radau_window(self.degree)
        count, width = len(values), self.values.shape[1]
        across = width // len(self.places)
        tables = [rows[:, place].reshape(len(rows), count + 1, across) for place in self.places]
        table = np.concatenate(tables, axis=2)
        inside: Array = np.asarray(np.linalg.solve(values.T, table[:, 1:].transpose(1, 0, 2).reshape(count, -1)))
        at_start = np.column_stack([table[:, 0], rows[:, width * (count + 1) :]])
        return inside.reshape(count, len(rows), width).transpose(1, 0, 2), at_start

    def _noise(self, solved: Array, end: End) -> Array:
        """A root of the noise of the window's own functionals and then of its end.

        What the end sees of it is known block by block; beside that, the own functionals see little else.
        """
        on_end, beside, width = [], [], len(end.root)
        for (rows, _), directions in zip(self.blocks, end.directions, strict=True):
            seen = solved[:, :, rows].reshape(len(solved), len(directions))
            on_end.append(seen @ directions)
            beside.append(seen - on_end[-1] @ directions.T)
        own = lower_root(np.column_stack(beside))
        both = np.column_stack([own, *on_end])
        return lower_root(np.vstack([both, np.column_stack([np.zeros((width, len(own))), end.root])]))

    def _end(self, length: float) -> End:
        """A coefficient at the end depends on its own block only."""
        if length not in self._ends:
            width = self.values.shape[1]
            summed, root, of_blocks = np.zeros((width, len(self.values))), np.zeros((width, width)), []
            for number, (rows, columns) in enumerate(self.blocks):
                last = np.zeros((len(columns), self.degree, len(columns)))
                last[:, -1] = np.eye(len(columns))  # Radau's last instant is the end
                solved = self._block_adjoint(number, last, length)
                summed[columns, rows] = solved.sum(axis=1)
                directions, corner = linalg.qr(
                    solved.reshape(len(columns), -1).T, mode="economic", check_finite=False
                )
                root[columns, rows] = corner.T
                of_blocks.append(directions)
            self._ends[length] = End(summed, root, tuple(of_blocks))
        return self._ends[length]

    def _adjoint(self, seen: Array, length: float) -> Array:
        """W with S1' W D + S0' W = g for every functional g: (functionals, instants, rows)."""
        solved = np.empty((len(seen), self.degree, len(self.values)))
        for number, (rows, columns) in enumerate(self.blocks):
            solved[:, :, rows] = self._block_adjoint(number, seen[:, :, columns], length)
        return solved

    def _block_adjoint(self, number: int, seen: Array, length: float) -> Array:
        """The same of one block, functionals of its coefficients."""
        _, _, (triangular, unitary) = radau_window(self.degree)
        upper, inverses = triangular / length, self._inverses(length)[number]
        rates, (few, count, size) = self.rates[self.blocks[number]].T, seen.shape
        right = (unitary.T @ seen.transpose(1, 2, 0).reshape(count, -1)).reshape(count, size, few)
        found = np.empty((count, size * few), complex)
        for j in range(count):
            gap = right[j]
            if j:
                gap = gap - rates @ (upper[:j, j] @ found[:j]).reshape(size, few)
            found[j] = (inverses[j] @ gap).ravel()
        return np.asarray((unitary.conj() @ found).real.reshape(count, size, few).transpose(2, 0, 1), float)

    def _inverses(self, length: float) -> list[Complex]:
        """Of the small system at each instant, adjoint, block by block."""
        if length not in self._inverse:
            diagonal = np.diag(radau_window(self.degree)[2][0])[:, None, None] / length
            self._inverse[length] = [
                np.asarray(np.linalg.inv(diagonal * self.rates[block].T + self.values[block].T), complex)
                for block in self.blocks
            ]
        return self._inverse[length]


@lru_cache(maxsize=16)
def radau_window(degree: int) -> tuple[Array, Array, tuple[Complex, Complex]]:
    """Of a window of length one: instants, values of the departing polynomials there, and Schur's form of D."""
    family = Departure(degree, 0.0, 1.0)
    instants = radau(degree, 0.0, 1.0)
    values, slopes = family(instants)[:, 1:], family(instants, 1)[:, 1:]
    differentiation = np.linalg.solve(values.T, slopes.T).T
    triangular, unitary = linalg.schur(differentiation, output="complex")
    return instants, values, (triangular, unitary)


def dynamics_of(in_space: Semidiscrete | None) -> Dynamics | None:
    """Of equations in space; None where they are not of first order in time, or more or fewer than the coefficients."""
    if in_space is None or in_space.family.states != 1:
        return None
    if any(len(each.level) != len(each.columns) for each in in_space.components):
        return None
    return Dynamics(in_space)
