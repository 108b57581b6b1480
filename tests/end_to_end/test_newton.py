"""Searches with a net: functions without a value at zero, waves between walls, failed starts, stalls that are told."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.integrate import solve_bvp, solve_ivp

import factorfield as ff
from factorfield.methods.joint.joint import Joint
from factorfield.methods.starts import ends_of
from factorfield.problem.relation import evaluate_coefficient

I = ff.Interval  # noqa: E741


def wall(text: str, x: float) -> ff.Boundary:
    return ff.Boundary(text, at={"x": x})


@pytest.mark.parametrize(
    ("text", "start", "rate"),
    [
        ("-sqrt(u)", 2.0, lambda u: -np.sqrt(u)),
        ("-1/u", 3.0, lambda u: -1.0 / u),
        ("-u**1.7", 1.5, lambda u: -(u**1.7)),
        ("log(u)", 0.6, np.log),
    ],
)
def test_functions_without_a_value_at_zero(text: str, start: float, rate: object) -> None:
    solution = ff.solve(ff.Problem(f"u_t = {text}", {"t": I(0, 0.5)}, {}, [ff.Initial(f"u = {start}")]))
    times = np.linspace(0.0, 0.5, 6)
    truth = solve_ivp(lambda _, u: rate(u), (0, 0.5), [start], t_eval=times, rtol=1e-10, atol=1e-12).y[0]  # type: ignore[operator]
    assert solution.status == "converged"
    assert np.abs(solution.predict(t=times)["mean"].values - truth).max() < 1e-6


def test_an_unknown_exponent_is_found_without_a_start() -> None:
    times = np.linspace(0.0, 1.0, 12)
    seen = (2.0**-0.5 + 0.5 * times) ** -2  # u_t = -u**1.5
    problem = ff.Problem(
        "u_t = -u**k", {"t": I(0, 1)}, {"k": ff.Unknown(1.0, 0.4)}, [ff.Observations(t=times, u=seen, sigma=0.01)]
    )
    found = ff.solve(problem).parameters["k"]
    assert abs(found["mean"] - 1.5) < 0.03 and found["std"] < 0.1


def test_an_orbit_of_four_fields() -> None:
    pull = ["v_t = -a/(a**2 + b**2)**1.5", "w_t = -b/(a**2 + b**2)**1.5"]
    starts = [ff.Initial(text) for text in ("a = 1", "b = 0", "v = 0", "w = 0.9")]
    solution = ff.solve(ff.Problem(["a_t = v", "b_t = w", *pull], {"t": I(0, 6)}, {}, starts))

    def rate(_: float, y: np.ndarray) -> list[float]:
        cube = np.hypot(y[0], y[1]) ** 3
        return [y[2], y[3], -y[0] / cube, -y[1] / cube]

    truth = solve_ivp(rate, (0, 6), [1, 0, 0, 0.9], t_eval=[3.0, 6.0], rtol=1e-10, atol=1e-12).y[0]
    assert np.abs(solution.predict(t=[3.0, 6.0], of="a")["mean"].values - truth).max() < 1e-6


@pytest.mark.parametrize(("text", "rate"), [("1/u", lambda u: 1.0 / u), ("2*sqrt(u)", lambda u: 2.0 * np.sqrt(u))])
def test_between_walls(text: str, rate: object) -> None:
    solution = ff.solve(ff.Problem(f"u_xx = {text}", {"x": I(0, 1)}, {}, [wall("u = 1", 0), wall("u = 2", 1)]))
    x = np.linspace(0, 1, 51)
    truth = solve_bvp(
        lambda _, y: np.array([y[1], rate(y[0])]),  # type: ignore[operator]
        lambda a, b: np.array([a[0] - 1, b[0] - 2]), x, np.array([1 + x, 0 * x + 1]), tol=1e-9,
    )  # fmt: skip
    assert solution.status == "converged"
    assert np.abs(solution.predict(x=x)["mean"].values - truth.sol(x)[0]).max() < 1e-6


def test_a_field_that_diffuses_by_its_root() -> None:
    problem = ff.Problem(
        "u_t = u_xx - sqrt(u)", {"x": I(0, 1), "t": I(0, 0.2)}, {},
        [ff.Initial("u = 1"), wall("u_x = 0", 0), wall("u_x = 0", 1)],
    )  # fmt: skip
    seen = ff.solve(problem).predict(x=[0.0, 0.4], t=[0.2])["mean"].values
    assert np.abs(seen - 0.9**2).max() < 1e-5  # as flat as it began: (1 - t/2)**2


def test_a_coefficient_has_no_complex_value() -> None:
    relation = ff.Problem("u_t = sqrt(u)/x", {"x": I(1, 2), "t": I(0, 1)}, {}, []).statements[0].relation
    values = {"u": -1.0, "u_t": 0.0}
    assert np.all(np.isnan(evaluate_coefficient(relation.expression, values, {"x": np.ones(2)})))


def test_waves_of_first_order_between_walls_tell_their_coefficients() -> None:
    """p_t = -K u_x, rho u_t = -p_x, one coefficient given: refused before."""
    t, rng = np.linspace(0.05, 2.0, 30), np.random.default_rng(1)
    rate = np.pi * np.sqrt(2.0 / 1.5)
    seen = np.cos(0.2 * np.pi) * np.cos(rate * t) + 0.02 * rng.standard_normal(30)
    problem = ff.Problem(
        ["p_t = -K*u_x", "1.5*u_t = -p_x"], {"x": I(0, 1), "t": I(0, 2)}, {"K": ff.Unknown(1.6, 0.5, positive=True)},
        [ff.Initial("p = cos(pi*x)"), ff.Initial("u = 0"), wall("u = 0", 0), wall("u = 0", 1),
         ff.Observations(x=0.2, t=t, p=seen, sigma=0.02)],
    )  # fmt: skip
    solution = ff.solve(problem, modes={"x": 12})
    found = solution.parameters["K"]
    assert solution.status == "converged"
    assert abs(found["mean"] - 2.0) < 4 * found["std"] and 0.003 < found["std"] < 0.02


def test_starts_that_fail_are_left_out_unless_all_do() -> None:
    def search(values: object) -> str:
        if "bad" in str(values):
            raise np.linalg.LinAlgError(str(values))
        return str(values)

    assert ends_of([{"bad": 1.0}, {"good": 2.0}], search) == ["{'good': 2.0}"]
    with pytest.raises(np.linalg.LinAlgError, match=r"1\.0"):
        ends_of([{"bad": 1.0}, {"bad": 2.0}], search)


def test_a_load_is_found_from_every_start() -> None:
    """A narrow load of unknown size and place on a string: u_xx = -P g(x - a)."""
    x = np.linspace(0.1, 0.9, 9)
    place, size, width = 0.4, 2.0, 0.1
    s = np.linspace(0, 1, 2001)
    load = size * np.exp(-((s - place) ** 2) / 2 / width**2)
    green = np.where(x[:, None] < s, x[:, None] * (1 - s), s * (1 - x[:, None]))
    seen = np.trapezoid(green * load, s, axis=1) + 1e-3 * np.random.default_rng(0).standard_normal(9)
    problem = ff.Problem(
        ff.Equation("u_xx = -P*exp(-(x - a)**2/(2*0.1**2))", sigma=1e-4), {"x": I(0, 1)},
        {"P": ff.Unknown(1, 1, positive=True), "a": ff.Unknown(0.6, 0.2)},
        [wall("u = 0", 0), wall("u = 0", 1), ff.Observations(x=x, u=seen, sigma=1e-3)],
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = ff.solve(problem, starts=4, modes={"x": 40})
    assert solution.status == "converged" and "all 4 starts end at the same place" in solution.status.help
    for name, truth in (("P", size), ("a", place)):
        found = solution.parameters[name]
        assert abs(found["mean"] - truth) < 4 * found["std"] and found["std"] < 0.05


def _conduction(seed: int) -> tuple[ff.Problem, np.ndarray, np.ndarray]:
    """-(D u_x)_x = 1 between cold walls, D(x) a wave of its own, thirty sensors."""
    rng, x = np.random.default_rng(seed), np.linspace(0, 1, 2001)
    log_d = 0.5 * np.sin(2 * np.pi * (x + rng.uniform())) + 0.3 * np.cos(5 * x + rng.uniform())
    inverse = np.exp(-log_d)
    area, moment = np.cumsum(inverse) / 2000, np.cumsum(x * inverse) / 2000
    u = moment[-1] / area[-1] * area - moment
    at = np.sort(rng.integers(50, 1950, 30))
    sigma = 0.01 * u.max()
    seen = ff.Observations(x=x[at], u=u[at] + sigma * rng.standard_normal(30), sigma=sigma)
    problem = ff.Problem(
        "-(D*u_xx + D_x*u_x) = 1", {"x": I(0, 1)}, {"D": ff.Unknown(1, 0.5, positive=True, over="x")},
        [wall("u = 0", 0), wall("u = 0", 1), seen],
    )  # fmt: skip
    return problem, x[::100], np.exp(log_d)[::100]


def test_an_unknown_function_is_found_on_the_equation() -> None:
    """No miss by a hundred sigmas, and most of the truth within the 90 % interval."""
    inside = []
    for seed in range(3):
        problem, x, truth = _conduction(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error", ff.AdviceWarning)
            solution = ff.solve(problem)
        assert solution.status == "converged"
        found = solution.predict(x=x, of="D")
        inside.append(np.abs(found["mean"].values - truth) < 1.645 * found["std"].values)
    assert np.mean(inside) > 0.75


def test_a_stall_is_not_called_converged() -> None:
    problem, _, _ = _conduction(0)
    solution = ff.solve(problem, method=Joint(iterations=1), modes={"x": 20})
    assert solution.status == "max-iterations" and "promised" in solution.status.help
