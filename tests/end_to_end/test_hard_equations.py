"""Equations that asked too much of an earlier version: stiff, chaotic, of high order, in odd units, seen late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import factorfield as ff

BOX = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
COLD = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]


def van_der_pol(stiffness: float) -> Callable[[float, Any], list[float]]:
    return lambda _, y: [y[1], stiffness * (1 - y[0] ** 2) * y[1] - y[0]]


def lorenz(_: float, y: Any) -> list[float]:
    return [10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]]


def robertson(_: float, y: Any) -> list[float]:
    made, eaten = 0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return [-made, made - eaten, eaten]


@pytest.mark.parametrize(
    ("texts", "slope", "starts", "horizon"),
    [
        (["u_tt = 20*(1 - u**2)*u_t - u"], van_der_pol(20), {"u": 2.0, "u_t": 0.0}, 40.0),
        (["u_t = v", "v_t = 20*(1 - u**2)*v - u"], van_der_pol(20), {"u": 2.0, "v": 0.0}, 40.0),
        (["u_t = 10*(v - u)", "v_t = u*(28 - w) - v", "w_t = u*v - 8/3*w"], lorenz, {n: 1.0 for n in "uvw"}, 10),
        (
            ["a_t = -0.04*a + 1e4*b*c", "b_t = 0.04*a - 1e4*b*c - 3e7*b**2", "c_t = 3e7*b**2"],
            robertson, {"a": 1.0, "b": 0.0, "c": 0.0}, 40.0,
        ),
    ],
    ids=["van der Pol", "van der Pol as a system", "Lorenz", "Robertson"],
)  # fmt: skip
def test_stiff_and_chaotic_odes_are_followed(
    texts: Sequence[str], slope: Callable[..., Any], starts: dict[str, float], horizon: float
) -> None:
    """Starts hold: the std estimates the numerical error, within the tolerance of 1e-5 of the field."""
    initial = [ff.Initial(f"{name} = {value}") for name, value in starts.items()]
    solution = ff.solve(ff.Problem(list(texts), {"t": ff.Interval(0, horizon)}, {}, initial))
    times = np.linspace(0, horizon, 101)
    exact = solve_ivp(slope, (0, horizon), list(starts.values()), "Radau", t_eval=times, rtol=1e-11, atol=1e-14).y
    for index, field in enumerate(solution.problem.fields):
        shown = solution.predict(t=times, of=field)
        error = np.abs(np.ravel(shown["mean"]) - exact[index])
        assert np.max(error) < 1e-5 and np.all(error < 5.0 * np.ravel(shown["std"]))
        assert np.max(shown["std"]) < 1e-5 * np.abs(exact).max()


@pytest.mark.parametrize(
    ("text", "walls", "start", "exact", "bound"),
    [
        ("u_tt + u_xxxx = 0", ["u = 0", "u_xx = 0"], ["u = sin(pi*x)", "u_t = 0"],
         lambda x, t: np.sin(np.pi * x) * np.cos(np.pi**2 * t), 1e-5),  # rounding decides: 2e-8 to 6e-7 by processor
        ("u_t + u_xxxx = 0", ["u = 0", "u_xx = 0"], ["u = sin(pi*x)"],
         lambda x, t: np.sin(np.pi * x) * np.exp(-np.pi**4 * t), 1e-6),
        ("u_tt + u_t = u_xx", ["u = 0"], ["u = sin(pi*x)", "u_t = -0.5*sin(pi*x)"],
         lambda x, t: np.exp(-t / 2) * np.cos(np.sqrt(np.pi**2 - 0.25) * t) * np.sin(np.pi * x), 1e-6),
    ],
    ids=["beam", "damped beam", "telegraph"],
)  # fmt: skip
def test_high_orders_between_walls(
    text: str, walls: Sequence[str], start: Sequence[str], exact: Any, bound: float
) -> None:
    conditions: list[Any] = [ff.Initial(entry) for entry in start]
    conditions += [ff.Boundary(entry, at={"x": end}) for entry in walls for end in (0, 1)]
    solution = ff.solve(ff.Problem(text, BOX, {}, conditions))
    x, t = np.linspace(0, 1, 11), np.linspace(0, 1, 9)
    shown = solution.predict(x=x, t=t)["mean"].transpose("x", "t")
    assert float(np.abs(shown - exact(x[:, None], t)).max()) < bound


def test_third_order_between_walls() -> None:
    """u = exp(x + t) sin-free: u_t + u_xxx = 2 exp(x + t), walls as they are."""
    walls = [
        ff.Boundary("u = exp(t)", at={"x": 0}), ff.Boundary("u = exp(1 + t)", at={"x": 1}),
        ff.Boundary("u_x = exp(1 + t)", at={"x": 1}),
    ]  # fmt: skip
    solution = ff.solve(ff.Problem("u_t + u_xxx = 2*exp(x + t)", BOX, {}, [ff.Initial("u = exp(x)"), *walls]))
    x, t = np.linspace(0, 1, 11), np.linspace(0, 1, 5)
    shown = solution.predict(x=x, t=t)["mean"].transpose("x", "t")
    assert float(np.abs(shown - np.exp(x[:, None] + t)).max()) < 1e-6


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_sources_and_fluxes_tell_the_size_of_a_field(size: float) -> None:
    """No value of the field is given: mean and std follow the units all the same."""
    still = ff.solve(ff.Problem("u_xx = -q", {"x": ff.Interval(0, 1)}, {"q": size}, COLD)).predict(x=[0.5])
    assert float(still["mean"].item()) == pytest.approx(0.125 * size, rel=1e-6)
    assert float(still["std"].item()) == pytest.approx(3.1e-10 * size, rel=0.2)  # walls hold to 1e-9 of the field
    heated = ff.Problem("u_t = u_xx + q", BOX, {"q": size}, [ff.Initial("u = 0"), *COLD])
    moving = ff.solve(heated).predict(x=[0.5], t=[1.0])
    assert float(moving["mean"].item()) == pytest.approx(0.125 * size, rel=1e-3)
    assert float(moving["std"].item()) < 1e-3 * size


def test_the_constant_of_a_robin_condition_is_not_the_size_of_the_field() -> None:
    def found(transfer: float) -> ff.Solution:
        walls = [ff.Boundary(f"u_x - {transfer}*(u - 20) = 0", at={"x": 0}), ff.Boundary("u = 20", at={"x": 1})]
        return ff.solve(ff.Problem("u_t = u_xx", BOX, {}, [ff.Initial("u = 20 + 10*sin(pi*x)**2"), *walls]))

    size = 10.0 * np.sqrt(3.0 / 8.0)  # of 10 sin^2 about the walls' 20
    assert [found(transfer).settings["scale"] for transfer in (1.0, 1e5)] == pytest.approx([size, size], rel=0.1)


@pytest.mark.parametrize("noise", ["gaussian", "student-t"])
def test_rates_of_an_oscillator_seen_late(noise: str) -> None:
    rng = np.random.default_rng(0)
    t = np.sort(rng.uniform(4, 8, 40))
    truth = np.exp(-0.2 * t) * np.cos(np.sqrt(9 - 0.04) * t)
    y = truth + 0.02 * rng.standard_normal(40)
    if noise == "student-t":
        y[::8] += 0.5
    problem = ff.Problem(
        "u_tt + 2*g*u_t + w**2*u = 0", {"t": ff.Interval(0, 8)},
        {"w": ff.Unknown(2.5, 1.0, positive=True), "g": ff.Unknown(0.3, 0.3, positive=True)},
        [ff.Observations(t=t, u=y, sigma=0.02, noise=noise)],
    )  # fmt: skip
    found = ff.solve(problem).parameters
    for name, value in {"w": 3.0, "g": 0.2}.items():
        assert abs(found[name]["mean"] - value) < 3.5 * found[name]["std"] < 0.1


@pytest.mark.filterwarnings("ignore:the last of 30 modes:factorfield.AdviceWarning")
def test_a_narrow_start_between_walls() -> None:
    solution = ff.solve(ff.Problem("u_t = 0.1*u_xx", BOX, {}, [ff.Initial("u = exp(-100*(x - 0.5)**2)"), *COLD]))
    wide = 1 + 4 * 100 * 0.1 * 0.05
    exact = np.exp(-100 * (np.array([0.4, 0.5]) - 0.5) ** 2 / wide) / np.sqrt(wide)
    assert np.allclose(np.ravel(solution.predict(x=[0.4, 0.5], t=[0.05])["mean"]), exact, atol=2e-3)


@pytest.mark.parametrize(("equation", "wall", "width"), [(0.1, None, 6e-4), (None, 0.01, 2.5e-3), (0.5, 0.1, 5e-3)])
def test_loose_equations_and_walls_are_solved(equation: float | None, wall: float | None, width: float) -> None:
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0, 1, 40), rng.uniform(0, 1, 40)
    y = np.exp(-0.2 * np.pi**2 * t) * np.sin(np.pi * x) + 0.05 * rng.standard_normal(40)
    walls = [ff.Boundary("u = 0", at={"x": end}, sigma=wall) for end in (0, 1)]
    seen = ff.Observations(x=x, t=t, u=y, sigma=0.05)
    text = ff.Equation("u_t = 0.2*u_xx", sigma=equation)
    solution = ff.solve(ff.Problem(text, BOX, {}, [ff.Initial("u = sin(pi*x)"), *walls, seen]))
    shown = solution.predict(x=[0.3, 0.5, 0.7], t=[0.5])
    exact = np.exp(-0.1 * np.pi**2) * np.sin(np.pi * np.array([0.3, 0.5, 0.7]))
    assert solution.status == "converged"
    assert np.all(np.abs(np.ravel(shown["mean"]) - exact) < 4 * np.ravel(shown["std"]) + 1e-3)
    assert np.all(shown["std"] < 3 * width)  # the tighter one of equation and walls decides
