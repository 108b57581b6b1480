"""Equations of a region at one instant: as many rows as splines over its box.

An equation is seen through all splines, at Gauss points of the region. Walls are added to its rows: a flux takes the
place of the one that an integration by parts of the second derivatives leaves on the wall, a value is held by
Nitsche's method, in its skew form. Either way waves cannot grow by what cells the wall cuts, however little of them is
inside. All rows vanish for the true field, whatever the weights of the points. Splines outside continue the field.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse import linalg as sparse_linalg

from factorfield.model.graded import GradedSpline
from factorfield.model.instants import (
    Instants,
    Matrix,
    Reading,
    Seen,
    formula_of,
    instants_of,
    may_be_square,
    said_at_start,
    start_on_grid,
)  # fmt: skip
from factorfield.model.model import WindowModel, is_standing
from factorfield.model.windowed import quadrature_weights
from factorfield.problem.domain import TIME, Orders, normal_along
from factorfield.problem.shape import Shape
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]
SMOOTH = 1e-8  # of rates over the whole horizon: what splines outside are told by
ROUNDING = 1e-12
PENALTY = 20.0  # of a value on a wall, in units of what conducts over the width of a cell
LINES = 6  # Gauss lines of a cut cell, and points of each piece of one inside
SAMPLES = 12  # points of a line by which its pieces are found
HALVINGS = 40


def equations_of(model: WindowModel) -> Instants | None:
    """Of a model of a plane or of a region in it; None where rows are not as many as coefficients."""
    return instants_of(model) if model.problem.shape is None else _of_region(model, model.problem.shape)


def _of_region(model: WindowModel, shape: Shape) -> Instants | None:
    """Of one field; None where its walls are neither values nor fluxes."""
    problem = model.problem
    standing = [s for s in problem.statements if is_standing(s)]
    if len(problem.fields) > 1 or set(shape.axes) != set(model.local) or not may_be_square(model, standing):
        return None
    sigmas = dict(zip((s.name for s in problem.statements), model.sigmas, strict=True))
    (equation,) = (s for s in problem.statements if s.kind == "equation")
    region = _Inside(model, shape)
    groups = [region.equation(equation, float(np.max(sigmas[equation.name].value)))]
    for statement in standing:
        if statement.kind == "boundary":
            found = region.wall(statement, equation)
            if found is None:
                return None
            groups.append(found)
    return Instants(tuple(groups), (region.size,), region.beyond, features_at(region.cells, region.points, ()))


def start_of(model: WindowModel) -> Array | None:
    """The state at the start by formulas of all fields, nearest in the mean square; None where there are none."""
    shape, problem = model.problem.shape, model.problem
    if shape is None:
        return start_on_grid(model)
    told = [s for s in problem.statements if formula_of(problem, s) is not None]
    if len(told) != 1 or len(problem.fields) > 1:
        return None
    region = _Inside(model, shape)
    value, slope = said_at_start(model, told[0], region.points)
    values = features_at(region.cells, region.points, ())
    seen = values.T @ sparse.diags(region.weights)
    curvature = seen @ values + problem.domain[TIME].length * region.beyond
    return np.asarray(sparse_linalg.spsolve(sparse.csc_matrix(curvature), seen @ (-value / slope)), float)


class _Inside:
    """Points of a region, and splines there."""

    def __init__(self, model: WindowModel, shape: Shape) -> None:
        self.model, self.shape, self.cells = model, shape, model.local
        self.size = int(np.prod([own.size for own in self.cells.values()]))
        domain = model.problem.domain
        noise = [float(np.sum(quadrature_weights(domain[a], own, own.quadrature[0]))) for a, own in self.cells.items()]
        self._per_area = float(np.prod(noise)) / float(np.prod([domain[axis].length for axis in self.cells]))
        self.points, weights, self._outside = quadrature_inside(self.cells, shape)
        self.weights = self._per_area * weights

    @cached_property
    def beyond(self) -> Matrix:
        """Rows by which splines outside continue the field: third derivatives there, squared, are least."""
        points, weights = self._outside
        (first, x), (second, y) = self.cells.items()
        wide, high = (float(np.mean(np.diff(own.breaks))) for own in (x, y))
        size = SMOOTH * self._per_area / self.model.problem.domain[TIME].length
        found = sparse.csr_matrix((self.size, self.size))
        for along, across, count in ((3, 0, 1.0), (2, 1, 3.0), (1, 2, 3.0), (0, 3, 1.0)):
            orders = tuple((axis, times) for axis, times in ((first, along), (second, across)) if times)
            bend = features_at(self.cells, points, orders) * (wide**along * high**across)
            found = found + size * count * (bend.T @ sparse.diags(weights) @ bend)
        return sparse.csr_matrix(found)

    def equation(self, statement: Statement, sigma: float) -> Seen:
        values = features_at(self.cells, self.points, ())
        through = sparse.csr_matrix(values.T @ sparse.diags(self.weights))
        gram = (through @ values).toarray()
        gram[np.diag_indices_from(gram)] += ROUNDING * np.max(np.diag(gram))  # of splines outside
        root = sparse.csr_matrix(sigma * linalg.cholesky(gram, lower=True))
        return self._seen(statement, self.points, through, root)

    def wall(self, statement: Statement, equation: Statement) -> Seen | None:
        """A condition on a wall, as it is added to the equation's rows."""
        assert statement.wall is not None
        width = min(float(np.diff(own.breaks).min()) for own in self.cells.values())
        points, lengths = statement.wall.points(width)
        own = self._seen(statement, points, sparse.csr_matrix((self.size, len(lengths))), None)
        slope, value = self._sizes(own)
        normal = {axis: points[normal_along(axis)] for axis in self.cells}
        conducts = -self._second(equation, points, normal)  # of a flux out of the region
        if not np.all(np.isfinite(conducts)) or np.any(conducts == 0.0):
            return None
        splines = features_at(self.cells, points, ())
        across = sum(
            sparse.diags(normal[axis]) @ features_at(self.cells, points, ((axis, 1),)) for axis in self.cells
        )  # fmt: skip
        if np.all(slope != 0.0):
            tests = sparse.diags(1.0 / slope) @ splines
        elif np.all(slope == 0.0) and np.all(value != 0.0):
            tests = sparse.diags(1.0 / value) @ (across + PENALTY / width * splines)
        else:
            return None
        through = sparse.csr_matrix(tests.T @ sparse.diags(self._per_area * lengths * conducts))
        return self._seen(statement, points, through, None)

    def _sizes(self, seen: Seen) -> tuple[Array, Array]:
        """What a wall's condition says of the derivative along the normal, and of the value."""
        start = self.model.problem.domain[TIME].lower
        nothing = [np.zeros(self.size)]
        zeta = seen.functionals(nothing, nothing, start)
        _, gradient = seen.relation.value_and_gradient(zeta, seen.constants, seen.at(start))
        slope, value = np.zeros(len(zeta)), np.zeros(len(zeta))
        for number, each in enumerate(seen.readings):
            size = gradient[:, each.functional] * seen.size(number, start)
            if not each.orders:
                value = value + size
            for axis, times in each.orders:
                if axis != TIME and times == 1:
                    slope = slope + size * seen.places[normal_along(axis)]
        return slope, value

    def _second(self, equation: Statement, points: Mapping[str, Array], normal: Mapping[str, Array]) -> Array:
        """The coefficient of the second derivative along the normal, where the field is zero."""
        seen = self._seen(equation, points, sparse.csr_matrix((self.size, len(next(iter(points.values()))))), None)
        start, nothing = self.model.problem.domain[TIME].lower, [np.zeros(self.size)]
        zeta = seen.functionals(nothing, nothing, start)
        _, gradient = seen.relation.value_and_gradient(zeta, seen.constants, seen.at(start))
        found = np.zeros(len(zeta))
        for number, each in enumerate(seen.readings):
            if sum(times for _, times in each.orders) == 2 and TIME not in dict(each.orders):
                share = np.prod([normal[axis] ** times for axis, times in each.orders], axis=0)
                found = found + gradient[:, each.functional] * seen.size(number, start) * share
        return found

    def _seen(self, statement: Statement, points: Mapping[str, Array], through: Matrix, root: Matrix | None) -> Seen:
        relation = self.model.representation.read(statement.relation)
        readings = tuple(
            Reading(
                number, 0, dict(orders).get(TIME, 0) == 1, features_at(self.cells, points, orders), coefficient, orders
            )
            for number, functional in enumerate(relation.functionals)
            for orders, coefficient in functional.terms
        )  # fmt: skip
        moves = any(TIME in map(str, getattr(each.coefficient, "free_symbols", ())) for each in readings)
        target = float(np.max(statement.target))
        return Seen(relation, readings, through, root, dict(points), self.model.constants, target, moves)


def features_at(cells: Mapping[str, GradedSpline], points: Mapping[str, Array], orders: Orders) -> Matrix:
    """Derivatives of all products of splines at scattered points."""
    along, count = dict(orders), len(next(iter(points.values())))
    columns, values, width = np.zeros((count, 1), int), np.ones((count, 1)), 1
    for axis, own in cells.items():
        read, features = _read(own, points[axis], along.get(axis, 0))
        columns = (columns[:, :, None] * own.size + read[:, None, :]).reshape(count, -1)
        values = (values[:, :, None] * features[:, None, :]).reshape(count, -1)
        width *= own.size
    starts = np.arange(0, columns.size + 1, columns.shape[1])
    return sparse.csr_matrix((values.ravel(), columns.ravel(), starts), shape=(count, width))


def _read(spline: GradedSpline, x: Array, order: int) -> tuple[NDArray[np.int64], Array]:
    """The splines that points read, and what they read of each."""
    cell = np.clip(np.searchsorted(spline.breaks, x, side="right") - 1, 0, spline.cells - 1)
    read = (cell[:, None] + np.arange(spline.degree + 1)) % spline.size
    found = np.empty(read.shape)
    for start in range(0, len(x), 4096):  # rows of all splines are wide
        part = slice(start, start + 4096)
        found[part] = np.take_along_axis(spline(x[part], order), read[part], axis=1)
    return read, found


def quadrature_inside(
    cells: Mapping[str, GradedSpline], shape: Shape
) -> tuple[dict[str, Array], Array, tuple[dict[str, Array], Array]]:
    """Gauss points of a region over cells with the areas that they stand for, and the same of the rest of the box.

    Cells that the boundary cuts are cut into lines, and each line into pieces inside and outside."""
    (first, x), (second, y) = cells.items()
    spacing = 0.25 * min(float(np.diff(own.breaks).min()) for own in cells.values())
    edge, _ = shape.boundary.points(spacing)
    is_cut = np.zeros((x.cells, y.cells), bool)
    at = [np.clip(np.searchsorted(own.breaks, edge[axis]) - 1, 0, own.cells - 1) for axis, own in cells.items()]
    is_cut[at[0], at[1]] = True
    per_cell = [len(own.quadrature[0]) // own.cells for own in cells.values()]
    mesh = np.meshgrid(x.quadrature[0], y.quadrature[0], indexing="ij")
    area = np.outer(x.quadrature[1], y.quadrature[1]).ravel()
    whole = ~np.repeat(np.repeat(is_cut, per_cell[0], axis=0), per_cell[1], axis=1).ravel()
    points = {first: mesh[0].ravel(), second: mesh[1].ravel()}
    within = shape.contains(points)
    inside, outside = whole & within, ~within
    lines = _cut_lines(np.argwhere(is_cut), x, y, shape)
    kept = {axis: np.concatenate([points[axis][inside], lines[axis]]) for axis in cells}
    rest = {axis: points[axis][outside] for axis in cells}
    return kept, np.concatenate([area[inside], lines["area"]]), (rest, area[outside])


def _cut_lines(at: NDArray[np.int64], x: GradedSpline, y: GradedSpline, shape: Shape) -> dict[str, Array]:
    """Gauss points of the parts of cut cells inside, line by line along the second axis."""
    first, second = shape.axes
    nodes, shares = np.polynomial.legendre.leggauss(LINES)
    nodes, shares = 0.5 * (1.0 + nodes), 0.5 * shares
    left, below = np.array(x.breaks)[at[:, 0]], np.array(y.breaks)[at[:, 1]]
    wide, high = np.diff(x.breaks)[at[:, 0]], np.diff(y.breaks)[at[:, 1]]
    line = (left[:, None] + wide[:, None] * nodes).ravel()
    share, low, tall = (wide[:, None] * shares).ravel(), np.repeat(below, LINES), np.repeat(high, LINES)
    steps = np.linspace(0.0, 1.0, SAMPLES + 1)

    def holds(height: Array) -> NDArray[np.bool_]:
        along = np.broadcast_to(line[:, None], height.shape)
        return shape.contains({first: along.ravel(), second: height.ravel()}).reshape(height.shape)

    heights = low[:, None] + tall[:, None] * steps
    seen = holds(heights)
    lower, upper = heights[:, :-1].copy(), heights[:, 1:].copy()
    changes = seen[:, :-1] != seen[:, 1:]
    for _ in range(HALVINGS if np.any(changes) else 0):
        middle = 0.5 * (lower + upper)
        same = holds(middle) == seen[:, :-1]
        lower, upper = np.where(same, middle, lower), np.where(same, upper, middle)
    crossing = 0.5 * (lower + upper)
    begins = np.where(seen[:, :-1], heights[:, :-1], crossing)
    ends = np.where(seen[:, 1:], heights[:, 1:], crossing)
    there = seen[:, :-1] | seen[:, 1:]
    rows, _ = np.nonzero(there)
    start, length = begins[there], (ends - begins)[there]
    count = 3  # of a piece: they are short
    short, weight = np.polynomial.legendre.leggauss(count)
    height = start[:, None] + length[:, None] * 0.5 * (1.0 + short)
    area = share[rows][:, None] * length[:, None] * 0.5 * weight
    return {first: np.repeat(line[rows], count), second: height.ravel(), "area": area.ravel()}
