"""Text as equations: what is unsafe or malformed is refused, quickly and in one line."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorfield import ProblemError
from factorfield.problem.parsing import holds, parse_condition
from factorfield.problem.relation import parse_relation

AXES = ("t", "x")


@pytest.mark.parametrize(
    "text",
    [
        "u_t.__class__", "().__class__.__bases__", "open('x')", "__import__('os')", "lambda: u", "u[0]",
        "u_t if u else 0",
        "eval(u)", "u_t; u_x", "[u for u in u]", "'text'", "u__t", "_u", "9**9**9**9*u", "2**u_x", "u**1000", "1e999*u",
        "u + 1j", "(" * 10_000 + "u" + ")" * 10_000, "u+" * 500_000 + "u", "-" * 1900 + "u", "u_t = 1 = 2", "",
        "u_t +", "sin(u, u)", "sin", "max(u, 1)", "u_t ^ 2", "u := 3", "u_t\0", "True*u_t", "u/0", "log(0)*u",
        "sqrt(-1)*u",
        "f(x)(u)", "u_t == 0", "u_t < 1", "not u", "((((9**20)**20)**20)**20)*u", "exp(exp(exp(9)))*u", "µ*u",
        "*u", "u_t @ u",
    ],
)  # fmt: skip
def test_unsafe_or_malformed_text_is_refused_quickly_in_one_line(text: str) -> None:
    begin = time.perf_counter()
    with pytest.raises(ProblemError) as caught:
        parse_relation(text, ["u"], AXES, ())
    assert time.perf_counter() - begin < 5.0  # a hostile text must not hang; it takes milliseconds
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_a_benign_equation_next_to_them_is_accepted() -> None:
    assert parse_relation("u_t + 2*u_x**2 - sin(pi*x)*exp(-t)", ["u"], AXES, ()).fields == ("u",)


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_text_parses_or_raises_problem_error(text: str) -> None:
    try:
        parse_relation(text, ["u"], AXES, ("b",))
    except ProblemError as problem:
        assert "\n" not in str(problem)


@pytest.mark.parametrize(
    "text",
    [
        "x", "1", "x + 1", "x == 1", "x != 1", "x = 1", "x < 1 and y", "not x", "x in y", "x is y", "x < 1 & y < 1",
        "(x < 1) | (y < 1)", "x < open('a')", "x.real < 1", "[x < 1]", "x < 1 if y < 1 else x > 1", "(x < 1) < 1",
        "x < 1 and __import__('os') < 1", "sin(x < 1) < 1", "lambda: x < 1", "x <", "", "x < 'a'", "x < True",
        "x < 1j", "not " * 500 + "x < 1", "x < µ", "any(x < 1)", "x < 1, y < 1", "(z := x) < 1", 3, None,
        "x < 1 and " * 400 + "x < 1",
    ],
)  # fmt: skip
def test_what_is_no_condition_is_refused_quickly_in_one_line(text: str) -> None:
    begin = time.perf_counter()
    with pytest.raises(ProblemError) as caught:
        parse_condition(text)
    assert time.perf_counter() - begin < 5.0  # as above
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


def test_conditions_are_true_where_python_says_so() -> None:
    x, y = np.meshgrid(np.linspace(-2, 2, 21), np.linspace(-2, 2, 17))
    for text in (
        "x**2 + y**2 < 1", "x**2 + y**2 <= 1 and not (x > 0.25 or y >= 0.5)", "0 < x < 1 <= y",
        "x > 0 or y > 0 and x < -1", "not x > y and not y > 1", "abs(x) < 1 and exp(y) > 0.5",
    ):  # fmt: skip
        names = {"x": x, "y": y, "abs": np.abs, "exp": np.exp}
        wanted = np.vectorize(lambda a, b, code=text, known=names: bool(eval(code, {**known, "x": a, "y": b})))(x, y)
        np.testing.assert_array_equal(holds(parse_condition(text), {"x": x, "y": y}), wanted)


def test_a_condition_without_a_real_value_does_not_hold() -> None:
    assert list(holds(parse_condition("sqrt(x) < 1"), {"x": np.array([-1.0, 0.5, 2.0])})) == [False, True, False]
