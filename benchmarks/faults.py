"""What a machine and its users do to a command: outputs that are no files, full disks, signals, locales, kills.

`fault(number, home)` is always the same fault for the same number; benchmarks/attack.py runs them and counts. Each
command works in a folder of its own. It may succeed, or end in one line with the exit code that is promised; nothing
unfinished may be left, and what is no plain file must be what it was.
"""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

Outcome = dict[str, object]
HOWS = ("device or link", "full disk", "signal", "locale", "threads", "kill while saving", "kill while conditioning")
SHARES = (0.22, 0.26, 0.26, 0.14, 0.04, 0.04, 0.04)  # of all faults
ENDED = "interrupted; files are whole: as before, or finished"
WRITERS = (  # commands that write TARGET, with its ending
    ("solve poisson --out TARGET", ".nc"), ("solve poisson --plot TARGET", ".png"),
    ("report run.nc --out TARGET", ".html"), ("plot run.nc --out TARGET", ".pdf"),
    ("plot run.nc --kind slices --out TARGET", ".svg"),
    ("predict run.nc --grid x=0:1:2000 --csv TARGET", ".csv"), ("next run.nc --sigma 0.1 --csv TARGET", ".csv"),
    ("compare heat --methods joint --plot TARGET", ".png"),
    ("data generate advection --set b=1 --rows 1 --out TARGET", ".h5"),
    ("rank one.toml two.toml --plot TARGET", ".png"),
)  # fmt: skip
POSED = 'equation = "{equation}"\n[domain]\nx = [0, 1]\n[[boundary]]\ntext = "u = 0"\nat = {{ x = 0 }}\n'
POSED += '[[observations]]\nx = [0.2, 0.5, 0.9]\nu = [0.2, 0.5, 0.9]\nsigma = 0.1\n'
SAVER = """
import sys, warnings
import factorfield as ff
warnings.simplefilter("ignore")
walls = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
start = ff.Initial("u = sin(pi*x)", sigma=0.1)
axes = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
solution = ff.solve(ff.Problem("u_t = 0.1*u_xx", axes, {}, [start, *walls]), method="chain")
solution.save("run.nc")
print("ready", flush=True)
count = 0
while True:
    count += 1
    if sys.argv[1] == "condition":
        loaded = ff.load("run.nc") if count < 20 else solution  # else the problem grows and grows
        loaded.condition(ff.Observations(x=0.5, t=0.5, u=0.6, sigma=0.1)).save("run.nc")
    else:
        solution.save("run.nc")
"""
THREADS = """
import threading, warnings
from threadpoolctl import threadpool_info
import factorfield as ff
warnings.simplefilter("ignore")
import numpy, scipy.linalg
def counts():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
before, problems = counts(), [ff.problems.get("poisson"), ff.problems.get("heat")]
workers = [threading.Thread(target=lambda p=problems[i % 2]: ff.solve(p).predict(**{n: [0.1] for n in p.domain}))
           for i in range(COUNT)]
for worker in workers: worker.start()
for worker in workers: worker.join()
assert counts() == before, (before, counts())
"""


def fault(number: int, home: Path, run: bytes) -> Outcome:
    rng = random.Random(number)
    how = rng.choices(HOWS, SHARES)[0]
    folder = home / "faults"
    folder.mkdir()
    try:
        (folder / "run.nc").write_bytes(run)
        for name, equation in (("one", "u_xx = 0"), ("two", "u_x = 1")):
            (folder / f"{name}.toml").write_text(POSED.format(equation=equation))
        begin = resource.getrusage(resource.RUSAGE_CHILDREN)
        outcome = KINDS[how](rng, folder)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        left = [path.name for path in folder.rglob(".*") if ".part" in path.name]
        if left and not how.startswith("kill"):
            outcome = {"ended": "part left", "error": left[0]}
    finally:
        shutil.rmtree(folder)
    seconds = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime
    return {"kind": "fault", "number": number, "how": how, "seconds": round(seconds, 2), **outcome}


def judged(code: int, err: str, allowed: tuple[int, ...] = (0, 2)) -> Outcome:
    """Read (it worked), refused (one line and the right code), or how it failed."""
    lines = [line for line in err.splitlines() if not line.startswith(("advice: ", "note: "))]
    if "Traceback" in err or "Exception ignored" in err:
        return {"ended": "traceback", "error": err[-300:]}
    if code not in allowed or len(lines) != (code != 0):
        return {"ended": f"code {code}, {len(lines)} lines", "error": err[-300:]}
    return {"ended": "read" if code == 0 else "refused"}


def forked(arguments: list[str], folder: Path, before: Callable[[], None]) -> tuple[int, str]:
    """A command in a child of this warm process: its code, and what it said."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        os.dup2(writer, 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        before()
        code = 70
        try:
            from factorfield.cli.app import main

            main(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:
            import traceback

            traceback.print_exc()
        sys.stderr.flush()
        os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "r", errors="replace") as pipe:
        said = pipe.read()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def fresh(arguments: list[str], folder: Path, variables: dict[str, str]) -> subprocess.Popen[str]:
    """In a process of its own, imports included. Deafness to SIGINT is not handed down."""
    hear = "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    hear += "os.execv(sys.executable, [sys.executable, '-c', sys.argv[1], *sys.argv[2:]])"
    # it says when it has begun: what comes before is Python's own start
    begin = "import sys; from factorfield.cli import signals; from factorfield.__main__ import main\n"
    begin += "for n in signals.SIGNALS: signals.signal.signal(n, signals.end_at_once)\n"
    begin += "sys.stdout.write('.'); sys.stdout.flush(); main()"
    return subprocess.Popen(
        [sys.executable, "-c", hear, begin, *arguments], cwd=folder, env=os.environ | variables, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace",
    )  # fmt: skip


# -- kinds of faults


def _device(rng: random.Random, folder: Path) -> Outcome:
    words, ending = rng.choice(WRITERS)
    target, other = folder / f"out{ending}", folder / "other"
    other.write_text("mine")
    kind = rng.choice(["link", "dangling", "pipe", "socket", "device", "folder", "mode", "read-only"])
    if kind in ("link", "dangling"):
        target.symlink_to(other if kind == "link" else "nothing")
    elif kind == "pipe":
        os.mkfifo(target)
    elif kind == "socket":
        os.mknod(target, stat.S_IFSOCK | 0o600)
    elif kind == "device":
        try:
            os.mknod(target, stat.S_IFCHR | 0o666, os.makedev(1, 7))  # /dev/full, if we are root
        except OSError:
            os.mkfifo(target)
    elif kind == "folder":
        target.mkdir()
    else:
        target.write_text("old")
        target.chmod(0o600 if kind == "mode" else 0o400)
    before = os.lstat(target)
    outcome = judged(*forked(words.replace("TARGET", target.name).split(), folder, lambda: None))
    after = os.lstat(target)
    plain = kind in ("mode", "read-only")
    changed = (before.st_mode, before.st_rdev) != (after.st_mode, after.st_rdev)
    if changed or (not plain and before.st_ino != after.st_ino) or other.read_text() != "mine":
        return {"ended": "replaced", "error": f"{kind} by {words}"}
    if not plain and outcome["ended"] == "read":
        return {"ended": "not refused", "error": f"{kind} by {words}"}
    return outcome


def _full(rng: random.Random, folder: Path) -> Outcome:
    words, ending = rng.choice(WRITERS)
    size = int(10 ** rng.uniform(0.0, 5.5))
    arguments = words.replace("TARGET", f"out{ending}").split()
    return judged(*forked(arguments, folder, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))))


def _signal(rng: random.Random, folder: Path) -> Outcome:
    words, ending = rng.choice(WRITERS)
    number = rng.choice([signal.SIGINT, signal.SIGTERM])
    process = fresh(words.replace("TARGET", f"out{ending}").split(), folder, {})
    assert process.stdout is not None
    process.stdout.read(1)
    time.sleep(rng.choice([rng.uniform(0.0, 0.3), rng.uniform(0.0, 2.0)]))
    process.send_signal(number)
    for _ in range(rng.choice([0, 0, 1])):
        process.send_signal(number)
    _, err = process.communicate(timeout=120)
    outcome = judged(process.returncode, err, (0, 128 + number))
    if outcome["ended"] == "refused" and ENDED not in err:
        return {"ended": "another line", "error": err[-300:]}
    return outcome


def _locale(rng: random.Random, folder: Path) -> Outcome:
    words, ending = rng.choice(WRITERS)
    name = rng.choice(["läuft", "\u71b1", "ü ö", "a\u202eb", "e\u0301"])
    variables = {
        "LC_ALL": rng.choice(["C", "POSIX", "C.UTF-8", "en_US.ISO-8859-1"]), "PYTHONUTF8": rng.choice(["0", "1"]),
        "PYTHONCOERCECLOCALE": rng.choice(["0", "1"]),
    }  # fmt: skip
    (folder / f"{name}.nc").write_bytes((folder / "run.nc").read_bytes())
    arguments = [f"{name}{ending}" if word == "TARGET" else word for word in words.split()]
    arguments = [f"{name}.nc" if word == "run.nc" and ending != ".nc" else word for word in arguments]
    process = fresh(arguments, folder, variables)
    _, err = process.communicate(timeout=120)
    return judged(process.returncode, err, (0,))


def _threads(rng: random.Random, folder: Path) -> Outcome:
    variables = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    code = THREADS.replace("COUNT", str(rng.randint(2, 8)))
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=os.environ | variables, capture_output=True, text=True
    )
    return judged(done.returncode, done.stderr, (0,))


def _killed(what: str) -> Callable[[random.Random, Path], Outcome]:
    def kill(rng: random.Random, folder: Path) -> Outcome:
        """Kill -9 a process that writes run.nc again and again: the file has to be whole."""
        (folder / "run.nc").unlink()
        process = subprocess.Popen([sys.executable, "-c", SAVER, what], cwd=folder, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(rng.uniform(0.0, 0.4))
        hit = process.poll() is None
        process.kill()
        process.wait()
        outcome = judged(*forked(["show", "run.nc"], folder, lambda: None), allowed=(0,))
        return outcome if hit else {"ended": "ended by itself"}

    return kill


KINDS: dict[str, Callable[[random.Random, Path], Outcome]] = dict(
    zip(HOWS, (_device, _full, _signal, _locale, _threads, _killed("save"), _killed("condition")), strict=True)
)


def table(entries: list[Outcome]) -> str:
    """Markdown: kinds of faults, and what became of them."""
    lines = ["| fault | tried | worked | refused in one line | failed |", "| --- | ---: | ---: | ---: | ---: |"]
    for how in HOWS:
        ends = [str(entry["ended"]) for entry in entries if entry["how"] == how]
        worked, refused = ends.count("read"), ends.count("refused")
        lines.append(f"| {how} | {len(ends)} | {worked} | {refused} | {len(ends) - worked - refused} |")
    return "\n".join(lines)
