"""Equations and walls of a plane at one instant: as many rows as the fields have coefficients in space.

Of fields u and their rates u_t an equation is read at the points of a grid and seen through test functions: those of
the basis that vanish where walls say so (Galerkin). Walls take the rows that these leave: one is seen through all
functions along it, but at corners of two, which the wall of the first axis tells. Rows are no orthonormal ones, as in
windowed.py: splines read few neighbours, and so do their rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from factorfield.model.basis import Departure, Family
from factorfield.model.graded import GradedSpline
from factorfield.model.model import WindowModel, is_standing
from factorfield.model.representation import LatentRelation
from factorfield.model.windowed import quadrature_weights, settled_field, speaks, takes, wall_row
from factorfield.problem.coefficients import located
from factorfield.problem.domain import TIME, Orders
from factorfield.problem.problem import Problem
from factorfield.problem.relation import evaluate_coefficient
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]
Matrix = Any  # an array, or a sparse matrix of splines
PLANE = 2  # axes of space
DENSE = 0.3  # of the entries: with more of them a matrix is no sparse one


@dataclass(frozen=True, eq=False)
class Reading:
    """A derivative of a field, or of its rate, at the points of a statement, with its coefficient."""

    functional: int
    field: int
    is_rate: bool
    features: Matrix  # (points, coefficients)
    coefficient: Any
    orders: Orders


@dataclass(frozen=True, eq=False)
class Seen:
    """A statement at an instant, seen through test functions."""

    relation: LatentRelation
    readings: tuple[Reading, ...]
    through: Matrix  # (rows, points)
    root: Matrix | None  # of the covariance of its rows' noise; None for walls, which hold
    places: Mapping[str, Array]
    constants: Mapping[str, Any]
    target: float
    moves: bool  # does a coefficient depend on time?
    _sizes: dict[int, Any] = field(default_factory=dict)
    _products: dict[int, Matrix] = field(default_factory=dict)

    def at(self, time: float) -> dict[str, Array]:
        where = {**self.places, TIME: np.full(len(next(iter(self.places.values()))), time)}
        return located(where, self.relation.coordinates, self.constants)

    def functionals(self, values: Sequence[Array], rates: Sequence[Array], time: float) -> Array:
        zeta = np.zeros((self.through.shape[1], len(self.relation.functionals)))
        for number, each in enumerate(self.readings):
            own = each.features @ (rates if each.is_rate else values)[each.field]
            zeta[:, each.functional] += self.size(number, time) * own
        return zeta

    def size(self, number: int, time: float) -> Any:
        """The coefficient of a reading."""
        if self.moves or number not in self._sizes:
            found = evaluate_coefficient(self.readings[number].coefficient, self.constants, self.at(time))
            self._sizes[number] = found
        return self._sizes[number]

    def residual(self, values: Sequence[Array], rates: Sequence[Array], time: float) -> Array:
        zeta = self.functionals(values, rates, time)
        value = self.relation.value(zeta, self.constants, self.at(time)) - self.target
        return np.asarray(self.through @ value, float)

    def slopes(self, values: Sequence[Array], rates: Sequence[Array], time: float) -> dict[tuple[int, bool], Matrix]:
        """By field, and for itself and its rate: what moves the rows."""
        zeta = self.functionals(values, rates, time)
        _, gradient = self.relation.value_and_gradient(zeta, self.constants, self.at(time))
        found: dict[tuple[int, bool], Matrix] = {}
        for number, each in enumerate(self.readings):
            slope = np.broadcast_to(gradient[:, each.functional] * self.size(number, time), len(zeta))
            key = each.field, each.is_rate
            own = self._product(number, slope)
            found[key] = found[key] + own if key in found else own
        return found

    def _product(self, number: int, slope: Array) -> Matrix:
        features = self.readings[number].features
        if np.all(slope == slope[0]):
            if number not in self._products:
                self._products[number] = self.through @ features
            return slope[0] * self._products[number]
        scaled = sparse.diags(slope) @ features if sparse.issparse(features) else slope[:, None] * features
        return self.through @ scaled


@dataclass(frozen=True, eq=False)
class Instants:
    """All equations and walls of a model; `size` coefficients of all fields, and as many rows.

    In a region walls are added to the rows of its equation, and `beyond` is what splines outside are told."""

    groups: tuple[Seen, ...]
    sizes: tuple[int, ...]  # coefficients of each field
    beyond: Matrix | None = None
    inside: Matrix | None = None  # from coefficients to values at places of the region

    @property
    def size(self) -> int:
        return sum(self.sizes)

    @cached_property
    def is_sparse(self) -> bool:
        return any(sparse.issparse(group.through) for group in self.groups)

    def split(self, values: Array) -> list[Array]:
        return np.split(values, np.cumsum(self.sizes)[:-1])

    def residual(self, values: Array, rates: Array, time: float) -> Array:
        both = self.split(values), self.split(rates)
        found = [group.residual(*both, time) for group in self.groups]
        return np.concatenate(found) if self.beyond is None else sum(found, self.beyond @ values)

    def slopes(self, values: Array, rates: Array, time: float) -> tuple[Matrix, Matrix]:
        """Of the rows by the fields, and by their rates."""
        both = self.split(values), self.split(rates)
        parts = [(group.through.shape[0], group.slopes(*both, time)) for group in self.groups]
        if self.beyond is None:
            return self._stacked(parts, False), self._stacked(parts, True)
        found = [self._stacked([part], is_rate) for part in parts for is_rate in (False, True)]
        return sum(found[2::2], found[0]) + self.beyond, sum(found[3::2], found[1])

    def _stacked(self, parts: Sequence[tuple[int, Mapping[tuple[int, bool], Matrix]]], is_rate: bool) -> Matrix:
        nothing = sparse.csr_matrix if self.is_sparse else np.zeros
        rows = [
            [own.get((number, is_rate), nothing((count, size))) for number, size in enumerate(self.sizes)]
            for count, own in parts
        ]
        return sparse.bmat(rows, format="csr") if self.is_sparse else np.block(rows)

    @cached_property
    def noisy(self) -> NDArray[np.bool_]:
        """Which rows are those of equations."""
        if self.beyond is not None:
            return np.ones(self.size, bool)
        return np.concatenate([np.full(group.through.shape[0], group.root is not None) for group in self.groups])

    @cached_property
    def noise(self) -> Matrix:
        """A root of the covariance of all rows' noise: (rows, rows of equations)."""
        if self.beyond is not None:
            return next(group.root for group in self.groups if group.root is not None)
        blocks = [
            sparse.csr_matrix((group.through.shape[0], 0)) if group.root is None else group.root
            for group in self.groups
        ]
        return sparse.csr_matrix(sparse.block_diag(blocks, format="csr"))


def instants_of(model: WindowModel) -> Instants | None:
    """Of a plane; None where equations are not of first order in time, one for every field, or where more or less is
    said than the fields have coefficients."""
    problem = model.problem
    standing = [(s, sigma.value) for s, sigma in zip(problem.statements, model.sigmas, strict=True) if is_standing(s)]
    if not may_be_square(model, [statement for statement, _ in standing]):
        return None
    grid = _Grid(model)
    groups = [grid.seen(statement, float(np.max(sigma))) for statement, sigma in standing]
    sizes = tuple(int(np.prod([own.size for own in grid.families.values()])) for _ in problem.fields)
    found = Instants(tuple(group for group in groups if group is not None), sizes)
    rows = sum(group.through.shape[0] for group in found.groups)
    return found if len(found.groups) == len(standing) and rows == found.size else None


def may_be_square(model: WindowModel, standing: Sequence[Statement]) -> bool:
    problem, representation = model.problem, model.representation
    fields = [representation.forms[name] for name in problem.fields]
    plain = all(form.activation.name == "identity" and len(form.latents) == 1 for form in fields)
    if len(problem.domain.space) != PLANE or not plain or set(representation.latents) != set(problem.fields):
        return False
    equations = [s for s in standing if s.kind == "equation"]
    moved = {jet.field for s in equations for jet in s.relation.jets.values() if TIME in dict(jet.orders)}
    families = [latent.basis.families[TIME] for latent in representation.latents.values()]
    first = all(isinstance(own, Departure) and own.states == 1 for own in families)
    exact = all(s.error is None and not s.stencil for s in standing)
    return first and exact and len(equations) == len(problem.fields) and moved == set(problem.fields)


class _Grid:
    """Features and test functions along the axes of space."""

    def __init__(self, model: WindowModel) -> None:
        self.model, self.problem = model, model.problem
        basis = next(iter(model.representation.latents.values())).basis
        self.families: dict[str, Family] = {a: own for a, own in basis.families.items() if a != TIME}
        self.points = model.space.points
        self.weights = {
            axis: quadrature_weights(self.problem.domain[axis], own, self.points[axis])
            for axis, own in self.families.items()
        }  # fmt: skip
        self._tests: dict[tuple[str, str], Array] = {}

    def seen(self, statement: Statement, sigma: float) -> Seen | None:
        """A statement through its test functions; None where its walls leave it none."""
        face = {axis: at for axis, at in (statement.face or {}).items() if axis != TIME}
        if len(face) > 1:
            return None
        tests = {axis: self._through(statement, axis, face) for axis in self.families}
        if any(own is None for own in tests.values()):
            return None
        kept = {axis: own for axis, own in tests.items() if own is not None}
        through = _kron([own.T * self.weights[axis] if axis not in face else own.T for axis, own in kept.items()])
        grid = {axis: np.array([face[axis]]) if axis in face else self.points[axis] for axis in self.families}
        mesh = np.meshgrid(*grid.values(), indexing="ij")
        places = {axis: each.ravel() for axis, each in zip(grid, mesh, strict=True)}
        relation = self.model.representation.read(statement.relation)
        readings = self._readings(relation, grid)
        coefficients = [each.coefficient for each in readings]
        moves = any(TIME in map(str, getattr(each, "free_symbols", ())) for each in coefficients)
        root = None
        if statement.kind == "equation":
            grams = [(own.T * self.weights[axis]) @ own for axis, own in kept.items()]
            root = sigma * _kron([linalg.cholesky(gram, lower=True) for gram in grams])
        return Seen(
            relation, readings, through, root, places, self.model.constants, float(np.max(statement.target)), moves
        )

    def _readings(self, relation: LatentRelation, grid: Mapping[str, Array]) -> tuple[Reading, ...]:
        found = []
        for number, functional in enumerate(relation.functionals):
            for orders, coefficient in functional.terms:
                found.append(
                    Reading(
                        number, self.problem.fields.index(functional.latent), dict(orders).get(TIME, 0) == 1,
                        self._features(orders, grid), coefficient, orders,
                    )
                )  # fmt: skip
        return tuple(found)

    def _features(self, orders: Orders, grid: Mapping[str, Array]) -> Matrix:
        along = dict(orders)
        return _kron([own(grid[axis], along.get(axis, 0)) for axis, own in self.families.items()])

    def _through(self, statement: Statement, axis: str, face: Mapping[str, float]) -> Array | None:
        """Values of test functions at the points of an axis, (points, functions)."""
        if axis in face:
            return np.ones((1, 1))
        fields = {jet.field for jet in statement.relation.jets.values()}
        if not face:
            return self._vanishing(settled_field(self.problem, statement, axis), axis, statement)
        if axis == next(iter(self.families)) and len(fields) == 1:  # corners are told by walls of the first axis
            return self._vanishing(next(iter(fields)), axis, None)
        return self.families[axis](self.points[axis])

    def _vanishing(self, name: str | None, axis: str, equation: Statement | None) -> Array | None:
        """The functions along an axis that vanish where walls of a field say so."""
        family = self.families[axis]
        features = family(self.points[axis])
        walls = [s for s in self.problem.statements if name is not None and is_standing(s) and speaks(s, name, axis)]
        if name is None or not walls:
            return features
        if equation is not None and len(walls) > takes(self.problem, equation, name, axis):
            return None
        rows = [wall_row(self.problem, wall, name, axis, family) for wall in walls]
        held = np.array([row / np.abs(row).max() for row in rows if row is not None])
        if len(held) < len(rows):
            return None
        local = isinstance(family, GradedSpline)
        return np.asarray(features @ (_local_null_space(held) if local else linalg.null_space(held)), float)


def _local_null_space(rows: Array) -> Array:
    """Columns that span what rows leave free, each of a few neighbours: one entry of every row is settled by others."""
    _, _, order = linalg.qr(rows, pivoting=True)
    settled, free = order[: len(rows)], np.sort(order[len(rows) :])
    found = np.zeros((rows.shape[1], len(free)))
    found[free, np.arange(len(free))] = 1.0
    found[settled] = -linalg.solve(rows[:, settled], rows[:, free])
    return found


def _kron(factors: Sequence[Array]) -> Matrix:
    """The product of matrices along axes, the first axis slowest; sparse where they are."""
    share = np.prod([np.count_nonzero(own) / max(own.size, 1) for own in factors])
    found: Matrix = np.ones((1, 1)) if share > DENSE else sparse.csr_matrix(np.ones((1, 1)))
    for own in factors:
        found = np.kron(found, own) if share > DENSE else sparse.kron(found, own, format="csr")
    return found


def start_on_grid(model: WindowModel) -> Array | None:
    """The state at the start by formulas of all fields, nearest in the mean square and exact at the ends of axes; None
    where there are none."""
    problem, grid = model.problem, _Grid(model)
    ways = [_projection(family, grid.points[axis]) for axis, family in grid.families.items()]
    mesh = np.meshgrid(*(points for points, _ in ways), indexing="ij")
    places = {axis: each.ravel() for axis, each in zip(grid.families, mesh, strict=True)}
    states: dict[str, Array] = {}
    for statement in problem.statements:
        name = formula_of(problem, statement)
        if name is None:
            continue
        value, slope = said_at_start(model, statement, places)
        table = (-value / slope).reshape([len(points) for points, _ in ways])
        for axis, (_, way) in enumerate(ways):
            table = np.moveaxis(np.tensordot(way, table, axes=(1, axis)), 0, axis)
        states[name] = table.ravel()
    if set(states) != set(problem.fields):
        return None
    return np.concatenate([states[name] for name in problem.fields])


def formula_of(problem: Problem, statement: Statement) -> str | None:
    """The field that a statement gives at the start, at every place."""
    start, jets = problem.domain[TIME].lower, list(statement.relation.jets.values())
    one = len(jets) == 1 and not jets[0].orders and statement.relation.is_linear and not statement.stencil
    return jets[0].field if one and statement.face == {TIME: start} else None


def said_at_start(model: WindowModel, statement: Statement, places: Mapping[str, Array]) -> tuple[Array, Array]:
    """What a statement says of a field that is zero, and how that moves with the field."""
    start = model.problem.domain[TIME].lower
    relation, count = model.representation.read(statement.relation), len(next(iter(places.values())))
    where = located({**places, TIME: np.full(count, start)}, relation.coordinates, model.constants)
    value, slope = relation.value_and_gradient(np.zeros((count, 1)), model.constants, where)
    ((_, coefficient),) = relation.functionals[0].terms
    size = evaluate_coefficient(coefficient, model.constants, where)
    return value - float(np.max(statement.target)), slope[:, 0] * size


def _projection(family: Family, points: Array) -> tuple[Array, Array]:
    """Places along an axis, and the way from values there to coefficients: exact at ends, else nearest."""
    if not isinstance(family, GradedSpline):
        return points, np.asarray(linalg.pinv(family(points)), float)
    root = np.sqrt(family.quadrature[1])[:, None]
    if family.periodic:
        return points, np.asarray(linalg.lstsq(root * family(points), np.diag(root[:, 0]))[0], float)
    places = np.concatenate([[family.breaks[0]], points, [family.breaks[-1]]])
    way = np.zeros((family.size, len(places)))
    way[0, 0] = way[-1, -1] = 1.0  # the first and the last spline alone have values there
    inner, outer = family(points)[:, 1:-1], family(points)[:, [0, -1]]
    wanted = np.column_stack([-root * outer[:, :1], np.diag(root[:, 0]), -root * outer[:, 1:]])
    way[1:-1] = np.linalg.lstsq(root * inner, wanted, rcond=None)[0]
    return places, np.asarray(way, float)
