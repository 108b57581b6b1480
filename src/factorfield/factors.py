"""Factor groups: many factors of one kind as one batched object, and how they are linearised.

A factor says relation(zeta) = target +- sigma of linear functionals zeta = B w. Three separate choices:
what a factor is (the group), how it is linearised (`linearise`: at a point or over a belief), and in which
order factors are visited (the method).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from factorfield.basis import Tensor
from factorfield.domain import Points
from factorfield.equation import evaluate_coefficient
from factorfield.gaussian import LOG_TWO_PI
from factorfield.latent import Functional, LatentRelation
from factorfield.representation import Representation

Array = NDArray[np.float64]
Rule = Literal["taylor", "moments"]
ROWS_PER_BLOCK = 2048


@dataclass(frozen=True, eq=False)
class FactorGroup:
    """N factors that share a relation.

    `rows[j]` (N, block size) is the design of functional j and `blocks[j]` the weights it reads; hidden units
    of a wide ansatz share one array.
    """

    name: str
    relation: LatentRelation
    rows: tuple[Array, ...]
    blocks: tuple[slice, ...]
    target: Array
    sigma: Array
    parameters: Mapping[str, float]
    points: Points

    @property
    def count(self) -> int:
        return len(self.target)

    @property
    def nbytes(self) -> int:
        return sum({id(rows): rows.nbytes for rows in self.rows}.values())

    def project(self, weights: Array) -> Array:
        """zeta = B w, shape (N, functionals)."""
        return np.column_stack([rows @ weights[block] for rows, block in zip(self.rows, self.blocks, strict=True)])

    def pull_back(self, slopes: Array, size: int, out: Array | None = None) -> Array:
        """Rows of the linearised factors in weight space: sum_j slopes_j * rows_j, shape (N, size)."""
        jacobian = np.zeros((len(slopes), size)) if out is None else out
        for j, (rows, block) in enumerate(zip(self.rows, self.blocks, strict=True)):
            jacobian[:, block] += slopes[:, j, None] * rows
        return jacobian

    def part(self, chosen: slice) -> FactorGroup:
        """Some of the factors (views, no copies)."""
        return FactorGroup(
            self.name, self.relation, tuple(rows[chosen] for rows in self.rows), self.blocks,
            self.target[chosen], self.sigma[chosen], self.parameters,
            {name: x[chosen] for name, x in self.points.items()},
        )  # fmt: skip

    def log_likelihood(self, weights: Array) -> float:
        value = self.relation.value(self.project(weights), self.parameters, self.points)
        misfit = (value - self.target) / self.sigma
        return float(-0.5 * misfit @ misfit - np.sum(np.log(self.sigma)) - 0.5 * self.count * LOG_TWO_PI)

    def log_likelihood_gradient(self, weights: Array) -> tuple[float, Array]:
        value, slopes = self.relation.value_and_gradient(self.project(weights), self.parameters, self.points)
        misfit = (value - self.target) / self.sigma
        level = float(-0.5 * misfit @ misfit - np.sum(np.log(self.sigma)) - 0.5 * self.count * LOG_TWO_PI)
        gradient = np.zeros(len(weights))
        pull = -misfit / self.sigma
        for j, (rows, block) in enumerate(zip(self.rows, self.blocks, strict=True)):
            gradient[block] += (slopes[:, j] * pull) @ rows
        return level, gradient


def build_group(
    name: str,
    relation: LatentRelation,
    representation: Representation,
    points: Points,
    target: Array | float,
    sigma: Array | float,
    parameters: Mapping[str, float],
) -> FactorGroup:
    """Evaluate the features a relation reads at the given points."""
    count = len(next(iter(points.values())))
    made: dict[tuple[int, tuple[object, ...]], Array] = {}
    rows, blocks = [], []
    for functional in relation.functionals:
        latent = representation.latents[functional.latent]
        key = (id(latent.basis), functional.terms)
        if key not in made:
            made[key] = functional_rows(functional, latent.basis, points, parameters)
        rows.append(made[key])
        blocks.append(latent.block)
    return FactorGroup(
        name, relation, tuple(rows), tuple(blocks),
        np.broadcast_to(np.asarray(target, float), (count,)), np.broadcast_to(np.asarray(sigma, float), (count,)),
        dict(parameters), dict(points),
    )  # fmt: skip


def functional_rows(functional: Functional, basis: Tensor, points: Points, parameters: Mapping[str, float]) -> Array:
    """Rows (N, basis size) of one linear functional; built in blocks so that only the result is large."""
    plain = Tensor(basis.families)
    count = len(next(iter(points.values())))
    result = np.empty((count, basis.size))
    for start in range(0, count, ROWS_PER_BLOCK):
        chosen = slice(start, start + ROWS_PER_BLOCK)
        part = {name: x[chosen] for name, x in points.items()}
        total: Array | float = 0.0
        for orders, coefficient in functional.terms:
            factor = evaluate_coefficient(coefficient, parameters, part)
            total = total + np.reshape(factor, (-1, 1)) * plain.rows(part, orders)
        result[chosen] = total if basis.rotation is None else total @ basis.rotation
    return result


# -- linearisation in the space of functionals


@dataclass(frozen=True)
class Linearised:
    """relation(zeta) ~ value + slopes . (zeta - mean) + N(0, excess), factor by factor."""

    value: Array
    slopes: Array
    excess: Array


def linearise(
    relation: LatentRelation,
    mean: Array,
    covariance: Array | None,
    parameters: Mapping[str, float],
    coordinates: Mapping[str, Array],
    rule: Rule = "moments",
) -> Linearised:
    """The line through a relation: its tangent at `mean` ("taylor"), or the best line under N(mean, covariance).

    mean (..., J), covariance (..., J, J). "moments" is exact for linear relations and for u = g(z), and a cubature
    of degree five (exact for relations up to second order in the functionals) otherwise.
    """
    if rule == "taylor" or covariance is None or relation.is_linear:
        value, slopes = relation.value_and_gradient(mean, parameters, coordinates)
        return Linearised(value, slopes, np.zeros_like(value))
    activation = relation.is_activation
    if activation is not None:
        value, slope, excess = activation.linearise(mean[..., 0], covariance[..., 0, 0])
        return Linearised(value, slope[..., None], excess)
    return _cubature(relation, mean, covariance, parameters, coordinates)


def _cubature(
    relation: LatentRelation,
    mean: Array,
    covariance: Array,
    parameters: Mapping[str, float],
    coordinates: Mapping[str, Array],
) -> Linearised:
    """Moments by the fully symmetric rule of degree five; slopes are E[gradient] (Stein's lemma)."""
    nodes, weights = symmetric_rule(mean.shape[-1])
    root = covariance_root(covariance)
    value = np.zeros(mean.shape[:-1])
    second = np.zeros_like(value)
    slopes = np.zeros(mean.shape)
    centre = relation.value(mean, parameters, coordinates)  # moments about the centre do not cancel
    for node, weight in zip(nodes, weights, strict=True):
        shifted, gradient = relation.value_and_gradient(mean + root @ node, parameters, coordinates)
        value += weight * (shifted - centre)
        second += weight * (shifted - centre) ** 2
        slopes += weight * gradient
    explained = np.einsum("...i,...ij,...j->...", slopes, covariance, slopes)
    return Linearised(centre + value, slopes, np.maximum(second - value**2 - explained, 0.0))


def symmetric_rule(size: int) -> tuple[Array, Array]:
    """Nodes and weights, exact for polynomials of degree five under N(0, I): centre, +-sqrt3 e_i, pairs of them."""
    reach = np.sqrt(3.0)
    unit = np.eye(size)
    nodes, weights = [np.zeros(size)], [1.0 + (size * size - 7.0 * size) / 18.0]
    for i in range(size):
        for sign in (reach, -reach):
            nodes.append(sign * unit[i])
            weights.append((4.0 - size) / 18.0)
    for i in range(size):
        for j in range(i):
            for first in (reach, -reach):
                for second in (reach, -reach):
                    nodes.append(first * unit[i] + second * unit[j])
                    weights.append(1.0 / 36.0)
    return np.array(nodes), np.array(weights)


def covariance_root(covariance: Array) -> Array:
    """A root L with L L' = covariance for (possibly singular) small matrices, batched."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
