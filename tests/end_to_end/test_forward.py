"""Problems solved by the map, against exact or independent answers: waves, jumps, what is not stated, other noise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, special, stats

import factorfield as ff

Array = NDArray[np.float64]
LINE = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}


def wall(text: str, x: float) -> ff.Boundary:
    return ff.Boundary(text, at={"x": x})


HELD = [wall("u = 0", 0), wall("u = 0", 1)]


def error_of(solution: ff.Solution, exact: Callable[..., Array], **axes: Array) -> tuple[float, float]:
    """The largest error over the range of the exact field, and the share of places where it is within three stds."""
    seen = solution.predict(**axes)
    names = list(seen["mean"].dims)
    truth = exact(**dict(zip(names, np.meshgrid(*(axes[n] for n in names), indexing="ij"), strict=True)))
    error = np.abs(seen["mean"].values - truth)
    within = float(np.mean(error <= 3.0 * seen["std"].values + 1e-12 * np.ptp(truth)))
    return float(np.max(error) / np.ptp(truth)), within


def standing(k: int) -> tuple[ff.Problem, Callable[..., Array]]:
    conditions = [ff.Initial(f"u = sin({k}*pi*x)"), ff.Initial("u_t = 0"), *HELD]
    return ff.Problem("u_tt = u_xx", LINE, {}, conditions), lambda x, t: np.sin(k * np.pi * x) * np.cos(k * np.pi * t)


def absorbed() -> tuple[ff.Problem, Callable[..., Array]]:
    pulse = "exp(-200*(x - 0.4)**2)"
    ends = [wall("u_t - u_x = 0", 0), wall("u_t + u_x = 0", 1)]
    conditions = [ff.Initial(f"u = {pulse}"), ff.Initial(f"u_t = 400*(x - 0.4)*{pulse}"), *ends]
    return ff.Problem("u_tt = u_xx", LINE, {}, conditions), lambda x, t: np.exp(-200.0 * (x - t - 0.4) ** 2)


def driven() -> tuple[ff.Problem, Callable[..., Array]]:
    conditions = [ff.Initial("u = 0"), ff.Initial("u_t = 0"), wall("u = sin(3*t)**4", 0), wall("u = 0", 1)]
    return ff.Problem("u_tt = u_xx", LINE, {}, conditions), lambda x, t: np.where(t > x, np.sin(3 * (t - x)) ** 4, 0.0)


def beam() -> tuple[ff.Problem, Callable[..., Array]]:
    bent = [wall("u_xx = 0", 0), wall("u_xx = 0", 1)]
    domain = {**LINE, "t": ff.Interval(0, 0.2)}
    conditions = [ff.Initial("u = sin(pi*x)"), ff.Initial("u_t = 0"), *HELD, *bent]
    return ff.Problem("u_tt = -u_xxxx", domain, {}, conditions), lambda x, t: np.sin(np.pi * x) * np.cos(np.pi**2 * t)


@pytest.mark.parametrize("make", [lambda: standing(1), lambda: standing(6), absorbed, driven, beam])
def test_waves_between_walls_are_the_exact_ones(make: Callable[[], tuple[ff.Problem, Callable[..., Array]]]) -> None:
    problem, exact = make()
    solution = ff.solve(problem, method="forward")
    end = problem.domain["t"].upper
    error, within = error_of(solution, exact, x=np.linspace(0, 1, 31), t=np.linspace(0, end, 9))
    assert solution.status == "converged" and error < 1e-5 and within >= 0.95


def halves(x: Array, t: Array) -> Array:
    """A step start between walls without flow: its cosine series."""
    waves = np.pi * np.arange(1, 400)
    parts = 2.0 / waves * np.sin(0.5 * waves) * np.cos(np.multiply.outer(x, waves))
    return np.asarray(0.5 + np.sum(parts * np.exp(-0.01 * waves**2 * t[..., None]), axis=-1))


def test_a_start_that_jumps_spreads_as_its_series_says() -> None:
    problem = ff.Problem(
        "u_t = 0.01*u_xx", LINE, {}, [ff.Initial("u = where(x < 0.5, 1, 0)"), wall("u_x = 0", 0), wall("u_x = 0", 1)]
    )  # fmt: skip
    solution = ff.solve(problem, method="forward")
    error, _ = error_of(solution, halves, x=np.linspace(0, 1, 41), t=np.array([0.05, 0.1, 0.3, 1.0]))
    assert solution.status == "converged" and error < 2e-5


def test_a_source_that_jumps_in_space_is_met_exactly() -> None:
    problem = ff.Problem("u_xx = -where(x < 0.3, 1, 0)", {"x": ff.Interval(0, 1)}, {}, HELD)
    solution = ff.solve(problem, method="forward")
    error, _ = error_of(
        solution, lambda x: np.where(x < 0.3, -0.5 * x**2 + 0.255 * x, 0.045 * (1 - x)), x=np.linspace(0, 1, 41)
    )  # fmt: skip
    assert error < 1e-12


def test_a_wall_that_is_switched_sends_a_layer_into_the_line() -> None:
    domain = {**LINE, "t": ff.Interval(0, 2)}
    problem = ff.Problem(
        "u_t = 0.1*u_xx", domain, {}, [ff.Initial("u = 0"), wall("u = heaviside(t - 1)", 0), wall("u_x = 0", 1)]
    )  # fmt: skip
    solution = ff.solve(problem, method="forward", tolerance=1e-4)

    def exact(x: Array, t: Array) -> Array:
        width = 2.0 * np.sqrt(0.1 * np.maximum(t - 1.0, 1e-12))
        images = special.erfc(x / width) + special.erfc((2 - x) / width) - special.erfc((2 + x) / width)
        return np.where(t > 1.0, images, 0.0)

    error, _ = error_of(solution, exact, x=np.linspace(0, 1, 21), t=np.array([0.5, 0.9, 1.1, 1.5, 2.0]))
    assert error < 1e-5


@pytest.mark.parametrize("text, exact", [
    ("u_t = point(t - 0.777, 0.001)", lambda t: special.ndtr((t - 0.777) / 0.001)),
    ("u_t = -u + where(t < 0.3, 1, 0)", lambda t: np.where(t < 0.3, 1 - np.exp(-t), (np.exp(0.3) - 1) * np.exp(-t))),
])  # fmt: skip
def test_pulses_and_switches_in_time_are_not_missed(text: str, exact: Callable[..., Array]) -> None:
    solution = ff.solve(ff.Problem(text, {"t": ff.Interval(0, 1)}, {}, [ff.Initial("u = 0")]), method="forward")
    error, _ = error_of(solution, exact, t=np.linspace(0, 1, 21))
    assert error < 1e-6


def test_a_unit_of_one_field_moves_nothing() -> None:
    t = np.linspace(0.2, 5, 25)
    y = integrate.solve_ivp(lambda t, y: [-0.8 * y[0], 0.8 * y[0] - 0.5 * y[1]], (0, 5), [1, 0], t_eval=t, rtol=1e-9).y
    rates = {name: ff.Unknown(1.0, 0.5, positive=True) for name in "km"}
    seen = []
    for unit in (1.0, 1e-6, 1e6):
        readings = ff.Observations(t=t, b=unit * (y[1] + 0.01 * np.sin(37 * t)), sigma=0.01 * unit)
        problem = ff.Problem(
            ["a_t = -k*a", f"b_t = {unit}*k*a - m*b"], {"t": ff.Interval(0, 5)}, rates,
            [ff.Initial("a = 1"), ff.Initial("b = 0"), readings],
        )  # fmt: skip
        found = ff.solve(problem, method="forward").parameters
        seen.append([found[name][key] for name in "km" for key in ("mean", "std")])
    np.testing.assert_allclose(seen[1:], [seen[0]] * 2, rtol=1e-6)


def test_a_start_that_is_not_stated_is_what_the_readings_say() -> None:
    rng = np.random.default_rng(1)
    x, t = rng.uniform(0, 1, (2, 80))

    def truth(x: Array, t: Array) -> Array:
        return np.asarray(0.5 + np.exp(-0.08 * np.pi**2 * t) * np.sin(2 * np.pi * x))

    readings = ff.Observations(x=x, t=t, u=truth(x, t) + 0.05 * rng.standard_normal(80), sigma=0.05)
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    unknown = {"D": ff.Unknown(0.03, 0.03, positive=True)}
    with pytest.warns(ff.AdviceWarning, match="no start of u is stated"):
        solution = ff.solve(ff.Problem("u_t = D*u_xx", domain, unknown, [readings]), method="forward")
    found = solution.parameters["D"]
    assert abs(found["mean"] - 0.02) < 3.0 * found["std"] and 0.0005 < found["std"] < 0.004
    _, within = error_of(solution, truth, x=np.linspace(0, 1, 21), t=np.linspace(0, 1, 6))
    assert within >= 0.95


def driven_mode(t: Array) -> Array:
    """Of u_t = 0.1 u_xx + 3 sin(pi x) cos(2 t) from rest: the share of sin(pi x)."""
    rate = 0.1 * np.pi**2
    return np.asarray(3.0 * (rate * np.cos(2 * t) + 2 * np.sin(2 * t) - rate * np.exp(-rate * t)) / (rate**2 + 4))


@pytest.mark.parametrize("is_named", [True, False])
def test_a_source_over_space_and_time_may_be_unknown(is_named: bool) -> None:
    """As a function with a name, and as the error of an equation with a sigma."""
    rng = np.random.default_rng(3)
    x, t = rng.uniform(0.05, 0.95, 150), rng.uniform(0.05, 1, 150)
    u = driven_mode(t) * np.sin(np.pi * x) + 0.02 * rng.standard_normal(150)
    equation = "u_t = 0.1*u_xx + f" if is_named else ff.Equation("u_t = 0.1*u_xx", sigma=3.0, length=0.5)
    unknown = {"f": ff.Unknown(0, 3, over=("x", "t"), length=0.5)} if is_named else {}
    readings = ff.Observations(x=x, t=t, u=u, sigma=0.02)
    solution = ff.solve(ff.Problem(equation, LINE, unknown, [ff.Initial("u = 0"), *HELD, readings]), method="forward")
    _, within = error_of(
        solution, lambda x, t: driven_mode(t) * np.sin(np.pi * x), x=np.linspace(0, 1, 21), t=np.linspace(0, 1, 6)
    )  # fmt: skip
    assert within >= 0.95
    if is_named:
        seen = solution.predict(of="f", x=np.linspace(0, 1, 21), t=[0.2, 0.5, 0.8])
        truth = 3.0 * np.cos(2 * seen.t.values)[:, None] * np.sin(np.pi * seen.x.values)
        z = (seen["mean"].values - truth) / seen["std"].values
        assert np.mean(np.abs(z) < 3.0) >= 0.95 and np.sqrt(np.mean(z**2)) > 0.1


@pytest.mark.parametrize("noise", ["student-t", "log-normal"])
def test_other_noise_gives_the_posterior_of_a_brute_sum(noise: str) -> None:
    rng, t, sigma = np.random.default_rng(0), np.linspace(0.1, 4, 40), 0.05
    u = np.exp(-0.5 * t)
    u = u * np.exp(sigma * rng.standard_normal(40)) if noise == "log-normal" else u + sigma * rng.standard_t(4, 40)
    prior = ff.Unknown(1.0, 1.0, positive=True)
    problem = ff.Problem(
        "u_t = -k*u", {"t": ff.Interval(0, 4)}, {"k": prior},
        [ff.Initial("u = 1"), ff.Observations(t=t, u=u, sigma=sigma, noise=noise)],
    )  # fmt: skip
    solution = ff.solve(problem, method="forward")
    z = np.linspace(np.log(0.3), np.log(0.8), 4001)
    mean, variance = prior.latent_moments
    path = np.exp(-np.exp(z)[:, None] * t)
    if noise == "student-t":
        likelihood = stats.t.logpdf((u - path) / sigma, 4) - np.log(sigma)
    else:
        likelihood = stats.norm.logpdf(np.log(u), np.log(path), sigma) - np.log(u)
    density = likelihood.sum(axis=1) + stats.norm.logpdf(z, mean, np.sqrt(variance))
    weights = np.exp(density - density.max())
    total = np.trapezoid(weights, z)
    wanted = np.trapezoid(weights * np.exp(z), z) / total
    spread = np.sqrt(np.trapezoid(weights * (np.exp(z) - wanted) ** 2, z) / total)
    found = solution.parameters["k"]
    assert abs(found["mean"] - wanted) < 0.1 * spread and found["std"] == pytest.approx(spread, rel=0.05)
    assert solution.log_evidence == pytest.approx(np.log(total) + density.max(), abs=0.1)
