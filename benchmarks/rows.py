"""What several benchmarks share: PDEBench rows by their physics, and markdown tables that grow line by line."""

from __future__ import annotations

import os
from pathlib import Path

import factorfield as ff


def folder() -> Path:
    """Where the PDEBench files are."""
    return Path(os.environ["FACTORFIELD_PDEBENCH"])


def advection(b: float | str, row: int) -> ff.Problem:
    return ff.problems.get("advection", file=folder() / f"1D_Advection_Sols_beta{float(b)}.hdf5", row=row)


def fisher(nu: float, rho: float, row: int) -> ff.Problem:
    return ff.problems.get("fisher-kpp", file=folder() / "ReacDiff_initial_conditions.npz", row=row, nu=nu, rho=rho)


def header(*names: str) -> None:
    line(*names)
    print("|---" * len(names) + "|", flush=True)


def line(*cells: object) -> None:
    print(f"| {' | '.join(str(cell) for cell in cells)} |", flush=True)
