"""Files appear complete or not at all."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import factorfield as ff
from factorfield.files.atomic import complete
from factorfield.files.results import check_writable


def test_a_file_appears_at_the_end_with_the_usual_permissions(tmp_path: Path) -> None:
    target, plain = tmp_path / "run.nc", tmp_path / "plain"
    plain.touch()
    with complete(target) as part:
        part.write_text("all of it")
        assert not target.exists() and part.suffix == ".nc" and part.parent == tmp_path
    assert target.read_text() == "all of it" and target.stat().st_mode == plain.stat().st_mode


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError])
def test_a_failure_leaves_the_file_before_it(stop: type[BaseException], tmp_path: Path) -> None:
    target = tmp_path / "run.nc"
    target.write_text("before")
    with pytest.raises(stop), complete(target) as part:
        part.write_text("half")
        raise stop
    assert target.read_text() == "before" and list(tmp_path.iterdir()) == [target]


def test_what_a_killed_process_left_is_removed_at_the_next_time(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from factorfield.files.atomic import complete\n"
        "with complete(Path(sys.argv[1])) as part: part.write_text('half'), os.kill(os.getpid(), signal.SIGKILL)"
    )
    for _ in range(2):
        subprocess.run([sys.executable, "-c", code, str(tmp_path / "run.nc")], check=False)
        assert len(list(tmp_path.iterdir())) == 1  # the part of the last one only
    with complete(tmp_path / "other.nc") as part:
        part.touch()
    assert len(list(tmp_path.glob(".run.*.part.nc"))) == 1  # another file's is not ours to remove
    with complete(tmp_path / "run.nc") as part, complete(tmp_path / "run.nc") as second:
        part.write_text("one"), second.write_text("two")  # of a living process: kept
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.nc", "run.nc"]


def test_a_long_name_has_a_part_too(tmp_path: Path) -> None:
    target = tmp_path / ("ü" * 120 + ".nc")
    with complete(target) as part:
        part.write_text("all")
    assert target.read_text() == "all"


def planted(target: Path, system: str | None = None, process: str = "9" * 30) -> Path:
    """A part as another process would leave it."""
    with complete(target) as part:
        name = re.sub(r"-\d+-", f"-{process}-", part.name)
    target.unlink()
    found = target.with_name(name if system is None else re.sub(r"\.\w+-(?=\d)", f".{system}-", name))
    found.write_text("half")
    return found


def test_a_planted_part_with_a_number_that_no_process_has_is_removed(tmp_path: Path) -> None:
    target = tmp_path / "run.nc"
    planted(target)
    with complete(target) as part:
        part.write_text("whole")
    assert list(tmp_path.iterdir()) == [target]


def test_a_part_of_another_namespace_is_kept_for_a_day(tmp_path: Path) -> None:
    """Its writer may live although no process here has its number."""
    target = tmp_path / "run.nc"
    other = planted(target, "a1b2c3")
    for _ in range(2):
        with complete(target) as part:
            part.write_text("whole")
    assert other.exists()
    os.utime(other, (0, 0))
    with complete(target) as part:
        part.write_text("whole")
    assert not other.exists()


@pytest.mark.skipif(not Path("/proc/self/ns/pid").exists(), reason="no namespaces here")
def test_a_writer_in_a_namespace_of_processes_has_a_name_of_its_own(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from factorfield.files.atomic import complete\n"
    code += "with complete(Path(sys.argv[1])) as part: print(part.name)"
    run = [sys.executable, "-c", code, str(tmp_path / "run.nc")]
    apart = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
    done = [subprocess.run(line, capture_output=True, text=True, check=False) for line in (run, [*apart, *run])]
    if done[1].returncode:
        pytest.skip("namespaces cannot be made here")
    one, two = (part.stdout.split("-")[0] for part in done)
    assert one and two and one != two


@pytest.mark.parametrize("kind", ["link", "link to nothing", "pipe", "device"])
def test_only_plain_files_are_replaced(kind: str, tmp_path: Path) -> None:
    target, other = tmp_path / "run.nc", tmp_path / "other"
    if kind == "pipe":
        os.mkfifo(target)
    elif kind == "device":
        target = Path("/dev/full")
        if not target.exists():
            pytest.skip("no devices here")
    else:
        if kind == "link":
            other.write_text("mine")
        target.symlink_to(other)
    before = os.lstat(target)
    with pytest.raises(ff.ProblemError, match="a plain file to write"):
        check_writable(target)
    with pytest.raises(ff.ProblemError, match="a plain file to write"), complete(target) as part:
        part.write_text("mine too")
    after = os.lstat(target)
    assert (after.st_ino, after.st_mode, after.st_rdev) == (before.st_ino, before.st_mode, before.st_rdev)
    assert not other.exists() or other.read_text() == "mine"


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_keeps_its_mode_and_shows_nobody_its_part(mode: int, tmp_path: Path) -> None:
    target = tmp_path / "run.nc"
    target.touch()
    target.chmod(mode)
    with complete(target) as part:
        part.write_text("whole")
        assert part.stat().st_mode & 0o077 == 0
    assert target.stat().st_mode & 0o777 == mode


def test_a_name_that_is_no_text_can_be_written(tmp_path: Path) -> None:
    target = tmp_path / "run\udcff.nc"
    with complete(target) as part:
        part.write_text("whole")
    assert target.read_text() == "whole"
