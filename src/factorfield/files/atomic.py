"""Files that appear complete or not at all, also after a kill or a power cut."""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import os
import platform
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from factorfield.errors import command, expected, shown_path

ABANDONED = 86400.0  # seconds after which a part of another system, or of one before it was started again, is left over
OVERHEAD = 1 << 17  # bytes of an HDF5 file besides its arrays, texts included
_unfinished: set[Path] = set()  # parts of this process, for a program that ends without unwinding


@contextmanager
def complete(target: Path) -> Iterator[Path]:
    """A temporary name beside `target` to write to; renamed at the end, removed if anything goes wrong.

    A file that is there keeps its mode and its owner.
    """
    before = check_replaceable(target)
    clean(target)
    temporary = _part_name(target)
    _unfinished.add(temporary)
    try:
        _create(temporary, 0o600 if before else 0o666)
        yield temporary
        with open(temporary, "rb") as file:  # on the disk before it has its name
            if before is not None:
                with contextlib.suppress(OSError):  # only root gives files away
                    os.fchown(file.fileno(), before.st_uid, before.st_gid)
                os.fchmod(file.fileno(), stat.S_IMODE(before.st_mode) & 0o777)
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException as problem:
        temporary.unlink(missing_ok=True)
        if isinstance(problem, OSError) and problem.filename == str(temporary):
            problem.filename = str(target)  # the name that people know
        raise
    finally:
        _unfinished.discard(temporary)


@contextmanager
def room_for_hdf5(path: Path, size: int) -> Iterator[None]:
    """Ask for the space first: HDF5 does not survive a disk that is full, or a limit, in the middle of a file."""
    if hasattr(os, "posix_fallocate"):
        with open(path, "wb") as file:
            try:
                os.posix_fallocate(file.fileno(), 0, size + OVERHEAD)
            except OSError as problem:
                if problem.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
                    raise OSError(problem.errno, problem.strerror, str(path)) from None
    try:
        yield
    except RuntimeError as full:  # what HDF5 raises when the disk filled up meanwhile
        raise OSError(errno.EIO, "writing failed", str(path)) from full


def write_text(target: Path, text: str) -> None:
    """All of a text, or nothing."""
    with complete(target) as part:
        part.write_text(text, encoding="utf-8")


def remove_unfinished() -> None:
    """Remove the parts that this process is writing: for a program that is about to end without unwinding."""
    for part in list(_unfinished):
        with contextlib.suppress(OSError):
            part.unlink()


def check_folder(target: Path) -> None:
    """Refuse an output in a folder that is not there."""
    parent = target.parent
    if not parent.is_dir():
        attempt = command("mkdir", "-p", shown_path(parent))
        raise expected("an output path in an existing folder", shown_path(target), attempt)


def check_replaceable(target: Path) -> os.stat_result | None:
    """Refuse to put a file in place of a link, a device, a pipe or what may not be written; what is there, if any."""
    try:
        before = os.lstat(target)
    except FileNotFoundError:
        return None
    kinds = {stat.S_ISLNK: "a symbolic link", stat.S_ISDIR: "a folder"}
    kind = next((name for test, name in kinds.items() if test(before.st_mode)), "a device or a pipe")
    if not stat.S_ISREG(before.st_mode):
        attempt = "the file that it points to" if kind == "a symbolic link" else "another name"
        raise expected("a plain file to write", f"{shown_path(target)}, {kind}", attempt)
    if not os.access(target, os.W_OK):
        raise expected("a file that may be written", f"{shown_path(target)}, which is read-only", "another name")
    return before


def try_part(target: Path) -> None:
    """Raises OSError where nothing can be written beside the target."""
    part = _part_name(target)
    try:
        _create(part, 0o600)
    finally:
        part.unlink(missing_ok=True)


def _create(part: Path, mode: int) -> None:
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))  # less what the umask takes away


def _part_name(target: Path) -> Path:
    """Beside `target`, and says which process of which system writes it.

    matplotlib and others choose the format by the suffix, so it stays at the end.
    """
    name = f".{_stem(target)}.{_system()}-{os.getpid()}-{secrets.token_hex(4)}.part{target.suffix}"
    return target.with_name(name)


def clean(target: Path) -> None:
    """Remove what killed processes left of this file."""
    pattern = f".{glob.escape(_stem(target))}.*-*.part{glob.escape(target.suffix)}"
    for path in target.parent.glob(pattern):
        with contextlib.suppress(OSError):
            if _is_left_over(path):
                path.unlink()


def _is_left_over(path: Path) -> bool:
    """Of no living process, where we can see all that could be it; of any other system, after a day without a change.

    Writers in other containers are not among our processes, nor are those of other machines that share the folder.
    """
    named = re.search(r"\.(\w*)-(\d+)-[0-9a-f]{8}\.part", path.name)
    if named is None:
        return False
    if named[1] == _system():
        return not _is_alive(int(named[2]))
    return time.time() - path.stat().st_mtime > ABANDONED


def _stem(target: Path) -> str:
    """Its beginning: names have at most 255 bytes, in whatever encoding the system has."""
    stem = target.stem
    while len(os.fsencode(stem)) > 100:
        stem = stem[:-1]
    return stem


@cache
def _system() -> str:
    """A word for all processes that can see each other: one machine since it started, one namespace of its numbers."""
    known = [platform.node()]
    for read in (lambda: Path("/proc/sys/kernel/random/boot_id").read_text(), lambda: os.readlink("/proc/self/ns/pid")):
        with contextlib.suppress(OSError):
            known.append(read())
    return hashlib.sha256("\n".join(known).encode(errors="replace")).hexdigest()[:16]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):  # nobody, or a number that no process has
        return False
    except OSError:  # another user's
        return True
    return True
