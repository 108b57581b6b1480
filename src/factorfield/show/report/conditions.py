"""What a report says about conditions: in words, and how far the solution is from what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from factorfield.errors import Advice
from factorfield.problem.problem import Statement
from factorfield.show.formula import vanishing
from factorfield.show.views import chosen_sigmas
from factorfield.solution import Solution

TOO_FAR = 3.0  # sigmas, root mean square: a solution this far from its data does not explain them
MISSED = ("contradiction", "misfit")  # kinds of advice that say so already


@dataclass(frozen=True)
class Condition:
    """A measured or stated condition, as a row of the report's table."""

    name: str
    formula: str
    where: tuple[tuple[str, str], ...]  # each axis with its place or range
    count: int | None  # of measured values; None: a statement about a face
    sigma: str
    misfit: float | None  # root mean square distance of the mean from the values, in sigmas
    gaussian: bool  # other noise allows values far away

    @property
    def too_far(self) -> bool:
        return self.misfit is not None and self.misfit > TOO_FAR


def conditions(solution: Solution) -> list[Condition]:
    chosen = chosen_sigmas(solution)
    stated = [statement for statement in solution.problem.statements if statement.kind != "equation"]
    return [_row(solution, statement, chosen) for statement in stated]


def _row(solution: Solution, statement: Statement, chosen: Mapping[str, float]) -> Condition:
    text = statement.relation.text
    if statement.points is None:
        where = tuple((name, f"= {value:g}") for name, value in (statement.face or {}).items())
        if statement.wall is not None:
            place = statement.name.removeprefix("boundary").partition(":")[0].strip()
            where = (("", f"the boundary, {place}" if place else "all of the boundary"),)
    else:
        where = tuple((name, _range(float(x.min()), float(x.max()))) for name, x in statement.points.items())
    return Condition(
        name=statement.name,
        formula=vanishing(text) if statement.points is None else text,
        where=where,
        count=None if statement.points is None else len(statement.target),
        sigma=_sigma(statement, chosen),
        misfit=_misfit(solution, statement, chosen),
        gaussian=statement.noise is None,
    )


def _range(low: float, high: float) -> str:
    return f"= {low:.4g}" if low == high else f"from {low:.3g} to {high:.3g}"


def _sigma(statement: Statement, chosen: Mapping[str, float]) -> str:
    if statement.sigma is None:
        used = chosen.get(statement.name)
        return "by the model" if used is None else f"{rounded(used)} (chosen)"
    low, high = float(np.min(statement.sigma)), float(np.max(statement.sigma))
    return rounded(low) if low == high else f"{rounded(low)} to {rounded(high)}"


def _misfit(solution: Solution, statement: Statement, chosen: Mapping[str, float]) -> float | None:
    used = chosen.get(statement.name) if statement.sigma is None else statement.sigma
    if statement.points is None or used is None or statement.stencil:  # a stencil measured no point
        return None
    seen = solution.posterior.predict(statement.points, statement.relation.text, points=True)
    distance = (np.asarray(seen["mean"], float) - statement.target) / used
    return float(np.sqrt(np.mean(distance**2)))


def unexplained(stated: Sequence[Condition], given: Sequence[Advice]) -> list[str]:
    """Warnings about measurements that the solution does not explain, where its method gave no advice about them."""
    told = {advice.about for advice in given if advice.kind in MISSED}
    return [
        f"The solution does not explain the {row.name}: it misses them by {row.misfit:.3g} sigmas (root mean square), "
        "and 1 would be right. Either the equation and the other conditions contradict these values, or a sigma is too "
        "small."
        for row in stated if row.too_far and row.gaussian and row.name not in told
    ]  # fmt: skip


def rounded(value: float, digits: int = 3) -> str:
    return "-" if value != value else f"{float(value):.{digits}g}"
