"""A window's factors as rows: linearised, whitened, and seen through the modes that the basis holds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorfield.basis import Departure
from factorfield.domain import TIME
from factorfield.factors import FactorGroup, linearise, times
from factorfield.representation import Representation

Array = NDArray[np.float64]


def is_equation(group: FactorGroup) -> bool:
    return group.name.startswith("equation")


def projected(group: FactorGroup, values: Array, projection: Array | None) -> Array:
    """Values at an equation's points (instants x places, ...) seen through the modes that the basis holds.

    Products of modes make frequencies that the basis has no weights for: pointwise residuals there could never vanish,
    and would bend the modes that are held (Galerkin instead of collocation; the same where no products occur).
    """
    if projection is None or not is_equation(group):
        return values
    table = values.reshape(-1, projection.shape[1], *values.shape[1:])
    seen = table @ projection.T if table.ndim == 2 else np.matmul(projection, table)
    return np.ascontiguousarray(seen).reshape(-1, *values.shape[1:])


def linear_misfit(group: FactorGroup, weights: Array, projection: Array | None) -> tuple[Array, Array]:
    """(value - target) / sigma at the weights, and its derivative."""
    line = linearise(group.relation, group.project(weights), None, group.parameters, group.points)
    rows = group.pull_back(line.slopes / group.sigma[:, None], len(weights))
    misfit = (line.value - group.target) / group.sigma
    return projected(group, misfit, projection), projected(group, rows, projection)


def whitened(groups: list[FactorGroup], weights: Array, projection: Array | None) -> tuple[Array, Array]:
    """Linearised factors at `weights` as rows w = target +- 1."""
    rows, targets = [np.zeros((0, len(weights)))], [np.zeros(0)]
    for group in groups:
        misfit, block = linear_misfit(group, weights, projection)
        rows.append(block)
        targets.append(times(block, weights) - misfit)
    return np.concatenate(rows), np.concatenate(targets)


def last_polynomials(representation: Representation) -> NDArray[np.int64]:
    """Weights of the last two polynomials in time of every field."""
    found: list[int] = []
    for latent in representation.latents.values():
        family = latent.basis.families.get(TIME)
        if isinstance(family, Departure):
            across = latent.basis.size // family.size
            found += range(latent.block.stop - 2 * across, latent.block.stop)
    return np.array(found, int)
