"""Lotka-Volterra h' = alpha h - beta h l, l' = -gamma l + delta h l: prey and predators, an ODE.

Time in [0, 20], the coefficients of hare and lynx. Truth: scipy's DOP853 at rtol 1e-11.
noise > 0 measures both populations once a year instead of stating them at t = 0.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.problem.domain import Interval
from factorfield.problem.problem import Condition, Initial, Problem
from factorfield.problems._gallery import Array, Fields, measured, truth_on

RATES = {"alpha": 0.55, "beta": 0.028, "gamma": 0.8, "delta": 0.024}
EQUATIONS = ["h_t = alpha*h - beta*h*l", "l_t = -gamma*l + delta*h*l"]


def populations(times: Array) -> Array:
    from scipy.integrate import solve_ivp

    def slope(_: float, y: Array) -> list[float]:
        h, l = y  # noqa: E741 - the equation's own name
        return [
            RATES["alpha"] * h - RATES["beta"] * h * l,
            -RATES["gamma"] * l + RATES["delta"] * h * l,
        ]

    run = solve_ivp(slope, (0.0, 20.0), [33.0, 6.0], "DOP853", dense_output=True, rtol=1e-11, atol=1e-11)
    return np.asarray(run.sol(times))


def problem(noise: float = 0.0, seed: int = 0) -> Problem:
    def exact(p: Mapping[str, Array]) -> Fields:
        values = populations(np.ravel(p["t"])).reshape(2, *np.shape(p["t"]))
        return {"h": values[0], "l": values[1]}

    conditions: list[Condition] = [Initial("h = 33"), Initial("l = 6")]
    if noise > 0.0:
        rng, years = np.random.default_rng(seed), np.arange(21.0)
        points = {"t": years}
        conditions = [measured(points, name, values, noise, rng) for name, values in exact(points).items()]
    return Problem(
        EQUATIONS, {"t": Interval(0.0, 20.0)}, RATES, conditions,
        truth=truth_on({"t": np.linspace(0, 20, 201)}, exact), name="lotka-volterra",
    )  # fmt: skip
