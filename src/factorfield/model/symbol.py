"""The linear part of an equation as growth rates of waves: u = exp(lambda t + i k x)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorfield.problem.domain import TIME, Periodic
from factorfield.problem.problem import Problem, Statement, Unknown
from factorfield.problem.relation import evaluate_coefficient

Complex = NDArray[np.complex128]


def typical_parameters(problem: Problem) -> dict[str, Any]:
    """Numbers and tables as they are, unknown coefficients at their prior means."""
    return {name: value.mean if isinstance(value, Unknown) else value for name, value in problem.parameters.items()}


def rates(problem: Problem, statement: Statement, waves: Mapping[str, ArrayLike]) -> Complex | None:
    """lambda for waves of wave numbers k (arrays per space axis), coefficients taken at the domain's centre.

    Of a second-order equation, one root of lambda^2; None if the equation has no time derivative to lead.
    """
    centre = {n: np.array([0.5 * (problem.domain[n].lower + problem.domain[n].upper)]) for n in problem.domain.names}
    order = statement.relation.order(TIME)
    lead, total = 0.0, np.zeros(1, complex)
    for jet, coefficient in statement.relation.linear_part.items():
        size = float(np.ravel(evaluate_coefficient(coefficient, typical_parameters(problem), centre))[0])
        times = dict(jet.orders)
        if times.get(TIME, 0) == order:
            lead = size if times.keys() <= {TIME} else lead
            continue
        if TIME in times:  # damping and the like: small beside the leading terms of fast waves
            continue
        factor: Complex = np.ones(1, complex)
        for axis, n in times.items():
            factor = factor * (1j * np.asarray(waves[axis], float)) ** n
        total = total + size * factor
    if not order or not lead:
        return None
    return np.asarray((-total / lead) ** (1.0 / order), complex)


def fastest_rates(problem: Problem, modes: Mapping[str, int]) -> Complex:
    """Rates of the highest waves that modes per space axis hold, one per equation that has them."""
    turns = {n: count * (1.0 if isinstance(problem.domain[n], Periodic) else 0.5) for n, count in modes.items()}
    waves = {n: 2.0 * np.pi * count / problem.domain[n].length for n, count in turns.items()}
    found = [rates(problem, statement, waves) for statement in problem.statements if statement.is_equation]
    return np.concatenate([np.zeros(0, complex), *(np.ravel(f) for f in found if f is not None)])
