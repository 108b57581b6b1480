"""Functions along one axis: B-splines with any knots on a line or a ring, Fourier modes on a ring.

A basis is read locally: at a point few functions of a spline differ from zero, and all modes do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.errors import expected

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
DEGREE = 5
LEFT, RIGHT = 0, 1


@dataclass(frozen=True, eq=False)
class Line:
    """Cells along an axis: points of integration (cells, points), their weights, and the functions that each reads."""

    points: Array
    weights: Array
    index: Indices  # (cells, functions)
    basis: Basis

    def table(self, order: int) -> Array:
        """Derivatives of the functions of every cell at its points, (cells, points, functions)."""
        _, values = self.basis.local(self.points.ravel(), order)
        return values.reshape(*self.points.shape, -1)


class Basis(Protocol):
    """Functions along one axis."""

    @property
    def size(self) -> int: ...

    @property
    def ends(self) -> tuple[float, float]:
        """Of the axis."""
        ...

    @property
    def places(self) -> Array:
        """A place for every function at which it is large."""
        ...

    def local(self, x: Array, order: int = 0) -> tuple[Indices, Array]:
        """Which functions differ from zero at points, (points, functions), and their derivatives there."""
        ...

    @property
    def line(self) -> Line: ...

    def spec(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Spline:
    """B-splines over the cells between `breaks`; a break that is repeated r times makes them C^(degree - r)."""

    breaks: tuple[float, ...]
    degree: int = DEGREE
    periodic: bool = False

    @staticmethod
    def uniform(lower: float, upper: float, cells: int, degree: int = DEGREE, periodic: bool = False) -> Spline:
        count = max(cells, degree + 1) if periodic else cells
        return Spline(tuple(map(float, np.linspace(lower, upper, count + 1))), degree, periodic)

    @property
    def size(self) -> int:
        return len(self.breaks) - 1 + (0 if self.periodic else self.degree)

    @property
    def ends(self) -> tuple[float, float]:
        return self.breaks[0], self.breaks[-1]

    @cached_property
    def edges(self) -> Array:
        """Of the cells."""
        return np.unique(self.breaks)

    @cached_property
    def knots(self) -> Array:
        inner, p = np.array(self.breaks), self.degree
        if not self.periodic:
            return np.concatenate([np.full(p, inner[0]), inner, np.full(p, inner[-1])])
        length = inner[-1] - inner[0]
        return np.concatenate([inner[-1 - p : -1] - length, inner, inner[1 : p + 1] + length])

    @cached_property
    def places(self) -> Array:
        sums = np.cumsum(np.append(0.0, self.knots))
        means = (sums[self.degree + 1 : self.degree + 1 + self.size] - sums[1 : 1 + self.size]) / self.degree
        if self.periodic:
            lower = self.breaks[0]
            return np.asarray(lower + np.mod(means - lower, self.breaks[-1] - lower), float)
        return np.clip(means, self.breaks[0], self.breaks[-1])

    def local(self, x: Array, order: int = 0) -> tuple[Indices, Array]:
        x, p, knots = np.asarray(x, float), self.degree, self.knots
        lower, upper = self.breaks[0], self.breaks[-1]
        if self.periodic:
            x = lower + np.mod(x - lower, upper - lower)
        last = len(knots) - p - 2
        span = np.clip(np.searchsorted(knots, x, side="right") - 1, p, last)
        while np.any(empty := knots[span] == knots[span + 1]):  # at the upper end: the last cell that is not empty
            span = np.where(empty, span - 1, span)
        index = span[:, None] + np.arange(-p, 1)
        values = _values(knots, span, x, p - order) if order <= p else np.zeros((len(x), 1))
        for degree in range(p - order + 1, p + 1) if order <= p else ():
            values = _raised(knots, span, values, degree)
        if order > p:
            values = np.zeros((len(x), p + 1))
        return (index % self.size if self.periodic else index), values

    @cached_property
    def line(self) -> Line:
        """Gauss points: fewer than would integrate products exactly, as many as the order of convergence asks for."""
        nodes, shares = np.polynomial.legendre.leggauss(self.degree // 2 + 2)
        half = 0.5 * np.diff(self.edges)[:, None]
        points = self.edges[:-1, None] + half * (1.0 + nodes)
        index, _ = self.local(points[:, 0])
        return Line(points, half * shares, index, self)

    def spec(self) -> dict[str, Any]:
        return {"breaks": list(self.breaks), "degree": self.degree, "periodic": self.periodic}


def _values(knots: Array, span: Indices, x: Array, degree: int) -> Array:
    """The recursion of Cox and de Boor for all points at once: the `degree + 1` splines that differ from zero."""
    values = np.ones((len(x), 1))
    for p in range(1, degree + 1):
        grown = np.zeros((len(x), p + 1))
        for j in range(p):
            left, right = knots[span - p + 1 + j], knots[span + 1 + j]
            share = values[:, j] / (right - left)
            grown[:, j] += (right - x) * share
            grown[:, j + 1] += (x - left) * share
        values = grown
    return values


def _raised(knots: Array, span: Indices, values: Array, degree: int) -> Array:
    """Derivatives of splines from one lower derivative of splines of one lower degree."""
    grown = np.zeros((len(values), degree + 1))
    for j in range(degree):
        share = degree * values[:, j] / (knots[span + 1 + j] - knots[span - degree + 1 + j])
        grown[:, j] -= share
        grown[:, j + 1] += share
    return grown


@dataclass(frozen=True)
class Fourier:
    """1, sin(2 pi s), cos(2 pi s), sin(4 pi s), ... with s = (x - lower) / period: `modes` frequencies."""

    modes: int
    lower: float
    period: float

    @property
    def size(self) -> int:
        return 2 * self.modes + 1

    @property
    def ends(self) -> tuple[float, float]:
        return self.lower, self.lower + self.period

    @cached_property
    def places(self) -> Array:
        return self.lower + self.period * np.arange(self.size) / self.size

    def local(self, x: Array, order: int = 0) -> tuple[Indices, Array]:
        x = np.asarray(x, float)
        rate = 2.0 * np.pi * np.arange(1, self.modes + 1) / self.period
        angle = np.outer(x - self.lower, rate)
        sine, cosine = np.sin(angle), np.cos(angle)
        for _ in range(order % 4):  # d sin = cos, d cos = -sin
            sine, cosine = cosine, -sine
        values = np.empty((len(x), self.size))
        values[:, 0] = 1.0 if order == 0 else 0.0
        values[:, 1::2], values[:, 2::2] = sine * rate**order, cosine * rate**order
        return np.broadcast_to(np.arange(self.size), values.shape), values

    @cached_property
    def line(self) -> Line:
        """Equal points, twice as many as functions: products of up to three are integrated exactly."""
        count = 2 * self.size
        points = self.lower + self.period * np.arange(count)[None, :] / count
        weights = np.full((1, count), self.period / count)
        return Line(points, weights, np.arange(self.size)[None, :], self)

    def spec(self) -> dict[str, Any]:
        return {"modes": self.modes, "lower": self.lower, "period": self.period}


def basis_from_spec(spec: Mapping[str, Any]) -> Basis:
    if "modes" in spec:
        return Fourier(int(spec["modes"]), float(spec["lower"]), float(spec["period"]))
    breaks = tuple(map(float, spec["breaks"]))
    degree, periodic = int(spec["degree"]), bool(spec["periodic"])
    if np.any(np.diff(breaks) < 0.0) or len(breaks) < 2:
        raise expected("breaks of cells in ascending order", "others", "saving it again")
    repeated = int(np.max(np.unique(breaks, return_counts=True)[1]))
    if degree < 1 or repeated > degree or (periodic and len(breaks) < degree + 2):
        raise expected("splines of a degree that their breaks allow", f"degree {degree}", "saving it again")
    return Spline(breaks, degree, periodic)


def dense(basis: Basis, x: Array, order: int = 0) -> Array:
    """All functions at points, (points, functions)."""
    index, values = basis.local(x, order)
    result = np.zeros((len(x), basis.size))
    np.put_along_axis(result, index, values, axis=1)
    return result


def transfer(old: Basis, new: Basis) -> Array:
    """From coefficients of a function to those of the nearest one in another basis, in the mean square."""
    fine = max(old, new, key=lambda basis: basis.size).line
    x, root = fine.points.ravel(), np.sqrt(fine.weights.ravel())[:, None]
    return np.asarray(linalg.lstsq(root * dense(new, x), root * dense(old, x))[0], float)


@dataclass(frozen=True)
class Held:
    """A linear condition at an end of an axis: a combination of derivatives that a wall settles."""

    end: int  # LEFT or RIGHT
    shares: tuple[tuple[int, float], ...]  # (order of the derivative, its coefficient)


@dataclass(frozen=True, eq=False)
class AxisWeighting:
    """Test functions along an axis: those that vanish where conditions hold; a condition settles one function each."""

    settled: Mapping[Held, int]
    shares: Array | None  # (functions, functions): column j holds the test function j in the basis; None: all of them

    def table(self, line: Line) -> tuple[Indices, Array]:
        """The row of every test function, -1 for none, and its values, (cells, points, functions)."""
        values = line.table(0)
        if self.shares is None:
            return line.index, values
        local = self.shares[line.index[:, :, None], line.index[:, None, :]]
        rows = np.where(np.isin(line.index, list(self.settled.values())), -1, line.index)
        return rows, values @ local


def vanishing_weighting(basis: Basis, held: Sequence[Held]) -> AxisWeighting:
    """At each end the outermost functions are settled by its conditions; the others take a share of these."""
    if not held:
        return AxisWeighting({}, None)
    assert isinstance(basis, Spline) and not basis.periodic
    settled: dict[Held, int] = {}
    shares = np.eye(basis.size)
    for end in (LEFT, RIGHT):
        conditions = [condition for condition in held if condition.end == end]
        if not conditions:
            continue
        outer = np.arange(len(conditions)) if end == LEFT else basis.size - 1 - np.arange(len(conditions))
        rows = np.array([_row(basis, condition) for condition in conditions])
        rows /= np.abs(rows).max(axis=1, keepdims=True)
        inner = np.setdiff1d(np.arange(basis.size), outer)
        shares[:, outer] = 0.0
        try:
            shares[np.ix_(outer, inner)] += -linalg.solve(rows[:, outer], rows[:, inner])
        except linalg.LinAlgError:
            raise expected("conditions at an end that differ", "one twice", "leaving one out") from None
        settled |= {condition: int(number) for condition, number in zip(conditions, outer, strict=True)}
    return AxisWeighting(settled, shares)


def _row(basis: Spline, condition: Held) -> Array:
    place, row = np.array([basis.breaks[0 if condition.end == LEFT else -1]]), np.zeros(basis.size)
    for order, share in condition.shares:
        index, values = basis.local(place, order)
        row[index[0]] += share * values[0]
    return row
