"""Jumps and point sources in texts: when something jumps in time, and how wide a point is that nobody told."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from factorfield.errors import expected
from factorfield.problem.domain import TIME, Axis, Domain
from factorfield.problem.parsing import JUMPING, POINT, evaluate, names_in, parse_sides

Array = NDArray[np.float64]
WIDTH = 0.02  # of an axis: a point source that nobody told the width of
SAMPLED = 4001  # instants among which the changes of a sign are looked for
MOST_JUMPS = 500


def with_widths(text: str, domain: Domain) -> str:
    """The text with a width for every point source that has none: two hundredths of its axis."""
    if not isinstance(text, str) or f"{POINT}(" not in text.replace(" ", ""):
        return text
    sides = parse_sides(text)
    bare = [call for call in _calls(sides) if _name(call) == POINT and len(call.args) == 1]
    for call in bare:
        axes = [name for name in names_in([call.args[0]]) if name in domain]
        if len(axes) != 1:
            wanted = "point() of one coordinate, or with its width"
            raise expected(wanted, ast.unparse(call), "point(x - 0.3)*point(y - 0.4), or point(x - 0.3, 0.02)")
        call.args.append(ast.Constant(float(f"{WIDTH * domain[axes[0]].length:.6g}")))
    return " = ".join(ast.unparse(side) for side in sides) if bare else text


def instants(texts: list[str], horizon: Axis, constants: Mapping[str, object]) -> tuple[float, ...]:
    """When something in these texts jumps, or has a kink, everywhere at once: within the horizon, in order."""
    return places(texts, TIME, horizon, constants)


def places(texts: list[str], name: str, horizon: Axis, constants: Mapping[str, object]) -> tuple[float, ...]:
    """Where along an axis something in these texts jumps, or has a kink, whatever the other axes: in order."""
    numbers = {name: value for name, value in constants.items() if isinstance(value, int | float)}
    found: set[float] = set()
    for text in texts:
        for sides in _levels(parse_sides(text)):
            names = set(names_in(sides))
            if name in names and names <= {name, *numbers}:
                found |= set(_zeros(sides, name, horizon, numbers))
    if len(found) > MOST_JUMPS:
        attempt = f"a smooth function of {name}, or ff.Table"
        raise expected(f"at most {MOST_JUMPS} jumps in {name}", str(len(found)), attempt)
    apart = 1e-9 * horizon.length
    return tuple(t for t in sorted(found) if horizon.lower + apart < t < horizon.upper - apart)


def _calls(sides: list[ast.expr]) -> Iterator[ast.Call]:
    yield from (node for side in sides for node in ast.walk(side) if isinstance(node, ast.Call))


def _name(call: ast.Call) -> str:
    assert isinstance(call.func, ast.Name)
    return call.func.id


def _levels(sides: list[ast.expr]) -> Iterator[list[ast.expr]]:
    """The expressions, left less right, at whose zeros something changes."""
    for call in _calls(sides):
        if _name(call) == "where":
            for node in (node for node in ast.walk(call.args[0]) if isinstance(node, ast.Compare)):
                both = [node.left, *node.comparators]
                yield from ([left, right] for left, right in pairwise(both))
        elif _name(call) in JUMPING:
            yield call.args


def _zeros(sides: list[ast.expr], name: str, horizon: Axis, numbers: Mapping[str, float]) -> Iterator[float]:
    def level(t: float | Array) -> Array:
        return evaluate(sides, {**numbers, name: t})

    at = np.linspace(horizon.lower, horizon.upper, SAMPLED)
    values = np.broadcast_to(level(at), at.shape)
    for index in np.flatnonzero(values == 0.0):
        yield float(at[index])
    for index in np.flatnonzero(values[:-1] * values[1:] < 0.0):
        yield float(optimize.brentq(level, at[index], at[index + 1], xtol=1e-15 * horizon.length))
