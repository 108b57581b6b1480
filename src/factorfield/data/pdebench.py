"""PDEBench's published 1-D files as xarray, a few rows at a time, with the coordinates repaired.

The files (4 to 8 GB) hold `tensor` (rows, times, cells) in float32, one time coordinate too many, and coordinates in
float32. Here t and x are exact in float64, and only the rows asked for are read. A file may name its rows in a dataset
`pdebench-row` (an excerpt); otherwise a row's name is its position.
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected, shortened
from factorfield.problem.hdf5 import opened

if TYPE_CHECKING:
    import h5py
    import xarray as xr

Array = NDArray[np.float64]
LARGEST_NPZ = 4 << 30  # bytes when unpacked
FEWEST_CELLS, LARGEST_COEFFICIENT = 4, 1e6
PAPER_ROWS = (9394, 898, 2398, 5906, 2343, 8225, 5506, 6451, 2670, 3497)
# attributes that tell the equations apart, and our names for them
PHYSICS = {
    "advection": {"beta": "b"},
    "fisher-kpp": {"Nu": "nu", "rho": "rho"},
    "burgers": {"Nu": "nu"},
}


@dataclass(frozen=True, eq=False)
class Row:
    """One trajectory: `initial` (cells,), `field` (times, cells) or None if the file has initial conditions only."""

    initial: Array
    field: Array | None
    x: Array
    t: Array
    physics: dict[str, float]


def open_rows(path: str | os.PathLike[str], rows: Sequence[int] | str | None = None) -> xr.Dataset:
    """Rows of a file as a Dataset `u` (row, t, x), values as stored; attributes: equation and its coefficients.

    rows: positions in the file, "paper" for the paper's ten by name, or None for all of them.
    """
    import xarray as xr

    source = Path(path).expanduser()
    _check_exists(source)
    with opened(source, "a complete HDF5 file", "downloading it again") as (_, stored, _):
        tensor, physics, equation = _checked_layout(stored, source)
        names = stored["pdebench-row"][:] if "pdebench-row" in stored else np.arange(tensor.shape[0])
        positions = _positions(rows, names, tensor.shape[0], source)
        order = np.argsort(positions)  # HDF5 reads increasing indices only
        values = np.empty((len(positions), *tensor.shape[1:]), tensor.dtype)
        for index in order:
            values[index] = tensor[positions[index]]
        if not np.all(np.isfinite(values)):
            raise expected(f"numbers in every row of {source.name}", "NaN or infinity", "other rows")
        step = _time_step(stored)
    coordinates = {
        "row": names[positions],
        "t": _times(values.shape[1], step),
        "x": (np.arange(values.shape[2]) + 0.5) / values.shape[2],
    }
    return xr.Dataset({"u": (("row", "t", "x"), values)}, coordinates, {"equation": equation, **physics})


def _times(count: int, step: float) -> Array:
    """0, 1/100, 2/100, ...: a quotient of whole numbers is the nearest double, a multiple of 0.01 is not."""
    per_unit = round(1.0 / step)
    whole = np.arange(count, dtype=float)
    return whole / per_unit if abs(per_unit * step - 1.0) < 1e-9 else whole * step


def read_row(path: str | os.PathLike[str], row: int) -> Row:
    """The row at a position, in float64; an .npz file holds initial conditions only."""
    source = Path(path).expanduser()
    if source.suffix == ".npz":
        return _read_npz(source, row)
    data = open_rows(source, [row])
    field = data["u"].values[0].astype(float)
    physics = {str(name): float(value) for name, value in data.attrs.items() if name != "equation"}
    return Row(field[0], field, data["x"].values, data["t"].values, physics)


def _read_npz(source: Path, row: int) -> Row:
    _check_exists(source)
    try:
        with np.load(source, allow_pickle=False) as stored:
            if sum(entry.file_size for entry in stored.zip.infolist()) > LARGEST_NPZ:
                raise ValueError("more than 4 GiB when unpacked")
            values = stored["u0"]
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as problem:
        raise expected(
            "a .npz file with an array u0", f"{source.name} ({shortened(str(problem), 60)})", "another"
        ) from None
    initial = np.asarray(values[_positions([row], np.arange(len(values)), len(values), source)[0]], float)
    return Row(initial, None, (np.arange(len(initial)) + 0.5) / len(initial), np.zeros(1), {})


def _check_exists(source: Path) -> None:
    if not source.is_file():
        raise expected("an existing PDEBench file", str(source), "the path of a .hdf5 or .npz file")


def _checked_layout(stored: h5py.File, source: Path) -> tuple[h5py.Dataset, dict[str, float], str]:
    if "tensor" not in stored or stored["tensor"].ndim != 3 or stored["tensor"].dtype.kind != "f":
        found = ", ".join(sorted(stored)) or "nothing"
        raise expected("a dataset 'tensor' of rows, times and cells", f"{source.name} with {found}", "another file")
    for equation, names in PHYSICS.items():
        if all(name in stored.attrs for name in names):
            physics = {ours: float(stored.attrs[name]) for name, ours in names.items()}
            _check_numbers(stored, physics, source)
            return stored["tensor"], physics, equation
    found = ", ".join(stored.attrs) or "none"
    raise expected("attributes beta, or Nu and rho, or Nu", f"{found} in {source.name}", "a file of a known equation")


def _check_numbers(stored: h5py.File, physics: dict[str, float], source: Path) -> None:
    """Sizes of a trajectory, coefficients that can be, short arrays of times and names: before any is read."""
    shape = stored["tensor"].shape
    if min(shape) < 1 or shape[1] < 2 or shape[2] < FEWEST_CELLS:
        wanted = f"rows, two times or more and {FEWEST_CELLS} cells or more in {source.name}"
        raise expected(wanted, str(shape), "another file")
    for name, value in physics.items():
        if not abs(value) <= LARGEST_COEFFICIENT:
            raise expected(f"{name} up to {LARGEST_COEFFICIENT:g} in {source.name}", f"{value:g}", "another file")
    for name, most in (("t-coordinate", 2 * shape[1] + 1), ("pdebench-row", shape[0])):
        item = stored.get(name)
        if item is not None and (item.ndim != 1 or len(item) > most or item.dtype.kind not in "iuf"):
            raise expected(f"at most {most} numbers in {name!r} of {source.name}", str(item), "another file")


def _positions(rows: Sequence[int] | str | None, names: NDArray[np.int64], count: int, source: Path) -> list[int]:
    if rows is None:
        return list(range(count))
    if isinstance(rows, str):
        if rows != "paper":
            raise expected("rows as numbers, or 'paper'", rows, "rows='paper'")
        where = {int(name): position for position, name in enumerate(names)}
        missing = [name for name in PAPER_ROWS if name not in where]
        if missing:
            raise expected(f"the paper's rows in {source.name}", f"a file without row {missing[0]}", "rows=[0, 1]")
        return [where[name] for name in PAPER_ROWS]
    for row in rows:
        if isinstance(row, bool) or not isinstance(row, int | np.integer) or not 0 <= row < count:
            raise expected(f"rows between 0 and {count - 1} of {source.name}", row, "row=0")
    return [int(row) for row in rows]


def _time_step(stored: h5py.File) -> float:
    """The spacing of the stored times (float32) to six digits; 0.01 in every published file."""
    if "t-coordinate" not in stored or len(stored["t-coordinate"]) < 2:
        return 0.01
    times = stored["t-coordinate"][:].astype(float)
    step = float(round((times[-1] - times[0]) / (len(times) - 1), 6))
    if not 0.0 < step < np.inf:
        raise expected("times that increase in 't-coordinate'", f"steps of {step:g}", "another file")
    return step
