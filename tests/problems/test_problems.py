"""Worked problems: every one is well posed, has a truth that solves its equation, and can be disturbed on request."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.data import reference
from factorfield.data.initial import smooth_field
from factorfield.problem.domain import Periodic
from factorfield.problems import fisher_kpp_2d, gray_scott, reaction_inverse

LABELLED = ["advection", "fisher-kpp", "heat"]  # their data are labels of the initial field
MEASURED = ["hare-lynx"]  # real data: no truth, no noise to draw


@pytest.mark.parametrize("name", ff.problems.names())
def test_problem_has_a_name_and_a_truth_on_float64_coordinates(name: str) -> None:
    problem = ff.problems.get(name)
    assert problem.name == name and ff.problems.summary(name)
    assert (problem.truth is None) == (name in MEASURED)
    if problem.truth is not None:
        names = problem.domain.names
        mesh = np.meshgrid(*(problem.truth[axis] for axis in names), indexing="ij")
        points = {axis: x.ravel() for axis, x in zip(names, mesh, strict=True)}
        inside = np.ones(mesh[0].shape, bool) if problem.shape is None else problem.shape.contains(points)
        values = problem.truth.transpose(..., *names).values
        assert problem.truth.dtype == np.float64 and np.all(np.isfinite(values[..., inside.reshape(mesh[0].shape)]))
        assert set(problem.domain.names) == set(problem.truth.dims) - {"field"}
        assert all(problem.truth[axis].dtype == np.float64 for axis in problem.domain.names)


@pytest.mark.parametrize("name", LABELLED)
def test_labels_are_the_truth_at_the_start(name: str) -> None:
    problem = ff.problems.get(name)
    observations = problem.statements[1]
    assert observations.points is not None and observations.sigma is None
    assert_allclose(observations.target, problem.truth.isel(t=0), atol=1e-12)


@pytest.mark.parametrize("name", [name for name in ff.problems.names() if name not in MEASURED])
def test_noise_is_drawn_reproducibly(name: str) -> None:
    def values(seed: int) -> np.ndarray:
        problem = ff.problems.get(name, noise=0.1, seed=seed)
        return np.concatenate([s.target for s in problem.statements if s.points is not None])

    assert np.array_equal(values(1), values(1)) and not np.array_equal(values(1), values(2))


@pytest.mark.parametrize("name", LABELLED)
def test_noise_and_labels_are_as_asked(name: str) -> None:
    clean = ff.problems.get(name).truth.isel(t=0)
    first = ff.problems.get(name, noise=0.1, labels=100, seed=1, sigma=0.1).statements[1]
    assert len(first.target) == 100 and first.sigma == 0.1
    error = first.target - clean.sel(x=first.points["x"]).values  # type: ignore[index]
    assert 0.07 < error.std() < 0.13  # 100 draws: 0.1 +- 0.007


def test_heat_truth_solves_the_equation() -> None:
    problem = ff.problems.get("heat", nu=0.01)
    field = smooth_field(0)
    x, t, h = np.linspace(0, 0.9, 7), 0.3, 1e-4

    def u(x: np.ndarray, t: float) -> np.ndarray:
        return field(x, 0.01 * (2 * np.pi) ** 2 * t)

    residual = (u(x, t + h) - u(x, t - h)) / (2 * h) - 0.01 * (u(x + h, t) - 2 * u(x, t) + u(x - h, t)) / h**2
    assert np.abs(residual).max() < 1e-5
    assert_allclose(problem.truth.sel(t=0.3), u(problem.truth.x.values, 0.3), atol=1e-12)


def test_reference_fields_are_as_accurate_as_they_say() -> None:
    """Against the same on finer grids with smaller tolerances."""
    t = np.linspace(0.0, 40.0, 5)
    coarse = gray_scott.fields(0.04, 0.06, Periodic(0.0, 1.0).cells(gray_scott.CELLS), t)
    fine = gray_scott.fields(0.04, 0.06, Periodic(0.0, 1.0).cells(3 * gray_scott.CELLS // 2), t, rtol=1e-11)
    spectra = [np.fft.rfft(values)[..., :32] / values.shape[-1] for values in (coarse, fine)]
    shift = np.exp(2j * np.pi * np.arange(32) * 0.5 * (1 / gray_scott.CELLS - 1 / (3 * gray_scott.CELLS // 2)))
    assert np.abs(spectra[0] - spectra[1] * shift).max() < 1e-8  # the two grids begin half a cell from 0
    places = np.linspace(0.0, 1.0, 21)
    coarse = reaction_inverse.fields(2.0, 0.1, places)[1]
    fine = reaction_inverse.fields(2.0, 0.1, places, degree=96, rtol=1e-11)[1]
    assert np.abs(coarse - fine).max() < 1e-8
    times = np.linspace(0.0, 1.0, 3)
    starts = []
    for cells in (64, 192):
        x = Periodic(0.0, 1.0).cells(cells)
        starts.append(fisher_kpp_2d.initial(dict(zip("xy", np.meshgrid(x, x, indexing="ij"), strict=True)))["u"])
    rough = reference.fisher_kpp(starts[0], 0.005, 5.0, times, step=fisher_kpp_2d.STEP)
    smooth = reference.fisher_kpp(starts[1], 0.005, 5.0, times, step=0.5 * fisher_kpp_2d.STEP)
    assert np.abs(rough - smooth[:, 1::3, 1::3]).max() < 1e-8


def test_the_bump_lives_on_its_own_axis() -> None:
    problem = ff.problems.get("fisher-kpp", initial="bump", nu=1.0, rho=5.0)
    assert problem.domain["x"].length == pytest.approx(2 * np.pi)
    assert float(problem.truth.isel(t=0).max()) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("heet", {}, "'heat'"), ("heat", {"mu": 1.0}, "'nu'"), ("heat", {"labels": 0}, "labels"),
        ("heat", {"noise": -1.0}, "noise"), ("heat", {"nu": "a"}, "number"), ("advection", {"b": np.inf}, "finite"),
        ("advection", {"file": "none.hdf5"}, "existing"), ("fisher-kpp", {"initial": "bumb"}, "'bump'"),
    ],
)  # fmt: skip
def test_bad_options_are_answered_with_the_nearest_name(name: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(ff.ProblemError, match=words):
        ff.problems.get(name, **options)


def test_files_of_the_wrong_kind_are_refused(pdebench: Path, tmp_path: Path) -> None:
    advection, fisher = pdebench / "1D_Advection_Sols_beta0.4.hdf5", pdebench / "ReacDiff_Nu1.0_Rho2.0.hdf5"
    for name, options, words in [
        ("advection", {"file": fisher}, "advection file"), ("fisher-kpp", {"file": advection}, "reaction-diffusion"),
        ("advection", {"file": advection, "row": 99}, "rows between"),
        ("advection", {"file": advection, "b": 3.0}, "as the file says"),
    ]:  # fmt: skip
        with pytest.raises(ff.ProblemError, match=words):
            ff.problems.get(name, **options)
    (tmp_path / "broken.hdf5").write_bytes(b"nonsense")
    (tmp_path / "broken.npz").write_bytes(b"nonsense")
    for file in ("broken.hdf5", "broken.npz"):
        with pytest.raises(ff.ProblemError, match="expected"):
            ff.problems.get("advection", file=tmp_path / file)
