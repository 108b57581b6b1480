"""Files in PDEBench's published layout from our own initial conditions and reference solutions, without a download."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from factorfield.data.initial import normalised, pdebench_wave
from factorfield.data.reference import fisher_kpp, translate
from factorfield.errors import expected, nearest

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
        raise expected(f"an equation among {', '.join(FRAMES)}", equation, nearest(equation, FRAMES))
    missing = set(ATTRIBUTES[equation]) ^ set(physics)
    if missing:
        names = ", ".join(ATTRIBUTES[equation])
        raise expected(
            f"the coefficients {names} of {equation}", ", ".join(physics) or "none", f"--set {min(missing)}=1"
        )
    if isinstance(rows, bool) or rows < 1:
        raise expected("at least one row", rows, "rows=10")
    target = Path(path).expanduser()
    if not target.parent.is_dir():
        raise expected("an output path in an existing folder", str(target), f"mkdir -p {target.parent}")
    times = np.arange(FRAMES[equation]) / 100
    x = (np.arange(CELLS) + 0.5) / CELLS
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    os.close(handle)
    try:
        with h5py.File(temporary, "w") as stored:
            # without fill values: every byte is written once
            tensor = stored.create_dataset("tensor", (rows, len(times), CELLS), "f4", fill_time="never")
            stored["x-coordinate"] = x.astype(np.float32)
            stored["t-coordinate"] = np.arange(len(times) + 1, dtype=np.float32) / np.float32(
                100
            )  # one too many, as published
            for name, stored_name in ATTRIBUTES[equation].items():
                stored.attrs[stored_name] = float(physics[name])
            for start in range(0, rows, ROWS_AT_ONCE):
                count = min(ROWS_AT_ONCE, rows - start)
                initial = np.stack([pdebench_wave(start + i, seed)(x) for i in range(count)])
                frames = _evolved(equation, initial, physics, times)
                tensor.write_direct(frames, dest_sel=np.s_[start : start + count])
                if report is not None:
                    report(start + count, rows)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return target


def _evolved(equation: str, initial: Array, physics: dict[str, float], times: Array) -> NDArray[np.float32]:
    """Trajectories (rows, times, cells)."""
    result = np.empty((len(initial), len(times), initial.shape[1]), np.float32)
    if equation == "advection":
        result[:] = translate(initial, physics["b"] * times, dtype=np.float32).transpose(1, 0, 2)
    else:
        for index, row in enumerate(initial):
            result[index] = fisher_kpp(normalised(row), physics["nu"], physics["rho"], times)
    return result
