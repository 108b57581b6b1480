"""What users get: a wheel built from the source archive has every file, and its commands work outside the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def run(*command: str | Path, folder: Path, **variables: str) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | variables
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def setuptools_path() -> str:
    """Where a setuptools lives that builds wheels by itself, without the network; else the test is skipped."""
    try:
        found = tuple(int(part) for part in version("setuptools").split(".")[:2])
    except PackageNotFoundError:
        found = (0, 0)
    if found < (70, 1):
        pytest.skip(f"building a wheel offline needs setuptools 70.1 (extra dev), found {found[0]}.{found[1]}")
    import setuptools

    return str(Path(setuptools.__file__).parents[1])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The source archive of a copy of this checkout (building writes beside the sources), and a wheel made from it."""
    path, folder = setuptools_path(), tmp_path_factory.mktemp("built")
    copy = folder / "checkout"
    copy.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    build = "from setuptools import build_meta; print(build_meta.build_{}('{}'))"
    archive = (
        folder / run(sys.executable, "-c", build.format("sdist", folder), folder=copy, PYTHONPATH=path).split()[-1]
    )
    with tarfile.open(archive) as opened:  # our own archive; early releases of Python 3.11 know no filter
        opened.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    unpacked = folder / archive.name.removesuffix(".tar.gz")
    wheel = (
        folder / run(sys.executable, "-c", build.format("wheel", folder), folder=unpacked, PYTHONPATH=path).split()[-1]
    )
    return archive, wheel


def test_the_wheel_has_every_file_of_the_package(built: tuple[Path, Path]) -> None:
    archive, wheel = built
    sources = ROOT / "src"
    files = [
        path for path in (sources / "factorfield").rglob("*.*") if path.is_file() and path.parent.name != "__pycache__"
    ]
    wanted = {str(path.relative_to(sources)) for path in files}
    assert {".py", ".typed", ".css", ".js", ".html", ".json", ".toml", ".csv"} <= {
        path.suffix or path.name for path in files
    }
    inside = set(zipfile.ZipFile(wheel).namelist())
    assert wanted - inside == set() and any(name.endswith("LICENSE") for name in inside)
    assert not [name for name in inside if not name.startswith("factorfield")]
    with tarfile.open(archive) as opened:
        packed = {name.partition("/")[2] for name in opened.getnames()}
    assert {f"src/{name}" for name in wanted} | {"LICENSE", "README.md", "pyproject.toml"} <= packed


def test_an_installed_wheel_solves_and_reports(built: tuple[Path, Path], tmp_path: Path) -> None:
    environment = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", environment, folder=tmp_path)
    python, command = environment / "bin" / "python", environment / "bin" / "factorfield"
    run(
        sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python, "install", "--quiet",
        "--no-deps", "--no-index", built[1], folder=tmp_path,
    )  # fmt: skip
    # dependencies come from here, so nothing is downloaded; a path file does not bring an editable install along
    places = {sysconfig.get_path(kind) for kind in ("purelib", "platlib")}
    (site,) = (environment / "lib").glob("python*/site-packages")
    (site / "here.pth").write_text("\n".join(sorted(places)))
    work = tmp_path / "work"
    work.mkdir()
    where = run(python, "-c", "import factorfield; print(factorfield.__file__)", folder=work).strip()
    assert Path(where).is_relative_to(site)
    assert "converged" in run(command, "solve", "poisson", "--out", "poisson.nc", folder=work)
    run(command, "new", "heat", folder=work)
    run(command, "solve", "heat.toml", folder=work)
    run(python, "-m", "factorfield", "report", "heat.nc", folder=work)
    assert "<style" in (work / "heat.html").read_text(encoding="utf-8")


def test_the_module_is_the_command_and_words_are_completed(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "factorfield"]
    sources = {"PYTHONPATH": str(ROOT / "src")}
    assert run(*command, "--version", folder=tmp_path, **sources).startswith("factorfield ")
    typed = {"_FACTORFIELD_COMPLETE": "complete_bash", "COMP_WORDS": "factorfield so", "COMP_CWORD": "1"}
    assert run(*command, folder=tmp_path, **sources, **typed).split() == ["solve"]
    script = run(*command, folder=tmp_path, **sources, _FACTORFIELD_COMPLETE="source_bash")
    assert "complete -o default -F _factorfield_completion factorfield" in script
    assert "--install-completion" in run(*command, "--help", folder=tmp_path, **sources)
