"""From a problem to factor groups: counts, noise and gradients against references."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.model.block import block_model
from factorfield.model.choices import field_scale
from factorfield.model.model import BlockModel
from reference import finite_difference, log_joint_gradient


def advection(labels: int = 64, **options: float) -> ff.Problem:
    return ff.problems.get("advection", labels=labels, **options)


CUSTOM = ff.Problem(
    "u_t + u*u_x = nu*u_xx + x*u",
    {"x": ff.Interval(0, 1), "t": ff.Interval(0, 0.5)},
    {"nu": ff.Unknown(0.1, 0.05, positive=True)},
    [ff.Initial("u = sin(pi*x)"), ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u_x = 1", at={"x": 1}, sigma=0.1)],
)


def models() -> dict[str, BlockModel]:
    fisher = ff.problems.get("fisher-kpp", nu=0.5, rho=2.0, labels=64)
    return {
        "advection": ff.paper_model(advection(), modes={"x": 2, "t": 3}),
        "advection wide": ff.paper_model(advection(), 2, modes={"x": 2, "t": 3}),
        "fisher": ff.paper_model(fisher, modes={"x": 2, "t": 3}),
        "fisher wide": ff.paper_model(fisher, 2, modes={"x": 2, "t": 3}),
        "custom": block_model(CUSTOM, modes={"x": 4, "t": 3}),
        "custom bent": block_model(CUSTOM, modes={"x": 4, "t": 3}, activation=ff.PiecewiseExponential()),
        "linear": block_model(advection(), modes={"x": 3}),
    }


@pytest.mark.parametrize("name", models())
def test_gradient_of_the_log_joint_matches_finite_differences(name: str) -> None:
    model = models()[name]
    weights = model.prior.mean + 0.3 * model.prior.std * np.random.default_rng(0).standard_normal(model.size)
    gradient = log_joint_gradient(model, weights)
    slope = finite_difference(model.log_joint, weights, 1e-5)
    assert_allclose(gradient, slope, rtol=1e-5, atol=1e-6 * np.abs(gradient).max())


def test_log_joint_is_the_sum_of_log_densities() -> None:
    model = models()["linear"]
    weights = model.prior.sample(1, np.random.default_rng(0))[0]
    total = -0.5 * np.sum(weights**2 / model.prior.variance + np.log(2 * np.pi * model.prior.variance))
    for group in model.groups:
        parts = [group.dense_rows(j) @ weights[block] for j, block in enumerate(group.blocks)]
        value = np.sum(parts, axis=0)
        misfit = (value - group.target) / group.sigma
        total += -0.5 * np.sum(misfit**2 + np.log(2 * np.pi * group.sigma**2))
    assert model.log_joint(weights) == pytest.approx(total, rel=1e-12)


# -- the paper's set-up


@pytest.mark.parametrize(("b", "time_modes", "raw"), [(0.1, 5, 121), (0.4, 11, 253), (1.0, 23, 517), (2.0, 43, 957)])
def test_paper_model_has_the_papers_features_and_points(b: float, time_modes: int, raw: int) -> None:
    model = ff.paper_model(ff.problems.get("advection", b=b), rotation=False)
    equation, at_labels, data = model.groups
    assert model.settings["modes"] == {"t": time_modes, "x": 5} and model.size == raw
    assert data.count == at_labels.count == 1024 and equation.count == 48 * time_modes
    assert_allclose(data.sigma, 0.02)
    assert_allclose(equation.sigma, 0.05 / 4.0)  # eps_C over T_basis = 2 x 2
    assert_allclose(model.prior.variance, 1.0)


@pytest.mark.parametrize(("b", "kept"), [(0.1, 121), (0.4, 201), (1.0, 346)])
def test_paper_rotation_keeps_the_papers_number_of_directions(b: float, kept: int) -> None:
    # the count depends a little on the drawn points; the paper's are 121, 201, 346
    assert abs(ff.paper_model(ff.problems.get("advection", b=b)).size - kept) <= 3


def test_paper_model_for_fisher_kpp() -> None:
    model = ff.paper_model(ff.problems.get("fisher-kpp", nu=0.5, rho=5.0))
    equation, at_labels, data = model.groups
    assert model.settings["modes"]["t"] == 15 and 5 <= model.settings["modes"]["x"] <= 8
    assert data.count == at_labels.count == 512 and equation.count == 48 * 31
    assert_allclose(equation.sigma, 0.05 / 2.0)
    assert model.settings["rank_rule"] == "floor"


def test_residual_is_the_papers_in_scaled_coordinates() -> None:
    """R = g'(z) w.(dphi/dtn + c dphi/dxn), c = b T_basis, over eps_C: the same whitened number as ours."""
    model = ff.paper_model(advection(b=0.7), modes={"x": 2, "t": 2}, rotation=False)
    group = model.groups[0]
    w = np.random.default_rng(0).standard_normal(model.size)
    ours = group.relation.value(group.project(w), group.parameters, group.points) / group.sigma
    tn, xn, c = group.points["t"] / 4.0, group.points["x"], 0.7 * 4.0

    def phi(time: np.ndarray, space: np.ndarray) -> np.ndarray:
        def axis(s: np.ndarray) -> np.ndarray:
            return np.column_stack([np.ones_like(s), *[f(2 * np.pi * k * s) for k in (1, 2) for f in (np.sin, np.cos)]])

        return (axis(time)[:, :, None] * axis(space)[:, None, :]).reshape(len(time), -1)

    h = 1e-6
    z = phi(tn, xn) @ w
    slope = (phi(tn + h, xn) - phi(tn - h, xn)) @ w / (2 * h) + c * (phi(tn, xn + h) - phi(tn, xn - h)) @ w / (2 * h)
    assert_allclose(ours, ff.PiecewiseExponential()(z, 1) * slope / 0.05, rtol=1e-6, atol=1e-6)


def test_paper_model_is_reproducible_and_seeded() -> None:
    first, again, other = (ff.paper_model(advection(), seed=s) for s in (3, 3, 4))
    assert np.array_equal(first.groups[0].rows[1], again.groups[0].rows[1])
    assert first.groups[0].rows[1].shape != other.groups[0].rows[1].shape or not np.array_equal(
        first.groups[0].rows[1], other.groups[0].rows[1]
    )


@pytest.mark.parametrize(
    "options", [{"width": 7}, {"width": 3, "readout": (1.0, 2.0)}, {"label_noise": 0.0}, {"residual_noise": -1.0}]
)
def test_bad_options_of_the_paper_model_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ff.ProblemError, match=r"expected .* try "):
        ff.paper_model(advection(), **options)  # type: ignore[arg-type]
    with pytest.raises(ff.ProblemError, match="default model"):
        ff.paper_model(CUSTOM)


# -- the default model


def test_default_model_uses_the_users_sigmas_in_physical_units() -> None:
    problem = ff.Problem(
        ff.Equation("u_t = u_xx", sigma=0.5),
        {"x": ff.Interval(0, 3), "t": ff.Interval(0, 2)},
        {},
        [
            ff.Observations(x=[0.1, 0.2], t=0.0, u=[5.0, 6.0], sigma=[0.3, 0.4]),
            ff.Boundary("u = 0", at={"x": 0}, sigma=0.7),
        ],
    )
    model = block_model(problem, modes={"x": 4, "t": 4})
    assert_allclose(model.groups[0].sigma, 0.5)
    assert_allclose(model.groups[1].sigma, [0.3, 0.4])
    error = model.groups[2].rows[-1]  # of the wall's own error, whose weights are standard normal
    assert_allclose(np.sqrt(np.mean(np.sum(error**2, axis=1))), 0.7, rtol=0.05)
    assert np.all(model.groups[2].sigma < 0.05 * 0.7)
    assert field_scale(problem) == pytest.approx(np.sqrt((25 + 36) / 2))
    assert np.all(model.groups[2].points["x"] == 0.0)


def test_describe_names_groups_counts_functionals_and_memory() -> None:
    text = ff.paper_model(advection(labels=64), modes={"x": 2, "t": 3}).describe()
    for words in ("weights", "factors", "MiB", "equation", "observations", "u_t + (b)*u_x", "sigma 0.02"):
        assert words in text


def test_too_few_collocation_points_are_refused_with_the_numbers() -> None:
    with pytest.raises(ff.ProblemError, match=r"settle \d+ of the \d+ weights.*received \d+ points of rank \d+; try"):
        block_model(advection(), modes={"x": 6, "t": 20}, collocation={"x": 5, "t": 40})
    block_model(advection(), modes={"x": 6, "t": 20}, collocation={"x": 13, "t": 21})  # just enough


@pytest.mark.parametrize("modes", [{"y": 3}, {"x": 0}, {"x": 2.5}, {"x": True}])
def test_bad_mode_counts_are_refused(modes: dict[str, int]) -> None:
    with pytest.raises(ff.ProblemError, match="modes"):
        block_model(advection(), modes=modes)


def test_noise_does_not_buy_modes() -> None:
    """The initial field of heat has four waves; labels with noise must not be explained by fourteen."""
    noisy = block_model(ff.problems.get("heat", noise=0.05, labels=128, sigma=0.05))
    assert 3 <= noisy.settings["modes"]["x"] <= 6


def test_constants_outside_the_rows_can_be_changed_in_place() -> None:
    model = models()["fisher"]
    changed = model.with_parameters(rho=0.5)
    w = np.zeros(model.size) + 0.1
    assert changed.log_joint(w) != model.log_joint(w)
    assert changed.groups[0].rows[0] is model.groups[0].rows[0]
    with pytest.raises(ff.ProblemError, match="merged"):
        model.with_parameters(nu=0.1)
