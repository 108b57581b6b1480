"""A problem on a discretisation of space: the system of equations and walls, and the system of the start.

One equation settles each field, and each wall settles one function of its field. What does not fit this form is named
by `NotAMap`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from factorfield.errors import ProblemError
from factorfield.forward.inputs import Input
from factorfield.forward.relations import Expression, expression_of
from factorfield.forward.system import System
from factorfield.forward.terms import Term
from factorfield.problem.domain import TIME, Periodic
from factorfield.problem.problem import Problem
from factorfield.problem.relation import evaluate_coefficient
from factorfield.problem.statement import Statement
from factorfield.space.axes import LEFT, RIGHT, Held
from factorfield.space.cells import Cells, TestFunctions
from factorfield.space.grid import Conditions, Grid

Array = NDArray[np.float64]


class NotAMap(ProblemError):
    """Why the equations and conditions of a problem do not give the fields as a function of the inputs."""


@dataclass(frozen=True, eq=False)
class Layout:
    """What a problem says, apart from any discretisation: which equation settles which field, and where walls are."""

    problem: Problem
    equations: tuple[Statement, ...]  # by field
    starts: tuple[Statement | None, ...]  # by field; None: its equation has no rate
    walls: tuple[tuple[Statement, str, Held], ...]  # with the field that each settles
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
            if name == field:
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


def _walls(problem: Problem) -> list[tuple[Statement, str, Held]]:
    result = []
    for statement in problem.statements:
        if statement.kind != "boundary":
            continue
        face = statement.face or {}
        if statement.wall is not None or statement.stencil or len(face) != 1 or TIME in face:
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
    """As many conditions along every axis as the equation of the field has derivatives along it."""
    for name, equation in zip(layout.fields, layout.equations, strict=True):
        conditions = layout.conditions(name)
        for axis in layout.problem.domain.space:
            if isinstance(layout.problem.domain[axis], Periodic):
                continue
            order = equation.relation.orders.get((name, axis), 0)
            if len(conditions.get(axis, ())) != order:
                said = len(conditions.get(axis, ()))
                raise NotAMap(f"{name} has {said} conditions along {axis}, and its equation is of order {order}")


@dataclass(frozen=True, eq=False)
class Discrete:
    """A layout on a grid. Coefficients of the fields stand one after the other."""

    layout: Layout
    grid: Grid
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

    def _term(self, statement: Statement, cells: Cells, tests: TestFunctions, field: str) -> Term:
        expression = self.layout.expression(statement)
        row_offset = self.offsets[self.layout.fields.index(field)]
        return Term(expression, cells, tests, row_offset, self.offsets, self.size, self.inputs)

    @cached_property
    def _walls(self) -> list[Term]:
        terms = []
        for wall, name, held in self.layout.walls:
            face = dict(wall.face or {})
            (axis,) = face
            tests = self.grid.tests_on_wall(axis, held, self._conditions[name])
            terms.append(self._term(wall, self.grid.face(face), tests, name))
        return terms

    def _inside(self, statement: Statement, field: str) -> Term:
        return self._term(statement, self.grid.cells, self.grid.tests_inside(self._conditions[field]), field)

    @cached_property
    def system(self) -> System:
        """Equations and walls."""
        pairs = zip(self.layout.equations, self.layout.fields, strict=True)
        return System((*(self._inside(s, name) for s, name in pairs), *self._walls), self.size, self.inputs)

    @cached_property
    def start(self) -> System:
        """Starts, tested against functions that vanish at walls, and the walls; equations of fields without a rate."""
        chosen = zip(self.layout.starts, self.layout.equations, self.layout.fields, strict=True)
        terms = [self._inside(start or equation, name) for start, equation, name in chosen]
        return System((*terms, *self._walls), self.size, self.inputs)

    @property
    def places(self) -> Sequence[Mapping[str, Array]]:
        return [self.grid.places for _ in self.layout.fields]
