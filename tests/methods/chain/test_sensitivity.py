"""Coefficients found by `chain` carry the numerical error of the fields: their bias is within their std."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import factorfield as ff

TURN, SIGMA, READINGS = 2.0 * np.pi, 1e-4, 60


def carried(modes: int | None) -> ff.Solution:
    """The speed (0.4) of a narrow pulse that is carried around a ring."""
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0, 1, (2, READINGS))
    u = np.exp(3.0 * (np.cos(TURN * (x - 0.4 * t)) - 1.0)) + SIGMA * rng.standard_normal(READINGS)
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    known = [ff.Initial("u = exp(3*(cos(2*pi*x) - 1))"), ff.Observations(x=x, t=t, u=u, sigma=SIGMA)]
    problem = ff.Problem("u_t + b*u_x = 0", domain, {"b": ff.Unknown(0.5, 0.2)}, known)
    return ff.solve(problem, method="chain", **({"modes": {"x": modes}} if modes else {}))


def viscous(cells: int) -> ff.Solution:
    """The viscosity (0.05) of a steep wave between walls, by Cole and Hopf."""
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0, 1, READINGS), rng.uniform(0, 0.5, READINGS)
    size = np.exp(-0.05 * TURN**2 * t)
    u = 0.1 * TURN * size * np.sin(TURN * x) / (1.05 + size * np.cos(TURN * x))
    known = [
        ff.Initial("u = 0.2*pi*sin(2*pi*x)/(1.05 + cos(2*pi*x))"),
        *(ff.Boundary("u = 0", at={"x": end}) for end in (0, 1)),
        ff.Observations(x=x, t=t, u=u + SIGMA * rng.standard_normal(READINGS), sigma=SIGMA),
    ]
    unknown = {"nu": ff.Unknown(0.06, 0.02, positive=True)}
    domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 0.5)}
    problem = ff.Problem("u_t + u*u_x = nu*u_xx", domain, unknown, known)
    return ff.solve(problem, method="chain", cells={"x": cells})


@pytest.mark.filterwarnings("ignore::factorfield.AdviceWarning")
@pytest.mark.parametrize(
    ("solve", "count", "name", "truth"), [(carried, 5, "b", 0.4), (carried, 6, "b", 0.4), (viscous, 12, "nu", 0.05)]
)
def test_the_bias_of_a_number_is_within_its_std(
    solve: Callable[[int], ff.Solution], count: int, name: str, truth: float
) -> None:
    solution = solve(count)
    found, without = solution.parameters[name], solution.posterior.exact.parameters()[name]
    assert solution.status == "unresolved"
    assert abs(found["mean"] - truth) > 4.0 * without["std"]
    assert abs(found["mean"] - truth) < 1.5 * found["std"]


def test_a_number_of_a_resolved_field_has_the_std_that_data_leave() -> None:
    """Also: modes do not grow for a guess of the number that the measurements deny."""
    solution = carried(None)
    b, without = solution.parameters["b"], solution.posterior.exact.parameters()["b"]
    assert solution.status == "converged"
    assert solution.settings["modes"] == {"x": 16}
    assert b["std"] == pytest.approx(without["std"], rel=1e-3)
