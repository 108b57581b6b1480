"""Downloads: resumed, checked, visible only when complete."""

from __future__ import annotations

import hashlib
import http.server
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import factorfield as ff
from factorfield.data import fetch as fetching
from factorfield.data.fetch import FILES, Published, fetch
from published import data_command


class Server:
    """A local server that can break off, ignore ranges, or send something else."""

    def __init__(self) -> None:
        self.content = np.random.default_rng(0).bytes(300_000)
        self.break_after: int | None = None
        self.breaks = 0
        self.ranges = True
        self.length: str | None = None  # told instead of the right one; empty: none is
        self.stall_after: int | None = None
        self.redirect: str | None = None
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
        if self.redirect is not None:
            handler.send_response(302)
            handler.send_header("Location", self.redirect)
            handler.end_headers()
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and self.ranges else 0
        if start >= len(self.content):
            handler.send_error(416)
            return
        handler.send_response(206 if asked and self.ranges else 200)
        if self.length != "":
            handler.send_header("Content-Length", self.length or str(len(self.content) - start))
        handler.end_headers()
        body = self.content[start:]
        if self.stall_after is not None:
            handler.wfile.write(body[: self.stall_after])
            self.stall_after = None
            time.sleep(1.0)
            return
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


def test_a_stalled_connection_is_taken_up_again(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("factorfield.data.fetch.WAIT", 0.3)
    server.stall_after = 100_000
    assert fetch(server.file(), tmp_path).read_bytes() == server.content
    assert server.log == [None, "bytes=100000-"]


@pytest.mark.parametrize("length", ["many", "-5", "9" * 30, ""])
def test_a_length_that_is_none_is_as_good_as_no_length(length: str, server: Server, tmp_path: Path) -> None:
    server.length = length
    assert fetch(server.file(), tmp_path).read_bytes() == server.content


def test_endless_files_and_endless_times_are_refused(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("factorfield.data.fetch.BLOCK", 10_000)
    monkeypatch.setattr("factorfield.data.fetch.LONGEST", -1.0)
    with pytest.raises(ff.ProblemError, match=r"a download that ends, received \d+ bytes"):
        fetch(server.file(), tmp_path)
    monkeypatch.undo()
    for length in ("", "300000"):  # found on the way, or told by the server
        server.length = length
        monkeypatch.setattr("factorfield.data.fetch.LARGEST", 200_000)
        with pytest.raises(ff.ProblemError, match="a file of at most"):
            fetch(server.file(), tmp_path)
        assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["../up.hdf5", "a/b.hdf5", "..", ".hidden", "", "/etc/a.hdf5", "a\x1b.hdf5"])
def test_names_that_leave_the_folder_are_refused(name: str, server: Server, tmp_path: Path) -> None:
    with pytest.raises(ff.ProblemError, match="a plain file name to fetch"):
        fetch(replace(server.file(), name=name), tmp_path)
    assert server.log == []


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
    assert data_command("fetch", cwd=tmp_path).stdout.split() == list(FILES)


def test_a_link_that_somebody_planted_is_not_written_through(server: Server, tmp_path: Path) -> None:
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / f"{server.file().name}.part").symlink_to("../planted")
    assert fetch(server.file(), folder).read_bytes() == server.content
    assert not (tmp_path / "planted").exists()


@pytest.mark.parametrize("address", ["http://[::1", "file:///etc/hostname", "/a.hdf5"])
def test_a_redirection_that_leads_nowhere_is_one_line(address: str, server: Server, tmp_path: Path) -> None:
    server.redirect = address
    with pytest.raises(ff.ProblemError, match=r"status 302|connection broke"):
        fetch(server.file(), tmp_path)
    assert list(tmp_path.iterdir()) == []
