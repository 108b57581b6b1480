"""Factor groups: many factors of one kind as one batched object.

A factor says relation(zeta) = target +- sigma of linear functionals zeta = B w. Three separate choices: what a factor
is (the group), how it is linearised (linearisation.py), and in which order factors are visited (the method).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.errors import expected
from factorfield.messages.gaussian import LOG_TWO_PI
from factorfield.model.basis import Tensor
from factorfield.model.representation import Functional, LatentRelation, Representation
from factorfield.problem.coefficients import located
from factorfield.problem.domain import Orders, Points
from factorfield.problem.relation import evaluate_coefficient
from factorfield.problem.statement import Statement
from factorfield.problem.stencil import shifted

Array = NDArray[np.float64]
ROWS_PER_BLOCK = 2048


def times(rows: Array, vector: Array) -> Array:
    """rows @ vector by SciPy's BLAS, as everything in the hot loops: NumPy's has threads of its own in the way."""
    return linalg.blas.dgemv(1.0, rows.T, vector, trans=1)


def transposed_times(rows: Array, vector: Array) -> Array:
    """rows' vector by SciPy's BLAS."""
    return linalg.blas.dgemv(1.0, rows.T, vector)


@dataclass(frozen=True, eq=False)
class FactorGroup:
    """N factors of one statement.

    Functional j is zeta_j = rows[j] w[blocks[j]]; hidden units of a wide ansatz share one array. Where all points lie
    on a face (labels at t = 0, a boundary) rows factorise: `rows[j]` (N, k) holds only the features along the face and
    `shared` (k, block size) what they have in common, so that the group costs k rows instead of N.
    """

    statement: Statement
    relation: LatentRelation
    rows: tuple[Array, ...]
    blocks: tuple[slice, ...]
    shared: Array | None
    target: Array
    sigma: Array
    parameters: Mapping[str, float]
    points: Points

    @property
    def name(self) -> str:
        return self.statement.name

    @property
    def count(self) -> int:
        return len(self.target)

    @property
    def nbytes(self) -> int:
        held = {id(rows): rows.nbytes for rows in self.rows}
        return sum(held.values()) + (0 if self.shared is None else self.shared.nbytes)

    def dense_rows(self, functional: int) -> Array:
        """Rows (N, block size) of one functional."""
        return self.rows[functional] if self.shared is None else self.rows[functional] @ self.shared

    def _short(self, weights: Array, block: slice) -> Array:
        """What the rows multiply: the block's weights, or their few combinations that a face can see."""
        return weights[block] if self.shared is None else times(self.shared, weights[block])

    def project(self, weights: Array) -> Array:
        """zeta, shape (N, functionals)."""
        short = {block.start: self._short(weights, block) for block in self.blocks}
        pairs = zip(self.rows, self.blocks, strict=True)
        return np.column_stack([times(rows, short[block.start]) for rows, block in pairs])

    def pull_back(self, slopes: Array, size: int, chosen: slice = slice(None)) -> Array:
        """Rows of the linearised factors in weight space, sum_j slopes_j * rows_j: (chosen factors, size)."""
        parts = self.combined(slopes, chosen)
        if self.shared is None and list(parts) == [(0, size)]:
            return parts[0, size]
        jacobian = np.zeros((len(slopes), size))
        for (low, high), left in parts.items():
            jacobian[:, low:high] = left if self.shared is None else left @ self.shared
        return jacobian

    def combined(self, slopes: Array, chosen: slice = slice(None)) -> dict[tuple[int, int], Array]:
        """sum_j slopes_j * rows_j for every block of weights, without the shared part."""
        parts: dict[tuple[int, int], Array] = {}
        term = np.empty_like(self.rows[0][chosen])
        for j, (rows, block) in enumerate(zip(self.rows, self.blocks, strict=True)):
            key = (block.start, block.stop)
            if key not in parts:
                parts[key] = slopes[:, j, None] * rows[chosen]
            elif term.shape == rows[chosen].shape:
                np.multiply(slopes[:, j, None], rows[chosen], out=term)
                parts[key] += term
            else:
                parts[key] += slopes[:, j, None] * rows[chosen]
        return parts

    def misfit(self, weights: Array) -> Array:
        """(value - target) / sigma at the weights."""
        value = self.relation.value(self.project(weights), self.parameters, self.points)
        return (value - self.target) / self.sigma

    def linear_misfit(self, weights: Array) -> tuple[Array, Array]:
        """The misfit at the weights, and its derivative (rows, weights)."""
        value, slopes = self.relation.value_and_gradient(self.project(weights), self.parameters, self.points)
        return (value - self.target) / self.sigma, self.pull_back(slopes / self.sigma[:, None], len(weights))

    def part(self, chosen: NDArray[np.int64]) -> FactorGroup:
        """Some of the factors."""
        return replace(
            self, rows=tuple(rows[chosen] for rows in self.rows), target=self.target[chosen], sigma=self.sigma[chosen],
            points={name: x[chosen] for name, x in self.points.items()},
        )  # fmt: skip

    def log_likelihood(self, weights: Array) -> float:
        misfit = self.misfit(weights)
        return float(-0.5 * misfit @ misfit - np.sum(np.log(self.sigma)) - 0.5 * self.count * LOG_TWO_PI)

    def log_likelihood_gradient(self, weights: Array) -> Array:
        """By the weights, without forming any rows."""
        value, slopes = self.relation.value_and_gradient(self.project(weights), self.parameters, self.points)
        pull = (self.target - value) / self.sigma**2
        gradient = np.zeros(len(weights))
        for j, (rows, block) in enumerate(zip(self.rows, self.blocks, strict=True)):
            part = transposed_times(rows, slopes[:, j] * pull)
            gradient[block] += part if self.shared is None else transposed_times(self.shared, part)
        return gradient


def build_group(
    statement: Statement,
    representation: Representation,
    points: Points,
    sigma: Array | float,
    parameters: Mapping[str, Any],
    relation: LatentRelation | None = None,
) -> FactorGroup:
    """The factors of a statement at the given points; `relation` replaces what the representation makes of it."""
    relation = relation or representation.read(statement.relation)
    if statement.stencil:
        return _summed(statement, representation, points, sigma, parameters, relation)
    count = len(next(iter(points.values())))
    if not points.keys() >= set(relation.coordinates):
        points = located(points, relation.coordinates, parameters)
    latents = [representation.latents[functional.latent] for functional in relation.functionals]
    fixed = tuple(name for name, x in points.items() if np.ptp(x) == 0.0)
    one_basis = len({id(latent.basis) for latent in latents}) == 1
    shared = None
    if one_basis and fixed and face_size(relation.functionals, latents[0].basis, fixed) < count:
        lefts, shared = face_rows(relation.functionals, latents[0].basis, points, parameters, fixed)
    else:
        made: dict[tuple[int, tuple[object, ...]], Array] = {}
        for functional, latent in zip(relation.functionals, latents, strict=True):
            key = (id(latent.basis), functional.terms)
            if key not in made:
                made[key] = functional_rows(functional, latent.basis, points, parameters)
        lefts = [made[id(latent.basis), f.terms] for f, latent in zip(relation.functionals, latents, strict=True)]
    return FactorGroup(
        statement, relation, tuple(lefts), tuple(latent.block for latent in latents), shared,
        np.broadcast_to(np.asarray(statement.target, float), (count,)),
        np.broadcast_to(np.asarray(sigma, float), (count,)), dict(parameters), dict(points),
    )  # fmt: skip


def chosen_group(
    statement: Statement, representation: Representation, chosen: NDArray[np.int64], sigma: Array | float,
    parameters: Mapping[str, Any],
) -> FactorGroup:  # fmt: skip
    """The factors of some of a statement's measurements."""
    own, each = statement.part(chosen), sigma[chosen] if isinstance(sigma, np.ndarray) and sigma.ndim else sigma
    assert own.points is not None
    return build_group(own, representation, own.points, each, parameters)


def _summed(
    statement: Statement, representation: Representation, points: Points, sigma: Array | float,
    parameters: Mapping[str, Any], relation: LatentRelation,
) -> FactorGroup:  # fmt: skip
    """A weighted sum over neighbouring points of a linear relation is one: of the sums of its rows."""
    at_points = replace(statement, stencil=())
    centre = build_group(at_points, representation, points, sigma, parameters, relation)
    if not relation.is_linear:
        raise expected(
            f"a linear ansatz and functional for {statement.name} (it reads more than one point)",
            str(relation.expression), "activation=ff.Identity(), or values at points",
        )  # fmt: skip
    rows = [np.zeros((centre.count, block.stop - block.start)) for block in centre.blocks]
    nothing = np.zeros((centre.count, len(rows)))
    level = -relation.value(nothing, parameters, centre.points)  # what it adds to its rows at the point itself
    for shift, weight in statement.stencil:
        moved = build_group(at_points, representation, shifted(points, shift), sigma, parameters, relation)
        level = level + weight * relation.value(nothing, parameters, moved.points)
        for j in range(len(rows)):
            rows[j] += weight * moved.dense_rows(j)
    return replace(centre, statement=statement, rows=tuple(rows), shared=None, target=centre.target - level)


def has_slopes(groups: Sequence[FactorGroup], weights: Array) -> bool:
    """Have all factors a value and a slope at the weights?"""
    for group in (group for group in groups if not group.relation.is_linear):
        parts = group.relation.value_and_gradient(group.project(weights), group.parameters, group.points)
        if not all(np.all(np.isfinite(part)) for part in parts):
            return False
    return True


def whitened_rows(groups: Sequence[FactorGroup], weights: Array) -> tuple[Array, Array]:
    """Factors linearised at `weights` as rows w = target +- 1."""
    rows, targets = [np.zeros((0, len(weights)))], [np.zeros(0)]
    for group in groups:
        misfit, block = group.linear_misfit(weights)
        rows.append(block)
        targets.append(times(block, weights) - misfit)
    return np.concatenate(rows), np.concatenate(targets)


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


def face_size(functionals: Sequence[Functional], basis: Tensor, fixed: Sequence[str]) -> int:
    """How many combinations of weights the functionals can see on a face."""
    across = {split_orders(orders, fixed)[0] for functional in functionals for orders, _ in functional.terms}
    free = [size for axis, size in zip(basis.axes, basis.shape, strict=True) if axis not in fixed]
    return len(across) * int(np.prod(free, dtype=int))


def split_orders(orders: Orders, fixed: Sequence[str]) -> tuple[Orders, Orders]:
    """Derivatives across the face and along it."""
    across = tuple((axis, times) for axis, times in orders if axis in fixed)
    return across, tuple((axis, times) for axis, times in orders if axis not in fixed)


def face_rows(
    functionals: Sequence[Functional],
    basis: Tensor,
    points: Points,
    parameters: Mapping[str, float],
    fixed: Sequence[str],
) -> tuple[list[Array], Array]:
    """Rows on a face as left_j @ shared: features along the face, times the basis contracted across it."""
    along = Tensor({axis: family for axis, family in basis.families.items() if axis not in fixed})
    across = list(
        dict.fromkeys(split_orders(orders, fixed)[0] for functional in functionals for orders, _ in functional.terms)
    )
    count, width = len(next(iter(points.values()))), along.raw_size
    shared = [_across_face(basis, points, orders, fixed) for orders in across]
    lefts = []
    for functional in functionals:
        left = np.zeros((count, width * len(across)))
        for orders, coefficient in functional.terms:
            normal, tangent = split_orders(orders, fixed)
            at = width * across.index(normal)
            factor = np.reshape(evaluate_coefficient(coefficient, parameters, points), (-1, 1))
            left[:, at : at + width] += factor * along.rows(points, tangent, count)
        lefts.append(left)
    return lefts, np.concatenate(shared)


def _across_face(basis: Tensor, points: Points, orders: Orders, fixed: Sequence[str]) -> Array:
    """The basis contracted across a face: of the features along the free axes, in terms of all weights."""
    product: Array = np.ones((1, 1))
    for axis, family in basis.families.items():
        own = family(points[axis][:1], dict(orders).get(axis, 0)) if axis in fixed else np.eye(family.size)
        product = np.asarray(np.kron(product, own), float)
    return product if basis.rotation is None else product @ basis.rotation
