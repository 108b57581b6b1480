"""Files from strangers: each is read, or refused in one line. benchmarks/attack.py does the same by the thousands."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

import h5py
import numpy as np
import pytest

import attacks
import factorfield as ff
from factorfield.cli.app import main
from factorfield.files.seal import LENGTH

COUNT = int(os.environ.get("FACTORFIELD_ATTACKS", "16"))


@pytest.mark.parametrize("kind", sorted(attacks.KINDS))
def test_a_changed_file_is_read_or_refused_in_one_line(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = set()
    for number in range(COUNT):
        made = attacks.mutant(kind, number)
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        file = made.write(folder).name
        for arguments in attacks.COMMANDS[kind]:
            err = io.StringIO()
            quiet = contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err)
            with quiet[0], quiet[1], pytest.raises(SystemExit) as end:
                main([word.replace("FILE", file) for word in arguments])
            codes.add(end.value.code)
            said = [line for line in err.getvalue().splitlines() if not line.startswith(("advice: ", "note: "))]
            assert len(said) == (end.value.code == 2), (number, made.how, said)
    assert codes == {0, 2}  # a fuzzer whose files are all refused at the door, or all read, tests little


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return ff.solve(ff.problems.get("poisson")).save(tmp_path_factory.mktemp("run") / "run.nc")


def test_a_flipped_bit_is_told_and_not_used(saved: Path, tmp_path: Path) -> None:
    whole, path = saved.read_bytes(), tmp_path / "run.nc"
    for at in np.random.default_rng(0).integers(len(whole), size=60):
        changed = bytearray(whole)
        changed[at] ^= 1 << int(at % 8)
        path.write_bytes(changed)
        with pytest.raises(ff.ProblemError, match=r"as it was saved|with its checksum"):
            ff.load(path)
    for cut in (whole[:-LENGTH], whole[: len(whole) // 2], b""):
        path.write_bytes(cut)
        with pytest.raises(ff.ProblemError, match=r"with its checksum|written by solution.save"):
            ff.load(path)


@pytest.mark.parametrize("version", [0, -1, 2.5, "3", 99, True])
def test_other_versions_are_refused(version: object, saved: Path, tmp_path: Path) -> None:
    changed = attacks.resealed(saved.read_bytes(), lambda file: file.attrs.update(format_version=version))
    (tmp_path / "run.nc").write_bytes(changed)
    with pytest.raises(ff.ProblemError, match=r"of format|version up to"):
        ff.load(tmp_path / "run.nc")


def test_descriptions_in_too_many_levels_are_refused(saved: Path, tmp_path: Path) -> None:
    nested = '{"a": ' + "[" * 200 + "]" * 200 + "}"
    changed = attacks.resealed(saved.read_bytes(), lambda file: file.attrs.update(settings=nested))
    (tmp_path / "run.nc").write_bytes(changed)
    with pytest.raises(ff.ProblemError, match="at most 30 levels"):
        ff.load(tmp_path / "run.nc")


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e308])
def test_boxes_of_other_than_numbers_are_refused(value: float, tmp_path: Path) -> None:
    def change(file: h5py.File) -> None:
        file["posterior/box_roots"][...] = value

    (tmp_path / "run.nc").write_bytes(attacks.resealed(attacks.results()[4], change))
    with pytest.raises(ff.ProblemError, match="others in box_roots"):
        ff.load(tmp_path / "run.nc")


def test_a_template_is_written_neither_through_a_link_nor_in_place_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "heat.toml").symlink_to("../planted.toml")
    for force in ([], ["--force"]):
        with pytest.raises(SystemExit) as end:
            main(["new", "heat", *force])
        assert end.value.code == 2
    assert not (tmp_path / "planted.toml").exists() and (folder / "heat.toml").is_symlink()
