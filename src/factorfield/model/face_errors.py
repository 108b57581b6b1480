"""The error of a start or a wall whose sigma was given: a smooth random function over its face.

"u = 290 +- 20" does not mean a new error at every point that a method happens to ask at: that would average out as
points and modes grow. It is one function, off by sigma anywhere and by about the same nearby: a Gaussian process like
an unknown coefficient (functions.py), in as many principal components as the field itself can follow. The condition
then reads relation - error = target, and holds.

The error has hidden weights where more than one factor group reads it: in one block, and of a wall in windows, whose
error crosses from window to window as part of the state. An instant's error in windows is read once, so it is summed
out: its factors have a joint covariance, and are whitened by its root.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from factorfield.model.basis import Tensor
from factorfield.model.factors import FactorGroup
from factorfield.model.functions import Part, features_along, principal_components
from factorfield.model.representation import Form, Functional, LatentRelation, Representation
from factorfield.problem.domain import Domain
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]
LEFT_OUT = 1e-3  # of the error's variance: what its principal components may miss


def error_part(statement: Statement, domain: Domain, modes: Mapping[str, int]) -> Part:
    """(name, basis, form) of a statement's error; `modes` of the field bound its own along the axes that they name."""
    basis = error_basis(statement, domain, modes)
    assert statement.error is not None
    return statement.error.name, basis, Form((statement.error.name,), basis.axes)


def error_basis(statement: Statement, domain: Domain, modes: Mapping[str, int]) -> Tensor:
    error = statement.error
    assert error is not None and statement.sigma is not None
    wanted = {axis: features_along(domain[axis], length) for axis, length in error.lengths.items()}
    counts = {axis: min(count, modes.get(axis, count)) for axis, count in wanted.items()}
    return principal_components(domain, error.lengths, counts, float(np.max(statement.sigma)) ** 2, LEFT_OUT)


# -- as hidden weights


def with_error(group: FactorGroup, representation: Representation) -> FactorGroup:
    """The factors of a statement that read its error too."""
    assert group.statement.error is not None
    latent = representation.latents[group.statement.error.name]
    rows = *(group.dense_rows(j) for j in range(len(group.rows))), -latent.basis.rows(group.points)
    relation = _with_further(group.relation, latent.name)
    return replace(group, relation=relation, rows=rows, blocks=(*group.blocks, latent.block), shared=None)


@lru_cache(maxsize=256)  # every window asks for the same relations
def _with_further(relation: LatentRelation, name: str) -> LatentRelation:
    """The relation plus the value of one more latent."""
    import sympy

    symbol = sympy.Symbol(f"q{len(relation.inputs)}", real=True)
    value = Functional(name, (((), sympy.Integer(1)),))
    return replace(
        relation, expression=relation.expression + symbol, functionals=(*relation.functionals, value),
        inputs=(*relation.inputs, symbol),
    )  # fmt: skip


# -- summed out


@dataclass(frozen=True, eq=False)
class CorrelatedGroup(FactorGroup):
    """Factors whose errors go together: with S = diag(sigma) their covariance is S (1 + U diag(v) U') S."""

    directions: Array  # U, orthonormal columns (N, components)
    shrunk: Array  # (1 + v)^(-1/2) - 1: what whitening adds to each of them

    def misfit(self, weights: Array) -> Array:
        return self._white(super().misfit(weights))

    def linear_misfit(self, weights: Array) -> tuple[Array, Array]:
        misfit, rows = super().linear_misfit(weights)
        return self._white(misfit), self._white(rows)

    def _white(self, values: Array) -> Array:
        """(1 + U diag(v) U')^(-1/2) values."""
        return values + (self.directions * self.shrunk) @ (self.directions.T @ values)


def without_error(group: FactorGroup, basis: Tensor) -> CorrelatedGroup:
    """The factors of a statement with its error, of principal components `basis`, summed out."""
    directions, sizes, _ = np.linalg.svd(basis.rows(group.points) / group.sigma[:, None], full_matrices=False)
    return CorrelatedGroup(
        group.statement, group.relation, group.rows, group.blocks, group.shared, group.target, group.sigma,
        group.parameters, group.points, directions, 1.0 / np.sqrt(1.0 + sizes**2) - 1.0,
    )  # fmt: skip
