"""A problem on a discretisation of space: the system of equations and walls, and the system of the start.

One equation settles each field, and each wall settles one function of its field. What does not fit this form is named
by `NotAMap`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from factorfield.errors import ProblemError
from factorfield.forward.inputs import Input
from factorfield.forward.relations import Compiled, Expression, expression_of
from factorfield.forward.system import System
from factorfield.forward.terms import Term
from factorfield.problem.domain import TIME, Periodic, normal_along
from factorfield.problem.problem import Problem
from factorfield.problem.relation import evaluate_coefficient
from factorfield.problem.shape import Shape
from factorfield.problem.statement import Statement
from factorfield.space.axes import LEFT, RIGHT, Held, Spline
from factorfield.space.cells import Cells, Weighting
from factorfield.space.grid import Conditions, Grid
from factorfield.space.region import CutGrid, Triplets

if TYPE_CHECKING:
    import sympy

Array = NDArray[np.float64]
WHOLE = 1e-6  # of a region's boundary: what may be left without a condition by rounding


class NotAMap(ProblemError):
    """Why the equations and conditions of a problem do not give the fields as a function of the inputs."""


@dataclass(frozen=True, eq=False)
class Layout:
    """What a problem says, apart from any discretisation: which equation settles which field, and where walls are."""

    problem: Problem
    equations: tuple[Statement, ...]  # by field
    starts: tuple[Statement | None, ...]  # by field; None: its equation has no rate
    walls: tuple[tuple[Statement, str, Held | None], ...]  # with the field that each settles; None: in a region
    _expressions: dict[str, Expression] = field(default_factory=dict)

    @property
    def fields(self) -> tuple[str, ...]:
        return self.problem.fields

    @property
    def moves(self) -> bool:
        """Does anything change in time?"""
        return any(start is not None for start in self.starts)

    def conditions(self, field: str) -> dict[str, tuple[Held, ...]]:
        """What walls hold of a field, by axis."""
        result: dict[str, tuple[Held, ...]] = {}
        for wall, name, held in self.walls:
            if name == field and held is not None:
                (axis,) = wall.face or {}
                result[axis] = (*result.get(axis, ()), held)
        return result

    def expression(self, statement: Statement) -> Expression:
        """The statement's relation, less its error where it has a sigma; compiled once for all discretisations."""
        if statement.name not in self._expressions:
            is_uncertain = statement.kind != "observation" and statement.sigma is not None
            error = error_input(statement) if is_uncertain else None
            self._expressions[statement.name] = expression_of(self.problem, statement.relation, self.fields, error)
        return self._expressions[statement.name]

    @cached_property
    def is_affine(self) -> bool:
        """Are the fields an affine function of the inputs?"""
        stated = [*self.equations, *(s for s in self.starts if s is not None), *(wall for wall, _, _ in self.walls)]
        return all(self.expression(statement).is_affine for statement in stated)

    @staticmethod
    def of(problem: Problem) -> Layout:
        equations = _settling_equations(problem)
        starts = tuple(_start(problem, name, s) for name, s in zip(problem.fields, equations, strict=True))
        layout = Layout(problem, equations, starts, tuple(_walls(problem)))
        _check_walls(layout)
        return layout


def error_input(statement: Statement) -> str:
    """The name of the input by which a start or a wall with a sigma is off."""
    return statement.error.name if statement.error is not None else f"_error of {statement.name}"


def _settling_equations(problem: Problem) -> tuple[Statement, ...]:
    equations = [s for s in problem.statements if s.kind == "equation"]
    if len(equations) != len(problem.fields):
        raise NotAMap(f"{len(equations)} equations for {len(problem.fields)} fields")
    for statement in equations:
        if statement.sigma is not None:
            raise NotAMap(f"{statement.name} has a sigma")
        if statement.relation.order(TIME) > 1:
            raise NotAMap(f"{statement.name} is of order {statement.relation.order(TIME)} in time")
    score = np.array([[_weight(statement, name) for statement in equations] for name in problem.fields])
    rows, columns = optimize.linear_sum_assignment(-score)
    if np.any(score[rows, columns] == 0.0):
        raise NotAMap("no equation settles one of the fields")
    return tuple(equations[column] for column in columns)


def _weight(statement: Statement, name: str) -> float:
    """How much an equation is one for a field: it states its rate, or its highest derivative."""
    orders = [dict(jet.orders) for jet in statement.relation.jets.values() if jet.field == name]
    if not orders:
        return 0.0
    in_space = max(sum(n for axis, n in order.items() if axis != TIME) for order in orders)
    return 1.0 + 100.0 * any(order.get(TIME, 0) for order in orders) + in_space


def _start(problem: Problem, name: str, equation: Statement) -> Statement | None:
    moving = any(
        dict(jet.orders).get(TIME, 0) for jet in equation.relation.jets.values() if jet.field == name
    )  # fmt: skip
    stated = [s for s in problem.statements if s.kind == "initial" and name in s.relation.fields]
    if not moving:
        if stated:
            raise NotAMap(f"{name} has a start and no rate")
        return None
    if len(stated) != 1:
        raise NotAMap(f"{name} has {len(stated)} starts")
    if stated[0].relation.order(TIME) or len(stated[0].relation.fields) > 1:
        raise NotAMap(f"{stated[0].name!r} does not state one field")
    return stated[0]


def _walls(problem: Problem) -> list[tuple[Statement, str, Held | None]]:
    result: list[tuple[Statement, str, Held | None]] = []
    for statement in problem.statements:
        if statement.kind != "boundary":
            continue
        if statement.wall is not None:
            result.append((statement, statement.jet.field, None))
            continue
        face = statement.face or {}
        if statement.stencil or len(face) != 1 or TIME in face:
            raise NotAMap(f"{statement.name!r} is no condition at one end of one axis of space")
        ((axis, place),) = face.items()
        domain = problem.domain[axis]
        if isinstance(domain, Periodic) or not bool(domain.is_end(place)):
            raise NotAMap(f"{statement.name!r} is not at an end of {axis}")
        end = LEFT if abs(place - domain.lower) < abs(place - domain.upper) else RIGHT
        result.append((statement, *_held(problem, statement, axis, place, end)))
    return result


def _held(problem: Problem, statement: Statement, axis: str, place: float, end: int) -> tuple[str, Held]:
    """The field that a wall settles, the one it differentiates most, and its linear part in the middle of the wall."""
    relation = statement.relation
    jets = [jet for jet in relation.jets.values() if jet.field in problem.fields]
    name = max(jets, key=lambda jet: dict(jet.orders).get(axis, 0)).field
    middle = {**problem.domain.centre, axis: np.array([place])}
    shares: dict[int, float] = {}
    for jet, coefficient in relation.linear_part.items():
        orders = dict(jet.orders)
        if jet.field != name or set(orders) - {axis}:
            continue
        known = coefficient.subs({s: problem.functions[j.field].mean for s, j in relation.jets.items()
                                  if j.field in problem.functions and not j.orders})  # fmt: skip
        size = float(np.ravel(evaluate_coefficient(known, problem.typical_parameters, middle))[0])
        if np.isfinite(size) and size != 0.0:
            shares[orders.get(axis, 0)] = shares.get(orders.get(axis, 0), 0.0) + size
    if not shares:
        raise NotAMap(f"{statement.name!r} has no linear part in {name}")
    return name, Held(end, tuple(sorted(shares.items())))


def _check_walls(layout: Layout) -> None:
    """As many conditions along every axis as the equation of the field has derivatives along it; in a region, one all
    along the wall."""
    shape = layout.problem.shape
    if shape is not None:
        for name, equation in zip(layout.fields, layout.equations, strict=True):
            _check_region_walls(name, equation, [w for w, field, _ in layout.walls if field == name], shape)
        return
    for name, equation in zip(layout.fields, layout.equations, strict=True):
        conditions = layout.conditions(name)
        for axis in layout.problem.domain.space:
            if isinstance(layout.problem.domain[axis], Periodic):
                continue
            order = equation.relation.orders.get((name, axis), 0)
            if len(conditions.get(axis, ())) != order:
                said = len(conditions.get(axis, ()))
                raise NotAMap(f"{name} has {said} conditions along {axis}, and its equation is of order {order}")


def _check_region_walls(name: str, equation: Statement, walls: list[Statement], shape: Shape) -> None:
    orders = {sum(n for axis, n in jet.orders if axis != TIME) for jet in equation.relation.jets.values()
              if jet.field == name}  # fmt: skip
    if max(orders) != 2:
        raise NotAMap(f"an equation of order {max(orders)} in a region")
    parts = [wall.wall for wall in walls if wall.wall is not None]
    if any(one.shared(two) for number, one in enumerate(parts) for two in parts[:number]):
        raise NotAMap(f"two conditions on {name} at one part of the wall")
    if sum(part.length for part in parts) < (1.0 - WHOLE) * shape.boundary.length:
        raise NotAMap(f"no condition on {name} at a part of the wall")


@dataclass(frozen=True, eq=False)
class Discrete:
    """A layout on a grid. Coefficients of the fields stand one after the other."""

    layout: Layout
    grid: Grid | CutGrid
    inputs: Mapping[str, Input]

    @property
    def problem(self) -> Problem:
        return self.layout.problem

    @cached_property
    def size(self) -> int:
        return self.grid.size * len(self.layout.fields)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        return tuple(self.grid.size * number for number in range(len(self.layout.fields)))

    @cached_property
    def _conditions(self) -> dict[str, Conditions]:
        return {name: self.layout.conditions(name) for name in self.layout.fields}

    def _term(self, expression: Expression, cells: Cells, weighting: Weighting, field: str) -> Term:
        row_offset = self.offsets[self.layout.fields.index(field)]
        return Term(expression, cells, weighting, row_offset, self.offsets, self.size, self.inputs)

    @cached_property
    def _walls(self) -> list[Term]:
        """A wall settles one function of its field, which no equation is tested against."""
        assert isinstance(self.grid, Grid)
        terms = []
        for wall, name, held in self.layout.walls:
            assert held is not None
            face = dict(wall.face or {})
            (axis,) = face
            weighting = self.grid.weighting_on_wall(axis, held, self._conditions[name])
            terms.append(self._term(self.layout.expression(wall), self.grid.face(face), weighting, name))
        return terms

    def _inside(self, statement: Statement, field: str) -> Term:
        assert isinstance(self.grid, Grid)
        weighting = self.grid.weighting_inside(self._conditions[field])
        return self._term(self.layout.expression(statement), self.grid.cells, weighting, field)

    def _held(self, statement: Statement, field: str) -> Triplets | None:
        """Entries that hold functions which hardly reach into the region."""
        return None

    @cached_property
    def system(self) -> System:
        """Equations and walls."""
        pairs = list(zip(self.layout.equations, self.layout.fields, strict=True))
        terms = (*(self._inside(s, name) for s, name in pairs), *self._walls)
        return System(terms, self.size, self.inputs, _joined([self._held(s, name) for s, name in pairs]))

    @cached_property
    def start(self) -> System:
        """Starts, tested against functions that vanish at walls, and the walls; equations of fields without a rate."""
        chosen = [
            (start or equation, name)
            for start, equation, name in zip(self.layout.starts, self.layout.equations, self.layout.fields, strict=True)
        ]
        terms = (*(self._inside(s, name) for s, name in chosen), *self._start_walls)
        return System(terms, self.size, self.inputs, _joined([self._held(s, name) for s, name in chosen]))

    @property
    def _start_walls(self) -> list[Term]:
        return self._walls


@dataclass(frozen=True, eq=False)
class CutDiscrete(Discrete):
    """A layout on a grid cut by a region. Walls are imposed weakly, as they are added to the rows of the equation: a
    flux takes the place of the one that integration by parts leaves at the wall, a value is held by the symmetric form
    of Nitsche's method."""

    penalty: float = 4.0  # of a value at a wall, in units of degree^2 over the width of a cell: twice what is needed
    ghost: float = 0.01  # share of the energy of the next cell

    def _inside(self, statement: Statement, field: str) -> Term:
        assert isinstance(self.grid, CutGrid)
        return self._term(self.layout.expression(statement), self.grid.cells, self.grid.weighting_inside(), field)

    @cached_property
    def _walls(self) -> list[Term]:
        assert isinstance(self.grid, CutGrid)
        terms = []
        for wall, name, _ in self.layout.walls:
            assert wall.wall is not None
            cells = self.grid.wall_cells(wall.wall)
            expression, is_flux = weak_wall(self.layout, wall, name)
            terms.append(self._term(expression, cells, self._wall_weighting(cells, is_flux), name))
        return terms

    @property
    def _start_walls(self) -> list[Term]:
        """A start is a projection: nothing is held at walls, which the first instant of time holds."""
        return []

    def _wall_weighting(self, cells: Cells, is_flux: bool) -> Weighting:
        if is_flux:
            return Weighting(cells.index, cells.table(()))
        normals = {axis: cells.points[normal_along(axis)][:, :, None] for axis in self.grid.axes}
        across = sum(normal * cells.table(((axis, 1),)) for axis, normal in normals.items())
        splines = [basis for basis in self.grid.axes.values() if isinstance(basis, Spline)]
        width = min(float(np.diff(basis.edges).min()) for basis in splines)
        size = self.penalty * max(basis.degree for basis in splines) ** 2 / width
        return Weighting(cells.index, size * cells.table(()) - across)

    def _held(self, statement: Statement, field: str) -> Triplets | None:
        """The ghost penalty, in units of what conducts in the middle of the prior; of a start, in units of its mass."""
        assert isinstance(self.grid, CutGrid)
        rows, columns, values = self.grid.ghost()
        if statement.kind == "initial":
            width = min(float(np.diff(b.edges).min()) for b in self.grid.axes.values() if isinstance(b, Spline))
            size = width**2
        else:
            size = float(np.mean(conducts_inside(self.layout, statement, field)))
        offset = self.offsets[self.layout.fields.index(field)]
        return rows + offset, columns + offset, self.ghost * size * values


def discretised(layout: Layout, grid: Grid | CutGrid, inputs: Mapping[str, Input]) -> Discrete:
    """The layout on a grid of a box, or of a region."""
    return (CutDiscrete if isinstance(grid, CutGrid) else Discrete)(layout, grid, inputs)


def weak_wall(layout: Layout, wall: Statement, field: str) -> tuple[Expression, bool]:
    """A wall's relation, made a flux times what conducts along the normal or a value times that; and is it a flux?"""
    import sympy

    relation = layout.expression(wall)
    equation = layout.expression(layout.equations[layout.fields.index(field)])
    number = layout.fields.index(field)
    conducts, slope, value = sympy.Integer(0), sympy.Integer(0), sympy.Integer(0)
    for symbol, jet in equation.fields.items():
        if jet.field == number and sum(times for _, times in jet.orders) == 2 and not jet.is_rate:
            share = [_normal(axis) ** times for axis, times in jet.orders]
            conducts = conducts - equation.expression.diff(symbol) * sympy.Mul(*share)
    for symbol, jet in relation.fields.items():
        part = relation.expression.diff(symbol)
        if jet.field == number and not jet.orders:
            value = value + part
        elif jet.field == number and len(jet.orders) == 1 and jet.orders[0][1] == 1:
            slope = slope + part * _normal(jet.orders[0][0])
    normals = {axis: _normal(axis) for axis in layout.problem.domain.space}
    first, second = (normals[axis] for axis in layout.problem.domain.space)
    slope = sympy.simplify(sympy.expand(slope).subs(second**2, 1 - first**2))
    is_flux = slope != 0
    scaled = relation.expression * conducts / (slope if is_flux else value)
    coordinates = tuple(dict.fromkeys((*relation.coordinates, *equation.coordinates, *map(str, normals.values()))))
    return replace(
        relation, expression=scaled, fields={**equation.fields, **relation.fields},
        inputs={**equation.inputs, **relation.inputs}, coordinates=coordinates,
        moving=relation.moving | equation.moving,
    ).present, is_flux  # fmt: skip


def conducts_inside(layout: Layout, equation: Statement, field: str) -> Array:
    """What conducts along the first axis, all over the domain, inputs at their prior means and fields zero."""
    expression = layout.expression(equation)
    number, axis = layout.fields.index(field), layout.problem.domain.space[0]
    places = {name: x for name, x in layout.problem.domain.places().items()}
    names = {name: np.zeros((1, 1)) for name, _ in expression.named_fields}
    for name, part in expression.named_inputs:
        unknown = layout.problem.unknowns.get(part.name) or layout.problem.functions.get(part.name)
        mean = unknown.latent_moments[0] if unknown is not None and not part.orders else 0.0
        names[name] = np.full((1, 1), mean)
    for symbol, jet in expression.fields.items():
        if jet.field == number and jet.orders == ((axis, 2),):
            slope = Compiled(expression, [-expression.expression.diff(symbol)])
            return slope(names, places, np.zeros(1))[0]
    raise NotAMap(f"{equation.name} has no second derivative along {axis}")


def _normal(axis: str) -> sympy.Symbol:
    import sympy

    return sympy.Symbol(normal_along(axis), real=True)


def _joined(parts: Sequence[Triplets | None]) -> Triplets | None:
    known = [part for part in parts if part is not None]
    if not known:
        return None
    rows, columns, values = (np.concatenate(column) for column in zip(*known, strict=True))
    return rows, columns, values
