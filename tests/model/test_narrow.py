"""Narrow features are resolved, or refused in one line; never missed without a word."""

from __future__ import annotations

import math

import numpy as np
import pytest

import factorfield as ff
from factorfield.model.spectrum import system_growth

T, X = ff.Interval(0, 1), ff.Interval(0, 1)
WALLS = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]


@pytest.mark.parametrize("width", [0.01, 1e-3, 1e-4, 1e-6])
def test_a_short_pulse_in_time_is_resolved(width: float) -> None:
    found = ff.solve(ff.Problem(f"u_t = point(t - 0.777, {width})", {"t": T}, {}, [ff.Initial("u = 0")]))
    end = found.predict(t=[1.0])
    assert found.status == "converged" and abs(float(end["mean"][0]) - 1.0) < 1e-7 + 5 * float(end["std"][0])


def test_a_short_pulse_of_a_source_in_space_is_resolved() -> None:
    source = "u_t = 0.1*u_xx + point(t - 0.777, 0.001)*sin(pi*x)"
    found = ff.solve(ff.Problem(source, {"x": X, "t": T}, {}, [ff.Initial("u = 0"), *WALLS]))
    exact = math.exp(-0.1 * math.pi**2 * 0.023 + 0.5 * (0.1 * math.pi**2 * 0.001) ** 2)  # a Gaussian's transform
    assert abs(float(found.predict(x=[0.5], t=[0.8])["mean"].values.item()) - exact) < 1e-6


def test_a_short_pulse_on_a_wall_is_resolved() -> None:
    wall = ff.Boundary("u = exp(-((t - 0.777)/0.002)**2)", at={"x": 0})
    problem = ff.Problem("u_t = 0.1*u_xx", {"x": X, "t": T}, {}, [ff.Initial("u = 0"), wall, WALLS[1]])
    field = ff.solve(problem, modes={"x": 40}).predict(x=[0.0], t=[0.777])
    assert abs(float(field["mean"].values.item()) - 1.0) < 1e-3


@pytest.mark.parametrize("width", [1e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("method", [None, "joint", "tree", "chain"])
def test_a_narrow_spike_in_space_is_refused_in_one_line(width: float, method: str | None) -> None:
    spike = f"exp(-((x - 0.3337)/{width})**2)"
    problem = ff.Problem("u_t = 0.01*u_xx", {"x": X, "t": T}, {}, [ff.Initial(f"u = {spike}"), *WALLS])
    if method in ("joint", "tree"):
        problem = ff.Problem(f"u_xx = {spike}", {"x": X}, {}, WALLS)
    with pytest.raises(ff.ProblemError, match=r"at least 0.004 wide along x, received one of .* at x = 0.33"):
        ff.solve(problem, method=method)


def test_a_block_that_would_miss_a_pulse_names_the_method_that_does_not() -> None:
    problem = ff.Problem("u_t = point(t - 0.777, 0.001)", {"t": T}, {}, [ff.Initial("u = 0")])
    with pytest.raises(ff.ProblemError, match=r"wide along t.*try method='chain'"):
        ff.solve(problem, method="joint")


# -- long oscillations


def system(equations: list[str], space: bool = False) -> ff.Problem:
    starts = [ff.Initial("u = 1"), ff.Initial("v = 0")]
    return ff.Problem(equations, {"t": T} | ({"x": ff.Periodic(0, 1)} if space else {}), {}, starts)


@pytest.mark.parametrize(
    ("equations", "space", "growth"),
    [
        (["u_t = 2*v", "v_t = -2*u"], False, 0.0), (["u_t = 2*v", "v_t = 2*u"], False, 2.0),
        (["u_tt = v - 4*u", "v_t = -2*u"], False, max(np.roots([1, 0, 4, 2]).real)),
        (["u_t = v_x", "v_t = u_x"], True, 0.0), (["u_t = v_x", "v_t = -u_x"], True, 6.0 * np.pi),
    ],
)  # fmt: skip
def test_a_system_grows_by_the_eigenvalues_of_all_its_equations(
    equations: list[str], space: bool, growth: float
) -> None:
    assert system_growth(system(equations, space), {"x": 3} if space else {}) == pytest.approx(growth, abs=1e-12)


def test_two_thousand_periods_of_two_equations_are_solved() -> None:
    turning = ["u_t = 6.283185307179586*v", "v_t = -6.283185307179586*u"]
    starts = [ff.Initial("u = 1"), ff.Initial("v = 0")]
    found = ff.solve(ff.Problem(turning, {"t": ff.Interval(0, 2000)}, {}, starts)).predict(t=[2000.0])
    assert np.allclose(found["mean"].values.ravel(), [1.0, 0.0], atol=1e-7)


def test_too_many_windows_of_an_oscillation_are_told_as_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("factorfield.methods.chain.windows.MOST_WINDOWS", 50)
    starts = [ff.Initial("u = 1"), ff.Initial("u_t = 0")]
    pendulum = ff.Problem("u_tt = -40*sin(u)", {"t": ff.Interval(0, 100)}, {}, starts)
    with pytest.raises(ff.ProblemError, match=r"at most 50 windows, received windows of 0\.\d+ that stay so short"):
        ff.solve(pendulum)


def test_an_equation_that_grows_in_time_alone_is_not_told_of_waves() -> None:
    growing = ff.Problem("u_t = 200*u", {"t": T}, {}, [ff.Initial("u = 1")])
    with pytest.raises(ff.ProblemError, match=r"a solution that grows by less than e\^100"):
        ff.solve(growing)
