"""Bad descriptions are refused when built, with one line: what was expected, what came, what to try."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

import factorfield as ff

DOMAIN = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 2)}
X = np.linspace(0.05, 0.95, 10)


def build(**changes: Any) -> ff.Problem:
    arguments: dict[str, Any] = {
        "equation": "u_t + b*u_x",
        "domain": DOMAIN,
        "parameters": {"b": 0.4},
        "conditions": [ff.Observations(x=X, t=0.0, u=np.sin(X), sigma=0.1)],
    }
    return ff.Problem(**{**arguments, **changes})


def observed(**columns: Any) -> list[ff.Observations]:
    return [ff.Observations(**{"x": X, "t": 0.0, "u": np.sin(X), **columns})]


BAD = {
    "unknown symbol": ({"equation": "u_t + c*u_x"}, "unknown symbol 'c'"),
    "unknown function": ({"equation": "u_t + gamma(u)"}, "gamma"),
    "no field": ({"equation": "b*x + 1", "conditions": []}, "a field"),
    "missing axis": ({"equation": "u_t + b*u_y"}, "along 'y'"),
    "nan data": ({"conditions": observed(u=np.full(10, np.nan))}, "10 NaN"),
    "infinite coordinate": ({"conditions": observed(x=np.full(10, np.inf))}, "NaN or infinite"),
    "sigma zero": ({"conditions": observed(sigma=0.0)}, "sigma > 0"),
    "sigma negative": ({"equation": ff.Equation("u_t + b*u_x", sigma=-1.0)}, "sigma > 0"),
    "sigma shape": ({"conditions": observed(sigma=np.ones(3))}, "one sigma, or 10"),
    "length zero": ({"conditions": [ff.Initial("u = 0", sigma=0.1, length=0.0)]}, "length > 0"),
    "length text": ({"conditions": [ff.Initial("u = 0", sigma=0.1, length="far")]}, "numbers for length"),
    "length infinite": ({"conditions": [ff.Initial("u = 0", sigma=0.1, length=np.inf)]}, "finite numbers for length"),
    "length across": ({"conditions": [ff.Initial("u = 0", sigma=0.1, length={"t": 1.0})]}, "along x"),
    "length alone": ({"conditions": [ff.Initial("u = 0", length=1.0)]}, "sigma beside length="),
    "length of a point": (
        {"conditions": [ff.Boundary("u = 0", at={"x": 0, "t": 0}, sigma=0.1, length=1.0)]}, "one point",
    ),
    "shapes": ({"conditions": observed(x=X[:4])}, "10 like u"),
    "matrix of values": ({"conditions": observed(u=np.ones((2, 5)))}, "one-dimensional"),
    "outside": ({"conditions": observed(t=5.0)}, "outside"),
    "no values": ({"conditions": [ff.Observations(x=X, t=0.0)]}, "one column of values"),
    "empty": ({"conditions": observed(x=[], u=[])}, "at least one"),
    "missing coordinate": ({"conditions": [ff.Observations(x=X, u=X)]}, "none for t"),
    "text as data": ({"conditions": observed(u="hello")}, "numbers"),
    "parameter nan": ({"parameters": {"b": np.nan}}, "finite"),
    "parameter text": ({"parameters": {"b": "fast"}}, "numbers for parameter b"),
    "parameter array": ({"parameters": {"b": [1.0, 2.0]}}, "one number"),
    "parameter is axis": ({"parameters": {"x": 1.0, "b": 1.0}}, "no axis"),
    "parameter is function": ({"parameters": {"sin": 1.0, "b": 1.0}}, "function"),
    "parameter dunder": ({"parameters": {"__b": 1.0}}, "letters"),
    "not a condition": ({"conditions": ["u = 0"]}, "ff.Observations"),
    "equation type": ({"equation": 3}, "an equation as text"),
    "no equation": ({"equation": []}, "an equation as text"),
    "initial without field": ({"conditions": [ff.Initial("x = 0")]}, "mentions none"),
    "initial without time": (
        {"equation": "u_xx", "domain": {"x": ff.Interval(0, 1)}, "conditions": [ff.Initial("u = 0")], "parameters": {}},
        "a time axis",
    ),
    "boundary axis": ({"conditions": [ff.Boundary("u = 0", at={"y": 0})]}, "one of the axes"),
    "boundary place": ({"conditions": [ff.Boundary("u = 0", at={"x": 7})]}, "x in [0, 1]"),
    "boundary shape": ({"conditions": [ff.Boundary("u = 0", at=0.0)]}, "at={'x': 0}"),  # type: ignore[arg-type]
    "of without value": ({"conditions": [ff.Observations(x=X, t=0.0, u=X, of="u_x")]}, "under the name value"),
    "third order axis": ({"equation": "u_t + u_xxxxxxxxx"}, "order 8"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_descriptions_are_refused_with_advice(case: str) -> None:
    changes, words = BAD[case]
    with pytest.raises(ff.ProblemError) as caught:
        build(**changes)
    text = str(caught.value)
    assert words in text and "expected" in text and "received" in text and "try" in text and "\n" not in text


@pytest.mark.parametrize(
    "text",
    ["u_t.__class__", "exec(u)", "lambda: u", "u[0]", "__import__", "9**9**9**9*u", "(" * 10_000 + "u" + ")" * 10_000,
     "u" * 1_000_000],
)  # fmt: skip
def test_hostile_equations_raise_problem_error(text: str) -> None:
    with pytest.raises(ff.ProblemError):
        build(equation=text)


def test_a_good_problem_is_understood() -> None:
    problem = build(
        conditions=[*observed(sigma=0.1), ff.Initial("u = sin(2*pi*x)"), ff.Boundary("u_x = 0", at={"x": 0})]
    )
    assert problem.fields == ("u",) and problem.constants == {"b": 0.4}
    assert [s.name for s in problem.statements] == [
        "equation", "observations of u", "initial: u = sin(2*pi*x)", "boundary x = 0: u_x = 0",
    ]  # fmt: skip


def test_systems_and_unknowns_are_part_of_the_description() -> None:
    problem = ff.Problem(
        ["h_t = a*h - b*h*l", ff.Equation("l_t = -c*l + d*h*l", sigma=0.1)],
        {"t": ff.Interval(0, 20)},
        {"a": ff.Unknown(0.5, 0.2, positive=True), "b": 0.03, "c": ff.Unknown(0.8, 0.3), "d": 0.02},
        [ff.Observations(t=[0.0, 1.0], h=[30.0, 47.2], sigma=3.0)],
    )
    assert problem.fields == ("h", "l") and set(problem.unknowns) == {"a", "c"}
    assert problem.statements[1].sigma == 0.1


def test_an_unused_parameter_is_advised_about() -> None:
    with pytest.warns(ff.AdviceWarning, match="'c' appears in no equation"):
        build(parameters={"b": 1.0, "c": 2.0})


def test_statements_know_their_kind_and_have_names_of_their_own() -> None:
    wall = ff.Boundary("u_x = 0", at={"x": 0})
    start = ff.Initial("u = sin(2*pi*x)")
    problem = build(conditions=[*observed(), wall, start, *observed(), wall, wall, start])
    assert [(s.kind, s.name) for s in problem.statements] == [
        ("equation", "equation"),
        ("observation", "observations of u"),
        ("boundary", "boundary x = 0: u_x = 0"),
        ("initial", "initial: u = sin(2*pi*x)"),
        ("observation", "observations of u (2)"),
        ("boundary", "boundary x = 0: u_x = 0 (2)"),
        ("boundary", "boundary x = 0: u_x = 0 (3)"),
        ("initial", "initial: u = sin(2*pi*x) (2)"),
    ]


def test_a_problem_is_frozen_and_changed_by_replace_which_checks() -> None:
    problem = build(name="ring", units={"x": "m"})
    with pytest.raises(FrozenInstanceError):
        problem.name = "other"  # type: ignore[misc]
    faster = problem.replace(parameters={"b": 0.5})
    assert (faster.parameters, problem.parameters) == ({"b": 0.5}, {"b": 0.4})
    assert (faster.name, faster.units, faster.conditions) == ("ring", {"x": "m"}, problem.conditions)
    with pytest.raises(ff.ProblemError, match="numbers for parameter b"):
        problem.replace(parameters={"b": "fast"})  # type: ignore[dict-item]


def test_exchanged_statements_leave_the_first_problem_alone() -> None:
    problem = build()
    other = problem.with_statements(problem.statements[:1])
    assert (len(problem.statements), len(other.statements)) == (2, 1) and other.equations is problem.equations
