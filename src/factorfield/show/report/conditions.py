"""What a report says about conditions: in words, and how far the solution is from what was measured."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.problem.problem import Statement
from factorfield.show.formula import MathML, mathml, symbol, vanishing
from factorfield.solution import Solution

TOO_FAR = 3.0  # sigmas, root mean square: a solution this far from its data does not explain them


def statement_text(statement: Statement) -> str:
    text = statement.relation.text
    return mathml(text if statement.points is not None else vanishing(text))


def place_text(statement: Statement) -> str:
    if statement.points is None:
        return "at " + ", ".join(f"{symbolic(name)} = {value:g}" for name, value in (statement.face or {}).items())
    parts = []
    for name, x in statement.points.items():
        low, high = float(x.min()), float(x.max())
        said = f"= {low:.4g}" if low == high else f"from {low:.3g} to {high:.3g}"
        parts.append(f"{symbolic(name)} {said}")
    return ", ".join(parts)


def _used_sigma(statement: Statement, chosen: Mapping[str, float]) -> float | None:
    if statement.sigma is None:
        return chosen.get(statement.name)
    return float(np.sqrt(np.mean(np.square(statement.sigma))))


def sigma_text(statement: Statement, chosen: Mapping[str, float]) -> str:
    used = _used_sigma(statement, chosen)
    if used is None:
        return "by the model"
    if statement.sigma is None:
        return f"{written(used)} (chosen)"
    low, high = float(np.min(statement.sigma)), float(np.max(statement.sigma))
    return written(low) if low == high else f"{written(low)} to {written(high)}"


def misfit(solution: Solution, statement: Statement, chosen: Mapping[str, float]) -> float | None:
    """Root mean square distance of the mean from the measured values, in sigmas; None where that cannot be said."""
    used = _used_sigma(statement, chosen) if statement.sigma is None else statement.sigma
    if statement.points is None or used is None or statement.stencil:  # a stencil measured no point
        return None
    seen = solution.posterior.predict(statement.points, statement.relation.text, points=True)
    distance = (np.asarray(seen["mean"], float) - statement.target) / used
    return float(np.sqrt(np.mean(distance**2)))


def contradicted(solution: Solution) -> list[str]:
    """Warnings, as plain text, about measurements that the solution does not explain, where its method said nothing."""
    chosen, found = dict(solution.settings.get("sigma") or []), []
    told = " ".join(solution.warnings or ())
    for statement in (s for s in solution.problem.statements if s.name not in told):
        distance = misfit(solution, statement, chosen)
        # other noise than Gaussian allows values far away
        if statement.noise is None and distance is not None and distance > TOO_FAR:
            found.append(
                f"The solution does not explain the {statement.name}: it misses them by {distance:.3g} sigmas (root "
                "mean square), and 1 would be right. Either the equation and the other conditions contradict these "
                "values, or a sigma is too small."
            )
    return found


def written(value: float, digits: int = 3) -> str:
    return "-" if value != value else f"{float(value):.{digits}g}"


def symbolic(name: str) -> str:
    return MathML().whole(symbol(name, MathML()), False)
