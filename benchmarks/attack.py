"""What files from strangers can do: thousands of changed results, data and problem files, each in a process of its own.

    python benchmarks/attack.py                       2,000 of each kind, 500 faults (faults.py), 24 kills of a sweep
    python benchmarks/attack.py --count 100 --faults 20 --kills 0
    python benchmarks/attack.py --table               the tables of what is there, as in benchmarks/results/attack.md

A process that has loaded the package forks for every file. The child runs the commands that a person would run; from
outside it is given 10 seconds of the processor for each (other work on the machine does not count), ten times that by
the clock, and 2 GiB of address space more than it began with. Its peak of memory is read when it ends. A folder beside
the one it works in is watched by the system (inotify): any file in it that is opened, read or written counts. Results
are kept in a file, one line each; a second call goes on where the first one stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import gc
import io
import json
import os
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["PYTHONPATH"] = str(ROOT / "src")

import faults  # noqa: E402

import attacks  # noqa: E402

SECONDS = 10.0  # of the processor, a command
PATIENCE = 10.0  # times as long by the clock: who waits for something is found too
MOST_MEMORY = 1 << 30  # bytes of peak resident memory
SPARE = 2 << 30  # address space beyond what a child begins with: protects the machine, and is no part of the verdict
KINDS = ("result", "data", "problem")
IN_ANY = 0x1 | 0x2 | 0x20 | 0x100 | 0x200  # accessed, modified, opened, created, deleted


# -- one file


def tried(kind: str, number: int, home: Path) -> dict[str, object]:
    """What became of one file: its exit codes, or how it failed."""
    made = attacks.mutant(kind, number)
    folder = home / "inside"
    folder.mkdir()
    try:
        file = made.write(folder).name
        with watched(home / attacks.OUTSIDE) as touched:
            outcome = limited(kind, file, folder, home)
            outcome["outside"] = len(touched())
    finally:
        shutil.rmtree(folder)
    return {"kind": kind, "number": number, "how": made.how, **outcome}


def limited(kind: str, file: str, folder: Path, home: Path) -> dict[str, object]:
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.environ["HOME"] = str(home / attacks.OUTSIDE)
        os.chdir(folder)
        os.write(writer, json.dumps(commands(kind, file)).encode())
        os._exit(0)
    os.close(writer)
    late = _ended_by_limits(child, SECONDS * len(attacks.COMMANDS[kind]))
    _, status, used = os.wait4(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        said = pipe.read()
    outcome = json.loads(said) if said else {"ended": "killed" if late else f"died of status {status}"}
    return {**outcome, "seconds": round(used.ru_utime + used.ru_stime, 2), "memory": used.ru_maxrss * 1024}


def _ended_by_limits(child: int, seconds: float) -> bool:
    """Wait for the end of a child; True if it had to be killed because it took too long."""
    begin, ended = time.monotonic(), select.poll()
    handle = os.pidfd_open(child)
    ended.register(handle, select.POLLIN)
    try:
        while not ended.poll(250):
            taken = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
            processor = (int(taken[11]) + int(taken[12])) / os.sysconf("SC_CLK_TCK")
            if processor > seconds or time.monotonic() - begin > PATIENCE * seconds:
                os.kill(child, signal.SIGKILL)
                return True
        return False
    finally:
        os.close(handle)


def commands(kind: str, file: str) -> dict[str, object]:
    """In the child: the exit codes of the commands, or the first error that was not one line."""
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + SPARE, size + SPARE))
    from factorfield.cli.app import main

    codes, slowest = [], 0.0
    for arguments in attacks.COMMANDS[kind]:
        err, begin = io.StringIO(), time.process_time()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
            try:
                main([word.replace("FILE", file) for word in arguments])
            except SystemExit as end:
                codes.append(int(end.code or 0))
            except BaseException as problem:
                return {"ended": "traceback", "error": f"{type(problem).__name__}: {problem}"[:200]}
        slowest = max(slowest, time.process_time() - begin)
        lines = [line for line in err.getvalue().splitlines() if not line.startswith(("advice: ", "note: "))]
        if codes[-1] not in (0, 1, 2) or len(lines) != (codes[-1] == 2):  # a stray warning counts too
            return {"ended": "several lines", "error": err.getvalue()[:200]}
    return {"ended": "refused" if 2 in codes else "read", "slowest": round(slowest, 2)}


@contextlib.contextmanager
def watched(folder: Path):  # type: ignore[no-untyped-def]
    """Names of files in a folder that anybody opened, read, changed or made meanwhile."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init1(os.O_NONBLOCK)
    assert handle >= 0 and libc.inotify_add_watch(handle, os.fsencode(folder), IN_ANY) >= 0

    def touched() -> list[str]:
        found = []
        with contextlib.suppress(BlockingIOError):
            while events := os.read(handle, 1 << 16):
                while events:
                    _, _, _, length = struct.unpack_from("iIII", events)
                    name = events[16 : 16 + length].rstrip(b"\0").decode(errors="replace")
                    found += [name] if name else []
                    events = events[16 + length :]
        return found

    try:
        yield touched
    finally:
        os.close(handle)


def secrets(folder: Path) -> None:
    """Files that attacks point to; each could be read if it were opened."""
    import h5py
    import numpy as np

    folder.mkdir()
    (folder / "secret.csv").write_text("x,t,u\n0.1,0.1,1\n")
    for name in ("secret.h5", "secret.nc"):
        with h5py.File(folder / name, "w") as file:
            for column in "xtu":
                file[column] = np.arange(3.0)


# -- kills of a sweep

DRIVER = """
import sys
from factorfield.paper.run import Run
from factorfield.paper.store import Store
from factorfield.paper.sweep import sweep
small = {"modes": {"x": 2, "t": 2}, "labels": 64}
runs = [Run("advection", {"b": 0.1}, row, "joint", model=small) for row in range(400)]
if __name__ == "__main__":
    sweep(runs, Store.open(sys.argv[1]), workers=1)
"""


def kills(count: int, folder: Path) -> dict[str, int]:
    """Kill a sweep, resumed after every kill, a little after it has written a record; count which hit it at work."""
    import random

    (folder / "driver.py").write_text(DRIVER)
    records = folder / "out" / "records"
    hits = bad = 0
    random.seed(0)
    for _ in range(count):
        before = len(list(records.glob("*.json"))) if records.exists() else 0
        driver = subprocess.Popen(
            [sys.executable, str(folder / "driver.py"), str(folder / "out")],
            env={**os.environ, "PYTHONPATH": str(ROOT / "src")}, start_new_session=True,
        )  # fmt: skip
        end = time.monotonic() + 120.0
        while len(list(records.glob("*.json")) if records.exists() else []) <= before and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(random.uniform(0.0, 0.3))
        hits += driver.poll() is None and len(list(records.glob("*.json"))) > before
        os.killpg(driver.pid, signal.SIGKILL)  # the driver, its nannies and its workers
        driver.wait()
        for path in records.glob("*.json"):
            try:
                bad += "results" not in json.loads(path.read_text())
            except ValueError:
                bad += 1
    return {"kills": count, "while writing records": hits, "records": len(list(records.glob("*.json"))), "damaged": bad}


# -- all of them


def attack(count: int, store: Path) -> None:
    done = {(entry["kind"], entry["number"]) for entry in kept(store) if entry["kind"] in KINDS}
    with tempfile.TemporaryDirectory() as name, open(store, "a", encoding="utf-8") as sink:
        home = Path(name)
        secrets(home / attacks.OUTSIDE)
        warm_up(home)
        gc.freeze()  # what is there stays in place: children share its pages
        for number in range(count):
            for kind in KINDS:
                if (kind, number) not in done:
                    sink.write(json.dumps(tried(kind, number, home)) + "\n")
                    sink.flush()


def make_faults(count: int, store: Path) -> None:
    done = {entry["number"] for entry in kept(store) if entry["kind"] == "fault"}
    with tempfile.TemporaryDirectory() as name, open(store, "a", encoding="utf-8") as sink:
        home = Path(name)
        warm_up(home)
        gc.freeze()
        for number in range(count):
            if number not in done:
                sink.write(json.dumps(faults.fault(number, home, attacks.results()[0])) + "\n")
                sink.flush()


def warm_up(folder: Path) -> None:
    """Whole files of each kind, so that every child begins with all that the commands load."""
    whole = {"result": attacks.results()[2], "problem": attacks.POSED.format(name="data.csv").encode()}
    (folder / "data.csv").write_text("x,t,u\n0.1,0.1,1\n")
    (folder / "points.csv").write_text("x,t\n0.1,0.1\n")
    for kind, content in whole.items():
        (folder / kind).with_suffix(".nc" if kind == "result" else ".toml").write_bytes(content)
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        from factorfield.cli.app import main

        for arguments in (*attacks.COMMANDS["result"], *attacks.COMMANDS["problem"]):
            file = "problem.toml" if arguments[0] == "check" else "result.nc"
            with contextlib.suppress(SystemExit):
                main([word.replace("FILE", file) for word in arguments])


def kept(store: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []


def changes(entries: list[dict[str, object]]) -> str:
    """Markdown: what was done to files, and what became of them."""
    lines = ["| file | change | files | read | refused | failed |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    for kind in KINDS:
        ends: dict[str, Counter[str]] = {}
        for entry in entries:
            if entry["kind"] == kind:
                ends.setdefault(str(entry["how"]), Counter())[str(entry["ended"])] += 1
        for how, found in sorted(ends.items()):
            counts = found.total(), found["read"], found["refused"]
            lines.append(f"| {kind} | {how} | {' | '.join(map(str, counts))} | {counts[0] - counts[1] - counts[2]} |")
    return "\n".join(lines)


def table(entries: list[dict[str, object]]) -> str:
    """Markdown: the counts that docs/about.md shows."""
    lines = [
        "| attack | files | read | refused in one line | tracebacks | over 10 s | over 1 GB | outside opened |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for kind in KINDS:
        own = [entry for entry in entries if entry["kind"] == kind]
        ends = Counter(str(entry["ended"]) for entry in own)
        slow = sum(float(entry.get("slowest", entry["seconds"])) > SECONDS for entry in own)  # type: ignore[arg-type]
        large = sum(int(entry["memory"]) > MOST_MEMORY for entry in own)  # type: ignore[call-overload]
        outside = sum(int(entry["outside"]) for entry in own)  # type: ignore[call-overload]
        wrong = len(own) - ends["read"] - ends["refused"]
        counts = (len(own), ends["read"], ends["refused"], wrong, slow, large, outside)
        lines.append(f"| {kind} files | {' | '.join(map(str, counts))} |")
    for entry in entries:
        if entry["kind"] == "kills":
            told = ", ".join(f"{value} {key}" for key, value in entry.items() if key != "kind")
            lines += ["", f"A sweep that was killed and resumed: {told}."]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="files of each kind")
    parser.add_argument("--faults", type=int, default=500)
    parser.add_argument("--kills", type=int, default=24)
    parser.add_argument("--out", type=Path, default=Path("attack.jsonl"), help="one line per file; resumed")
    parser.add_argument("--table", action="store_true", help="run nothing")
    chosen = parser.parse_args()
    if not chosen.table:
        attack(chosen.count, chosen.out)
        make_faults(chosen.faults, chosen.out)
        if chosen.kills and not any(entry["kind"] == "kills" for entry in kept(chosen.out)):
            with tempfile.TemporaryDirectory() as folder, open(chosen.out, "a", encoding="utf-8") as sink:
                sink.write(json.dumps({"kind": "kills", **kills(chosen.kills, Path(folder))}) + "\n")
    entries = kept(chosen.out)
    made = [entry for entry in entries if entry["kind"] == "fault"]
    print(changes(entries), table(entries), faults.table(made), sep="\n\n")


if __name__ == "__main__":
    main()
