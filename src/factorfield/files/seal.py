"""A checksum behind the end of a file: a flipped bit is told before a reader sees the file.

HDF5 readers stop at the end that the file's own header states, so that other programs do not notice it.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import BinaryIO

from factorfield.errors import expected

MARK = b"factorfield-sha256:"
LENGTH = len(MARK) + hashlib.sha256().digest_size
BLOCK = 1 << 20


def seal(path: Path) -> None:
    """Append the checksum of all that is there."""
    with open(path, "r+b") as file:
        digest = _digest(file, path.stat().st_size)
        file.seek(0, os.SEEK_END)
        file.write(MARK + digest)


def check_seal(file: BinaryIO, name: str) -> bool:
    """Whether the file has a checksum; one that does not fit is refused."""
    size = file.seek(0, os.SEEK_END) - LENGTH
    file.seek(max(size, 0))
    stored = file.read(LENGTH)
    sealed = stored.startswith(MARK)
    if sealed and stored[len(MARK) :] != _digest(file, size):
        raise expected(f"{name} as it was saved", "other bytes: it was damaged or changed", "solving it again")
    file.seek(0)
    return sealed


def _digest(file: BinaryIO, size: int) -> bytes:
    found = hashlib.sha256()
    file.seek(0)
    while size > 0 and (block := file.read(min(BLOCK, size))):
        found.update(block)
        size -= len(block)
    return found.digest()
