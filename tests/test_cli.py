"""The command line as a user meets it: a subprocess, its output, its exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import factorfield as ff


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "factorfield.cli", *arguments], cwd=cwd, capture_output=True, text=True, timeout=300
    )


def test_solve_prints_a_table_and_writes_a_file_and_a_picture(tmp_path: Path) -> None:
    done = run("solve", "heat", "--set", "nu=0.05", "--out", "run.nc", "--plot", "run.png", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("converged", "RMSE", "coverage (90 %)", "CRPS", "seconds to solve"):
        assert word in done.stdout
    assert ff.load(tmp_path / "run.nc").problem.constants == {"nu": 0.05}
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG") and done.stderr == ""


def test_list_names_every_problem_and_method(tmp_path: Path) -> None:
    done = run("list", cwd=tmp_path)
    assert done.returncode == 0
    assert all(name in done.stdout for name in [*ff.problems.names(), *ff.methods.names()])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("solve", "heet"), "'heat'"),
        (("solve", "heat", "--set", "nuu=1"), "'nu'"),
        (("solve", "heat", "--set", "nu"), "--set nu=0.05"),
        (("solve", "heat", "--set", "nu=fast"), "number"),
        (("solve", "heat", "--method", "jiont"), "'joint'"),
        (("solve", "heat", "--model", "papper"), "'paper'"),
        (("solve", "heat", "--out", "no/such/folder/run.nc"), "existing folder"),
        (("solve", "heat", "--out", "/proc/run.nc"), "may be written"),
        (("solve", "heat", "--plot", "run.xyz"), "png"),
        (("solve",), "Missing argument"),
        (("solv",), "No such command"),
    ],
)
def test_bad_input_gets_one_line_and_exit_code_2(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
