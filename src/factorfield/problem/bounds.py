"""Bounds of a formula over cells, by interval arithmetic: whatever it does between points, it stays within them.

Bounds are never too narrow, and may be too wide where a name occurs twice; over short cells they approach the values.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from factorfield.problem.parsing import POINT

Array = NDArray[np.float64]
Truth = NDArray[np.bool_]


class Bounds(NamedTuple):
    """Of a value over each of several cells; both alike where it is known."""

    low: Array
    high: Array


Known = Mapping[str, Bounds]
RISING: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "sinh": np.sinh, "tanh": np.tanh, "atan": np.arctan, "erf": special.erf, "sign": np.sign,
    "heaviside": lambda x: np.heaviside(x, 1.0), "log": lambda x: np.log(np.maximum(x, 0.0)),
    "sqrt": lambda x: np.sqrt(np.maximum(x, 0.0)),
}  # fmt: skip


def constant(value: float) -> Bounds:
    return Bounds(np.array([float(value)]), np.array([float(value)]))


def bounds(sides: list[ast.expr], known: Known) -> Bounds:
    """Of left minus right, with every name in `known`. What has no bounds reaches to infinity."""
    with np.errstate(all="ignore"):
        found = [_bounds(side, known) for side in sides]
        low, high = found[0] if len(found) == 1 else _added(found[0], _negative(found[1]))
    return Bounds(np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))


def _bounds(node: ast.expr, known: Known) -> Bounds:
    if isinstance(node, ast.Constant):
        return constant(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return constant(math.pi) if node.id == "pi" else known[node.id]
    if isinstance(node, ast.UnaryOp):
        value = _bounds(node.operand, known)
        return _negative(value) if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        return _called(node.func.id, node.args, known)
    assert isinstance(node, ast.BinOp)
    left, right = _bounds(node.left, known), _bounds(node.right, known)
    if isinstance(node.op, ast.Add | ast.Sub):
        return _added(left, right if isinstance(node.op, ast.Add) else _negative(right))
    if isinstance(node.op, ast.Mult | ast.Div):
        return _product(left, right if isinstance(node.op, ast.Mult) else _inverse(right))
    return _power(left, right)


def _called(name: str, arguments: list[ast.expr], known: Known) -> Bounds:
    if name == "where":
        first, second = (_bounds(each, known) for each in arguments[1:])
        surely, possibly = _holds(arguments[0], known)
        low = np.where(surely, first.low, np.where(possibly, np.minimum(first.low, second.low), second.low))
        high = np.where(surely, first.high, np.where(possibly, np.maximum(first.high, second.high), second.high))
        return Bounds(low, high)
    values = [_bounds(each, known) for each in arguments]
    first = values[0]
    if name in RISING:
        return Bounds(RISING[name](first.low), RISING[name](first.high))
    if name in ("min", "max"):
        choose = np.minimum if name == "min" else np.maximum
        return Bounds(choose(first.low, values[1].low), choose(first.high, values[1].high))
    if name == POINT:
        away = _magnitude(_product(first, _inverse(values[1])))
        scale = _inverse(_product(values[1], constant(math.sqrt(2.0 * math.pi))))
        return _product(Bounds(np.exp(-0.5 * away.high**2), np.exp(-0.5 * away.low**2)), scale)
    if name in ("abs", "cosh"):
        size = _magnitude(first)
        return size if name == "abs" else Bounds(np.cosh(size.low), np.cosh(size.high))
    if name == "tan":
        return _product(_sine(first), _inverse(_sine(_added(first, constant(math.pi / 2.0)))))
    return _sine(first if name == "sin" else _added(first, constant(math.pi / 2.0)))


def _added(one: Bounds, two: Bounds) -> Bounds:
    return Bounds(one.low + two.low, one.high + two.high)


def _negative(value: Bounds) -> Bounds:
    return Bounds(-value.high, -value.low)


def _product(one: Bounds, two: Bounds) -> Bounds:
    corners = [np.nan_to_num(a * b, nan=0.0, posinf=np.inf, neginf=-np.inf) for a in one for b in two]  # 0 inf is 0
    return Bounds(np.minimum.reduce(corners), np.maximum.reduce(corners))


def _inverse(value: Bounds) -> Bounds:
    has_zero = (value.low <= 0.0) & (value.high >= 0.0)
    return Bounds(np.where(has_zero, -np.inf, 1.0 / value.high), np.where(has_zero, np.inf, 1.0 / value.low))


def _magnitude(value: Bounds) -> Bounds:
    low, high = np.abs(value.low), np.abs(value.high)
    has_zero = (value.low <= 0.0) & (value.high >= 0.0)
    return Bounds(np.where(has_zero, 0.0, np.minimum(low, high)), np.maximum(low, high))


def _power(base: Bounds, exponent: Bounds) -> Bounds:
    power = float(exponent.low[0])
    if not np.all(exponent.low == power) or not np.all(exponent.high == power):
        return Bounds(np.full_like(base.low, -np.inf), np.full_like(base.high, np.inf))
    if power < 0.0:
        return _inverse(_power(base, constant(-power)))
    if power == int(power):
        base = _magnitude(base) if power % 2.0 == 0.0 else base
    else:
        base = Bounds(np.maximum(base.low, 0.0), np.maximum(base.high, 0.0))
    return Bounds(base.low**power, base.high**power)


def _sine(angle: Bounds) -> Bounds:
    ends = np.sin(angle.low), np.sin(angle.high)
    turn = 2.0 * math.pi

    def passes(at: float) -> Truth:
        return np.floor((angle.high - at) / turn) >= np.ceil((angle.low - at) / turn)

    low = np.where(passes(-0.5 * math.pi), -1.0, np.minimum(*ends))
    return Bounds(low, np.where(passes(0.5 * math.pi), 1.0, np.maximum(*ends)))


def _holds(node: ast.expr, known: Known) -> tuple[Truth, Truth]:
    """Where a condition holds all over a cell, and where it may hold somewhere in it."""
    if isinstance(node, ast.BoolOp):
        parts = [_holds(part, known) for part in node.values]
        join = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
        surely, possibly = parts[0]
        for part in parts[1:]:
            surely, possibly = join(surely, part[0]), join(possibly, part[1])
        return surely, possibly
    if isinstance(node, ast.UnaryOp):
        surely, possibly = _holds(node.operand, known)
        return ~possibly, ~surely
    assert isinstance(node, ast.Compare)
    values = [_bounds(side, known) for side in (node.left, *node.comparators)]
    surely, possibly = np.array([True]), np.array([True])
    for comparison, left, right in zip(node.ops, values, values[1:], strict=False):
        small, large = (left, right) if isinstance(comparison, ast.Lt | ast.LtE) else (right, left)
        surely, possibly = surely & (small.high < large.low), possibly & (small.low <= large.high)
    return surely, possibly
