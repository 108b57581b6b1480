"""One record per draw in a folder: written whole or not at all, so that a study may be killed and resumed.

    FOLDER/STATE/METHOD/ROW/0012.json

The state is a digest of the sources that an answer depends on: changed code starts over beside the old records. Several
processes may fill one folder; a draw that two of them make is written twice, with the same content.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypedDict, TypeGuard

from factorfield.errors import expected
from factorfield.files.atomic import complete
from factorfield.problem.problem import LARGEST_VALUE

PACKAGE = Path(__file__).parents[1]
ROOMS = ("messages", "problem", "model", "posterior", "methods", "problems", "data", "solution.py", "solving.py")
CELLS = ("draws.py", "simulated.py", "fixed.py", "labels.py", "forward.py")  # of this room


class Record(TypedDict):
    z: list[float]  # the first is the draw's scalar
    status: str  # of the solution, or "failed: ..."
    seconds: float  # of one processor
    commit: str


@dataclass(frozen=True)
class Records:
    folder: Path

    @staticmethod
    def of(folder: str | os.PathLike[str], method: str = "default") -> Records:
        """The records of the code as it is now."""
        path = Path(folder).expanduser() / state() / method
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            received = f"{path} ({problem.strerror})"
            raise expected("a folder to write records to", received, "--records DIR") from None
        return Records(path)

    def read(self, row: str, draw: int) -> Record | None:
        """The record of a draw; None if there is none, or none that can be read."""
        try:
            record = json.loads(self._path(row, draw).read_text())
        except (OSError, ValueError, RecursionError):
            return None
        return record if _is_record(record) else None

    def write(self, row: str, draw: int, record: Record) -> None:
        path = self._path(row, draw)
        path.parent.mkdir(exist_ok=True)
        with complete(path) as part:
            part.write_text(json.dumps(record))

    def _path(self, row: str, draw: int) -> Path:
        return self.folder / row / f"{draw:04d}.json"


def _is_record(found: object) -> TypeGuard[Record]:
    """A folder may come from elsewhere: what is no record of a draw is drawn again."""
    if not isinstance(found, dict) or set(found) != Record.__required_keys__:
        return False
    numbers = found["z"] if isinstance(found["z"], list) else [""]
    texts = isinstance(found["status"], str) and isinstance(found["commit"], str)
    values = (*numbers, found["seconds"])
    return texts and all(isinstance(value, int | float) and not abs(value) > LARGEST_VALUE for value in values)


@cache
def state() -> str:
    digest = hashlib.sha256()
    for entry in [PACKAGE / room for room in ROOMS] + [Path(__file__).parent / name for name in CELLS]:
        for path in sorted(entry.rglob("*.py")) if entry.is_dir() else [entry]:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


@cache
def commit() -> str:
    """Of the repository that the code lies in."""
    describe = ["git", "describe", "--always", "--dirty", "--match="]
    try:
        said = subprocess.run(describe, cwd=PACKAGE, capture_output=True, text=True, check=False).stdout.strip()
    except OSError:  # no git
        return "unknown"
    return said or "unknown"
