"""What a result file says about itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import factorfield as ff
from factorfield.files.metadata import git_commit, provenance


def test_the_commit_is_that_of_the_checkout_and_nothing_runs_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def git(*words: str) -> str:
        identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
        try:
            done = subprocess.run(["git", *identity, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        except FileNotFoundError:
            pytest.skip("git is not installed")
        return done.stdout.strip()

    (tmp_path / "a").write_text("1")
    git("init", "--quiet")
    assert git_commit(tmp_path) == ""  # a checkout without a commit has none to tell
    git("add", "a")
    git("commit", "--quiet", "-m", "first")
    git_commit.cache_clear()
    assert git_commit(tmp_path) == git("rev-parse", "HEAD")
    (tmp_path / "a").write_text("2")
    git_commit.cache_clear()
    assert git_commit(tmp_path) == git("rev-parse", "HEAD") + "-dirty"
    git_commit.cache_clear()
    monkeypatch.setenv("PATH", "")
    assert git_commit(tmp_path) == ""  # no git on this machine
    git_commit.cache_clear()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a process was started outside a checkout")

    monkeypatch.setattr(subprocess, "run", never)
    (tmp_path / "installed").mkdir()
    assert git_commit(tmp_path / "installed") == ""


def test_a_reader_learns_the_problem_and_the_method_from_the_attributes() -> None:
    problem = ff.Problem(
        ff.Equation("u_xx = k*c", sigma=0.1), {"x": ff.Interval(0, 1)}, {"k": ff.Unknown(1.0, 0.5), "c": 2.0},
        [ff.Boundary("u = 0", at={"x": 0}), ff.Observations(x=[0.2, 0.4], u=[1.0, 2.0], sigma=[0.1, 0.2])],
    )  # fmt: skip
    found = provenance(problem, {"method": "joint", "seed": 3}, {"factorfield": "1.2"})
    assert (found["equations"], found["constants"], found["prior"]) == ("u_xx = k*c +- 0.1", "c = 2.0", "k = 1 +- 0.5")
    assert found["conditions"] == "u = 0 at x = 0\n2 observations of u +- a sigma for each"
    assert (found["method"], found["seed"], found["source"]) == ("joint", "3", "factorfield 1.2")
