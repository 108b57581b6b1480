"""The square system of an instant: G(u', u, inputs, t) = 0, with its slopes.

`System` holds the terms. `Instant` is the system with its inputs at given coefficients: what does not change from
instant to instant is assembled once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from factorfield.forward.algebra import Pattern, pattern_of
from factorfield.forward.inputs import Coefficients, Directions, Input
from factorfield.forward.terms import Term

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class System:
    """As many rows as coefficients. `extra` are entries (rows, columns, values) that are added to the slopes by u."""

    terms: tuple[Term, ...]
    size: int
    inputs: Mapping[str, Input]
    extra: tuple[Indices, Indices, Array] | None = None

    @cached_property
    def pattern(self) -> Pattern:
        rows, columns = zip(*(term.entries() for term in self.terms), strict=True)
        if self.extra is not None:
            rows, columns = (*rows, self.extra[0]), (*columns, self.extra[1])
        return pattern_of(self.size, np.concatenate(rows), np.concatenate(columns))

    def at(self, inputs: Coefficients) -> Instant:
        return Instant(self, inputs)

    @cached_property
    def is_linear(self) -> bool:
        """In fields, with coefficients that do not change in time."""
        return not any(term.expression.live for term in self.terms)


@dataclass(frozen=True, eq=False)
class Instant:
    """The system with inputs at given coefficients. Values and rates are (size, instants)."""

    system: System
    inputs: Coefficients

    @cached_property
    def _still(self) -> dict[Term, dict[str, Array]]:
        """Values of inputs that do not change in time."""
        return {term: term.still(self.inputs) for term in self.system.terms}

    @cached_property
    def constant(self) -> tuple[Array, Array]:
        """Slopes by u and by u' of the linear parts."""
        pattern = self.system.pattern
        slopes, masses = np.zeros(pattern.slots), np.zeros(pattern.slots)
        for term in self.system.terms:
            known = term.linear_slopes(self.inputs, self._still[term])
            for matrix, is_rate in ((slopes, False), (masses, True)):
                part = [(jet, slope) for jet, slope in known if jet.is_rate == is_rate]
                if part:
                    matrix += term.assembled(part, term.slots_of(pattern), pattern.slots, 1)[0]
        if self.system.extra is not None:
            rows, columns, values = self.system.extra
            np.add.at(slopes, pattern.positions(rows, columns), values)
        return slopes, masses

    @cached_property
    def _live(self) -> list[Term]:
        """Terms whose rest changes with fields or time."""
        return [term for term in self.system.terms if term.expression.live or term.expression.rest_moves]

    @cached_property
    def still(self) -> Array:
        """The rest of all other terms, (size, 1)."""
        nothing, total = np.zeros((self.system.size, 1)), np.zeros((self.system.size, 1))
        for term in self.system.terms:
            if not (term.expression.live or term.expression.rest_moves) and term.expression.rest != 0:
                total += term.rest(nothing, nothing, np.zeros(1), self.inputs, self._still[term])
        return total

    def residual(self, values: Array, rates: Array, t: Array) -> Array:
        pattern, (slopes, masses) = self.system.pattern, self.constant
        total = pattern.product(slopes, values) + pattern.product(masses, rates) + self.still
        for term in self._live:
            total += term.rest(values, rates, t, self.inputs, self._still[term])
        return total

    def residual_and_slopes(self, values: Array, rates: Array, t: Array) -> tuple[Array, Array, Array]:
        """The residual, and slopes by u and by u', (instants, slots)."""
        pattern, (fixed, fixed_masses) = self.system.pattern, self.constant
        total = pattern.product(fixed, values) + pattern.product(fixed_masses, rates) + self.still
        slopes, masses = (np.repeat(m[None, :], len(t), axis=0) for m in (fixed, fixed_masses))
        for term in self._live:
            if not term.expression.live:
                total += term.rest(values, rates, t, self.inputs, self._still[term])
                continue
            rest, known = term.rest_and_slopes(values, rates, t, self.inputs, self._still[term])
            total += rest
            for matrix, is_rate in ((slopes, False), (masses, True)):
                part = [(jet, slope) for jet, slope in known if jet.is_rate == is_rate]
                if part:
                    matrix += term.assembled(part, term.slots_of(pattern), pattern.slots, len(t))
        return total, slopes, masses

    def moved(self, values: Array, rates: Array, t: Array, directions: Directions, width: int) -> Array:
        """How the residual moves where inputs move in directions, (instants, size, columns)."""
        total = np.zeros((len(t), self.system.size, width))
        for term in self.system.terms:
            names = {jet.name for jet in term.expression.inputs.values()}
            if names & set(directions):
                slopes = term.input_slopes(values, rates, t, self.inputs, self._still[term])
                total += term.pushed(slopes, directions, t, width)
        return total

    def pulled(self, values: Array, rates: Array, t: float, adjoint: Array) -> dict[str, Array]:
        """The transpose of `moved` at one instant, by input."""
        result: dict[str, Array] = {}
        for term in self.system.terms:
            slopes = term.input_slopes(
                values[:, None], rates[:, None], np.array([t]), self.inputs, self._still[term]
            )
            for name, part in term.pulled(slopes, adjoint, t).items():
                result[name] = result[name] + part if name in result else part
        return result
