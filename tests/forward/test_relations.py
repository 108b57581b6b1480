"""Relations as functions of numbers: against SymPy, term by term."""

from __future__ import annotations

import re

import numpy as np
import pytest
import sympy

import factorfield as ff
from factorfield.forward.relations import Expression, expression_of

TEXTS = {
    "linear": "u_t = k*u_xx + sin(x)*u - t",
    "transport": "u_t + u*u_x = k*u_xx + q*u**2",
    "uneven": "u_t = c*u_xx + c_x*u_x",
    "table": "u_t = D*u_xx + exp(-u)*x*t",
    "jumps": "u_t = k*where(x < 0.5, 1, 2)*u_xx + max(x, t)",
}


def expression(name: str) -> tuple[ff.Problem, Expression]:
    x = np.linspace(0, 1, 5)
    parameters = {
        "k": ff.Unknown(0.5, 0.1, positive=True), "q": ff.Unknown(1.0, 0.3, over="t"),
        "c": ff.Unknown(2.0, 0.3, positive=True, over="x"), "D": ff.Table(x=x, value=1.0 + 2.0 * x),
    }  # fmt: skip
    problem = ff.Problem(
        TEXTS[name], {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)},
        {n: value for n, value in parameters.items() if re.search(rf"\b{n}(_x)?\b", TEXTS[name])},
        [ff.Initial("u = sin(pi*x)"), ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})],
    )  # fmt: skip
    (statement,) = (s for s in problem.statements if s.kind == "equation")
    return problem, expression_of(problem, statement.relation)


def values(made: Expression) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], np.ndarray]:
    """Of all symbols at three places and two instants."""
    rng = np.random.default_rng(0)
    names = [name for name, _ in (*made.named_fields, *made.named_inputs)]
    return {n: rng.uniform(0.2, 1.0, (3, 2)) for n in names}, {"x": np.array([0.1, 0.4, 0.9])}, np.array([0.2, 0.7])


def by_sympy(made: Expression, wanted: sympy.Expr) -> np.ndarray:
    seen, places, t = values(made)
    result = np.empty((3, 2))
    for place in range(3):
        for instant in range(2):
            at = {sympy.Symbol(n, real=True): v[place, instant] for n, v in seen.items()}
            x = places["x"][place]
            at |= {sympy.Symbol("x", real=True): x, sympy.Symbol("t", real=True): t[instant]}
            at |= {s: 1.0 + 2.0 * x for s in wanted.free_symbols if str(s).startswith("D")}
            result[place, instant] = float(wanted.subs(at))
    return result


@pytest.mark.parametrize("name", TEXTS)
def test_compiled_relations_have_the_values_and_slopes_of_sympy(name: str) -> None:
    _, made = expression(name)
    seen, places, t = values(made)
    value, *slopes = made.value_and_slopes(seen, places, t)
    expected = by_sympy(made, made.expression)
    np.testing.assert_allclose(np.broadcast_to(value, (3, 2)), expected, rtol=1e-12)
    for symbol, slope in zip(made.fields, slopes, strict=True):
        wanted = by_sympy(made, made.expression.diff(symbol))
        np.testing.assert_allclose(np.broadcast_to(slope, (3, 2)), wanted, rtol=1e-12)
    for symbol, slope in zip(made.inputs, made.input_slopes(seen, places, t), strict=True):
        wanted = by_sympy(made, made.expression.diff(symbol))
        np.testing.assert_allclose(np.broadcast_to(slope, (3, 2)), wanted, rtol=1e-12)


@pytest.mark.parametrize("name", TEXTS)
def test_the_linear_part_and_the_rest_add_up_to_the_relation(name: str) -> None:
    _, made = expression(name)
    total = made.rest + sum(symbol * slope for symbol, slope in made.linear.items())
    assert sympy.simplify(total - made.expression) == 0
    changing = {str(s) for s in made.fields} | made.moving
    assert not any({str(s) for s in slope.free_symbols} & changing for slope in made.linear.values())


def test_what_is_affine_in_fields_and_inputs_is_known_to_be() -> None:
    assert not expression("linear")[1].is_affine  # k is unknown and multiplies a field
    problem = ff.Problem("u_t = 2*u_xx + x*u + q", {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)},
                         {"q": ff.Unknown(0.0, 1.0, over="t")}, [ff.Initial("u = 0")])  # fmt: skip
    assert expression_of(problem, problem.statements[0].relation).is_affine


def test_a_positive_function_is_the_exponential_of_what_is_inferred() -> None:
    """c = exp(z): c_x = exp(z) z_x."""
    _, made = expression("uneven")
    by_name = {str(symbol): symbol for symbol in made.inputs}
    z, slope = by_name["_z_c_"], by_name["_z_c_x"]
    u_x = next(s for s, jet in made.fields.items() if jet.orders == (("x", 1),))
    assert sympy.simplify(made.expression.diff(u_x) + sympy.exp(z) * slope) == 0
