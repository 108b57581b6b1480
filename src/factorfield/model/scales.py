"""How large things are: fields, conditions, the terms of an equation. Defaults of sigmas and priors follow from it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorfield.model.symbol import typical_parameters
from factorfield.problem.domain import Points
from factorfield.problem.problem import Problem, Statement
from factorfield.problem.relation import Relation, evaluate_coefficient

Array = NDArray[np.float64]
SMALLEST = 1e-5  # of the field's scale: the least size of a condition that rounding leaves any meaning


def field_scale(problem: Problem) -> float:
    """The field's typical size: what the conditions say about it, else what sources and fluxes make of it, else 1."""
    told = [s for s in problem.statements if not s.is_equation and any(not j.orders for j in s.relation.jets.values())]
    for statements in (told, problem.statements):
        largest = max((_told_size(problem, statement) for statement in statements), default=0.0)
        if largest > 0.0 and np.isfinite(largest):
            return largest
    return 1.0


def condition_scale(problem: Problem, statement: Statement, scale: float) -> float:
    """The size of what a condition on a face says, of the field where it says zero: one infected among millions."""
    own = _told_size(problem, statement)
    return max(own, SMALLEST * scale) if np.isfinite(own) and own > 0.0 else scale


def _told_size(problem: Problem, statement: Statement) -> float:
    points = statement.points
    if points is None:
        face = statement.face or {}
        axes = {n: [face[n]] if n in face else problem.domain[n].cells(64) for n in problem.domain.names}
        points = problem.domain.tensor(axes)
    try:
        offset = evaluate_at_zero(statement.relation, problem, points)
    except (TypeError, ValueError, ZeroDivisionError):  # such as log(u), which has no value there
        return _size_of_inverse(statement)
    return float(np.sqrt(np.mean((statement.target - offset) ** 2))) / _response(problem, statement)


def _response(problem: Problem, statement: Statement) -> float:
    """What a statement says about a field of size one that varies over the whole domain; of the field itself, if it
    names that: h*(u - 20) is about 20, whatever h is."""
    own = {jet: c for jet, c in statement.relation.linear_part.items() if not jet.orders}
    if statement.is_equation or not own:
        return natural_size(statement.relation, problem, 1.0)
    sizes = [
        np.max(np.abs(evaluate_coefficient(c, typical_parameters(problem), _centre(problem)))) for c in own.values()
    ]
    largest = float(max(sizes))
    return largest if np.isfinite(largest) and largest > 0.0 else 1.0


def _centre(problem: Problem) -> dict[str, Array]:
    return {n: np.array([0.5 * (problem.domain[n].lower + problem.domain[n].upper)]) for n in problem.domain.names}


def _size_of_inverse(statement: Statement) -> float:
    """The field's size where a function of it was observed: log(u) = 3 means about 20."""
    import sympy

    relation = statement.relation
    if len(relation.jets) != 1 or relation.expression.free_symbols != set(relation.jets):
        return 0.0
    symbol, seen = next(iter(relation.jets)), sympy.Symbol("seen")
    found = sympy.solve(relation.expression - seen, symbol)
    values = [np.asarray(sympy.lambdify(seen, one, "numpy")(statement.target), float) for one in found]
    sizes = [float(np.sqrt(np.mean(v**2))) for v in values if np.all(np.isfinite(v))]
    return max(sizes, default=0.0)


def evaluate_at_zero(relation: Relation, problem: Problem, points: Points) -> Array | float:
    """A relation where the field and the unknown coefficients' deviations vanish."""
    values = {**{str(symbol): 0.0 for symbol in relation.jets}, **typical_parameters(problem)}
    return evaluate_coefficient(relation.expression, values, points)


def natural_size(relation: Relation, problem: Problem, scale: float) -> float:
    """The size of the equation's largest linear term for a field of size `scale` varying over the whole domain."""
    centre, sizes = _centre(problem), []
    for jet, coefficient in relation.linear_part.items():
        size = float(np.max(np.abs(evaluate_coefficient(coefficient, typical_parameters(problem), centre))))
        for axis, times in jet.orders:
            size /= problem.domain[axis].length ** times
        sizes.append(size)
    largest = max(sizes, default=1.0)
    return scale * (largest if np.isfinite(largest) and largest > 0.0 else 1.0)
