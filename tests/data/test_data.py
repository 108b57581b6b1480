"""PDEBench files: read exactly, fetched safely, audited honestly, regenerated; and columns of one's own."""

from __future__ import annotations

import hashlib
import http.server
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import xarray as xr
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.data import fetch as fetching
from factorfield.data import reference
from factorfield.data.audit import audit
from factorfield.data.fetch import FILES, Published, fetch
from factorfield.data.generate import generate
from factorfield.data.initial import pdebench_wave
from factorfield.data.pdebench import PAPER_ROWS, open_rows


def cli(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "factorfield.cli.app", "data", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def published_layout(path: Path, tensor: np.ndarray, **attributes: float) -> Path:
    with h5py.File(path, "w") as stored:
        stored["tensor"] = tensor
        stored["x-coordinate"] = ((np.arange(tensor.shape[2]) + 0.5) / tensor.shape[2]).astype("f4")
        stored["t-coordinate"] = np.arange(tensor.shape[1] + 1, dtype="f4") / np.float32(100)
        stored.attrs.update(attributes)
    return path


# -- reading


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
            done = cli("audit", name, cwd=tmp_path)
            assert done.returncode == 2 and "Traceback" not in done.stderr


# -- fetching


class Server:
    """A local server that can break off, ignore ranges, or send something else."""

    def __init__(self) -> None:
        self.content = np.random.default_rng(0).bytes(300_000)
        self.break_after: int | None = None
        self.breaks = 0
        self.ranges = True
        self.log: list[str | None] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def log_message(self, *_: Any) -> None: ...

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        asked = handler.headers.get("Range")
        self.log.append(asked)
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.ranges else 0
        if start >= len(self.content):
            handler.send_error(416)
            return
        handler.send_response(206 if asked and self.ranges else 200)
        handler.send_header("Content-Length", str(len(self.content) - start))
        handler.end_headers()
        body = self.content[start:]
        if self.break_after is not None and self.breaks > 0:
            self.breaks -= 1
            body = body[: self.break_after]
        handler.wfile.write(body)

    def file(self, content: bytes | None = None) -> Published:
        digest = hashlib.md5(content or self.content).hexdigest()
        return Published("file.hdf5", f"http://127.0.0.1:{self.server.server_port}/file", digest)


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.server.shutdown()
    running.server.server_close()


def test_a_file_is_fetched_checked_and_reported(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    path = fetch(server.file(), tmp_path, lambda done, total: seen.append((done, total)))
    assert path.read_bytes() == server.content and seen[-1] == (300_000, 300_000)
    assert os.listdir(tmp_path) == ["file.hdf5"]
    requests = len(server.log)
    assert fetch(server.file(), tmp_path) == path and len(server.log) == requests  # nothing to do


def test_a_broken_download_continues_where_it_stopped(server: Server, tmp_path: Path) -> None:
    server.break_after, server.breaks = 100_000, 2
    assert fetch(server.file(), tmp_path).read_bytes() == server.content
    assert server.log == [None, "bytes=100000-", "bytes=200000-"]


def test_a_download_that_keeps_breaking_stays_for_the_next_call(server: Server, tmp_path: Path) -> None:
    server.break_after, server.breaks = 10_000, 5
    with pytest.raises(ff.ProblemError, match="50000 bytes before the connection broke 5 times"):
        fetch(server.file(), tmp_path)
    assert os.listdir(tmp_path) == ["file.hdf5.part"]
    assert fetch(server.file(), tmp_path).read_bytes() == server.content
    assert server.log[-1] == "bytes=50000-" and os.listdir(tmp_path) == ["file.hdf5"]


def test_a_server_without_ranges_is_read_from_the_beginning(server: Server, tmp_path: Path) -> None:
    server.break_after, server.breaks, server.ranges = 100_000, 1, False
    assert fetch(server.file(), tmp_path).read_bytes() == server.content


def test_a_wrong_checksum_leaves_nothing_behind(server: Server, tmp_path: Path) -> None:
    with pytest.raises(ff.ProblemError, match="expected MD5"):
        fetch(server.file(b"something else"), tmp_path)
    assert os.listdir(tmp_path) == []


def test_too_small_a_disk_is_refused_with_the_space_needed(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with pytest.raises(ff.ProblemError, match=r"expected 0\.00 GiB of free space"):
        fetch(server.file(), tmp_path)
    assert os.listdir(tmp_path) == []


def test_bad_requests_to_fetch_are_answered_in_one_line(server: Server, tmp_path: Path) -> None:
    with pytest.raises(ff.ProblemError, match=r"1D_Advection_Sols_beta0\.4\.hdf5"):
        fetch("1D_Advection_Sols_beta0.4", tmp_path)
    with pytest.raises(ff.ProblemError, match="existing folder"):
        fetch(server.file(), tmp_path / "none")
    (tmp_path / "file.hdf5").write_text("mine")
    with pytest.raises(ff.ProblemError, match="moving it away"):
        fetch(server.file(), tmp_path)
    gone = Published("gone.hdf5", "http://127.0.0.1:9/none", "0")
    with pytest.raises(ff.ProblemError, match="connection broke"):
        fetch(gone, tmp_path)
    assert (tmp_path / "file.hdf5").read_text() == "mine"


def test_the_table_of_files_is_complete(tmp_path: Path) -> None:
    assert (
        len(FILES) == 24 and len({f.md5 for f in FILES.values()}) == 24 and len({f.url for f in FILES.values()}) == 24
    )
    assert all(len(f.md5) == 32 for f in FILES.values())
    assert cli("fetch", cwd=tmp_path).stdout.split() == list(FILES)


# -- generating and auditing


def test_generated_initial_conditions_have_the_published_statistics() -> None:
    """10,000 draws; published: doubles 0.25, folded and windowed 0.1, u in [-3.35, 3.41], mean -0.012, std 0.797."""
    waves = [pdebench_wave(row, seed=1) for row in range(10_000)]
    x = (np.arange(64) + 0.5) / 64
    values = np.stack([wave(x) for wave in waves])
    share = [np.mean([w.counts.max() == 2 for w in waves]), np.mean([w.folded for w in waves]),
             np.mean([w.window is not None for w in waves]), np.mean([w.sign > 0 for w in waves])]  # fmt: skip
    for found, exact in zip(share, (0.25, 0.1, 0.1, 0.5), strict=True):
        assert found == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 10_000))  # four standard errors
    # fields of one row are correlated: the mean's error is that of 10,000 row means with std about 0.6
    assert values.mean() == pytest.approx(0.0, abs=4 * 0.6 / 100)
    assert values.std() == pytest.approx(0.797, abs=0.02)
    assert -4.0 < values.min() < -2.8 and 2.8 < values.max() < 4.0
    windows = np.array([w.window for w in waves if w.window is not None])
    assert windows.min() >= 0.1 and windows.max() <= 0.135


@pytest.mark.parametrize(("equation", "physics"), [("advection", {"b": 0.4}), ("fisher-kpp", {"nu": 1.0, "rho": 10.0})])
def test_a_generated_file_has_the_published_layout_and_passes_the_audit(
    equation: str, physics: dict[str, float], tmp_path: Path
) -> None:
    path = generate(equation, tmp_path / "own.hdf5", 3, physics)
    with h5py.File(path) as stored:
        frames = 201 if equation == "advection" else 101
        assert stored["tensor"].shape == (3, frames, 1024) and stored["tensor"].dtype == np.float32
        assert stored["t-coordinate"].shape == (frames + 1,) and stored["x-coordinate"].shape == (1024,)
    result = audit(path)
    assert result.defects == [] and result.physics == physics
    assert max(row.error for row in result.rows) < 1e-5
    problem = ff.problems.get(equation, file=path, row=1)
    assert problem.constants == physics and problem.stored.shape == (frames, 1024)


def test_defects_are_told_apart(tmp_path: Path) -> None:
    path = generate("advection", tmp_path / "own.hdf5", 2, {"b": 0.8})
    with h5py.File(path, "a") as stored:
        stored.attrs["beta"] = 0.4  # waves at twice the stated speed, as before August 2023
    assert audit(path).defects == ["wrong speed"]
    assert audit(path).rows[0].speed == pytest.approx(0.8, rel=1e-3)
    with h5py.File(path, "a") as stored:
        stored.attrs["beta"] = 0.8
        stored["tensor"][1, 120:] = stored["tensor"][1, 120]
    result = audit(path)
    assert [row.verdict for row in result.rows] == ["ok", "freeze"] and result.rows[1].frozen_from == 1.2
    x = (np.arange(256) + 0.5) / 256
    diffused = np.stack([np.exp(-0.5 * (2 * np.pi) ** 2 * t) * np.sin(2 * np.pi * x) for t in np.arange(101) / 100])
    wrong = published_layout(tmp_path / "heat.hdf5", (0.5 + 0.4 * diffused)[None].astype("f4"), Nu=0.1, rho=1.0)
    assert audit(wrong).defects == ["wrong equation"]
    still = published_layout(tmp_path / "flat.hdf5", np.ones((1, 101, 64), "f4"), Nu=0.1, rho=1.0)
    assert audit(still).defects == []  # u = 1 does not have to move


def test_the_audit_of_the_shared_files_is_as_known(pdebench: Path) -> None:
    """All advection files pass; reaction-diffusion freezes everywhere except nu = 1, rho = 1 and 2."""
    for b in ("0.1", "0.4", "1.0", "2.0", "7.0"):
        assert audit(pdebench / f"1D_Advection_Sols_beta{b}.hdf5", [0, 1]).defects == []
    for nu in ("0.5", "1.0", "2.0", "5.0"):
        for rho in ("1.0", "2.0", "5.0", "10.0"):
            known = [] if (nu, rho) in (("1.0", "1.0"), ("1.0", "2.0")) else ["freeze"]
            assert audit(pdebench / f"ReacDiff_Nu{nu}_Rho{rho}.hdf5", [0]).defects == known


def test_the_audit_command_prints_a_table_draws_and_exits_1_on_a_defect(tmp_path: Path) -> None:
    assert (
        cli("generate", "advection", "--set", "b=1.0", "--rows", "2", "--out", "own.hdf5", cwd=tmp_path).returncode == 0
    )
    done = cli("audit", "own.hdf5", "--plot", "own.png", cwd=tmp_path)
    assert done.returncode == 0 and "no defect" in done.stdout and "relative error" in done.stdout
    assert (tmp_path / "own.png").read_bytes().startswith(b"\x89PNG")
    with h5py.File(tmp_path / "own.hdf5", "a") as stored:
        stored.attrs["beta"] = 0.5
    done = cli("audit", "own.hdf5", "--rows", "0", cwd=tmp_path)
    assert done.returncode == 1 and "wrong speed" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("generate", "advektion", "--out", "a.hdf5"), "'advection'"),
        (("generate", "advection", "--out", "a.hdf5"), "coefficients b"),
        (("generate", "advection", "--set", "b=1", "--set", "c=2", "--out", "a.hdf5"), "coefficients b"),
        (("generate", "advection", "--set", "b=fast", "--out", "a.hdf5"), "a number for b"),
        (("generate", "advection", "--set", "b=1", "--rows", "0", "--out", "a.hdf5"), "at least one row"),
        (("generate", "advection", "--set", "b=1", "--out", "none/a.hdf5"), "existing folder"),
        (("audit", "none.hdf5"), "existing"),
        (("fetch", "beta0.4.hdf5"), "name of a published file"),
    ],
)
def test_bad_data_commands_get_one_line_and_leave_nothing(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    done = cli(*arguments, cwd=tmp_path)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate("advection", tmp_path / "own.hdf5", 3, {"b": 1.0}, report=interrupt)
    assert list(tmp_path.iterdir()) == []


# -- reference solutions


def test_exponential_integrator_is_fourth_order_and_agrees_with_splitting() -> None:
    x = (np.arange(64) + 0.5) / 64
    start, times = 0.5 + 0.4 * np.sin(2 * np.pi * x), np.linspace(0, 0.2, 3)
    symbol = 0.05 * reference.laplace_symbol(start.shape, 1.0)

    def run(step: float) -> np.ndarray:
        return reference.exponential_integrator(start, symbol, lambda u: 5.0 * u * (1 - u), times, step)

    finest = run(1.25e-3)
    errors = [np.abs(run(step) - finest).max() for step in (2e-2, 1e-2)]
    assert errors[0] / errors[1] == pytest.approx(16.0, rel=0.25)
    assert np.abs(finest - reference.fisher_kpp(start, 0.05, 5.0, times)).max() < 1e-8


def test_two_dimensions_separate_where_the_equation_does() -> None:
    """Pure diffusion of sin(2 pi x) cos(4 pi y) on a 1 x 2 rectangle decays at the sum of the rates."""
    x, y = np.arange(16) / 16, 2 * np.arange(20) / 20
    start = np.outer(np.sin(2 * np.pi * x), np.cos(2 * np.pi * y))
    solved = reference.fisher_kpp(start, 0.03, 0.0, [0.0, 0.4], period=(1.0, 2.0))
    assert_allclose(solved[1], np.exp(-0.03 * 0.4 * 2 * (2 * np.pi) ** 2) * start, atol=1e-12)
    other = reference.exponential_integrator(
        start, 0.03 * reference.laplace_symbol(start.shape, (1.0, 2.0)), np.zeros_like, [0.0, 0.4]
    )
    assert_allclose(other, solved, atol=1e-12)


# -- columns of one's own


def test_observations_come_from_csv_netcdf_and_hdf5_alike(tmp_path: Path) -> None:
    x, u, err = np.array([0.1, 0.5, 0.9]), np.array([1.0, 2.5, -3.0]), np.array([0.1, 0.2, 0.3])
    (tmp_path / "a.csv").write_text(
        "# a comment\nposition, height ,err\n" + "\n".join(f"{a},{b},{c}" for a, b, c in zip(x, u, err, strict=True))
    )
    (tmp_path / "b.txt").write_text(
        "position height err\n" + "\n".join(f"{a} {b} {c}" for a, b, c in zip(x, u, err, strict=True))
    )
    xr.Dataset({"height": ("position", u), "err": ("position", err)}, {"position": x}).to_netcdf(
        tmp_path / "c.nc", engine="h5netcdf"
    )
    with h5py.File(tmp_path / "d.h5", "w") as stored:
        stored["position"], stored["height"], stored["err"] = x, u, err
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    for name in ("a.csv", "b.txt", "c.nc", "d.h5"):
        observed = ff.Observations.from_file(tmp_path / name, x="position", t=0.0, u="height", sigma="err")
        statement = ff.Problem("u_t = u_xx", domain, {}, [observed]).statements[1]
        assert np.array_equal(statement.target, u) and np.array_equal(statement.sigma, err)  # type: ignore[arg-type]
        assert np.array_equal(statement.points["x"], x)  # type: ignore[index]


def test_a_file_whose_columns_have_our_names_needs_no_mapping_and_grids_are_flattened(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("x;t;u;sigma\n0.1;0;1.5;0.1\n0.2;0;1.7;0.2\n")
    observed = ff.Observations.from_file(tmp_path / "own.csv")
    assert list(observed.columns) == ["x", "t", "u"] and np.array_equal(observed.sigma, [0.1, 0.2])  # type: ignore[arg-type]
    grid = xr.DataArray(np.arange(6.0).reshape(2, 3), dims=("t", "x"), coords={"t": [0.0, 1.0], "x": [0.1, 0.2, 0.3]})
    xr.Dataset({"u": grid}).to_netcdf(tmp_path / "grid.nc", engine="h5netcdf")
    observed = ff.Observations.from_file(tmp_path / "grid.nc", x="x", t="t", u="u")
    u, t, x = (np.asarray(observed.columns[name]) for name in "utx")
    assert sorted(u) == list(range(6)) and assert_allclose(u, 3 * t + 10 * x - 1) is None


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "x,t,u\n1,2\n", "3 values in line 2"), ("a.csv", "x,t,u\n1,2,abc\n", "line 2, column u"),
        ("a.csv", "1,2,3\n4,5,6\n", "header"), ("a.csv", "x,t,u\n", "at least one line"),
        ("a.csv", "x,t,v\n1,2,3\n", "'u'"), ("a.csv", "x,t,u\n1,2,\n1,3,null\n", "at least one row of a.csv"),
        ("a.csv", "x;t;u\n1;2;0,5\n", "decimal point"), ("a.csv", "x,t,u\n0,1,0,2,0,5\n", "decimal commas"),
        ("a.xlsx", "x", "ending in one of"), ("a.nc", "nonsense", "readable"), ("a.h5", "nonsense", "readable"),
    ],
)  # fmt: skip
def test_malformed_files_are_refused_with_the_place(name: str, content: str, words: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ff.ProblemError, match=words):
        ff.Observations.from_file(tmp_path / name, x="x", t="t", u="u")
    with pytest.raises(ff.ProblemError, match="existing"):
        ff.Observations.from_file(tmp_path / "none.csv")


@pytest.mark.parametrize("ending", ["csv", "nc", "h5"])
def test_rows_without_a_value_are_left_out_with_one_note(ending: str, tmp_path: Path) -> None:
    x, u = np.arange(6) / 10, np.array([1.0, np.nan, 3.0, np.nan, np.nan, 6.0])
    path = tmp_path / f"a.{ending}"
    if ending == "csv":
        gaps = iter(("", "NA", "-"))
        rows = [f"{a},{next(gaps) if np.isnan(b) else b},a note" for a, b in zip(x, u, strict=True)]
        path.write_text("x,u,remark\n" + "\n".join(rows))  # words in a column that nobody asks for
    elif ending == "nc":
        xr.Dataset({"u": ("x", u)}, {"x": x}).to_netcdf(path, engine="h5netcdf")
    else:
        with h5py.File(path, "w") as stored:
            stored["x"], stored["u"] = x, u
    with pytest.warns(
        ff.AdviceWarning, match=rf"^3 of 6 rows of a\.{ending} have no value in column u and were"
    ) as told:
        observed = ff.Observations.from_file(path, x="x", t=0.0, u="u")
    assert len(told) == 1
    assert np.array_equal(observed.columns["u"], [1, 3, 6]) and np.array_equal(observed.columns["x"], [0, 0.2, 0.5])
