"""Every Python block of the README and the docs runs as it stands; links lead somewhere; made pages are current."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "benchmarks/results").glob("*.md"))]
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


def script_of_docs(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_api_page_is_up_to_date_and_names_everything_public() -> None:
    import factorfield as ff

    made = script_of_docs("make_api")
    assert {name for names in made.GROUPS.values() for name in names} == set(ff.__all__) - {"__version__"}
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), "run python docs/make_api.py"


def test_the_tutorials_page_has_the_code_of_every_example() -> None:
    made = script_of_docs("make_tutorials")
    page = made.PAGE.read_text(encoding="utf-8")
    scripts = sorted((ROOT / "examples").glob("*.py"))
    assert {script.stem for script in scripts} == set(made.TUTORIALS)
    for script in scripts:
        assert made.block(script) in page, f"{script.name} changed: run python docs/make_tutorials.py"


def test_the_reproduction_page_follows_from_the_file_of_runs() -> None:
    from factorfield.paper import numbers
    from factorfield.paper.tables import Records

    made = script_of_docs("make_reproduction")
    page = made.PAGE.read_text(encoding="utf-8")
    records = numbers.Numbers(lines=numbers.read(made.RUNS))
    marks = re.findall(r"<!-- (\w+): docs/make_reproduction.py -->\n(.*?)\n<!-- end -->", page, re.DOTALL)
    assert dict(marks) == made.parts(records, page), "run python docs/make_reproduction.py"
    answers = dict(marks)["claims"]
    assert made.claims(Records([]), page) == answers  # no run: what stands on the page is kept


def test_the_site_has_every_page() -> None:
    config = (ROOT / "mkdocs.yml").read_text()
    assert sorted(re.findall(r"[\w-]+\.md$", config, re.MULTILINE)) == sorted(page.name for page in PAGES[1:])


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    """As a path from the root, from the package, or by its name alone."""
    for name in set(re.findall(r"[\w./-]+\.py\b|benchmarks/[\w./-]+\.md\b", page.read_text())):
        places = [ROOT / name, ROOT / "src" / "factorfield" / name, ROOT / "benchmarks" / name]
        assert any(place.is_file() for place in places) or ("/" not in name and any(ROOT.glob(f"src/**/{name}"))), name


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)):
        if link.startswith("http"):
            continue
        name, _, heading = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), link
        if heading:
            titles = re.findall(r"^#+ (.*)$", target.read_text(), re.MULTILINE)
            assert heading in {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}, link


def test_the_site_builds(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not re.search(
        r"<(script|link|img)[^>]*https?://(?!squidfunk)", (tmp_path / "site" / "index.html").read_text()
    )
