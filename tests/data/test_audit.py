"""Defects of published files are told apart from discretisation."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from factorfield.data.audit import audit
from factorfield.data.generate import generate
from published import data_command, published_layout


def test_defects_are_told_apart(tmp_path: Path) -> None:
    path = generate("advection", tmp_path / "own.hdf5", 2, {"b": 0.8})
    with h5py.File(path, "a") as stored:
        stored.attrs["beta"] = 0.4  # waves at twice the stated speed, as before August 2023
    assert audit(path).defects == ["wrong speed"]
    assert audit(path).rows[0].speed == pytest.approx(0.8, rel=1e-3)
    with h5py.File(path, "a") as stored:
        stored.attrs["beta"] = 0.8
        stored["tensor"][1, 120:] = stored["tensor"][1, 120]
    result = audit(path)
    assert [row.verdict for row in result.rows] == ["ok", "freeze"] and result.rows[1].frozen_from == 1.2
    x = (np.arange(256) + 0.5) / 256
    diffused = np.stack([np.exp(-0.5 * (2 * np.pi) ** 2 * t) * np.sin(2 * np.pi * x) for t in np.arange(101) / 100])
    wrong = published_layout(tmp_path / "heat.hdf5", (0.5 + 0.4 * diffused)[None].astype("f4"), Nu=0.1, rho=1.0)
    assert audit(wrong).defects == ["wrong equation"]
    still = published_layout(tmp_path / "flat.hdf5", np.ones((1, 101, 64), "f4"), Nu=0.1, rho=1.0)
    assert audit(still).defects == []  # u = 1 does not have to move


def test_the_audit_of_the_shared_files_is_as_known(pdebench: Path) -> None:
    """All advection files pass; reaction-diffusion freezes everywhere except nu = 1, rho = 1 and 2."""
    for b in ("0.1", "0.4", "1.0", "2.0", "7.0"):
        assert audit(pdebench / f"1D_Advection_Sols_beta{b}.hdf5", [0, 1]).defects == []
    for nu in ("0.5", "1.0", "2.0", "5.0"):
        for rho in ("1.0", "2.0", "5.0", "10.0"):
            known = [] if (nu, rho) in (("1.0", "1.0"), ("1.0", "2.0")) else ["freeze"]
            assert audit(pdebench / f"ReacDiff_Nu{nu}_Rho{rho}.hdf5", [0]).defects == known


def test_the_audit_command_prints_a_table_draws_and_exits_1_on_a_defect(tmp_path: Path) -> None:
    assert (
        data_command(
            "generate", "advection", "--set", "b=1.0", "--rows", "2", "--out", "own.hdf5", cwd=tmp_path
        ).returncode
        == 0
    )
    done = data_command("audit", "own.hdf5", "--plot", "own.png", cwd=tmp_path)
    assert done.returncode == 0 and "no defect" in done.stdout and "relative error" in done.stdout
    assert (tmp_path / "own.png").read_bytes().startswith(b"\x89PNG")
    with h5py.File(tmp_path / "own.hdf5", "a") as stored:
        stored.attrs["beta"] = 0.5
    done = data_command("audit", "own.hdf5", "--rows", "0", cwd=tmp_path)
    assert done.returncode == 1 and "wrong speed" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("generate", "advektion", "--out", "a.hdf5"), "'advection'"),
        (("generate", "advection", "--out", "a.hdf5"), "coefficients b"),
        (("generate", "advection", "--set", "b=1", "--set", "c=2", "--out", "a.hdf5"), "coefficients b"),
        (("generate", "advection", "--set", "b=fast", "--out", "a.hdf5"), "a number for b"),
        (("generate", "advection", "--set", "b=1", "--rows", "0", "--out", "a.hdf5"), "at least one row"),
        (("generate", "advection", "--set", "b=1", "--out", "none/a.hdf5"), "existing folder"),
        (("audit", "none.hdf5"), "existing"),
        (("fetch", "beta0.4.hdf5"), "name of a published file"),
    ],
)
def test_bad_data_commands_get_one_line_and_leave_nothing(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = data_command(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
