"""A problem with a later end of time: all that was said keeps its meaning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from factorfield.errors import expected
from factorfield.problem.conditions import Boundary, Condition
from factorfield.problem.domain import TIME, Interval
from factorfield.problem.problem import Problem


def extended(problem: Problem, end: float) -> Problem:
    """The problem up to a later end. Default distances over which walls are off together stay as they were; the
    truth, which is known up to the old end only, is left out."""
    axis = problem.domain.get(TIME)
    if axis is None or not isinstance(axis, Interval):
        raise expected("a problem with a time axis 't'", f"axes {', '.join(problem.domain.names)}", "ff.solve")
    if isinstance(end, bool) or not isinstance(end, int | float) or not end > axis.upper:
        raise expected(f"a later end of time than {axis.upper:g}", end, f"extend({axis.upper + axis.length:g})")
    statements = problem.statements[len(problem.equations) :]
    conditions: list[Condition] = []
    for condition, statement in zip(problem.conditions, statements, strict=True):
        if isinstance(condition, Boundary) and statement.error is not None:
            condition = replace(condition, length=dict(statement.error.lengths))
        if isinstance(condition, Boundary) and isinstance(condition.at, Mapping) and TIME in condition.at:
            condition = replace(condition, inside=True)  # what was the end is one instant among others
        conditions.append(condition)
    domain = {**problem.domain, TIME: Interval(axis.lower, end)}
    return problem.replace(domain=domain, conditions=conditions, truth=None, stored=None)
