"""Narrow features of formulas: none is missed, however narrow, and what is no feature is none."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import factorfield as ff
from factorfield.problem.bounds import Bounds, bounds, constant
from factorfield.problem.domain import Domain
from factorfield.problem.narrow import features, narrowest
from factorfield.problem.parsing import evaluate, parse_sides

SQUARE = Domain({"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)})


@pytest.mark.parametrize(
    ("text", "axis", "place", "width"),
    [
        ("u_t = point(t - 0.777, 0.001)", "t", 0.777, 2.355e-3),
        ("u_t = u_xx + sin(pi*x)*point(t - 0.777, 1e-6)", "t", 0.777, 2.355e-6),
        ("u = exp(-((x - 0.3337)/1e-5)**2)", "x", 0.3337, 1.665e-5),
        ("u = 1 - 0.2*exp(-((x - 0.123)/1e-8)**2)", "x", 0.123, 1.665e-8),
        ("u = 1/(1 + ((x - 0.3)/1e-6)**2)", "x", 0.3, 2e-6),
        ("u = where(x > 0.3337 and not x > 0.3337001, 1, 0)", "x", 0.33370005, 1e-7),
        ("u = heaviside(x - 0.3)*heaviside(0.30001 - x)", "x", 0.300005, 1e-5),
        ("u = max(0, 1 - abs(x - k)/1e-7)", "x", 0.3, 1e-7),
        ("u_t = point(x - t, 1e-4)", "x", None, 2.355e-4),  # it moves
        ("u = sin(500*pi*x)", "x", None, 2e-3),
    ],
)
def test_the_narrowest_feature_is_found(text: str, axis: str, place: float | None, width: float) -> None:
    found = narrowest([text], axis, SQUARE, {"k": 0.3})
    assert found is not None and width / 2 < found.width < 2.5 * width  # half a cell on both sides
    assert place is None or abs(found.place - place) < width


@pytest.mark.parametrize(
    "text",
    ["u = 0*x + 1", "u = heaviside(x - 0.5)", "u = tanh((x - 0.3)/1e-6)", "u = exp(-x/1e-5)", "u_t = u_xx",
     "u = where(x < 0.5, 1, 2)", "u = (x - 0.5)**3"],
)  # fmt: skip
def test_jumps_fronts_and_what_only_rises_are_no_features(text: str) -> None:
    assert features([text], "x", SQUARE, {}) == []


def test_wide_features_are_wide() -> None:
    legendre = "u = 231/16*x**6 - 315/16*x**4 + 105/16*x**2 - 5/16"  # bounds of it are far too wide
    for text, least in (("u = sin(2*pi*x)", 0.3), ("u = x*(1 - x)", 0.5), (legendre, 0.2)):
        found = narrowest([text], "x", SQUARE, {})
        assert found is not None and found.width > least


EXPRESSIONS = st.recursive(
    st.sampled_from(["x", "1", "0.3", "pi", "k"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from([" + ", " - ", "*", "/"]), inner).map(lambda parts: f"({''.join(parts)})"),
        st.tuples(st.sampled_from(["sin", "cos", "exp", "tanh", "atan", "abs", "cosh", "sqrt", "erf", "sinh", "log"]),
                  inner).map(lambda parts: f"{parts[0]}({parts[1]})"),
        st.tuples(inner, st.sampled_from([2, 3, -1, -2])).map(lambda parts: f"({parts[0]})**({parts[1]})"),
        st.tuples(inner, inner).map(lambda parts: f"where({parts[0]} < {parts[1]}, {parts[0]}, max({parts[1]}, 0.2))"),
        inner.map(lambda part: f"point({part} - 0.2, 0.1)"),
    ),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=300, deadline=None, derandomize=True)
@given(EXPRESSIONS)
def test_no_value_lies_outside_its_bounds(text: str) -> None:
    sides = parse_sides(f"u = {text}")
    edges = np.linspace(-1.0, 2.0, 13)
    found = bounds(sides, {"x": Bounds(edges[:-1], edges[1:]), "u": constant(0.0), "k": constant(0.7)})
    for share in np.linspace(0.0, 1.0, 7):
        x = edges[:-1] + share * np.diff(edges)
        values = np.broadcast_to(evaluate(sides, {"x": x, "u": 0.0, "k": 0.7}), x.shape)
        room = 1e-9 * np.maximum(np.abs(values), 1.0)
        inside = (values >= found.low - room) & (values <= found.high + room)
        assert np.all(inside | ~np.isfinite(values)), (text, x, values, found)
