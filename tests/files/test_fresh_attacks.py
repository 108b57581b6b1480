"""What strangers' files and unlucky users tried, by hands that had not seen the other tests of attacks."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import factorfield as ff
from factorfield.files.problem_file import parse_problem
from factorfield.files.seal import LENGTH, seal
from factorfield.problem.shape import _walks

STEADY = ff.Problem(
    equation="u_xx = -k*u",
    domain={"x": ff.Interval(0, 1)},
    parameters={"k": ff.Unknown(1, 1)},
    conditions=[
        ff.Boundary("u = 0", at={"x": 0}),
        ff.Boundary("u = 1", at={"x": 1}),
        ff.Observations(x=np.array([0.3, 0.5]), u=np.array([0.3, 0.5]), sigma=0.05),
    ],
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "steady.nc"
    ff.solve(STEADY, method="forward").save(path)
    return path


def changed(saved: Path, target: Path, change: Callable[[dict[str, Any], h5py.File], None]) -> Path:
    """The same file with another description of its posterior, and a checksum that fits."""
    target.write_bytes(saved.read_bytes()[:-LENGTH])
    with h5py.File(target, "r+") as file:
        described = json.loads(file.attrs["discretisation"])
        change(described, file)
        file.attrs.create("discretisation", json.dumps(described), dtype=h5py.string_dtype())
    seal(target)
    return target


def test_a_forward_file_with_too_many_functions_along_an_axis_is_refused_before_dense_matrices(
    saved: Path, tmp_path: Path
) -> None:
    def widen(described: dict[str, Any], file: h5py.File) -> None:
        breaks = np.linspace(0.0, 1.0, 20_001).tolist()
        described["paths"][0]["grid"] = {"x": {"breaks": breaks, "degree": 5, "periodic": False}}

    with pytest.raises(ff.ProblemError, match="at most 3000 functions along x, received 20005"):
        ff.load(changed(saved, tmp_path / "wide.nc", widen))


def test_a_forward_file_whose_columns_name_paths_without_end_is_refused(saved: Path, tmp_path: Path) -> None:
    def repeat(described: dict[str, Any], file: h5py.File) -> None:
        column = {"paths": [0] * 3000, "shares": [0.0] * 3000}
        described["segments"][0]["columns"] = [column] * 100

    with pytest.raises(ff.ProblemError, match="columns of at most 10000 paths in all, received 300000"):
        ff.load(changed(saved, tmp_path / "many.nc", repeat))


def test_a_problem_file_with_no_sensors_in_a_column_mapping_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("x,u\n0.1,0.2\n")
    text = (
        'equation = "u_xx = 1"\n[domain]\nx = [0, 1]\n[[observations]]\nfile = "d.csv"\nx = "x"\nu = {}\nsigma = 0.1\n'
    )
    with pytest.raises(ff.ProblemError, match="expected columns of u with the places of their sensors, received none"):
        parse_problem(text, tmp_path / "p.toml")


def test_a_region_of_a_thousand_curves_is_refused_before_they_are_followed() -> None:
    with pytest.raises(ff.ProblemError, match="curves, times its comparisons, are at most"):
        ff.Problem(
            equation="u_xx + u_yy = 1",
            domain={"x": ff.Interval(-1, 1), "y": ff.Interval(-1, 1)},
            region=ff.Region("sin(50*x)*sin(50*y) < 0"),
            conditions=[ff.Boundary("u = 0")],
        )


def test_an_error_along_the_wall_of_a_region_is_no_forward_map_and_no_division_by_zero() -> None:
    problem = ff.Problem(
        equation="u_xx + u_yy = 1",
        domain={"x": ff.Interval(-1, 1), "y": ff.Interval(-1, 1)},
        region=ff.Region("x**2 + y**2 < 0.8"),
        conditions=[ff.Boundary("u = 0", sigma=0.01)],
    )
    with pytest.raises(ff.ProblemError, match=r"expected .*, received .*; try"):
        ff.solve(problem, method="forward")


def test_the_ends_of_an_outline_of_four_hundred_corners_are_its_corners() -> None:
    turn = np.exp(2j * np.pi * np.arange(400) / 400)
    problem = ff.Problem(
        equation="u_xx + u_yy = 1",
        domain={"x": ff.Interval(-1, 1), "y": ff.Interval(-1, 1)},
        region=ff.Region.polygon(0.8 * np.stack([turn.real, turn.imag], axis=1)),
        conditions=[ff.Boundary("u = 0")],
    )
    assert problem.shape is not None and len(problem.shape.boundary.ends) == 400


def test_a_walk_around_an_outline_of_a_thousand_corners_is_one_ring() -> None:
    turn = np.exp(2j * np.pi * np.arange(1001) / 1000)
    corners = np.stack([turn.real, turn.imag], axis=1)
    ends = [corners[i : i + 2] for i in range(1000)]
    walks = _walks(ends, 1e-6)
    assert [(len(walk), is_closed) for walk, is_closed in walks] == [(1000, True)]


@pytest.mark.parametrize("positive", [False, True])
def test_a_mean_whose_square_is_no_number_is_one_line(positive: bool) -> None:
    with pytest.raises(ff.ProblemError, match=r"between 1e-75 and 1e\+75 in size"):
        ff.Unknown(1e300, 1e300, positive=positive)


@pytest.mark.parametrize("end", ["x", None, 10**400, [0, 1]])
def test_an_end_of_an_axis_that_is_no_number_is_one_line(end: Any) -> None:
    with pytest.raises(ff.ProblemError, match="expected a number as lower end"):
        ff.Interval(end, 1)


@pytest.mark.parametrize("parameters", ["x", [1], np.array([1, 2]), 3.0])
def test_parameters_that_are_no_mapping_are_one_line(parameters: Any) -> None:
    with pytest.raises(ff.ProblemError, match="expected a mapping of parameters"):
        ff.Problem(equation="u_xx = 1", domain={"x": ff.Interval(0, 1)}, parameters=parameters)
