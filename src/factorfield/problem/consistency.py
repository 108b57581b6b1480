"""What cannot be a problem whatever its data: fields without an equation, conditions that exclude each other."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from factorfield.errors import AdviceWarning, ProblemError, expected, nearest
from factorfield.problem.coefficients import Table
from factorfield.problem.domain import Domain
from factorfield.problem.relation import evaluate_coefficient
from factorfield.problem.statement import Statement

POINTS = 16  # along each free axis, where two conditions are compared
CONTRADICTION = 30.0  # sigmas between two conditions on one face from which they cannot both be meant


def check_counts(fields: Sequence[str], statements: Sequence[Statement]) -> None:
    """As many equations as fields, each field in at least one."""
    equations = [s for s in statements if s.kind == "equation"]
    governed = {name for s in equations for name in s.relation.fields}
    free = [name for name in fields if name not in governed]
    if free:
        raise expected(
            f"an equation for every field ({', '.join(fields)})", f"none that mentions {free[0]!r}",
            f"{nearest(free[0], governed or {'u'})}, an equation for it, or "
            f"parameters={{{free[0]!r}: ff.Unknown(0, 1, over=...)}} if it is a coefficient",
        )  # fmt: skip
    if len(equations) < len(fields):
        raise expected(
            f"as many equations as fields ({', '.join(fields)})", f"{len(equations)}",
            "another equation, or ff.Unknown(mean, std, over=...) for a field that is a coefficient",
        )  # fmt: skip
    if len(equations) > len(fields):
        warnings.warn(
            f"{len(equations)} equations for {len(fields)} field(s): all of them are asked to hold, "
            "which they may not be able to together",
            AdviceWarning, stacklevel=3,
        )  # fmt: skip


def check_contradictions(
    statements: Sequence[Statement], domain: Domain, constants: Mapping[str, float | Table]
) -> None:
    """Two conditions on one face that ask the same quantity to have different values."""
    faces = [s for s in statements if s.face is not None and not s.stencil and s.relation.is_linear]
    for one, other in combinations(faces, 2):
        if one.face == other.face:
            gap, allowed = _gap(one, other, domain, constants)
            if gap > allowed:
                raise ProblemError(
                    f"expected conditions that can hold together, received {one.name!r} and {other.name!r}, which "
                    f"differ by {gap:.3g}; try removing one of them, or a larger sigma"
                )


def _gap(
    one: Statement, other: Statement, domain: Domain, constants: Mapping[str, float | Table]
) -> tuple[float, float]:
    """How far two linear conditions on the same jets are apart, and how far they may be; (0, 0) if they differ."""
    jets, parameters = one.relation.jets, (*one.relation.parameters, *other.relation.parameters)
    if set(jets) != set(other.relation.jets) or any(name not in constants for name in parameters):
        return 0.0, 0.0
    symbol = next(iter(jets))
    lead = one.relation.expression.diff(symbol), other.relation.expression.diff(symbol)
    gap = (one.relation.expression / lead[0] - other.relation.expression / lead[1]).simplify()
    if gap.free_symbols & set(jets):
        return 0.0, 0.0
    face = one.face or {}
    points = domain.tensor({n: [face[n]] if n in face else domain[n].cells(POINTS) for n in domain.names})
    sizes = [np.max(np.abs(evaluate_coefficient(x, constants, points))) for x in (gap, *lead)]
    sigma = np.hypot((one.sigma or 0.0) / sizes[1], (other.sigma or 0.0) / sizes[2])
    return float(sizes[0]), CONTRADICTION * float(sigma) + 1e-9
