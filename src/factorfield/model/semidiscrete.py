"""A linear equation without explicit time, in space only: sum_k S_k d^k u / dt^k + Sc c = r +- 1.

u are the fields' coefficients in space and c those of unknown functions; walls are rows among the others. Its rows in a
window are Kronecker products of features in time with S_k. Where no row of S_k links two sets of coefficients - waves
of an equation with constant coefficients, even and odd functions between equal walls - each set is a component of its
own, with far fewer weights than the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse import csgraph

from factorfield.model.basis import Departure
from factorfield.model.factors import whitened_rows
from factorfield.model.model import WindowModel, is_standing
from factorfield.model.representation import Latent, states_of
from factorfield.model.window_factors import WindowFactors
from factorfield.problem.domain import TIME

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
DEPENDENT = 1e-10  # of the largest singular value: rows that say the same twice, such as two faces at a corner
CONSISTENT = 1e-2  # sigmas: what such rows may differ by
LINKED = 1e-11  # of the product of two columns' norms: what rounding leaves of a product that vanishes


@dataclass(frozen=True, eq=False)
class Component:
    """Coefficients that share rows with each other only, and these rows: S_0, S_1, ... and r."""

    columns: Indices
    orders: tuple[Array, ...]
    steady: Array
    level: Array


@dataclass(frozen=True, eq=False)
class Semidiscrete:
    """The components, and the latents whose coefficients they are."""

    fields: tuple[Latent, ...]
    components: tuple[Component, ...]

    @property
    def family(self) -> Departure:
        found = self.fields[0].basis.families[TIME]
        assert isinstance(found, Departure)
        return found

    def parts(self, length: float, instants: Array) -> Iterator[tuple[Indices, Array, Array]]:
        """Of a window: (weights, whitened rows, targets), component by component."""
        family = Departure(self.family.degree, 0.0, length, self.family.states)
        in_time = [family(instants, order) for order in range(family.states + 1)]
        across = self.fields[0].basis.size // family.size
        starts = np.array([latent.block.start for latent in self.fields])
        steady_at = self.fields[-1].block.stop
        for each in self.components:
            field, place = np.divmod(each.columns, across)
            weights = (starts[field] + place)[None, :] + across * np.arange(family.size)[:, None]
            rows = sum(np.kron(t, s) for t, s in zip(in_time, each.orders, strict=True))
            steady = steady_at + np.arange(each.steady.shape[1])
            both: Array = np.column_stack([rows, np.tile(each.steady, (len(instants), 1))])
            yield np.concatenate([weights.ravel(), steady]), both, np.tile(each.level, len(instants))


def semidiscrete(model: WindowModel, factors: WindowFactors) -> Semidiscrete | None:
    """Of a model's equations and walls; None where they are not linear or depend on time, where fields differ in their
    order in time, or where walls say the same and disagree."""
    latents = model.representation.latents
    units = [unit for name in model.problem.fields for unit in model.representation.forms[name].latents]
    fields = tuple(latents[unit] for unit in units)
    if not (model.traits.linear and model.traits.autonomous) or len({states_of(latent) for latent in fields}) > 1:
        return None
    standing = [statement for statement in model.problem.statements if is_standing(statement)]
    instants = [factors.instants(statement, 0.0, 1.0) for statement in standing]
    if any(not np.array_equal(each, instants[0]) for each in instants):
        return None
    groups = factors.at_one_instant()
    rows = [whitened_rows([group], np.zeros(_size(fields, latents))) for group in groups]
    split = [(_by_order(own, fields), own[:, _fields_size(fields) :], level) for own, level in rows]
    equations = [part for part, group in zip(split, groups, strict=True) if group.statement.kind == "equation"]
    walls = [part for part, group in zip(split, groups, strict=True) if group.statement.kind != "equation"]
    found = _components([_stacked(part) for part in (equations, walls) if part])
    return None if found is None else Semidiscrete(fields, found)


def _fields_size(fields: Sequence[Latent]) -> int:
    """Weights of fields with as many polynomials in time as their order, and one more."""
    across = fields[0].basis.size // fields[0].basis.families[TIME].size
    return len(fields) * (states_of(fields[0]) + 1) * across


def _size(fields: Sequence[Latent], latents: Mapping[str, Latent]) -> int:
    """The same, and the weights of what does not change in time."""
    return _fields_size(fields) + sum(latent.basis.size for latent in latents.values() if latent not in fields)


def _by_order(rows: Array, fields: Sequence[Latent]) -> list[Array]:
    """S_0, S_1, ... from rows at the start of a window: of the state, and of the one polynomial beside it."""
    family, states = fields[0].basis.families[TIME], states_of(fields[0])
    assert isinstance(family, Departure)
    across = fields[0].basis.size // family.size
    last = Departure(states, family.lower, family.upper, states)([family.lower], states)[0, -1]
    table = rows[:, : _fields_size(fields)].reshape(len(rows), len(fields), states + 1, across)
    scale = [1.0] * states + [1.0 / last]
    return [factor * table[:, :, order].reshape(len(rows), -1) for order, factor in enumerate(scale)]


def _stacked(parts: Sequence[tuple[list[Array], Array, Array]]) -> tuple[list[Array], Array, Array]:
    orders = [np.vstack(each) for each in zip(*(part[0] for part in parts), strict=True)]
    return orders, np.vstack([part[1] for part in parts]), np.concatenate([part[2] for part in parts])


def _components(parts: Sequence[tuple[list[Array], Array, Array]]) -> tuple[Component, ...] | None:
    """From equations and, apart from them because they are told far more sharply, walls."""
    width = parts[0][0][0].shape[1]
    linked = sparse.csr_matrix(sum(_links(orders) for orders, _, _ in parts))
    count, label = csgraph.connected_components(linked, directed=False)
    if any(steady.shape[1] for _, steady, _ in parts):  # an unknown function links all that it moves
        count, label = 1, np.zeros(width, int)
    chosen = [np.flatnonzero(label == number) for number in range(count)]
    reduced = [_reduced(orders, steady, level, chosen) for orders, steady, level in parts]
    if any(part is None for part in reduced):
        return None
    found = []
    for columns, *own in zip(chosen, *(part for part in reduced if part is not None), strict=True):
        orders, steady, level = _stacked(own)
        found.append(Component(columns, tuple(orders), steady, level))
    return tuple(found)


def _links(orders: Sequence[Array]) -> Array:
    """Which columns have a common row."""
    size = np.sqrt(sum(np.sum(each**2, axis=0) for each in orders))
    scaled = [each / np.where(size > 0.0, size, 1.0) for each in orders]
    return np.asarray(sum(np.abs(a.T @ b) > LINKED for a in scaled for b in scaled), float)


def _reduced(
    orders: Sequence[Array], steady: Array, level: Array, chosen: Sequence[Indices]
) -> list[tuple[list[Array], Array, Array]] | None:
    """The rows turned so that each belongs to one set of columns; None where rows that say the same disagree."""
    found, left = [], level.copy()
    for columns in chosen:
        own = [each[:, columns] for each in orders]
        basis, singular, _ = linalg.svd(np.column_stack([*own, steady]), full_matrices=False)
        turned = basis[:, singular > DEPENDENT * max(singular[0], 1e-300)].T
        left -= turned.T @ (turned @ level)
        found.append(([turned @ each for each in own], turned @ steady, turned @ level))
    return found if np.all(np.abs(left) < CONSISTENT) else None
