"""The prior of a start over cells, of which labels tell: a Matern process whose size and length their evidence finds.

Splines over narrow cells would follow the noise of labels. A process does not know of cells: its values at as many
places as there are splines give the covariance of their weights.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

from factorfield.model.basis import Family
from factorfield.model.graded import GradedSpline
from factorfield.model.spectrum import FEWEST_LABELS
from factorfield.problem.domain import TIME, Axis, Periodic
from factorfield.problem.problem import Problem
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]
MOST_LABELS = 300  # of many, so many evenly chosen ones tell size and length
NOISE = 0.1  # of the labels' size: where the search for a noise that is not given begins
FIRST_LENGTH, SPREAD = 0.2, 1.0  # of the axis; and of the logarithms of length and size
JITTER = 1e-9  # of the variance


def start_roots(problem: Problem, families: Mapping[str, Family], offsets: Mapping[str, float]) -> dict[str, Array]:
    """By field whose start over cells only labels tell, a root of the prior of its weights."""
    found: dict[str, Array] = {}
    for name, cells in families.items():
        for statement in problem.statements if isinstance(cells, GradedSpline) else ():
            field = _labelled(problem, statement)
            if field is None or field in found or statement.points is None:
                continue
            sigma = None if statement.sigma is None else float(np.sqrt(np.mean(np.square(statement.sigma))))
            values, axis = statement.target - offsets.get(field, 0.0), problem.domain[name]
            assert isinstance(cells, GradedSpline)
            found[field] = root_on(cells, axis, *size_and_length(statement.points[name], values, axis, sigma))
    return found


def _labelled(problem: Problem, statement: Statement) -> str | None:
    """The field whose values at the start a statement's labels are, enough of them to tell a length."""
    linear = len(statement.relation.jets) == 1 and statement.relation.is_linear
    if statement.points is None or not linear or len(statement.target) < FEWEST_LABELS or statement.jet.orders:
        return None
    return statement.jet.field if np.all(statement.points[TIME] == problem.domain[TIME].lower) else None


def kernel(gap: Array, axis: Axis, length: float) -> Array:
    """Of smoothness 5/2 and unit variance; on a ring, distances are those across the circle."""
    if isinstance(axis, Periodic):
        gap = axis.length / np.pi * np.sin(np.pi * gap / axis.length)
    scaled = np.sqrt(5.0) * np.abs(gap) / length
    return np.asarray((1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled), float)


def size_and_length(x: Array, y: Array, axis: Axis, sigma: float | None) -> tuple[float, float]:
    """That maximise the evidence of labels y about zero at x; `sigma` fixes their noise."""
    chosen = np.linspace(0, len(x) - 1, min(len(x), MOST_LABELS)).astype(int)
    order = np.argsort(x)[chosen]
    x, y = x[order], y[order]
    gap, size = x[:, None] - x, float(np.sqrt(np.mean(y**2))) or 1.0
    middle = np.log([size, FIRST_LENGTH * axis.length, NOISE * size])[: 2 if sigma is not None else 3]

    def negative_evidence(theta: Array) -> float:
        std, length, *noise = np.exp(np.clip(theta, middle - 8.0, middle + 8.0))
        level = sigma if sigma is not None else noise[0]
        covariance = std**2 * kernel(gap, axis, length) + (level**2 + JITTER * std**2) * np.eye(len(x))
        factor = linalg.cholesky(covariance, lower=True, check_finite=False)
        white = linalg.solve_triangular(factor, y, lower=True, check_finite=False)
        away = (theta - middle)[:2] / SPREAD
        return float(0.5 * white @ white + np.sum(np.log(np.diag(factor))) + 0.5 * away @ away)

    found = optimize.minimize(negative_evidence, middle, method="Nelder-Mead", options={"xatol": 0.02, "fatol": 0.02})
    return float(np.exp(found.x[0])), float(np.exp(found.x[1]))


def root_on(cells: GradedSpline, axis: Axis, std: float, length: float) -> Array:
    """A root of the covariance of a process's weights over cells."""
    if cells.periodic:
        places = np.array(cells.breaks[:-1])
    else:  # the means of each spline's inner knots
        sums = np.cumsum(np.append(0.0, cells.knots))
        places = (sums[cells.degree + 1 : cells.degree + 1 + cells.size] - sums[1 : 1 + cells.size]) / cells.degree
        places = np.clip(places, axis.lower, axis.upper)
    covariance = kernel(places[:, None] - places, axis, length) + JITTER * np.eye(len(places))
    return np.asarray(std * linalg.solve(cells(places), linalg.cholesky(covariance, lower=True)), float)
