"""Data files from strangers: nothing outside them is read, nothing larger than the limit, and no damage is a crash."""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path

import h5netcdf
import h5py
import numpy as np
import pytest
import xarray as xr

import attacks
import factorfield as ff
from factorfield.problem import tables

Change = Callable[[h5py.File, Path], None]
COLUMNS = {"x": np.array([0.1, 0.5, 0.9]), "t": np.zeros(3), "u": np.array([1.0, 2.0, 3.0])}


def observed(path: Path) -> ff.Observations:
    return ff.Observations.from_file(path, x="x", t="t", u="u")


def external_storage(file: h5py.File, folder: Path) -> None:
    file.create_dataset("u", (3,), "f8", external=[(str(folder / "secret"), 0, 24)])


def virtual(file: h5py.File, folder: Path) -> None:
    layout = h5py.VirtualLayout((3,), "f8")
    layout[:] = h5py.VirtualSource(folder / "secret.h5", "u", (3,))
    file.create_virtual_dataset("u", layout)


def external_link(file: h5py.File, folder: Path) -> None:
    file["u"] = h5py.ExternalLink(str(folder / "secret.h5"), "/u")


def soft_link(file: h5py.File, _: Path) -> None:
    file["u"] = h5py.SoftLink("/x")


def reference(file: h5py.File, _: Path) -> None:
    file["u"] = COLUMNS["u"]
    file["u"].attrs["other"] = file["x"].ref


def references(file: h5py.File, _: Path) -> None:
    file.create_dataset("u", (3,), h5py.ref_dtype)


def text(file: h5py.File, _: Path) -> None:
    file["u"] = ["a", "b", "c"]


def compound(file: h5py.File, _: Path) -> None:
    file["u"] = np.zeros(3, [("a", "f8"), ("b", "i4")])


def complex_numbers(file: h5py.File, _: Path) -> None:
    file["u"] = COLUMNS["u"] + 1j


def nothing(file: h5py.File, _: Path) -> None:
    file["u"] = h5py.Empty("f8")


def terabytes(file: h5py.File, _: Path) -> None:
    file.create_dataset("u", (1 << 37,), "f8", chunks=(1 << 10,))


def huge_chunk(file: h5py.File, _: Path) -> None:
    file.create_dataset("u", (3,), "f8", chunks=(1 << 28,), maxshape=(None,))


def bomb(file: h5py.File, _: Path) -> None:
    """300 kB that unpack to 300 MB, in a chunk that declares 24 bytes."""
    made = file.create_dataset("u", (3,), "f8", chunks=(3,), compression="gzip")
    packer = zlib.compressobj(9)
    block = bytes(1 << 20)
    packed = b"".join(packer.compress(block) for _ in range(300)) + packer.flush()
    made.id.write_direct_chunk((0,), packed)


ELSEWHERE = [external_storage, virtual, external_link, soft_link, reference]
NO_NUMBERS = [references, text, compound, complex_numbers, nothing]
TOO_LARGE = [terabytes, huge_chunk, bomb]


@pytest.mark.parametrize("ending", ["h5", "nc"])
@pytest.mark.parametrize("change", [*ELSEWHERE, *NO_NUMBERS, *TOO_LARGE])
def test_what_is_no_number_inside_the_file_is_refused(change: Change, ending: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(np.arange(3.0).tobytes())
    with h5py.File(tmp_path / "secret.h5", "w") as secret:
        secret["u"] = np.arange(3.0)
    path = tmp_path / f"a.{ending}"
    with h5py.File(path, "w") as file:
        file["x"], file["t"] = COLUMNS["x"], COLUMNS["t"]
        change(file, tmp_path)
    words = {"numbers inside the file": ELSEWHERE, "real numbers": NO_NUMBERS, "MiB|chunks": TOO_LARGE}
    said = next(word for word, changes in words.items() if change in changes)
    with pytest.raises(ff.ProblemError, match=f"expected .*({said})") as refused:
        observed(path)
    assert "\n" not in str(refused.value)


def test_only_the_named_variables_are_read(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, values in COLUMNS.items():
            file[name] = values
        assert file.create_dataset("unused", (1 << 37,), "f8", chunks=(1 << 10,)).nbytes == 1 << 40
    assert np.array_equal(observed(tmp_path / "a.h5").columns["u"], COLUMNS["u"])
    grid = {"u": (("t", "x"), np.ones((2, 3)))}
    xr.Dataset(grid, {"t": [0.0, 1.0], "x": [0.1, 0.2, 0.3]}).to_netcdf(tmp_path / "b.nc", engine="h5netcdf")
    with h5netcdf.File(tmp_path / "b.nc", "a") as file:
        file.dimensions["z"] = 1 << 37
        file.create_variable("unused", ("z",), "f8", chunks=(1 << 10,))
    assert np.size(observed(tmp_path / "b.nc").columns["u"]) == 6


def test_variables_that_meet_in_a_huge_grid_are_refused(tmp_path: Path) -> None:
    axes = {name: (name, np.linspace(0, 1, 2000)) for name in "xtu"}
    xr.Dataset(axes).to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with pytest.raises(ff.ProblemError, match=r"at most \d+ rows of 3 columns, received 8000000000 in a\.nc"):
        observed(tmp_path / "a.nc")


def test_five_million_rows_of_six_columns_are_within_the_limit() -> None:
    assert tables.MOST_VALUES >= 6 * 5_000_000


@pytest.mark.parametrize("ending", ["h5", "nc"])
def test_a_damaged_file_is_one_line(ending: str, tmp_path: Path) -> None:
    """Bytes exchanged at random: read, or refused; never another error."""
    path, rng = tmp_path / f"a.{ending}", np.random.default_rng(0)
    if ending == "nc":
        points = {name: ("point", values) for name, values in COLUMNS.items()}
        xr.Dataset(points).to_netcdf(path, engine="h5netcdf")
    else:
        with h5py.File(path, "w") as file:
            for name, values in COLUMNS.items():
                file[name] = values
    whole, refused = path.read_bytes(), 0
    for _ in range(150):
        bytes_ = bytearray(whole)
        for at in rng.integers(len(whole), size=rng.integers(1, 20)):
            bytes_[at] = rng.integers(256)
        path.write_bytes(bytes_)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of gaps: some numbers have become NaN
                observed(path)
        except ff.ProblemError as problem:
            refused += 1
            assert "\n" not in str(problem)
    assert 20 < refused < 150


def test_a_file_of_many_small_chunks_is_walked_once(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name in COLUMNS:
            file.create_dataset(name, data=np.linspace(0, 1, 10_000), chunks=(1,), compression="gzip")
    begin = time.process_time()
    found = observed(tmp_path / "a.h5")
    assert np.array_equal(found.columns["u"], np.linspace(0, 1, 10_000))
    assert time.process_time() - begin < 10.0  # of this process alone; by its number each chunk is searched: 60 s


def test_more_variables_than_xarray_can_look_at_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("factorfield.problem.hdf5.MOST_VARIABLES", 5)
    more = {f"v{i}": ("point", np.zeros(3)) for i in range(6)}
    whole = xr.Dataset({name: ("point", values) for name, values in COLUMNS.items()} | more)
    whole.to_netcdf(tmp_path / "a.nc", engine="h5netcdf")
    with pytest.raises(ff.ProblemError, match="at most 5 variables"):
        observed(tmp_path / "a.nc")


def test_what_xarray_thinks_of_odd_attributes_is_not_told(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.nc", "w") as file:
        for name, values in COLUMNS.items():
            file[name] = values
        file["x"].attrs["_Unsigned"] = "true"  # of numbers that are no integers
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(observed(tmp_path / "a.nc").columns["x"], COLUMNS["x"])


# -- attributes: xarray reads all of them


def test_texts_that_share_one_entry_of_the_heap_are_counted_before_they_are_read(tmp_path: Path) -> None:
    """A file of 1 MB that reads as 3 GB."""
    path = tmp_path / "a.nc"
    with h5py.File(path, "w") as file:
        for name, values in COLUMNS.items():
            file[name] = values
        attacks.heap_attribute(file["u"], 3000)
    attacks.share_heap(path)
    assert path.stat().st_size < 1_500_000
    with pytest.raises(ff.ProblemError, match="at most 16 texts in an attribute of u"):
        observed(path)


def test_long_texts_in_many_attributes_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("factorfield.problem.hdf5.MOST_TEXT", 1 << 20)
    path = tmp_path / "a.nc"
    with h5py.File(path, "w") as file:
        for name, values in COLUMNS.items():
            file[name] = values
        for index in range(20):
            file["u"].attrs[f"a{index}"] = "c" * 60_000
    with pytest.raises(ff.ProblemError, match="attributes of 1 MiB in all"):
        observed(path)


def test_a_file_has_no_more_attributes_than_are_read_in_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("factorfield.problem.hdf5.MOST_ATTRIBUTES", 50)
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        for name, values in COLUMNS.items():
            file[name] = values
        for index in range(60):
            file.attrs[f"a{index}"] = index
    with pytest.raises(ff.ProblemError, match="at most 50 attributes"):
        observed(path)


def test_attributes_of_a_sound_file_are_no_hindrance(tmp_path: Path) -> None:
    path = tmp_path / "a.nc"
    table = xr.Dataset({name: ("point", values) for name, values in COLUMNS.items()})
    table["u"].attrs = {"flags": ["good", "bad", "none"], "range": np.arange(40.0), "long_name": "temperature"}
    table.to_netcdf(path, engine="h5netcdf")
    assert len(np.ravel(observed(path).columns["u"])) == 3
