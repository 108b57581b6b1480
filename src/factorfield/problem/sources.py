"""Where measurements come from: a file, a pandas DataFrame or an xarray object, and how its columns are named here.

A mapping says per axis and field which column holds it: a name, one number, timestamps (clock.py), or for a table
with a column per sensor the columns with their places: u={"T1": {"x": 5.0}, "T2": {"x": 50.0}}.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorfield.errors import expected, nearest, shortened
from factorfield.problem.clock import Clock, is_stamp
from factorfield.problem.tables import Clocks, column_names, read_columns

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Column = str | float | Mapping[str, Any]  # a column's name, one number, timestamps, or sensors with their places


class Source(Protocol):
    """Named columns that can be read."""

    @property
    def name(self) -> str: ...

    def names(self) -> list[str]: ...

    def read(self, names: Sequence[str] | None, clocks: Clocks) -> dict[str, Array]: ...


@dataclass(frozen=True)
class FileSource:
    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    def names(self) -> list[str]:
        return column_names(self.path)

    def read(self, names: Sequence[str] | None, clocks: Clocks) -> dict[str, Array]:
        return read_columns(self.path, names, clocks)


@dataclass(frozen=True, eq=False)
class FrameSource:
    frame: pd.DataFrame
    name: str = "the table"

    @classmethod
    def of(cls, data: object) -> FrameSource:
        """From a DataFrame, whose index counts as columns, or an xarray object, whose coordinates do."""
        import pandas as pd
        import xarray as xr

        if isinstance(data, xr.DataArray):
            if data.name is None:
                raise expected("a DataArray with the name of its field", "one without a name", "array.rename('u')")
            data = data.to_dataset()
        if isinstance(data, xr.Dataset):
            table = data.to_dataframe().reset_index()
            return cls(table.drop(columns=[dim for dim in data.dims if dim not in data.coords]))  # 0, 1, 2: no places
        if isinstance(data, pd.DataFrame):
            has_own = any(name is not None for name in data.index.names) or isinstance(data.index, pd.DatetimeIndex)
            return cls(data.reset_index() if has_own else data)
        attempt = f"ff.Observations.from_file({data!r}, ...)" if isinstance(data, str) else "x=..., t=..., u=..."
        raise expected("a pandas DataFrame or an xarray object, or each column by name", type(data).__name__, attempt)

    def names(self) -> list[str]:
        return [str(name) for name in self.frame.columns]

    def read(self, names: Sequence[str] | None, clocks: Clocks) -> dict[str, Array]:
        """All columns of numbers, if no names are given."""
        numeric = [str(name) for name in self.frame.columns if self.frame[name].dtype.kind in "iuf"]
        wanted = list(names) if names is not None else numeric
        for name in wanted:
            if name not in self.names():
                raise expected(
                    f"a column {name!r}", ", ".join(self.names()), nearest(name, self.names(), "one of these")
                )
        return {name: self._column(name, clocks.get(name)) for name in wanted}

    def _column(self, name: str, clock: Clock | None) -> Array:
        values, where = self.frame[name], f"column {name}"
        if values.ndim != 1:
            raise expected(f"one {where}", f"{values.shape[1]} of that name", "different names")
        if clock is not None:
            return clock.numbers(values, where)
        if values.dtype.kind == "M":
            attempt = f"t={{'column': {name!r}, 'unit': 'h', 'origin': '{values.min():%Y-%m-%d}'}}"
            raise expected(f"numbers in {where}", "timestamps", attempt)
        try:
            return np.asarray(values.to_numpy(dtype=float, na_value=np.nan), float)
        except (TypeError, ValueError):
            entry = str(next((v for v in values if not isinstance(v, int | float)), values.iloc[0]))
            stamps = f"t={{'column': {name!r}, 'unit': 'h', 'origin': {entry!r}}}"
            remedy = stamps if is_stamp(entry) else "pandas.to_numeric"
            raise expected(f"numbers in {where}", repr(shortened(entry, 30)), remedy) from None


class Assembled(NamedTuple):
    columns: dict[str, ArrayLike]  # axes and field, each an array or one number
    sigma: ArrayLike | None
    units: dict[str, str]  # of axes whose numbers were timestamps
    notes: tuple[str, ...]  # what a user should know


def assembled(source: Source, mapping: Mapping[str, Column], sigma: ArrayLike | str | None) -> Assembled:
    """Columns under our names, without the rows that lack a value; a note says how many there were."""
    clocks = {ours: Clock.of(entry, ours) for ours, entry in mapping.items() if _is_clock(entry)}
    wide = {ours: entry for ours, entry in mapping.items() if isinstance(entry, Mapping) and not _is_clock(entry)}
    if len(wide) > 1:
        raise expected("sensors in columns for one field", " and ".join(wide), "one Observations for each field")
    for ours, entry in mapping.items():
        if isinstance(entry, Sequence) and not isinstance(entry, str) and all(isinstance(v, str) for v in entry):
            attempt = f"{ours}={ {name: {'x': 0.1} for name in entry[:2]} }"
            raise expected(f"a column for {ours}, or columns with the places of their sensors", "names alone", attempt)
    named = {ours: entry for ours, entry in mapping.items() if isinstance(entry, str)}
    named |= {ours: clock.column for ours, clock in clocks.items()}
    sensors = [column for entry in wide.values() for column in entry]
    if isinstance(sigma, str) and "%" in sigma and sigma not in source.names():
        attempt = "sigma in units of the value, or noise='log-normal' with sigma=0.02 for 2 %"
        raise expected("sigma as a number or the name of a column", repr(sigma), attempt)
    wanted = [*named.values(), *sensors, *([sigma] if isinstance(sigma, str) else [])]
    found = source.read(list(dict.fromkeys(wanted)), {clock.column: clock for clock in clocks.values()})
    columns: dict[str, Any] = {
        ours: found[named[ours]] if ours in named else entry for ours, entry in mapping.items() if ours not in wide
    }
    spread: ArrayLike | None = found[sigma] if isinstance(sigma, str) else sigma
    labels = dict(named)
    for ours, entry in wide.items():
        columns, spread = _stacked(columns, spread, ours, entry, found)
        labels[ours] = ", ".join(name for name in sensors if np.isnan(found[name]).any())
    what = f"{'readings' if wide else 'rows'} of {source.name}"
    columns, spread, notes = _without_gaps(columns, spread, labels, what)
    return Assembled(columns, spread, {ours: clock.unit for ours, clock in clocks.items()}, notes)


def _is_clock(entry: object) -> TypeGuard[Mapping[str, object]]:
    if not isinstance(entry, Mapping) or isinstance(entry.get("column"), Mapping):  # a sensor may be called so
        return False
    return any(key in entry for key in ("column", "unit", "origin"))


def _stacked(
    columns: Mapping[str, ArrayLike], sigma: ArrayLike | None, field: str, sensors: Mapping[str, object],
    found: Mapping[str, Array],
) -> tuple[dict[str, ArrayLike], ArrayLike | None]:  # fmt: skip
    """A column per sensor as one column: all times of the first sensor, then all of the second."""
    places: dict[str, list[float]] = {}
    sigmas: list[ArrayLike | None] = []
    if not sensors:
        attempt = f"{field}={{'T1': {{'x': 0.1}}}}"
        raise expected(f"columns of {field} with the places of their sensors", "none", attempt)
    for column, entry in sensors.items():
        example = f"{field}={{{column!r}: {{'x': 0.1}}}}"
        if not isinstance(entry, Mapping) or any(not isinstance(value, int | float) for value in entry.values()):
            raise expected(f"the place of sensor {column}, one number per axis", entry, example)
        place = {axis: float(value) for axis, value in entry.items() if axis != "sigma"}
        sigmas.append(entry.get("sigma", sigma))
        if not place or field in place or (places and set(place) != set(places)):
            wanted = f"{', '.join(places)} of every sensor" if places else f"the place of sensor {column}"
            raise expected(wanted, f"{', '.join(place)} of {column}" if place else f"no place of {column}", example)
        for axis, value in place.items():
            if axis in columns:
                raise expected(f"{axis} once: of the sensors, or as a column", "both", f"leaving {axis}= out")
            places.setdefault(axis, []).append(value)
    rows = len(found[next(iter(sensors))])
    stacked: dict[str, ArrayLike] = {
        name: np.tile(np.asarray(values, float), len(sensors)) if np.ndim(values) else values
        for name, values in columns.items()
    }
    stacked |= {axis: np.repeat(values, rows) for axis, values in places.items()}
    stacked[field] = np.concatenate([found[column] for column in sensors])
    if all(each is None for each in sigmas):
        return stacked, None
    if any(each is None for each in sigmas):
        raise expected("sigma of every sensor, or one for all", "none for some", "sigma=0.1 beside them")
    return stacked, np.concatenate([np.broadcast_to(np.asarray(each, float), (rows,)) for each in sigmas])


def _without_gaps(
    columns: Mapping[str, ArrayLike], sigma: ArrayLike | None, labels: Mapping[str, str], what: str
) -> tuple[dict[str, ArrayLike], ArrayLike | None, tuple[str, ...]]:
    """Only the rows that have a value in every column; a note says how many had none."""
    arrays = {name: np.asarray(values, float) for name, values in columns.items() if np.ndim(values)}
    if sigma is not None and np.ndim(sigma):
        arrays["sigma"] = np.asarray(sigma, float)
    gaps = [name for name, values in arrays.items() if np.isnan(values).any()]
    if not gaps or len({len(values) for values in arrays.values()}) != 1:  # other lengths are refused where they meet
        return dict(columns), sigma, ()
    whole = ~np.any([np.isnan(arrays[name]) for name in gaps], axis=0)
    where = f"in column {', '.join(labels.get(name, name) for name in gaps)}"
    if not whole.any():
        raise expected(f"{what} with a value {where}", "none", "another column")
    count = len(whole) - int(whole.sum())
    has, was = ("has", "was") if count == 1 else ("have", "were")
    note = f"{count} of {len(whole)} {what} {has} no value {where} and {was} left out"
    kept: dict[str, ArrayLike] = {name: arrays[name][whole] if name in arrays else v for name, v in columns.items()}
    return kept, arrays["sigma"][whole] if "sigma" in arrays else sigma, (note,)
