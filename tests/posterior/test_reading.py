"""Every kind of posterior comes back from its arrays and from its file, bit for bit."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import factorfield as ff
from factorfield.files.results import FORMAT_VERSION
from factorfield.model.representation import Representation
from factorfield.posterior.base import Posterior
from factorfield.posterior.gaussian import GaussianPosterior
from factorfield.posterior.reading import kinds, posterior_from_arrays
from factorfield.posterior.sampled import SampledPosterior
from factorfield.posterior.windows import ChainPosterior
from factorfield.problem.problem import Problem
from factorfield.solution import Solution

X, T = np.linspace(0.0, 0.95, 9), np.linspace(0.0, 1.0, 5)


def sampled_like(posterior: Posterior, draws: np.ndarray) -> SampledPosterior:
    return SampledPosterior(posterior.problem, posterior.representation, posterior.noise, draws)


def test_every_class_is_known_by_a_marker_of_its_own() -> None:
    found = {kind.marker: kind for kind in kinds()}
    assert len(found) == len(kinds())
    assert {GaussianPosterior, ChainPosterior, SampledPosterior} <= set(found.values())


def test_a_new_class_is_read_back_without_an_edit(linear: Solution) -> None:
    @dataclass(frozen=True, eq=False)
    class PointMass(Posterior):
        weights: np.ndarray
        marker = "point_weights"

        def arrays(self) -> dict[str, np.ndarray]:
            return {"point_weights": self.weights}

        @classmethod
        def from_arrays(
            cls, problem: Problem, representation: Representation, noise: Mapping[str, float],
            arrays: Mapping[str, np.ndarray],
        ) -> PointMass:  # fmt: skip
            return cls(problem, representation, noise, arrays["point_weights"])

    old = linear.posterior
    described = old.problem, old.representation, old.noise
    arrays = PointMass(*described, old.weight_mean).arrays()
    assert isinstance(posterior_from_arrays(*described, arrays), PointMass)


def test_arrays_of_no_posterior_are_refused_in_one_line(linear: Solution) -> None:
    old = linear.posterior
    with pytest.raises(ff.ProblemError, match=r"the arrays .*weight_mean.*, received edges; try saving it again"):
        posterior_from_arrays(old.problem, old.representation, old.noise, {"edges": np.zeros(2)})


@pytest.mark.parametrize("kind", ["linear", "nonlinear", "diagonal", "wide", "windows", "draws"])
def test_a_saved_solution_predicts_bit_identically(
    linear: Solution, windows: Solution, made_up: Callable[[int, bool], Solution], kind: str, tmp_path: Path
) -> None:
    solution = made_up(2 if kind == "wide" else 1, kind == "diagonal")
    if kind in ("linear", "windows"):
        solution = linear if kind == "linear" else windows
    if kind == "draws":
        draws = np.random.default_rng(1).standard_normal((20, solution.posterior.representation.size))
        solution = replace(solution, posterior=sampled_like(solution.posterior, draws))
    path = solution.save(tmp_path / "löße run.nc")
    loaded = ff.load(path)
    for of in (None, "u_x"):
        first, second = solution.predict(x=X, t=T, of=of), loaded.predict(x=X, t=T, of=of)
        assert first.identical(second)
    assert loaded.status == solution.status and loaded.status.help == solution.status.help
    assert loaded.settings == json.loads(json.dumps(dict(solution.settings)))
    assert repr(loaded.problem) == repr(solution.problem)
    assert solution.problem.truth is None or loaded.problem.truth.equals(solution.problem.truth)
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
