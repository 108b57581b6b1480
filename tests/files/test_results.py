"""Result files speak for themselves: CF names and units, provenance; and files of older versions still load."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
from threadpoolctl import threadpool_limits

import factorfield as ff
from factorfield.errors import Advice
from factorfield.files.results import read, write


def posed(units: str = "") -> ff.Problem:
    """Two walls, a measurement, an unknown, a table: each has its line in the file."""
    x = np.linspace(0, 1, 11)
    truth = xr.DataArray(x * (1 - x), dims="x", coords={"x": x}, name="u")
    if units:
        truth.attrs["units"] = "K"
        truth["x"].attrs["units"] = units
    return ff.Problem(
        ff.Equation("-u_xx = f*g", sigma=1e-3), {"x": ff.Interval(0, 1)},
        {"f": ff.Unknown(1.0, 5.0), "g": ff.Table(x=x, value=np.ones(11))},
        [ff.Boundary("u = 0", at={"x": 0}, sigma=1e-3), ff.Observations(x=x, u=x * (1 - x), sigma=1e-3)],
        truth=truth, name="heated rod",
    )  # fmt: skip


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ff.solve(posed(), method="joint").save(tmp_path_factory.mktemp("run") / "run.nc")


def test_names_units_and_axes_follow_the_cf_conventions(file: Path) -> None:
    with xr.open_dataset(file) as opened:
        assert opened.attrs["Conventions"] == "CF-1.11"
        # no units: "1" would claim that the numbers have no dimension, which nobody said
        assert opened["mean"].attrs == {"long_name": "posterior mean of u", "ancillary_variables": "std"}
        assert opened["std"].attrs == {"long_name": "posterior standard deviation of u"}
        assert opened["x"].attrs == {"long_name": "x coordinate", "axis": "X"}
        assert opened["x"].encoding.get("_FillValue") is None  # CF: coordinates have no missing values
        assert "long_name" in opened["truth"].attrs


@pytest.mark.parametrize("name", ["run.toml", "run.csv", "run"])
def test_a_name_of_another_kind_of_file_is_refused(name: str, file: Path, tmp_path: Path) -> None:
    with pytest.raises(ff.ProblemError, match=r"ending in one of \.nc, .*; try run\.nc"):
        ff.load(file).save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_time_is_an_axis_of_its_own_kind(tmp_path: Path) -> None:
    path = ff.solve(ff.problems.get("heat")).save(tmp_path / "run.nc")
    with xr.open_dataset(path) as opened:
        assert {name: opened[name].attrs["axis"] for name in ("t", "x")} == {"t": "T", "x": "X"}
        assert opened["t"].dtype == float and opened["t"].attrs["long_name"] == "time"


def test_the_file_says_what_was_solved_how_and_when(file: Path) -> None:
    with xr.open_dataset(file) as opened:
        told = opened.attrs
    assert told["title"] == "heated rod" and told["source"] == f"factorfield {ff.__version__}"
    assert told["equations"] == "-u_xx = f*g +- 0.001"
    assert told["conditions"].splitlines() == ["u = 0 at x = 0 +- 0.001", "11 observations of u +- 0.001"]
    assert told["constants"] == "g = a table over x" and told["prior"] == "f = 1 +- 5"
    assert told["method"] == "joint" == json.loads(told["settings"])["method"]
    assert datetime.fromisoformat(told["date_created"]).utcoffset() is not None
    assert told["history"].startswith(told["date_created"]) and "by joint" in told["history"]


def test_the_posterior_of_coefficients_is_data_that_any_reader_finds(file: Path) -> None:
    found = ff.load(file).parameters["f"]
    with xr.open_dataset(file) as opened:
        one = opened.sel(coefficient="f")
        told = [float(one[f"coefficient_{key}"]) for key in ("mean", "std", "lower", "upper")]
        assert "coefficient_units" not in opened and "coefficients" not in opened.attrs  # which was the prior
    assert told == [found["mean"], found["std"], *found["interval"]]


def test_unknown_functions_and_fields_of_systems_are_named(tmp_path: Path) -> None:
    problem = ff.Problem(
        ["u_x = f", "v_x = u"], {"x": ff.Interval(0, 1)}, {"f": ff.Unknown(1.0, 1.0, over="x")},
        [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("v = 0", at={"x": 0}),
         ff.Observations(x=np.linspace(0, 1, 9), u=np.linspace(0, 1, 9), sigma=0.01)],
        units={"u": "m/s", "v": "m", "f": "m/s2"},
    )  # fmt: skip
    solution = ff.solve(problem)
    path = solution.save(tmp_path / "run.nc")
    with xr.open_dataset(path) as opened:
        assert opened["mean"].attrs["long_name"] == "posterior mean" and "units" not in opened["mean"].attrs
        assert opened["field"].attrs["long_name"] and opened["f_mean"].attrs["units"] == "m/s2"
        expected = solution.predict(of="f", x=opened["x"].values)["mean"]
        np.testing.assert_array_equal(opened["f_mean"], expected)
    with xr.open_dataset(path, group="posterior") as opened:
        assert opened["condition2_x"].dims == opened["condition2_u"].dims == ("condition2_point",)
        assert not any("." in str(name) for name in opened.variables)


def test_units_are_checked_kept_and_written(tmp_path: Path) -> None:
    with pytest.raises(ff.ProblemError, match=r"units of some of x, u, k, received y; try"):
        rod(units={"y": "m"})
    for wrong in (3, "", " ", "a" * 40, "m\n"):
        with pytest.raises(ff.ProblemError, match=r"the units of u as a short text"):
            rod(units={"u": wrong})
    with pytest.raises(ff.ProblemError, match="units by name"):
        rod(units="m")
    told = {"x": "m", "u": "degC", "k": "degC m-2"}
    solution = ff.solve(rod(units=told))
    path = solution.save(tmp_path / "run.nc")
    assert ff.load(path).problem.units == told == solution.problem.units
    with xr.open_dataset(path) as opened:
        assert opened["mean"].attrs["units"] == opened["std"].attrs["units"] == "degC"
        assert opened["x"].attrs["units"] == "m"
        assert str(opened["coefficient_units"].sel(coefficient="k").values) == "degC m-2"


def test_conditioning_keeps_units() -> None:
    problem = ff.Problem(
        "u_t = -u", {"t": ff.Interval(0, 1)}, {}, [ff.Initial("u = 1", sigma=0.1)], units={"t": "s", "u": "V"}
    )
    more = ff.solve(problem).condition(ff.Observations(t=[0.5], u=[0.6], sigma=0.01))
    assert more.problem.units == {"t": "s", "u": "V"}


def rod(units: object) -> ff.Problem:
    return ff.Problem(
        "u_xx = k", {"x": ff.Interval(0, 1)}, {"k": ff.Unknown(1.0, 1.0)},
        [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1}),
         ff.Observations(x=[0.5], u=[-0.1], sigma=0.01)], units=units,
    )  # fmt: skip


@threadpool_limits.wrap(limits=1)  # how two threads share a product may depend on where in memory its factors lie
def test_a_chain_is_stored_small_and_files_of_format_1_still_load(tmp_path: Path) -> None:
    """Format 1 held the noise inside a window as full blocks, and a dot in the name of sigma."""
    problem = ff.Problem(
        "u_t = 0.1*u_xx", {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}, {},
        [ff.Initial("u = sin(pi*x)"), ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1}),
         ff.Observations(x=[0.3, 0.5], t=[0.2, 0.4], u=[0.7, 0.7], sigma=0.05)],
    )  # fmt: skip
    solution = ff.solve(problem)
    grid = {"x": np.linspace(0, 1, 5), "t": np.linspace(0, 1, 5)}
    path = solution.save(tmp_path / "run.nc")
    assert ff.load(path).predict(**grid).identical(solution.predict(**grid))
    with xr.open_dataset(path) as top, xr.open_dataset(path, group="posterior") as group:
        first, stored = top.load().assign_attrs(format_version=1), group.load()
    stored = stored.rename({"condition3_sigma": "condition3.sigma"})
    links = list(dict.fromkeys(solution.posterior.links))
    for i, link in enumerate(links):
        stored = stored.drop_vars([f"chain_inside{name}_{i}" for name in ("", "_sizes", "_directions")])
        blocks = np.concatenate([part.block.ravel() for part in link.interior.parts])
        stored[f"chain_inside_{i}"] = (f"block{i}", blocks)
        stored[f"chain_inside_sizes_{i}"] = (f"part{i}", [float(len(part.where)) for part in link.interior.parts])
    old = tmp_path / "old.nc"
    first.to_netcdf(old, engine="h5netcdf")
    stored.to_netcdf(old, engine="h5netcdf", mode="a", group="posterior")
    assert path.stat().st_size < 0.75 * old.stat().st_size
    with pytest.warns(ff.AdviceWarning, match="no checksum"):
        assert ff.load(old).predict(**grid).identical(solution.predict(**grid))


def test_seeds_of_points_and_of_the_method_are_told(tmp_path: Path) -> None:
    model = ff.paper_model(ff.problems.get("advection"), seed=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ff.AdviceWarning)
        solution = ff.solve(model, method="mean-field", epochs=1, seed=7)
    with xr.open_dataset(solution.save(tmp_path / "run.nc")) as opened:
        assert (opened.attrs["seed"], opened.attrs["method_seed"]) == ("5", "7")


def test_the_units_of_the_truth_are_those_of_the_result_and_change_no_number(tmp_path: Path) -> None:
    problem = posed(units="days")  # xarray would make durations of it
    before = problem.truth.copy(deep=True)
    solution = ff.solve(problem)
    path = solution.save(tmp_path / "run.nc")
    assert problem.truth.identical(before)  # describing a file does not write into the problem
    with xr.open_dataset(path, decode_times=False) as opened:
        assert opened["mean"].attrs["units"] == opened["truth"].attrs["units"] == "K"
        assert opened["x"].attrs["units"] == "days"
    loaded = ff.load(path)
    grid = np.linspace(0, 1, 7)
    assert loaded.predict(x=grid).identical(solution.predict(x=grid)) and loaded.problem.truth["x"].dtype == float
    assert ff.load(loaded.save(tmp_path / "again.nc")).predict(x=grid).identical(solution.predict(x=grid))


def test_a_file_without_the_later_attributes_still_predicts_what_it_did(tmp_path: Path) -> None:
    """The first files had only what a posterior needs: no CF names, no provenance, no warnings, no versions."""
    solution = ff.solve(ff.problems.get("poisson"))
    path = solution.save(tmp_path / "run.nc")
    first = {"format_version", "status", "status_help", "problem", "representation", "noise", "trace", "timings"}
    with h5py.File(path, "a") as file:  # which drops the checksum
        file.attrs["format_version"] = 1
        later = [key for key in file.attrs if key not in first | {"settings"} and not key.startswith("_")]
        for key in later:
            del file.attrs[key]
    assert {"Conventions", "warnings", "versions"} <= set(later)
    with pytest.warns(ff.AdviceWarning, match=r"run\.nc is of format 1, which has no checksum"):
        assert ff.load(path).predict(x=[0.3]).identical(solution.predict(x=[0.3]))


def test_a_file_holds_its_advice_as_values_and_as_texts(file: Path, tmp_path: Path) -> None:
    result = read(file)
    said = (Advice("modes", "too few along x", "x"), Advice("contradiction", "two values"))
    path = write(replace(result, advice=said), ff.load(file).default_grid(), tmp_path / "told.nc")
    assert read(path).advice == said and ff.load(path).warnings == ("too few along x", "two values")
    silent = read(write(replace(result, advice=None), ff.load(file).default_grid(), tmp_path / "older.nc"))
    assert silent.advice is None
