"""What a file or a name can do to the person who receives it: numbers that disagree, commands to copy, full disks."""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import attacks
import factorfield as ff
from factorfield.cli.app import main
from factorfield.errors import nearest
from factorfield.files.seal import seal

ESCAPE = "a\x1b[31m\x9b\u202e"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    return int(end.value.code or 0)


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    assert command(*arguments) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and said.startswith("error: expected")
    return said


# -- result files whose numbers disagree, or that are odd


def first(name: str, factor: float) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        values = file[name][()]
        values.flat[values.size // 2] = factor * values.flat[values.size // 2] + 0.01
        file[name][...] = values

    return change


@pytest.mark.parametrize("name", ["mean", "std", "coefficient_mean", "posterior/weight_mean"])
def test_a_file_whose_numbers_disagree_with_each_other_is_refused(name: str, tmp_path: Path) -> None:
    """Resealed, so that the checksum holds: someone changed one of two places that say the same."""
    (tmp_path / "run.nc").write_bytes(attacks.resealed(attacks.results()[0], first(name, 1.1)))
    with pytest.raises(ff.ProblemError, match="beside it that agree"):
        ff.load(tmp_path / "run.nc")


@pytest.mark.parametrize("number", range(6))
def test_a_file_that_nobody_changed_agrees_with_itself(number: int, tmp_path: Path) -> None:
    (tmp_path / "run.nc").write_bytes(attacks.results()[number])
    ff.load(tmp_path / "run.nc")


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("trace", lambda document: document | {"iterations": [[1, 2], [3]]}),
        ("trace", lambda document: document | {"rcond": 10**400}),
        ("noise", lambda document: dict.fromkeys(document, 1e308)),
        ("noise", lambda document: dict.fromkeys(document, float("nan"))),
        ("settings", lambda document: document | {"std": float("nan"), "tolerance": [float("inf"), {}]}),
        ("timings", lambda document: dict.fromkeys(document, float("nan"))),
    ],
)
def test_odd_settings_are_shown_or_refused_in_one_line_by_every_command(
    key: str, change: Callable[[dict[str, Any]], dict[str, Any]], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(file: h5py.File) -> None:
        file.attrs[key] = json.dumps(change(json.loads(file.attrs[key])))

    Path("run.nc").write_bytes(attacks.resealed(attacks.results()[0], write))
    for arguments in (["show"], ["show", "--json"], ["predict", "--grid", "x=0:1:3"], ["report"],
                      ["next", "--sigma", "0.1"], ["plot", "--kind", "trace"]):  # fmt: skip
        capsys.readouterr()
        code = command(arguments[0], "run.nc", *arguments[1:])
        said = [line for line in capsys.readouterr().err.splitlines() if not line.startswith(("advice: ", "note: "))]
        assert code in (0, 2) and len(said) == (code == 2), (arguments, said)


def test_names_of_fields_are_few_and_short_before_they_are_read(tmp_path: Path) -> None:
    """Texts that share one entry of the heap: a file of 1 MB would read as 4 GB."""
    path = tmp_path / "run.nc"
    path.write_bytes(attacks.results()[0])
    with h5py.File(path, "a") as file:
        file["field"] = np.array(["a" * attacks.LONG] + ["b" * attacks.SHORT] * 3900, dtype=h5py.string_dtype())
    attacks.share_heap(path)
    seal(path)
    with pytest.raises(ff.ProblemError, match="at most 50 names in 'field'"):
        ff.load(path)


# -- names in messages


def test_a_misspelt_name_of_any_length_is_refused_at_once() -> None:
    begin = time.process_time()
    assert nearest("a" * 60_000, ["b" * 60_000, "a" * 59_999, "x"], "one of these") == "one of these"
    assert nearest("lenght", [f"name{i}" for i in range(300)] + ["length"]) == "'length'"
    many = [f"{'sensor' * 9}{i}" for i in range(30_000)]
    nearest("sensor" * 9 + "x", many, "one of these")
    assert time.process_time() - begin < 5.0  # 42 s of the processor before


@pytest.mark.parametrize("name", ["$(touch pwned)", "`touch pwned`", "a; touch pwned", "a' && touch pwned '"])
def test_a_command_that_a_message_suggests_runs_nothing_from_a_name(
    name: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(f"{name}.toml").write_text((attacks.POSED.format(name="data.csv")), encoding="utf-8")
    Path("true.nc").write_bytes(attacks.results()[0])
    said = [
        refused(capsys, "predict", "true.nc", "--grid", "x=0:1:3", "--csv", f"{name}/a.csv"),
        refused(capsys, "data", "generate", "advection", "--set", "b=1", "--out", f"{name}/a.h5"),
        refused(capsys, "data", "fetch", "1D_Advection_Sols_beta0.4.hdf5", "--to", name),
        refused(capsys, "show", f"{name}.toml"), refused(capsys, "check", name), refused(capsys, "solve", name),
    ]  # fmt: skip
    for line in said:
        attempt = line.rpartition("; try ")[2].strip()
        assert any(name in word for word in shlex.split(attempt)), attempt  # one word for a shell
        done = subprocess.run(["sh", "-c", attempt.replace("factorfield", "echo")], capture_output=True, check=False)
        assert done.returncode == 0
    assert not Path("pwned").exists()


def test_no_command_prints_what_a_terminal_obeys(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Names of files that exist and of files that do not, in every command that takes one."""
    result, table = f"{ESCAPE}.nc", f"{ESCAPE}.csv"
    Path(result).write_bytes(attacks.results()[0])
    Path(table).write_text("x\n0.1\n")
    Path(f"{ESCAPE}.toml").write_text('equation = "u_xx = 1"\n[domain]\nx = [0, 1]\n', encoding="utf-8")
    lines = [
        ["show", result], ["report", result], ["plot", result], ["predict", result, "--at", table],
        ["predict", result, "--grid", "x=0:1:3", "--csv", f"{ESCAPE}2.csv"],
        ["next", result, "--sigma", "0.1", "--csv", f"{ESCAPE}3.csv", "--plot", f"{ESCAPE}3.png"],
        ["solve", "poisson", "--out", f"{ESCAPE}4.nc", "--plot", f"{ESCAPE}4.png"], ["check", f"{ESCAPE}.toml"],
        ["solve", f"{ESCAPE}.toml"], ["check", ESCAPE], ["rank", f"{ESCAPE}.toml", f"{ESCAPE}2.toml"],
        ["show", f"{ESCAPE}none.nc"], ["predict", result, "--at", f"{ESCAPE}none.csv"], ["new", ESCAPE],
        ["list", ESCAPE], ["compare", ESCAPE], ["data", "fetch", ESCAPE], ["data", "audit", f"{ESCAPE}.h5"],
        ["data", "generate", "advection", "--set", "b=1", "--rows", "1", "--out", f"{ESCAPE}.h5"], [ESCAPE],
        ["solve", "poisson", "--method", ESCAPE], ["plot", result, "--kind", ESCAPE], ["data", "audit", f"{ESCAPE}.h5"],
        ["calibrate", ESCAPE], ["reproduce", ESCAPE],
    ]  # fmt: skip
    for arguments in lines:
        command(*arguments)
        said = "".join(capsys.readouterr())
        assert all(c.isprintable() or c in "\n\t" for c in said), (arguments, said)


def test_lines_for_people_are_written_in_one_place_only() -> None:
    """`say` spells control characters out; what goes around it would not."""
    folder = Path(main.__code__.co_filename).parent
    for path in folder.glob("*.py"):
        text = path.read_text()
        assert path.name == "output.py" or ("typer.echo(" not in text and "print(" not in text.replace("_print(", ""))


# -- the machine


@pytest.mark.parametrize(
    "arguments",
    ["plot RUN --out a.png", "plot RUN --out a.pdf", "plot RUN --out a.svg", "report RUN --out a.html",
     "predict RUN --grid x=0:1:9000 --csv a.csv", "data generate advection --set b=1 --rows 1 --out a.h5"],
)  # fmt: skip
def test_a_disk_that_is_full_is_one_line_for_every_file(arguments: str, tmp_path: Path) -> None:
    run = tmp_path / "run.nc"
    run.write_bytes(attacks.results()[0])
    code = "import resource, sys; from factorfield.cli.app import main\n"
    code += "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\nmain(sys.argv[1:])"
    words = arguments.replace("RUN", run.name).split()
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith("error: expected") and done.stderr.count("\n") == 1
    assert ".part" not in done.stderr and list(tmp_path.iterdir()) == [run]


@pytest.mark.parametrize("utf8", ["0", "1"])
def test_names_beyond_ascii_work_in_the_c_locale(utf8: str, tmp_path: Path) -> None:
    plain = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": utf8, "PYTHONCOERCECLOCALE": "0"}
    folder = tmp_path / "Wärme"
    folder.mkdir()
    (folder / "ü.toml").write_text(
        'name = "Wärme"\nequation = "u_xx = 1"\n[domain]\nx = [0, 1]\n[units]\nu = "°C"\n'
        '[[boundary]]\ntext = "u = 0"\nat = { x = 0 }\n[[boundary]]\ntext = "u = 0"\nat = { x = 1 }\n', encoding="utf-8"
    )  # fmt: skip
    for words in (["solve", "ü.toml", "--out", "läuft.nc", "--plot", "ü.png"], ["show", "läuft.nc"],
                  ["report", "läuft.nc"], ["show", "läuft.nc", "--json"], ["predict", "läuft.nc", "--grid", "x=0:1:3"],
                  ["show", "fehlt ü.nc"]):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "factorfield", *words], cwd=folder, capture_output=True, env=os.environ | plain
        )
        missing = words[1].startswith("fehlt")
        assert done.returncode == (2 if missing else 0), done.stderr
        assert b"Traceback" not in done.stderr and done.stderr.count(b"\n") == missing
        if words[-1] == "--json":
            assert json.loads(done.stdout)["problem"] == "Wärme"


@pytest.mark.parametrize("seed", range(12))
def test_a_signal_at_any_moment_is_one_line(seed: int, tmp_path: Path) -> None:
    """Imports included; before Python runs our first line, the process ends as any does."""
    rng = random.Random(seed)
    number, code = rng.choice([(signal.SIGINT, 130), (signal.SIGTERM, 143)])
    # the process says when it runs our code: from there on no moment is left out
    begin = "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    begin += "import factorfield.cli.signals as s; from factorfield.__main__ import main\n"
    begin += "s.signal.signal(signal.SIGTERM, s.end_at_once); s.signal.signal(signal.SIGINT, s.end_at_once)\n"
    begin += "os.write(1, b'.'); main()"
    process = subprocess.Popen(
        [sys.executable, "-c", begin, "solve", "poisson", "--out", "run.nc", "--plot", "run.png"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.read(1) == b"."
    time.sleep(rng.uniform(0.0, 1.2))
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    finished = process.returncode == 0 and err == b""
    assert finished or (process.returncode == code and b"files are whole" in err and err.count(b"\n") == 1), err
    assert not list(tmp_path.glob(".*"))


# -- a folder that somebody else filled


def in_folder(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "factorfield", *words], cwd=folder, capture_output=True, text=True)


def test_modules_in_the_current_folder_are_not_run(tmp_path: Path) -> None:
    for name in ("numpy", "typer", "signal", "click", "xarray"):
        (tmp_path / f"{name}.py").write_text("open('pwned', 'w').write('')")
    (tmp_path / "run.nc").write_bytes(attacks.results()[0])
    assert in_folder(tmp_path, "show", "run.nc").returncode == 0
    assert not (tmp_path / "pwned").exists()


def test_settings_of_numba_in_the_current_folder_are_refused(tmp_path: Path) -> None:
    """They may name a folder of cached code, which Numba runs."""
    (tmp_path / ".numba_config.yaml").write_text("cache_dir: planted\n")
    done = in_folder(tmp_path, "solve", "advection", "--method", "mean-field")
    assert done.returncode == 2 and "expected a folder without settings of Numba" in done.stderr
    assert not (tmp_path / "planted").exists()
    around = re.compile(r"^\s*(import numba|from numba)", re.MULTILINE)  # the guard is in compiled.py
    assert not [path for path in Path(ff.__file__).parent.rglob("*.py") if around.search(path.read_text())]


def test_settings_of_matplotlib_in_the_current_folder_are_not_used(tmp_path: Path) -> None:
    """LaTeX, which they may ask for, reads files and runs what it is given; pictures would be laid out anew."""
    (tmp_path / "run.nc").write_bytes(attacks.results()[0])
    pictures = []
    for text in ("", "text.usetex: True\nsvg.image_inline: False\nlines.linewidth: 30\nfont.weight: bold\n"):
        (tmp_path / "matplotlibrc").write_text(text)
        assert in_folder(tmp_path, "plot", "run.nc", "--kind", "fields", "--out", "a.png").returncode == 0
        pictures.append((tmp_path / "a.png").read_bytes())
        assert in_folder(tmp_path, "plot", "run.nc", "--kind", "fields", "--out", "a.svg").returncode == 0
    assert pictures[0] == pictures[1]
