"""Named columns of numbers from CSV, NetCDF and HDF5 files: what `Observations.from_file` reads."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected, nearest, shortened

Array = NDArray[np.float64]
CSV_ENDINGS = (".csv", ".tsv", ".txt", ".dat")
NETCDF_ENDINGS = (".nc", ".nc4", ".cdf")
HDF5_ENDINGS = (".h5", ".hdf5", ".hdf")


def read_columns(path: str | os.PathLike[str], names: Sequence[str] | None = None) -> dict[str, Array]:
    """Equally long columns by name; all of them if no names are given."""
    source = Path(path).expanduser()
    if not source.is_file():
        raise expected("an existing data file", str(source), "checking the path")
    ending = source.suffix.lower()
    if ending in CSV_ENDINGS:
        return _chosen(_read_csv(source), names, source)
    try:
        if ending in NETCDF_ENDINGS:
            return _read_netcdf(source, names)
        if ending in HDF5_ENDINGS:
            return _read_hdf5(source, names)
    except OSError as problem:
        reason = shortened(str(problem), 60)
        raise expected(f"a readable {ending} file", f"{source.name} ({reason})", "writing it again") from None
    known = ", ".join((*CSV_ENDINGS, *NETCDF_ENDINGS, *HDF5_ENDINGS))
    raise expected(f"a file ending in one of {known}", source.name, "saving it as .csv")


def _chosen(columns: dict[str, Array], names: Sequence[str] | None, source: Path) -> dict[str, Array]:
    for name in names or ():
        if name not in columns:
            raise expected(f"a column {name!r} in {source.name}", ", ".join(columns), nearest(name, columns))
    return columns if names is None else {name: columns[name] for name in names}


def _read_csv(source: Path) -> dict[str, Array]:
    """A header line with names, then numbers; separated by comma, semicolon, tab or blanks."""
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
    values = np.empty((len(rows) - 1, len(header)))
    for number, row in enumerate(rows[1:]):
        if len(row) != len(header):
            raise expected(
                f"{len(header)} values in line {number + 2} of {source.name}", f"{len(row)}", "filling the gap"
            )
        for column, entry in enumerate(row):
            if not _is_number(entry):
                where = f"line {number + 2}, column {header[column]} of {source.name}"
                raise expected(f"a number in {where}", repr(shortened(entry, 30)), "dropping that line")
            values[number, column] = float(entry)
    return {name: values[:, column] for column, name in enumerate(header)}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_netcdf(source: Path, names: Sequence[str] | None) -> dict[str, Array]:
    """Variables and coordinates, broadcast against each other and flattened."""
    import xarray as xr

    with xr.open_dataset(source, engine="h5netcdf") as opened:
        data = opened.load()
    known = [str(name) for name in data.variables]
    for name in names or ():
        if name not in known:
            raise expected(f"a variable {name!r} in {source.name}", ", ".join(known), nearest(name, known))
    arrays = xr.broadcast(*[data[name] for name in (names or known)])
    return {name: np.asarray(a.values, float).ravel() for name, a in zip(names or known, arrays, strict=True)}


def _read_hdf5(source: Path, names: Sequence[str] | None) -> dict[str, Array]:
    import h5py

    with h5py.File(source, "r") as stored:
        known: list[str] = []
        stored.visititems(lambda name, item: known.append(name) if isinstance(item, h5py.Dataset) else None)
        for name in names or ():
            if name not in known:
                raise expected(f"a dataset {name!r} in {source.name}", ", ".join(known) or "none", nearest(name, known))
        return {name: np.asarray(stored[name][()], float).ravel() for name in (names or known)}
