"""Whatever a user may know: functions to be found, tables, averages, periodic ends, outliers, several modes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import integrate
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

import factorfield as ff
from factorfield.problem.noise import LogNormal, StudentT

GRID = np.linspace(0.0, 1.0, 21)
ENDS = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
LINE = {"x": ff.Interval(0, 1)}
STRIP = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 0.2)}


def advice(problem: ff.Problem, **options: object) -> str:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ff.solve(problem, **options)  # type: ignore[call-overload]
    return " ".join(str(one.message) for one in caught)


# -- unknown functions


def source(x: np.ndarray) -> np.ndarray:
    return 4.0 * np.sin(2.0 * np.pi * x) + 2.0 * x


def response(x: np.ndarray) -> np.ndarray:
    """u'' = -source, u(0) = u(1) = 0."""
    return np.sin(2.0 * np.pi * x) / np.pi**2 - x**3 / 3.0 + x / 3.0


def source_problem(seed: int = 0, noise: float = 1e-3, **unknown: object) -> ff.Problem:
    x = np.linspace(0.0, 1.0, 60)
    values = response(x) + noise * np.random.default_rng(seed).standard_normal(60)
    f = ff.Unknown(0.0, 5.0, over="x", **unknown)  # type: ignore[arg-type]
    return ff.Problem("u_xx + f = 0", LINE, {"f": f}, [*ENDS, ff.Observations(x=x, u=values, sigma=noise)])


def test_a_source_is_found_with_intervals_that_hold_it() -> None:
    errors = []
    for seed in range(10):
        found = ff.solve(source_problem(seed)).predict(of="f", x=GRID)
        errors.append((found["mean"] - source(GRID)) / found["std"])
    assert np.mean(np.abs(errors) < 1.645) > 0.75
    # Ten draws of some five independent directions each: the RMS is 1 +- 0.1, and less where the prior is too broad.
    assert 0.5 < np.sqrt(np.mean(np.square(errors))) < 1.3
    assert np.sqrt(np.mean((found["mean"] - source(GRID)) ** 2)) < 0.1 * np.abs(source(GRID)).max()


def test_an_unknown_function_has_the_stated_prior() -> None:
    unknown = ff.Unknown(2.0, 0.5, over="x", length=0.3)
    problem = ff.Problem("u_xx + 0*f = 0", LINE, {"f": unknown}, [*ENDS, ff.Observations(x=0.5, of="u+f", value=2.0)])
    model = ff.default_model(problem)
    basis = model.representation.latents["f"].basis
    rows = basis.rows({"x": np.array([0.2, 0.5, 0.51])})
    covariance = rows @ rows.T
    np.testing.assert_allclose(np.diag(covariance), 0.25, rtol=1e-3)
    gap = np.sqrt(5.0) * 0.3 / 0.3  # Matern 5/2 at a distance of one length
    np.testing.assert_allclose(covariance[0, 1], 0.25 * (1 + gap + gap**2 / 3) * np.exp(-gap), rtol=1e-3)
    assert model.representation.forms["f"].offset == 2.0


def test_a_function_of_x_needs_no_t_and_survives_a_file(tmp_path: object) -> None:
    solution = ff.solve(source_problem())
    loaded = ff.load(solution.save(f"{tmp_path}/run.nc"))
    for of in ("f", "f_x", "u"):
        one, other = solution.predict(of=of, x=GRID), loaded.predict(of=of, x=GRID)
        assert np.array_equal(one["mean"], other["mean"]) and np.array_equal(one["std"], other["std"])


def diffused(conductivity: np.ndarray, start: np.ndarray, times: np.ndarray) -> np.ndarray:
    """u_t = (D u_x)_x on [0, 1), periodic, by finite volumes; D at the faces. (times, cells)."""
    count = len(start)
    left, right = conductivity * count**2, np.roll(conductivity, -1) * count**2
    flux = np.diag(-left - right)
    cells = np.arange(count)
    flux[cells, (cells - 1) % count] += left
    flux[cells, (cells + 1) % count] += right
    values, vectors = np.linalg.eigh(flux)
    return (np.exp(np.outer(times, values)) * (vectors.T @ start)) @ vectors.T


def test_a_conductivity_is_what_least_squares_through_a_finite_volume_solver_finds() -> None:
    count, times = 128, np.linspace(0.0, 0.4, 9)
    cells, faces = (np.arange(count) + 0.5) / count, np.arange(count) / count
    start = np.sin(2.0 * np.pi * cells) + 0.5 * np.cos(4.0 * np.pi * cells)
    field = diffused(0.1 * np.exp(0.4 * np.sin(2.0 * np.pi * faces)), start, times)
    rng = np.random.default_rng(1)
    where, when = rng.integers(0, count, 200), rng.integers(1, 9, 200)
    noisy = field[when, where] + 0.01 * rng.standard_normal(200)
    problem = ff.Problem(
        "u_t = D*u_xx + D_x*u_x", {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 0.4)},
        {"D": ff.Unknown(0.1, 0.1, positive=True, over="x")},
        [ff.Initial("u = sin(2*pi*x) + 0.5*cos(4*pi*x)"),
         ff.Observations(x=cells[where], t=times[when], u=noisy, sigma=0.01)],
    )  # fmt: skip
    solution = ff.solve(problem, modes={"x": 8})
    found = solution.predict(of="log(D)", x=GRID)

    representation = solution.posterior.representation
    basis, offset = representation.latents["D"].basis, representation.forms["D"].offset

    def misfit(weights: np.ndarray) -> np.ndarray:
        model = diffused(np.exp(offset + basis.rows({"x": faces}) @ weights), start, times)
        return np.concatenate([(model[when, where] - noisy) / 0.01, weights])

    fit = least_squares(misfit, np.zeros(basis.size))
    covariance = np.linalg.inv(fit.jac.T @ fit.jac)
    rows = basis.rows({"x": GRID})
    mean, std = offset + rows @ fit.x, np.sqrt(np.einsum("ij,jk,ik->i", rows, covariance, rows))
    assert np.all(np.abs(found["mean"] - mean) < 0.2 * std)
    np.testing.assert_allclose(found["std"], std, rtol=0.05)
    truth = np.log(0.1) + 0.4 * np.sin(2.0 * np.pi * GRID)
    assert np.mean(np.abs(found["mean"] - truth) < 1.645 * found["std"]) > 0.7


def test_a_source_in_time_is_found_by_windows() -> None:
    t = np.linspace(0.0, 4.0, 80)
    truth = np.sin(2.0 * t)
    u = (np.exp(-t) * 2.0 + np.sin(2.0 * t) - 2.0 * np.cos(2.0 * t)) / 5.0  # u' = -u + sin 2t, u(0) = 0
    noisy = u + 0.01 * np.random.default_rng(2).standard_normal(80)
    problem = ff.Problem(
        "u_t = -u + f", {"t": ff.Interval(0, 4)}, {"f": ff.Unknown(0.0, 1.0, over="t", length=1.0)},
        [ff.Initial("u = 0"), ff.Observations(t=t, u=noisy, sigma=0.01)],
    )  # fmt: skip
    found = ff.solve(problem).predict(of="f", t=t[4:-4])
    error = (found["mean"] - truth[4:-4]) / found["std"]
    assert np.mean(np.abs(error) < 1.645) > 0.75
    assert 0.25 < np.sqrt(np.mean(error**2)) < 1.75  # some eight independent directions: 1 +- 0.25, thrice
    assert float(np.abs(found["mean"] - truth[4:-4]).max()) < 0.3


# -- tables


def test_a_table_stands_for_its_formula() -> None:
    x = np.linspace(0.0, 1.0, 200)
    by_table = ff.Problem("u_xx + f = 0", LINE, {"f": ff.Table(x=x, value=source(x))}, ENDS)
    solution = ff.solve(by_table)
    assert float(np.abs(solution.predict(x=GRID)["mean"] - response(GRID)).max()) < 1e-7
    assert float(np.abs(solution.predict(of="residual", x=GRID)["mean"]).max()) < 1e-5


def test_a_tables_derivative_and_a_table_over_two_axes() -> None:
    x, t = np.linspace(0.0, 1.0, 60, endpoint=False), np.linspace(0.0, 0.2, 30)
    speed = np.sin(2.0 * np.pi * x)[:, None] * np.cos(t)
    table = ff.Table(x=x, t=t, value=speed).check("c", ff.Problem("u_x", {**STRIP, "x": ff.Periodic(0, 1)}).domain)
    points = {"x": np.array([0.013, 0.5, 0.999]), "t": np.array([0.0, 0.11, 0.2])}
    np.testing.assert_allclose(table(points), np.sin(2 * np.pi * points["x"]) * np.cos(points["t"]), atol=2e-6)
    slope = 2.0 * np.pi * np.cos(2 * np.pi * points["x"]) * np.cos(points["t"])
    np.testing.assert_allclose(table(points, "x"), slope, atol=2e-3)
    both = {**STRIP, "x": ff.Periodic(0, 1)}
    start = [ff.Initial("u = cos(2*pi*x)")]
    by_text = ff.solve(ff.Problem("u_t + sin(2*pi*x)*cos(t)*u_x = 0", both, {}, start))
    by_table = ff.solve(ff.Problem("u_t + c*u_x = 0", both, {"c": ff.Table(x=x, t=t, value=speed)}, start))
    gap = by_text.predict(x=GRID, t=t)["mean"] - by_table.predict(x=GRID, t=t)["mean"]
    assert float(np.abs(gap).max()) < 1e-5


# -- more than one point


@pytest.mark.parametrize("method", ["chain", "joint"])
def test_periodic_ends_of_an_interval(method: str) -> None:
    ends = [ff.Boundary("u", at={"x": (0, 1)}), ff.Boundary("u_x", at={"x": (0, 1)})]
    problem = ff.Problem("u_t = 0.1*u_xx + u_x", STRIP, {}, [ff.Initial("u = sin(2*pi*x)"), *ends])
    t = np.linspace(0.0, 0.2, 5)
    exact = np.exp(-0.1 * 4.0 * np.pi**2 * t)[:, None] * np.sin(2.0 * np.pi * (GRID + t[:, None]))
    assert float(np.abs(ff.solve(problem, method=method).predict(x=GRID, t=t)["mean"] - exact).max()) < 1e-7


def test_cell_averages_of_a_field_and_of_a_source_term() -> None:
    """u'' = -pi^2 sin(pi x), known by averages over two halves of u + x: u = sin(pi x) + 1."""
    half = 2.0 / np.pi + 1.0
    seen = ff.Observations(x=[0.25, 0.75], of="u + x", value=[half + 0.25, half + 0.75], sigma=1e-6, average={"x": 0.5})
    solution = ff.solve(ff.Problem("u_xx = -pi**2*sin(pi*x)", LINE, {}, [seen]))
    assert float(np.abs(solution.predict(x=GRID)["mean"] - np.sin(np.pi * GRID) - 1.0).max()) < 1e-8


def test_cell_averages_start_a_chain() -> None:
    cells, width = (np.arange(40) + 0.5) / 40, 1 / 40
    means = np.sin(2.0 * np.pi * cells) * np.sin(np.pi * width) / (np.pi * width)
    seen = ff.Observations(x=cells, t=0.0, u=means, sigma=1e-4, average={"x": width})
    problem = ff.Problem("u_t = 0.1*u_xx", {**STRIP, "x": ff.Periodic(0, 1)}, {}, [seen])
    found = ff.solve(problem).predict(x=GRID, t=[0.0])["mean"][0]
    assert float(np.abs(found - np.sin(2.0 * np.pi * GRID)).max()) < 1e-6


def test_what_averages_cannot_be_of() -> None:
    with pytest.raises(ff.ProblemError, match="linear functional"):
        ff.Problem("u_xx = 1", LINE, {}, [ff.Observations(x=0.5, of="u**2", value=1.0, average={"x": 0.1})])
    seen = ff.Observations(x=0.5, t=0.1, u=1.0, average={"t": 0.1})
    problem = ff.Problem("u_t = u_xx", STRIP, {}, [seen, ff.Initial("u = 0")])
    with pytest.raises(ff.ProblemError, match="method='joint'"):
        ff.solve(problem)
    with pytest.raises(ff.ProblemError, match="linear ansatz"):
        ff.default_model(problem, modes={"x": 4, "t": 4}, activation=ff.PiecewiseExponential())


# -- noise that is not Gaussian


def strength_posterior(log_likelihood: object, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Mean and sd of k in u = k / pi^2 sin(pi x) under N(5, 5^2), by quadrature."""
    k = np.linspace(1e-3, 25.0, 40001)
    level = -0.5 * ((k - 5.0) / 5.0) ** 2
    for a, b in zip(x, y, strict=True):
        level = level + log_likelihood(k / np.pi**2 * np.sin(np.pi * a), b)  # type: ignore[operator]
    weight = np.exp(level - level.max())
    mean = float(np.sum(weight * k) / weight.sum())
    return mean, float(np.sqrt(np.sum(weight * (k - mean) ** 2) / weight.sum()))


def strength_problem(x: np.ndarray, y: np.ndarray, **options: object) -> ff.Problem:
    seen = ff.Observations(x=x, u=y, **options)  # type: ignore[arg-type]
    return ff.Problem("u_xx = -k*sin(pi*x)", LINE, {"k": ff.Unknown(5, 5)}, [*ENDS, seen])


def test_outliers_hardly_count_with_student_t_noise() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 1.0, 60)
    y = np.sin(np.pi * x) + 0.05 * rng.standard_t(4, 60)
    y[:5] += 3.0
    noise = StudentT(4.0)
    mean, sd = strength_posterior(lambda u, b: noise.log_likelihood(u, b, np.float64(0.05)), x, y)
    solution = ff.solve(strength_problem(x, y, sigma=0.05, noise="student-t"))
    found = solution.parameters["k"]
    assert solution.status == "converged"
    assert abs(found["mean"] - mean) < 0.1 * sd and abs(found["std"] / sd - 1.0) < 0.12
    with pytest.warns(ff.AdviceWarning, match="missed by more than chance: observations of u by 17 sigma"):
        believed = ff.solve(strength_problem(x, y, sigma=0.05)).parameters["k"]["mean"]
    assert abs(believed - mean) > 10.0 * sd
    noisy = solution.predict(x=[0.5], noise=True)["std"].item()
    assert noisy == pytest.approx(np.hypot(solution.predict(x=[0.5])["std"].item(), 0.05 * np.sqrt(2.0)))


def test_relative_errors_are_log_normal_noise() -> None:
    rng = np.random.default_rng(1)
    x = rng.uniform(0.1, 0.9, 30)
    y = np.sin(np.pi * x) * np.exp(0.3 * rng.standard_normal(30))
    noise = LogNormal()
    mean, sd = strength_posterior(lambda u, b: noise.log_likelihood(u, b, np.float64(0.3)), x, y)
    found = ff.solve(strength_problem(x, y, sigma=0.3, noise="log-normal")).parameters["k"]
    assert abs(found["mean"] - mean) < 0.1 * sd and abs(found["std"] / sd - 1.0) < 0.05


def test_student_t_noise_in_a_chain_survives_a_file(tmp_path: object) -> None:
    t = np.linspace(0.0, 2.0, 25)
    y = np.exp(-t) + 0.02 * np.random.default_rng(3).standard_normal(25)
    y[7] = 5.0
    seen = ff.Observations(t=t, u=y, sigma=0.02, noise=ff.StudentT(3.0))
    problem = ff.Problem("u_t = -k*u", {"t": ff.Interval(0, 2)}, {"k": ff.Unknown(0.5, 0.5)}, [seen])
    solution = ff.solve(problem)
    found = solution.parameters["k"]
    assert abs(found["mean"] - 1.0) < 3.0 * found["std"] and found["std"] < 0.06
    loaded = ff.load(solution.save(f"{tmp_path}/run.nc"))
    assert loaded.problem.conditions[0].noise == ff.StudentT(3.0)  # type: ignore[union-attr]


# -- limits that are said


def test_several_starts_tell_of_two_modes() -> None:
    t = np.linspace(0.0, 2.0, 20)
    y = np.exp(-t) + 0.02 * np.random.default_rng(0).standard_normal(20)
    conditions = [ff.Initial("u = 1"), ff.Observations(t=t, u=y, sigma=0.02)]
    twofold = ff.Problem("u_t = -k**2*u", {"t": ff.Interval(0, 2)}, {"k": ff.Unknown(0.3, 2)}, conditions)
    with pytest.warns(ff.AdviceWarning, match="more than one answer fits"):
        solution = ff.solve(twofold, starts=5)
    assert "starts end elsewhere" in solution.status.help and abs(solution.parameters["k"]["mean"]) > 0.9
    single = ff.Problem("u_t = -k*u", {"t": ff.Interval(0, 2)}, {"k": ff.Unknown(0.3, 2)}, conditions)
    assert "all 3 starts end at the same place" in ff.solve(single, starts=3).status.help


def test_several_starts_of_a_stationary_problem() -> None:
    x = np.linspace(0.0, 1.0, 15)
    values = np.sin(3.0 * x) + 0.01 * np.random.default_rng(0).standard_normal(15)
    seen = [ff.Boundary("u = 0", at={"x": 0}), ff.Observations(x=x, u=values, sigma=0.01)]
    problem = ff.Problem("u_xx = -w**2*u", LINE, {"w": ff.Unknown(0.5, 3.0)}, seen)
    with pytest.warns(ff.AdviceWarning, match="more than one answer fits"):
        solution = ff.solve(problem, starts=4)
    assert abs(abs(solution.parameters["w"]["mean"]) - 3.0) < 4.0 * solution.parameters["w"]["std"] < 0.1


def test_missing_conditions_are_counted_and_named() -> None:
    start = ff.Initial("u = sin(pi*x)")
    said = advice(ff.Problem("u_t = 0.1*u_xx", STRIP, {}, [start]))
    assert "details of the field at its end" in said and "0 of 2 conditions on u at the ends of x" in said
    assert "0 of 1 conditions on u at t = 0" in advice(ff.Problem("u_t = 0.1*u_xx", STRIP, {}, ENDS))
    assert "1 of 2 conditions on u at the ends of x" in advice(ff.Problem("u_xx = 1", LINE, {}, ENDS[:1]))
    assert advice(ff.Problem("u_t = 0.1*u_xx", STRIP, {}, [start, *ENDS])) == ""


@pytest.mark.parametrize(
    ("equation", "domain"), [("u_t = k*u_xx", {**STRIP, "x": ff.Periodic(0, 1)}), ("u_xx = k", LINE)]
)
def test_an_unknown_that_nothing_constrains_is_named(equation: str, domain: dict[str, ff.Interval]) -> None:
    known = [ff.Initial("u = sin(2*pi*x)")] if "t" in domain else ENDS
    problem = ff.Problem(equation, domain, {"k": ff.Unknown(1.0, 0.5, positive=True)}, known)
    assert "nothing constrains the unknown 'k'" in advice(problem)


@pytest.mark.parametrize("method", ["chain", "joint"])
def test_correlations_of_unknowns(method: str) -> None:
    """u' = a - b: only the difference is measured, so the two are almost perfectly correlated."""
    t = np.linspace(0.0, 1.0, 20)
    unknowns = {"a": ff.Unknown(1.0, 1.0, positive=True), "b": ff.Unknown(1.0, 1.0)}
    known = [ff.Initial("u = 0"), ff.Observations(t=t, u=0.5 * t, sigma=0.01)]
    solution = ff.solve(ff.Problem("u_t = a - b", {"t": ff.Interval(0, 1)}, unknowns, known), method=method)
    table = solution.correlation()
    assert table.sel(functional="a", other="a") == pytest.approx(1.0)
    assert float(table.sel(functional="a", other="b")) > 0.8
    assert np.allclose(table, table.T)


# -- ordinary problems that are hard to begin with


def test_a_hot_body_with_cold_walls() -> None:
    """u = 1 at the start, u = 0 at the walls: the corner is said, what follows is right."""
    problem = ff.Problem("u_t = 0.1*u_xx", {**STRIP, "t": ff.Interval(0, 1)}, {}, [ff.Initial("u = 1"), *ENDS])
    with pytest.warns(ff.AdviceWarning, match="disagree by 1 where they meet"):
        solution = ff.solve(problem)
    times, k = np.array([0.05, 0.2, 1.0]), np.arange(1.0, 400.0, 2.0)[:, None, None]
    exact = np.sum(4 / (np.pi * k) * np.sin(np.pi * k * GRID) * np.exp(-0.1 * (np.pi * k) ** 2 * times[:, None]), 0)
    found = solution.predict(x=GRID, t=times)
    error = np.abs(found["mean"].transpose("t", "x").values - exact)
    assert np.all(error < 1e-4 / times[:, None])  # what the corner leaves behind fades like 1/t
    assert np.all(error < 2.0 * found["std"]) and np.all(found["std"] < 5e-3 / times[:, None])


@pytest.mark.parametrize("seed", [3, 4])
def test_an_epidemic_from_one_infected(seed: int) -> None:
    """Filtered window by window the rates get lost; they are found by profiles, as least squares finds them."""
    t, people = np.linspace(0.0, 60.0, 41), 763.0

    def infected(beta: float, gamma: float) -> np.ndarray:
        def flow(_: float, y: np.ndarray) -> list[float]:
            return [-beta * y[0] * y[1] / people, beta * y[0] * y[1] / people - gamma * y[1]]

        return solve_ivp(flow, (0, 60), [people - 1, 1.0], rtol=1e-9, atol=1e-9, t_eval=t).y[1]

    noisy = infected(0.4, 0.1) + 7.63 * np.random.default_rng(seed).standard_normal(41)
    problem = ff.Problem(
        ["S_t = -beta*S*I/763", "I_t = beta*S*I/763 - gamma*I"], {"t": ff.Interval(0, 60)},
        {"beta": ff.Unknown(0.5, 0.5, positive=True), "gamma": ff.Unknown(0.2, 0.2, positive=True)},
        [ff.Initial("S = 762"), ff.Initial("I = 1"), ff.Observations(t=t, I=noisy, sigma=7.63)],
    )  # fmt: skip
    solution = ff.solve(problem)
    fit = least_squares(lambda p: (infected(*p) - noisy) / 7.63, [0.4, 0.1], diff_step=1e-4)
    std = np.sqrt(np.diag(np.linalg.inv(fit.jac.T @ fit.jac)))
    assert solution.status == "converged"
    for name, mean, sd in zip(("beta", "gamma"), fit.x, std, strict=True):
        assert abs(solution.parameters[name]["mean"] - mean) < 0.1 * sd
        assert solution.parameters[name]["std"] == pytest.approx(sd, rel=0.1)


@pytest.mark.parametrize("width", [0.05, 0.005, 0.0005])
def test_a_narrow_source_gets_the_modes_it_needs(width: float) -> None:
    """The strength of a source that 16 polynomials cannot hold, against integrals of it; silence would mean q = 0.

    The data are linear in q, so that its exact posterior is known. The narrowest source is represented to 0.6 %.
    """
    grid = np.linspace(0.0, 1.0, 20001)
    source = 10.0 * np.exp(-((grid - 0.6) ** 2) / width)
    slope = integrate.cumulative_trapezoid(source, grid, initial=0.0)
    once = integrate.cumulative_trapezoid(slope, grid, initial=0.0)
    exact = grid * once[-1] - once
    x, sigma = np.linspace(0.02, 0.98, 20), 0.02 * exact.max()
    clean = np.interp(x, grid, exact)
    y = clean + sigma * np.random.default_rng(0).standard_normal(20)
    seen = ff.Observations(x=x, u=y, sigma=sigma)
    found = ff.solve(ff.Problem(f"u_xx = -q*exp(-(x-0.6)**2/{width})", LINE, {"q": ff.Unknown(10, 10)}, [*ENDS, seen]))
    precision = np.sum((clean / 10.0) ** 2) / sigma**2 + 10.0**-2
    mean = (np.sum(clean / 10.0 * y) / sigma**2 + 10.0 / 10.0**2) / precision
    assert found.parameters["q"]["mean"] == pytest.approx(mean, rel=0.01)
    assert found.parameters["q"]["std"] == pytest.approx(precision**-0.5, rel=0.02)


@pytest.mark.parametrize("thickness", [1e-2, 1e-4])
def test_a_boundary_layer_gets_the_modes_it_needs(thickness: float) -> None:
    solution = ff.solve(ff.Problem(f"-{thickness}*u_xx + u = 1", LINE, {}, ENDS))
    x, width = np.linspace(0.0, 1.0, 301), np.sqrt(thickness)
    exact = 1.0 - np.cosh((x - 0.5) / width) / np.cosh(0.5 / width)
    assert float(np.abs(solution.predict(x=x)["mean"] - exact).max()) < 1e-5


def test_modes_are_an_option_of_every_method() -> None:
    problem = ff.Problem("u_xx = -1", LINE, {}, ENDS)
    assert ff.solve(problem, modes={"x": 5}).settings["modes"] == {"x": 5}
    assert ff.solve(problem, "laplace", modes={"x": 6}).settings["modes"] == {"x": 6}
    with pytest.raises(ff.ProblemError, match="a problem, not a model, with modes"):
        ff.solve(ff.default_model(problem), modes={"x": 5})


@pytest.mark.filterwarnings("ignore:values are missed:factorfield.AdviceWarning")
def test_an_unknown_far_from_its_prior_is_told() -> None:
    x = np.linspace(0.1, 0.9, 20)
    seen = ff.Observations(x=x, u=5.0 * x * (1 - x), sigma=0.01)
    with pytest.warns(ff.AdviceWarning, match="the unknown 'k' lies 9 standard deviations from the mean of its prior"):
        ff.solve(ff.Problem("u_xx = -k", LINE, {"k": ff.Unknown(1, 1)}, [*ENDS, seen]))


def test_no_draws_are_refused() -> None:
    with pytest.raises(ff.ProblemError, match="1 or more, received 0"):
        ff.solve(ff.Problem("u_xx = 1", LINE, {}, ENDS)).sample(0, x=[0.5])
