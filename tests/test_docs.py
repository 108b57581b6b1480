"""Every Python block of the README and the docs runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCKS = {page.name: re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL) for page in PAGES}


@pytest.mark.parametrize("page", [page for page, blocks in BLOCKS.items() if blocks])
@pytest.mark.filterwarnings("ignore::factorfield.AdviceWarning")  # pages may show advice
def test_code_blocks_of_a_page_run_one_after_the_other(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for index, code in enumerate(BLOCKS[page]):
        exec(compile(code, f"{page}:{index}", "exec"), names)


def test_the_readme_has_blocks_to_run() -> None:
    assert BLOCKS["README.md"]


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_example_runs(script: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "converged" in done.stdout


def test_the_example_finds_the_true_speed(tmp_path: Path) -> None:
    script = ROOT / "examples" / "unknown_speed.py"
    text = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True).stdout
    mean, std = (float(re.search(pattern, text)[1]) for pattern in (r"speed ([\d.]+)", r"\+- ([\d.]+)"))  # type: ignore[index]
    assert abs(mean - 0.7) < 3.5 * std and std < 0.02
