"""Answers do not depend on offsets, loads or places where coefficients vanish."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import factorfield as ff

LINE, STRIP = {"x": ff.Interval(0, 1)}, {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}


def wall(text: str, x: float) -> ff.Boundary:
    return ff.Boundary(text, at={"x": x})


def steady(offset: float) -> ff.Problem:
    x = np.linspace(0.05, 0.95, 20)
    seen = offset + 2.0 * x + 1.5 * x * (1.0 - x) + 0.01 * np.random.default_rng(7).standard_normal(20)
    known = [wall(f"u = {offset}", 0), wall(f"u = {offset + 2}", 1), ff.Observations(x=x, u=seen, sigma=0.01)]
    return ff.Problem("k*u_xx + 3 = 0", LINE, {"k": ff.Unknown(1.3, 0.5, positive=True)}, known)


def cooling(offset: float) -> ff.Problem:
    t = np.linspace(0.0, 3.0, 15)
    seen = offset + 60.0 * np.exp(-0.8 * t) + 0.5 * np.random.default_rng(7).standard_normal(15)
    unknown = {"k": ff.Unknown(1.0, 0.5, positive=True)}
    return ff.Problem(
        f"T_t = -k*(T - {offset})", {"t": ff.Interval(0, 3)}, unknown, [ff.Observations(t=t, T=seen, sigma=0.5)]
    )


def oscillator(offset: float) -> ff.Problem:
    t = np.linspace(0.0, 4.0, 20)
    seen = offset + np.cos(t) + 0.02 * np.random.default_rng(7).standard_normal(20)
    known = [ff.Observations(t=t, a=seen, sigma=0.02), ff.Initial("b = 0", sigma=0.05)]
    unknown = {"w": ff.Unknown(1.2, 0.3, positive=True)}
    return ff.Problem(["a_t = w*b", f"b_t = -w*(a - {offset})"], {"t": ff.Interval(0, 4)}, unknown, known)


@pytest.mark.parametrize("problem", [steady, cooling, oscillator])
@pytest.mark.parametrize("offset", [290.0, -1e5])
def test_a_constant_added_to_a_field_shifts_the_answer_and_nothing_else(
    problem: Callable[[float], ff.Problem], offset: float
) -> None:
    plain, shifted = ff.solve(problem(0.0)), ff.solve(problem(offset))
    for name, found in plain.parameters.items():
        assert abs(shifted.parameters[name]["mean"] - found["mean"]) < 0.01 * found["std"]
        assert shifted.parameters[name]["std"] == pytest.approx(found["std"], rel=0.01)


def test_labels_with_an_offset_give_the_same_spectrum() -> None:
    x = np.linspace(0.0, 1.0, 64, endpoint=False)
    seen = np.sin(2.0 * np.pi * x) + 0.02 * np.random.default_rng(7).standard_normal(64)
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    plain, shifted = (
        ff.solve(ff.Problem("u_t + 0.5*u_x = 0", domain, {}, [ff.Observations(x=x, t=0.0, u=o + seen)])).predict(
            x=x, t=[0.0, 1.0]
        )
        for o in (0.0, 1e4)
    )
    np.testing.assert_allclose(shifted["std"], plain["std"], rtol=1e-3)
    np.testing.assert_allclose(shifted["mean"] - 1e4, plain["mean"], atol=1e-6)


def test_a_coefficient_that_vanishes_at_the_centre() -> None:
    problem = ff.Problem(
        "0.01*u_xx + x*u_x = -0.01*pi**2*cos(pi*x) - pi*x*sin(pi*x)", {"x": ff.Interval(-1, 1)}, {},
        [wall("u = -2", -1), wall("u = 0", 1)],
    )  # fmt: skip
    x = np.linspace(-1.0, 1.0, 21)
    exact = np.cos(np.pi * x) + _layer(x, 0.1)
    found = ff.solve(problem).predict(x=x)
    assert np.all(np.abs(found["mean"] - exact) < 3.0 * found["std"] + 1e-6)
    assert float(found["std"].max()) < 0.02


def _layer(x: np.ndarray, width: float) -> np.ndarray:
    """From -1 to 1 through a layer at 0: what 0.01 u'' + x u' = 0 leaves."""
    from scipy import special

    return np.asarray(special.erf(x / width / np.sqrt(2.0)) / special.erf(1.0 / width / np.sqrt(2.0)))


def test_walls_hold_beside_the_deflection_not_the_load() -> None:
    ends = [wall(text, x) for x in (0, 1) for text in ("u = 0", "u_x = 0")]
    found = ff.solve(ff.Problem("u_xxxx = 1", LINE, {}, ends)).predict(x=[0.0, 0.5])
    assert found["mean"].values[1] == pytest.approx(1 / 384, rel=1e-5)
    assert float(found["std"].max()) < 1e-3 / 384


@pytest.mark.filterwarnings("ignore::factorfield.AdviceWarning")
def test_hot_body_and_cold_walls_disagree_only_where_they_meet() -> None:
    known = [ff.Initial("u = 200", sigma=0.2), wall("u = 10", 0), wall("u = 10", 1)]
    x, t = np.linspace(0.3, 0.7, 9), np.array([0.0, 0.1])
    solution = ff.solve(ff.Problem("u_t = 0.1*u_xx", STRIP, {}, known))
    found = solution.predict(x=x, t=t, numerical=False).transpose("t", "x")
    odd = np.arange(1, 400, 2)[:, None]
    later = 10 + 190 * np.sum(4 / np.pi / odd * np.sin(np.pi * odd * x) * np.exp(-0.01 * (np.pi * odd) ** 2), axis=0)
    error = np.abs(found["mean"].values - np.stack([np.full(9, 200.0), later]))
    assert np.all(np.abs(found["std"].values[0] / 0.2 - 1.0) < 0.05)  # the sigma that was stated, away from the corners
    assert np.all(error < 2.0 * found["std"].values)
    assert np.all(error < 0.2)
