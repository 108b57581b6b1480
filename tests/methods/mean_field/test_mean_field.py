"""The paper's message passing: every message against a slow reference, fixed points against exact answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.methods.mean_field.kernel import GENERAL, LINEAR, SEMILINEAR, activation_moments
from factorfield.methods.mean_field.layout import lay_out
from factorfield.methods.mean_field.mean_field import MeanField, Messages
from factorfield.model.linearisation import linearise
from reference import isolated_messages, semilinear_mean, semilinear_slopes, textbook_posterior

G = ff.PiecewiseExponential()
SMALL = {"x": 2, "t": 2}


def fisher(**options: Any) -> ff.Model:
    return ff.paper_model(ff.problems.get("fisher-kpp", nu=0.05, rho=2.0, labels=32), modes=SMALL, **options)


def advection(width: int = 1, **options: Any) -> ff.Model:
    return ff.paper_model(ff.problems.get("advection", b=0.4, labels=32), width, modes=SMALL, **options)


def burgers(activation: Any) -> ff.Model:
    problem = ff.Problem(
        "u_t + u*u_x = nu*u_xx + x*u",
        {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 0.5)},
        {"nu": 0.05},
        [ff.Observations(x=np.arange(8) / 8, t=0.0, u=np.sin(np.arange(8)), sigma=0.1)],
    )
    return ff.default_model(problem, modes=SMALL, activation=activation)


def random_messages(model: ff.Model, layout: Any, seed: int) -> Messages:
    """Beliefs and messages as they might be in the middle of a run; beliefs stay proper when a message is removed."""
    rng = np.random.default_rng(seed)
    messages = Messages.start(model, layout)
    messages.own_precision[:] = rng.random(layout.message_size)
    messages.own_shift[:] = rng.standard_normal(layout.message_size)
    messages.precision[:] = 2.0 + 3.0 * rng.random(model.size)
    messages.shift[:] = 3.0 * rng.standard_normal(model.size)
    messages.variance[:] = 1.0 / messages.precision
    messages.mean[:] = messages.shift * messages.variance
    return messages


def factor_number(layout: Any, equation: bool) -> int:
    return int(layout.factors(equation)[3])


def one_visit(model: ff.Model, equation: bool, belief: bool, kinks: bool, floor: float = 0.0) -> dict[str, np.ndarray]:
    """Visit one factor; return its incoming moments, its functionals' rows and the message it sent."""
    layout = lay_out(model, belief, floor)
    messages = random_messages(model, layout, 7)
    f = factor_number(layout, equation)
    own = slice(layout.message_start[f], layout.message_start[f] + model.size)
    before = {name: getattr(messages, name).copy() for name in ("precision", "shift", "mean", "variance")}
    old = messages.own_precision[own].copy(), messages.own_shift[own].copy()
    kl, rejected = layout.sweep(np.array([f]), messages.arrays, kinks, 0.0)
    assert rejected == 0
    cavity_precision, cavity_shift = before["precision"] - old[0], before["shift"] - old[1]
    moments = (
        (before["mean"], before["variance"]) if belief else (cavity_shift / cavity_precision, 1 / cavity_precision)
    )
    g = layout.group_of[f]
    group, n = model.groups[g], f - int(np.flatnonzero(layout.group_of == g)[0])
    # what every visit must leave behind: belief = cavity x message, and the largest KL(old || new)
    sent = messages.own_precision[own].copy(), messages.own_shift[own].copy()
    assert_allclose(messages.precision, cavity_precision + sent[0], rtol=1e-12)
    assert_allclose(messages.shift, cavity_shift + sent[1], rtol=1e-12, atol=1e-12)
    assert_allclose(messages.mean, messages.shift / messages.precision, rtol=1e-12)
    ratio, moved = messages.precision / before["precision"], messages.mean - before["shift"] / before["precision"]
    exact = 0.5 * (ratio - 1.0 - np.log(ratio) + messages.precision * moved**2)
    assert kl == pytest.approx(float(exact.max()), rel=1e-9)
    return {"m": moments[0], "v": moments[1], "precision": sent[0], "shift": sent[1], "group": group, "n": n}  # type: ignore[dict-item]


def rows_of(visit: dict[str, Any], size: int) -> np.ndarray:
    group, n = visit["group"], visit["n"]
    rows = np.zeros((len(group.rows), size))
    for j, block in enumerate(group.blocks):
        rows[j, block] = group.dense_rows(j)[n]
    return rows


@pytest.mark.parametrize("belief", [False, True])
@pytest.mark.parametrize("kinks", [False, True])
@pytest.mark.parametrize("case", ["data", "advection", "fisher", "fisher without curvature"])
def test_semilinear_messages_equal_loops_and_quadrature(case: str, kinks: bool, belief: bool) -> None:
    model = advection() if case in ("data", "advection") else fisher(curvature=case == "fisher")
    equation = case != "data"
    visit = one_visit(model, equation, belief and equation, kinks)
    group, n, m, v = visit["group"], visit["n"], visit["m"], visit["v"]
    rows = rows_of(visit, model.size)
    mean, covariance = rows @ m, (rows * v) @ rows.T
    coefficients = {
        "data": {"p1": 1.0},
        "advection": {"c1": 1.0},
        "fisher": {"c1": 1.0, "c2": -0.05, "p1": -2.0, "p2": 2.0},
        "fisher without curvature": {"c1": 1.0, "p1": -2.0, "p2": 2.0},
    }[case]

    expected_value = semilinear_mean(G, coefficients, mean, covariance, kinks)
    slopes = semilinear_slopes(G, coefficients, mean, covariance, kinks)
    noise = float(group.sigma[n]) ** 2
    if case == "data":
        _, slope, excess = G.linearise(mean[0], covariance[0, 0])
        assert slopes[0] == pytest.approx(float(slope), rel=1e-6)
        noise += float(excess)
    precision, shift = isolated_messages(slopes @ rows, m, v, float(group.target[n]), expected_value, noise)
    scale = np.abs(precision).max(), np.abs(shift).max()
    assert_allclose(visit["precision"], precision, rtol=1e-5, atol=1e-6 * scale[0])
    assert_allclose(visit["shift"], shift, rtol=1e-5, atol=1e-6 * scale[1])


@pytest.mark.parametrize("activation", [ff.Identity(), G])
def test_messages_of_any_other_equation_use_the_cubature_moments(activation: Any) -> None:
    model = burgers(activation)
    layout = lay_out(model, False, 0.0)
    assert [form.kind for form in layout.forms] == [GENERAL, LINEAR if activation == ff.Identity() else SEMILINEAR]
    visit = one_visit(model, True, False, True)
    group, n, m, v = visit["group"], visit["n"], visit["m"], visit["v"]
    rows = rows_of(visit, model.size)
    mean, covariance = (rows @ m)[None], ((rows * v) @ rows.T)[None]
    points = {name: x[n : n + 1] for name, x in group.points.items()}
    line = linearise(group.relation, mean, covariance, group.parameters, points)
    noise = float(group.sigma[n] ** 2 + line.excess[0])
    precision, shift = isolated_messages(
        line.slopes[0] @ rows, m, v, float(group.target[n]), float(line.value[0]), noise
    )
    # the two cubatures use different roots of the covariance: equal for polynomials, close for the bent field
    tolerance = 1e-8 if activation == ff.Identity() else 0.05
    assert_allclose(visit["precision"], precision, rtol=tolerance, atol=tolerance * precision.max())
    assert_allclose(visit["shift"], shift, rtol=tolerance, atol=tolerance * np.abs(shift).max())


@pytest.mark.parametrize(("mean", "variance"), [(0.4, 0.3), (-2.0, 1.5), (0.01, 1e-3), (15.0, 4.0)])
def test_kernel_moments_equal_the_library_and_their_own_derivatives(mean: float, variance: float) -> None:
    out = np.empty(8)
    activation_moments(mean, variance, G.alpha, G.beta, True, out)
    first, spread = G.moments(mean, variance)
    exact = [first, spread, G.cross_moment(mean, variance)]
    exact += [G.covariance(mean, variance, k) / variance for k in range(2)]
    assert_allclose(out[:5], [float(x) for x in exact], rtol=1e-9, atol=1e-13)
    step = 1e-4 * np.sqrt(variance)
    up, down = np.empty(8), np.empty(8)
    activation_moments(mean + step, variance, G.alpha, G.beta, True, up)
    activation_moments(mean - step, variance, G.alpha, G.beta, True, down)
    for k in range(3, 7):  # S_{k+1} = dS_k/dm, jumps included
        assert out[k + 1] == pytest.approx((up[k] - down[k]) / (2 * step), rel=1e-5, abs=1e-9)


def test_small_coefficients_are_floored_only_where_asked() -> None:
    model = advection()
    visit = one_visit(model, True, True, False, floor=10.0)  # far above every coefficient
    weight = 1.0 / (float(visit["group"].sigma[visit["n"]]) ** 2 + np.sum(100.0 * visit["v"]) - 100.0 * visit["v"])
    assert_allclose(visit["precision"], 100.0 * weight, rtol=1e-10)


# -- fixed points


def test_cavity_messages_reach_the_exact_means_of_a_linear_problem() -> None:
    problem = ff.problems.get("advection", b=0.3, labels=16, noise=0.1)
    model = ff.paper_model(
        problem, activation=ff.Identity(), modes={"x": 2, "t": 2}, label_noise=0.3, residual_noise=4.0
    )
    solution = ff.solve(model, method=MeanField(residual_input="cavity", epochs=20_000, tolerance=1e-22))
    mean, covariance = textbook_posterior(model)
    distance = np.abs(solution.posterior.weight_mean - mean) / np.sqrt(np.diag(covariance))
    assert distance.max() < 1e-6


@pytest.mark.parametrize("name", ["advection", "fisher"])
def test_an_idle_second_unit_changes_nothing(name: str) -> None:
    """u = 1 g(z_1) + 0 g(z_2) is the single-unit model, message by message."""
    build = advection if name == "advection" else fisher
    options = {"readout": (1.0, 1e-300), "width": 2}
    method = MeanField(epochs=5, residual_input="cavity", floor=0.0)
    single, double = ff.solve(build(), method=method), ff.solve(build(**options), method=method)
    size = len(single.posterior.weight_mean)
    assert_allclose(double.posterior.weight_mean[:size], single.posterior.weight_mean, atol=1e-12)
    assert_allclose(double.posterior.weight_std[:size], single.posterior.weight_std, atol=1e-12)
    assert_allclose(double.posterior.weight_mean[size:], 0.0, atol=1e-12)


@pytest.mark.parametrize("width", [1, 2, 3, 4])
@pytest.mark.parametrize("name", ["advection", "fisher"])
def test_every_width_runs_in_closed_form_and_lowers_the_misfit(name: str, width: int) -> None:
    model = advection(width) if name == "advection" else fisher(width=width)
    layout = lay_out(model, True, 0.0)
    assert all(form.kind == SEMILINEAR for form in layout.forms)
    solution = ff.solve(model, method=MeanField(epochs=40))
    assert solution.status != "diverged"
    assert model.log_joint(solution.posterior.weight_mean) > model.log_joint(np.zeros(model.size))


@pytest.mark.parametrize("name", ["advection", "fisher"])
def test_wide_messages_are_those_of_monte_carlo_moments(name: str) -> None:
    """H = 2: E[R] and the regression slopes from 400,000 draws of the weights (no g'', whose jump draws cannot see)."""
    model = advection(2) if name == "advection" else fisher(width=2, curvature=False)
    visit = one_visit(model, True, False, True)
    group, n, m, v = visit["group"], visit["n"], visit["m"], visit["v"]
    rows = rows_of(visit, model.size)
    draws = m + np.sqrt(v) * np.random.default_rng(0).standard_normal((400_000, model.size))
    zeta = draws @ rows.T
    points = {name: x[n : n + 1] for name, x in group.points.items()}
    values = group.relation.value(zeta, group.parameters, points)
    slopes = np.linalg.lstsq(zeta - zeta.mean(0), values - values.mean(), rcond=None)[0]
    precision, shift = isolated_messages(slopes @ rows, m, v, 0.0, float(values.mean()), float(group.sigma[n]) ** 2)
    # a slope is known to about 1/sqrt(400,000) of the residual's spread: 0.2 % of the largest coefficient, 5 of that
    assert_allclose(visit["precision"], precision, rtol=0.02, atol=0.01 * precision.max())
    assert_allclose(visit["shift"], shift, rtol=0.02, atol=0.01 * np.abs(shift).max())


# -- runs


def test_one_seed_gives_bit_identical_beliefs_and_another_the_same_field() -> None:
    model = advection()
    first, again, other = (ff.solve(model, method=MeanField(seed=s, epochs=2000, tolerance=1e-9)) for s in (3, 3, 4))
    assert np.array_equal(first.posterior.weight_mean, again.posterior.weight_mean)
    assert np.array_equal(first.posterior.weight_std, again.posterior.weight_std)
    grid = {"x": np.linspace(0, 1, 20), "t": np.linspace(0, 2, 9)}
    a, b = first.predict(**grid), other.predict(**grid)
    assert float((np.abs(a["mean"] - b["mean"]) / a["std"]).max()) < 0.05  # KL 1e-9 leaves some 1e-4 sd per weight
    assert_allclose(a["std"], b["std"], rtol=0.01)


@pytest.mark.parametrize("schedule", ["data", "equation", "data then equation", "mixed"])
def test_schedules_visit_what_they_say(schedule: Any) -> None:
    x = np.arange(32) / 32
    problem = ff.Problem(
        "u_t + b*u_x", {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}, {"b": 0.5},
        [ff.Observations(x=x, t=0.0, u=0.5 * np.sin(2 * np.pi * x))],
    )  # fmt: skip
    model = ff.paper_model(problem, modes={"x": 2, "t": 3})
    solution = ff.solve(model, method=MeanField(schedule=schedule, epochs=60))
    late = solution.predict(x=x, t=[1.0])["mean"][0]
    start = solution.predict(x=x, t=[0.0])["mean"][0]
    assert len(solution.trace["passes"]) == (2 if schedule == "data then equation" else 1)
    if schedule == "data then equation":  # the field is learnt first, and then unlearnt
        assert float(np.abs(start - 0.5 * np.sin(2 * np.pi * x)).max()) > 0.1
    elif schedule == "equation":  # nothing tells the field apart from zero
        assert float(np.abs(start).max()) < 0.02
    else:
        assert float(np.abs(start - 0.5 * np.sin(2 * np.pi * x)).max()) < 0.1
    moved = float(np.abs(late - 0.5 * np.sin(2 * np.pi * (x - 0.5))).max())
    assert (moved < 0.1) == (schedule == "mixed")  # the paper's ablation: only interleaving learns the evolution


def test_continuation_passes_through_four_reactions_and_carries_messages_over() -> None:
    model = fisher()
    assert model.settings["continuation"] == "rho"
    solution = ff.solve(model, method=MeanField(epochs=20))
    assert len(solution.trace["passes"]) == 4 and len(solution.trace["max_kl"]) == sum(solution.trace["passes"])
    # the first pass is a run at a quarter of rho: same epochs, same seed, bit for bit
    first = ff.solve(model.with_parameters(rho=0.5), method=MeanField(epochs=20, continuation=""))
    assert solution.trace["passes"][0] == first.trace["passes"][0]
    assert solution.trace["max_kl"][: first.trace["passes"][0]] == first.trace["max_kl"]
    without = ff.solve(model, method=MeanField(epochs=20, continuation=""))
    assert len(without.trace["passes"]) == 1
    with pytest.raises(ff.ProblemError, match="continuation in one of the constants b, received rho"):
        ff.solve(advection(), method=MeanField(continuation="rho"))


def test_diverging_messages_end_with_a_status_that_says_what_to_try() -> None:
    model = advection()
    broken = replace(model, prior=type(model.prior)(model.prior.precision, np.full(model.size, 1e200)))
    solution = ff.solve(broken, method=MeanField(epochs=3))
    assert solution.status == "diverged"
    for words in ("epoch", "damping", "cavity", "joint"):
        assert words in solution.status.help


def test_damping_slows_but_does_not_move_the_fixed_point() -> None:
    model = ff.paper_model(ff.problems.get("advection", b=0.3, labels=16), modes=SMALL, residual_noise=1.0)
    plain = ff.solve(model, method=MeanField(residual_input="cavity", epochs=3000, tolerance=1e-12))
    damped = ff.solve(model, method=MeanField(residual_input="cavity", epochs=6000, tolerance=1e-12, damping=0.5))
    assert_allclose(damped.posterior.weight_mean, plain.posterior.weight_mean, atol=1e-3)


@pytest.mark.parametrize(
    "options", [{"damping": 1.0}, {"epochs": 0}, {"schedule": "random"}, {"residual_input": "prior"}, {"variant": "x"}]
)
def test_bad_settings_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ff.ProblemError, match=r"expected .* try "):
        MeanField(**options)


def test_papers_rows_at_b_0_4_are_as_accurate_as_with_a_joint_belief(pdebench: Path) -> None:
    """Four of the ten rows (all: benchmarks/results/mean-field.md). Only the std suffers from independent weights."""
    for row in range(4):
        problem = ff.problems.get("advection", file=pdebench / "1D_Advection_Sols_beta0.4.hdf5", row=row)
        model = ff.paper_model(problem)
        grid = {"x": problem.truth.x, "t": problem.truth.t}
        ours, joint = (
            ff.metrics.score(ff.solve(model, method=method).predict(**grid), problem.stored)
            for method in ("mean-field", "joint")
        )
        assert ours["rmse"] == pytest.approx(joint["rmse"], rel=0.1)
        assert ours["mean_std"] < 0.7 * joint["mean_std"]
