"""The error of a start or a wall whose sigma was given: a smooth random function over its face.

"u = 290 +- 20" does not mean a new error at every point that a method happens to ask at: that would average out as
points and modes grow. It is one function, off by sigma anywhere and by about the same nearby: a Gaussian process like
an unknown coefficient (functions.py), in as many principal components as the field itself can follow. The condition
then reads relation - error = target, and holds.

The error has hidden weights in one block, and of a wall in windows, where it crosses from window to window as part of
the state. An instant's error in windows is read once, so it is summed out: its factors have a joint covariance, and are
whitened by its root.

One block asks equations at more points than it has weights. A field that follows the error of a wall meets them only as
well as its features can; what is left would count against the error, and the fewer the modes the surer the wall would
be. Equations are not data: so they read the error too, less what is left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.model.basis import Tensor
from factorfield.model.factors import FactorGroup, whitened_rows
from factorfield.model.functions import Part, features_along, followed_length, principal_components
from factorfield.model.representation import Form, Functional, Latent, LatentRelation, Representation
from factorfield.problem.domain import ARC, Axis, Domain, Points
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]
LEFT_OUT = 1e-3  # of the error's variance: what its principal components may miss
LEFT_OUT_OF_WALLS = 3e-4  # in windows, where a start may tell the error's slope too: little is left then
MET_FIRST = 1e5  # how much better than equations conditions are met by a field that responds to an error
NEGLIGIBLE = 1e-13  # singular values of that response: directions that nothing tells do not respond


def error_part(statement: Statement, domain: Domain, modes: Mapping[str, int], left_out: float = LEFT_OUT) -> Part:
    """(name, basis, form) of a statement's error; `modes` of the field bound its own along the axes that they name."""
    basis = error_basis(statement, domain, modes, left_out)
    assert statement.error is not None
    return statement.error.name, basis, Form((statement.error.name,), basis.axes)


def error_basis(
    statement: Statement, domain: Mapping[str, Axis], modes: Mapping[str, int], left_out: float = LEFT_OUT
) -> Tensor:
    """Of the size sigma all over the face: what is shorter than its features can follow is lengthened to that."""
    error = statement.error
    assert error is not None and statement.sigma is not None
    wanted = {axis: features_along(domain[axis], length) for axis, length in error.lengths.items()}
    counts = {axis: min(count, modes.get(axis, count)) for axis, count in wanted.items()}
    lengths = {axis: max(length, followed_length(domain[axis], counts[axis])) for axis, length in error.lengths.items()}
    return principal_components(domain, lengths, counts, float(np.max(statement.sigma)) ** 2, left_out)


def error_rows(statement: Statement, domain: Domain, points: Points) -> Array:
    """What each principal component of a statement's error is at points (N, components). On a region's wall each part
    that hangs together has its own: along it, arc length is the axis."""
    if statement.wall is None:
        return error_basis(statement, domain, {}).rows(points)
    parts = []
    for chain in statement.wall.chains:
        rows = error_basis(statement, {**domain, ARC: chain}, {}).rows(points)
        rows[(points[ARC] < chain.lower) | (points[ARC] > chain.upper)] = 0.0
        parts.append(rows)
    return np.concatenate(parts, axis=1)


# -- as hidden weights


def with_error(group: FactorGroup, representation: Representation) -> FactorGroup:
    """The factors of a statement that read its error too."""
    assert group.statement.error is not None
    latent = representation.latents[group.statement.error.name]
    return _reading(group, latent, -latent.basis.rows(group.points))


def beside_errors(
    groups: Sequence[FactorGroup], representation: Representation, fields: Sequence[str], centre: Array
) -> tuple[FactorGroup, ...]:
    """The groups of a block, its equations less what they would miss by for errors that the features cannot follow.

    That is what is left of them, linearised at `centre`, where the fields meet all other conditions and then the
    equations as well as they can, in response to each component of the errors.
    """
    errors = [representation.latents[g.statement.error.name] for g in groups if g.statement.error is not None]
    if not errors:
        return tuple(groups)
    groups = [_alone(group, representation) if group.statement.kind == "equation" else group for group in groups]
    told = [group for group in groups if group.statement.points is None]
    is_face = np.concatenate([np.full(group.count, group.statement.face is not None) for group in told])
    with np.errstate(all="ignore"):
        rows, _ = whitened_rows(told, centre)
    if not np.all(np.isfinite(rows)):  # no linear part at the centre
        return tuple(groups)
    own = _weights([representation.latents[z] for name in fields for z in representation.forms[name].latents])
    moved = _weights(errors)
    scaled = np.concatenate([MET_FIRST * rows[is_face], rows[~is_face]])  # the largest first, for a stable elimination
    response = linalg.lstsq(scaled[:, own], -scaled[:, moved], cond=NEGLIGIBLE, lapack_driver="gelsy")[0]
    found = []
    for group in groups:
        if group.statement.kind == "equation":
            left = whitened_rows([group], centre)[0][:, own] @ response * group.sigma[:, None]
            ends = np.cumsum([0, *(latent.basis.size for latent in errors)])
            for latent, (low, high) in zip(errors, pairwise(ends), strict=True):
                group = _reading(group, latent, -left[:, low:high])
        found.append(group)
    return tuple(found)


def _alone(group: FactorGroup, representation: Representation) -> FactorGroup:
    """An equation's factors without the errors that they may read."""
    relation = representation.read(group.statement.relation)
    own = slice(len(relation.functionals))
    return replace(group, relation=relation, rows=group.rows[own], blocks=group.blocks[own])


def _weights(latents: Sequence[Latent]) -> NDArray[np.int64]:
    return np.concatenate([np.arange(latent.block.start, latent.block.stop) for latent in latents])


def _reading(group: FactorGroup, latent: Latent, rows: Array) -> FactorGroup:
    """The factors with a further functional of a latent added to their relation."""
    return replace(
        group, relation=_with_further(group.relation, latent.name), blocks=(*group.blocks, latent.block), shared=None,
        rows=(*(group.dense_rows(j) for j in range(len(group.rows))), np.ascontiguousarray(rows)),
    )  # fmt: skip


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
