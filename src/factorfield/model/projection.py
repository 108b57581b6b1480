"""Through which functions of space an equation is seen: as many as are left to it beside the boundary conditions.

Pointwise residuals could never vanish: products of modes make frequencies that the basis has no weights for, and where
initial and boundary values disagree in a corner, as they often do, polynomials cannot follow. A residual that is forced
on them bends the modes that are held, and with them unknown coefficients. Seen through the functions of the basis that
vanish where the walls say so (Galerkin's method), the equation asks for no more than the basis can do, and what is
stable by an energy argument stays so: Lanczos' tau method, through the lowest modes, has waves of a beam that explode.
It is the last resort where walls mix fields or directions.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.model.basis import Family
from factorfield.model.symbol import typical_parameters
from factorfield.problem.domain import TIME, Axis, Interval
from factorfield.problem.problem import Problem, Statement
from factorfield.problem.relation import evaluate_coefficient
from factorfield.problem.stencil import Stencil

Array = NDArray[np.float64]


def projections(problem: Problem, families: Mapping[str, Family], points: Mapping[str, Array]) -> dict[str, Array]:
    """By equation: from places to the functions it is seen through, rows that keep the size of noise."""
    found = {}
    for statement in problem.statements:
        if statement.points is not None or statement.face is not None or not problem.domain.space:
            continue
        seen: Array = np.ones((1, 1))
        for axis in problem.domain.space:
            own = _along(problem, statement, axis, families[axis], points[axis])
            seen = np.asarray(np.kron(seen, own), float)
        found[statement.name] = seen
    return found


def _along(problem: Problem, equation: Statement, axis: str, family: Family, points: Array) -> Array:
    features = family(points)
    field = settled_field(problem, equation, axis)
    if field is None:
        return np.asarray(np.linalg.qr(features)[0].T, float)
    walls = [s for s in problem.statements if _speaks(s, field, axis)]
    order = _order(equation, field, axis)
    rows = [_wall_row(problem, wall, field, axis, family) for wall in walls]
    held = [row for row in rows if row is not None]
    if len(held) < len(rows) or len(rows) > order:
        kept = features.shape[1] - min(order, len(rows))
        return np.asarray(np.linalg.qr(features[:, :kept])[0].T, float)
    root = np.sqrt(_weights(problem.domain[axis], len(points)))
    vanishing = linalg.null_space(np.array([row / np.abs(row).max() for row in held]))
    return np.asarray(np.linalg.qr(root[:, None] * (features @ vanishing))[0].T * root, float)


def _weights(axis: Axis, count: int) -> Array:
    """Of an integral over the axis at its collocation points, on average one: Fejer's rule on intervals."""
    if not isinstance(axis, Interval):
        return np.ones(count)
    angle = np.pi * (np.arange(count) + 0.5) / count
    k = np.arange(1, count // 2 + 1)
    return np.asarray(1.0 - 2.0 * np.sum(np.cos(2.0 * np.outer(angle, k)) / (4.0 * k**2 - 1.0), axis=1), float)


def settled_field(problem: Problem, equation: Statement, axis: str) -> str | None:
    """The field whose walls along an axis take modes from an equation: it, of all equations, differentiates the field
    most there (of several, the one that states the field's evolution)."""
    equations = [s for s in problem.statements if s.is_equation]
    best: tuple[int, str | None] = (0, None)
    for field in problem.fields:
        holder = max(equations, key=lambda s: (_order(s, field, axis), _order(s, field, TIME)))
        taken = min(_order(equation, field, axis), sum(_speaks(s, field, axis) for s in problem.statements))
        if holder is equation and taken > best[0]:
            best = taken, field
    return best[1]


def _order(statement: Statement, field: str, axis: str) -> int:
    orders = [dict(jet.orders).get(axis, 0) for jet in statement.relation.jets.values() if jet.field == field]
    return max(orders, default=0)


def _speaks(statement: Statement, field: str, axis: str) -> bool:
    return axis in (statement.face or {}) and any(jet.field == field for jet in statement.relation.jets.values())


def _wall_row(problem: Problem, wall: Statement, field: str, axis: str, family: Family) -> Array | None:
    """What a wall says about the features along an axis; None where it speaks of more than one field or direction."""
    relation, total = wall.relation, np.zeros(family.size)
    face: Mapping[str, float] = wall.face or {}
    if not relation.is_linear or any(
        jet.field != field or {*dict(jet.orders)} - {axis} for jet in relation.jets.values()
    ):
        return None
    stencil: Stencil = wall.stencil or (({}, 1.0),)
    axes = {name: problem.domain[name] for name in problem.domain.names}
    middle = {n: np.array([face.get(n, 0.5 * (a.lower + a.upper))]) for n, a in axes.items()}
    for jet, coefficient in relation.linear_part.items():
        size = float(np.ravel(evaluate_coefficient(coefficient, typical_parameters(problem), middle))[0])
        for shift, weight in stencil:
            at = face[axis] + shift.get(axis, 0.0)
            total = total + size * weight * family(np.atleast_1d(at), dict(jet.orders).get(axis, 0))[0]
    return total if np.any(total) else None
