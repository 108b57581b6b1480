"""An equation on a grid of instants and places: features are products, so its rows are never built point by point.

With c(t, x) the slope of the equation by a derivative whose features are f(t) phi(x), the rows seen through the modes P
are f(t) times P diag(c(t, .)) phi: one small matrix per instant, whatever the degree in time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.model.factors import FactorGroup
from factorfield.model.representation import Representation
from factorfield.problem.coefficients import located
from factorfield.problem.domain import TIME
from factorfield.problem.relation import evaluate_coefficient
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Term:
    """A derivative of one latent within a functional."""

    functional: int
    block: slice
    time_order: int
    in_time: Array  # (instants, features)
    in_space: Array  # (places, features)
    seen: Array  # (modes, features)
    coefficient: float | Array  # one number, or (instants, places)


@dataclass(frozen=True, eq=False)
class GridGroup(FactorGroup):
    """An equation's factors at instants x places, seen through modes."""

    terms: tuple[Term, ...]
    through: Array  # (modes, places)

    def misfit(self, weights: Array) -> Array:
        return self._seen(super().misfit(weights))

    def linear_misfit(self, weights: Array) -> tuple[Array, Array]:
        value, slopes = self.relation.value_and_gradient(self.project(weights), self.parameters, self.points)
        misfit = (value - self.target) / self.sigma
        return self._seen(misfit), self.seen_rows(slopes / self.sigma[:, None], len(weights))

    def _seen(self, values: Array) -> Array:
        """Values at instants x places, projected on the modes."""
        return (values.reshape(-1, self.through.shape[1]) @ self.through.T).ravel()

    def project(self, weights: Array) -> Array:
        zeta = np.zeros((len(self.target) // self.through.shape[1], self.through.shape[1], len(self.blocks)))
        for term in self.terms:
            table = weights[term.block].reshape(term.in_time.shape[1], -1)
            zeta[:, :, term.functional] += term.coefficient * (term.in_time @ table @ term.in_space.T)
        return zeta.reshape(-1, len(self.blocks))

    def seen_rows(self, slopes: Array, size: int) -> Array:
        """Rows (instants x modes, size) of the linearised factors; slopes (instants x places, functionals)."""
        modes, places = self.through.shape
        table = slopes.reshape(-1, places, slopes.shape[1])
        alike: dict[tuple[int, int, int], list[Term]] = {}  # one product with the features in time for many terms
        for term in self.terms:
            alike.setdefault((term.block.start, term.block.stop, term.time_order), []).append(term)
        parts: dict[tuple[int, int], Array] = {}
        for (low, high, _), terms in alike.items():
            moved: Any = sum(self._moved(term, term.coefficient * table[:, :, term.functional]) for term in terms)
            rows = terms[0].in_time[:, None, :, None] * moved[:, :, None, :]
            if (low, high) in parts:
                parts[low, high] += rows
            else:
                parts[low, high] = rows
        if list(parts) == [(0, size)]:
            return parts[0, size].reshape(-1, size)
        jacobian = np.zeros((len(table), modes, size))
        for (low, high), rows in parts.items():
            jacobian[:, :, low:high] = rows.reshape(len(table), modes, -1)
        return jacobian.reshape(-1, size)

    def _moved(self, term: Term, slope: Array) -> Array:
        """How a term moves the modes, instant by instant: (instants, modes, features in space)."""
        if np.all(slope == slope[:, :1]):
            return slope[:, :1, None] * term.seen
        return np.matmul(self.through, slope[:, :, None] * term.in_space)


def _rotated(in_time: Array, in_space: Array, axes: tuple[str, ...], rotation: Array) -> tuple[Array, Array]:
    """Features of an unknown function in its principal components: products only if it has one kind of axis."""
    if TIME not in axes:
        return in_time, in_space @ rotation
    if len(axes) > 1:
        received = f"one of {', '.join(axes)}"
        raise expected("unknown functions of space, or of time, for method='chain'", received, "method='joint'")
    return in_time @ rotation, in_space


def grid_group(
    statement: Statement, representation: Representation, grid: Mapping[str, Array], where: Mapping[str, Array],
    sigma: float | Array, constants: Mapping[str, Any], through: Array,
) -> GridGroup:  # fmt: skip
    """The factors of an equation on the tensor grid `where` of the axes `grid`."""
    relation = representation.read(statement.relation)
    count, terms = len(where[TIME]), []
    for number, functional in enumerate(relation.functionals):
        latent = representation.latents[functional.latent]
        for orders, coefficient in functional.terms:
            factors = dict(zip(latent.basis.axes, latent.basis.matrices(grid, orders), strict=True))
            one = {name: np.ones((len(x), 1)) for name, x in grid.items()}  # along axes that a coefficient has not
            in_time, in_space = factors.get(TIME, one[TIME]), np.ones((1, 1))
            for name in (name for name in where if name in grid and name != TIME):
                in_space = np.asarray(np.kron(in_space, factors.get(name, one[name])), float)
            if latent.basis.rotation is not None:
                in_time, in_space = _rotated(in_time, in_space, latent.basis.axes, latent.basis.rotation)
            size = evaluate_coefficient(coefficient, constants, where)
            size = np.reshape(size, (len(in_time), -1)) if np.ndim(size) else float(size)
            terms.append(
                Term(number, latent.block, dict(orders).get(TIME, 0), in_time, in_space, through @ in_space, size)
            )
    return GridGroup(
        statement, relation, (), tuple(representation.latents[f.latent].block for f in relation.functionals), None,
        np.broadcast_to(np.asarray(statement.target, float), (count,)), np.full(count, sigma), dict(constants),
        located(where, relation.coordinates, constants), tuple(terms), through,
    )  # fmt: skip
