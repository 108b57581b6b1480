"""Local features over cells of any width: quintic B-splines whose cells are narrow where a field is steep.

Cells follow a monitor, the density of cells that a field asks for: of its first derivatives, each as a rate of change
per length. Every cell holds an equal part of its integral.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import interpolate, linalg

from factorfield.errors import expected
from factorfield.problem.domain import TIME, Axis, Periodic
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
DEGREE = 5
GAUSS_POINTS = 4  # of a cell: products of two splines times a third are integrated nearly exactly
LEAST_CELLS = 12  # along an axis, that may be asked for
# along each of one or two axes: are tried first, are affordable, and are asked for in examples
FEWEST_CELLS, MOST_CELLS, EXAMPLE = {1: 48, 2: 16}, {1: 400, 2: 64}, {1: 64, 2: 32}
DERIVATIVES = 3  # that a monitor reads
LEAST_DENSITY = 0.3  # of the mean: no cell is wider than about three mean ones
SAMPLES = 8  # points of a cell at which a monitor is read
STEEPEST = 1.25  # ratio of the widths of neighbouring cells, about


@dataclass(frozen=True)
class GradedSpline:
    """Splines of maximal smoothness over the cells between `breaks`; on an interval its first and last weight are the
    values at the ends, on a periodic axis there are as many splines as cells."""

    breaks: tuple[float, ...]
    degree: int = DEGREE
    periodic: bool = False

    @property
    def cells(self) -> int:
        return len(self.breaks) - 1

    @property
    def size(self) -> int:
        return self.cells if self.periodic else self.cells + self.degree

    def __call__(self, x: ArrayLike, order: int = 0) -> Array:
        return _features(self, np.atleast_1d(np.asarray(x, float)).tobytes(), order)

    @cached_property
    def knots(self) -> Array:
        inner, p = np.array(self.breaks), self.degree
        if not self.periodic:
            return np.concatenate([np.full(p, inner[0]), inner, np.full(p, inner[-1])])
        length = inner[-1] - inner[0]
        return np.concatenate([inner[-1 - p : -1] - length, inner, inner[1 : p + 1] + length])

    @cached_property
    def quadrature(self) -> tuple[Array, Array]:
        """Gauss points of all cells, and their weights: together the length of the axis."""
        nodes, shares = np.polynomial.legendre.leggauss(GAUSS_POINTS)
        edges = np.array(self.breaks)
        half = 0.5 * np.diff(edges)
        points = (edges[:-1] + half)[:, None] + half[:, None] * nodes
        return points.ravel(), (half[:, None] * shares).ravel()

    @cached_property
    def places(self) -> Array:
        """One for every spline, where it is large: the breaks of a ring, else the means of its inner knots."""
        if self.periodic:
            return np.array(self.breaks[:-1])
        sums = np.cumsum(np.append(0.0, self.knots))
        found = (sums[self.degree + 1 : self.degree + 1 + self.size] - sums[1 : 1 + self.size]) / self.degree
        return np.clip(found, self.breaks[0], self.breaks[-1])

    def spec(self) -> dict[str, Any]:
        return {
            "family": "graded spline", "breaks": list(self.breaks), "degree": self.degree, "periodic": self.periodic,
        }  # fmt: skip

    @staticmethod
    def from_spec(breaks: Sequence[float], degree: int, periodic: bool) -> GradedSpline:
        if np.any(np.diff(breaks) <= 0.0):
            raise expected("breaks of cells in ascending order", "others", "saving it again")
        return GradedSpline(tuple(map(float, breaks)), degree, periodic)


@lru_cache(maxsize=64)  # every window over the same cells asks for the same points
def _features(spline: GradedSpline, x: bytes, order: int) -> Array:
    points, p = np.frombuffer(x), spline.degree
    if spline.periodic:
        lower = spline.breaks[0]
        points = lower + np.mod(points - lower, spline.breaks[-1] - lower)
    raw = interpolate.BSpline(spline.knots, np.eye(len(spline.knots) - p - 1), p)(points, nu=order)
    if spline.periodic:  # the last splines are the first ones, seen around the ring
        raw[:, :p] += raw[:, spline.cells :]
        raw = np.ascontiguousarray(raw[:, : spline.cells])
    raw.flags.writeable = False
    return np.asarray(raw, float)


def uniform(axis: Axis, cells: int) -> GradedSpline:
    edges = np.linspace(axis.lower, axis.upper, cells + 1)
    return GradedSpline(tuple(map(float, edges)), periodic=isinstance(axis, Periodic))


def may_not_follow(problem: Problem) -> str:
    """Why windows over cells cannot solve a problem; empty where they can."""
    equations = [s.relation for s in problem.statements if s.kind == "equation"]
    for name in problem.fields:
        orders = [dict(jet.orders).get(TIME, 0) for r in equations for jet in r.jets.values() if jet.field == name]
        if max(orders, default=0) != 1:
            return f"time derivatives of {name} of order {max(orders, default=0)}"
    return ""


def first_cells(
    problem: Problem, cells: Mapping[str, int] | str, modes: Mapping[str, int] | None
) -> dict[str, GradedSpline]:
    """Equal cells to begin with, as many as asked for or, of "auto", few."""
    space = problem.domain.space
    if not 1 <= len(space) <= 2 or modes is not None:
        received = "modes= beside it" if modes is not None else f"{len(space)} of them"
        raise expected("cells= along one or two axes of space for method='chain'", received, "method='tree'")
    if may_not_follow(problem):
        raise expected("equations of first order in time with cells=", may_not_follow(problem), "leaving cells= out")
    example = f"cells={{{', '.join(f'{axis!r}: {EXAMPLE[len(space)]}' for axis in space)}}}"
    if isinstance(cells, str) and cells != "auto":
        raise expected("cells='auto' or a number per axis", cells, example)
    asked = dict.fromkeys(space, FEWEST_CELLS[len(space)]) if isinstance(cells, str) else dict(cells)
    if set(asked) != set(space):
        raise expected(f"cells along {' and '.join(space)}", ", ".join(map(str, asked)) or "none", example)
    most = MOST_CELLS[len(space)]
    for axis, count in asked.items():
        whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
        if not whole or not LEAST_CELLS <= count <= most:
            wanted = f"a whole number of cells along {axis} from {LEAST_CELLS} to {most}"
            raise expected(wanted, f"{axis}: {count}", example)
    return {axis: uniform(problem.domain[axis], int(asked[axis])) for axis in space}


def transfer(old: GradedSpline, new: GradedSpline) -> Array:
    """The matrix from weights on old cells to those of the nearest function on new ones, in the mean square.

    On an interval it has the same values and slopes at the ends: there are walls."""
    points, weights = new.quadrature
    root = np.sqrt(weights)[:, None]
    rows, wanted = root * new(points), root * old(points)
    if new.periodic:
        return np.asarray(linalg.lstsq(rows, wanted)[0], float)
    ends, outer = [new.breaks[0], new.breaks[-1]], [0, 1, new.size - 2, new.size - 1]
    found = np.zeros((new.size, old.size))
    said = np.vstack([new(ends), new(ends, 1)])[:, outer]
    found[outer] = linalg.solve(said, np.vstack([old(ends), old(ends, 1)]))
    inside = np.setdiff1d(np.arange(new.size), outer)
    found[inside] = linalg.lstsq(rows[:, inside], wanted - rows[:, outer] @ found[outer])[0]
    return found


def coarser(spline: GradedSpline, share: float = 2.0 / 3.0) -> GradedSpline:
    """Fewer cells that are spread the same way."""
    count = max(int(np.ceil(share * spline.cells)), spline.degree + 1)
    edges = np.interp(np.linspace(0.0, spline.cells, count + 1), np.arange(spline.cells + 1), spline.breaks)
    return replace(spline, breaks=tuple(map(float, edges)))


def monitor(spline: GradedSpline, weights: Array, scale: float, at: Array) -> Array:
    """How many cells per length a field of given weights and size asks for at points."""
    density = np.zeros(len(at))
    for order in range(1, DERIVATIVES + 1):
        slope = np.abs(spline(at, order) @ weights) / scale
        density = np.maximum(density, slope ** (1.0 / order))
    return density


def sampling(spline: GradedSpline) -> Array:
    """Points at which a monitor is read: several in every cell, and the breaks."""
    edges = np.array(spline.breaks)
    inside = edges[:-1, None] + np.diff(edges)[:, None] * np.arange(SAMPLES) / SAMPLES
    return np.append(inside.ravel(), edges[-1])


def cells_of(axis: Axis, cells: int, at: Array, density: Array) -> GradedSpline:
    """`cells` cells, each with an equal part of a density given at points from end to end; neighbours differ little."""
    width = 1.0 / np.maximum(density, LEAST_DENSITY * np.trapezoid(density, at) / axis.length + 1e-300)
    for _ in range(4):  # a bound on the slope makes cells narrower, so that there are too many: all are widened
        width *= _integral(1.0 / width, at)[-1] / cells
        width = _slowly_growing(width, at, np.log(STEEPEST), isinstance(axis, Periodic))
    sums = _integral(1.0 / width, at)
    edges = np.interp(np.linspace(0.0, sums[-1], cells + 1), sums, at)
    edges[0], edges[-1] = axis.lower, axis.upper
    return GradedSpline(tuple(map(float, edges)), periodic=isinstance(axis, Periodic))


def _integral(values: Array, at: Array) -> Array:
    return np.concatenate([[0.0], np.cumsum(0.5 * (values[1:] + values[:-1]) * np.diff(at))])


def _slowly_growing(width: Array, at: Array, slope: float, periodic: bool) -> Array:
    """The largest function below `width` whose slope is nowhere larger."""
    if periodic:
        length = at[-1] - at[0]
        at, width = np.concatenate([at - length, at, at + length]), np.tile(width, 3)
    forward = np.minimum.accumulate(width - slope * at) + slope * at
    both = np.minimum.accumulate((forward + slope * at)[::-1])[::-1] - slope * at
    return both[len(both) // 3 : 2 * (len(both) // 3)] if periodic else both
