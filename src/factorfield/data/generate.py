"""Files in PDEBench's published layout from our own initial conditions and reference solutions, without a download."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factorfield.data.initial import normalised, pdebench_wave
from factorfield.data.reference import fisher_kpp, translate
from factorfield.errors import expected, nearest
from factorfield.files.atomic import check_folder, complete, room_for_hdf5
from factorfield.problem.tables import HDF5_ENDINGS

if TYPE_CHECKING:
    import h5py

Array = NDArray[np.float64]
CELLS = 1024
ROWS_AT_ONCE = 10  # frames of a few rows stay in cache while they are formed
FRAMES = {"advection": 201, "fisher-kpp": 101}
ATTRIBUTES = {"advection": {"b": "beta"}, "fisher-kpp": {"nu": "Nu", "rho": "rho"}}


def generate(
    equation: str,
    path: str | os.PathLike[str],
    rows: int,
    physics: dict[str, float],
    seed: int = 0,
    report: Callable[[int, int], None] | None = None,
) -> Path:
    """Write `rows` trajectories of "advection" (b) or "fisher-kpp" (nu, rho): float64 arithmetic, stored in float32."""
    import h5py

    if equation not in FRAMES:
        raise expected(f"an equation among {', '.join(FRAMES)}", equation, nearest(equation, FRAMES, "'advection'"))
    missing = set(ATTRIBUTES[equation]) ^ set(physics)
    if missing:
        names = ", ".join(ATTRIBUTES[equation])
        raise expected(
            f"the coefficients {names} of {equation}", ", ".join(physics) or "none", f"--set {min(missing)}=1"
        )
    if isinstance(rows, bool) or rows < 1:
        raise expected("at least one row", rows, "rows=10")
    target = Path(path).expanduser()
    if target.suffix.lower() not in HDF5_ENDINGS:
        known = ", ".join(HDF5_ENDINGS)
        raise expected(f"a data file ending in one of {known}", target.name, f"{target.stem or 'own'}.hdf5")
    check_folder(target)
    times = np.arange(FRAMES[equation]) / 100
    x = (np.arange(CELLS) + 0.5) / CELLS
    with complete(target) as part:
        size = 4 * rows * len(times) * CELLS
        with room_for_hdf5(part, size), h5py.File(part, "w") as stored:
            offset = _allocated(stored, (rows, len(times), CELLS))
            stored["x-coordinate"] = x.astype(np.float32)
            # one time too many, as published
            stored["t-coordinate"] = np.arange(len(times) + 1, dtype=np.float32) / np.float32(100)
            for name, stored_name in ATTRIBUTES[equation].items():
                stored.attrs[stored_name] = float(physics[name])
        with open(part, "r+b") as sink:  # plain writes into the allocated dataset: ten times faster than HDF5's own
            sink.seek(offset)
            for start in range(0, rows, ROWS_AT_ONCE):
                count = min(ROWS_AT_ONCE, rows - start)
                initial = np.stack([pdebench_wave(start + i, seed)(x) for i in range(count)])
                sink.write(_evolved(equation, initial, physics, times).data)
                if report is not None:
                    report(start + count, rows)
    return target


def _allocated(stored: h5py.File, shape: tuple[int, ...]) -> int:
    """Create the float32 dataset `tensor`, allocated but not filled; returns where its bytes begin in the file."""
    import h5py

    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    space = h5py.h5s.create_simple(shape)
    dataset = h5py.h5d.create(stored.id, b"tensor", h5py.h5t.IEEE_F32LE, space, properties)
    return int(dataset.get_offset())


def _evolved(equation: str, initial: Array, physics: dict[str, float], times: Array) -> NDArray[np.float32]:
    """Trajectories (rows, times, cells)."""
    result = np.empty((len(initial), len(times), initial.shape[1]), np.float32)
    if equation == "advection":
        result[:] = translate(initial, physics["b"] * times, dtype=np.float32).transpose(1, 0, 2)
    else:
        for index, row in enumerate(initial):
            result[index] = fisher_kpp(normalised(row), physics["nu"], physics["rho"], times)
    return result
