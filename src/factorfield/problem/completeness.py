"""Are there as many conditions as a classical solver would ask for?"""

from __future__ import annotations

import numpy as np

from factorfield.problem.domain import TIME, Interval
from factorfield.problem.problem import Problem
from factorfield.problem.statement import Statement


def missing_conditions(problem: Problem) -> list[str]:
    """Per field and axis, the conditions at its ends where they are fewer than its order there."""
    found = []
    for name in problem.fields:
        for axis in problem.domain.names if problem.shape is None else ():
            order = max(
                dict(jet.orders).get(axis, 0)
                for s in problem.statements if s.kind == "equation"
                for jet in (*s.relation.jets.values(),) if jet.field == name
            )  # fmt: skip
            if not order or not isinstance(problem.domain[axis], Interval):
                continue
            given = sum(
                any(jet.field == name for jet in s.relation.jets.values()) and _at_an_end(problem, s, axis)
                for s in problem.statements
            )
            if given < order:
                where = f"at {axis} = {problem.domain[axis].lower:g}" if axis == TIME else f"at the ends of {axis}"
                found.append(f"{given} of {order} conditions on {name} {where}")
    return found


def _at_an_end(problem: Problem, statement: Statement, axis: str) -> bool:
    ends = (problem.domain[axis].lower, problem.domain[axis].upper)
    if statement.points is not None:
        return bool(np.any(np.isin(statement.points[axis], ends)))
    return statement.face is not None and statement.face.get(axis) in ends
