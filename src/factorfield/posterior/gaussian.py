"""Posterior of one block: a Gaussian over all weights at once.

On a tensor grid the covariance is contracted one axis at a time: the first axis through the root C
(covariance = C C'), the others through products of pairs of features, so that no row of Kronecker features is formed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from factorfield.model.representation import Latent, Representation
from factorfield.posterior.base import Estimate, Posterior, shaped
from factorfield.posterior.functionals import Atom, Functionals, Shared, SharedByWeights, contract, weighted_sum
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
BLOCK_BYTES = 1 << 27  # of features or of products with the root that are held at once
MANY_PAIRS = 400


@dataclass(frozen=True, eq=False)
class GaussianPosterior(Posterior):
    """N(mean, root root') over the weights; a one-dimensional `root` holds independent standard deviations."""

    mean: Array
    root: Array

    marker = "weight_mean"

    @property
    def weight_mean(self) -> Array:
        return self.mean

    @property
    def weight_std(self) -> Array:
        if self.root.ndim == 1:
            return self.root
        return np.sqrt(np.einsum("ij,ij->i", self.root, self.root))

    def arrays(self) -> dict[str, Array]:
        return {"weight_mean": self.mean, "weight_root": self.root}

    @classmethod
    def from_arrays(
        cls, problem: Problem, representation: Representation, noise: Mapping[str, float], arrays: Mapping[str, Array]
    ) -> Self:
        mean, root = shaped(arrays, "weight_mean", representation.size), arrays["weight_root"]
        root = shaped(arrays, "weight_root", *(representation.size, None)[: max(1, root.ndim)])
        return cls(problem, representation, noise, mean, root)

    @property
    def covariance(self) -> Array:
        return np.diag(self.root**2) if self.root.ndim == 1 else self.root @ self.root.T

    def parameters(self, level: float = 0.9) -> dict[str, Estimate]:
        result: dict[str, Estimate] = {}
        reach = float(special.ndtri(0.5 + 0.5 * level))
        at, covariance = self._latent_numbers()
        for place, (name, unknown) in enumerate(self.problem.unknowns.items()):
            m, s = float(self.mean[at[place]]), float(np.sqrt(covariance[place, place]))
            ends = (m - reach * s, m + reach * s)
            if unknown.positive:
                ends = (float(np.exp(ends[0])), float(np.exp(ends[1])))
                m, s = float(np.exp(m + 0.5 * s * s)), float(np.exp(m + 0.5 * s * s) * np.sqrt(np.expm1(s * s)))
            result[name] = {"mean": m, "std": s, "interval": ends}
        return result

    def _coefficient_covariance(self) -> Array:
        """Of the coefficients themselves: exact for Gaussian and log-normal ones."""
        at, inner = self._latent_numbers()
        positive = np.array([unknown.positive for unknown in self.problem.unknowns.values()], bool)
        mean = np.where(positive, np.exp(np.minimum(self.mean[at] + 0.5 * np.diagonal(inner), 700.0)), 1.0)
        both = positive[:, None] & positive
        return np.outer(mean, mean) * np.where(both, np.expm1(inner), inner)

    def _latent_numbers(self) -> tuple[list[int], Array]:
        """Where the unknown numbers are among the weights, and their covariance, numerical error included."""
        at = [self.representation.latents[name].block.start for name in self.problem.unknowns]
        roots = [root for root in (self.root, self.numerical) if root is not None]
        return at, sum((_within(root, at) for root in roots), np.zeros((len(at), len(at))))

    def _weight_draws(self, count: int, rng: np.random.Generator) -> Iterator[Array]:
        for _ in range(count):
            noise = rng.standard_normal(self.root.shape[-1])
            yield self.mean + (self.root * noise if self.root.ndim == 1 else self.root @ noise)

    def _atom_moments(self, atoms: Sequence[Atom], grid: Mapping[str, Array], points: bool) -> tuple[Array, Array]:
        if points:
            return self._point_moments(atoms, grid)
        return self._grid_means(atoms, grid, self.mean), self._grid_covariance(atoms, grid)

    def _numerical_covariance(self, atoms: Sequence[Atom], grid: Mapping[str, Array], points: bool) -> Array:
        assert self.numerical is not None
        error = replace(self, root=self.numerical, numerical=None)
        return error._point_moments(atoms, grid)[1] if points else error._grid_covariance(atoms, grid)

    def _cross_covariance(self, left: Functionals, right: Functionals) -> Array:
        return self.readings(right, self._solved(left)).T

    def _shared(self, left: Functionals, right: Functionals) -> Shared:
        if right.count <= len(self.mean):
            return super()._shared(left, right)
        return SharedByWeights(self._solved(left), right, self.readings)

    def _solved(self, functionals: Functionals) -> Array:
        """Covariances of all weights with functionals."""
        rows = self.rows_of(functionals)
        return (rows * self.root**2 if self.root.ndim == 1 else (rows @ self.root) @ self.root.T).T

    def _numerical_cross(self, left: Functionals, right: Functionals) -> Array:
        assert self.numerical is not None
        return replace(self, root=self.numerical, numerical=None)._cross_covariance(left, right)

    def rows_of(self, functionals: Functionals) -> Array:
        """Functionals as rows over all weights."""
        rows = np.zeros((functionals.count, len(self.mean)))
        for (name, orders), slopes in zip(functionals.atoms, functionals.slopes, strict=True):
            latent = self.representation.latents[name]
            rows[:, latent.block] += slopes[:, None] * latent.basis.rows(functionals.flat, orders, len(rows))
        return rows

    def readings(self, functionals: Functionals, columns: Array) -> Array:
        """What functionals read of weight vectors (weights, k): (functionals, k); on a grid axis by axis."""
        if not functionals.points:
            parts = [self._grid_reading(atom, functionals.grid, columns) for atom in functionals.atoms]
            return weighted_sum(parts, functionals.slopes)
        block = max(1, BLOCK_BYTES // (8 * len(self.mean)))
        if functionals.count <= block:
            if "rows" not in functionals.held:
                functionals.held["rows"] = self.rows_of(functionals)
            return np.asarray(functionals.held["rows"] @ columns, float)
        found = np.empty((functionals.count, columns.shape[1]))
        for start in range(0, functionals.count, block):
            chosen = np.arange(start, min(start + block, functionals.count))
            found[chosen] = self.rows_of(functionals.during(chosen)[0]) @ columns
        return found

    def _grid_reading(self, atom: Atom, grid: Mapping[str, Array], columns: Array) -> Array:
        """A derivative of a latent everywhere on a grid: (places, k), an array of its own."""
        latent = self.representation.latents[atom[0]]
        own = contract(latent.basis.matrices(grid, atom[1]), latent.basis.raw(columns[latent.block]))
        shape = [len(x) if axis in latent.basis.axes else 1 for axis, x in grid.items()]
        if own.shape[0] == math.prod(len(x) for x in grid.values()):
            return own if latent.basis.axes else own.copy()
        whole = np.broadcast_to(own.reshape(*shape, -1), (*(len(x) for x in grid.values()), own.shape[1]))
        return whole.reshape(-1, own.shape[1])

    def _latent_root(self, latent: Latent) -> Array:
        """Root of the latent's raw weights, shape (raw size, r)."""
        root = self.root
        if root.ndim == 1:
            padded = np.zeros((latent.basis.size, len(root)))
            padded[:, latent.block] = np.diag(root[latent.block])
            if len(self.representation.latents) == 1 and latent.basis.rotation is not None:
                return latent.basis.rotation * root
            return latent.basis.raw(padded)
        return latent.basis.raw(root[latent.block])

    def _grid_covariance(self, atoms: Sequence[Atom], grid: Mapping[str, Array]) -> Array:
        """Covariances (atoms, atoms, points) on the grid."""
        count = int(np.prod([len(x) for x in grid.values()]))
        covariance = np.empty((len(atoms), len(atoms), count))
        roots = {name: self._latent_root(self.representation.latents[name]) for name, _ in atoms}
        for a in range(len(atoms)):
            for b in range(a + 1):
                covariance[a, b] = covariance[b, a] = self._grid_pair(atoms[a], atoms[b], roots, grid)
        return covariance

    def _grid_pair(self, a: Atom, b: Atom, roots: Mapping[str, Array], grid: Mapping[str, Array]) -> Array:
        left, right = self.representation.latents[a[0]], self.representation.latents[b[0]]
        if left.basis.axes != right.basis.axes:  # a coefficient against a field: one row of features per point
            flat = self.problem.domain.tensor(grid)
            return self._point_moments([a, b], flat)[1][0, 1]
        if not left.basis.axes:
            return self._spread(np.asarray(roots[a[0]][0] @ roots[b[0]][0]), left, grid)
        first, *rest_left = left.basis.matrices(grid, a[1])
        second, *rest_right = right.basis.matrices(grid, b[1])
        if len(rest_left) > 1 and roots[a[0]].shape[1] < roots[a[0]].shape[0] // len(first.T):
            one, two = (
                _columns(roots[name].reshape(*own.basis.shape, -1), own.basis.matrices(grid, orders))
                for own, (name, orders) in ((left, a), (right, b))
            )
            return self._spread(np.einsum("...r,...r->...", one, two), left, grid)
        root_a = roots[a[0]].reshape(left.basis.shape[0], -1)
        root_b = roots[b[0]].reshape(right.basis.shape[0], -1)
        rank = roots[a[0]].shape[1]
        block = max(1, BLOCK_BYTES // (8 * max(root_a.shape[1], root_b.shape[1])))
        pieces = []
        for start in range(0, len(first), block):
            chosen = slice(start, start + block)
            one = (first[chosen] @ root_a).reshape(len(first[chosen]), -1, rank)
            two = one if a == b else (second[chosen] @ root_b).reshape(len(one), -1, rank)
            gram = one @ two.transpose(0, 2, 1)
            pieces.append(contract_pairs(gram, rest_left, rest_right).reshape(len(one), -1))
        return self._spread(np.concatenate(pieces), left, grid)

    def _point_moments(self, atoms: Sequence[Atom], points: Mapping[str, Array]) -> tuple[Array, Array]:
        count = len(next(iter(points.values())))
        means = np.empty((len(atoms), count))
        covariance = np.empty((len(atoms), len(atoms), count))
        block = max(1, BLOCK_BYTES // (8 * len(self.mean)))
        for start in range(0, count, block):
            chosen = slice(start, min(start + block, count))
            part = {name: x[chosen] for name, x in points.items()}
            projected = []
            for a, (name, orders) in enumerate(atoms):
                latent = self.representation.latents[name]
                rows = latent.basis.rows(part, orders)
                means[a, chosen] = rows @ self.mean[latent.block]
                if self.root.ndim == 1:
                    projected.append(np.zeros((len(rows), len(self.root))))
                    projected[-1][:, latent.block] = rows * self.root[latent.block]
                else:
                    projected.append(rows @ self.root[latent.block])
            for a in range(len(atoms)):
                for b in range(a + 1):
                    product = np.einsum("nr,nr->n", projected[a], projected[b])
                    covariance[a, b, chosen] = covariance[b, a, chosen] = product
        return means, covariance


def _columns(table: Array, matrices: Sequence[Array]) -> Array:
    """Weights (features of every axis, columns) on a grid: (grid, columns)."""
    for axis, matrix in enumerate(matrices):
        table = np.moveaxis(np.tensordot(matrix, table, axes=(1, axis)), 0, axis)
    return table


def _within(root: Array, at: Sequence[int]) -> Array:
    """The covariance of some weights."""
    return np.diag(root[at] ** 2) if root.ndim == 1 else root[at] @ root[at].T


def contract_pairs(gram: Array, left: Sequence[Array], right: Sequence[Array]) -> Array:
    """diag of (kron left) gram (kron right)' for a batch of matrices, one axis at a time through pair products.

    gram (batch, prod n, prod m), left[i] (points_i, n_i), right[i] (points_i, m_i) -> (batch, points_1, points_2, ...).
    """
    batch = len(gram)
    if len(left) == 1 and left[0].shape[1] * right[0].shape[1] > MANY_PAIRS:  # their products would be a huge matrix
        return np.stack([np.einsum("pm,pm->p", left[0] @ one, right[0]) for one in gram])
    result = gram.reshape(batch, *[f.shape[1] for f in left], *[f.shape[1] for f in right])
    for index, (f, g) in enumerate(zip(left, right, strict=True)):
        remaining = len(left) - index
        done = index
        n_axis, m_axis = 1 + done, 1 + done + remaining
        pairs = (f[:, :, None] * g[:, None, :]).reshape(len(f), -1)
        moved = np.moveaxis(result, (n_axis, m_axis), (-2, -1))
        flat = moved.reshape(*moved.shape[:-2], -1) @ pairs.T
        result = np.moveaxis(flat, -1, 1 + done)
    return result
