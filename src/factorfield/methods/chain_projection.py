"""Through which modes an equation is seen: those that the basis holds, less those that boundary conditions settle.

Pointwise residuals could never vanish: products of modes make frequencies that the basis has no weights for, and where
initial and boundary values disagree in a corner, as they often do, polynomials cannot follow. A residual that is forced
on them bends the modes that are held, and with them unknown coefficients. Seen through as many modes as are left to it,
the equation asks for no more than the basis can do (Galerkin on periodic axes, Lanczos' tau method on intervals).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from factorfield.basis import Family
from factorfield.domain import TIME
from factorfield.problem import Problem, Statement

Array = NDArray[np.float64]


def projections(problem: Problem, families: Mapping[str, Family], points: Mapping[str, Array]) -> dict[str, Array]:
    """By equation: from places to the modes it is seen through, orthonormal rows."""
    found = {}
    for statement in problem.statements:
        if statement.points is not None or statement.face is not None or not problem.domain.space:
            continue
        seen = np.ones((1, 1))
        for axis in problem.domain.space:
            features = families[axis](points[axis])
            kept = features.shape[1] - settled(problem, statement, axis)
            seen = np.kron(seen, np.linalg.qr(features[:, :kept])[0].T)
        found[statement.name] = seen
    return found


def settled(problem: Problem, equation: Statement, axis: str) -> int:
    """Modes along an axis that boundary conditions settle for the field whose evolution an equation states."""
    jets = list(equation.relation.jets.values())
    latest = max(dict(jet.orders).get(TIME, 0) for jet in jets)
    count = 0
    for field in {jet.field for jet in jets if dict(jet.orders).get(TIME, 0) == latest}:
        order = max(dict(jet.orders).get(axis, 0) for jet in jets if jet.field == field)
        faces = sum(
            axis in (s.face or {}) and any(jet.field == field for jet in s.relation.jets.values())
            for s in problem.statements
        )
        count = max(count, min(order, faces))
    return count
