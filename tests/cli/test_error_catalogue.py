"""Every bad input of the catalogue: exit code 2, one line that helps, nothing written, no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from error_cases import CASES, Case, page, run

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.about)
def test_bad_input_gets_one_line(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(case)
    assert code == 2 and out == ""
    assert err.startswith("error: ") and err.endswith("\n") and err.count("\n") == 1
    assert "expected " in err and "received" in err and "; try " in err and "Traceback" not in err
    assert {path.name for path in tmp_path.iterdir()} == set(case.files)


def test_the_catalogue_is_large_and_its_cases_differ() -> None:
    assert len({case.about for case in CASES}) == len(CASES) >= 45
    assert len({(case.arguments, *case.files.values()) for case in CASES}) == len(CASES)


def test_the_page_of_errors_is_up_to_date() -> None:
    assert (ROOT / "docs" / "errors.md").read_text(encoding="utf-8") == page(), "run python tests/error_cases.py"


@pytest.mark.parametrize("index", [0, 2, 44, 60])
def test_a_fresh_process_says_the_same(index: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    case = CASES[index]
    said = run(case)
    done = subprocess.run(
        [sys.executable, "-m", "factorfield.cli.app", *case.arguments], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == said
