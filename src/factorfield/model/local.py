"""Factors on local features: each reads (degree + 1)^axes weights of a field, so that its row is short.

Rows are kept as weight numbers and values; functionals of one field at one point read the same weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.messages.gaussian import LOG_TWO_PI
from factorfield.model.basis import Tensor, row_kron
from factorfield.model.representation import LatentRelation, Representation
from factorfield.model.splines import Spline
from factorfield.problem.coefficients import located
from factorfield.problem.domain import Orders, Points
from factorfield.problem.relation import evaluate_coefficient
from factorfield.problem.statement import Statement
from factorfield.problem.stencil import shifted

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Places:
    """Points, with the cell of each axis that they lie in and how far inside (0 to 1)."""

    points: Points
    cell: Mapping[str, Indices]
    share: Mapping[str, Array]

    @staticmethod
    def at(points: Points, splines: Mapping[str, Spline]) -> Places:
        """Scattered points."""
        cell, share = {}, {}
        for name, spline in splines.items():
            scaled = (np.asarray(points[name], float) - spline.lower) / spline.width
            scaled = np.mod(scaled, spline.cells) if spline.periodic else scaled
            cell[name] = np.clip(np.floor(scaled), 0, spline.cells - 1).astype(np.int64)
            share[name] = scaled - cell[name]
        return Places(points, cell, share)

    @staticmethod
    def gauss(splines: Mapping[str, Spline], face: Mapping[str, float]) -> tuple[Places, Array]:
        """(degree + 1) / 2 Gauss points in every cell along each axis, the same shares in all cells, with their weights
        as shares of each axis; a face has one place on its axis."""
        cells, shares, weights = [], [], []
        for name, spline in splines.items():
            if name in face:
                at = Places.at({name: np.array([face[name]])}, {name: spline})
                cells.append(at.cell[name])
                shares.append(at.share[name])
                weights.append(np.ones(1))
                continue
            nodes, of_nodes = np.polynomial.legendre.leggauss((spline.degree + 1) // 2)
            cells.append(np.repeat(np.arange(spline.cells), len(nodes)))
            shares.append(np.tile(0.5 + 0.5 * nodes, spline.cells))
            weights.append(np.tile(0.5 * of_nodes / spline.cells, spline.cells))
        cell = dict(zip(splines, (m.ravel() for m in np.meshgrid(*cells, indexing="ij")), strict=True))
        share = dict(zip(splines, (m.ravel() for m in np.meshgrid(*shares, indexing="ij")), strict=True))
        points = {n: s.lower + (cell[n] + share[n]) * s.width for n, s in splines.items()}
        product = np.ones(1)
        for each in weights:
            product = np.outer(product, each).ravel()
        return Places(points, cell, share), product

    def features(self, basis: Tensor, orders: Orders) -> Array:
        """Values (points, (degree + 1)^axes) of a derivative of the features that live there."""
        times, product = dict(orders), np.ones((len(next(iter(self.points.values()))), 1))
        for name, spline in basis.families.items():
            assert isinstance(spline, Spline)
            product = row_kron(product, spline.within(self.share[name], times.get(name, 0)))
        return product

    def weights(self, basis: Tensor) -> Indices:
        """The numbers of these features."""
        number = np.zeros((len(next(iter(self.points.values()))), 1), np.int64)
        for name, spline in basis.families.items():
            assert isinstance(spline, Spline)
            along = spline.weights_of(self.cell[name])
            number = (number[:, :, None] * spline.size + along[:, None, :]).reshape(len(number), -1)
        return number

    def part(self, chosen: Indices) -> Places:
        return Places(
            {n: x[chosen] for n, x in self.points.items()}, {n: c[chosen] for n, c in self.cell.items()},
            {n: s[chosen] for n, s in self.share.items()},
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class LocalGroup:
    """N factors of one statement: functional j is zeta_j = sum of values[j] * w[columns[reads[j]]], row by row."""

    statement: Statement
    relation: LatentRelation
    columns: tuple[Indices, ...]  # per latent, (N, k)
    values: tuple[Array, ...]  # per functional, (N, k)
    reads: tuple[int, ...]  # the latent of each functional
    target: Array
    sigma: Array
    parameters: Mapping[str, Any]
    points: Points
    cell: Mapping[str, Indices]  # where each factor belongs

    @property
    def count(self) -> int:
        return len(self.target)

    @property
    def name(self) -> str:
        return self.statement.name

    @property
    def all_columns(self) -> Indices:
        return np.concatenate(self.columns, axis=1) if len(self.columns) > 1 else self.columns[0]

    def project(self, weights: Array) -> Array:
        taken = [weights[columns] for columns in self.columns]
        pairs = zip(self.values, self.reads, strict=True)
        return np.column_stack([np.einsum("nk,nk->n", values, taken[of]) for values, of in pairs])

    def misfit(self, weights: Array) -> Array:
        """(value - target) / sigma at the weights."""
        value = self.relation.value(self.project(weights), self.parameters, self.points)
        return (value - self.target) / self.sigma

    def linear_misfit(self, weights: Array) -> tuple[Array, Array]:
        """The misfit at the weights, and its derivative by the weights `all_columns`."""
        value, slopes = self.relation.value_and_gradient(self.project(weights), self.parameters, self.points)
        slopes = slopes / self.sigma[:, None]
        parts: dict[int, Array] = {}
        for j, (values, of) in enumerate(zip(self.values, self.reads, strict=True)):
            part = slopes[:, j, None] * values
            parts[of] = parts[of] + part if of in parts else part
        rows = [parts[of] for of in range(len(self.columns))]
        return (value - self.target) / self.sigma, np.concatenate(rows, axis=1) if len(rows) > 1 else rows[0]

    def log_normaliser(self) -> float:
        return float(np.sum(np.log(self.sigma))) + 0.5 * self.count * LOG_TWO_PI

    def part(self, chosen: Indices) -> LocalGroup:
        return replace(
            self, columns=tuple(c[chosen] for c in self.columns), values=tuple(v[chosen] for v in self.values),
            target=self.target[chosen], sigma=self.sigma[chosen],
            points={name: x[chosen] for name, x in self.points.items()},
            cell={name: x[chosen] for name, x in self.cell.items()},
        )  # fmt: skip


def local_group(
    statement: Statement, representation: Representation, places: Places, sigma: Array | float,
    parameters: Mapping[str, Any],
) -> LocalGroup:  # fmt: skip
    """The factors of a statement at given places."""
    relation = representation.read(statement.relation)
    names = list(dict.fromkeys(functional.latent for functional in relation.functionals))
    latents = [representation.latents[name] for name in names]
    count = len(next(iter(places.points.values())))
    points = located(places.points, relation.coordinates, parameters)
    values = []
    for functional in relation.functionals:
        basis = representation.latents[functional.latent].basis
        total: Array | float = 0.0
        for orders, coefficient in functional.terms:
            factor = evaluate_coefficient(coefficient, parameters, points)
            total = total + np.reshape(factor, (-1, 1)) * places.features(basis, orders)
        values.append(np.asarray(total))
    return LocalGroup(
        statement, relation, tuple(latent.block.start + places.weights(latent.basis) for latent in latents),
        tuple(values), tuple(names.index(functional.latent) for functional in relation.functionals),
        np.broadcast_to(np.asarray(statement.target, float), (count,)),
        np.broadcast_to(np.asarray(sigma, float), (count,)), dict(parameters), points, places.cell,
    )  # fmt: skip


def summed_group(
    statement: Statement, representation: Representation, places: Places, sigma: Array | float,
    parameters: Mapping[str, Any], splines: Mapping[str, Spline],
) -> LocalGroup:  # fmt: skip
    """A weighted sum over neighbouring points of a linear relation is one: its row holds those of all points."""
    at_points = replace(statement, stencil=())
    centre = local_group(at_points, representation, places, sigma, parameters)
    if not centre.relation.is_linear:
        raise expected(
            f"a linear functional for {statement.name} (it reads more than one point)",
            str(centre.relation.expression), "values at points",
        )  # fmt: skip
    nothing = np.zeros((centre.count, len(centre.values)))
    level = -centre.relation.value(nothing, parameters, centre.points)
    columns: list[list[Indices]] = [[] for _ in centre.columns]
    values: list[list[Array]] = [[] for _ in centre.values]
    for shift, weight in statement.stencil:
        there = Places.at(shifted(places.points, shift), splines)
        moved = local_group(at_points, representation, there, sigma, parameters)
        level = level + weight * moved.relation.value(nothing, parameters, moved.points)
        for parts, own in zip(columns, moved.columns, strict=True):
            parts.append(own)
        for found, rows in zip(values, moved.values, strict=True):
            found.append(weight * rows)
    return replace(
        centre, statement=statement, columns=tuple(np.concatenate(parts, axis=1) for parts in columns),
        values=tuple(np.concatenate(parts, axis=1) for parts in values), target=centre.target - level,
    )  # fmt: skip
