"""Timestamps as numbers: the time since an origin, in a stated unit. Nothing is guessed: both are given."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected, nearest, shortened

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
SECONDS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "week": 604800.0}
WORDS = {"sec": "s", "second": "s", "minute": "min", "hr": "h", "hour": "h", "day": "d", "wk": "week"}
EXAMPLE = "{ column = 'time', unit = 'h', origin = '2024-05-01' }"
DATE = re.compile(
    r"(?:(\d{4})[-/](\d{1,2})[-/](\d{1,2})|(\d{1,2})\.(\d{1,2})\.(\d{4}))(?:[T ]+(\d{1,2}):(\d\d)(.*))?", re.ASCII
)
EXCEL = (25569.0, 73051.0)  # the years 1970 to 2100 in its days
UNCLEAR = re.compile(r"\d{1,2}[/-]\d{1,2}[/-]\d{2,4}\b", re.ASCII)  # is 01/05/2024 in May or in January?


@dataclass(frozen=True)
class Clock:
    """How a column of timestamps becomes numbers: {"column": "time", "unit": "h", "origin": "2024-05-01"}.

    `format` is for stamps that are neither ISO nor 31.05.2024 08:00, in the codes of strptime: "%m/%d/%Y %I:%M %p".
    """

    column: str
    unit: str
    origin: str
    format: str = ""

    def __post_init__(self) -> None:
        if self.unit not in SECONDS:
            attempt = nearest(self.unit, SECONDS)
            raise expected(f"a unit of time among {', '.join(SECONDS)}", repr(self.unit), attempt)
        self.start  # noqa: B018  an origin that is no date is told here

    @classmethod
    def of(cls, entry: Mapping[str, object], axis: str) -> Clock:
        """From the mapping that a user wrote for an axis."""
        known = ("column", "unit", "origin", "format")
        for key in entry:
            if key not in known:
                raise expected(f"keys of {axis} among {', '.join(known)}", key, nearest(str(key), known))
        if isinstance(entry.get("origin"), date):  # a datetime, or pandas' Timestamp, is one too
            entry = {**entry, "origin": str(entry["origin"])}
        for key in known[:3]:
            if not isinstance(entry.get(key), str) or not entry[key]:
                received = repr(entry[key]) if key in entry else "none"
                raise expected(f"{key} of the timestamps of {axis} as text", received, f"{axis} = {EXAMPLE}")
        text = {key: str(value) for key, value in entry.items()}
        return cls(**{**text, "unit": WORDS.get(text["unit"].removesuffix("s"), text["unit"])})

    @cached_property
    def start(self) -> datetime:
        try:
            found = _plain(self.origin)
        except ValueError:
            found = None
        if found is None:
            raise expected("an origin such as '2024-05-01' or '2024-05-01 08:00'", repr(self.origin), "an ISO date")
        return found

    def number(self, text: str, where: str) -> float:
        """One timestamp as a number; `where` tells which in an error."""
        entry = text.strip()
        try:
            stamp = datetime.strptime(entry, self.format) if self.format else _plain(entry)
        except (ValueError, re.error):  # strptime makes a pattern of the format, which may name a part twice
            stamp = None
        if stamp is None:
            raise expected(f"a timestamp in {where}", repr(shortened(entry, 30)), self._remedy(entry))
        return self._since(stamp, where)

    def numbers(self, stamps: pd.Series, where: str) -> Array:
        """A pandas column of dates, or of their texts; NaN where there is none."""
        if stamps.dtype.kind == "M":
            zone = stamps.dt.tz is not None
            self._check_zone(zone, str(stamps.iloc[0]) if len(stamps) else "", where)
            return np.asarray((stamps - self.start).dt.total_seconds(), float) / SECONDS[self.unit]
        if stamps.dtype.kind in "iuf":
            received = str(stamps.iloc[0]) if len(stamps) else "numbers"
            raise expected(f"timestamps in {where}", received, self._remedy(received))
        return np.array(
            [np.nan if gap else self.number(str(v), where) for v, gap in zip(stamps, stamps.isna(), strict=True)]
        )

    def _since(self, stamp: datetime, where: str) -> float:
        self._check_zone(stamp.tzinfo is not None, stamp.isoformat(" "), where)
        return (stamp - self.start).total_seconds() / SECONDS[self.unit]

    def _check_zone(self, zone: bool, stamp: str, where: str) -> None:
        if zone and self.start.tzinfo is None:
            attempt = f"origin = '{self.start.isoformat(' ', 'minutes')}+00:00' if it was in UTC"
            raise expected(f"an origin with a time zone, as the timestamps in {where} have", repr(self.origin), attempt)
        if not zone and self.start.tzinfo is not None:
            attempt = f"origin = '{self.start.replace(tzinfo=None).isoformat(' ', 'minutes')}' in the logger's own time"
            raise expected(f"timestamps with a time zone in {where}, as the origin has", repr(stamp), attempt)

    def _remedy(self, entry: str) -> str:
        if self.format:
            return f"another format than {self.format!r}"
        if UNCLEAR.match(entry):
            return "format = '%d/%m/%Y %H:%M' or '%m/%d/%Y %H:%M', whichever it is"
        if DATE.fullmatch(entry):
            return "checking that line: the calendar has no such time"
        try:
            number = float(entry)
        except ValueError:
            return "format = '%d %b %Y %H:%M', as your logger writes them"
        if EXCEL[0] < number < EXCEL[1]:
            return "dates in that column, such as 2024-05-01 08:00: these look like Excel's days since 1899-12-30"
        return f"the name {self.column!r} alone, if these are numbers in {self.unit} already"


def is_stamp(text: str) -> bool:
    """Does an entry that is no number look like a timestamp?"""
    try:
        return _plain(text.strip()) is not None or UNCLEAR.match(text.strip()) is not None
    except ValueError:
        return False


def _plain(text: str) -> datetime | None:
    """ISO dates with - or /, and days first where points separate them; None if it is neither."""
    found = DATE.fullmatch(text)
    if found is None:
        return None
    year, month, day = (found[1], found[2], found[3]) if found[1] else (found[6], found[5], found[4])
    on_day = f"{year}-{int(month):02}-{int(day):02}"
    if found[7] is None:
        return datetime.fromisoformat(on_day)
    return datetime.fromisoformat(f"{on_day}T{int(found[7]):02}:{found[8]}{found[9].replace(' ', '')}")


def checked_unit(axis: str, unit: str, given: str | None) -> str:
    """The unit in which timestamps were counted, if it is the one that the problem names for its time."""
    if given is not None and given != unit:
        raise expected(f"timestamps in the unit of {axis}, {given}", f"unit = {unit!r}", f"unit = {given!r}")
    return unit
