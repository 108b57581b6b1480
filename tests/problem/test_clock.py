"""Timestamps become the time since an origin in a stated unit."""

from __future__ import annotations

import pandas as pd
import pytest

import factorfield as ff
from factorfield.problem.clock import Clock


@pytest.mark.parametrize(
    ("stamp", "hours"),
    [
        ("2024-05-01 08:30", 0.5), ("2024-05-01T08:30:00", 0.5), ("2024/05/01 8:30", 0.5), ("01.05.2024 08:30", 0.5),
        ("1.5.2024 8:30:00", 0.5), ("2024-05-02", 16.0), ("2024-05-01 08:00:00.900", 0.00025),
        ("2024-05-01 08:00:00,900", 0.00025), ("2024-04-30 08:00", -24.0), ("2024-02-29 08:00", -24.0 * 62),
    ],
)  # fmt: skip
def test_stamps_of_common_loggers_are_read(stamp: str, hours: float) -> None:
    assert Clock("time", "h", "2024-05-01 08:00").number(stamp, "a line") == pytest.approx(hours, abs=1e-12)


def test_units_scale_and_zones_are_converted() -> None:
    day = {unit: Clock("time", unit, "2024-05-01").number("2024-05-02", "") for unit in ("ms", "s", "min", "h", "d")}
    assert day == {"ms": 864e5, "s": 86400.0, "min": 1440.0, "h": 24.0, "d": 1.0}
    clock = Clock("time", "h", "2024-05-01T00:00+02:00")
    assert clock.number("2024-05-01 00:00Z", "") == 2.0
    assert clock.number("2024-10-27 02:30+02:00", "") + 1.0 == clock.number(
        "2024-10-27 02:30+01:00", ""
    )  # clocks set back
    stamps = pd.Series(pd.to_datetime(["2024-05-01 00:00", None]).tz_localize("UTC"))
    assert clock.numbers(stamps, "")[0] == 2.0 and pd.isna(clock.numbers(stamps, "")[1])


@pytest.mark.parametrize(
    ("entry", "stamp", "words"),
    [
        ({"unit": "months"}, "2024-05-01", "a unit of time among"), ({"origin": "May"}, "2024-05-01", "an origin such"),
        ({"origin": "2024-13-01"}, "2024-05-01", "an origin such as"), ({}, "01/05/2024 08:00", r"%d/%m/%Y"),
        ({}, "2024-02-30", "a timestamp in line 2"), ({}, "12.5", "the name 'time' alone"), ({}, "noon", "%d %b"),
        ({}, "2024-05-01T08:00Z", "an origin with a time zone"),
        ({"origin": "2024-05-01T00:00Z"}, "2024-05-01", "with a time zone in line 2"),
        ({"format": "%m/%d/%Y"}, "31/05/2024", "another format"), ({"zone": "UTC"}, "2024-05-01", "keys of t among"),
    ],
)  # fmt: skip
def test_what_is_unclear_is_refused_with_a_way_out(entry: dict[str, str], stamp: str, words: str) -> None:
    given = {"column": "time", "unit": "h", "origin": "2024-05-01", **entry}
    with pytest.raises(ff.ProblemError, match=words):
        Clock.of(given, "t").number(stamp, "line 2")


def test_a_format_settles_what_is_unclear() -> None:
    american = Clock("time", "d", "2024-05-01", "%m/%d/%Y %I:%M %p")
    assert american.number("05/02/2024 06:00 PM", "") == 1.75


@pytest.mark.parametrize("form", ["%Y%Y", "%c%Y", "%Q", "%"])
def test_a_format_that_makes_no_pattern_is_refused_in_one_line(form: str) -> None:
    with pytest.raises(ff.ProblemError, match="another format than"):
        Clock("time", "h", "2024-05-01", form).number("2024-05-01", "a line")


def test_units_in_words_and_origins_as_dates_are_what_they_say() -> None:
    for unit in ("hour", "hours", "hr"):
        assert Clock.of({"column": "time", "unit": unit, "origin": pd.Timestamp("2024-05-01")}, "t").unit == "h"
    assert Clock.of({"column": "time", "unit": "days", "origin": "2024-05-01"}, "t").number("2024-05-03", "") == 2.0
