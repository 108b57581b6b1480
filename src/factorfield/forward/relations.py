"""A relation as functions of numbers: its value and slopes by derivatives of fields and by inputs, compiled once.

A relation is split into a part that is linear in derivatives of fields, with coefficients that no field and no instant
changes, and a rest. The linear part becomes one matrix, the rest is evaluated at every instant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.problem.coefficients import Table, located
from factorfield.problem.domain import TIME, Orders, Points
from factorfield.problem.problem import Problem
from factorfield.problem.relation import Relation

if TYPE_CHECKING:
    import sympy

Array = NDArray[np.float64]


@dataclass(frozen=True)
class State:
    """A field, or a time derivative of it."""

    field: str
    level: int

    def __str__(self) -> str:
        return self.field + ("_" + TIME * self.level if self.level else "")


def states_of(problem: Problem) -> tuple[State, ...]:
    """Of every field as many as its equations have time derivatives, and at least one."""
    highest = dict.fromkeys(problem.fields, 1)
    for statement in problem.statements:
        if statement.kind == "equation":
            for jet in statement.relation.jets.values():
                if jet.field in highest:
                    highest[jet.field] = max(highest[jet.field], dict(jet.orders).get(TIME, 0))
    return tuple(State(name, level) for name in problem.fields for level in range(highest[name]))


def _field_jet(states: Sequence[State], name: str, orders: dict[str, int]) -> FieldJet:
    """A derivative of a field as one of a state, or of the rate of its highest state."""
    highest = max(state.level for state in states if state.field == name)
    times = orders.get(TIME, 0)
    if times > highest + 1:
        raise expected(f"time derivatives of {name} up to order {highest + 1}", f"order {times}", "a lower one")
    inner = tuple((axis, order) for axis, order in sorted(orders.items()) if axis != TIME)
    return FieldJet(states.index(State(name, min(times, highest))), inner, times > highest)


@dataclass(frozen=True)
class FieldJet:
    """A derivative of a state in space, or of its rate."""

    field: int  # the state's number
    orders: Orders
    is_rate: bool


@dataclass(frozen=True)
class InputJet:
    """A derivative of an input."""

    name: str
    orders: Orders


@dataclass(frozen=True, eq=False)
class Expression:
    """A relation in symbols of derivatives of fields and inputs, known numbers and coordinates."""

    expression: sympy.Expr
    fields: Mapping[sympy.Symbol, FieldJet]
    inputs: Mapping[sympy.Symbol, InputJet]
    constants: Mapping[str, Any]  # known numbers and tables
    coordinates: tuple[str, ...]
    moving: frozenset[str]  # names of symbols that change in time besides fields

    @property
    def present(self) -> Expression:
        """Without the symbols that the expression does not hold."""
        symbols = self.expression.free_symbols
        return replace(
            self, fields={s: jet for s, jet in self.fields.items() if s in symbols},
            inputs={s: jet for s, jet in self.inputs.items() if s in symbols},
        )  # fmt: skip

    def rate(self, states: Sequence[State]) -> Expression:
        """The derivative in time of a relation without rates."""
        import sympy

        total = sympy.Integer(0)
        fields, inputs, coordinates = dict(self.fields), dict(self.inputs), list(self.coordinates)
        for symbol, jet in self.fields.items():
            state = states[jet.field]
            later = sympy.Symbol(f"{symbol}_later", real=True)
            fields[later] = _field_jet(states, state.field, {**dict(jet.orders), TIME: state.level + 1})
            total = total + self.expression.diff(symbol) * later
        for symbol, part in self.inputs.items():
            if str(symbol) in self.moving:
                raised = dict(part.orders) | {TIME: dict(part.orders).get(TIME, 0) + 1}
                later = sympy.Symbol(f"{symbol}_later", real=True)
                inputs[later] = InputJet(part.name, tuple(sorted(raised.items())))
                total = total + self.expression.diff(symbol) * later
        for name in self.coordinates:
            symbol = sympy.Symbol(name, real=True)
            if name == TIME:
                total = total + self.expression.diff(symbol)
            elif name in self.moving:  # a table
                later_name = f"{name}{TIME}" if "_" in name else f"{name}_{TIME}"
                coordinates.append(later_name)
                total = total + self.expression.diff(symbol) * sympy.Symbol(later_name, real=True)
        moving = self.moving | {f"{name}_later" for name in self.moving} | set(coordinates[len(self.coordinates) :])
        changed = replace(
            self, expression=total, fields=fields, inputs=inputs, coordinates=tuple(coordinates), moving=moving
        )
        return changed.present

    @property
    def logarithm(self) -> Expression:
        import sympy

        return replace(self, expression=sympy.log(self.expression))

    @cached_property
    def named_fields(self) -> list[tuple[str, FieldJet]]:
        return [(str(symbol), jet) for symbol, jet in self.fields.items()]

    @cached_property
    def named_inputs(self) -> list[tuple[str, InputJet]]:
        return [(str(symbol), jet) for symbol, jet in self.inputs.items()]

    @cached_property
    def linear(self) -> dict[sympy.Symbol, sympy.Expr]:
        """Field symbols with a coefficient that neither fields nor time change."""
        changing = {str(symbol) for symbol in self.fields} | self.moving
        slopes = {symbol: self.expression.diff(symbol) for symbol in self.fields}
        return {s: slope for s, slope in slopes.items() if not {str(f) for f in slope.free_symbols} & changing}

    @cached_property
    def rest(self) -> sympy.Expr:
        return self.expression.subs(dict.fromkeys(self.linear, 0))

    @cached_property
    def live(self) -> list[sympy.Symbol]:
        """The field symbols of the rest."""
        return [symbol for symbol in self.fields if symbol in self.rest.free_symbols]

    @cached_property
    def rest_moves(self) -> bool:
        return bool({str(symbol) for symbol in self.rest.free_symbols} & self.moving)

    @cached_property
    def is_affine(self) -> bool:
        """Linear in fields and inputs together."""
        symbols = [*self.fields, *self.inputs]
        slopes = [self.expression.diff(symbol) for symbol in symbols]
        return not any(slope.free_symbols & set(symbols) for slope in slopes)

    @cached_property
    def linear_coefficients(self) -> Compiled:
        return Compiled(self, list(self.linear.values()))

    @cached_property
    def rest_value(self) -> Compiled:
        return Compiled(self, [self.rest])

    @cached_property
    def rest_and_slopes(self) -> Compiled:
        return Compiled(self, [self.rest, *(self.rest.diff(symbol) for symbol in self.live)])

    @cached_property
    def input_slopes(self) -> Compiled:
        return Compiled(self, [self.expression.diff(symbol) for symbol in self.inputs])

    @cached_property
    def value(self) -> Compiled:
        return Compiled(self, [self.expression])

    @cached_property
    def value_and_slopes(self) -> Compiled:
        """The whole relation, then its slopes by all field symbols."""
        return Compiled(self, [self.expression, *(self.expression.diff(symbol) for symbol in self.fields)])


class Compiled:
    """Several expressions as one function of arrays (places, instants)."""

    def __init__(self, of: Expression, expressions: Sequence[sympy.Expr]) -> None:
        import sympy

        names = sorted({str(s) for e in expressions for s in e.free_symbols})
        self.names, self._of = frozenset(names), of
        infinite = sympy.zoo, sympy.nan, sympy.oo, -sympy.oo
        expressions = [sympy.nan if e.has(*infinite) else e for e in expressions]
        symbols = [sympy.Symbol(name, real=True) for name in names]
        self._order = names
        self._function: Callable[..., Any] = sympy.lambdify(
            symbols, expressions, modules=["scipy", "numpy"], cse=True, dummify=True
        )

    def __call__(self, values: Mapping[str, Array], places: Points, t: Array) -> list[Array]:
        """`values` of field and input symbols by name; arrays that broadcast to (places, instants)."""
        arguments = {**self._known, **values}
        if self._wanted:
            arguments |= self._coordinates(places, t)
        with np.errstate(all="ignore"):
            return [np.asarray(v, float) for v in self._function(*(arguments[name] for name in self._order))]

    @cached_property
    def _known(self) -> dict[str, Any]:
        constants = self._of.constants.items()
        return {n: np.float64(v) for n, v in constants if n in self.names and not isinstance(v, Table)}

    @cached_property
    def _wanted(self) -> list[str]:
        return [name for name in self._of.coordinates if name in self.names]

    def _coordinates(self, places: Points, t: Array) -> dict[str, Array]:
        known: dict[str, Array] = {}
        for name in self._wanted:
            if name in places:  # time too, where every place has an instant of its own
                known[name] = np.asarray(places[name])[:, None]
            elif name == TIME:
                known[name] = t[None, :]
        tables = [name for name in self._wanted if name not in known]
        if tables:
            count = len(next(iter(places.values()))) if places else 1
            spread = {TIME: np.tile(t, count)} | {axis: np.repeat(x, len(t)) for axis, x in places.items()}
            whole = located(spread, tables, self._of.constants)
            known |= {name: whole[name].reshape(count, len(t)) for name in tables}
        return known


def expression_of(
    problem: Problem, relation: Relation, error: str | None = None, error_axes: Sequence[str] = ()
) -> Expression:
    """The relation with unknown numbers and functions as inputs; less the input `error` over axes where one is named."""
    import sympy

    states = states_of(problem)
    fields: dict[sympy.Symbol, FieldJet] = {}
    inputs: dict[sympy.Symbol, InputJet] = {}
    replaced: dict[sympy.Symbol, sympy.Expr] = {}
    for symbol, jet in relation.jets.items():
        if jet.field in problem.functions:
            replaced[symbol] = _function(problem, jet.field, jet.orders, inputs)
        else:
            fields[symbol] = _field_jet(states, jet.field, dict(jet.orders))
    for name in relation.parameters:
        if name in problem.unknowns:
            z = _input_symbol(InputJet(name, ()), inputs)
            replaced[sympy.Symbol(name, real=True)] = sympy.exp(z) if problem.unknowns[name].positive else z
    whole = relation.expression.subs(replaced)
    if error is not None:
        whole = whole - _input_symbol(InputJet(error, ()), inputs)
    tables = {n for n, v in problem.constants.items() if isinstance(v, Table) and TIME in v.axes}
    moving = {c for c in relation.coordinates if c == TIME or c.partition("_")[0] in tables}
    for symbol, part in inputs.items():
        axes = error_axes if part.name == error else _axes_of(problem, part.name)
        moving |= {str(symbol)} if TIME in axes else set()
    return Expression(whole, fields, inputs, problem.constants, relation.coordinates, frozenset(moving))


def _axes_of(problem: Problem, name: str) -> tuple[str, ...]:
    """The axes that an unknown coefficient varies over."""
    return tuple(problem.functions[name].over) if name in problem.functions else ()


def _input_symbol(jet: InputJet, inputs: dict[sympy.Symbol, InputJet]) -> sympy.Symbol:
    import sympy

    name = f"_z_{jet.name}_" + "".join(axis * times for axis, times in jet.orders)
    symbol = sympy.Symbol(name, real=True)
    inputs[symbol] = jet
    return symbol


def _function(problem: Problem, name: str, orders: Orders, inputs: dict[sympy.Symbol, InputJet]) -> sympy.Expr:
    """A derivative of an unknown function in derivatives of what is inferred: z itself, or exp(z) if it is positive."""
    import sympy

    z = _input_symbol(InputJet(name, ()), inputs)
    if not problem.functions[name].positive:
        if orders:
            del inputs[z]
            return _input_symbol(InputJet(name, orders), inputs)
        return z
    expression = sympy.exp(z)
    for axis, times in orders:
        for _ in range(times):
            total = sympy.Integer(0)
            for symbol in [s for s in expression.free_symbols if s in inputs]:
                jet = inputs[symbol]
                raised = dict(jet.orders) | {axis: dict(jet.orders).get(axis, 0) + 1}
                along = _input_symbol(InputJet(name, tuple(sorted(raised.items()))), inputs)
                total = total + expression.diff(symbol) * along
            expression = total
    return expression
