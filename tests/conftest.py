"""Shared fixtures. BLAS runs on one thread so that two test processes do not fight over two cores."""

from __future__ import annotations

import os
from pathlib import Path

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import pytest  # noqa: E402  (NumPy reads the variables above when it is first imported)


@pytest.fixture(scope="session")
def pdebench() -> Path:
    """The folder of PDEBench rows, named by FACTORFIELD_PDEBENCH."""
    folder = os.environ.get("FACTORFIELD_PDEBENCH")
    if not folder:
        pytest.skip("FACTORFIELD_PDEBENCH is not set: no PDEBench files to test on")
    return Path(folder)
