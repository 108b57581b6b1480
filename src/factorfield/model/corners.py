"""Where a formula for the start and a condition on a face disagree: u = 1 at t = 0, u = 0 at x = 0.

Such a jump is the everyday case (a hot body, cold walls), and no polynomial follows it. What the equation does next is
to smooth it out; so the face is right from the start, and near it the start is believed less, by the size of the jump,
over what the basis can resolve. Where they agree, the start is held to the face all the same: even rounding would be a
jump, for which no window is short enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import Advice
from factorfield.model.basis import Family
from factorfield.model.choices import Sigma
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Problem, Statement
from factorfield.problem.relation import evaluate_coefficient

Array = NDArray[np.float64]
CORNER_REACH = 2.0  # of the spacing that the features can resolve
EVERYWHERE = 0.02  # of the jump: how well polynomials with a jump at their end follow the rest
PINNED = 1e-9  # of the jump: sigma of the face at the start
NOTICED = 30.0  # sigmas of the start: smaller disagreements are within what is said


def softened(
    problem: Problem, sigmas: Sequence[Sigma], points: Mapping[str, Array], families: Mapping[str, Family]
) -> tuple[tuple[Sigma, ...], tuple[Statement, ...], tuple[Advice, ...]]:
    """The sigmas of all statements, those of starts by formula enlarged near faces they disagree with; faces, to hold
    at the start; what to say about such jumps."""
    result = list(sigmas)
    pinned: dict[str, float] = {}
    jumps: list[Advice] = []
    walls = [s for s in problem.statements if s.face is not None and TIME not in s.face and not s.stencil]
    start = problem.domain[TIME].lower
    where = problem.domain.tensor({TIME: [start], **points})
    for index, statement in enumerate(problem.statements):
        if (statement.face or {}).get(TIME) != start or not _is_formula(statement):
            continue
        for wall in walls:
            lengths = {axis: problem.domain[axis].length for axis in wall.face or {}}
            spacing = {axis: CORNER_REACH * length / families[axis].size for axis, length in lengths.items()}
            gap = _gap(problem, statement, wall, spacing)
            if gap > NOTICED * float(np.max(sigmas[index].value)):
                text = (
                    f"{statement.name!r} and {wall.name!r} disagree by {gap:.3g} where they meet; near there and soon "
                    "after the start expect an error of that size"
                )
                jumps.append(Advice("corner", text, statement.name))
                away = sum(((where[a] - at) / spacing[a]) ** 2 for a, at in (wall.face or {}).items())
                value = np.hypot(result[index].value, gap * (EVERYWHERE + np.exp(-away)))
                result[index] = replace(result[index], value=value)
                pinned[wall.name] = PINNED * gap
    held = []
    for wall, own in zip(problem.statements, sigmas, strict=True):
        moving = any(TIME in dict(jet.orders) for jet in wall.relation.jets.values())
        if wall.face is None or TIME in wall.face or moving:
            continue
        sigma = pinned.get(wall.name, own.value)
        held.append(replace(wall, name=f"start of {wall.name}", face={**wall.face, TIME: start}, sigma=sigma))
    return tuple(result), tuple(held), tuple(jumps)


def _is_formula(statement: Statement) -> bool:
    """Does it say u = f(x), of one field and nothing unknown?"""
    jets = list(statement.relation.jets.values())
    return len(jets) == 1 and not jets[0].orders and statement.relation.is_linear and not statement.stencil


def _gap(problem: Problem, start: Statement, wall: Statement, spacing: Mapping[str, float]) -> float:
    """By how much the start misses a wall's condition, in units of the field; 0 if they are about other fields."""
    (symbol, own), expression = next(iter(start.relation.jets.items())), start.relation.expression
    jets = wall.relation.jets
    if not wall.relation.is_linear or any(jet.field != own.field or TIME in dict(jet.orders) for jet in jets.values()):
        return 0.0
    import sympy

    formula = symbol - expression / expression.diff(symbol)
    replaced, sizes = {}, []
    for jet_symbol, jet in jets.items():
        derivative, size = formula, wall.relation.expression.diff(jet_symbol)
        for axis, times in jet.orders:
            derivative = derivative.diff(sympy.Symbol(axis, real=True), times)
            size = size / spacing.get(axis, problem.domain[axis].length) ** times
        replaced[jet_symbol] = derivative
        sizes.append(size)
    face, domain = wall.face or {}, problem.domain
    axes = {n: [face[n]] if n in face else domain[n].cells(16) for n in domain.space}
    at = domain.tensor({TIME: [domain[TIME].lower], **axes})
    missed, *leads = (
        np.max(np.abs(evaluate_coefficient(x, problem.typical_parameters, at)))
        for x in (wall.relation.expression.subs(replaced, simultaneous=True), *sizes)
    )
    return float(missed / max(leads))
