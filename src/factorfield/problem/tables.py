"""Named columns of numbers from CSV, NetCDF and HDF5 files: what `Observations.from_file` reads."""

from __future__ import annotations

import csv
import math
import os
import warnings
from collections.abc import Sequence
from pathlib import Path

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
    """A header line with names, then numbers; separated by comma, semicolon, tab or blanks. NaN where nothing is."""
    text = source.read_text(encoding="utf-8-sig", errors="replace")
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) < 2:
        raise expected(
            "a header line and at least one line of numbers", f"{len(lines)} line(s) in {source.name}", "x,t,u"
        )
    separator = next((s for s in (",", ";", "\t") if s in lines[0]), None)
    rows = list(csv.reader(lines, delimiter=separator)) if separator else [line.split() for line in lines]
    header = [name.strip() for name in rows[0]]
    if len(set(header)) != len(header) or any(_is_number(name) for name in header):
        raise expected("a header line with different names", shortened(lines[0]), "x,t,u as the first line")
    _check_names(names, header, "column", source)
    for number, row in enumerate(rows[1:], 2):
        if len(row) != len(header):
            doubled = separator == "," and len(row) == 2 * len(header)
            attempt = "decimal points in place of decimal commas" if doubled else "filling the gap"
            raise expected(f"{len(header)} values in line {number} of {source.name}", f"{len(row)}", attempt)
    found = {}
    for name in names or header:
        place = header.index(name)
        column = np.empty(len(rows) - 1)
        for number, row in enumerate(rows[1:]):
            column[number] = _value(row[place], f"line {number + 2}, column {name} of {source.name}")
        found[name] = column
    return found


def _value(text: str, where: str) -> float:
    entry = text.strip()
    if entry.lower() in MISSING:
        return math.nan
    try:
        return float(entry)
    except ValueError:
        decimal = entry.replace(",", ".", 1)
        if _is_number(decimal):
            raise expected(f"a decimal point in {where}", repr(entry), f"{decimal}, and so in the whole file") from None
        raise expected(f"a number in {where}", repr(shortened(text, 30)), "dropping that line") from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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
