"""Posterior of nested boxes: one Gaussian over all weights of local features, as the conditional of every box.

The variance at many points comes from the marginals of the leaves that they lie in, found by walking down to these; at
a few, from what each point's functionals gather on the way up to the root. Neither visits other boxes. What cells leave
out is a part of its own: `numerical` holds its standard deviation for every weight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from factorfield.errors import expected
from factorfield.messages.boxes import BoxTree
from factorfield.model.basis import Orders, Tensor
from factorfield.model.cells import NestedCells, Ranges, nested_cells
from factorfield.model.local import Places
from factorfield.model.representation import Representation
from factorfield.model.splines import Spline
from factorfield.posterior.base import Estimate, Posterior, shaped
from factorfield.posterior.box_arrays import arrays_of, tree_of
from factorfield.posterior.functionals import Atom, Functionals, Shared, SharedByWeights, contract, weighted_sum
from factorfield.posterior.gaussian import GaussianPosterior, contract_pairs
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
FEW = 64  # functionals that are gathered one by one instead of walking down to leaves
BLOCK_BYTES = 1 << 27  # of covariances between features, or of weights of functionals, that are held at once


@dataclass(frozen=True, eq=False)
class Patch:
    """The part of a grid that lies in a leaf, a grid itself."""

    leaf: int
    places: Indices  # their numbers in the whole grid
    grid: Mapping[str, Array]
    splines: Mapping[str, Spline]
    ranges: Ranges  # of cells

    @cached_property
    def _along(self) -> list[Indices]:
        """The weights along each axis that the leaf's cells read."""
        pairs = zip(self.splines.values(), self.ranges, strict=True)
        return [np.unique(spline.weights_of(np.arange(part.start, part.stop))) for spline, part in pairs]

    @cached_property
    def weights(self) -> Indices:
        """Of a latent over all axes, first axis slowest."""
        return np.ravel_multi_index(np.ix_(*self._along), [spline.size for spline in self.splines.values()]).ravel()

    def matrices(self, orders: Orders) -> list[Array]:
        """Features along each axis, (places, weights)."""
        times, along = dict(orders), zip(self.splines.items(), self._along, strict=True)
        return [spline(self.grid[axis], times.get(axis, 0))[:, own] for (axis, spline), own in along]


@dataclass(frozen=True, eq=False)
class BoxesPosterior(Posterior):
    """N(mean, W W' + beside beside') with W the tree's, and independent numerical errors of the weights."""

    mean: Array
    tree: BoxTree
    beside: Array | None = None  # (weights, numbers): what the spread of unknown numbers adds, a root of the covariance

    marker = "box_kind"

    @property
    def weight_mean(self) -> Array:
        return self.mean

    @cached_property
    def weight_std(self) -> Array:
        variance = np.zeros(len(self.mean))
        for index, covariance in self.tree.marginals(self._cells.leaves):
            variance[self.tree.boxes[index].front] = np.diagonal(covariance)
        return np.sqrt(variance if self.beside is None else variance + np.sum(self.beside**2, axis=1))

    @cached_property
    def _splines(self) -> dict[str, Spline]:
        found = {n: f for latent in self.representation.latents.values() for n, f in latent.basis.families.items()}
        return {name: spline for name in self.problem.domain.names if isinstance(spline := found[name], Spline)}

    @cached_property
    def _cells(self) -> NestedCells:
        return nested_cells(tuple(spline.cells for spline in self._splines.values()))

    # -- files

    def arrays(self) -> dict[str, Array]:
        beside = {} if self.beside is None else {"box_beside": self.beside}
        return {"weight_means": self.mean, **arrays_of(self.tree), **beside}

    @classmethod
    def from_arrays(
        cls, problem: Problem, representation: Representation, noise: Mapping[str, float], arrays: Mapping[str, Array]
    ) -> Self:
        mean = shaped(arrays, "weight_means", representation.size)
        empty = cls(problem, representation, noise, mean, BoxTree((), ()))
        empty._check_splines()
        tree = tree_of(arrays, representation, empty._splines)
        beside = shaped(arrays, "box_beside", len(mean), None) if "box_beside" in arrays else None
        return cls(problem, representation, noise, mean, tree, beside)

    def _check_splines(self) -> None:
        """One spline along every axis, for all that is written in it."""
        for latent in self.representation.latents.values():
            for name, family in latent.basis.families.items():
                if len(self._splines) < len(self.problem.domain) or family != self._splines[name]:
                    raise expected(f"the same cells along {name} for all fields", family, "saving it again")

    # -- unknown numbers

    def parameters(self, level: float = 0.9) -> dict[str, Estimate]:
        return self.numbers.parameters(level) if self.problem.unknowns else {}

    def _coefficient_covariance(self) -> Array:
        return self.numbers._coefficient_covariance()

    @cached_property
    def numbers(self) -> GaussianPosterior:
        """Their joint belief: as many functionals as there are."""
        names = list(self.problem.unknowns)
        at = [self.representation.latents[name].block.start for name in names]
        columns = np.zeros((len(self.mean), len(at)))
        columns[at, np.arange(len(at))] = 1.0
        gathered = self.tree.gather(columns)
        covariance = gathered.T @ gathered
        if self.beside is not None:
            covariance = covariance + self.beside[at] @ self.beside[at].T
        parts = [(name, Tensor({}), self.representation.forms[name]) for name in names]
        own = Representation.build(parts)
        root = linalg.cholesky(covariance, lower=True)
        error = None if self.numerical is None else self.numerical[at]
        return GaussianPosterior(self.problem, own, self.noise, self.mean[at], root, numerical=error)

    # -- fields

    def _weight_draws(self, count: int, rng: np.random.Generator) -> Iterator[Array]:
        for _ in range(count):
            drawn = self.mean + self.tree.spread(rng.standard_normal(len(self.mean)))
            yield drawn if self.beside is None else drawn + self.beside @ rng.standard_normal(self.beside.shape[1])

    def _atom_moments(self, atoms: Sequence[Atom], grid: Mapping[str, Array], points: bool) -> tuple[Array, Array]:
        known = self.mean[:, None] if self.beside is None else np.column_stack([self.mean, self.beside])
        if self._is_tensor(atoms, grid, points):
            read = np.stack([self._grid_reading(atom, grid, known) for atom in atoms])
            covariance = self._on_patches(atoms, grid)
        else:
            places, rows = self._read(atoms, grid, points)
            read = np.stack([np.einsum("nk,nkc->nc", values, known[columns]) for columns, values in rows])
            covariance = np.empty((len(atoms), len(atoms), read.shape[1]))
            if read.shape[0] * read.shape[1] <= FEW:
                self._gathered(rows, covariance)
            else:
                self._from_leaves(rows, places, covariance)
        return read[:, :, 0], covariance + np.einsum("anc,bnc->abn", read[:, :, 1:], read[:, :, 1:])

    def _numerical_covariance(self, atoms: Sequence[Atom], grid: Mapping[str, Array], points: bool) -> Array:
        assert self.numerical is not None
        _, read = self._read(atoms, grid, points)
        covariance = np.zeros((len(atoms), len(atoms), len(read[0][1])))
        for a, (columns, values) in enumerate(read):
            for b in range(len(atoms)):
                if atoms[a][0] == atoms[b][0]:
                    covariance[a, b] = np.sum(values * read[b][1] * self.numerical[columns] ** 2, axis=1)
        return covariance

    def _cross_covariance(self, left: Functionals, right: Functionals) -> Array:
        """What the tree spreads, and what the numbers move."""
        found = self._spread_between(left, right)
        if self.beside is None:
            return found
        return found + self._readings(left, self.beside) @ self._readings(right, self.beside).T

    def _shared(self, left: Functionals, right: Functionals) -> Shared:
        if right.count <= len(self.mean):
            return super()._shared(left, right)
        columns = self.tree.solve(self._rows_of(left).T.toarray())
        if self.beside is not None:
            columns += self.beside @ self._readings(left, self.beside).T
        return SharedByWeights(columns, right, self._readings)

    def _spread_between(self, left: Functionals, right: Functionals) -> Array:
        """What both gather where they are few; else what each on the left makes of all weights, read on the right."""
        held = max(1, BLOCK_BYTES // (8 * len(self.mean)))
        rows = self._rows_of(left)
        if right.count <= max(left.count, FEW) and left.count + right.count <= held:
            gathered = self.tree.gather(rows.T.toarray())
            same = gathered if left is right else self.tree.gather(self._rows_of(right).T.toarray())
            return gathered.T @ same
        parts = [rows[start : start + held] for start in range(0, left.count, held)]
        read = [self._readings(right, self.tree.solve(part.T.toarray())) for part in parts]
        return read[0].T if len(read) == 1 else np.hstack(read).T

    def _readings(self, functionals: Functionals, columns: Array) -> Array:
        """What functionals read of weight vectors (weights, k): (functionals, k); on a grid axis by axis."""
        if not self._is_tensor(functionals.atoms, functionals.grid, functionals.points):
            return np.asarray(self._rows_of(functionals) @ columns)
        parts = [self._grid_reading(atom, functionals.grid, columns) for atom in functionals.atoms]
        return weighted_sum(parts, functionals.slopes)

    def _grid_reading(self, atom: Atom, grid: Mapping[str, Array], columns: Array) -> Array:
        latent = self.representation.latents[atom[0]]
        return contract(latent.basis.matrices(grid, atom[1]), columns[latent.block])

    def _numerical_cross(self, left: Functionals, right: Functionals) -> Array:
        assert self.numerical is not None
        scaled = self._rows_of(left).multiply(self.numerical**2).tocsr()
        return np.asarray((scaled @ self._rows_of(right).T).toarray())

    def _rows_of(self, functionals: Functionals) -> sparse.csr_matrix:
        """Functionals as rows over all weights; made once."""
        if "rows" in functionals.held:
            found: sparse.csr_matrix = functionals.held["rows"]
            return found
        _, read = self._read(functionals.atoms, functionals.flat, True)
        rows = sparse.csr_matrix((functionals.count, len(self.mean)))
        for slopes, (columns, values) in zip(functionals.slopes, read, strict=True):
            ends = np.arange(0, columns.size + 1, columns.shape[1])
            own = (np.ravel(slopes[:, None] * values), columns.ravel(), ends)
            rows = rows + sparse.csr_matrix(own, shape=rows.shape)
        functionals.held["rows"] = rows
        return rows

    def _read(
        self, atoms: Sequence[Atom], grid: Mapping[str, Array], points: bool
    ) -> tuple[Places, list[tuple[Indices, Array]]]:
        self._check_orders(atoms)
        places = Places.at(grid if points else self.problem.domain.tensor(grid), self._splines)
        return places, [self._row(atom, places) for atom in atoms]

    def _check_orders(self, atoms: Sequence[Atom]) -> None:
        for axis, order in (each for _, orders in atoms for each in orders):
            degree = self._splines[axis].degree
            if order >= degree:
                raise expected(f"at most {degree - 1} derivatives along {axis} of splines of degree {degree}", order,
                               "degree=5, or a derivative of lower order")  # fmt: skip

    def _row(self, atom: Atom, places: Places) -> tuple[Indices, Array]:
        """Weight numbers and values of a derivative of a latent at places."""
        latent = self.representation.latents[atom[0]]
        return latent.block.start + places.weights(latent.basis), places.features(latent.basis, atom[1])

    def _gathered(self, read: Sequence[tuple[Indices, Array]], covariance: Array) -> None:
        count = covariance.shape[2]
        columns = np.zeros((len(self.mean), len(read) * count))
        for a, (numbers, values) in enumerate(read):
            np.add.at(columns, (numbers, a * count + np.arange(count)[:, None]), values)
        found = self.tree.gather(columns).reshape(len(self.mean), len(read), count)
        covariance[:] = np.einsum("wan,wbn->abn", found, found)

    def _is_tensor(self, atoms: Sequence[Atom], grid: Mapping[str, Array], points: bool) -> bool:
        """Are there many places, on a grid, of latents over all of its axes? Then axes are contracted one by one."""
        self._check_orders(atoms)
        over_all = all(self.representation.latents[name].basis.axes == tuple(self._splines) for name, _ in atoms)
        return over_all and not points and len(atoms) * math.prod(len(x) for x in grid.values()) > FEW

    def _patches(self, grid: Mapping[str, Array]) -> Iterator[Patch]:
        """A grid, leaf by leaf."""
        cells = [Places.at({axis: grid[axis]}, {axis: s}).cell[axis] for axis, s in self._splines.items()]
        numbers = np.arange(math.prod(len(x) for x in grid.values())).reshape([len(x) for x in grid.values()])
        for leaf in self._cells.leaves:
            ranges = self._cells.ranges[leaf]
            inside = [np.flatnonzero((c >= r.start) & (c < r.stop)) for c, r in zip(cells, ranges, strict=True)]
            if all(len(chosen) for chosen in inside):
                at = {axis: grid[axis][chosen] for axis, chosen in zip(self._splines, inside, strict=True)}
                yield Patch(leaf, numbers[np.ix_(*inside)].ravel(), at, self._splines, ranges)

    def _on_patches(self, atoms: Sequence[Atom], grid: Mapping[str, Array]) -> Array:
        """Covariances from the marginals of leaves, axis by axis."""
        covariance = np.empty((len(atoms), len(atoms), math.prod(len(x) for x in grid.values())))
        patches = {patch.leaf: patch for patch in self._patches(grid)}
        position = np.zeros(len(self.mean), np.int64)
        blocks = [self.representation.latents[name].block.start for name, _ in atoms]
        for index, known in self.tree.marginals(list(patches)):
            front, patch = self.tree.boxes[index].front, patches[index]
            position[front] = np.arange(len(front))
            matrices = [patch.matrices(orders) for _, orders in atoms]
            for a in range(len(atoms)):
                for b in range(a + 1):
                    rows, columns = (position[blocks[each] + patch.weights] for each in (a, b))
                    found = contract_pairs(known[rows[:, None], columns][None], matrices[a], matrices[b]).ravel()
                    covariance[a, b, patch.places] = covariance[b, a, patch.places] = found
        return covariance

    def _from_leaves(self, read: Sequence[tuple[Indices, Array]], places: Places, covariance: Array) -> None:
        leaf_of = self._cells.leaf_of[tuple(places.cell.values())]
        order = np.argsort(leaf_of, kind="stable")
        position = np.zeros(len(self.mean), np.int64)
        wanted = [int(index) for index in np.unique(leaf_of)]
        for index, known in self.tree.marginals(wanted):
            front = self.tree.boxes[index].front
            position[front] = np.arange(len(front))
            low, high = np.searchsorted(leaf_of[order], [index, index + 1])
            widest = max(values.shape[1] for _, values in read)
            step = max(1, BLOCK_BYTES // (8 * widest**2))
            for start in range(low, high, step):
                chosen = order[start : min(start + step, high)]
                own = [(position[numbers[chosen]], values[chosen]) for numbers, values in read]
                for a, (i, left) in enumerate(own):
                    for b, (j, right) in enumerate(own[: a + 1]):
                        between = known[i[:, :, None], j[:, None, :]]
                        found = np.einsum("ni,ni->n", left, np.matmul(between, right[:, :, None])[:, :, 0])
                        covariance[a, b, chosen] = covariance[b, a, chosen] = found
