"""The prior of a start over cells, of which labels tell: a Matern process whose size and length their evidence finds.

Splines over narrow cells would follow the noise of labels. A process does not know of cells: its values at as many
places as there are splines give the covariance of their weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    cells = {name: own for name, own in families.items() if isinstance(own, GradedSpline)}
    for statement in problem.statements if cells else ():
        field = _labelled(problem, statement)
        if field is None or field in found or statement.points is None:
            continue
        sigma = None if statement.sigma is None else float(np.sqrt(np.mean(np.square(statement.sigma))))
        values, axes = statement.target - offsets.get(field, 0.0), [problem.domain[name] for name in cells]
        places = [statement.points[name] for name in cells]
        std, lengths = size_and_lengths(places, values, axes, sigma)
        root = np.full((1, 1), std)
        for own, axis, length in zip(cells.values(), axes, lengths, strict=True):
            root = np.asarray(np.kron(root, root_on(own, axis, length)), float)
        found[field] = root
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


def size_and_lengths(
    places: Sequence[Array], y: Array, axes: Sequence[Axis], sigma: float | None
) -> tuple[float, list[float]]:
    """Of a product of processes, that maximise the evidence of labels y about zero at places; `sigma` fixes their
    noise."""
    order = np.lexsort(tuple(reversed(places)))[np.linspace(0, len(y) - 1, min(len(y), MOST_LABELS)).astype(int)]
    y = y[order]
    gaps, size = [x[order][:, None] - x[order] for x in places], float(np.sqrt(np.mean(y**2))) or 1.0
    first = [size, *(FIRST_LENGTH * axis.length for axis in axes), NOISE * size]
    middle = np.log(first)[: len(first) - (sigma is not None)]

    def negative_evidence(theta: Array) -> float:
        std, *rest = np.exp(np.clip(theta, middle - 8.0, middle + 8.0))
        lengths, level = rest[: len(axes)], sigma if sigma is not None else rest[-1]
        shapes = [kernel(gap, axis, length) for gap, axis, length in zip(gaps, axes, lengths, strict=True)]
        covariance = std**2 * np.prod(shapes, axis=0) + (level**2 + JITTER * std**2) * np.eye(len(y))
        factor = linalg.cholesky(covariance, lower=True, check_finite=False)
        white = linalg.solve_triangular(factor, y, lower=True, check_finite=False)
        away = (theta - middle)[: 1 + len(axes)] / SPREAD
        return float(0.5 * white @ white + np.sum(np.log(np.diag(factor))) + 0.5 * away @ away)

    found = optimize.minimize(negative_evidence, middle, method="Nelder-Mead", options={"xatol": 0.02, "fatol": 0.02})
    std, *lengths = np.exp(found.x[: 1 + len(axes)])
    return float(std), [float(length) for length in lengths]


def root_on(cells: GradedSpline, axis: Axis, length: float) -> Array:
    """A root of the covariance of the weights over cells of a process of unit variance."""
    places = cells.places
    covariance = kernel(places[:, None] - places, axis, length) + JITTER * np.eye(len(places))
    return np.asarray(linalg.solve(cells(places), linalg.cholesky(covariance, lower=True)), float)
