"""Records in a folder: written whole or not at all, never twice, shared by several drivers.

    records/KEY.json      finished runs, and nothing else
    failed/KEY.failed     why a run failed; such runs are skipped until a retry is asked for
    claims/KEY.claim      who is at work: host, process, its start, renewed while it runs
    aside/                records that could not be read, kept for inspection

A claim is void when its process no longer exists on this machine, or (other machines) when it has not been renewed for
`EXPIRY` seconds. Claims are made and voided under one file lock, which the system releases when a process dies.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factorfield.errors import expected
from factorfield.paper.run import Run

EXPIRY = 300.0
RENEWAL = 30.0


@dataclass(frozen=True)
class Store:
    folder: Path

    @staticmethod
    def open(folder: str | os.PathLike[str]) -> Store:
        path = Path(folder).expanduser()
        try:
            for part in ("records", "failed", "claims", "aside"):
                (path / part).mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise expected("a folder to write records to", f"{path} ({problem.strerror})", "--out DIR") from None
        return Store(path)

    def record_path(self, run: Run) -> Path:
        return self.folder / "records" / f"{run.key}.json"

    def _failure_path(self, run: Run) -> Path:
        return self.folder / "failed" / f"{run.key}.failed"

    def _claim_path(self, run: Run) -> Path:
        return self.folder / "claims" / f"{run.key}.claim"

    # -- records

    def finished(self, run: Run) -> bool:
        return self.record_path(run).exists()

    def read(self, run: Run) -> dict[str, Any] | None:
        """The record, or None; one that cannot be read is set aside, so that it is run again."""
        path = self.record_path(run)
        try:
            record = json.loads(path.read_text())
            if not isinstance(record, dict) or record["spec"] != run.spec or "results" not in record:
                raise ValueError("not the record of this run")
            return record
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, UnicodeDecodeError):
            os.replace(path, self.folder / "aside" / f"{path.name}.{time.time_ns()}.corrupt")
            return None

    def write(self, run: Run, record: dict[str, Any]) -> None:
        """The record appears complete under its name or not at all; one that exists is left alone."""
        self._failure_path(run).unlink(missing_ok=True)
        self._write_once(self.record_path(run), json.dumps(record))

    def write_failure(self, run: Run, reason: str) -> None:
        path = self._failure_path(run)
        path.unlink(missing_ok=True)
        self._write_once(path, json.dumps({"spec": run.spec, "reason": reason, "time": time.time()}))

    def failure(self, run: Run) -> str | None:
        try:
            return str(json.loads(self._failure_path(run).read_text())["reason"])
        except (OSError, ValueError, KeyError):
            return None

    def forget_failure(self, run: Run) -> None:
        self._failure_path(run).unlink(missing_ok=True)

    def _write_once(self, path: Path, text: str) -> None:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=".part")
        try:
            with os.fdopen(handle, "w") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
                os.fchmod(stream.fileno(), 0o644)  # mkstemp keeps files to their owner; records are for sharing
            os.link(temporary, path)  # fails if the name exists: what is finished is never rewritten
        except FileExistsError:
            pass
        finally:
            Path(temporary).unlink(missing_ok=True)

    # -- claims

    @contextmanager
    def claim(self, run: Run) -> Iterator[bool]:
        """True while this process may work on the run; False if another one does."""
        with self._locked():
            mine = not self.claimed(run)
            if mine:
                self._claim_path(run).write_text(json.dumps(identity()))
        if not mine:
            yield False
            return
        stop = threading.Event()
        keeper = threading.Thread(target=self._renew, args=(run, stop), daemon=True)
        keeper.start()
        try:
            yield True
        finally:
            stop.set()
            keeper.join()
            self._claim_path(run).unlink(missing_ok=True)

    def _renew(self, run: Run, stop: threading.Event) -> None:
        while not stop.wait(RENEWAL):
            try:
                os.utime(self._claim_path(run))
            except OSError:
                return

    def claimed(self, run: Run) -> bool:
        """Is a living process at work on this run?"""
        path = self._claim_path(run)
        try:
            owner = json.loads(path.read_text())
            renewed = path.stat().st_mtime
        except FileNotFoundError:
            return False
        except ValueError:  # killed while writing its claim
            return False
        if owner.get("host") == platform.node():
            return process_start(int(owner.get("pid", -1))) == owner.get("started")
        return time.time() - renewed < EXPIRY

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with (self.folder / "claims" / ".lock").open("w") as lock:
            try:
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_EX)
            except ImportError:  # no such lock on this system: one driver at a time
                pass
            yield

    def clean(self) -> None:
        """Remove what killed processes left behind: temporary files older than the expiry, void claims."""
        for path in (*self.folder.glob("records/.*.part"), *self.folder.glob("failed/.*.part")):
            try:
                if time.time() - path.stat().st_mtime > EXPIRY:
                    path.unlink()
            except OSError:
                continue


def identity() -> dict[str, Any]:
    return {"host": platform.node(), "pid": os.getpid(), "started": process_start(os.getpid())}


def process_start(pid: int) -> str | None:
    """When a process of this machine started (so that a reused number is told apart); None if it does not exist."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] == "Z" else fields[19]
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
    try:  # systems without /proc
        os.kill(pid, 0)
        return "running"
    except OSError:
        return None
