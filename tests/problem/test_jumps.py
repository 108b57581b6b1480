"""Steps, zones and point sources in texts; jumps in time begin windows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate

import factorfield as ff
from factorfield.problem.jumps import WIDTH, instants
from factorfield.problem.parsing import evaluate, parse_sides
from factorfield.problem.relation import evaluate_coefficient, parse_relation

LINE = {"x": ff.Interval(0, 1)}
WALLS = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("heaviside(x - 0.25)", lambda x: (x >= 0.25) * 1.0), ("sign(x)", np.sign),
        ("min(x, b)", lambda x: np.minimum(x, 0.7)), ("max(2*x, b)", lambda x: np.maximum(2 * x, 0.7)),
        ("where(0 < x < 0.5 or x > 0.8, 1, 2 + x)", lambda x: np.where(((x > 0) & (x < 0.5)) | (x > 0.8), 1, 2 + x)),
        ("where(not x < 0.5, sin(x), 2)", lambda x: np.where(x >= 0.5, np.sin(x), 2)),
        ("where(1 < 2, x, 0)", lambda x: x),
        ("point(x - 0.3, 0.1)", lambda x: np.exp(-50 * (x - 0.3) ** 2) / (0.1 * np.sqrt(2 * np.pi))),
    ],
)  # fmt: skip
def test_numbers_and_formulas_of_a_text_mean_the_same(text: str, meant: object) -> None:
    x = np.linspace(-1, 1, 9)
    relation = parse_relation(f"u - ({text})", ["u"], ["x"], ["b"])
    known = -relation.expression.subs(dict.fromkeys(relation.jets, 0))
    assert callable(meant) and relation.is_linear
    np.testing.assert_allclose(np.broadcast_to(evaluate(parse_sides(text), {"x": x, "b": 0.7}), 9), meant(x))
    np.testing.assert_allclose(np.broadcast_to(evaluate_coefficient(known, {"b": 0.7}, {"x": x}), 9), meant(x))


def test_a_point_has_the_integral_one_and_a_width_that_is_told() -> None:
    problem = ff.Problem("u_xx = -3*point(x - 20)", {"x": ff.Interval(0, 50)}, {}, [])
    assert problem.equations[0].text == f"u_xx = -3 * point(x - 20, {WIDTH * 50})"
    total = integrate.quad(lambda x: float(evaluate(parse_sides("point(x - 20, 1.0)"), {"x": x})), 10, 30)[0]
    assert total == pytest.approx(1.0, abs=1e-8)
    with pytest.raises(ff.ProblemError, match="point\\(\\) of one coordinate"):
        ff.Problem("u_xx = point(x - y)", {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)})


def test_instants_of_jumps_are_found_where_only_time_and_known_numbers_are_compared() -> None:
    texts = ["heaviside(t - a)", "where(x < t, 1, 0)", "sign(sin(pi*t))", "where(0.2 < t and t < b, 1, 2)"]
    found = instants(texts, ff.Interval(0, 2.5), {"a": 0.7, "b": ff.Table(t=[0, 3], value=[1, 1])})
    assert found == pytest.approx([0.2, 0.7, 1.0, 2.0], abs=1e-12)


def test_a_source_that_is_switched_begins_windows_and_keeps_the_accuracy() -> None:
    """u' = -u + 2 within the pulse: polynomials follow each piece, and no window lies across a switch."""
    problem = ff.Problem(
        "u_t = -u + where(1 < t and t < 2.5, a, 0)", {"t": ff.Interval(0, 4)}, {"a": 2.0}, [ff.Initial("u = 0")]
    )
    solution = ff.solve(problem)
    t = np.linspace(0, 4, 81)
    risen = 2 * (1 - np.exp(-(np.clip(t, 1, 2.5) - 1)))
    truth = risen * np.exp(-np.maximum(t - 2.5, 0))
    assert {1.0, 2.5} <= set(solution.settings["windows"])
    np.testing.assert_allclose(solution.predict(t=t)["mean"], truth, atol=1e-8)  # 1e-10 measured
    longer = ff.solve(problem.replace(domain={"t": ff.Interval(0, 2)})).extend(4.0)  # the second switch comes later
    np.testing.assert_allclose(longer.predict(t=t)["mean"], truth, atol=1e-8)


@pytest.mark.filterwarnings("ignore:equation. misses its values:factorfield.AdviceWarning")  # at the jump itself
def test_a_zone_and_a_point_are_resolved_or_told() -> None:
    zone = ff.solve(ff.Problem("u_xx = -where(x < 0.5, 1, 0)", LINE, {}, WALLS))
    x = np.linspace(0, 1, 21)
    truth = np.where(x < 0.5, -(x**2) / 2 + 0.375 * x, 0.125 * (1 - x))
    off = np.abs(zone.predict(x=x)["mean"] - truth)
    assert float(off.max()) < (1e-5 if zone.status == "converged" else 3 * float(zone.predict(x=x)["std"].max()))
    point = ff.solve(ff.Problem("u_xx = -point(x - 0.3)", LINE, {}, WALLS))
    np.testing.assert_allclose(point.predict(x=[0.1, 0.6])["mean"], [0.07, 0.12], atol=1e-6)  # Green's function


@pytest.mark.parametrize(
    ("wall", "jumps"), [("u = heaviside(t - 1)", True), ("u = min(t, 1)", False), ("u = t*where(t < 1, 1, 2)", True)]
)
def test_a_wall_may_bend_but_not_jump(wall: str, jumps: bool) -> None:
    conditions = [ff.Boundary(wall, at={"x": 0}), WALLS[1], ff.Initial("u = 0")]
    problem = ff.Problem("u_t = 0.1*u_xx", {**LINE, "t": ff.Interval(0, 2)}, {}, conditions)
    if jumps:
        with pytest.raises(ff.ProblemError, match=r"without a jump, received 'boundary x = 0.* at t = 1; try a ramp"):
            ff.default_model(problem, method="chain")
    else:
        assert ff.default_model(problem, method="chain").jumps == (1.0,)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("equation", "words"),
    [
        ("u_t = where(u < 0.5, 1, 2)*u_xx", "coordinates and known numbers in heaviside"),
        ("u_t = heaviside(t - a) + u_xx", "received a; try a smooth step"),
        ("u_t = lambda*u_xx", "another name than 'lambda'.*: lam$"), ("u' = u", "u_x, u_t, u_xx for derivatives"),
        ("2u_x = 0", r"2\*u, not 2u"), ("u_t = 2(x + 1)", r"2\*\(x \+ 1\)"), ("u_t = min(x)", "2 arguments for min"),
        ("u_t = where(x, 1, 2)", "comparisons joined by and"), ("u_t = (x < 1)*u_xx", r"where\(x < 0.5, 1, 2\)"),
        ("u_t = u_xx if x < 1 else 2", r"'if ... else'; try where"), ("u_t = sin(x, 2)", "one argument for sin"),
    ],
)  # fmt: skip
def test_what_is_meant_otherwise_is_told(equation: str, words: str) -> None:
    with pytest.raises(ff.ProblemError, match=words):
        ff.Problem(equation, {**LINE, "t": ff.Interval(0, 1)}, {"a": ff.Unknown(0.5, 0.1)})


@pytest.mark.parametrize("limit", ["1/0", "sqrt(-1)", "log(0)"])
def test_a_comparison_with_no_real_number_is_one_line(limit: str) -> None:
    with pytest.raises(ff.ProblemError, match=r"expected .* real.*, received"):
        ff.Problem(f"u_xx = where(x < {limit}, 1, 2)", {"x": ff.Interval(0, 1)}, {}, [])
