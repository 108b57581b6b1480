"""Posterior as draws of the weights: HMC's, or the single draw of a point estimate (whose std is NaN).

A grid is walked in blocks of its first axis; only one block of fields is held at a time, for all draws, so that
quantiles are exact and memory stays bounded. Without quantiles, u = g(z) is summed draw by draw in one compiled loop:
evaluating the exponential is then all that a prediction costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.model.activation import PiecewiseExponential
from factorfield.model.basis import Orders
from factorfield.model.linearisation import Linearised
from factorfield.model.representation import LatentRelation, Representation
from factorfield.posterior.base import Estimate, Posterior, shaped
from factorfield.posterior.functionals import Functionals
from factorfield.posterior.gaussian import GaussianPosterior
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
FIELD_BYTES = 1 << 23  # of fields, for all draws at once


@dataclass(frozen=True, eq=False)
class SampledPosterior(Posterior):
    """Equally weighted draws (count, weights)."""

    draws: Array

    marker = "weight_draws"

    @property
    def weight_mean(self) -> Array:
        return self.draws.mean(0)

    @property
    def weight_std(self) -> Array:
        return self.spread(self.draws)

    def arrays(self) -> dict[str, Array]:
        return {"weight_draws": self.draws}

    @classmethod
    def from_arrays(
        cls, problem: Problem, representation: Representation, noise: Mapping[str, float], arrays: Mapping[str, Array]
    ) -> Self:
        return cls(problem, representation, noise, shaped(arrays, "weight_draws", None, representation.size))

    @staticmethod
    def spread(values: Array) -> Array:
        """Standard deviation over draws; NaN where one draw cannot tell."""
        return np.std(values, 0, ddof=1) if len(values) > 1 else np.full(values.shape[1:], np.nan)

    def _coefficient_draws(self) -> dict[str, Array]:
        found = {}
        for name, unknown in self.problem.unknowns.items():
            values = self.draws[:, self.representation.latents[name].block.start]
            found[name] = np.exp(values) if unknown.positive else values
        return found

    def _coefficient_covariance(self) -> Array:
        table = list(self._coefficient_draws().values())
        return np.atleast_2d(np.cov(table)) if len(self.draws) > 1 else np.full((len(table),) * 2, np.nan)

    def parameters(self, level: float = 0.9) -> dict[str, Estimate]:
        result: dict[str, Estimate] = {}
        ends = (0.5 - 0.5 * level, 0.5 + 0.5 * level)
        for name, values in self._coefficient_draws().items():
            low, high = np.quantile(values, ends) if len(values) > 1 else (np.nan, np.nan)
            spread = float(self.spread(values))
            result[name] = {"mean": float(values.mean()), "std": spread, "interval": (float(low), float(high))}
        return result

    def _weight_draws(self, count: int, rng: np.random.Generator) -> Iterator[Array]:
        yield from self.draws[rng.integers(len(self.draws), size=count)]

    @cached_property
    def _moments_of_draws(self) -> GaussianPosterior:
        """The Gaussian with the draws' mean and covariance: exact for whatever is linear in the weights."""
        centred = (self.draws - self.weight_mean) / np.sqrt(len(self.draws) - 1)
        root = centred.T if len(centred) <= centred.shape[1] else np.asarray(np.linalg.qr(centred, mode="r")).T
        return GaussianPosterior(self.problem, self.representation, self.noise, self.weight_mean, root)

    @property
    def _reducible(self) -> Posterior:
        """The Gaussian with the draws' moments."""
        if len(self.draws) < 2:
            raise expected("a posterior with a std", "a single draw", "another method than sgd")
        return self._moments_of_draws

    def _line(
        self, relation: LatentRelation, grid: Mapping[str, Array], points: bool
    ) -> tuple[Functionals, Linearised]:
        return self._reducible._line(relation, grid, points)

    def _joint_covariance(self, asked: Sequence[tuple[LatentRelation, Mapping[str, Array], bool]]) -> Array:
        """Of the draws themselves, whatever a relation is."""
        values = []
        for relation, grid, points in asked:
            flat = self._located(relation, grid if points else self.problem.domain.tensor(grid))
            values.append(self._fields(relation, grid, flat, points))
        table = np.concatenate(values, axis=1)
        if len(table) < 2:
            return np.full((table.shape[1], table.shape[1]), np.nan)
        return np.atleast_2d(np.cov(table, rowvar=False))

    def _moments(
        self, relation: LatentRelation, grid: Mapping[str, Array], points: bool, levels: Array
    ) -> tuple[Array, Array, Array]:
        if relation.is_linear and len(self.draws) > 1 and not len(levels):
            return self._moments_of_draws._moments(relation, grid, points, levels)
        pieces = [
            self._block(relation, part, points, levels) for part in self._blocks(grid, points, len(relation.inputs))
        ]
        means, variances, bands = zip(*pieces, strict=True)
        return np.concatenate(means), np.concatenate(variances), np.concatenate(bands, axis=1)

    def _blocks(self, grid: Mapping[str, Array], points: bool, functionals: int) -> Iterator[dict[str, Array]]:
        """Slices of the grid's first axis (of all axes, for scattered points)."""
        first = next(iter(grid))
        across = 1 if points else int(np.prod([len(x) for name, x in grid.items() if name != first], dtype=int))
        step = max(1, FIELD_BYTES // (8 * across * functionals * len(self.draws)))
        for start in range(0, len(grid[first]), step):
            chosen = slice(start, start + step)
            yield {name: x[chosen] if points or name == first else x for name, x in grid.items()}

    def _block(
        self, relation: LatentRelation, grid: Mapping[str, Array], points: bool, levels: Array
    ) -> tuple[Array, Array, Array]:
        activation = relation.is_activation
        if isinstance(activation, PiecewiseExponential) and len(self.draws) > 1 and not len(levels):
            return self._summed(relation, activation, grid, points)
        flat = self._located(relation, grid if points else self.problem.domain.tensor(grid))
        values = self._fields(relation, grid, flat, points)
        bands = np.quantile(values, levels, axis=0) if len(levels) else np.empty((0, values.shape[1]))
        return values.mean(0), self.spread(values) ** 2, bands

    def _summed(
        self, relation: LatentRelation, activation: PiecewiseExponential, grid: Mapping[str, Array], points: bool
    ) -> tuple[Array, Array, Array]:
        from factorfield.posterior._sampled_kernel import moments_of

        (name, orders) = self._atoms(relation)[0]
        mean, variance = moments_of(self._derivative(name, orders, grid, points), activation.alpha, activation.beta)
        return mean, variance, np.empty((0, len(mean)))

    def _fields(
        self, relation: LatentRelation, grid: Mapping[str, Array], flat: Mapping[str, Array], points: bool
    ) -> Array:
        """The relation (draws, points) of every draw."""
        atoms = self._atoms(relation)
        parts = [self._derivative(name, orders, grid, points) for name, orders in atoms]
        if len(atoms) == 1 and relation.functionals[0].is_value:
            activation = relation.is_activation
            if activation is not None:
                return activation(parts[0])
            return relation.value(parts[0][..., None], self.problem.constants, flat)
        combine = self._combination(relation, atoms, flat)
        zeta = np.einsum("nja,adn->dnj", combine, np.stack(parts))
        return relation.value(zeta, self.problem.constants, flat)

    def _derivative(self, name: str, orders: Orders, grid: Mapping[str, Array], points: bool) -> Array:
        """One derivative of one latent for every draw: (draws, points)."""
        latent = self.representation.latents[name]
        weights = self.draws[:, latent.block]
        if points:
            return weights @ latent.basis.rows(grid, orders, len(next(iter(grid.values())))).T
        field = self._raw(name).reshape(len(weights), *latent.basis.shape)
        for matrix in latent.basis.matrices(grid, orders):  # contracts the leading axis, appends its grid axis
            field = np.tensordot(field, matrix, axes=(1, 1))
        shape = [len(x) if axis in latent.basis.axes else 1 for axis, x in grid.items()]
        whole = [len(weights), *(len(x) for x in grid.values())]
        return np.broadcast_to(field.reshape(len(weights), *shape), whole).reshape(len(weights), -1)

    @cached_property
    def _raw_weights(self) -> dict[str, Array]:
        return {}

    def _raw(self, name: str) -> Array:
        """Weights of a latent's raw features, (draws, raw size); made once, not per block."""
        if name not in self._raw_weights:
            latent = self.representation.latents[name]
            self._raw_weights[name] = latent.basis.raw(self.draws[:, latent.block].T).T
        return self._raw_weights[name]
