"""Baselines on the same model: gradients, exactness on linear-Gaussian problems, the gate, and failing well."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import factorfield as ff

pytest.importorskip("jax", reason="the extra `baselines` is not installed: pip install 'factorfield[baselines]'")

from factorfield.methods.baselines import hmc as hmc_module
from factorfield.methods.baselines.adam import Schedule
from factorfield.methods.baselines.density import batches, double_precision, log_joint, shares_design
from factorfield.methods.baselines.hmc import HMC, Sampling, judged
from factorfield.methods.baselines.sgd import SGD
from factorfield.methods.baselines.vi import VI
from factorfield.methods.compare import compare, table
from reference import log_joint_gradient


def advection_problem(seed: int = 0) -> ff.Problem:
    x = np.linspace(0.0, 1.0, 24, endpoint=False)
    u = np.sin(2 * np.pi * x) + 0.1 * np.random.default_rng(seed).standard_normal(24)
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    return ff.Problem("u_t + b*u_x", domain, {"b": 0.3}, [ff.Observations(x=x, t=0.0, u=u, sigma=0.1)])


def linear_model() -> ff.Model:
    """15 weights, well conditioned: everything about its posterior is known exactly."""
    problem = ff.Problem(
        ff.Equation("u_t + u_x", sigma=1.0),
        {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)},
        {},
        [ff.Observations(x=np.linspace(0, 0.9, 10), t=0.0, u=np.sin(6 * np.linspace(0, 0.9, 10)), sigma=0.3)],
    )
    return ff.default_model(problem, modes={"x": 1, "t": 4})


def custom_problem() -> ff.Problem:
    rng = np.random.default_rng(3)
    return ff.Problem(
        ["u_t = D*u_xx + sin(x)*u*v - k*u**2", "v_t = v_xx + u_x*v"],
        {"x": ff.Periodic(0, 2 * np.pi), "t": ff.Interval(0, 0.5)},
        {"D": 0.7, "k": ff.Unknown(1.0, 0.3, positive=True)},
        [ff.Observations(x=rng.uniform(0, 6, 9), t=0.1, u=rng.standard_normal(9), sigma=0.2)],
    )


def models() -> dict[str, ff.Model]:
    small = {"x": 2, "t": 2}
    advection = ff.problems.get("advection", b=0.4)
    fisher = ff.problems.get("fisher-kpp", nu=0.5, rho=2.0)
    ansatz = ff.PiecewiseExponential()
    return {
        "advection, H = 1": ff.paper_model(advection, modes=small, labels=64),
        "advection, H = 2": ff.paper_model(advection, 2, modes=small, labels=64),
        "fisher-kpp, H = 1": ff.paper_model(fisher, modes=small, labels=64),
        "fisher-kpp, H = 2": ff.paper_model(fisher, 2, modes=small, labels=64),
        "custom system": ff.default_model(custom_problem(), modes=small),
        "custom system, H = 2": ff.default_model(custom_problem(), modes=small, activation=ansatz, readout=(1.0, -0.5)),
    }


@pytest.mark.parametrize("name", list(models()))
def test_the_log_joint_in_jax_is_the_models_and_its_gradient_the_finite_difference(name: str) -> None:
    model = models()[name]
    rng = np.random.default_rng(1)
    weights = 0.5 * rng.standard_normal(model.size)
    ((_, batch),) = batches([model])
    with double_precision() as jax:
        facts = jax.tree.map(lambda a: a[0], batch.facts())

        def value(w: Any) -> tuple[float, np.ndarray]:
            level, gradient = log_joint(batch.shapes, batch.shared, facts, w)
            return float(level), np.asarray(gradient)

        level, gradient = value(weights)
        other = value(np.zeros(model.size))[0]
        for _ in range(4):
            direction = rng.standard_normal(model.size)
            step = 1e-6
            slope = (value(weights + step * direction)[0] - value(weights - step * direction)[0]) / (2 * step)
            assert slope == pytest.approx(gradient @ direction, rel=2e-5)
    exact = model.log_joint(weights) - model.log_joint(np.zeros(model.size))  # constants cancel
    assert level - other == pytest.approx(exact, rel=1e-10)
    np.testing.assert_allclose(gradient, log_joint_gradient(model, weights), rtol=1e-9, atol=1e-9 * abs(gradient).max())


@pytest.mark.parametrize("kernel", ["hmc", "nuts"])
def test_sampling_agrees_with_the_exact_posterior_within_monte_carlo_error(kernel: Any) -> None:
    model = linear_model()
    exact = ff.solve(model, method="joint").posterior
    solution = ff.solve(model, method=HMC(kernel=kernel, iterations=1500, warmup=300, seed=2))
    assert solution.status == "converged"
    assert solution.trace["divergences"] == 0
    ess = solution.trace["ess"]
    z = (solution.posterior.weight_mean - exact.weight_mean) / exact.weight_std * np.sqrt(ess)
    assert np.max(np.abs(z)) < 4.0  # the largest of 15 standard normals; ESS is the smallest over weights
    ratio = solution.posterior.weight_std / exact.weight_std
    assert np.max(np.abs(ratio - 1.0)) < 4.0 / np.sqrt(2.0 * ess) * 1.5  # ESS of squares is somewhat lower


def test_laplace_is_exact_and_full_vi_finds_the_exact_posterior() -> None:
    model = linear_model()
    exact = ff.solve(model, method="joint").posterior
    laplace = ff.solve(model, method="laplace").posterior
    np.testing.assert_allclose(laplace.weight_mean, exact.weight_mean, atol=1e-10)
    np.testing.assert_allclose(laplace.covariance, exact.covariance, atol=1e-12)
    schedule = Schedule(rate=3e-3, iterations=20_000, window=500, gain=1e-5)
    full = ff.solve(model, method=VI(covariance="full", schedule=schedule)).posterior
    # the gradients' noise vanishes at a Gaussian posterior, so the end is sharp: a tenth of a standard deviation
    assert np.max(np.abs(full.weight_mean - exact.weight_mean) / exact.weight_std) < 0.1
    np.testing.assert_allclose(full.weight_std, exact.weight_std, rtol=0.03)
    scale = np.outer(exact.weight_std, exact.weight_std)
    assert np.max(np.abs(full.covariance - exact.covariance) / scale) < 0.05


def test_mean_field_vi_gives_its_closed_form_the_inverse_of_the_precisions_diagonal() -> None:
    model = linear_model()
    exact = ff.solve(model, method="joint").posterior
    schedule = Schedule(rate=3e-3, iterations=20_000, gain=1e-5)
    solution = ff.solve(model, method=VI(schedule=schedule, samples=16))
    closed = 1.0 / np.sqrt(np.diag(np.linalg.inv(exact.covariance)))
    np.testing.assert_allclose(solution.posterior.weight_std, closed, rtol=0.03)
    assert np.max(np.abs(solution.posterior.weight_mean - exact.weight_mean) / closed) < 0.2
    assert np.mean(solution.posterior.weight_std / exact.weight_std) < 0.9  # known: too narrow


def test_sgd_finds_the_least_squares_weights_and_has_no_std() -> None:
    model = linear_model()
    solution = ff.solve(model, method=SGD(Schedule(rate=1e-2, iterations=20_000)))
    assert solution.status == "converged"
    rows = [group.dense_rows(0) / group.sigma[:, None] / np.sqrt(group.count) for group in model.groups]
    targets = [group.target / group.sigma / np.sqrt(group.count) for group in model.groups]
    best, *_ = np.linalg.lstsq(np.concatenate(rows), np.concatenate(targets))
    loss = lambda w: np.sum((np.concatenate(rows) @ w - np.concatenate(targets)) ** 2)  # noqa: E731
    assert loss(solution.posterior.weight_mean) < 1.01 * loss(best) + 1e-9
    field = solution.predict(x=[0.1, 0.2], t=[0.0, 0.5])
    assert np.isnan(field["std"]).all() and np.isnan(solution.posterior.weight_std).all()
    score = ff.metrics.score(field, field["mean"] + 0.1)
    assert np.isnan(score["coverage90"]) and np.isnan(score["nll"]) and score["crps"] == pytest.approx(0.1)


def test_groups_with_one_relation_share_one_mean_in_the_pinn_loss() -> None:
    model = models()["advection, H = 1"]
    weights = 0.3 * np.random.default_rng(0).standard_normal(model.size)
    from factorfield.methods.baselines.sgd import mean_squares

    ((_, batch),) = batches([model])
    with double_precision() as jax:
        facts = jax.tree.map(lambda a: a[0], batch.facts())
        loss = float(mean_squares(batch.shapes)((weights,), jax.random.key(0), batch.shared, facts)[0])
    squares = {}
    for group in model.groups:
        value = group.relation.value(group.project(weights), group.parameters, group.points)
        squares.setdefault(group.name.split()[0], []).append(((value - group.target) / group.sigma) ** 2)
    assert loss == pytest.approx(sum(np.mean(np.concatenate(parts)) for parts in squares.values()), rel=1e-10)


@pytest.mark.filterwarnings("ignore:values are missed:factorfield.AdviceWarning")
def test_trajectories_that_share_their_design_advance_together_and_give_the_same_answer() -> None:
    problems = [advection_problem(seed) for seed in (0, 1)]
    pair = [ff.default_model(problem, modes={"x": 2, "t": 3}) for problem in problems]
    scaled = [replace(model, prior=pair[0].prior) for model in pair]  # default scales follow the data, and differ
    assert shares_design(*scaled) and not shares_design(*pair)
    method = HMC(iterations=400, warmup=100)
    together = ff.solve(scaled, method=method)
    alone = [ff.solve(model, method="laplace").posterior for model in scaled]
    for solution, exact in zip(together, alone, strict=True):
        error = (solution.posterior.weight_mean - exact.weight_mean) / exact.weight_std
        assert np.max(np.abs(error)) < 5.0 / np.sqrt(solution.trace["ess"])
    sgd = SGD(Schedule(iterations=1000))
    for one, both in zip([sgd.run(model) for model in scaled], ff.solve(scaled, method=sgd), strict=True):
        # a gradient that is zero but for rounding still moves Adam: alike to a hundredth of the weights
        np.testing.assert_allclose(one.posterior.weight_mean, both.posterior.weight_mean, atol=5e-5)
    assert len(batches([scaled[0], models()["advection, H = 1"]])) == 2


def test_the_same_seed_gives_the_same_draws_and_another_seed_others() -> None:
    model = linear_model()
    first, second, other = (HMC(iterations=60, warmup=20, seed=seed).run(model).posterior for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.weight_mean, second.weight_mean)
    assert not np.array_equal(first.weight_mean, other.weight_mean)


# -- the gate and its failures


def test_too_few_draws_are_said_to_be_too_few() -> None:
    solution = HMC(iterations=5, warmup=0).run(linear_model())
    assert solution.status == "max-iterations" and "too few" in solution.status.help


def test_a_run_below_the_gate_is_not_converged_and_says_why() -> None:
    solution = HMC(iterations=30, warmup=10, chains=2).run(linear_model())
    assert solution.status == "max-iterations" and "not a reference" in solution.status.help


def test_a_density_that_is_not_finite_at_the_start_is_a_status(monkeypatch: pytest.MonkeyPatch) -> None:
    model = models()["advection, H = 1"]
    broken = replace(model, groups=(*model.groups[:2], _with_nan(model.groups[2])))
    top = ff.solve(model, method="laplace").posterior
    monkeypatch.setattr(hmc_module, "maximum", lambda _: top)
    solution = HMC(iterations=60, warmup=10).run(broken)
    assert solution.status == "diverged" and "not finite" in solution.status.help


def _with_nan(group: Any) -> Any:
    target = group.target.copy()
    target[0] = np.nan
    return replace(group, target=target)


def test_a_collapsed_step_size_is_a_status() -> None:
    sampling = Sampling(np.array([True]), step=np.array([1e-7]))
    sampling.add(np.zeros((20, 1, 4, 3)), np.zeros((20, 1, 4)), np.ones((20, 1, 4), bool))
    status, trace = judged(sampling.draws(0), sampling, 0)
    assert status == "diverged" and "collapsed" in status.help and trace["divergences"] == 80


def test_an_interrupted_run_keeps_what_was_drawn() -> None:
    def stop(text: str, fraction: float) -> None:
        if fraction > 0.5:
            raise KeyboardInterrupt

    solution = HMC(iterations=400, warmup=100).run(linear_model(), stop)
    assert solution.trace["interrupted"] and "interrupted" in solution.status.help
    assert 100 <= solution.trace["draws_per_chain"] < 300
    assert len(solution.posterior.draws) == 4 * solution.trace["draws_per_chain"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: HMC(kernel="gibbs"), lambda: HMC(chains=0), lambda: HMC(iterations=10, warmup=10),
        lambda: VI(covariance="banded"), lambda: VI(samples=0), lambda: Schedule(rate=0.0),
    ],
)  # fmt: skip
def test_bad_settings_are_refused(make: Any) -> None:
    with pytest.raises(ff.ProblemError, match=r"expected .* received .* try"):
        make()


def test_a_missing_extra_is_one_line_that_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "blackjax" else found(name))
    monkeypatch.setitem(sys.modules, "blackjax", None)
    with pytest.raises(ff.ProblemError, match=r"blackjax.*pip install 'factorfield\[baselines\]'"):
        ff.methods.get("hmc")


def test_a_sampled_solution_survives_a_file_bit_by_bit(tmp_path: Path) -> None:
    solution = HMC(iterations=40, warmup=20).run(linear_model())
    solution.save(tmp_path / "run.nc")
    again = ff.load(tmp_path / "run.nc")
    grid = {"x": np.linspace(0, 0.9, 7), "t": np.linspace(0, 1, 5)}
    np.testing.assert_array_equal(again.predict(**grid)["std"], solution.predict(**grid)["std"])
    assert again.status == solution.status and again.trace == solution.trace


# -- comparisons, and the paper's rows


def test_a_comparison_shares_one_model_and_measures_against_hmc() -> None:
    methods = [ff.methods.get("joint"), HMC(iterations=600, warmup=200), SGD(Schedule(iterations=500))]
    rows = {row["method"]: row for row in table(list(compare(linear_model(), methods)))}
    assert rows["hmc"]["std_ratio"] == 1.0 and rows["hmc"]["mean_distance"] == 0.0
    assert rows["joint"]["std_ratio"] == pytest.approx(1.0, abs=0.1)
    assert np.isnan(rows["sgd"]["std_ratio"]) and rows["joint"]["fit"] > 0.0


@pytest.mark.parametrize("speed", [0.1, 0.4])
def test_hmc_on_the_papers_rows_passes_its_gate_and_matches_joint(pdebench: Path, speed: float) -> None:
    problem = ff.problems.get("advection", file=pdebench / f"1D_Advection_Sols_beta{speed}.hdf5", row=0)
    model = ff.paper_model(problem)
    reference = ff.solve(model, method="hmc")
    assert reference.status == "converged"
    grid = {"x": problem.truth.x[::16], "t": problem.truth.t[::20]}
    ours, theirs = ff.solve(model, method="joint").predict(**grid), reference.predict(**grid)
    assert 0.97 < float((ours["std"] / theirs["std"]).median()) < 1.03
    if speed == 0.1:
        vi = ff.solve(model, method="vi", schedule=Schedule(rate=1e-3, iterations=10_000)).predict(**grid)
        assert float((vi["std"] / theirs["std"]).median()) < 1.0  # the paper's finding for b <= 0.4


def test_the_maximum_from_two_starts_is_stationary() -> None:
    model = ff.paper_model(ff.problems.get("fisher-kpp", nu=0.5, rho=1.0), modes={"x": 4, "t": 6}, labels=128)
    top = hmc_module.maximum(model)
    assert np.isfinite(model.log_joint(top.weight_mean))
    gradient = log_joint_gradient(model, top.weight_mean)
    assert np.max(np.abs(top.root.T @ gradient)) < 0.1  # the promised gain of a further step is small, in sd
