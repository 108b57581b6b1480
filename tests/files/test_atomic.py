"""Files appear complete or not at all."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from factorfield.files.atomic import complete, part_of


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


def test_a_planted_part_with_a_number_that_no_process_has_is_removed(tmp_path: Path) -> None:
    target = tmp_path / "run.nc"
    planted = part_of(target)
    planted.rename(planted.with_name(re.sub(r"-\d+-", f"-{'9' * 30}-", planted.name)))
    with complete(target) as part:
        part.write_text("whole")
    assert list(tmp_path.iterdir()) == [target]


def test_a_name_that_is_no_text_can_be_written(tmp_path: Path) -> None:
    target = tmp_path / "run\udcff.nc"
    with complete(target) as part:
        part.write_text("whole")
    assert target.read_text() == "whole"
