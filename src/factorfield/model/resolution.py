"""How many modes the known functions in a problem need: sources, coefficients and walls given as formulas or tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from factorfield.model.symbol import typical_parameters
from factorfield.problem.domain import Interval
from factorfield.problem.problem import Problem, Statement
from factorfield.problem.relation import evaluate_coefficient

Array = NDArray[np.float64]
HELD = 1e-5  # of a function's size: what its left-out coefficients may carry
ALONG, ACROSS = 512, 17  # points along the axis that is asked about, and along each other one


def modes_of_functions(problem: Problem, axis: str) -> int:
    """The fewest frequencies (periodic) or lowest degree (interval) along an axis that holds them; 0 without any."""
    spoken = [s for s in problem.statements if s.points is None and axis not in (s.face or {})]
    return max((_modes_of(problem, statement, axis) for statement in spoken), default=0)


def _modes_of(problem: Problem, statement: Statement, axis: str) -> int:
    where = problem.domain[axis]
    face = statement.face or {}
    axes = {
        name: where.collocation(ALONG) if name == axis
        else np.array([face[name]]) if name in face else problem.domain[name].cells(ACROSS)
        for name in problem.domain.names
    }  # fmt: skip
    points = problem.domain.tensor(axes)
    values = {**{str(symbol): 1.0 for symbol in statement.relation.jets}, **typical_parameters(problem)}
    try:
        with np.errstate(all="ignore"):
            found = evaluate_coefficient(statement.relation.expression, values, points)
    except (TypeError, ValueError, ZeroDivisionError):
        return 0
    if np.ndim(found) == 0 or not np.all(np.isfinite(found)):
        return 0
    table = np.moveaxis(
        np.reshape(found, [len(axes[name]) for name in problem.domain.names]), problem.domain.names.index(axis), 0
    )
    coefficients = fft.dct(table, axis=0) / ALONG if isinstance(where, Interval) else np.fft.rfft(table, axis=0) / ALONG
    carried = np.abs(coefficients).reshape(len(coefficients), -1).max(axis=1)
    return int(np.flatnonzero(carried > HELD * carried.max(initial=0.0))[-1]) if carried.max() > 0.0 else 0
