"""The command line as a user meets it: a subprocess, its output, its exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import factorfield as ff
from factorfield.cli import main


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


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What a successful command prints on stdout."""
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    printed = capsys.readouterr()
    assert not end.value.code, printed.err
    return printed.out


def test_a_file_is_written_checked_solved_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said(capsys, "new", "unknown-coefficient") == "unknown-coefficient.toml written\n"
    checked = said(capsys, "check", "unknown-coefficient.toml")
    for words in (
        "-D*u_xx + u_t = 0",
        "nonlinear",
        "interval [0, 1]",
        "positive unknown, 0.1 +- 0.1",
        "9 values",
        "MiB",
    ):
        assert words in checked
    assert not Path("unknown-coefficient.nc").exists()
    solved = json.loads(said(capsys, "solve", "unknown-coefficient.toml", "--json"))
    assert solved["written"] == {"solution": "unknown-coefficient.nc"} and solved["status"] == "converged"
    shown = json.loads(said(capsys, "show", "unknown-coefficient.nc", "--json"))
    assert shown["parameters"] == solved["parameters"] and 0.04 < shown["parameters"]["D"]["mean"] < 0.06
    assert shown["scores"] is None and shown["settings"]["modes"] == {"x": 8}
    table = said(capsys, "show", "unknown-coefficient.nc")
    assert "D\t0.05" in table and "observations of u (9 values)" in table
    assert said(capsys, "new", "unknown-coefficient", "--force")  # asked for, and only then


def test_numbers_of_a_file_can_be_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said(capsys, "new", "ode")
    said(capsys, "solve", "ode.toml", "--set", "k=9", "--out", "nine.nc")
    assert ff.load("nine.nc").problem.constants == {"k": 9.0, "d": 0.2} and not Path("ode.nc").exists()


def test_json_is_one_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert set(json.loads(said(capsys, "list", "--json"))["problems"]) == set(ff.problems.names())
    solved = json.loads(said(capsys, "solve", "poisson", "--json"))
    assert solved["scores"]["rmse"] < 1e-4 and solved["equations"] == ["u_xx = -pi**2*sin(pi*x)"]
    compared = json.loads(said(capsys, "compare", "poisson", "--methods", "joint,laplace", "--json"))
    assert [row["method"] for row in compared["methods"]] == ["joint", "laplace"]
    assert compared["methods"][0]["std_ratio"] is None  # not a number, as there is no HMC: null, not NaN
    said(capsys, "new", "heat")
    checked = json.loads(said(capsys, "check", "heat.toml", "--json"))
    assert checked["equations"][0]["linear"] and checked["conditions"][1]["values"] == 4
    assert json.loads(said(capsys, "check", "--schema"))["title"] == "factorfield problem file"


def test_the_version_names_what_it_stands_on(capsys: pytest.CaptureFixture[str]) -> None:
    import numpy

    lines = said(capsys, "--version").splitlines()
    assert lines[0] == f"factorfield {ff.__version__}" and f"numpy {numpy.__version__}" in lines


def test_help_loads_neither_numbers_nor_boxes(tmp_path: Path) -> None:
    code = (
        "import sys, atexit; from factorfield.cli import main;"
        "heavy = ('numpy', 'scipy', 'sympy', 'rich.table', 'json');"
        "atexit.register(lambda: print([m for m in heavy if m in sys.modules])); main(['--help'])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert (
        done.returncode == 0 and done.stdout.splitlines()[-1] == "[]" and "..." not in done.stdout.split("Commands")[1]
    )
