"""Beside the places of a region's boundary where fields are singular an equation counts less.

With the angle w inside, a field goes like r^(pi/w) about a re-entrant corner, and like r^(1/2) where a value is told on
one side of a place on a straight wall and a flux on the other. The squares of its second derivatives have no integral
there: asked alike everywhere, the equation would be met best by a field without its singular part, however small the
cells. What r^(5/3) times its residual says, such a field can meet. So can it r^2 times what is said of its slopes on
the walls there: on both sides of a corner u_n = 0, as smooth splines meet it, would keep all flux from passing. Of the
powers of r tried, these follow values and fluxes past a corner best, though still slowly: the answer is unresolved, and
says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from factorfield.problem.domain import Points
from factorfield.problem.problem import Problem
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]
POWER = 5.0 / 3.0  # of the distance, by which an equation counts
FLUX_POWER = 2.0  # the same for conditions on slopes
NEAR = 0.25  # of the box: how far from such a place an equation counts less, at most
STRAIGHT = 0.9  # of a straight angle: from here on a change from values to fluxes is singular
TOGETHER = 1e-6  # of the box: ends of walls that meet


@dataclass(frozen=True, eq=False)
class Singular:
    """A place, and how far from it an equation counts less: up to half of the way to the next end of a wall."""

    place: Array
    reach: float


@lru_cache(maxsize=8)  # models of one problem on smaller and smaller cells ask again
def singular_places(problem: Problem) -> tuple[Singular, ...]:
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
    every = np.array([*shape.boundary.ends, *(end for wall, _ in walls for end in wall.ends)])
    reaches = []
    for place in found:
        away = np.hypot(*(every - place).T)
        reaches.append(float(min([NEAR * shape.size, *(0.5 * away[away > TOGETHER * shape.size])])))
    return tuple(Singular(place, reach) for place, reach in zip(found, reaches, strict=True))


def reads_slopes(statement: Statement) -> bool:
    """Does it speak of a derivative?"""
    return any(jet.orders for jet in statement.relation.jets.values())


def shares_beside(points: Points, problem: Problem, power: float = POWER) -> Array:
    """How much an equation counts at points: 1 far from all such places."""
    shape = problem.shape
    assert shape is not None
    found = np.ones(len(points[shape.axes[0]]))
    for singular in singular_places(problem):
        x, y = (points[axis] - at for axis, at in zip(shape.axes, singular.place, strict=True))
        found = np.minimum(found, (np.hypot(x, y) / singular.reach) ** power)
    return found
