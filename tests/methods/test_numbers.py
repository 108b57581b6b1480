"""Unknown numbers on the marginal likelihood, in chain and joint: evidence, rewriting, and the posterior with them."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.methods.chain.evidence import LinearWindows
from factorfield.methods.chain.solver import WindowSolver
from factorfield.methods.joint.searched import GivenNumbers
from factorfield.model.factors import whitened_rows
from factorfield.model.model import BlockModel, WindowModel

pytestmark = pytest.mark.filterwarnings("ignore::factorfield.errors.AdviceWarning")  # few modes, loose starts: meant
UNKNOWN = ff.Unknown(0.02, 0.02, positive=True)
TRUTH, NOISE = 0.012, 0.1
GRID = {"x": np.linspace(0.0, 0.9, 5), "t": np.array([0.1, 0.4, 0.9])}


def ring(
    equation: Any = "u_t = D*u_xx", scale: float = 1.0, offset: float = 0.0, late: float = 0.0, flip: bool = False,
    start: tuple[Any, ...] = (), pace: float = 1.0,
) -> ff.Problem:  # fmt: skip
    """Heat on a ring, 40 sensors without a start: in other units, moved, later, flipped, or in other words."""
    rng, w = np.random.default_rng(5), 2 * np.pi
    x, t = rng.uniform(0, 1, (2, 40))
    u = np.exp(-TRUTH * w * w * t) * np.cos(w * x) + 0.5 * np.exp(-4 * TRUTH * w * w * t) * np.sin(2 * w * x)
    y = scale * (u + NOISE * rng.standard_normal(40)) + offset
    seen = ff.Observations(x=1.0 - x if flip else x, t=pace * t + late, u=y, sigma=scale * NOISE)
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(late, pace + late)}
    unknown = ff.Unknown(UNKNOWN.mean / pace, UNKNOWN.std / pace, positive=True)
    return ff.Problem(equation, domain, {"D": unknown}, [*start, seen])


@cache
def solved() -> ff.Solution:
    return ff.solve(ring(), modes={"x": 5})


def log_mean(solution: ff.Solution) -> tuple[float, float]:
    """Mean and sd of log D, without the numerical error."""
    found = solution.posterior.exact.parameters()["D"]
    mean, std = found["mean"], found["std"]
    spread = math.log1p((std / mean) ** 2)
    return math.log(mean) - 0.5 * spread, math.sqrt(spread)


# -- evidence


def dense_chain(model: WindowModel) -> float:
    """log Z with measurements less log Z without: one matrix of all windows, weights as far as their priors let them.

    Windows are linked by the end of one being the start of the next, which is told with a sigma of 1e-7.
    """
    solver = WindowSolver(model, 1)
    edges = list(zip(model.edges or (), (model.edges or ())[1:], strict=False))
    size, prior = len(solver.order), solver.model.prior_state

    def level(measured: bool) -> float:
        rows, gaps, logs = [], [], 0.0
        for index, (lower, upper) in enumerate(edges):
            own = solver.factors.own(lower, upper, index == 0)
            own = [
                *solver.factors.standing(lower, upper),
                *(g for g in own if measured or g.statement.kind != "observation"),
            ]
            part, target = whitened_rows(own, np.zeros(size))
            wide = np.zeros((len(part), size * len(edges)))
            wide[:, index * size : (index + 1) * size] = part
            rows.append(wide)
            gaps.append(target)
            logs += sum(
                float(np.sum(np.log(g.sigma))) + 0.5 * g.count * np.log(2 * np.pi)
                for g in own
                if g.statement.kind == "observation"
            )
            inside = np.zeros((len(solver.inner), size * len(edges)))
            inside[np.arange(len(solver.inner)), index * size + solver.inner] = 1.0 / solver.inner_std
            rows.append(inside)
            gaps.append(np.zeros(len(inside)))
            link = np.zeros((len(solver.state), size * len(edges)))
            link[np.arange(len(solver.state)), index * size + solver.state] = 1.0
            if index:
                before = edges[index - 1]
                link[:, (index - 1) * size : index * size] = -solver.factors.end_map(*before)
                rows.append(1e7 * link)
                gaps.append(np.zeros(len(link)))
            else:
                rows.append(link / prior.std[:, None])
                gaps.append(prior.mean / prior.std)
        upper_triangle = np.linalg.qr(np.column_stack([np.concatenate(rows), np.concatenate(gaps)]), mode="r")
        return float(-np.sum(np.log(np.abs(np.diag(upper_triangle)[:-1]))) - 0.5 * upper_triangle[-1, -1] ** 2 - logs)

    return level(True) - level(False)


@pytest.mark.parametrize("sigma", [None, 0.05])
@pytest.mark.parametrize("text", ["u_t = D*u_xx", "u_tt = D*u_xx - u_t", "u_t = D*u_xx + t*cos(2*pi*x)"])
def test_the_evidence_of_a_chain_at_given_numbers_is_that_of_dense_algebra(text: str, sigma: float | None) -> None:
    """By the operator of first-order equations, and by eliminating windows of others."""
    problem = ring(ff.Equation(text, sigma=sigma) if sigma else text)
    model = ff.default_model(problem, method="chain", modes={"x": 3}, degree=8, windows=[0.0, 0.3, 1.0])
    assert isinstance(model, WindowModel)
    for place in (-0.6, 0.8):
        position = np.array([place, 0.2, -0.3])
        found = LinearWindows(model).evidence(position)
        assert found == pytest.approx(dense_chain(model.at(position)), abs=1e-6)


def test_the_means_of_windows_are_those_of_the_solved_path() -> None:
    """Where the equation has noise of its own, the measurements move inner weights beside the state."""
    problem = ring(ff.Equation("u_t = D*u_xx", sigma=0.5))
    solution = ff.solve(problem, modes={"x": 3}, windows=[0.0, 0.3, 1.0])
    model, chain = solution.model, solution.posterior
    assert isinstance(model, WindowModel) and chain.numbers is not None  # type: ignore[attr-defined]
    coordinates = model.coordinates
    found = LinearWindows(model)
    name = coordinates[0]
    z = (chain.numbers.mean[0] - name.mean) / name.std  # type: ignore[attr-defined]
    assert found.means(np.array([z, 0.0, 0.0])).shape == (2, model.size)
    left, right = (chain.window(index).predict({"t": [0.3], "x": GRID["x"]}) for index in (0, 1))  # type: ignore[attr-defined]
    assert_allclose(left["mean"], right["mean"], atol=1e-8)
    assert_allclose(left["std"], right["std"], rtol=1e-5)


@pytest.mark.parametrize("equation", ["u_t = D*u_xx", "u_t = 0.02*u_xx + D*sin(2*pi*x)"])
def test_the_evidence_of_joint_at_given_numbers_is_that_of_dense_algebra(equation: str) -> None:
    """In the second equation D may have a Gaussian prior: all factors are linear in it, and eliminated once."""
    start = ff.Initial("u = cos(2*pi*x)", sigma=0.5)
    problem = ring(ff.Equation(equation, sigma=0.1), start=(start,))
    if "sin" in equation:
        problem = problem.replace(parameters={"D": ff.Unknown(0.0, 1.0)})
    model = ff.default_model(problem, method="joint", modes={"x": 2, "t": 5})
    assert isinstance(model, BlockModel) and model.is_linear == ("sin" in equation)
    known = GivenNumbers(model)
    at = model.representation.latents["D"].block.start
    others = np.setdiff1d(np.arange(model.size), [at])

    def level(groups: Any, latent: float) -> float:
        place = model.prior.mean.copy()
        place[at] = latent
        parts = [group.linear_misfit(place) for group in groups]
        rows, gap = np.concatenate([r[:, others] for _, r in parts]), np.concatenate([m for m, _ in parts])
        spread = np.eye(len(gap)) + (rows * model.prior.variance[others]) @ rows.T
        logs = sum(float(np.sum(np.log(group.sigma))) for group in groups) + 0.5 * len(gap) * np.log(2 * np.pi)
        return -0.5 * float(np.linalg.slogdet(spread)[1] + gap @ np.linalg.solve(spread, gap)) - logs

    without = [group for group in model.groups if group.statement.kind != "observation"]
    for latent in (math.log(0.01), math.log(0.03)):
        exact = level(model.groups, latent) - level(without, latent)
        assert known.evidence({"D": latent}) == pytest.approx(exact, abs=1e-6)


@pytest.mark.parametrize("method", ["chain", "joint"])
def test_one_number_is_integrated_out_as_by_fine_quadrature(method: str) -> None:
    """Evidence, mean and sd of log D."""
    problem = ring(start=(ff.Initial("u = cos(2*pi*x) + 0.5*sin(4*pi*x)", sigma=0.02),))
    options: dict[str, Any] = {"modes": {"x": 3}} if method == "chain" else {"modes": {"x": 3, "t": 10}}
    solution = ff.solve(problem, method, **options)
    model = solution.model
    centre, sd = log_mean(solution)
    logs = centre + sd * np.linspace(-6.0, 6.0, 41)
    prior_mean, prior_variance = problem.unknowns["D"].latent_moments
    if isinstance(model, WindowModel):
        windows = LinearWindows(model)
        levels = [windows.evidence(np.array([(each - prior_mean) / math.sqrt(prior_variance)])) for each in logs]
    else:
        assert isinstance(model, BlockModel)
        levels = [GivenNumbers(model).evidence({"D": each}) for each in logs]
    prior = -0.5 * (logs - prior_mean) ** 2 / prior_variance - 0.5 * math.log(2 * math.pi * prior_variance)
    values = np.exp(np.array(levels) + prior - max(levels))
    total = np.trapezoid(values, logs)
    mean = np.trapezoid(logs * values, logs) / total
    spread = math.sqrt(np.trapezoid((logs - mean) ** 2 * values, logs) / total)
    assert solution.log_evidence == pytest.approx(max(levels) + math.log(total), abs=0.02)
    assert abs(centre - mean) < 0.03 * spread and sd == pytest.approx(spread, rel=0.03)


def test_joint_and_chain_agree_about_a_number_where_both_resolve_the_field() -> None:
    start = ff.Initial("u = cos(2*pi*x) + 0.5*sin(4*pi*x)", sigma=1e-3)
    chain = ff.solve(ring(start=(start,)), modes={"x": 2})
    tight = ring(ff.Equation("u_t = D*u_xx", sigma=1e-4), start=(start,))
    joint = ff.solve(tight, "joint", modes={"x": 2, "t": 14})
    assert joint.log_evidence == pytest.approx(chain.log_evidence, abs=0.02)
    (one, sd), (other, theirs) = log_mean(chain), log_mean(joint)
    assert abs(one - other) < 0.02 * sd and theirs == pytest.approx(sd, rel=0.02)


# -- the same problem in other words


@pytest.mark.parametrize(
    ("text", "options", "nats"),
    [
        ("10*u_t = 10*D*u_xx", {}, 0.02),
        ("u_t/D = u_xx", {}, 0.02),
        ("u_t = D*u_xx", {"degree": 14}, 0.02),
        ("u_t = D*u_xx", {"modes": {"x": 8}}, 0.1),
    ],
    ids=["times ten", "divided by the unknown", "more points in time", "more modes"],
)
def test_rewriting_moves_neither_the_number_nor_the_evidence(text: str, options: dict[str, Any], nats: float) -> None:
    plain, other = solved(), ff.solve(ring(text), **{"modes": {"x": 5}, **options})
    (mean, sd), (moved, _) = log_mean(plain), log_mean(other)
    assert abs(moved - mean) < 0.02 * sd
    assert other.log_evidence == pytest.approx(plain.log_evidence, abs=nats)


@pytest.mark.parametrize(
    ("change", "pace"),
    [
        ({"offset": 290.0}, 1.0),
        ({"scale": 1e4}, 1.0),
        ({"flip": True}, 1.0),
        ({"late": 50.0}, 1.0),
        ({"pace": 3600.0}, 3600.0),
    ],
    ids=["offset", "units of the field", "flipped", "later", "units of time"],
)
def test_units_origin_and_direction_do_not_move_the_number(change: dict[str, Any], pace: float) -> None:
    (mean, sd), (moved, theirs) = log_mean(solved()), log_mean(ff.solve(ring(**change), modes={"x": 5}))
    assert abs(moved + math.log(pace) - mean) < 0.01 * sd and theirs == pytest.approx(sd, rel=0.01)


# -- the posterior with numbers


def test_the_fields_std_includes_the_coefficients() -> None:
    """By Gauss-Hermite nodes of the marginal of log D: at each, the field by a solve with the number known."""
    problem = ring(start=(ff.Initial("u = cos(2*pi*x) + 0.5*sin(4*pi*x)", sigma=0.02),))
    solution = ff.solve(problem, modes={"x": 3})
    model = solution.model
    assert isinstance(model, WindowModel)
    mean, sd = log_mean(solution)
    nodes, weights = np.polynomial.hermite_e.hermegauss(5)
    weights = weights / weights.sum()
    fields = [
        ff.solve(
            problem.replace(parameters={"D": math.exp(mean + sd * node)}),
            modes={"x": 3},
            windows=list(model.edges or ()),
        ).predict(**GRID, numerical=False)
        for node in nodes
    ]
    means = np.stack([field["mean"] for field in fields])
    centre = np.tensordot(weights, means, 1)
    own = np.tensordot(weights, np.stack([field["std"] ** 2 for field in fields]), 1)
    share = np.tensordot(weights, (means - centre) ** 2, 1)
    field = solution.predict(**GRID, numerical=False)
    assert_allclose(field["std"], np.sqrt(own + share), rtol=0.03)
    assert float(np.max(share / own)) > 0.1  # or the test would say nothing
    at_mean = fields[2]["mean"]  # the field's mean is that given the numbers at theirs
    assert float(np.max(np.abs(field["mean"] - at_mean) / field["std"])) < 0.02


def test_products_of_number_and_field_and_draws_have_the_posteriors_moments() -> None:
    solution = solved()
    assert np.all(np.isfinite(solution.predict(of="D*u_xx", **GRID)["std"]))
    rate, flux = solution.predict(of="u_t", **GRID), solution.predict(of="D*u_xx", **GRID)
    assert float(np.max(np.abs(rate["mean"] - flux["mean"]) / rate["std"])) < 0.2
    plain = replace(solution.posterior, tails={})  # type: ignore[type-var]
    draws = plain.sample(2000, seed=0, **GRID)
    field = plain.predict(GRID)
    assert float((np.abs(draws.mean("sample") - field["mean"]) / field["std"]).max()) < 5 / 45
    assert_allclose(draws.std("sample"), field["std"], rtol=0.08)
    # field and number go together: the spread of a sum holds their covariance
    both, alone = (plain.predict(GRID, of=of)["std"] for of in ("u + 20*D", "20*D"))
    together = plain.sample(2000, seed=0, of="u + 20*D", **GRID)
    assert_allclose(together.std("sample"), both, rtol=0.1)
    apart = np.sqrt(field["std"] ** 2 + alone**2)
    assert float(np.max(np.abs(both / apart - 1.0))) > 0.15  # or the sum would not tell


def test_a_file_keeps_every_bit_of_numbers_and_field(tmp_path: Path) -> None:
    solution = solved()
    again = ff.load(solution.save(tmp_path / "run.nc"))
    assert again.parameters == solution.parameters
    for of in ("u", "D*u_xx"):
        ours, theirs = solution.predict(of=of, **GRID), again.predict(of=of, **GRID)
        assert np.array_equal(ours["mean"], theirs["mean"]) and np.array_equal(ours["std"], theirs["std"])
    assert np.array_equal(solution.posterior.sample(3, seed=1, **GRID), again.posterior.sample(3, seed=1, **GRID))


def test_the_last_model_gives_the_same_bits() -> None:
    solution = solved()
    assert solution.model is not None
    again = ff.solve(solution.model, adapt=False)
    assert again.parameters == solution.parameters and again.log_evidence == solution.log_evidence
    assert np.array_equal(again.predict(**GRID)["mean"], solution.predict(**GRID)["mean"])
    assert np.array_equal(again.predict(**GRID)["std"], solution.predict(**GRID)["std"])


def test_conditioning_is_a_fresh_solve_of_the_same_model() -> None:
    rng, w = np.random.default_rng(6), 2 * np.pi
    x, t = rng.uniform(0, 1, (2, 15))
    u = np.exp(-TRUTH * w * w * t) * np.cos(w * x) + 0.5 * np.exp(-4 * TRUTH * w * w * t) * np.sin(2 * w * x)
    step = solved().condition(ff.Observations(x=x, t=t, u=u + NOISE * rng.standard_normal(15), sigma=NOISE))
    assert isinstance(step.model, WindowModel)
    fresh = ff.solve(replace(step.model, start={}), adapt=False)
    (mean, sd), (other, theirs) = log_mean(step), log_mean(fresh)
    assert abs(mean - other) < 0.01 * sd and theirs == pytest.approx(sd, rel=0.01)
    assert sd < log_mean(solved())[1]
    ours, wanted = step.predict(**GRID), fresh.predict(**GRID)
    assert float((np.abs(ours["mean"] - wanted["mean"]) / wanted["std"]).max()) < 0.01
    assert_allclose(ours["std"], wanted["std"], rtol=0.01)
    assert step.log_evidence == pytest.approx(fresh.log_evidence, abs=0.02)


@pytest.mark.parametrize("method", ["chain", "joint", "tree"])
def test_measurements_that_are_missed_lead_to_a_higher_maximum(method: str) -> None:
    """Speed and frequency have many maxima: from the best of a few first places the search ends 60 std off in chain."""
    rng = np.random.default_rng(13)
    if method == "chain":
        x, t = rng.uniform(0, 1, 50), rng.uniform(0, 1, 50)
        u = np.sin(2 * np.pi * (x - 0.7 * t)) + 0.02 * rng.standard_normal(50)
        domain: dict[str, Any] = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
        seen, truth = ff.Observations(x=x, t=t, u=u, sigma=0.02), 0.7
        problem = ff.Problem("u_t + c*u_x = 0", domain, {"c": ff.Unknown(0.5, 0.3)}, [seen])
    else:
        x = np.sort(np.random.default_rng(0).uniform(0, 10, 40))
        seen, truth = ff.Observations(x=x, u=np.sin(3 * x + 0.3) + 0.1 * rng.standard_normal(40), sigma=0.1), 9.0
        unknown = {"c": ff.Unknown(4.0, 4.0, positive=True)}
        problem = ff.Problem("u_xx + c*u = 0", {"x": ff.Interval(0, 10)}, unknown, [seen])
    solution = ff.solve(problem, method=method, **({"cells": {"x": 256}} if method == "tree" else {}))
    found = solution.parameters["c"]
    assert abs(found["mean"] - truth) < 3.0 * found["std"]
    assert found["std"] < 0.1 * truth
