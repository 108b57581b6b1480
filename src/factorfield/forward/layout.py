"""What a problem says, apart from any discretisation: which equation settles which state, starts, and walls.

A state is a field, or a time derivative of it below the highest one in the equations: u_tt = u_xx has the states u and
u_t, and the equations u' = u_t and u_t' = u_xx. A wall that holds u holds u_t by its derivative in time; without that
the system would have a higher index. What does not fit this form is named by `NotAMap`. A start or a wall that is not
stated becomes an unknown function (`Missing`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from factorfield.errors import ProblemError
from factorfield.forward.landmarks import Landmarks, breaks_in_time, landmarks_of, layers_along
from factorfield.forward.relations import Expression, FieldJet, InputJet, State, expression_of, states_of
from factorfield.problem.domain import TIME, Periodic
from factorfield.problem.problem import Problem
from factorfield.problem.relation import evaluate_coefficient
from factorfield.problem.shape import Shape
from factorfield.problem.statement import Statement
from factorfield.space.axes import LEFT, RIGHT, Held

Array = NDArray[np.float64]
WHOLE = 1e-6  # of a region's boundary: what may be left without a condition by rounding


class NotAMap(ProblemError):
    """Why the equations and conditions of a problem do not give the fields as a function of the inputs."""


@dataclass(frozen=True)
class Missing:
    """A start or a wall that is not stated: an unknown function over these axes, about an unknown level."""

    name: str
    state: State
    axes: tuple[str, ...]

    @property
    def level(self) -> str:
        """The name of the input that is its level."""
        return f"{self.name}, level"


@dataclass(frozen=True, eq=False)
class Wall:
    """A condition at an end of an axis, or on a region's wall, and the state that it settles."""

    expression: Expression
    state: int
    face: Mapping[str, float]
    held: Held | None  # None: in a region
    statement: Statement | None  # None: not stated


@dataclass(frozen=True, eq=False)
class Layout:
    """`equations` and `starts` by state; a start is None where the equation has no rate."""

    problem: Problem
    states: tuple[State, ...]
    equations: tuple[Expression, ...]
    starts: tuple[Expression | None, ...]
    walls: tuple[Wall, ...]
    missing: tuple[Missing, ...]
    _kept: dict[str, Expression] = field(default_factory=dict)

    @cached_property
    def moves(self) -> bool:
        """Does anything change in time?"""
        return any(start is not None for start in self.starts)

    def conditions(self, state: int) -> dict[str, tuple[Held, ...]]:
        """What walls hold of a state, by axis."""
        result: dict[str, tuple[Held, ...]] = {}
        for wall in self.walls:
            if wall.state == state and wall.held is not None:
                (axis,) = wall.face
                result[axis] = (*result.get(axis, ()), wall.held)
        return result

    @cached_property
    def landmarks(self) -> dict[str, Landmarks]:
        """Jumps and pulses along every axis."""
        return landmarks_of(self.problem)

    def layers(self, axis: str) -> tuple[float, ...]:
        """Where jumps leave layers along an axis."""
        return layers_along(self.problem, axis, self.landmarks)

    @cached_property
    def breaks(self) -> tuple[float, ...]:
        """Instants at which a window has to end."""
        return breaks_in_time(self.problem, self.landmarks) if self.moves else ()

    def order(self, axis: str) -> int:
        """The highest derivative of the equations along an axis."""
        jets = (jet for equation in self.equations for jet in equation.fields.values())
        return max((dict(jet.orders).get(axis, 0) for jet in jets), default=0)

    @cached_property
    def is_affine(self) -> bool:
        """Are the fields an affine function of the inputs?"""
        stated = [*self.equations, *(s for s in self.starts if s is not None), *(w.expression for w in self.walls)]
        return all(expression.is_affine for expression in stated)

    @staticmethod
    def of(problem: Problem) -> Layout:
        return _Reader(problem).layout()


def error_input(statement: Statement) -> str:
    """The name of the input by which an equation, a start or a wall with a sigma is off."""
    return statement.error.name if statement.error is not None else f"_error of {statement.name}"


class _Reader:
    """Reads a problem statement by statement."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.states = problem, states_of(problem)
        self.missing: list[Missing] = []

    def layout(self) -> Layout:
        statements = self._settling()
        equations = []
        for number, state in enumerate(self.states):
            if self._is_top(state):
                equations.append(self._expression(statements[state.field]))
            else:
                equations.append(self._identity(number))
        walls = self._walls(statements)
        starts = tuple(self._start(number, statements[state.field]) for number, state in enumerate(self.states))
        return Layout(self.problem, self.states, tuple(equations), starts, tuple(walls), tuple(self.missing))

    def _is_top(self, state: State) -> bool:
        return State(state.field, state.level + 1) not in self.states

    def _expression(self, statement: Statement) -> Expression:
        if statement.sigma is None:
            return expression_of(self.problem, statement.relation)
        axes = tuple(statement.error.lengths) if statement.error is not None else ()
        if statement.kind == "equation":
            axes = self.problem.domain.names
        return expression_of(self.problem, statement.relation, error_input(statement), axes)

    def _identity(self, number: int) -> Expression:
        """The rate of a state is the next state."""
        import sympy

        rate, value = sympy.Symbol("_rate", real=True), sympy.Symbol("_next", real=True)
        jets = {rate: FieldJet(number, (), True), value: FieldJet(number + 1, (), False)}
        return Expression(rate - value, jets, {}, {}, (), frozenset())

    # -- equations

    def _settling(self) -> dict[str, Statement]:
        """The equation that settles each field."""
        equations = [s for s in self.problem.statements if s.kind == "equation"]
        if len(equations) != len(self.problem.fields):
            raise NotAMap(f"{len(equations)} equations for {len(self.problem.fields)} fields")
        score = np.array([[self._weight(s, name) for s in equations] for name in self.problem.fields])
        rows, columns = optimize.linear_sum_assignment(-score)
        if np.any(score[rows, columns] == 0.0):
            raise NotAMap("no equation settles one of the fields")
        return {name: equations[column] for name, column in zip(self.problem.fields, columns, strict=True)}

    def _weight(self, statement: Statement, name: str) -> float:
        """How much an equation is one for a field: it states its highest rate, or its highest derivative."""
        orders = [dict(jet.orders) for jet in statement.relation.jets.values() if jet.field == name]
        if not orders:
            return 0.0
        in_space = max(sum(n for axis, n in order.items() if axis != TIME) for order in orders)
        return 1.0 + 100.0 * max(order.get(TIME, 0) for order in orders) + in_space

    # -- starts

    def _start(self, number: int, equation: Statement) -> Expression | None:
        state = self.states[number]
        if not _moves(equation, state.field):
            if any(s.kind == "initial" and state.field in s.relation.fields for s in self.problem.statements):
                raise NotAMap(f"{state.field} has a start and no rate")
            return None
        stated = [s for s in self.problem.statements if s.kind == "initial" and self._starts(s, state)]
        if len(stated) > 1:
            raise NotAMap(f"{state} has {len(stated)} starts")
        if not stated:
            return self._unknown(Missing(f"_start of {state}", state, self.problem.domain.space), number)
        return self._expression(stated[0])

    def _starts(self, statement: Statement, state: State) -> bool:
        """Does a statement about the start state this state? Its highest derivative in time does."""
        if len(statement.relation.fields) != 1:
            raise NotAMap(f"{statement.name!r} does not state one field")
        return statement.relation.fields[0] == state.field and statement.relation.order(TIME) == state.level

    def _unknown(self, missing: Missing, number: int) -> Expression:
        """The state is an unknown function about an unknown level."""
        import sympy

        if len(self.problem.domain.space) > 1:
            raise NotAMap(f"no {missing.name[1:]}")
        self.missing.append(missing)
        value, level = sympy.Symbol("_value", real=True), sympy.Symbol("_level", real=True)
        inputs = {level: InputJet(missing.level, ())}
        whole = value - level
        if missing.axes:
            function = sympy.Symbol("_function", real=True)
            inputs[function] = InputJet(missing.name, ())
            whole = whole - function
        moving = frozenset({"_function"}) if TIME in missing.axes else frozenset()
        return Expression(whole, {value: FieldJet(number, (), False)}, inputs, {}, (), moving)

    # -- walls

    def _walls(self, equations: Mapping[str, Statement]) -> list[Wall]:
        walls: list[Wall] = []
        for statement in self.problem.statements:
            if statement.kind == "boundary":
                walls += self._with_rates(self._wall(statement))
        if self.problem.shape is not None:
            for name, equation in equations.items():
                _check_region_walls(name, equation, walls, self.states, self.problem.shape)
            return walls
        for name, equation in equations.items():
            walls += self._missing_walls(name, equation, walls)
        return walls

    def _wall(self, statement: Statement) -> Wall:
        expression = self._expression(statement)
        if statement.wall is not None:
            return Wall(expression, self._number(statement, ""), {}, None, statement)
        face = statement.face or {}
        if statement.stencil or len(face) != 1 or TIME in face:
            raise NotAMap(f"{statement.name!r} is no condition at one end of one axis of space")
        ((axis, place),) = face.items()
        domain = self.problem.domain[axis]
        if isinstance(domain, Periodic) or not bool(domain.is_end(place)):
            raise NotAMap(f"{statement.name!r} is not at an end of {axis}")
        end = LEFT if abs(place - domain.lower) < abs(place - domain.upper) else RIGHT
        number = self._number(statement, axis)
        return Wall(expression, number, face, self._held(statement, axis, place, end, number), statement)

    def _number(self, statement: Statement, axis: str) -> int:
        """The state that a wall settles: of the field that it differentiates most, its highest level in time."""
        jets = [jet for jet in statement.relation.jets.values() if jet.field in self.problem.fields]
        name = max(jets, key=lambda jet: dict(jet.orders).get(axis, 0)).field
        highest = max(state.level for state in self.states if state.field == name)
        level = max(dict(jet.orders).get(TIME, 0) for jet in jets if jet.field == name)
        return self.states.index(State(name, min(level, highest)))

    def _held(self, statement: Statement, axis: str, place: float, end: int, number: int) -> Held:
        """The linear part in the middle of the wall, inputs at their prior means."""
        problem, relation, state = self.problem, statement.relation, self.states[number]
        middle = {**problem.domain.centre, axis: np.array([place])}
        shares: dict[int, float] = {}
        for jet, coefficient in relation.linear_part.items():
            orders = dict(jet.orders)
            if jet.field != state.field or set(orders) - {axis, TIME} or orders.get(TIME, 0) < state.level:
                continue
            known = coefficient.subs({s: problem.functions[j.field].mean for s, j in relation.jets.items()
                                      if j.field in problem.functions and not j.orders})  # fmt: skip
            size = float(np.ravel(evaluate_coefficient(known, problem.typical_parameters, middle))[0])
            if np.isfinite(size) and size != 0.0:
                shares[orders.get(axis, 0)] = shares.get(orders.get(axis, 0), 0.0) + size
        if not shares:
            raise NotAMap(f"{statement.name!r} has no linear part in {state}")
        return Held(end, tuple(sorted(shares.items())))

    def _with_rates(self, wall: Wall) -> list[Wall]:
        """The wall, and what it says of later states by its derivatives in time."""
        walls = [wall]
        state = self.states[wall.state]
        for level in range(state.level + 1, 1 + max(s.level for s in self.states if s.field == state.field)):
            later = self.states.index(State(state.field, level))
            expression = walls[-1].expression.rate(self.states)
            walls.append(Wall(expression, later, wall.face, wall.held, wall.statement))
        return walls

    def _missing_walls(self, name: str, equation: Statement, walls: Sequence[Wall]) -> list[Wall]:
        """As many conditions along every axis as the equation has derivatives along it; those that are not stated, one
        at each end of an equation of second order, are unknown."""
        top = max(number for number, state in enumerate(self.states) if state.field == name)
        added: list[Wall] = []
        for axis in self.problem.domain.space:
            domain = self.problem.domain[axis]
            if isinstance(domain, Periodic):
                continue
            order = equation.relation.orders.get((name, axis), 0)
            ends = [wall.held.end for wall in walls if wall.state == top and axis in wall.face and wall.held]
            if len(ends) == order:
                continue
            if len(ends) > order or order != 2 or max(ends.count(LEFT), ends.count(RIGHT)) > 1:
                raise NotAMap(f"{name} has {len(ends)} conditions along {axis}, and its equation is of order {order}")
            for end, place in ((LEFT, domain.lower), (RIGHT, domain.upper)):
                if end not in ends:
                    added += self._with_rates(self._missing_wall(name, axis, end, place))
        return added

    def _missing_wall(self, name: str, axis: str, end: int, place: float) -> Wall:
        others = tuple(other for other in self.problem.domain.names if other != axis)
        if len(others) > 1:
            raise NotAMap(f"{name} has no condition at {axis} = {place:g}")
        state = State(name, 0)
        number = self.states.index(state)
        missing = Missing(f"_wall of {name} at {axis} = {place:g}", state, others)
        return Wall(self._unknown(missing, number), number, {axis: place}, Held(end, ((0, 1.0),)), None)


def _moves(equation: Statement, name: str) -> bool:
    return any(dict(jet.orders).get(TIME, 0) for jet in equation.relation.jets.values() if jet.field == name)


def _check_region_walls(
    name: str, equation: Statement, walls: Sequence[Wall], states: Sequence[State], shape: Shape
) -> None:  # fmt: skip
    orders = {sum(n for axis, n in jet.orders if axis != TIME) for jet in equation.relation.jets.values()
              if jet.field == name}  # fmt: skip
    if max(orders) != 2:
        raise NotAMap(f"an equation of order {max(orders)} in a region")
    chosen = [w.statement for w in walls if states[w.state] == State(name, 0) and w.statement is not None]
    parts = [statement.wall for statement in chosen if statement.wall is not None]
    if any(one.shared(two) for number, one in enumerate(parts) for two in parts[:number]):
        raise NotAMap(f"two conditions on {name} at one part of the wall")
    if sum(part.length for part in parts) < (1.0 - WHOLE) * shape.boundary.length:
        raise NotAMap(f"no condition on {name} at a part of the wall")
