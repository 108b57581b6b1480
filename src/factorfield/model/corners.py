"""Where a formula for the start and a condition on a face disagree: u = 1 at t = 0, u = 0 at x = 0.

Such a jump is the everyday case (a hot body, cold walls), and no polynomial follows it. What the equation does next is
to smooth it out; so the face is right from the start, and near it the start is believed less, by the size of the jump,
over as much as polynomials need to cross it and follow the rest of the start to its own sigma. Away from the corner the
start keeps its sigma. Where they agree, the start is held to the face all the same: even rounding would be a jump, for
which no window is short enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import Advice
from factorfield.model.basis import Family
from factorfield.model.choices import HOLDS, Sigma
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Problem, Statement
from factorfield.problem.relation import evaluate_coefficient
from factorfield.problem.units import PLAIN_NUMBER

Array = NDArray[np.float64]
CORNER_REACH = 2.0  # of the spacing that the features can resolve: at most
CROSSING = 1.3  # polynomials of degree n with a jump over w L at their end follow the rest to exp(-2 n sqrt(w) / this)
PINNED = 1e-9  # of the jump: sigma of the face at the start
NOTICED = 30.0  # default sigmas of the start: smaller disagreements are within what is said
WITHIN = 3.0  # sigmas that were given to the start and the face: as far as their smooth errors are thought to make up


def softened(
    problem: Problem, sigmas: Sequence[Sigma], points: Mapping[str, Array], families: Mapping[str, Family],
    is_forward: bool = False,
) -> tuple[tuple[Sigma, ...], tuple[Statement, ...], tuple[Advice, ...]]:  # fmt: skip
    """The sigmas of all statements, those of starts by formula enlarged near faces they disagree with; faces, to hold
    at the start; what to say about such jumps. Where starts hold to rounding (`is_forward`), small jumps are not told:
    they are in the std."""
    result = list(sigmas)
    pinned: dict[str, float] = {}
    jumps: list[Advice] = []
    walls = [s for s in problem.statements if s.face is not None and TIME not in s.face and not s.stencil]
    start = problem.domain[TIME].lower
    where = problem.domain.tensor({TIME: [start], **points})
    stated = {s.name: sigma.stated for s, sigma in zip(problem.statements, sigmas, strict=True) if s.error is not None}
    for index, statement in enumerate(problem.statements):
        if (statement.face or {}).get(TIME) != start or not _is_formula(statement):
            continue
        own = float(np.max(sigmas[index].value))
        softer = np.zeros(len(where[TIME]))
        for wall in walls:
            face = wall.face or {}
            spacing = {a: CORNER_REACH * problem.domain[a].length / families[a].size for a in face}
            gap, size = _gap(problem, statement, wall, spacing, where)
            largest = float(np.max(gap))
            made_up = WITHIN * np.hypot(stated.get(statement.name, 0.0), stated.get(wall.name, 0.0) / size)
            if largest <= max(NOTICED * own, made_up):
                continue
            reach = {axis: _reach(problem, axis, families[axis].size, own / largest) for axis in face}
            away = sum(((where[axis] - at) / reach[axis]) ** 2 for axis, at in face.items())
            softer = np.hypot(softer, gap * np.exp(-away))
            pinned[wall.name] = PINNED * largest
            place = {**{axis: float(x[np.argmax(gap)]) for axis, x in where.items()}, **face}
            usual = own / HOLDS if is_forward and sigmas[index].origin == "default" else own
            # a start that is said to be off need not meet the slope at a wall: its std there says so
            slopes = statement.name in stated and any(jet.orders for jet in wall.relation.jets.values())
            if largest > NOTICED * usual and not slopes:
                jumps.append(_advice(problem, statement, wall, largest, place))
        if np.any(softer):
            value = np.hypot(sigmas[index].value, softer)
            result[index] = replace(sigmas[index], value=value, noise=sigmas[index].stated)
    held = []
    for wall, wall_sigma in zip(problem.statements, sigmas, strict=True):
        moving = any(TIME in dict(jet.orders) for jet in wall.relation.jets.values())
        if wall.face is None or TIME in wall.face or moving:
            continue
        sigma = pinned.get(wall.name, wall_sigma.value)
        held.append(replace(wall, name=f"start of {wall.name}", face={**wall.face, TIME: start}, sigma=sigma))
    return tuple(result), tuple(held), tuple(jumps)


def _is_formula(statement: Statement) -> bool:
    """Does it say u = f(x), of one field and nothing unknown?"""
    jets = list(statement.relation.jets.values())
    return len(jets) == 1 and not jets[0].orders and statement.relation.is_linear and not statement.stencil


def _reach(problem: Problem, axis: str, features: int, share: float) -> float:
    """How far from a face polynomials need to cross a jump and follow the rest to a share of it."""
    needed = (0.5 * CROSSING * np.log(share) / features) ** 2
    return problem.domain[axis].length * min(float(needed), CORNER_REACH / features)


def _advice(problem: Problem, start: Statement, wall: Statement, gap: float, place: Mapping[str, float]) -> Advice:
    def named(value: float, name: str) -> str:
        unit = problem.units.get(name, "")
        return f"{value:.3g}" if unit in ("", PLAIN_NUMBER) else f"{value:.3g} {unit}"

    where = ", ".join(f"{axis} = {named(value, axis)}" for axis, value in place.items())
    text = (
        f"{start.name!r} and {wall.name!r} disagree by {named(gap, start.jet.field)} where they meet, at {where}; near "
        "there and soon after the start expect an error of that size, or let them agree: a start that meets the wall, "
        "or a wall that leaves from the start's value"
    )
    return Advice("corner", text, start.name)


def _gap(
    problem: Problem, start: Statement, wall: Statement, spacing: Mapping[str, float], where: Mapping[str, Array]
) -> tuple[Array, float]:
    """By how much the start misses a wall's condition at points of the wall, in units of the field, and what of the
    condition is one such unit; 0 if they are about other fields."""
    (symbol, own), expression = next(iter(start.relation.jets.items())), start.relation.expression
    jets, count = wall.relation.jets, len(where[TIME])
    at = {**where, **{axis: np.full(count, x) for axis, x in (wall.face or {}).items()}}
    if not wall.relation.is_linear or any(jet.field != own.field or TIME in dict(jet.orders) for jet in jets.values()):
        return np.zeros(count), 1.0
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
    missed, *leads = (
        np.abs(evaluate_coefficient(x, problem.typical_parameters, at))
        for x in (wall.relation.expression.subs(replaced, simultaneous=True), *sizes)
    )
    size = max(float(np.max(lead)) for lead in leads)
    if not 0.0 < size < np.inf:  # coefficients beyond all numbers: nothing can be said
        return np.zeros(count), 1.0
    return np.broadcast_to(missed / size, (count,)), size
