"""Files that appear complete or not at all, also after a kill or a power cut."""

from __future__ import annotations

import contextlib
import glob
import os
import platform
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def complete(target: Path) -> Iterator[Path]:
    """A temporary name beside `target` to write to; renamed at the end, removed if anything goes wrong."""
    clean(target)
    temporary = part_of(target)
    try:
        yield temporary
        with open(temporary, "rb") as file:  # on the disk before it has its name
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def part_of(target: Path) -> Path:
    """A new empty file beside `target`, whose name says which process writes it.

    matplotlib and others choose the format by the suffix, so it stays at the end.
    """
    stem = _stem(target)
    name = f".{stem}.{_machine()}-{os.getpid()}-{secrets.token_hex(4)}.part{target.suffix}"
    path = target.with_name(name)
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))  # less what the umask takes away
    return path


def clean(target: Path) -> None:
    """Remove what killed processes of this machine left of this file."""
    stem = _stem(target)
    pattern = f".{glob.escape(stem)}.{glob.escape(_machine())}-*.part{glob.escape(target.suffix)}"
    for path in target.parent.glob(pattern):
        process = re.search(r"-(\d+)-[0-9a-f]{8}\.part", path.name)
        if process and not _is_alive(int(process[1])):
            with contextlib.suppress(OSError):
                path.unlink()


def _stem(target: Path) -> str:
    """Its beginning: names have at most 255 bytes. Bytes that are no text stay as they are."""
    return target.stem.encode(errors="surrogateescape")[:100].decode(errors="ignore")


def _machine() -> str:
    return re.sub(r"\W", "", platform.node())[:20]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):  # nobody, or a number that no process has
        return False
    except OSError:  # another user's
        return True
    return True
