"""The command line with solutions by the map: every command that reads a problem or a result."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest

from factorfield.cli.app import main

ROD = """
equation = "{equation}"
domain = {{ x = [0.0, 1.0], t = [0.0, 1.0] }}
[parameters.k]
mean = 0.1
std = 0.05
positive = true
[[initial]]
text = "u = sin(pi*x)"
[[boundary]]
text = "u = 0"
at = {{ x = 0 }}
[[boundary]]
text = "u = 0"
at = {{ x = 1 }}
[[observations]]
x = [0.5, 0.5, 0.3, 0.5, 0.5]
t = [0.2, 0.6, 0.9, 0.4, 0.8]
u = [0.8, 0.5, 0.3, 0.65, 0.4]
sigma = 0.02
[method]
name = "forward"
tolerance = 1e-3
"""


def called(*arguments: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
        main(list(arguments))
    assert end.value.code == 0, err.getvalue()
    return out.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rod")
    (folder / "rod.toml").write_text(ROD.format(equation="u_t = k*u_xx"))
    (folder / "other.toml").write_text(ROD.format(equation="u_t = k*u_xx + 0.1*u"))
    with contextlib.chdir(folder):
        called("solve", "rod.toml", "--out", "rod.nc")
    return folder


@pytest.mark.parametrize("arguments, said", [
    ("check rod.toml", "forward"),
    ("show rod.nc", "converged"),
    ("predict rod.nc --grid x=0:1:3 t=0.5", "0.5,0.5,"),
    ("plot rod.nc --out rod.png", "picture written"),
    ("report rod.nc", "report written"),
    ("next rod.nc --count 2", "for u"),
    ("rank rod.toml other.toml --method forward", "Laplace"),
    ("compare rod.toml --methods forward", "converged"),
])  # fmt: skip
def test_commands_take_solutions_by_the_map(
    arguments: str, said: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert said in called(*arguments.split())


def test_the_size_of_a_map_is_estimated_from_its_grid(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    estimate = json.loads(called("check", "rod.toml", "--json"))["estimate"]
    assert estimate["method"] == "forward" and estimate["factors"] == 5 and estimate["weights"] > 10
