"""Where an equation is looked at before anything is solved: at the values that data, starts and walls tell.

Sizes of terms, rates of waves and the first step of a search are taken there, not at the zero field, which functions
such as sqrt, log and 1/u have no value or no slope at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factorfield.problem.coefficients import Table, located
from factorfield.problem.domain import Points
from factorfield.problem.inversion import nearest_root
from factorfield.problem.parsing import evaluate, parse_sides
from factorfield.problem.places import everywhere, places_of
from factorfield.problem.problem import Problem
from factorfield.problem.relation import Relation, evaluate_coefficient
from factorfield.problem.statement import Statement

if TYPE_CHECKING:
    import sympy

Array = NDArray[np.float64]
MOST_INVERTED = 2000  # places where a nonlinear condition is turned into values of its field
POINTS = 64  # along each free axis, where a formula of a start or a wall is read


@lru_cache(maxsize=8)  # a model of one problem asks for it many times
def reference_state(problem: Problem) -> dict[str, tuple[float, float]]:
    """Mean and root mean square of the values told of each field; (0, largest of the others, or 1) where none are."""
    values: dict[str, list[Array]] = {name: [] for name in problem.fields}
    for statement in problem.statements:
        told = None if statement.kind == "equation" else told_values(problem, statement)
        if told is not None:
            values[statement.jet.field].append(told)
    found = {n: (_average(v, 1), _average(v, 2) ** 0.5) for n, v in values.items() if v}
    usual = max((size for _, size in found.values()), default=0.0) or 1.0
    return {name: (found[name][0], found[name][1] or usual) if name in found else (0.0, usual) for name in values}


def _average(values: list[Array], power: int) -> float:
    """Over statements, each one counted once."""
    return float(np.mean([np.mean(each**power) for each in values]))


def constant_fields(problem: Problem) -> Iterator[dict[str, float]]:
    """Constants that a search may begin at, the likeliest first: what is told on average, else its size."""
    yield {name: mean for name, (mean, _) in reference_state(problem).items()}
    for sign in (1.0, -1.0):
        yield {name: sign * size for name, (_, size) in reference_state(problem).items()}


def told_values(problem: Problem, statement: Statement) -> Array | None:
    """The values of a field that a condition states, directly or as a function of it; None where it does not."""
    relation = statement.relation
    if len(relation.jets) != 1 or statement.jet.orders or statement.stencil or not relation.fields:
        return None
    where, known = _places(problem, statement), problem.typical_parameters
    if relation.is_linear:
        seen = {**where, "seen": np.asarray(statement.target, float)}
        values = np.ravel(evaluate_coefficient(_solved(relation), known, seen))
    else:
        values = _inverted(relation, where, np.asarray(statement.target, float), known)
    return values if np.all(np.isfinite(values)) else None


def _solved(relation: Relation) -> sympy.Expr:
    """The field of a linear relation as a formula of what was `seen`."""
    import sympy

    ((symbol, jet),) = relation.jets.items()
    return (sympy.Symbol("seen", real=True) - relation.expression.subs(symbol, 0)) / relation.jacobian[jet]


def _inverted(relation: Relation, where: Points, target: Array, known: Mapping[str, float | Table]) -> Array:
    """The field of any other relation, at some of the places: its size needs no more. Of u**2 = 4 the positive one."""
    count = len(next(iter(where.values())))
    chosen = np.unique(np.linspace(0, count - 1, min(count, MOST_INVERTED)).round().astype(int))
    where = {name: x[chosen] for name, x in where.items()}
    values = {**known, **located(where, relation.coordinates, known)}
    sides, symbol = parse_sides(relation.text), str(next(iter(relation.jets)))
    target = np.broadcast_to(target, (count,))[chosen]
    return nearest_root(lambda u: evaluate(sides, {**values, symbol: u}), target)


def _places(problem: Problem, statement: Statement) -> Mapping[str, Array]:
    along = {name: axis.cells(POINTS) for name, axis in problem.domain.items()}
    return places_of(statement, problem.domain, problem.shape, along)


@lru_cache(maxsize=32)
def reference_values(problem: Problem, relation: Relation) -> dict[str, float]:
    """A value for each jet of a relation: the first choice at which it and all its slopes are finite at most places.

    Fields have the mean of what is told of them and no derivatives; else, where zero is told, their size.
    """
    where, wanted = everywhere(problem.domain, problem.shape), [relation.expression, *relation.jacobian.values()]

    best, most = {}, -1.0
    for values in _choices(problem, relation):
        known = {**values, **problem.typical_parameters}
        share = np.mean([np.mean(np.isfinite(evaluate_coefficient(entry, known, where))) for entry in wanted])
        if share > most:
            best, most = values, float(share)
        if most == 1.0:
            break
    return best


def _choices(problem: Problem, relation: Relation) -> Iterator[dict[str, float]]:
    own = {str(s): jet for s, jet in relation.jets.items() if jet.field not in relation.functions}
    flat = {str(s): 0.0 for s, jet in relation.jets.items() if jet.orders}
    for constants in constant_fields(problem):
        yield {**flat, **{name: constants[jet.field] for name, jet in own.items() if not jet.orders}}
    for constants in constant_fields(problem):  # that change by as much over the domain
        steep = {name: constants[jet.field] for name, jet in own.items()}
        for name, jet in own.items():
            for axis, times in jet.orders:
                steep[name] /= problem.domain[axis].length ** times
        yield {**flat, **steep}
