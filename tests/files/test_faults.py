"""What a machine does to a program: killed, interrupted, out of disk or memory, two at once, strange names."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import factorfield as ff
from factorfield.cli.app import main

POSED = textwrap.dedent("""
    import os, random, signal, sys, time, warnings
    import factorfield as ff
    warnings.simplefilter("ignore")
    def solved(value):
        walls = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
        return ff.solve(ff.Problem("u_xx = c", {"x": ff.Interval(0, 1)}, {"c": value}, walls))
    solutions = {value: solved(value) for value in (1.0, 2.0)}
    for solution in solutions.values():
        solution.save("run.nc")
    def seen():
        # the field in the middle is -c/8: a file that mixes two solutions shows
        found = ff.load("run.nc")
        middle = float(found.predict(x=[0.5])["mean"][0])
        assert abs(middle + found.problem.constants["c"] / 8) < 1e-3, middle
        return found.problem.constants["c"]
    def keep_saving(value):
        pid = os.fork()
        if pid == 0:
            end = time.monotonic() + 30  # no orphan outlives a test for long
            while time.monotonic() < end:
                solutions[value].save("run.nc")
            os._exit(0)
        return pid
""")


def python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)


# -- files are whole, whatever happens


def test_killed_while_saving_leaves_a_whole_file(tmp_path: Path) -> None:
    code = POSED + textwrap.dedent("""
        begin = time.monotonic()
        solutions[1.0].save("run.nc")
        once = time.monotonic() - begin
        random.seed(0)
        for round in range(20):
            pid = keep_saving(1.0 + round % 2)
            time.sleep(random.uniform(0.0, 4.0) * once)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            print(seen())
    """)
    done = python(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"1.0", "2.0"} and len(done.stdout.split()) == 20


def test_two_processes_may_write_one_file(tmp_path: Path) -> None:
    code = POSED + textwrap.dedent("""
        both = [keep_saving(1.0), keep_saving(2.0)]
        try:
            for _ in range(30):
                time.sleep(0.02)
                seen()
        finally:
            for pid in both:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        print(seen())
    """)
    done = python(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("1.0", "2.0")


def test_a_full_disk_is_one_line_and_no_file(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import resource, sys
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # files end here, as on a full disk
        from factorfield.cli.app import main
        main(["solve", "poisson", "--out", "run.nc"])
    """)
    done = python(code, tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith("error: expected") and done.stderr.count("\n") == 1
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert all(path.suffix == ".json" and json.loads(path.read_text()) for path in written)  # whole records only


def test_no_space_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command("solve", "poisson", "--out", "run.nc") == 0
    before = Path("run.nc").read_bytes()
    capsys.readouterr()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "run.nc")

    monkeypatch.setattr("factorfield.files.results._write", full)
    assert command("solve", "poisson", "--set", "noise=0.1", "--out", "run.nc") == 2
    said = capsys.readouterr().err
    assert "No space left on device" in said and said.count("\n") == 1
    assert Path("run.nc").read_bytes() == before and list(tmp_path.iterdir()) == [tmp_path / "run.nc"]


def test_a_folder_that_may_not_be_written_is_refused_before_the_solve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o555)
    folder = Path("/proc") if os.geteuid() == 0 else tmp_path  # root may write anywhere but there
    if not folder.exists():
        pytest.skip("root, and a system without /proc")
    monkeypatch.setattr(ff, "solve", lambda *_, **__: pytest.fail("solved first"))
    assert command("solve", "heat", "--out", str(folder / "run.nc")) == 2
    said = capsys.readouterr().err
    assert "output path that may be written" in said and said.count("\n") == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_whole_records_and_one_line(number: signal.Signals, code: int, tmp_path: Path) -> None:
    """Ctrl-C, and what shutdowns and batch systems send, to a study that writes a record after every draw."""
    run = [sys.executable, "-m", "factorfield.cli.app", "calibrate", "--draws", "1000", "--records", "records"]
    process = subprocess.Popen(hearing(run), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while process.poll() is None and not list(tmp_path.rglob("[!.]*.json")):  # names of unfinished ones begin so
            time.sleep(0.02)
        process.send_signal(number)
        _, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == code and "files are whole" in err and err.count("\n") == 1, err
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert left and all(path.suffix == ".json" and json.loads(path.read_text())["z"] for path in left)


def hearing(run: list[str]) -> list[str]:
    """A job in the background hands its deafness to SIGINT down to its children: hearing again comes first."""
    code = f"import os, signal; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv({run[0]!r}, {run!r})"
    return [sys.executable, "-c", code]


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes of a session are listed in /proc")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_while_workers_start_leaves_none_behind(number: signal.Signals, code: int, tmp_path: Path) -> None:
    """Ctrl-C reaches the whole group, workers that are still importing included; a batch system ends the driver."""
    run = [sys.executable, "-m", "factorfield.cli.app", "reproduce", "table1", "--methods", "joint", "--rows", "2"]
    run += ["--speeds", "0.1", "--workers", "2", "--out", str(tmp_path / "out")]
    process = subprocess.Popen(
        hearing(run), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        while process.poll() is None and not any("spawn_main" in command for command in _session(process.pid)):
            time.sleep(0.02)
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        _, err = process.communicate(timeout=120)
        end = time.monotonic() + 60.0  # Python's tracker of resources sees that its driver is gone, and ends after it
        while (left := _session(process.pid)) and time.monotonic() < end:
            time.sleep(0.05)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == code and "files are whole" in err and err.count("\n") == 1, err
    assert not left, left


def _session(leader: int) -> list[str]:
    """The command lines of a session's processes."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            state, _, _, session = (process / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == leader and state != "Z":
                found.append((process / "cmdline").read_text())
    return found


@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&-", "> /dev/full", "> /dev/full 2>&1"])
@pytest.mark.parametrize("arguments", ["list", "solve heet"])
def test_closed_and_full_streams_are_no_traceback(streams: str, arguments: str, tmp_path: Path) -> None:
    shell = f"'{sys.executable}' -m factorfield.cli.app {arguments} {streams}"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    assert done.returncode == (2 if arguments != "list" or "full" in streams else 0)
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr and done.stderr.count("\n") <= 1


def test_control_characters_are_spelt_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = "a\x1b[31m\u202e\udcff.toml"
    assert command("check", name) == 2
    said = capsys.readouterr().err
    assert r"a\x1b[31m\u202e\udcff.toml" in said and said.rstrip("\n").isprintable()
    path = tmp_path / "a.csv"
    path.write_text("x,t,u\x1b[2J\n1,2,3\n")
    with pytest.raises(ff.ProblemError) as refused:
        ff.Observations.from_file(path, x="x", t="t", u="u")
    assert str(refused.value).isprintable()


# -- names and sizes


def test_names_beyond_ascii(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "Wärme \u71b1 ü"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert command("new", "measurements") == 0
    text = Path("measurements.toml").read_text(encoding="utf-8").replace("measurements.csv", "Meßwerte.csv")
    text = text.replace('name = "measurements"', 'name = "Wärme \u71b1"').replace("measurements.nc", "läuft.nc")
    Path("ü.toml").write_text(text, encoding="utf-8")
    Path("measurements.csv").rename("Meßwerte.csv")
    assert command("solve", "ü.toml") == 0
    capsys.readouterr()
    assert command("show", "läuft.nc", "--json") == 0
    assert json.loads(capsys.readouterr().out)["problem"] == "Wärme \u71b1"


@pytest.mark.parametrize(
    "text",
    [
        'equation = "u_xx + u_yy = 1"\n[domain]\nx = [0, 1]\ny = [0, 1]\n[model]\nmodes = { x = 900, y = 900 }\n',
        'equation = "u_t = u_xx + u_yy"\n[domain]\nx = [0, 1]\ny = [0, 1]\nt = [0, 1]\n[method]\n'
        "modes = { x = 900, y = 900 }\n",
    ],
)
def test_a_model_beyond_memory_is_refused_before_it_is_allocated(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import resource

    (tmp_path / "a.toml").write_text(text)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert command("check", str(tmp_path / "a.toml")) == 2
    said = capsys.readouterr().err
    assert "GiB" in said and "try fewer modes" in said and said.count("\n") == 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kilobytes


def many_labels(count: int, of: str = "u") -> ff.Problem:
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0, 1, count), rng.uniform(0, 1, count)
    u = np.exp(-0.08 * np.pi**2 * t) * np.cos(2 * np.pi * x) + 0.1 * rng.standard_normal(count)
    return ff.Problem(
        "u_t = nu*u_xx", {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}, {"nu": 0.02},
        [ff.Observations(x=x, t=t, of=of, value=u, sigma=0.1)],
    )  # fmt: skip


def test_a_million_labels_of_a_nonlinear_functional_are_weighed_before_they_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = many_labels(1_000_000, of="u + u**2")
    monkeypatch.setattr("factorfield.model.model.available_memory", lambda: 8 << 30)
    with pytest.raises(ff.ProblemError, match=r"at most 8.0 GiB .* received \d+\.\d GiB .*; try fewer"):
        ff.solve(problem)


def test_a_million_labels_are_solved_and_sharpen_the_field() -> None:
    few, many = (ff.solve(many_labels(count), modes={"x": 3}) for count in (300, 1_000_000))
    spread = [float(s.predict(x=[0.3], t=[0.5])["std"].values.item()) for s in (few, many)]
    mean = float(many.predict(x=[0.3], t=[0.5])["mean"].values.item())
    truth = float(np.exp(-0.04 * np.pi**2) * np.cos(0.6 * np.pi))
    assert abs(mean - truth) < 4 * spread[1] and 30 < spread[0] / spread[1] < 110  # the square root of 3333 is 58
