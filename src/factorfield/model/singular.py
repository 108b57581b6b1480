"""Beside the places of a region's boundary where fields are singular an equation counts less.

With the angle w inside, a field goes like r^(pi/w) about a re-entrant corner, and like r^(1/2) where a value is told on
one side of a place on a straight wall and a flux on the other. The squares of its second derivatives have no integral
there: asked alike everywhere, the equation would be met best by a field without its singular part, however small the
cells. What r^2 times its residual says, such a field can meet.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from factorfield.problem.domain import Points
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
NEAR = 0.25  # of the box: how far from such a place an equation counts less
STRAIGHT = 0.9  # of a straight angle: from here on a change from values to fluxes is singular
TOGETHER = 1e-6  # of the box: ends of walls that meet


@lru_cache(maxsize=8)  # models of one problem on smaller and smaller cells ask again
def singular_places(problem: Problem) -> tuple[Array, ...]:
    """Re-entrant corners, and where conditions of another kind meet."""
    shape = problem.shape
    if shape is None:
        return ()
    found = list(shape.reentrant_corners)
    walls = [
        (s.wall, {jet.orders for jet in s.relation.jets.values()}) for s in problem.statements if s.wall is not None
    ]
    for index, (first, reads) in enumerate(walls):
        for second, others in walls[:index]:
            near = TOGETHER * shape.size
            meet = [p for p in first.ends if reads != others and any(np.hypot(*(p - q)) < near for q in second.ends)]
            found += [place for place in meet if shape.angle(place) > STRAIGHT * np.pi]
    return tuple(found)


def shares_beside(points: Points, problem: Problem) -> Array:
    """How much an equation counts at points: 1 far from all such places."""
    shape = problem.shape
    assert shape is not None
    found = np.ones(len(points[shape.axes[0]]))
    for place in singular_places(problem):
        x, y = (points[axis] - at for axis, at in zip(shape.axes, place, strict=True))
        found *= np.minimum(np.hypot(x, y) / (NEAR * shape.size), 1.0) ** 2
    return found
