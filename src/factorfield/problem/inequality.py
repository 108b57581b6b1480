"""Conditions over coordinates, such as `x**2 + y**2 < 1 and not y > 0.5`: parsed like equations, never run.

A condition is comparisons joined by and, or, not. Every comparison says that a function of the coordinates is positive;
where one of these functions is zero, the condition may change.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected, nearest
from factorfield.problem.domain import Points
from factorfield.problem.parsing import RESERVED, evaluate, holds, names_in, parse_condition, to_sympy
from factorfield.problem.relation import evaluate_coefficient

Array = NDArray[np.float64]
Truth = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Level:
    """The function of one comparison, positive where that holds, and its slope along every axis."""

    sides: tuple[ast.expr, ast.expr]  # large one first
    axes: tuple[str, ...]
    constants: Mapping[str, float]

    def __call__(self, points: Points) -> Array:
        count = len(points[self.axes[0]])
        return np.broadcast_to(evaluate(list(self.sides), {**self.constants, **points}), (count,))

    def gradient(self, points: Points) -> Array:
        """One row per point."""
        count = len(points[self.axes[0]])
        slopes = [evaluate_coefficient(slope, self.constants, points) for slope in self._slopes]
        return np.stack([np.broadcast_to(slope, (count,)) for slope in slopes], axis=1)

    @cached_property
    def _slopes(self) -> list[object]:
        import sympy

        names = (*self.axes, *self.constants)
        symbols = {name: sympy.Symbol(name, real=True) for name in names}
        expression = to_sympy(list(self.sides), symbols, frozenset(self.constants))
        return [expression.diff(symbols[axis]) for axis in self.axes]

    @property
    def text(self) -> str:
        """By which equal ones are known."""
        return " - ".join(ast.unparse(side) for side in self.sides)


@dataclass(frozen=True, eq=False)
class Inequality:
    """A text with the axes that it may speak of and the numbers that its other names stand for."""

    text: str
    axes: tuple[str, ...]
    constants: Mapping[str, float]
    tree: ast.expr

    @staticmethod
    def of(text: str, axes: Sequence[str], parameters: Mapping[str, object]) -> Inequality:
        """Checked: every name is an axis or a known number."""
        tree = parse_condition(text)
        used = {}
        for name in names_in([tree]):
            if name in axes:
                continue
            value = parameters.get(name)
            if isinstance(value, int | float):
                used[name] = float(value)
            elif name in parameters:
                received = f"{name!r}, which is unknown or varies"
                raise expected(f"axes and known numbers in {text!r}", received, "the number itself")
            elif name in RESERVED:
                raise expected("a call such as sin(x)", f"the bare name {name!r}", f"{name}(x)")
            else:
                remedy = f"{nearest(name, [*axes, *parameters])}, or parameters={{{name!r}: 1.0}}"
                raise expected(f"the axes {', '.join(axes)} and parameters in {text!r}", f"{name!r}", remedy)
        return Inequality(text, tuple(axes), used, tree)

    def holds(self, points: Points) -> Truth:
        """At every point."""
        count = len(points[self.axes[0]])
        return np.broadcast_to(holds(self.tree, {**self.constants, **points}), (count,))

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The functions of its comparisons, equal ones once."""
        found: dict[str, Level] = {}
        for node in ast.walk(self.tree):
            for level in self._levels_of(node) if isinstance(node, ast.Compare) else ():
                found.setdefault(level.text, level)
        return tuple(found.values())

    def _levels_of(self, node: ast.Compare) -> list[Level]:
        pairs = pairwise((node.left, *node.comparators))
        is_less = [isinstance(op, ast.Lt | ast.LtE) for op in node.ops]
        return [
            Level((right, left) if less else (left, right), self.axes, self.constants)
            for less, (left, right) in zip(is_less, pairs, strict=True)
        ]

    def with_level(self, level: Level, is_positive: bool, points: Points) -> Truth:
        """Where it holds if one of its comparisons were true, or false, everywhere."""
        count = len(points[self.axes[0]])
        return np.broadcast_to(self._assuming(self.tree, level, is_positive, points), (count,))

    def _assuming(self, node: ast.expr, level: Level, is_positive: bool, points: Points) -> Truth:
        if isinstance(node, ast.BoolOp):
            join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            parts = [self._assuming(part, level, is_positive, points) for part in node.values]
            return np.asarray(join.reduce(np.broadcast_arrays(*parts)))
        if isinstance(node, ast.UnaryOp):
            return ~self._assuming(node.operand, level, is_positive, points)
        assert isinstance(node, ast.Compare)
        found = np.ones((), bool)
        for own in self._levels_of(node):
            found = found & (np.array(is_positive) if own.text == level.text else own(points) > 0.0)
        return np.asarray(found)
