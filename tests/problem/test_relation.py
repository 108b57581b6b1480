"""Equations as text: safe to read, correctly differentiated, correctly rewritten for the ansatz."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from numpy.testing import assert_allclose

from factorfield import Identity, PiecewiseExponential
from factorfield.model.representation import Form, substitute, without_curvature
from factorfield.problem.relation import Jet, find_fields, parse_relation

AXES = ("t", "x")
EQUATIONS = {
    "advection": ("u_t + b*u_x", {"b": 0.7}),
    "fisher": ("u_t = nu*u_xx + rho*u*(1-u)", {"nu": 0.3, "rho": 2.0}),
    "burgers": ("u_t + u*u_x = nu*u_xx", {"nu": 0.1}),
    "odd": ("u_tt - sin(x)*u_xx + exp(-u**2)*u_xt + tanh(u_x)/(2 + u**2) = t*u", {}),
}


def relation(name: str):  # type: ignore[no-untyped-def]
    text, values = EQUATIONS[name]
    return parse_relation(text, ["u"], AXES, tuple(values)), values


def test_parts_of_an_equation() -> None:
    fisher, _ = relation("fisher")
    assert not fisher.is_linear and fisher.order("x") == 2 and fisher.order("t") == 1
    assert fisher.parameters == ("nu", "rho") and fisher.coordinates == ()
    nu, rho = sympy.symbols("nu rho", real=True)
    assert fisher.linear_part == {Jet("u", (("t", 1),)): 1, Jet("u", (("x", 2),)): -nu, Jet("u"): -rho}
    odd, _ = relation("odd")
    assert set(odd.coordinates) == {"x", "t"} and odd.order("t") == 2
    assert relation("advection")[0].is_linear


def test_systems_and_their_fields() -> None:
    texts = ["h_t = a*h - b*h*l", "l_t = -c*l + d*h*l"]
    assert find_fields(texts, ("t",), ["a", "b", "c", "d", "t"], []) == ["h", "l"]
    assert find_fields(["u = 3"], ("x",), ["x"], ["u"]) == ["u"]
    second = parse_relation(texts[1], ["h", "l"], ("t",), ("c", "d"))
    assert set(second.fields) == {"h", "l"}


@pytest.mark.parametrize("name", EQUATIONS)
@pytest.mark.parametrize("activation", [Identity(), PiecewiseExponential(0.8, 0.6)])
@pytest.mark.parametrize("readout", [(1.0,), (1.0, -0.5)])
def test_gradient_matches_finite_differences(name: str, activation: Identity, readout: tuple[float, ...]) -> None:
    parsed, values = relation(name)
    form = Form(tuple(f"u{h}" for h in range(len(readout))), AXES, readout, activation)
    latent = substitute(parsed, {"u": form})
    rng = np.random.default_rng(0)
    zeta = rng.standard_normal((20, len(latent.functionals)))
    zeta += np.where(np.abs(zeta) < 0.05, 0.2, 0.0)  # stay off the kink
    points = {"x": rng.random(20), "t": rng.random(20)}
    value, gradient = latent.value_and_gradient(zeta, values, points)
    assert_allclose(value, latent.value(zeta, values, points), rtol=1e-13)
    for j in range(zeta.shape[1]):
        e = np.zeros_like(zeta)
        e[:, j] = 1e-6
        slope = (latent.value(zeta + e, values, points) - latent.value(zeta - e, values, points)) / 2e-6
        assert_allclose(gradient[:, j], slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", EQUATIONS)
def test_chain_rule_equals_sympy_on_an_explicit_field(name: str) -> None:
    """Substitute z = explicit function and g = explicit branch into u = g(z): both ways give one number."""
    parsed, values = relation(name)
    g = PiecewiseExponential(0.8, 0.6)
    latent = substitute(parsed, {"u": Form(("z",), AXES, (1.0,), g)})
    x, t = sympy.symbols("x t", real=True)
    z = 2 + sympy.sin(x) * sympy.cos(2 * t) / 3 + t * x / 5  # positive: the upper branch
    u = sympy.exp(sympy.Rational(6, 10) * z) - 1
    where = {x: 0.37, t: 0.81}
    jets = {s: u.diff(*[sympy.Symbol(a, real=True) for a, n in jet.orders for _ in range(n)]) if jet.orders else u
            for s, jet in parsed.jets.items()}  # fmt: skip
    constants = {sympy.Symbol(k, real=True): v for k, v in values.items()}
    exact = float(parsed.expression.subs(jets).subs(constants).subs(where))
    zeta = []
    for functional in latent.functionals:
        total = sympy.Integer(0)
        for orders, coefficient in functional.terms:
            letters = [sympy.Symbol(a, real=True) for a, n in orders for _ in range(n)]
            total += coefficient * (z.diff(*letters) if letters else z)
        zeta.append(float(total.subs(constants).subs(where)))
    points = {"x": np.array([0.37]), "t": np.array([0.81])}
    assert latent.value(np.array([zeta]), values, points)[0] == pytest.approx(exact, rel=1e-12)


def test_derivatives_that_act_together_are_read_as_one_functional() -> None:
    advection, _ = relation("advection")
    linear = substitute(advection, {"u": Form(("u",), AXES)})
    assert len(linear.functionals) == 1 and linear.is_linear
    bent = substitute(advection, {"u": Form(("u",), AXES, (1.0,), PiecewiseExponential())})
    assert [str(f) for f in bent.functionals] == ["u", "u_t + (b)*u_x"] and not bent.is_linear
    fisher = substitute(relation("fisher")[0], {"u": Form(("u",), AXES, (1.0,), PiecewiseExponential())})
    assert [str(f) for f in fisher.functionals] == ["u", "u_t + (-nu)*u_xx", "u_x"]


def test_dropping_the_curvature_term_removes_only_it() -> None:
    fisher = substitute(relation("fisher")[0], {"u": Form(("u",), AXES, (1.0,), PiecewiseExponential())})
    dropped = without_curvature(fisher)
    difference = sympy.expand(fisher.expression - dropped.expression)
    assert [str(s) for s in sorted(difference.free_symbols, key=str)] == ["g2_0", "nu", "q2"]
    assert [str(f) for f in dropped.functionals] == ["u", "u_t + (-nu)*u_xx"]


def test_unknown_coefficients_become_functionals() -> None:
    advection, _ = relation("advection")
    free = substitute(advection, {"u": Form(("u",), AXES), "b": Form(("b",), ())})
    positive = substitute(advection, {"u": Form(("u",), AXES), "b": Form(("b",), (), link="exp")})
    assert [str(f) for f in free.functionals] == ["u_t", "b", "u_x"]
    at = np.array([[1.0, np.log(2.0), 3.0]])
    assert positive.value(at, {}, {})[0] == pytest.approx(7.0)
    assert positive.value_and_gradient(at, {}, {})[1][0] == pytest.approx([1.0, 6.0, 2.0])


def test_numba_callable_equals_numpy() -> None:
    fisher, values = relation("fisher")
    g = PiecewiseExponential()
    latent = substitute(fisher, {"u": Form(("u",), AXES, (1.0,), g)})
    zeta = np.array([[0.4, -1.0, 2.0]])
    bends = [float(a(zeta[0, of], order)) for of, order, a in latent.all_activation_derivatives.values()]
    arguments = np.array([*zeta[0], *bends, *(values[name] for name in latent.parameters)])
    value, *gradient = latent.scalar()(arguments)
    exact, slopes = latent.value_and_gradient(zeta, values, {})
    assert value == pytest.approx(exact[0], rel=1e-13)
    assert_allclose(gradient, slopes[0], rtol=1e-13)
