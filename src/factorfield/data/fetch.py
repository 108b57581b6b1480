"""Downloading the published files: resumed where a connection broke, checked by MD5, visible only when complete.

Source of names, identifiers and checksums: doi:10.18419/darus-2986.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import re
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from factorfield.errors import ProblemError, command, expected, nearest
from factorfield.files.atomic import check_replaceable

ADDRESS = "https://darus.uni-stuttgart.de/api/access/datafile/{id}"
BLOCK = 1 << 20
ATTEMPTS = 5
WAIT = 30.0  # seconds without a byte before a connection counts as broken
LONGEST = 6 * 3600.0  # seconds that one call may take, however slowly bytes trickle
LARGEST = 16 << 30  # bytes; the published files have 4 to 8 GB

_TABLE = """
1D_Advection_Sols_beta0.1.hdf5 255672 b4be2fc3383f737c76033073e6d2ccfb
1D_Advection_Sols_beta0.2.hdf5 255671 d47b52c1be4b6bcaa8748a8df2f5fbb8
1D_Advection_Sols_beta0.4.hdf5 255674 d595bbfd2c659df995a93cd40d6ea568
1D_Advection_Sols_beta0.7.hdf5 255666 f89030c240a1e90b55649776854a84c2
1D_Advection_Sols_beta1.0.hdf5 255675 1fe41923a4123db55bf4e89bea32e142
1D_Advection_Sols_beta2.0.hdf5 255677 0e9beff98693089c38e213a1f2b9ac43
1D_Advection_Sols_beta4.0.hdf5 255676 a87b03ff425496360e2732921805f47d
1D_Advection_Sols_beta7.0.hdf5 255664 72a286ad2fcba574bd20bc045ba82d58
ReacDiff_Nu0.5_Rho1.0.hdf5 133177 69a429239778d529cd419ed5888ea835
ReacDiff_Nu0.5_Rho10.0.hdf5 133178 ff7c724b18e7ebe02e19c179852f48ee
ReacDiff_Nu0.5_Rho2.0.hdf5 133179 ac907daa7e483d203a5c77567cdea561
ReacDiff_Nu0.5_Rho5.0.hdf5 133180 fb149e7540d8977af158bb8fec1048a3
ReacDiff_Nu1.0_Rho1.0.hdf5 133181 bd73c2f3448d03e95e98c3831fc8fa70
ReacDiff_Nu1.0_Rho10.0.hdf5 133182 a94e65631881a27ddae3ef74caf53093
ReacDiff_Nu1.0_Rho2.0.hdf5 133183 112c01a76447162bd67c8c1073f58ca2
ReacDiff_Nu1.0_Rho5.0.hdf5 133184 fa224c9d143de37ac6914d391e70f425
ReacDiff_Nu2.0_Rho1.0.hdf5 133185 925a7e2c9b9e40ad2dd44b7002ec882b
ReacDiff_Nu2.0_Rho10.0.hdf5 133186 a3e25a9fb8a99f010352ad3dd1afd596
ReacDiff_Nu2.0_Rho2.0.hdf5 133187 426353b241acfbc64067acb1bdc80ade
ReacDiff_Nu2.0_Rho5.0.hdf5 133188 f2890bdac5103a3b78fac5f80e57b760
ReacDiff_Nu5.0_Rho1.0.hdf5 133189 0ed75b55f61bec11c47d379e34959e54
ReacDiff_Nu5.0_Rho10.0.hdf5 133190 264c80af0e2a6cc1f70e87275e0f6ac4
ReacDiff_Nu5.0_Rho2.0.hdf5 133191 f927f5d85f2e9bd97dff31b4dab051ae
ReacDiff_Nu5.0_Rho5.0.hdf5 133192 c9c26e2b5f2d4bf5bcbbd4ba34fefd5e
"""


@dataclass(frozen=True)
class Published:
    """One published file."""

    name: str
    url: str
    md5: str


FILES = {
    name: Published(name, ADDRESS.format(id=number), md5)
    for name, number, md5 in (line.split() for line in _TABLE.strip().splitlines())
}


def fetch(
    file: str | Published, folder: str | os.PathLike[str] = ".", report: Callable[[int, int], None] | None = None
) -> Path:
    """Download a published file into a folder and return its path; a finished, correct file is left alone.

    A broken download stays beside it as NAME.part and is continued by the next call. `report` gets bytes done and all.
    """
    if isinstance(file, str):
        if file not in FILES:
            raise expected(
                "the name of a published file", file, nearest(file, FILES, "factorfield data fetch, which lists them")
            )
        file = FILES[file]
    target = _target(file, Path(folder).expanduser())
    if target.exists():
        if checksum(target) == file.md5:
            return target
        raise expected(f"{file.name} with MD5 {file.md5}", "another file of that name", "moving it away first")
    part, deadline = target.with_name(target.name + ".part"), time.monotonic() + LONGEST
    if part.is_symlink() or (part.exists() and not part.is_file()):  # somebody else's: where it leads is not ours
        part.unlink()
    for attempt in range(ATTEMPTS):
        try:
            _continue(file.url, part, report, deadline)
            break
        except (http.client.HTTPException, TimeoutError, ConnectionError) as problem:
            reason = type(problem).__name__
        except urllib.error.HTTPError as problem:
            raise expected(f"{file.name} at {file.url}", f"status {problem.code}", "again later") from None
        except urllib.error.URLError as problem:
            reason = str(problem.reason)
        if attempt == ATTEMPTS - 1:
            done = part.stat().st_size if part.exists() else 0
            raise ProblemError(
                f"expected all of {file.name}, received {done} bytes before the connection broke {ATTEMPTS} times "
                f"({reason}); try the same command again, it continues from there"
            )
    found = checksum(part)
    if found != file.md5:
        part.unlink()
        raise expected(f"MD5 {file.md5} of {file.name}", found, "fetching it again (the wrong file was removed)")
    os.replace(part, target)
    return target


def _target(file: Published, folder: Path) -> Path:
    name = file.name
    if not name or name != Path(name).name or name.startswith(".") or not name.isprintable():
        raise expected("a plain file name to fetch", repr(name), "one without folders")
    if not folder.is_dir():
        raise expected("an existing folder", str(folder), command("mkdir", "-p", folder))
    check_replaceable(folder / name)
    return folder / name


def _continue(url: str, part: Path, report: Callable[[int, int], None] | None, deadline: float) -> None:
    """Append what is missing; raises when the connection breaks or stalls, with what came safely on disk."""
    have = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={have}-"} if have else {})
    try:
        response = urllib.request.urlopen(request, timeout=WAIT)
    except urllib.error.HTTPError as problem:
        if problem.code == 416 and have:  # nothing beyond what we have: the checksum decides
            return
        raise
    except ValueError:  # a redirection to what is no address
        raise http.client.HTTPException from None
    with response:
        begins = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
        if response.status != 206 or (begins and int(begins[1]) != have):  # no ranges, or another: from the beginning
            have = 0
        length = response.headers.get("Content-Length", "")
        total = have + int(length) if re.fullmatch(r"\d{1,18}", length) else 0  # 0: the server does not say
        _check_size(max(total, have), part)
        free = shutil.disk_usage(part.parent).free
        if total - have > free:
            raise ProblemError(
                f"expected {(total - have) / 2**30:.2f} GiB of free space in {part.parent}, received "
                f"{free / 2**30:.2f} GiB; try another folder or make room"
            )
        with open(part, "ab" if have else "wb") as sink:
            while block := response.read1(BLOCK):  # what is there: a stall must not take it back
                sink.write(block)
                have += len(block)
                _check_size(have, part)
                if time.monotonic() > deadline:
                    taken = f"{have} bytes in {LONGEST / 3600:.0f} hours"
                    raise expected("a download that ends", taken, "the same command again, it continues from there")
                if report is not None:
                    report(have, total)
        if total and have < total:
            raise http.client.IncompleteRead(b"", total - have)


def _check_size(size: int, part: Path) -> None:
    if size > LARGEST:
        part.unlink(missing_ok=True)
        raise expected(f"a file of at most {LARGEST >> 30} GiB", f"{size / 2**30:.0f} GiB or more", "another server")


def checksum(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with open(path, "rb") as source:
        while block := source.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
