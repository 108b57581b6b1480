"""Named columns of numbers from CSV, NetCDF and HDF5 files: what `Observations.from_file` reads."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected, nearest, shortened, shown_path
from factorfield.problem.clock import EXAMPLE, Clock, is_stamp
from factorfield.problem.hdf5 import check_numbers, is_variable, netcdf, opened

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]
CSV_ENDINGS = (".csv", ".tsv", ".txt", ".dat")
NETCDF_ENDINGS = (".nc", ".nc4", ".cdf")
HDF5_ENDINGS = (".h5", ".hdf5", ".hdf")
READABLE = ("a readable data file", "writing it again")
MOST_VALUES = 1 << 25  # numbers of one file that are read: 256 MiB, five million rows of six columns
LONGEST_LINE = 1 << 24  # characters
MISSING = ("", "na", "n/a", "nan", "null", "none", "-")  # what people write where nothing was measured


Clocks = Mapping[str, Clock]  # by the name of the column with the timestamps


def read_columns(path: str | os.PathLike[str], names: Sequence[str] | None, clocks: Clocks) -> dict[str, Array]:
    """Columns by name, all of them if no names are given; NaN where nothing was measured."""
    source, ending = _known(path)
    if ending in CSV_ENDINGS:
        return _read_csv(source, names, clocks)
    if ending in NETCDF_ENDINGS:
        return _read_netcdf(source, names, clocks)
    for name in clocks:
        raise expected(f"timestamps {name!r} in a CSV or NetCDF file", source.name, "numbers in one unit")
    return _read_hdf5(source, names)


def column_names(path: str | os.PathLike[str]) -> list[str]:
    """What a file calls its columns."""
    source, ending = _known(path)
    if ending in CSV_ENDINGS:
        with open(source, encoding="utf-8-sig", errors="replace") as file:
            return _header(_lines(file, source), source)[1]
    with opened(source, *READABLE) as (_, _, datasets):
        own = ending in NETCDF_ENDINGS
        return [name for name, item in datasets.items() if not own or ("/" not in name and is_variable(item))]


def _known(path: str | os.PathLike[str]) -> tuple[Path, str]:
    """The path and its ending, of a file that can be read."""
    source = Path(path)
    if not source.is_file():
        raise expected("an existing data file", shown_path(source), "checking the path")
    ending = source.suffix.lower()
    if ending in (*CSV_ENDINGS, *NETCDF_ENDINGS, *HDF5_ENDINGS):
        return source, ending
    known = ", ".join((*CSV_ENDINGS, *NETCDF_ENDINGS, *HDF5_ENDINGS))
    attempt = "saving it as .csv"
    if ending.startswith((".xls", ".ods", ".parquet")):
        attempt += ", or ff.Observations(frame) with the DataFrame that pandas reads"
    raise expected(f"a file ending in one of {known}", source.name, attempt)


def _check_names(names: Sequence[str] | None, known: Sequence[str], kind: str, source: Path) -> None:
    there = set(known)
    for name in names or ():
        if name not in there:
            attempt = nearest(name, known, "one of these")
            raise expected(f"a {kind} {name!r} in {source.name}", ", ".join(known) or "none", attempt)


def _read_csv(source: Path, names: Sequence[str] | None, clocks: Clocks) -> dict[str, Array]:
    """A header line with names, then numbers; separated by comma, semicolon, tab or blanks. NaN where nothing is.

    Read line by line, and only the columns asked for are kept: five million rows fit into little memory.
    """
    with open(source, encoding="utf-8-sig", errors="replace") as file:
        lines = _lines(file, source)
        separator, header = _header(lines, source)
        _check_names(names, header, "column", source)
        found = {name: array("d") for name in names or header}
        place_of = {name: place for place, name in enumerate(header)}
        wanted = [(name, place_of[name], column, clocks.get(name)) for name, column in found.items()]
        most = MOST_VALUES // len(wanted)
        for line, text in lines:
            cells = _cells(text, separator, line, source)
            if len(cells) != len(header):
                doubled = separator == "," and len(cells) == 2 * len(header)
                attempt = "decimal points in place of decimal commas" if doubled else "filling the gap"
                attempt = "a # before the lines above the header" if len(header) == 1 else attempt
                raise expected(f"{len(header)} values in line {line} of {source.name}", f"{len(cells)}", attempt)
            for name, place, column, clock in wanted:
                column.append(_entry(cells[place], clock, f"line {line}, column {name} of {source.name}"))
            if len(wanted[0][2]) > most:
                _check_rows(len(wanted[0][2]), list(found), source)
    if not wanted[0][2]:
        raise expected("a header line and at least one line of numbers", f"one line in {source.name}", "x,t,u")
    return {name: np.frombuffer(column) for name, column in found.items()}


def _header(lines: Iterator[tuple[int, str]], source: Path) -> tuple[str | None, list[str]]:
    """What separates columns, and their names."""
    line, first = next(lines, (0, ""))
    if not line:
        raise expected("a header line and at least one line of numbers", f"none in {source.name}", "x,t,u")
    separator = next((s for s in (",", ";", "\t") if s in first), None)
    header = [name.strip() for name in _cells(first, separator, line, source)]
    numbers = [_number(name) is not None for name in header]
    if len(set(header)) != len(header) or any(numbers):
        attempt = "x,t,u as the first line" if all(numbers) else "a # before lines above the header"
        attempt = "other names for some" if not any(numbers) else attempt
        raise expected("a header line with different names", shortened(first), attempt)
    return separator, header


def _lines(file: TextIO, source: Path) -> Iterator[tuple[int, str]]:
    """Lines that say something, with their numbers in the file: no blank ones, no comments."""
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            received = f"a longer one, line {number} of {source.name}"
            raise expected(f"lines of less than {LONGEST_LINE >> 20} million characters", received, "line breaks")
        start = line.lstrip()
        if start and not start.startswith("#"):
            yield number, line.rstrip("\n")


def _cells(line: str, separator: str | None, number: int, source: Path) -> list[str]:
    """The entries of a line; those in quotes may hold the separator."""
    if separator is None:
        return line.split()
    if '"' not in line:
        return line.split(separator)
    parts = line.split('"')  # outside and inside of quotes by turns
    if len(parts) % 2 == 0:
        raise expected(f"a closing quote in line {number} of {source.name}", shortened(line, 30), 'a second "')
    cells = [""]
    for index, part in enumerate(parts):
        if index % 2:
            cells[-1] += part
        else:
            first, *others = part.split(separator)
            cells[-1] += first
            cells += others
    return cells


def _number(text: str) -> float | None:
    """As people write numbers; Python would also take 1_000 and the digits of other scripts."""
    try:
        return float(text) if text.isascii() and "_" not in text and "n" not in text.lower() else None
    except ValueError:
        return None


def _entry(text: str, clock: Clock | None, where: str) -> float:
    """A number or a timestamp; NaN for what people write where nothing was measured; refused otherwise."""
    value = _number(text) if clock is None else None
    if value is not None:
        return value
    entry = text.strip()
    if entry.lower() in MISSING:
        return math.nan
    if clock is not None:
        return clock.number(entry, where)
    decimal = entry.replace(",", ".", 1)
    if _number(decimal) is not None:
        raise expected(f"a decimal point in {where}", repr(entry), f"{decimal}, and so in the whole file")
    attempt = f"t = {EXAMPLE} for timestamps" if is_stamp(entry) else "dropping that line"
    raise expected(f"a number in {where}", repr(shortened(text, 30)), attempt)


def _read_netcdf(source: Path, names: Sequence[str] | None, clocks: Clocks) -> dict[str, Array]:
    """Variables and coordinates, broadcast against each other and flattened."""
    import xarray as xr

    with opened(source, *READABLE) as (file, _, datasets):
        known = [name for name, item in datasets.items() if "/" not in name and is_variable(item)]
        _check_names(names, known, "variable", source)
        wanted = list(names or known)
        check_numbers({name: datasets[name] for name in wanted}, 8 * MOST_VALUES)
        with netcdf(file, wanted, datasets) as lazy:
            sizes = {str(dim): size for name in wanted for dim, size in lazy[name].sizes.items()}
            _check_rows(math.prod(sizes.values()), wanted, source)
            loaded = {name: lazy[name].load() for name in wanted}
            loaded |= {name: _since(loaded[name], clock, source) for name, clock in clocks.items()}
            arrays = xr.broadcast(*loaded.values())
            return {name: np.asarray(a.values, float).ravel() for name, a in zip(wanted, arrays, strict=True)}


def _since(stamps: xr.DataArray, clock: Clock, source: Path) -> xr.DataArray:
    """Times that say their own unit and origin, "hours since 2024-05-01", in those asked for."""
    import pandas as pd
    import xarray as xr

    decoded = xr.decode_cf(xr.Dataset({"stamps": stamps.variable}))["stamps"]
    numbers = clock.numbers(pd.Series(decoded.values.ravel()), f"variable {clock.column} of {source.name}")
    return xr.DataArray(numbers.reshape(decoded.shape), dims=stamps.dims)


def _read_hdf5(source: Path, names: Sequence[str] | None) -> dict[str, Array]:
    with opened(source, *READABLE) as (_, _, datasets):
        _check_names(names, list(datasets), "dataset", source)
        wanted = {name: datasets[name] for name in names or datasets}
        check_numbers(wanted, 8 * MOST_VALUES)
        return {name: np.asarray(dataset[()], float).ravel() for name, dataset in wanted.items()}


def _check_rows(rows: int, columns: Sequence[str], source: Path) -> None:
    most = MOST_VALUES // max(1, len(columns))
    if rows > most:
        raise expected(f"at most {most} rows of {len(columns)} columns", f"{rows} in {source.name}", "a part of them")
