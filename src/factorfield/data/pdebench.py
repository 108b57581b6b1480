"""PDEBench's published 1-D files: one row at a time, with the coordinates repaired.

The files store one time too many and float32 coordinates; here x = (i + 1/2)/cells and t = i/100 in float64.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected

Array = NDArray[np.float64]
TIME_STEP = 0.01


@dataclass(frozen=True, eq=False)
class Row:
    """One trajectory: `initial` (cells,), `field` (times, cells) or None if the file has initial conditions only."""

    initial: Array
    field: Array | None
    x: Array
    t: Array
    physics: dict[str, float]


def read_row(path: str | os.PathLike[str], row: int) -> Row:
    """The row at position `row`; physics from the file's attributes (beta -> b, Nu -> nu, rho)."""
    source = Path(path).expanduser()
    if not source.is_file():
        raise expected("an existing PDEBench file", str(source), "the path of a .hdf5 or .npz file")
    return _read_npz(source, row) if source.suffix == ".npz" else _read_hdf5(source, row)


def _read_npz(source: Path, row: int) -> Row:
    try:
        with np.load(source, allow_pickle=False) as stored:
            values = stored["u0"]
    except (OSError, KeyError, ValueError) as problem:
        raise expected("a .npz file with an array u0", f"{source.name} ({problem})", "another file") from None
    initial = np.asarray(values[_checked_row(row, len(values))], float)
    return Row(initial, None, _centres(len(initial)), np.zeros(1), {})


def _read_hdf5(source: Path, row: int) -> Row:
    import h5py

    try:
        with h5py.File(source, "r") as stored:
            if "tensor" not in stored:
                raise expected(
                    "a PDEBench file with the dataset 'tensor'", ", ".join(stored) or "an empty file", "another"
                )
            tensor = stored["tensor"]
            field = np.asarray(tensor[_checked_row(row, tensor.shape[0])], float)
            names = {"beta": "b", "Nu": "nu", "rho": "rho"}
            physics = {names[key]: float(value) for key, value in stored.attrs.items() if key in names}
    except OSError as problem:
        raise expected("an HDF5 file", f"{source.name} ({str(problem)[:60]})", "downloading it again") from None
    return Row(field[0], field, _centres(field.shape[1]), np.arange(len(field)) / round(1.0 / TIME_STEP), physics)


def _centres(cells: int) -> Array:
    return (np.arange(cells) + 0.5) / cells


def _checked_row(row: int, count: int) -> int:
    if isinstance(row, bool) or not isinstance(row, int | np.integer) or not -count <= row < count:
        raise expected(f"a row between 0 and {count - 1}", row, "row=0")
    return int(row)
