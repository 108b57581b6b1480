"""Windows over cells that follow the field: fronts by default, with and without data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import factorfield as ff
from factorfield.methods.chain.following import on_cells_instead
from factorfield.model.model import WindowModel
from factorfield.solution import Solution

NU = 0.02 / np.pi
X, T = np.linspace(-1, 1, 41), np.linspace(0, 1, 6)


def burgers(*further: ff.Condition, nu: object = NU) -> ff.Problem:
    known = [ff.Initial("u = -sin(pi*x)"), *(ff.Boundary("u = 0", at={"x": end}) for end in (-1, 1))]
    domain = {"x": ff.Interval(-1, 1), "t": ff.Interval(0, 1)}
    return ff.Problem("u_t + u*u_x = nu*u_xx", domain, {"nu": nu}, [*known, *further])


def exact(x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """By Cole and Hopf: u is a mean over where heat came from, the largest exponent taken out."""
    away = np.linspace(-2.5, 2.5, 8001)
    y = x[:, None] - away
    exponent = -np.cos(np.pi * y) / (2 * np.pi * NU) - away**2 / (4 * NU * np.maximum(t, 1e-9)[:, None])
    share = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    found = -np.sum(np.sin(np.pi * y) * share, axis=1) / share.sum(axis=1)
    return np.asarray(np.where(t > 0, found, -np.sin(np.pi * x)), float)


def scattered(count: int = 40, sigma: float = 0.02) -> ff.Observations:
    rng = np.random.default_rng(1)
    x, t = rng.uniform(-1, 1, count), rng.uniform(0.05, 1, count)
    return ff.Observations(x=x, t=t, u=exact(x, t) + sigma * rng.standard_normal(count), sigma=sigma)


@pytest.fixture(scope="module")
def measured() -> Solution:
    return ff.solve(burgers(scattered()), cells={"x": 44})


def test_a_shock_is_resolved_by_cells_that_are_chosen_by_itself() -> None:
    plain = ff.solve(burgers())
    assert plain.status == "converged" and set(plain.settings["cells"]) == {"x"} and plain.settings["method"] == "chain"
    assert "numerical error" in plain.status.help
    mesh = np.meshgrid(T, X, indexing="ij")
    truth = exact(mesh[1].ravel(), mesh[0].ravel()).reshape(len(T), len(X))
    field = plain.predict(t=T, x=X)
    error = np.abs(field["mean"].transpose("t", "x").values - truth)
    assert np.linalg.norm(error) < 1e-5 * np.linalg.norm(truth)
    numerical = plain.trace["numerical_error"]
    assert np.sqrt(np.mean(error**2)) < 20 * numerical * np.sqrt(np.mean(truth**2))  # an estimate that means something


def test_measurements_over_cells_give_what_conditioning_gives(measured: Solution) -> None:
    """The same windows, cells and sigmas: the first pass does not see the data."""
    more = ff.Observations(x=[-0.5, 0.1], t=[0.5, 0.8], u=[0.6, -0.9], sigma=0.1)
    step, at_once = measured.condition(more), ff.solve(burgers(scattered(), more), cells={"x": 44})
    assert measured.settings["windows"] == at_once.settings["windows"]
    grid = {"t": T, "x": X[1:-1], "numerical": False}
    one, other = step.predict(**grid), at_once.predict(**grid)
    assert float((np.abs(one["mean"] - other["mean"]) / other["std"]).max()) < 1e-3
    assert_allclose(one["std"], other["std"], rtol=1e-3, atol=3e-8)  # 1e-6 near the walls, less some 1e-8 of rounding
    assert step.log_evidence == pytest.approx(at_once.log_evidence, abs=1e-3)


def test_the_evidence_of_a_front_that_is_known_is_the_density_of_the_noise(measured: Solution) -> None:
    """Nothing is left to learn: the measurements are the front and independent noise. Their log density at readings
    with a root mean square of one sigma is within what 40 draws of chi-square allow."""
    expected = -40 * (np.log(0.02) + 0.5 * np.log(2 * np.pi) + 0.5)
    assert measured.log_evidence == pytest.approx(expected, abs=5 * np.sqrt(40 / 2))


def test_a_file_gives_the_same_bits_and_draws_have_the_moments(measured: Solution, tmp_path: Path) -> None:
    again = ff.load(measured.save(tmp_path / "run.nc"))
    for of in ("u", "u_x"):
        one, other = measured.predict(t=T, x=X, of=of), again.predict(t=T, x=X, of=of)
        assert_array_equal(one["mean"], other["mean"])
        assert_array_equal(one["std"], other["std"])
    field = measured.predict(t=T, x=X[1:-1])  # walls have next to no std
    draws = measured.posterior.sample(300, t=T, x=X[1:-1], seed=0)
    assert float((np.abs(draws.mean("sample") - field["mean"]) / field["std"]).max()) < 5 / np.sqrt(300)
    assert_allclose(draws.std("sample"), field["std"], rtol=0.25)  # six times the error of 300 draws


def test_the_model_of_a_front_with_data_gives_the_same_bits_again(measured: Solution) -> None:
    again = ff.solve(measured.model, adapt=False)
    assert_allclose(again.predict(t=T, x=X)["mean"], measured.predict(t=T, x=X)["mean"], atol=1e-9)


def test_an_unknown_viscosity_is_found_over_cells() -> None:
    unsure = burgers(scattered(), nu=ff.Unknown(0.01, 0.005, positive=True))
    found = ff.solve(unsure, cells={"x": 44})
    assert found.trace["numerical_error"] < 1e-3  # of the path that data moved, not of the one without them
    nu = found.parameters["nu"]
    assert abs(np.log(nu["mean"] / NU)) < 3 * nu["std"] / nu["mean"] < 3 * 0.6


def test_cells_are_not_taken_where_they_cannot_be() -> None:
    waves = ff.Problem(
        "u_tt = u_xx", {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}, {},
        [ff.Initial("u = exp(-1000*(x - 0.5)**2)"), ff.Initial("u_t = 0")],
    )  # fmt: skip
    model = ff.default_model(waves, method="chain")
    assert isinstance(model, WindowModel) and on_cells_instead(model, 30) is None


def test_cells_follow_the_field_and_not_the_noise_of_labels() -> None:
    """A start that 101 noisy labels tell: its prior is a process, whatever the cells."""
    rng, x = np.random.default_rng(0), np.linspace(-1, 1, 101)
    labels = ff.Observations(x=x, t=0.0, u=-np.sin(np.pi * x) + 0.02 * rng.standard_normal(101), sigma=0.02)
    known = burgers()
    found = ff.solve(known.replace(conditions=[labels, *known.conditions[1:]]), cells={"x": 44})
    assert found.status == "converged" and found.trace["windows"] < 60
    mesh = np.meshgrid(T, X, indexing="ij")
    truth = exact(mesh[1].ravel(), mesh[0].ravel()).reshape(len(T), len(X))
    field = found.predict(t=T, x=X[1:-1])
    z = (field["mean"].transpose("t", "x").values - truth[:, 1:-1]) / field["std"].transpose("t", "x").values
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.8  # one draw of some ten directions that labels leave open
    start = found.predict(t=[0.0], x=X)["std"].values
    assert start.max() < 0.5 * 0.02  # labels share what they know


def test_cells_need_a_start() -> None:
    domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    seen = ff.Observations(x=np.linspace(0, 1, 9), t=np.full(9, 0.5), u=np.ones(9), sigma=0.1)
    with pytest.raises(ff.ProblemError, match="a start that a formula or labels tell") as error:
        ff.solve(ff.Problem("u_t = 0.1*u_xx", domain, {}, [seen]), "chain", cells={"x": 24})
    assert "\n" not in str(error.value)
