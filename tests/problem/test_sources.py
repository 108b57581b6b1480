"""Measurements from tables as loggers and libraries hold them: mappings, wide tables, DataFrames, xarray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import factorfield as ff

ROD = {"x": ff.Interval(0, 100), "t": ff.Interval(0, 48)}
CLOCK = {"column": "time", "unit": "h", "origin": "2024-05-01"}
WIDE = "time,T1,T2,note\n2024-05-01 00:00,1,4,a\n2024-05-01 06:00,2,,b\n2024-05-01 12:00,3,6,c\n"
LONG = "x,time,temp,place\n5,2024-05-01 00:00,1,left\n5,2024-05-01 06:00,2,left\n50,2024-05-01 06:00,5,right\n"


def statement(*conditions: ff.Observations) -> Any:
    return ff.Problem("u_t = u_xx", ROD, {}, list(conditions)).statements[1]


def written(tmp_path: Path, text: str) -> Path:
    (tmp_path / "log.csv").write_text(text)
    return tmp_path / "log.csv"


def test_a_wide_table_gives_each_sensor_its_place_and_leaves_its_gaps_out(tmp_path: Path) -> None:
    sensors = {"T1": {"x": 5.0}, "T2": {"x": 50.0, "sigma": 0.2}}
    with pytest.warns(ff.AdviceWarning, match=r"^1 of 6 readings of log\.csv has no value in column T2 and was"):
        observed = ff.Observations.from_file(written(tmp_path, WIDE), t=CLOCK, u=sensors, sigma=0.1)
    found = statement(observed)
    rows = np.column_stack([found.points["x"], found.points["t"], found.target, found.sigma])
    wanted = [[5, 0, 1, 0.1], [5, 6, 2, 0.1], [5, 12, 3, 0.1], [50, 0, 4, 0.2], [50, 12, 6, 0.2]]
    assert np.array_equal(rows, wanted)


def test_a_partial_mapping_takes_columns_called_like_axes_and_fields(tmp_path: Path) -> None:
    found = statement(ff.Observations.from_file(written(tmp_path, LONG), t=CLOCK, u="temp", sigma=0.1))
    assert np.array_equal(found.points["x"], [5, 5, 50]) and np.array_equal(found.target, [1, 2, 5])
    path = written(tmp_path, LONG.replace("temp", "u"))
    found = statement(ff.Observations.from_file(path, t=CLOCK, sigma=0.1))
    assert np.array_equal(found.points["x"], [5, 5, 50]) and np.array_equal(found.target, [1, 2, 5])
    with pytest.raises(ff.ProblemError, match="none for x; try"):
        statement(ff.Observations.from_file(written(tmp_path, LONG.replace("x,", "place_cm,")), t=CLOCK, u="temp"))


def test_frames_and_xarray_give_the_same_measurements_as_their_file(tmp_path: Path) -> None:
    path = written(tmp_path, LONG)
    wanted = statement(ff.Observations.from_file(path, t=CLOCK, u="temp", sigma=0.1))
    frame = pd.read_csv(path, parse_dates=["time"])
    texts = pd.read_csv(path)
    indexed = frame.set_index(["time", "x"])[["temp"]]
    zoned = frame.assign(time=frame["time"].dt.tz_localize("UTC"))
    for data, clock in (
        (frame, CLOCK), (texts, CLOCK), (indexed, CLOCK), (zoned, {**CLOCK, "origin": "2024-05-01T00:00Z"}),
    ):  # fmt: skip
        found = statement(ff.Observations(data, t=clock, u="temp", sigma=0.1))
        assert np.array_equal(found.target, wanted.target)
        assert all(np.array_equal(found.points[axis], wanted.points[axis]) for axis in ("x", "t"))
    times = pd.to_datetime(["2024-05-01 00:00", "2024-05-01 06:00"])
    array = xr.DataArray(
        [[1.0, np.nan], [2.0, 5.0]], dims=("time", "x"), coords={"time": times, "x": [5.0, 50.0]}, name="u"
    )
    with pytest.warns(ff.AdviceWarning, match="1 of 4 rows"):
        found = statement(ff.Observations(array, t=CLOCK, sigma=0.1))
    assert sorted(zip(*found.points.values(), found.target, strict=True)) == [(0, 5, 1), (6, 5, 2), (6, 50, 5)]
    array.dropna("time").to_netcdf(tmp_path / "a.nc", engine="h5netcdf")  # its time says its own unit and origin
    found = statement(ff.Observations.from_file(tmp_path / "a.nc", t=CLOCK, u="u", sigma=0.1))
    assert sorted(zip(*found.points.values(), found.target, strict=True)) == [(6, 5, 2), (6, 50, 5)]


def test_a_frame_with_our_names_needs_no_mapping_whatever_else_it_holds() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0], "t": [0, 0], "u": [3.0, 4.0], "flag": [0, 1], "note": ["a", "b"]})
    assert np.array_equal(statement(ff.Observations(frame, sigma=0.1)).target, [3, 4])
    assert np.array_equal(statement(ff.Observations(frame.assign(sigma=[0.1, 0.2]))).sigma, [0.1, 0.2])
    named = ff.Observations(frame.rename(columns={"u": "temp"}), u="temp", t=0.0, sigma=0.1)
    assert np.array_equal(statement(named).target, [3, 4])


def test_the_unit_of_stamps_is_the_unit_of_time_and_must_be_the_given_one(tmp_path: Path) -> None:
    observed = ff.Observations.from_file(written(tmp_path, LONG), t=CLOCK, u="temp", sigma=0.1)
    assert ff.Problem("u_t = u_xx", ROD, {}, [observed]).units == {"t": "h"}
    with pytest.raises(ff.ProblemError, match=r"timestamps in the unit of t, s, received unit = 'h'"):
        ff.Problem("u_t = u_xx", ROD, {}, [observed], units={"t": "s"})


def test_stamps_that_repeat_are_told(tmp_path: Path) -> None:
    path = written(tmp_path, LONG + LONG.splitlines()[1] + "\n")
    with pytest.warns(ff.AdviceWarning, match="^1 of 4 observations of u have the time and place of another"):
        statement(ff.Observations.from_file(path, t=CLOCK, u="temp", sigma=0.1))


@pytest.mark.parametrize(
    ("mapping", "words"),
    [
        ({"t": "time", "u": "T1", "x": 5.0}, "for timestamps"), ({"t": CLOCK, "u": {"T1": 5.0}}, "place of sensor T1"),
        ({"t": CLOCK, "u": {"T1": {"x": 5.0}, "T2": {}}}, "x of every sensor, received no place of T2"),
        ({"t": CLOCK, "u": ["T1", "T2"]}, "columns with the places of their sensors, received names alone"),
        ({"t": CLOCK, "u": {"T1": {"x": 5.0}, "T2": {"y": 1.0}}}, "x of every sensor"),
        ({"t": CLOCK, "x": 3.0, "u": {"T1": {"x": 5.0}}}, "x once"), ({"t": CLOCK, "u": {"T3": {"x": 5.0}}}, "'T3'"),
        ({"t": CLOCK, "u": "T1", "x": 5.0, "sigma": "2 %"}, "log-normal"),
    ],
)  # fmt: skip
def test_mappings_that_say_too_little_are_refused(mapping: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ff.ProblemError, match=words):
        ff.Observations.from_file(written(tmp_path, WIDE), **mapping)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([1, 2], "a pandas DataFrame or an xarray object"), (xr.DataArray([1.0], dims="x"), "without a name"),
        (pd.DataFrame({"x": [1.0], "t": pd.to_datetime(["2024-05-01"]), "u": [1.0]}), r"numbers in column t, received"),
        (pd.DataFrame({"x": ["left"], "t": [0.0], "u": [1.0]}), "numbers in column x, received 'left'"),
        (pd.DataFrame({"x": [0.1], "t": ["2024-05-01 08:00"], "u": [1.0]}), "try t={'column': 't', 'unit': 'h'"),
        (xr.DataArray([1.0], dims="x", name="u"), "none for x"),  # no places: 0, 1, 2 would be guesses
    ],
)  # fmt: skip
def test_tables_without_numbers_or_places_are_refused(data: object, words: str) -> None:
    with pytest.raises(ff.ProblemError, match=words):
        statement(ff.Observations(data, u="u", sigma=0.1, t=0.0 if isinstance(data, xr.DataArray) else "t"))


def test_exchanged_columns_are_seen(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [3.0, 30.0], "t": [60.0, 40.0], "u": [3.0, 4.0]})
    with pytest.raises(ff.ProblemError, match="try exchanging the columns of t and x"):
        statement(ff.Observations(frame, sigma=0.1))
