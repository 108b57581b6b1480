"""More measurements and a later end: by condition, extend and update as by solving with everything at once."""

from __future__ import annotations

import numpy as np
import pytest

import factorfield as ff

AT = {"x": np.linspace(0.0, 0.9, 5), "t": np.array([0.0, 0.1, 0.25, 0.4, 0.5, 0.62, 0.8])}
RNG = np.random.default_rng(2)
X, T = RNG.uniform(0.0, 1.0, 24), np.sort(RNG.uniform(0.02, 0.8, 24))
U = np.sin(2.0 * np.pi * X) * np.exp(-T) + 0.3 * T + 0.05 * RNG.standard_normal(24)
MIDDLE, END = 0.4, 0.8


def observed(chosen: np.ndarray) -> ff.Observations:
    return ff.Observations(x=X[chosen], t=T[chosen], u=U[chosen], sigma=0.05)


def ring(end: float, *seen: ff.Observations, equation: str = "u_t = 0.05*u_xx - 0.3*u_x + q") -> ff.Problem:
    """Linear, with a function of time and an unknown start."""
    unknowns = {"q": ff.Unknown(0.2, 0.5, over="t", length=0.3)}
    if "k" in equation:
        unknowns["k"] = ff.Unknown(0.05, 0.02, positive=True)
    return ff.Problem(
        equation, {"x": ff.Periodic(0, 1), "t": ff.Interval(0, end)}, unknowns,
        [ff.Initial("u = sin(2*pi*x)", sigma=0.4, length=0.4), *seen],
    )  # fmt: skip


def solved(problem: ff.Problem) -> ff.Solution:
    return ff.solve(problem, method="forward", tolerance=1e-9)


@pytest.fixture(scope="module")
def batch() -> ff.Solution:
    return solved(ring(END, observed(T <= MIDDLE), observed(T > MIDDLE)))


def check_same(solution: ff.Solution, batch: ff.Solution, of_std: float) -> None:
    """Means, stds and covariances as shares of a std."""
    for of, at in (("u", AT), ("q", {"t": AT["t"]}), ("u_x", AT)):
        one, other = (s.predict(of=of, numerical=False, **at) for s in (solution, batch))
        std = other["std"].values
        assert np.max(np.abs(one["mean"].values - other["mean"].values) / std) < of_std, of
        assert np.max(np.abs(one["std"].values / std - 1.0)) < of_std, of
    places = {"x": [0.1, 0.5, 0.9, 0.3], "t": [0.0, 0.3, 0.6, 0.8]}
    covariances = [s.covariance(points=True, numerical=False, **places).values for s in (solution, batch)]
    scale = np.sqrt(np.diag(covariances[1]))
    assert np.max(np.abs(covariances[0] - covariances[1]) / np.outer(scale, scale)) < of_std


def test_conditioning_is_solving_at_once(batch: ff.Solution) -> None:
    solution = solved(ring(END, observed(T <= MIDDLE))).condition(observed(T > MIDDLE))
    check_same(solution, batch, 1e-6)
    assert solution.log_evidence == pytest.approx(batch.log_evidence, abs=1e-6)


def test_extending_and_conditioning_is_solving_at_once(batch: ff.Solution) -> None:
    first = solved(ring(MIDDLE, observed(T <= MIDDLE)))
    solution = first.extend(END).condition(observed(T > MIDDLE))
    check_same(solution, batch, 1e-6)
    assert solution.log_evidence == pytest.approx(batch.log_evidence, abs=1e-6)


def test_an_update_is_solving_at_once_and_smooths_the_past(batch: ff.Solution) -> None:
    first = solved(ring(MIDDLE, observed(T <= MIDDLE)))
    solution = first.update(observed(T > MIDDLE), until=END)
    check_same(solution, batch, 1e-6)
    assert solution.log_evidence == pytest.approx(batch.log_evidence, abs=1e-6)


def test_three_updates_are_solving_at_once(batch: ff.Solution) -> None:
    solution = solved(ring(0.2, observed(T <= 0.2)))
    for begin, end in ((0.2, 0.4), (0.4, 0.6), (0.6, 0.8)):
        solution = solution.update(observed((begin < T) & (end >= T)), until=end)
    check_same(solution, batch, 1e-5)
    assert solution.log_evidence == pytest.approx(batch.log_evidence, abs=1e-5)


def test_draws_of_several_segments_go_together(batch: ff.Solution) -> None:
    """The covariance of draws on both sides of an update is the one that is computed."""
    solution = solved(ring(MIDDLE, observed(T <= MIDDLE))).update(observed(T > MIDDLE), until=END)
    places = {"x": [0.3], "t": [0.37, 0.43]}
    draws = solution.sample(4000, **places).transpose("sample", "t", "x").values[:, :, 0]
    expected = batch.covariance(x=[0.3, 0.3], t=[0.37, 0.43], points=True).values
    std = np.sqrt(np.diag(expected))
    error = (np.cov(draws.T) - expected) / np.outer(std, std)
    assert np.max(np.abs(error)) < 4.0 * np.sqrt(2.0 / 4000)
    assert abs(expected[0, 1]) > 0.05 * std[0] * std[1]


def test_an_unknown_rate_is_updated_to_nearly_what_everything_says() -> None:
    """Not linear: the past is linearised where it was when its readings came."""
    equation = "u_t = k*u_xx - u*u_x + q"
    known = ring(END, equation=equation).replace(parameters={"k": 0.05, "q": 0.2})
    truth = ff.solve(known.replace(conditions=[ff.Initial("u = sin(2*pi*x)")]), method="forward")
    u = truth.predict(x=X, t=T, points=True)["mean"].values + 0.05 * np.random.default_rng(1).standard_normal(24)
    early, late = (ff.Observations(x=X[c], t=T[c], u=u[c], sigma=0.05) for c in (T <= MIDDLE, T > MIDDLE))

    def coarsely(problem: ff.Problem) -> ff.Solution:
        return ff.solve(problem, method="forward", tolerance=1e-6)

    batch, first = coarsely(ring(END, early, late, equation=equation)), coarsely(ring(MIDDLE, early, equation=equation))
    for solution, near in ((first.extend(END).condition(late), 1e-3), (first.update(late, until=END), 0.25)):
        one, other = solution.parameters["k"], batch.parameters["k"]
        assert abs(one["mean"] - other["mean"]) < near * other["std"]
        assert one["std"] == pytest.approx(other["std"], rel=near)


def test_measurements_of_the_past_are_refused_after_an_update() -> None:
    solution = solved(ring(MIDDLE, observed(T <= MIDDLE))).update(observed(T > MIDDLE), until=END)
    with pytest.raises(ff.ProblemError, match="before the last update") as error:
        solution.condition(observed(T < 0.2))
    assert "\n" not in str(error.value)
