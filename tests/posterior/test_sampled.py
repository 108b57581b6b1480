"""Draws of the weights: predictions are moments and quantiles of the drawn fields."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import factorfield as ff
from factorfield.model.model import BlockModel
from factorfield.posterior.sampled import SampledPosterior
from factorfield.problem.relation import evaluate_coefficient

SMALL = {"x": 2, "t": 2}


def paper(width: int) -> BlockModel:
    return ff.paper_model(ff.problems.get("advection", b=0.4), width, modes=SMALL, labels=64)


def system(**options: object) -> BlockModel:
    rng = np.random.default_rng(3)
    problem = ff.Problem(
        ["u_t = D*u_xx + sin(x)*u*v - k*u**2", "v_t = v_xx + u_x*v"],
        {"x": ff.Periodic(0, 2 * np.pi), "t": ff.Interval(0, 0.5)},
        {"D": 0.7, "k": ff.Unknown(1.0, 0.3, positive=True)},
        [ff.Observations(x=rng.uniform(0, 6, 9), t=0.1, u=rng.standard_normal(9), sigma=0.2)],
    )
    return ff.default_model(problem, modes=SMALL, **options)  # type: ignore[return-value]


MODELS: dict[str, Callable[[], BlockModel]] = {
    "advection, H = 1": lambda: paper(1),
    "advection, H = 2": lambda: paper(2),
    "system": system,
    "system, H = 2": lambda: system(activation=ff.PiecewiseExponential(), readout=(1.0, -0.5)),
}


def sampled(model: BlockModel, count: int = 40) -> SampledPosterior:
    draws = 0.4 * np.random.default_rng(0).standard_normal((count, model.size))
    return SampledPosterior(model.problem, model.representation, {"u": 0.1}, draws)


@pytest.mark.parametrize("name", list(MODELS))
@pytest.mark.parametrize("of", ["u", "u_x", "residual"])
def test_predictions_from_draws_are_moments_of_the_drawn_fields(name: str, of: str) -> None:
    model = MODELS[name]()
    posterior = sampled(model)
    grid = {"x": np.linspace(0, 0.9, 5), "t": np.linspace(0, 0.5, 4)}
    relation = posterior._relation(of)
    flat = model.problem.domain.tensor({key: grid[key] for key in model.problem.domain.names})
    fields = []
    for weights in posterior.draws:
        zeta = np.zeros((20, len(relation.functionals)))
        for j, functional in enumerate(relation.functionals):
            latent = model.representation.latents[functional.latent]
            for orders, coefficient in functional.terms:
                scale = evaluate_coefficient(coefficient, model.problem.constants, flat)
                zeta[:, j] += scale * (latent.basis.rows(flat, orders, 20) @ weights[latent.block])
        fields.append(relation.value(zeta, model.problem.constants, flat))
    got = posterior.predict(grid, of=of, quantiles=[0.1, 0.5])
    np.testing.assert_allclose(got["mean"].values.ravel(), np.mean(fields, 0), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(got["std"].values.ravel(), np.std(fields, 0, ddof=1), rtol=1e-8, atol=1e-11)
    np.testing.assert_allclose(
        got["quantiles"].values.reshape(2, -1), np.quantile(fields, [0.1, 0.5], axis=0), atol=1e-10
    )
    plain = posterior.predict(grid, of=of)
    np.testing.assert_allclose(plain["std"], got["std"], rtol=1e-8, atol=1e-12)
    scattered = posterior.predict(flat, of=of, points=True)
    np.testing.assert_allclose(scattered["mean"], got["mean"].values.ravel(), rtol=1e-9, atol=1e-11)


def test_unknown_coefficients_and_samples_come_from_the_draws() -> None:
    model = MODELS["system"]()
    posterior = sampled(model)
    drawn = np.exp(posterior.draws[:, model.representation.latents["k"].block.start])
    found = posterior.parameters()["k"]
    assert found["mean"] == pytest.approx(drawn.mean()) and found["interval"][0] == pytest.approx(
        np.quantile(drawn, 0.05)
    )
    fields = posterior.sample(3, x=[0.1, 0.2], t=[0.0])
    assert fields.dims == ("sample", "t", "x") and fields.shape == (3, 1, 2)


def test_one_draw_has_a_mean_and_no_std() -> None:
    posterior = sampled(MODELS["system"](), 1)
    field = posterior.predict({"x": [0.1, 0.2], "t": [0.0]}, of="u")
    assert np.isfinite(field["mean"]).all() and np.isnan(field["std"]).all()
    assert np.isnan(posterior.parameters()["k"]["std"]) and np.isnan(posterior.weight_std).all()
