"""Measurements from CSV, NetCDF and HDF5 files with named columns."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import factorfield as ff


def test_observations_come_from_csv_netcdf_and_hdf5_alike(tmp_path: Path) -> None:
    x, u, err = np.array([0.1, 0.5, 0.9]), np.array([1.0, 2.5, -3.0]), np.array([0.1, 0.2, 0.3])
    (tmp_path / "a.csv").write_text(
        "# a comment\nposition, height ,err\n" + "\n".join(f"{a},{b},{c}" for a, b, c in zip(x, u, err, strict=True))
    )
    (tmp_path / "b.txt").write_text(
        "position height err\n" + "\n".join(f"{a} {b} {c}" for a, b, c in zip(x, u, err, strict=True))
    )
    xr.Dataset({"height": ("position", u), "err": ("position", err)}, {"position": x}).to_netcdf(
        tmp_path / "c.nc", engine="h5netcdf"
    )
    with h5py.File(tmp_path / "d.h5", "w") as stored:
        stored["position"], stored["height"], stored["err"] = x, u, err
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    for name in ("a.csv", "b.txt", "c.nc", "d.h5"):
        observed = ff.Observations.from_file(tmp_path / name, x="position", t=0.0, u="height", sigma="err")
        statement = ff.Problem("u_t = u_xx", domain, {}, [observed]).statements[1]
        assert np.array_equal(statement.target, u) and np.array_equal(statement.sigma, err)  # type: ignore[arg-type]
        assert np.array_equal(statement.points["x"], x)  # type: ignore[index]


def test_a_file_whose_columns_have_our_names_needs_no_mapping_and_grids_are_flattened(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("x;t;u;sigma\n0.1;0;1.5;0.1\n0.2;0;1.7;0.2\n")
    observed = ff.Observations.from_file(tmp_path / "own.csv")
    assert list(observed.columns) == ["x", "t", "u"] and np.array_equal(observed.sigma, [0.1, 0.2])  # type: ignore[arg-type]
    grid = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("t", "x"), coords={"t": [0.0, 1.0], "x": [0.1, 0.2, 0.3]})
    xr.Dataset({"u": grid}).to_netcdf(tmp_path / "grid.nc", engine="h5netcdf")
    observed = ff.Observations.from_file(tmp_path / "grid.nc", x="x", t="t", u="u")
    u, t, x = (np.asarray(observed.columns[name]) for name in "utx")
    assert sorted(u) == list(range(6)) and assert_allclose(u, 3 * t + 10 * x - 1) is None


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "x,t,u\n1,2\n", "3 values in line 2"), ("a.csv", "x,t,u\n1,2,abc\n", "line 2, column u"),
        ("a.csv", "1,2,3\n4,5,6\n", "header"), ("a.csv", "x,t,u\n", "at least one line"),
        ("a.csv", "x,t,v\n1,2,3\n", "'u'"), ("a.csv", "x,t,u\n1,2,\n1,3,null\n", "rows of a.csv with a value"),
        ("a.csv", "x;t;u\n1;2;0,5\n", "decimal point"), ("a.csv", "x,t,u\n0,1,0,2,0,5\n", "decimal commas"),
        ("a.csv", "# by hand\n\nx,t,u\n1,2,3\n# noon\n\n1,2,abc\n", "line 7, column u of a.csv"),
        ("a.csv", "x,t,u\n1,2,1_000\n", "a number in line 2"), ("a.csv", "x,t,u\n1,2,\u0663\n", "a number in line 2"),
        ("a.csv", "x,t,u\n1,2,inf\n", "a number in line 2"), ("a.csv", 'x,t,u\n1,2,"3\n', "a closing quote in line 2"),
        ("a.csv", "x,t,u\n1,2," + "9" * 200_000 + "x\n", "a number in line 2"),
        ("a.xlsx", "x", "ending in one of"), ("a.nc", "nonsense", "readable"), ("a.h5", "nonsense", "readable"),
    ],
)  # fmt: skip
def test_malformed_files_are_refused_with_the_place(name: str, content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ff.ProblemError, match=words):
        ff.Observations.from_file(tmp_path / name, x="x", t="t", u="u")
    with pytest.raises(ff.ProblemError, match="existing"):
        ff.Observations.from_file(tmp_path / "none.csv")


@pytest.mark.parametrize("ending", ["csv", "nc", "h5"])
def test_rows_without_a_value_are_left_out_with_one_note(ending: str, tmp_path: Path) -> None:
    x, u = np.arange(6) / 10, np.array([1.0, np.nan, 3.0, np.nan, np.nan, 6.0])
    path = tmp_path / f"a.{ending}"
    if ending == "csv":
        gaps = iter(("", "NA", "-"))
        rows = [f"{a},{next(gaps) if np.isnan(b) else b},a note" for a, b in zip(x, u, strict=True)]
        path.write_text("x,u,remark\n" + "\n".join(rows))  # words in a column that nobody asks for
    elif ending == "nc":
        xr.Dataset({"u": ("x", u)}, {"x": x}).to_netcdf(path, engine="h5netcdf")
    else:
        with h5py.File(path, "w") as stored:
            stored["x"], stored["u"] = x, u
    with pytest.warns(
        ff.AdviceWarning, match=rf"^3 of 6 rows of a\.{ending} have no value in column u and were"
    ) as told:
        observed = ff.Observations.from_file(path, x="x", t=0.0, u="u")
    assert len(told) == 1
    assert np.array_equal(observed.columns["u"], [1, 3, 6]) and np.array_equal(observed.columns["x"], [0, 0.2, 0.5])


def test_long_fields_quotes_and_line_breaks_of_all_kinds_are_read(tmp_path: Path) -> None:
    note = "n" * 300_000
    rows = f'x,remark,u\r\n0.1,"a, ""quoted"" note",1\r\n\r\n# noon\r\n0.2,{note},"2.5"\r\n'
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + rows.encode())
    observed = ff.Observations.from_file(tmp_path / "a.csv", x="x", t=0.0, u="u")
    assert np.array_equal(observed.columns["x"], [0.1, 0.2]) and np.array_equal(observed.columns["u"], [1.0, 2.5])


def test_more_rows_than_the_limit_are_refused_while_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("factorfield.problem.tables.MOST_VALUES", 300)
    (tmp_path / "a.csv").write_text("x,t,u\n" + "1,2,3\n" * 200)
    with pytest.raises(ff.ProblemError, match=r"at most 100 rows of 3 columns, received 1\d\d in a\.csv"):
        ff.Observations.from_file(tmp_path / "a.csv", x="x", t="t", u="u")
