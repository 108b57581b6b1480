"""Where an equation is looked at before anything is solved: at the values that data, starts and walls tell.

Sizes of terms, rates of waves and the first step of a search are taken there, not at the zero field, which functions
such as sqrt, log and 1/u have no value or no slope at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from factorfield.problem.problem import Problem
from factorfield.problem.relation import Relation, evaluate_coefficient
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]
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
    import sympy

    relation = statement.relation
    if len(relation.jets) != 1 or statement.jet.orders or statement.stencil or not relation.fields:
        return None
    symbol, seen = next(iter(relation.jets)), sympy.Symbol("seen", real=True)
    if relation.is_linear:
        solved = [(seen - relation.expression.subs(symbol, 0)) / relation.jacobian[statement.jet]]
    else:
        try:
            solved = sympy.solve(relation.expression - seen, symbol)
        except NotImplementedError:
            return None
    where = {**_places(problem, statement), "seen": np.asarray(statement.target, float)}
    readings = (np.ravel(evaluate_coefficient(one, problem.typical_parameters, where)) for one in solved)
    usable = [values for values in readings if np.all(np.isfinite(values))]
    return max(usable, key=np.sum) if usable else None  # of u**2 = 4 the positive root


def _places(problem: Problem, statement: Statement) -> Mapping[str, Array]:
    if statement.points is not None:
        return statement.points
    face, domain = statement.face or {}, problem.domain
    return domain.tensor({n: np.array([face[n]]) if n in face else domain[n].cells(POINTS) for n in domain.names})


@lru_cache(maxsize=32)
def reference_values(problem: Problem, relation: Relation) -> dict[str, float]:
    """A value for each jet of a relation: the first choice at which it and all its slopes are finite at most places.

    Fields have the mean of what is told of them and no derivatives; else, where zero is told, their size.
    """
    where, wanted = problem.domain.places(), [relation.expression, *relation.jacobian.values()]

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
