"""The frozen map: its tangent against finite differences, its adjoint against its tangent, its fields against exact
answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate

import factorfield as ff
from factorfield.forward.discrete import discretised
from factorfield.forward.layout import Layout, NotAMap
from factorfield.forward.map import START, ForwardMap, Steps, choose_windows
from factorfield.forward.newton import NotConverged
from factorfield.inference.ladder import grid_of
from factorfield.inference.latents import Latents, latents_of

Array = NDArray[np.float64]
ENDS = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u_x = q", at={"x": 1})]
LINE = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 0.4)}
PLANE = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}
AROUND = [ff.Boundary("u = 0", at={axis: end}) for axis in ("x", "y") for end in (0, 1)]
SQUARE = {"x": ff.Interval(-1.2, 1.2), "y": ff.Interval(-1.2, 1.2)}
UNEVEN = ff.Unknown(1.0, 0.3, positive=True, over=("x", "y"), length=0.6)
CONDUCTION = "k*(u_xx + u_yy) + k_x*u_x + k_y*u_y"
PROBLEMS = {
    "line": ff.Problem(
        "u_t = k*u_xx - u*u_x + q*f", LINE,
        {"k": ff.Unknown(0.1, 0.05, positive=True), "q": ff.Unknown(1.0, 0.5, over="t", length=0.3),
         "f": ff.Unknown(0.5, 0.3, positive=True, over="x", length=0.5)},
        [*ENDS, ff.Initial("u = sin(pi*x)", sigma=0.2, length=0.4)],
    ),
    "ring": ff.Problem(
        "u_t = k*u_xx + u*(1 - u)*f", {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 0.4)},
        {"k": ff.Unknown(0.1, 0.05), "f": ff.Unknown(1.0, 0.5, over="x", length=0.5)},
        [ff.Initial("u = 1 + sin(2*pi*x)", sigma=0.2, length=0.4)],
    ),
    "populations": ff.Problem(
        ["h_t = a*h - b*h*l", "l_t = b*h*l - c*l*q"], {"t": ff.Interval(0, 2)},
        {"a": ff.Unknown(1.0, 0.2), "b": ff.Unknown(0.6, 0.2, positive=True), "c": ff.Unknown(1.0, 0.2),
         "q": ff.Unknown(1.0, 0.2, over="t", length=1.0)},
        [ff.Initial("h = 2", sigma=0.3), ff.Initial("l = 1", sigma=0.2)],
    ),
    "rod": ff.Problem(
        "k*u_xx + k_x*u_x = u**3 - g", {"x": ff.Interval(0, 1)},
        {"k": ff.Unknown(1.0, 0.3, positive=True, over="x", length=0.4), "g": ff.Unknown(3.0, 1.0)},
        [ff.Boundary("u = 0", at={"x": 0}, sigma=0.1), ff.Boundary("u_x + u = 1", at={"x": 1})],
    ),
    "plane": ff.Problem(f"{CONDUCTION} = u**3 - 3", PLANE, {"k": UNEVEN}, AROUND),
    "disk": ff.Problem(
        f"{CONDUCTION} = u**3 - g", SQUARE, {"k": UNEVEN, "g": ff.Unknown(3.0, 1.0)}, [ff.Boundary("u = 0")],
        region=ff.Region("x**2 + y**2 < 1"),
    ),
}  # fmt: skip
steady = pytest.mark.parametrize("name", ["rod", "plane", "disk"])


def frozen(problem: ff.Problem, level: int = 0, windows: int = 5) -> tuple[ForwardMap, Latents]:
    layout = Layout.of(problem)
    latents = Latents(latents_of(layout))
    edges = np.empty(0)
    if "t" in problem.domain:
        time = problem.domain["t"]
        edges = time.lower + time.length * np.linspace(0.0, 1.0, windows + 1) ** 2
    return ForwardMap(discretised(layout, grid_of(problem, level), latents.inputs), edges), latents


def likely(latents: Latents, seed: int = 0) -> Array:
    return 0.7 * np.random.default_rng(seed).standard_normal(latents.size)


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_tangent_is_the_limit_of_finite_differences(name: str) -> None:
    forward, latents = frozen(PROBLEMS[name])
    e = likely(latents)
    path = forward.run(latents.coefficients(e))
    directions = np.random.default_rng(1).standard_normal((latents.size, 4))
    tangent = forward.tangent(path, latents.directions(directions))
    for number, along in enumerate(directions.T):
        step = 1e-4
        beyond, before = (forward.run(latents.coefficients(e + s * step * along)).values for s in (1.0, -1.0))
        differences = (beyond - before) / (2.0 * step)
        assert np.max(np.abs(tangent[..., number] - differences)) < 1e-6 * np.max(np.abs(differences))


@steady
def test_the_adjoint_is_the_transpose_of_the_tangent(name: str) -> None:
    forward, latents = frozen(PROBLEMS[name])
    path = forward.run(latents.coefficients(likely(latents)))
    domain, rng = PROBLEMS[name].domain, np.random.default_rng(1)
    points = {axis: domain[axis].lower + domain[axis].length * rng.uniform(0.25, 0.75, 6) for axis in domain.names}
    rows = np.vstack([path.rows(0, orders, points).toarray() for orders in ({}, {"x": 1})])
    tangent = forward.tangent(path, latents.directions(np.eye(latents.size)))[0, 0]
    by_adjoint = latents.gathered(forward.adjoint(path, rows), len(rows)).T
    expected = rows @ tangent
    assert np.max(np.abs(by_adjoint - expected)) < 1e-10 * np.max(np.abs(expected))


@pytest.mark.parametrize("name", PROBLEMS)
def test_rows_that_inputs_push_are_the_transpose_of_rows_pulled(name: str) -> None:
    """Of every term, at one instant: <adjoint, pushed(d)> = <pulled(adjoint), d>."""
    forward, latents = frozen(PROBLEMS[name])
    inputs = latents.coefficients(likely(latents))
    instant = forward.discrete.system.at(inputs)
    rng, size = np.random.default_rng(2), forward.discrete.size
    values, rates, adjoint = rng.standard_normal((3, size))
    directions = {name: rng.standard_normal((source.size, 2)) for name, source in latents.inputs.items()}
    at = forward.lower + 0.1
    pushed = instant.moved(values[:, None], rates[:, None], np.array([at]), directions, 2)[0]
    pulled = instant.pulled(values, rates, at, adjoint[:, None])
    along = sum((part[:, 0] @ directions[name] for name, part in pulled.items()), np.zeros(2))
    np.testing.assert_allclose(adjoint @ pushed, along, rtol=1e-10, atol=1e-10 * np.max(np.abs(pushed)))


@pytest.mark.parametrize("name", ["line", "populations", "disk"])
def test_the_same_inputs_give_the_same_bits(name: str) -> None:
    problem = PROBLEMS[name]
    (first, latents), (second, _) = frozen(problem), frozen(problem)
    e = likely(latents)
    one, two = first.run(latents.coefficients(e)), first.run(latents.coefficients(e))
    np.testing.assert_array_equal(one.values, two.values)
    np.testing.assert_array_equal(one.values, second.run(latents.coefficients(e)).values)


def test_a_start_that_is_an_input_moves_the_path_as_its_tangent_says() -> None:
    forward, latents = frozen(PROBLEMS["line"])
    whole = forward.run(latents.coefficients(likely(latents)))
    later = replace(forward, edges=forward.edges[2:])
    inputs = {**whole.inputs, START: whole.values[2, 0]}
    rest = later.run(inputs)
    np.testing.assert_allclose(rest.values, whole.values[2:], atol=1e-9)
    along = np.random.default_rng(0).standard_normal((forward.discrete.size, 1))
    tangent = later.tangent(rest, {START: along})[..., 0]
    ends = [later.run({**inputs, START: inputs[START] + s * 1e-5 * along[:, 0]}).values for s in (1.0, -1.0)]
    differences = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(tangent, differences, atol=1e-6 * np.max(np.abs(differences)))


# -- windows of time


def ode(equation: str, end: float = 1.0, start: str = "u = 1") -> ff.Problem:
    return ff.Problem(equation, {"t": ff.Interval(0, end)}, {}, [ff.Initial(start)])


def error_at_end(problem: ff.Problem, stages: int, windows: int, exact: float) -> float:
    forward, _ = frozen(problem)
    edges = np.linspace(0.0, problem.domain["t"].upper, windows + 1)
    return abs(float(replace(forward, edges=edges, stages=stages).run({}).end[0]) - exact)


@pytest.mark.parametrize("stages, windows", [(1, 64), (2, 16), (3, 8), (4, 4)])
def test_errors_at_the_end_fall_with_the_order_of_the_rule(stages: int, windows: int) -> None:
    """u' = -u^2 + t: against SciPy; halving windows divides the error by 2^(2s - 1)."""
    problem = ode("u_t = -u**2 + t", 2.0)
    reference = integrate.solve_ivp(lambda t, u: -(u**2) + t, (0.0, 2.0), [1.0], "DOP853", rtol=1e-13, atol=1e-14)
    exact = float(reference.y[0, -1])
    ratio = error_at_end(problem, stages, windows, exact) / error_at_end(problem, stages, 2 * windows, exact)
    assert np.log2(ratio) == pytest.approx(2 * stages - 1, abs=0.35)


def test_newton_solves_windows_of_a_stiff_system() -> None:
    """Robertson's reactions over 40 units of time; rates differ by nine powers of ten."""
    problem = ff.Problem(
        ["a_t = -0.04*a + 1e4*b*c", "b_t = 0.04*a - 1e4*b*c - 3e7*b**2", "c_t = 3e7*b**2"], {"t": ff.Interval(0, 40)},
        {}, [ff.Initial("a = 1"), ff.Initial("b = 0"), ff.Initial("c = 0")],
    )  # fmt: skip
    forward, _ = frozen(problem)
    edges = choose_windows(forward.discrete, {}, 1e-7, 40.0, (0.0, np.array([1.0, 0.0, 0.0])))
    end = replace(forward, edges=edges).run({}).end
    np.testing.assert_allclose(end, [0.7158270688, 9.185534765e-6, 0.2841637457], rtol=1e-6)
    assert end.sum() == pytest.approx(1.0, abs=1e-10)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-7])
def test_windows_meet_the_tolerance(tolerance: float) -> None:
    """Van der Pol's oscillator: everywhere, not at the ends of windows alone."""
    problem = ff.Problem(
        ["u_t = v", "v_t = 5*(1 - u**2)*v - u"], {"t": ff.Interval(0, 12)}, {},
        [ff.Initial("u = 2"), ff.Initial("v = 0")],
    )  # fmt: skip
    forward, _ = frozen(problem)
    edges = choose_windows(forward.discrete, {}, tolerance, 12.0, (0.0, np.array([2.0, 0.0])))
    path = replace(forward, edges=edges).run({})
    t = np.linspace(0.0, 12.0, 301)
    exact = integrate.solve_ivp(
        lambda t, y: [y[1], 5.0 * (1.0 - y[0] ** 2) * y[1] - y[0]], (0.0, 12.0), [2.0, 0.0], "DOP853", t,
        rtol=1e-12, atol=1e-12,
    ).y  # fmt: skip
    for field in (0, 1):
        values = path.rows(field, {}, {"t": t}) @ path.values.ravel()
        assert np.max(np.abs(values - exact[field])) < 30.0 * tolerance * np.max(np.abs(exact[field]))


def test_a_field_that_blows_up_is_said_to_have_no_path() -> None:
    forward, _ = frozen(ode("u_t = u**2", 2.0))
    with pytest.raises(NotConverged):
        choose_windows(forward.discrete, {}, 1e-6, 2.0, (0.0, np.array([1.0])), steps=Steps(shortest=1e-6))


# -- exact answers


def test_a_decaying_wave_is_the_exact_one() -> None:
    problem = ff.Problem(
        "u_t = 0.3*u_xx", LINE, {},
        [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1}), ff.Initial("u = sin(pi*x)")],
    )  # fmt: skip
    forward, _ = frozen(problem, level=2, windows=8)
    path = forward.run({})
    x, t = (axis.ravel() for axis in np.meshgrid(np.linspace(0, 1, 11), np.linspace(0, 0.4, 9)))
    for orders, exact in (
        ({}, np.sin(np.pi * x)), ({"x": 1}, np.pi * np.cos(np.pi * x)), ({"t": 1}, -0.3 * np.pi**2 * np.sin(np.pi * x))
    ):  # fmt: skip
        values = path.rows(0, orders, {"x": x, "t": t}) @ path.values.ravel()
        np.testing.assert_allclose(values, exact * np.exp(-0.3 * np.pi**2 * t), atol=1e-5)


# -- what is no map says so in one line

SAID: dict[str, tuple[Callable[[], ff.Problem], str]] = {
    "a second start": (lambda: ff.Problem("u_t = -u", {"t": ff.Interval(0, 1)}, {},
                                          [ff.Initial("u = 1"), ff.Initial("u = 2", sigma=0.1)]), "2 starts"),
    "too few walls": (lambda: ff.Problem("u_xxxx = 1", {"x": ff.Interval(0, 1)}, {}, [ENDS[0]]), "order 4"),
    "too many walls": (lambda: ff.Problem("u_x = 1", {"x": ff.Interval(0, 1)}, {},
                                          [ENDS[0], ff.Boundary("u = 1", at={"x": 1})]), "order 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_what_is_no_map_is_refused_with_the_reason(name: str) -> None:
    make, reason = SAID[name]
    with pytest.raises(NotAMap, match=reason) as error:
        Layout.of(make())
    assert "\n" not in str(error.value)
