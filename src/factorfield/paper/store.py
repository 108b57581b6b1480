"""Records in a folder: written whole or not at all, never twice, shared by several drivers.

    records/KEY.json      finished runs, and nothing else
    failed/KEY.failed     why a run failed; such runs are skipped until a retry is asked for
    claims/KEY.claim      locked by the process that is at work on the run
    aside/                records that could not be read, kept for inspection

A claim is a file lock (`filelock`): the system releases it when its process ends, in whatever way. On a folder shared
by several machines the file system has to carry locks, as NFS and the parallel ones do.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from factorfield.errors import expected, needed
from factorfield.paper.run import Record, Run

LEFT_BEHIND = 300.0  # seconds after which a temporary file is taken for that of a killed process


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

    def read(self, run: Run) -> Record | None:
        """The record, or None; one that cannot be read is set aside, so that it is run again."""
        path = self.record_path(run)
        try:
            record: Record = json.loads(path.read_text())
            if not isinstance(record, dict) or record["spec"] != run.spec or "results" not in record:
                raise ValueError("not the record of this run")
            return record
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, RecursionError):
            os.replace(path, self.folder / "aside" / f"{path.name}.{time.time_ns()}.corrupt")
            return None

    def write(self, run: Run, record: Record) -> None:
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
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return "for a reason that cannot be read"

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
        filelock = needed("filelock", "cluster")
        try:
            held = filelock.FileLock(self._claim_path(run)).acquire(blocking=False)
        except filelock.Timeout:
            yield False
            return
        with held:
            yield True

    def clean(self) -> None:
        """Remove the temporary files that killed processes left behind."""
        for path in (*self.folder.glob("records/.*.part"), *self.folder.glob("failed/.*.part")):
            try:
                if time.time() - path.stat().st_mtime > LEFT_BEHIND:
                    path.unlink()
            except OSError:
                continue
