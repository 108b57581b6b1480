"""Predictions: structured paths equal the dense formula, and files give them back bit for bit."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.posterior.base import GaussianPosterior, contract_pairs
from factorfield.solution import FORMAT_VERSION, Solution, Status

X, T = np.linspace(0.0, 0.95, 9), np.linspace(0.0, 1.0, 5)


@pytest.fixture(scope="module")
def linear() -> Solution:
    problem = ff.problems.get("heat", labels=32, noise=0.05, sigma=0.05)
    with pytest.warns(ff.AdviceWarning, match="missed by more than chance"):  # six polynomials are too few
        return ff.solve(ff.default_model(problem, modes={"x": 3, "t": 6}))


def made_up(width: int, diagonal: bool) -> Solution:
    """A posterior with arbitrary moments over the paper's bent, rotated, possibly wide model."""
    problem = ff.problems.get("fisher-kpp", nu=0.1, rho=2.0, labels=64)
    model = ff.paper_model(problem, width, modes={"x": 2, "t": 2})
    rng = np.random.default_rng(0)
    root = 0.3 * rng.random(model.size) if diagonal else 0.05 * rng.standard_normal((model.size, model.size))
    posterior = GaussianPosterior(problem, model.representation, {"u": 0.1}, rng.standard_normal(model.size), root)
    return Solution(posterior, Status("converged"))


@pytest.mark.parametrize("of", [None, "u_x", "u_t - 3*u", "x*u_xx + t*u", "residual"])
def test_grid_points_and_dense_formula_agree_on_linear_functionals(linear: Solution, of: str | None) -> None:
    field = linear.predict(x=X, t=T, of=of)
    mesh = np.meshgrid(T, X, indexing="ij")
    scattered = linear.predict(x=mesh[1].ravel(), t=mesh[0].ravel(), of=of, points=True)
    assert_allclose(field["mean"].values.ravel(), scattered["mean"], atol=1e-10 * np.abs(scattered["mean"]).max())
    assert_allclose(field["std"].values.ravel(), scattered["std"], rtol=1e-6)
    relation = linear.posterior._relation(of or "u")
    from factorfield.model.factors import build_group

    points = {"t": mesh[0].ravel(), "x": mesh[1].ravel()}
    group = build_group("", relation, linear.posterior.representation, points, 0.0, 1.0, linear.problem.constants)
    _, slopes = relation.value_and_gradient(group.project(linear.posterior.mean), linear.problem.constants, points)
    rows = group.pull_back(slopes, len(linear.posterior.mean))
    exact = np.sqrt(np.einsum("ni,ij,nj->n", rows, linear.posterior.covariance, rows))
    assert_allclose(scattered["std"], exact, rtol=1e-6)


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("of", [None, "u_x", "residual"])
def test_grid_and_points_agree_for_bent_fields(width: int, diagonal: bool, of: str | None) -> None:
    solution = made_up(width, diagonal)
    field = solution.predict(x=X, t=T, of=of)
    mesh = np.meshgrid(T, X, indexing="ij")
    scattered = solution.predict(x=mesh[1].ravel(), t=mesh[0].ravel(), of=of, points=True)
    assert_allclose(field["mean"].values.ravel(), scattered["mean"], rtol=1e-9, atol=1e-12)
    assert_allclose(field["std"].values.ravel(), scattered["std"], rtol=1e-7)


@pytest.mark.parametrize("diagonal", [True, False])
def test_predicted_moments_are_those_of_posterior_draws(diagonal: bool) -> None:
    # 20,000 draws: a mean is known to sd/141, an sd to 0.5 %; tolerances are five of these
    solution = made_up(1, diagonal)
    field = solution.predict(x=X, t=T)
    draws = solution.posterior.sample(20_000, x=X, t=T, seed=1)
    assert draws.dims == ("sample", "t", "x")
    assert float((np.abs(draws.mean("sample") - field["mean"]) / field["std"]).max()) < 5 / 141
    assert_allclose(draws.std("sample"), field["std"], rtol=0.03)


def test_coordinates_come_back_exactly_as_given_and_noise_adds_up(linear: Solution) -> None:
    field = linear.predict(x=X, t=T)
    assert np.array_equal(field["x"], X) and np.array_equal(field["t"], T) and field["mean"].dims == ("t", "x")
    noisy = linear.predict(x=X, t=T, noise=True)
    assert_allclose(noisy["std"] ** 2, field["std"] ** 2 + 0.05**2, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"x": X}, "none for t"), ({"x": X, "t": T, "y": X}, "axes"), ({"x": X, "t": [7.0]}, "t inside"),
        ({"x": X, "t": [np.nan]}, "finite"), ({"x": X, "t": T, "points": True}, "equally many"),
        ({"x": X, "t": T, "of": "w"}, "unknown symbol"), ({"x": X, "t": T, "of": "u_x", "noise": True}, "noise"),
    ],
)  # fmt: skip
def test_bad_requests_are_answered_in_one_line(linear: Solution, arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ff.ProblemError, match=words):
        linear.predict(**arguments)  # type: ignore[arg-type]


def test_pair_contraction_equals_the_full_kronecker_product() -> None:
    rng = np.random.default_rng(2)
    left = [rng.standard_normal((4, 3)), rng.standard_normal((5, 2))]
    right = [rng.standard_normal((4, 3)), rng.standard_normal((5, 2))]
    gram = rng.standard_normal((7, 6, 6))
    full = np.einsum("pi,bij,pj->bp", np.kron(*left), gram, np.kron(*right)).reshape(7, 4, 5)
    assert_allclose(contract_pairs(gram, left, right), full, atol=1e-12)


# -- files


@pytest.mark.parametrize("kind", ["linear", "bent", "diagonal", "wide"])
def test_a_saved_solution_predicts_bit_identically(linear: Solution, kind: str, tmp_path: Path) -> None:
    solution = linear if kind == "linear" else made_up(2 if kind == "wide" else 1, kind == "diagonal")
    path = solution.save(tmp_path / "löße run.nc")
    loaded = ff.load(path)
    for of in (None, "u_x"):
        first, second = solution.predict(x=X, t=T, of=of), loaded.predict(x=X, t=T, of=of)
        assert first.identical(second)
    assert loaded.status == solution.status and loaded.status.help == solution.status.help
    assert loaded.settings == json.loads(json.dumps(dict(solution.settings)))
    assert repr(loaded.problem) == repr(solution.problem)
    assert loaded.problem.truth.equals(solution.problem.truth)
    with xr.open_dataset(path) as opened:
        assert {"mean", "std"} <= set(opened.data_vars) and opened.attrs["format_version"] == FORMAT_VERSION
    assert os.listdir(tmp_path) == ["löße run.nc"]


@pytest.mark.filterwarnings("ignore:values are missed:factorfield.AdviceWarning")
def test_every_kind_of_condition_and_parameter_survives_the_file(tmp_path: Path) -> None:
    problem = ff.Problem(
        ff.Equation("-u_xx = f*x", sigma=1e-3), {"x": ff.Interval(0, 1)}, {"f": ff.Unknown(2.0, 0.5)},
        [ff.Boundary("u = 0", at={"x": 0}, sigma=1e-3), ff.Observations(x=[0.5], u=[0.1], sigma=[0.01]),
         ff.Observations(x=[0.25, 0.5], of="u_x", value=[0.3, 0.2])],
    )  # fmt: skip
    solution = ff.solve(problem)
    loaded = ff.load(solution.save(tmp_path / "run.nc"))
    assert loaded.parameters == solution.parameters
    assert loaded.problem.unknowns == problem.unknowns
    grid = np.linspace(0, 1, 5)
    assert solution.predict(x=grid).identical(loaded.predict(x=grid))


def test_unknown_coefficients_have_mean_std_and_interval() -> None:
    """-u'' = f with u observed exactly as x(1-x): f must come out as 2."""
    x = np.linspace(0, 1, 21)
    problem = ff.Problem(
        ff.Equation("-u_xx = f", sigma=1e-3), {"x": ff.Interval(0, 1)}, {"f": ff.Unknown(1.0, 5.0)},
        [ff.Observations(x=x, u=x * (1 - x), sigma=1e-3)],
    )  # fmt: skip
    f = ff.solve(problem).parameters["f"]
    low, high = f["interval"]
    assert f["mean"] == pytest.approx(2.0, abs=3 * f["std"]) and f["std"] < 0.02
    assert low < f["mean"] < high and high - low == pytest.approx(2 * 1.645 * f["std"], rel=1e-3)


def test_unusable_files_are_refused_in_one_line(linear: Solution, tmp_path: Path) -> None:
    import h5py

    with pytest.raises(ff.ProblemError, match="which does not exist"):
        ff.load(tmp_path / "none.nc")
    (tmp_path / "text.nc").write_text("hello")
    with pytest.raises(ff.ProblemError, match=r"solution\.save"):
        ff.load(tmp_path / "text.nc")
    path = linear.save(tmp_path / "run.nc")
    with h5py.File(path, "a") as stored:
        stored.attrs["format_version"] = FORMAT_VERSION + 1
    with pytest.raises(ff.ProblemError, match="newer factorfield"):
        ff.load(path)


def test_output_paths_are_checked_and_nothing_half_written_stays(
    linear: Solution, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ff.ProblemError, match="existing folder"):
        linear.save(tmp_path / "none" / "run.nc")
    with pytest.raises(ff.ProblemError, match="a file to write"):
        linear.save(tmp_path)
    path = linear.save(tmp_path / "run.nc")
    before = path.read_bytes()

    def broken(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", broken)
    with pytest.raises(OSError, match="No space"):
        linear.save(path)
    assert os.listdir(tmp_path) == ["run.nc"] and path.read_bytes() == before
