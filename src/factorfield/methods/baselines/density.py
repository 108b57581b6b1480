"""A model's log joint for JAX (extra `baselines`), for one trajectory or several that share their design.

The expressions are those of the factor groups (`LatentRelation`), gradients included: nothing is differentiated here
that SymPy has not differentiated already, so that the kink of the activation speaks as it does everywhere else.
Models whose design rows are equal - all advection rows of one speed - form one batch: their chains or optimisers
advance in lockstep, and a gradient of all of them is a product of two matrices.

Models give NumPy arrays; compiled functions see the same tuples of JAX arrays: `Design[Array]`, `Design[JaxArray]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import needed
from factorfield.methods import never_refine, taken
from factorfield.model.block import block_model
from factorfield.model.factors import FactorGroup
from factorfield.model.model import BlockModel, Model
from factorfield.model.representation import LatentRelation
from factorfield.progress import Progress
from factorfield.solution import Solution

if TYPE_CHECKING:
    from jax import Array as JaxArray

Array = NDArray[np.float64]
A = TypeVar("A")  # the kind of array


@contextmanager
def double_precision() -> Iterator[ModuleType]:
    """JAX in 64 bits, here and only here: the user's own JAX code keeps its setting."""
    jax = needed("jax", "baselines")
    switch = jax.enable_x64 if hasattr(jax, "enable_x64") else needed("jax.experimental", "baselines").enable_x64
    with switch(True):
        yield jax


class Shape(NamedTuple):
    """What the compiler must know of a group: its relation, the block and the array of each functional."""

    relation: LatentRelation
    blocks: tuple[tuple[int, int], ...]
    which: tuple[int, ...]


class Design(NamedTuple, Generic[A]):
    """What all trajectories of a batch share of a group. Rows are held in both orders: each product reads along one."""

    rows: tuple[A, ...]
    columns: tuple[A, ...]
    shared: A | None
    coordinates: tuple[A, ...]


class Facts(NamedTuple, Generic[A]):
    """What differs: targets, sigmas and constants of a group (a leading axis counts trajectories)."""

    target: A
    sigma: A
    parameters: tuple[A, ...]


class Prior(NamedTuple, Generic[A]):
    mean: A
    std: A


class Shared(NamedTuple, Generic[A]):
    """What all trajectories of a batch have in common."""

    designs: tuple[Design[A], ...]
    prior: Prior[A]


@dataclass(frozen=True, eq=False)
class Batch:
    """Models that share their design."""

    models: tuple[BlockModel, ...]
    shapes: tuple[Shape, ...]
    shared: Shared[Array]

    def facts(self, models: Sequence[BlockModel] | None = None) -> tuple[Facts[Array], ...]:
        """Per group, stacked over trajectories; `models` may be the same ones with other constants."""
        stacked = []
        for index, shape in enumerate(self.shapes):
            groups = [model.groups[index] for model in models or self.models]
            names = shape.relation.parameters
            parameters = tuple(np.array([float(group.parameters[name]) for group in groups]) for name in names)
            stacked.append(Facts(np.stack([g.target for g in groups]), np.stack([g.sigma for g in groups]), parameters))
        return tuple(stacked)


def batches(models: Sequence[BlockModel]) -> list[tuple[list[int], Batch]]:
    """Group models by their design; each comes with the positions of its models."""
    found: list[tuple[list[int], BlockModel]] = []
    for index, model in enumerate(models):
        for members, first in found:
            if shares_design(first, model):
                members.append(index)
                break
        else:
            found.append(([index], model))
    result = []
    for members, first in found:
        parts = [_described(group) for group in first.groups]
        shapes, designs = zip(*parts, strict=True)
        shared = Shared(designs, Prior(first.prior.mean, first.prior.std))
        result.append((members, Batch(tuple(models[i] for i in members), shapes, shared)))
    return result


class Batched:
    """A method that runs batch by batch: a subclass has `_run(batch, progress)`: one solution per model."""

    name: ClassVar[str]
    model_for = staticmethod(block_model)
    refine = staticmethod(never_refine)

    def _run(self, batch: Batch, progress: Progress | None) -> list[Solution]:
        raise NotImplementedError

    def run(self, model: Model, progress: Progress | None = None) -> Solution:
        return self.run_all([model], progress)[0]

    def run_all(self, models: Sequence[Model], progress: Progress | None = None) -> list[Solution]:
        """Solutions in the order of the models."""
        solutions: dict[int, Solution] = {}
        for members, batch in batches([taken(model, BlockModel, self.name) for model in models]):
            solutions |= dict(zip(members, self._run(batch, progress), strict=True))
        return [solutions[index] for index in range(len(models))]


def shares_design(one: BlockModel, other: BlockModel) -> bool:
    if one is other:
        return True
    if len(one.groups) != len(other.groups) or one.size != other.size:
        return False
    equal = np.array_equal(one.prior.precision, other.prior.precision)
    equal = equal and np.array_equal(one.prior.shift, other.prior.shift)
    return equal and all(_same_group(a, b) for a, b in zip(one.groups, other.groups, strict=True))


def _same_group(a: FactorGroup, b: FactorGroup) -> bool:
    if a.relation is not b.relation or a.blocks != b.blocks or a.count != b.count:
        return False
    if a.shared is None or b.shared is None:
        if a.shared is not b.shared:
            return False
    elif not np.array_equal(a.shared, b.shared):
        return False
    points = all(np.array_equal(a.points[name], b.points[name]) for name in a.relation.coordinates)
    return points and all(np.array_equal(x, y) for x, y in zip(a.rows, b.rows, strict=True))


def _described(group: FactorGroup) -> tuple[Shape, Design[Array]]:
    arrays = list({id(rows): rows for rows in group.rows}.values())
    which = tuple(next(i for i, a in enumerate(arrays) if a is rows) for rows in group.rows)
    blocks = tuple((block.start, block.stop) for block in group.blocks)
    coordinates = tuple(group.points[name] for name in group.relation.coordinates)
    columns = tuple(np.ascontiguousarray(rows.T) for rows in arrays)
    return Shape(group.relation, blocks, which), Design(tuple(arrays), columns, group.shared, coordinates)


def half_squares(
    shapes: Sequence[Shape], designs: Sequence[Design[JaxArray]], facts: Sequence[Facts[JaxArray]],
    shares: Sequence[float], weights: JaxArray,
) -> tuple[JaxArray, JaxArray]:  # fmt: skip
    """sum over groups of share * 1/2 |misfit / sigma|^2, and its gradient, for one weight vector."""
    import jax.numpy as jnp

    level, gradient = jnp.zeros(()), jnp.zeros_like(weights)
    for shape, design, fact, share in zip(shapes, designs, facts, shares, strict=True):
        seen = {block: weights[slice(*block)] for block in shape.blocks}
        if design.shared is not None:
            seen = {block: design.shared @ part for block, part in seen.items()}
        zeta = [design.rows[i] @ seen[block] for i, block in zip(shape.which, shape.blocks, strict=True)]
        value, *slopes = shape.relation.traced(zeta, fact.parameters, design.coordinates)
        misfit = (value - fact.target) / fact.sigma
        level = level + 0.5 * share * jnp.sum(misfit**2)
        pull = share * misfit / fact.sigma
        for i, block, slope in zip(shape.which, shape.blocks, slopes, strict=True):
            part = design.columns[i] @ (slope * pull)
            if design.shared is not None:
                part = design.shared.T @ part
            gradient = gradient.at[slice(*block)].add(part)
    return level, gradient


def log_joint(
    shapes: Sequence[Shape], shared: Shared[JaxArray], facts: Sequence[Facts[JaxArray]], weights: JaxArray
) -> tuple[JaxArray, JaxArray]:
    """The log joint without its constants, and its gradient."""
    import jax.numpy as jnp

    prior = shared.prior
    level, gradient = half_squares(shapes, shared.designs, facts, [1.0] * len(shapes), weights)
    whitened = (weights - prior.mean) / prior.std
    return -level - 0.5 * jnp.sum(whitened**2), -gradient - whitened / prior.std
