"""PDEBench's files: rows read exactly, a few at a time, or refused in one line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

import factorfield as ff
from factorfield.data.audit import audit
from factorfield.data.pdebench import PAPER_ROWS, open_rows, read_row
from published import data_command, published_layout


def test_rows_are_read_bit_exactly_by_position_and_by_name(pdebench: Path) -> None:
    path = pdebench / "1D_Advection_Sols_beta0.4.hdf5"
    data = open_rows(path, [3, 0])
    with h5py.File(path) as stored:
        assert np.array_equal(data["u"].values, stored["tensor"][:][[3, 0]])
    assert data["u"].dtype == np.float32 and data.attrs == {"equation": "advection", "b": 0.4}
    assert data["t"].values[-1] == 2.0 and data["t"].values[57] == 0.57 and data.sizes["t"] == 201
    paper = open_rows(path, "paper")
    assert tuple(paper["row"].values) == PAPER_ROWS and paper.sizes["row"] == 10


def test_one_row_of_a_file_of_published_shape_is_read_in_little_memory(tmp_path: Path) -> None:
    """10,000 x 201 x 1024 float32 (8 GB), sparse on disk: reading one row must not load the others."""
    path = tmp_path / "sparse.hdf5"
    with h5py.File(path, "w") as stored:
        tensor = stored.create_dataset("tensor", (10_000, 201, 1024), "f4")
        tensor[9394] = 1.5
        stored["t-coordinate"] = np.arange(202, dtype="f4") / np.float32(100)
        stored.attrs["beta"] = 0.4
    code = (
        "import resource, sys\nfrom factorfield.data.pdebench import open_rows\nimport xarray, h5py\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"data = open_rows({str(path)!r}, [9394]); assert float(data['u'].mean()) == 1.5\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 50 * 1024  # KiB


def test_burgers_files_have_the_same_layout(tmp_path: Path) -> None:
    path = published_layout(tmp_path / "burgers.hdf5", np.zeros((2, 5, 16), "f4"), Nu=0.01)
    assert open_rows(path).attrs == {"equation": "burgers", "nu": 0.01}
    with pytest.raises(ff.ProblemError, match="advection or reaction-diffusion"):
        audit(path)


def test_unusable_files_are_refused_in_one_line(tmp_path: Path) -> None:
    good = published_layout(tmp_path / "good.hdf5", np.zeros((2, 5, 16), "f4"), beta=1.0)
    (tmp_path / "text.hdf5").write_text("not HDF5")
    (tmp_path / "cut.hdf5").write_bytes(good.read_bytes()[:1000])
    with h5py.File(tmp_path / "other.hdf5", "w") as stored:
        stored["density"] = np.zeros(3)
    published_layout(tmp_path / "bare.hdf5", np.zeros((2, 5, 16), "f4"))
    for name, rows, words in [
        ("text.hdf5", None, "HDF5"), ("cut.hdf5", None, "HDF5"), ("other.hdf5", None, "density"),
        ("bare.hdf5", None, "attributes"), ("good.hdf5", [2], "rows between 0 and 1"),
        ("good.hdf5", "first", "'paper'"),
        ("good.hdf5", "paper", "without row 9394"), ("none.hdf5", None, "existing"),
    ]:  # fmt: skip
        with pytest.raises(ff.ProblemError, match=words) as caught:
            open_rows(tmp_path / name, rows)  # type: ignore[arg-type]
        assert "\n" not in str(caught.value)
        if name != "good.hdf5":
            done = data_command("audit", name, cwd=tmp_path)
            assert done.returncode == 2 and "Traceback" not in done.stderr


def test_pdebench_rows_are_read_bit_exactly_with_repaired_coordinates(pdebench: Path) -> None:
    import h5py

    path = pdebench / "1D_Advection_Sols_beta0.4.hdf5"
    row = read_row(path, 2)
    with h5py.File(path) as stored:
        assert np.array_equal(row.field, stored["tensor"][2].astype(float))
    assert row.physics == {"b": 0.4} and row.t.shape == (201,) and row.t[-1] == 2.0 and row.x[0] == 0.5 / 1024
    problem = ff.problems.get("advection", file=path, row=2)
    assert problem.constants == {"b": 0.4}
    # the stored field's own error at b = 0.4 is 1.2e-3 on average (FACTS.md)
    assert float(np.sqrt(((problem.stored - problem.truth) ** 2).mean())) < 4e-3


def replaced(name: str, values: object) -> Callable[[h5py.File], None]:
    def change(file: h5py.File) -> None:
        if name in file:
            del file[name]
        file[name] = values

    return change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda file: file.attrs.update(beta=np.nan), "b up to"),
        (lambda file: file.attrs.update(beta=1e308), "b up to"),
        (replaced("t-coordinate", np.zeros(22)), "times that increase"),
        (replaced("t-coordinate", np.zeros(5000)), "at most 43 numbers in 't-coordinate'"),
        (replaced("tensor", np.zeros((3, 21, 1))), "4 cells or more"),
        (replaced("tensor", np.zeros((0, 21, 32))), "rows, two times"),
        (replaced("tensor", np.full((3, 21, 32), np.nan)), "numbers in every row"),
        (replaced("pdebench-row", ["a", "b", "c"]), "numbers in 'pdebench-row'"),
    ],
)  # fmt: skip
def test_files_that_somebody_made_up_are_refused_in_one_line(
    change: Callable[[h5py.File], None], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.hdf5"
    with h5py.File(path, "w") as file:
        file["tensor"], file.attrs["beta"] = np.zeros((3, 21, 32), "f4"), 0.4
        file["t-coordinate"] = np.linspace(0, 2, 22)
        change(file)
    with pytest.raises(ff.ProblemError, match=said):
        open_rows(path)
