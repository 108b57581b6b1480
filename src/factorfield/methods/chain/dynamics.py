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
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.messages.elimination import InteriorNoise, Segment, eliminate
from factorfield.messages.gaussian import Message, lower_root
from factorfield.model.basis import Departure
from factorfield.model.factors import FactorGroup, whitened_rows
from factorfield.model.model import WindowModel
from factorfield.model.representation import states_of
from factorfield.model.window_factors import WindowFactors, radau
from factorfield.problem.domain import TIME

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
DEPENDENT = 1e-10  # of the largest singular value: walls that say the same twice, such as two faces at a corner
CONSISTENT = 1e-2  # sigmas: what such walls may differ by


class Dynamics:
    """S1 u_t + S0 u + Sc c = r +- 1, as many rows as u has coefficients: S1 = `rates`, S0 = `values`, Sc = `steady`.

    `places` are each field's weights in a window.
    """

    def __init__(self, space: tuple[Array, Array, Array, Array], degree: int, places: tuple[slice, ...]) -> None:
        self.rates, self.values, self.steady, self.level = space
        self.degree, self.places = degree, places
        self._ends: dict[float, Array] = {}
        self._inverse: dict[float, Complex] = {}

    def segments(self, length: float, rows: Array, target: Array, counts: Sequence[int]) -> list[Segment]:
        """A window eliminated with the first so many of its whitened factors rows w = target +- 1, for every count.

        No inner weights are kept. Factors are those of the window alone: measurements, conditions at an instant.
        """
        width, total = self.values.shape[1], self.values.shape[1] + self.steady.shape[1]
        inside, at_start = self._functionals(rows)
        if length not in self._ends:
            ends = np.zeros((width, self.degree, width))
            ends[:, -1] = np.eye(width)  # Radau's last instant is the end
            both = self._adjoint(np.concatenate([inside, ends]), length)
            solved, self._ends[length] = both[: len(rows)], both[len(rows) :]
        else:
            solved = self._adjoint(inside, length)
        solved = np.concatenate([solved, self._ends[length]])  # (functionals, instants, rows)
        at_start = np.vstack([at_start, np.eye(width, total)])
        summed = solved.sum(axis=1)
        from_start = at_start - np.column_stack([summed @ self.values, summed @ self.steady])
        shift, root = summed @ self.level, lower_root(solved.reshape(len(solved), -1))
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

    def weights(self, length: float, state: Array) -> Array:
        """All weights of a window that starts at a state and obeys the equation."""
        _, values, (triangular, unitary) = radau_window(self.degree)
        width = self.values.shape[1]
        inverses = self._inverses(length)
        said = self.level - self.values @ state[:width] - self.steady @ state[width:]
        right, upper = np.outer(unitary.sum(axis=0).conj(), said), triangular / length
        found = np.zeros((len(upper), width), complex)
        for j in range(len(upper))[::-1]:
            gap = right[j] - self.rates @ (upper[j, j + 1 :] @ found[j + 1 :])
            found[j] = inverses[j].T @ gap
        departure = np.linalg.solve(values, (unitary @ found).real)  # (polynomials, coefficients)
        table = np.vstack([state[:width], departure]).reshape(len(values) + 1, len(self.places), -1)
        return np.concatenate([table.transpose(1, 0, 2).ravel(), state[width:]])

    def _functionals(self, rows: Array) -> tuple[Array, Array]:
        """Rows as functionals of the departure, (rows, instants, coefficients), and of the state."""
        _, values, _ = radau_window(self.degree)
        count, width = len(values), self.values.shape[1]
        across = width // len(self.places)
        tables = [rows[:, place].reshape(len(rows), count + 1, across) for place in self.places]
        table = np.concatenate(tables, axis=2)
        inside = np.linalg.solve(values.T, table[:, 1:].transpose(1, 0, 2).reshape(count, -1))
        at_start = np.column_stack([table[:, 0], rows[:, width * (count + 1) :]])
        return inside.reshape(count, len(rows), width).transpose(1, 0, 2), at_start

    def _adjoint(self, seen: Array, length: float) -> Array:
        """W with S1' W D + S0' W = g for every functional g: (functionals, instants, rows)."""
        _, _, (triangular, unitary) = radau_window(self.degree)
        upper, inverses, rates = triangular / length, self._inverses(length), self.rates.T
        count, width = len(upper), self.values.shape[1]
        flat = seen.transpose(1, 2, 0).reshape(count, -1)
        right = (unitary.T @ flat).reshape(count, width, len(seen))
        found = np.empty((count, len(self.values) * len(seen)), complex)
        for j in range(count):
            gap = right[j]
            if j:
                gap = gap - rates @ (upper[:j, j] @ found[:j]).reshape(len(self.values), len(seen))
            found[j] = (inverses[j] @ gap).ravel()
        solved = (unitary.conj() @ found).real.reshape(count, len(self.values), len(seen))
        return np.ascontiguousarray(solved.transpose(2, 0, 1))

    def _inverses(self, length: float) -> Complex:
        """Of the small system at each instant, adjoint."""
        if length not in self._inverse:
            diagonal = np.diag(radau_window(self.degree)[2][0]) / length
            self._inverse[length] = np.linalg.inv(diagonal[:, None, None] * self.rates.T + self.values.T)
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


def dynamics_of(model: WindowModel, factors: WindowFactors) -> Dynamics | None:
    """Of a model's equations and walls; None where they are not linear, of first order and without explicit time, or
    more or fewer than there are coefficients."""
    latents = model.representation.latents
    fields = [latents[unit] for name in model.problem.fields for unit in model.representation.forms[name].latents]
    traits = model.traits
    if not (traits.linear and traits.autonomous) or any(states_of(latent) != 1 for latent in fields):
        return None
    groups = factors.at_one_instant()
    if any(group.statement.kind == "equation" and group.statement.relation.order(TIME) != 1 for group in groups):
        return None
    rates, values, steady, level = _in_space(groups, len(fields), fields[0].basis.size // fields[0].basis.shape[0],
                                             0.5 * model.problem.domain[TIME].length)
    walls = ~np.any(rates != 0.0, axis=1)
    settled = _independent(np.column_stack([values, steady])[walls], level[walls])
    if settled is None or np.sum(~walls) + len(settled[0]) != values.shape[1]:
        return None
    width = values.shape[1]
    space = (
        np.vstack([rates[~walls], np.zeros((len(settled[0]), width))]),
        np.vstack([values[~walls], settled[0][:, :width]]), np.vstack([steady[~walls], settled[0][:, width:]]),
        np.concatenate([level[~walls], settled[1]]),
    )  # fmt: skip
    return Dynamics(space, model.degree, tuple(latent.block for latent in fields))


def _in_space(
    groups: Sequence[FactorGroup], fields: int, across: int, half: float
) -> tuple[Array, Array, Array, Array]:
    """S1, S0, Sc and r, from factors of fields that change linearly over a window of twice `half`."""
    size = max(block.stop for group in groups for block in group.blocks)
    rows, level = whitened_rows(groups, np.zeros(max(size, 2 * fields * across)))
    table = rows[:, : 2 * fields * across].reshape(len(rows), fields, 2, across)
    values = table[:, :, 0].reshape(len(rows), -1)
    return half * table[:, :, 1].reshape(len(rows), -1), values, rows[:, 2 * fields * across :], level


def _independent(rows: Array, level: Array) -> tuple[Array, Array] | None:
    """The same information in as few rows as there are; None where rows that say the same disagree."""
    if not len(rows):
        return rows, level
    left, singular, right = linalg.svd(rows, full_matrices=True)
    kept = int(np.sum(singular > DEPENDENT * singular[0]))
    turned = left.T @ level
    if np.any(np.abs(turned[kept:]) > CONSISTENT):
        return None
    return singular[:kept, None] * right[:kept], turned[:kept]
