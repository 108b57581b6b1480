"""Files in PDEBench's published layout, and the commands that read them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np


def data_command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "factorfield.cli.app", "data", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def published_layout(path: Path, tensor: np.ndarray, **attributes: float) -> Path:
    with h5py.File(path, "w") as stored:
        stored["tensor"] = tensor
        stored["x-coordinate"] = ((np.arange(tensor.shape[2]) + 0.5) / tensor.shape[2]).astype("f4")
        stored["t-coordinate"] = np.arange(tensor.shape[1] + 1, dtype="f4") / np.float32(100)
        stored.attrs.update(attributes)
    return path
