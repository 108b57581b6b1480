"""A layout on a discretisation of space: the system of equations and walls, and the system of the start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factorfield.forward.inputs import Input
from factorfield.forward.layout import Layout, NotAMap, Wall
from factorfield.forward.relations import Compiled, Expression, State
from factorfield.forward.system import System
from factorfield.forward.terms import Term
from factorfield.problem.domain import normal_along
from factorfield.problem.problem import Problem
from factorfield.space.axes import Spline
from factorfield.space.cells import Cells, Weighting
from factorfield.space.grid import Conditions, Grid
from factorfield.space.region import CutGrid, Triplets

if TYPE_CHECKING:
    import sympy

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Discrete:
    """A layout on a grid. Coefficients of the states stand one after the other."""

    layout: Layout
    grid: Grid | CutGrid
    inputs: Mapping[str, Input]

    @property
    def problem(self) -> Problem:
        return self.layout.problem

    @cached_property
    def size(self) -> int:
        return self.grid.size * len(self.layout.states)

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        return tuple(self.grid.size * number for number in range(len(self.layout.states)))

    @cached_property
    def _conditions(self) -> list[Conditions]:
        return [self.layout.conditions(number) for number in range(len(self.layout.states))]

    def _term(self, expression: Expression, cells: Cells, weighting: Weighting, state: int) -> Term:
        return Term(expression, cells, weighting, self.offsets[state], self.offsets, self.size, self.inputs)

    @cached_property
    def _walls(self) -> list[Term]:
        """A wall settles one function of its state, which no equation is tested against."""
        assert isinstance(self.grid, Grid)
        terms = []
        for wall in self.layout.walls:
            assert wall.held is not None
            (axis,) = wall.face
            weighting = self.grid.weighting_on_wall(axis, wall.held, self._conditions[wall.state])
            terms.append(self._term(wall.expression, self.grid.face(wall.face), weighting, wall.state))
        return terms

    def _inside(self, expression: Expression, state: int) -> Term:
        assert isinstance(self.grid, Grid)
        weighting = self.grid.weighting_inside(self._conditions[state])
        return self._term(expression, self.grid.cells, weighting, state)

    def _tied(self, expression: Expression, state: int) -> Triplets | None:
        """Entries that tie functions which hardly reach into a region to others."""
        return None

    @cached_property
    def system(self) -> System:
        """Equations and walls."""
        return self._system(self.layout.equations, self._walls)

    @cached_property
    def start(self) -> System:
        """Starts, tested against functions that vanish at walls, and the walls; equations of states without a rate."""
        pairs = zip(self.layout.starts, self.layout.equations, strict=True)
        return self._system([equation if start is None else start for start, equation in pairs], self._start_walls)

    def _system(self, expressions: Sequence[Expression], walls: Sequence[Term]) -> System:
        terms = (*(self._inside(e, number) for number, e in enumerate(expressions)), *walls)
        tied = _joined([self._tied(e, number) for number, e in enumerate(expressions)])
        return System(terms, self.size, self.inputs, tied)

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

    def _inside(self, expression: Expression, state: int) -> Term:
        assert isinstance(self.grid, CutGrid)
        return self._term(expression, self.grid.cells, self.grid.weighting_inside(), state)

    @cached_property
    def _walls(self) -> list[Term]:
        assert isinstance(self.grid, CutGrid)
        terms = []
        for wall in self.layout.walls:
            if self.layout.states[wall.state].level or wall.statement is None or wall.statement.wall is None:
                continue  # a weak wall of a field is one of its equation: its derivative in time needs no row
            cells = self.grid.wall_cells(wall.statement.wall)
            expression, is_flux = weak_wall(self.layout, wall)
            terms.append(self._term(expression, cells, self._wall_weighting(cells, is_flux), self._top(wall.state)))
        return terms

    def _top(self, number: int) -> int:
        """The state whose equation is that of a field."""
        name = self.layout.states[number].field
        return max(n for n, state in enumerate(self.layout.states) if state.field == name)

    @property
    def _start_walls(self) -> list[Term]:
        """A start is a projection: nothing is held at walls, which the first instant of time holds."""
        return [] if self.layout.moves else self._walls

    def _wall_weighting(self, cells: Cells, is_flux: bool) -> Weighting:
        if is_flux:
            return Weighting(cells.index, cells.table(()))
        normals = {axis: cells.points[normal_along(axis)][:, :, None] for axis in self.grid.axes}
        across = sum(normal * cells.table(((axis, 1),)) for axis, normal in normals.items())
        size = self.penalty * max(basis.degree for basis in self._splines) ** 2 / self._width
        return Weighting(cells.index, size * cells.table(()) - across)

    @property
    def _splines(self) -> list[Spline]:
        return [basis for basis in self.grid.axes.values() if isinstance(basis, Spline)]

    @property
    def _width(self) -> float:
        return min(float(np.diff(basis.edges).min()) for basis in self._splines)

    def _tied(self, expression: Expression, state: int) -> Triplets | None:
        """The ghost penalty, in units of what conducts in the middle of the prior, or of a start's mass."""
        assert isinstance(self.grid, CutGrid)
        if expression is not self.layout.equations[state]:
            size = self._width**2
        elif state == self._top(state):
            base = self.layout.states.index(State(self.layout.states[state].field, 0))
            return self._ghost(state, base, float(np.mean(conducts_inside(self.layout, state, base))))
        else:  # the rate of a state is the next one
            return self._ghost(state, state + 1, -self._width**2)
        return self._ghost(state, state, size)

    def _ghost(self, row: int, column: int, size: float) -> Triplets:
        assert isinstance(self.grid, CutGrid)
        rows, columns, values = self.grid.ghost()
        return rows + self.offsets[row], columns + self.offsets[column], self.ghost * size * values


def discretised(layout: Layout, grid: Grid | CutGrid, inputs: Mapping[str, Input]) -> Discrete:
    """The layout on a grid of a box, or of a region."""
    return (CutDiscrete if isinstance(grid, CutGrid) else Discrete)(layout, grid, inputs)


def weak_wall(layout: Layout, wall: Wall) -> tuple[Expression, bool]:
    """A wall's relation, made a flux times what conducts along the normal or a value times that; and is it a flux?"""
    import sympy

    relation, number = wall.expression, wall.state
    name = layout.states[number].field
    equation = layout.equations[max(n for n, state in enumerate(layout.states) if state.field == name)]
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


def conducts_inside(layout: Layout, equation: int, state: int) -> Array:
    """What conducts along the first axis, all over the domain, inputs at their prior means and fields zero."""
    expression, axis = layout.equations[equation], layout.problem.domain.space[0]
    places = dict(layout.problem.domain.places())
    names = {name: np.zeros((1, 1)) for name, _ in expression.named_fields}
    for name, part in expression.named_inputs:
        unknown = layout.problem.unknowns.get(part.name) or layout.problem.functions.get(part.name)
        mean = unknown.latent_moments[0] if unknown is not None and not part.orders else 0.0
        names[name] = np.full((1, 1), mean)
    for symbol, jet in expression.fields.items():
        if jet.field == state and jet.orders == ((axis, 2),):
            slope = Compiled(expression, [-expression.expression.diff(symbol)])
            return slope(names, places, np.zeros(1))[0]
    raise NotAMap(f"the equation of {layout.states[state]} has no second derivative along {axis}")


def _normal(axis: str) -> sympy.Symbol:
    import sympy

    return sympy.Symbol(normal_along(axis), real=True)


def _joined(parts: Sequence[Triplets | None]) -> Triplets | None:
    known = [part for part in parts if part is not None]
    if not known:
        return None
    rows, columns, values = (np.concatenate(column) for column in zip(*known, strict=True))
    return rows, columns, values
