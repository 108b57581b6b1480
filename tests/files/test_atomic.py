"""Files appear complete or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from factorfield.files.atomic import complete


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
