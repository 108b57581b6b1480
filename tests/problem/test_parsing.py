"""Text as equations: what is unsafe or malformed is refused, quickly and in one line."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorfield import ProblemError
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
