"""Named columns of numbers from CSV, NetCDF and HDF5 files: what `Observations.from_file` reads."""

from __future__ import annotations

import math
import os
import warnings
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import AdviceWarning, expected, nearest, shortened, shown_path
from factorfield.problem.hdf5 import check_numbers, is_variable, opened

Array = NDArray[np.float64]
CSV_ENDINGS = (".csv", ".tsv", ".txt", ".dat")
NETCDF_ENDINGS = (".nc", ".nc4", ".cdf")
HDF5_ENDINGS = (".h5", ".hdf5", ".hdf")
READABLE = ("a readable data file", "writing it again")
MOST_VALUES = 1 << 25  # numbers of one file that are read: 256 MiB, five million rows of six columns
LONGEST_LINE = 1 << 24  # characters
CHECKED_EVERY = 1 << 16  # rows after which their number is compared with the limit
MISSING = ("", "na", "n/a", "nan", "null", "none", "-")  # what people write where nothing was measured


def read_columns(path: str | os.PathLike[str], names: Sequence[str] | None = None) -> dict[str, Array]:
    """Equally long columns by name, all of them if no names are given; rows without a value are left out."""
    source = Path(path)
    if not source.is_file():
        raise expected("an existing data file", shown_path(source), "checking the path")
    return _without_gaps(_read(source, names), source)


def _read(source: Path, names: Sequence[str] | None) -> dict[str, Array]:
    ending = source.suffix.lower()
    if ending in CSV_ENDINGS:
        return _read_csv(source, names)
    if ending in NETCDF_ENDINGS:
        return _read_netcdf(source, names)
    if ending in HDF5_ENDINGS:
        return _read_hdf5(source, names)
    known = ", ".join((*CSV_ENDINGS, *NETCDF_ENDINGS, *HDF5_ENDINGS))
    raise expected(f"a file ending in one of {known}", source.name, "saving it as .csv")


def _without_gaps(columns: dict[str, Array], source: Path) -> dict[str, Array]:
    """Only the rows that have a value in every column; one note says how many had none."""
    lengths = {len(column) for column in columns.values()}
    gaps = [name for name, column in columns.items() if np.isnan(column).any()]
    if not gaps or len(lengths) != 1:  # columns of different lengths are refused where they meet
        return columns
    whole = ~np.any([np.isnan(columns[name]) for name in gaps], axis=0)
    where = f"in column {', '.join(gaps)}"
    if not whole.any():
        raise expected(f"at least one row of {source.name} with a value {where}", "none", "another column")
    count = len(whole) - int(whole.sum())
    has, was = ("has", "was") if count == 1 else ("have", "were")
    note = f"{count} of {len(whole)} rows of {source.name} {has} no value {where} and {was} left out"
    warnings.warn(note, AdviceWarning, stacklevel=3)
    return {name: column[whole] for name, column in columns.items()}


def _check_names(names: Sequence[str] | None, known: Sequence[str], kind: str, source: Path) -> None:
    for name in names or ():
        if name not in known:
            attempt = nearest(name, known, "one of these")
            raise expected(f"a {kind} {name!r} in {source.name}", ", ".join(known) or "none", attempt)


def _read_csv(source: Path, names: Sequence[str] | None) -> dict[str, Array]:
    """A header line with names, then numbers; separated by comma, semicolon, tab or blanks. NaN where nothing is.

    Read line by line, and only the columns asked for are kept: five million rows fit into little memory.
    """
    with open(source, encoding="utf-8-sig", errors="replace") as file:
        lines = _lines(file, source)
        line, first = next(lines, (0, ""))
        if not line:
            raise expected("a header line and at least one line of numbers", f"none in {source.name}", "x,t,u")
        separator = next((s for s in (",", ";", "\t") if s in first), None)
        header = [name.strip() for name in _cells(first, separator, line, source)]
        if len(set(header)) != len(header) or any(_number(name) is not None for name in header):
            raise expected("a header line with different names", shortened(first), "x,t,u as the first line")
        _check_names(names, header, "column", source)
        found = {name: array("d") for name in names or header}
        wanted = [(name, header.index(name), column) for name, column in found.items()]
        for line, text in lines:
            cells = _cells(text, separator, line, source)
            if len(cells) != len(header):
                doubled = separator == "," and len(cells) == 2 * len(header)
                attempt = "decimal points in place of decimal commas" if doubled else "filling the gap"
                raise expected(f"{len(header)} values in line {line} of {source.name}", f"{len(cells)}", attempt)
            for name, place, column in wanted:
                value = _number(cells[place])
                column.append(_missing(cells[place], f"line {line}, column {name}", source) if value is None else value)
            if line % CHECKED_EVERY == 0:
                _check_rows(len(wanted[0][2]), list(found), source)
    if not wanted[0][2]:
        raise expected("a header line and at least one line of numbers", f"one line in {source.name}", "x,t,u")
    return {name: np.frombuffer(column) for name, column in found.items()}


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


def _missing(text: str, where: str, source: Path) -> float:
    """NaN for what people write where nothing was measured; refused otherwise."""
    entry = text.strip()
    if entry.lower() in MISSING:
        return math.nan
    decimal = entry.replace(",", ".", 1)
    if _number(decimal) is not None:
        attempt = f"{decimal}, and so in the whole file"
        raise expected(f"a decimal point in {where} of {source.name}", repr(entry), attempt)
    raise expected(f"a number in {where} of {source.name}", repr(shortened(text, 30)), "dropping that line")


def _read_netcdf(source: Path, names: Sequence[str] | None) -> dict[str, Array]:
    """Variables and coordinates, broadcast against each other and flattened."""
    import xarray as xr

    with opened(source, *READABLE) as (file, _, datasets):
        known = [name for name, item in datasets.items() if "/" not in name and is_variable(item)]
        _check_names(names, known, "variable", source)
        wanted = list(names or known)
        check_numbers({name: datasets[name] for name in wanted}, 8 * MOST_VALUES)
        others = [name for name in datasets if name not in wanted]
        # units are for readers: a time axis in "days" stays the numbers that were measured at
        with xr.open_dataset(
            file, engine="h5netcdf", decode_times=False, drop_variables=others, phony_dims="access"
        ) as lazy:
            sizes = {str(dim): size for name in wanted for dim, size in lazy[name].sizes.items()}
            _check_rows(math.prod(sizes.values()), wanted, source)
            arrays = xr.broadcast(*[lazy[name].load() for name in wanted])
            return {name: np.asarray(a.values, float).ravel() for name, a in zip(wanted, arrays, strict=True)}


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
