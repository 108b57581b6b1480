"""Where a statement speaks: its own points, along its wall, or a grid over its face or the domain, inside a region."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorfield.problem.domain import TIME, Domain, Points, normal_along
from factorfield.problem.shape import Shape
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]


def places_of(
    statement: Statement, domain: Domain, shape: Shape | None, along: Mapping[str, ArrayLike]
) -> dict[str, Array]:
    """Points of a statement; `along` gives places on every axis for what holds on a face or everywhere."""
    if statement.points is not None:
        return dict(statement.points)
    if statement.wall is not None:
        assert shape is not None
        count = max(len(np.atleast_1d(along[axis])) for axis in shape.axes)
        points, _ = statement.wall.points(shape.size / count)
        return at_times(points, along.get(TIME))
    face = statement.face or {}
    return inside_of(domain, shape, {n: [face[n]] if n in face else along[n] for n in domain.names})


def at_times(points: Points, times: ArrayLike | None) -> dict[str, Array]:
    """The same places at every instant, if there is time."""
    if times is None:
        return dict(points)
    times = np.asarray(times, float)
    count = len(next(iter(points.values())))
    return {TIME: np.repeat(times, count)} | {name: np.tile(x, len(times)) for name, x in points.items()}


def inside_of(domain: Domain, shape: Shape | None, along: Mapping[str, ArrayLike]) -> dict[str, Array]:
    """The points of a tensor grid that lie in the region; deep inside it where the grid is too wide for it."""
    points = domain.tensor(along)
    if shape is None:
        return points
    inside = shape.contains(points)
    if np.any(inside):
        return {name: x[inside] for name, x in points.items()}
    deep = {name: x[:1] for name, x in shape.parts[0].items()}
    return domain.tensor({**along, **deep})


def everywhere(domain: Domain, shape: Shape | None) -> dict[str, Array]:
    """A few places all over the domain, where coefficients are read. Outside a region they are moved to a place inside,
    so that their number stays; walls look along the diagonal there."""
    points = domain.places()
    if shape is None:
        return points
    inside = shape.contains(points)
    for axis, deep in shape.parts[0].items():
        points[axis] = np.where(inside, points[axis], deep[0])
    return points | {normal_along(axis): np.full(len(inside), np.sqrt(0.5)) for axis in shape.axes}
