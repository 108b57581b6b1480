"""What does the paper's algorithm cost the first time on a machine, the first time in a process, and after that?

    python benchmarks/first_use.py [SOURCE ...]        SOURCE: `src` of another checkout, to compare with

Every measurement is a fresh interpreter that solves the paper's model at b = 0.1 by mean-field twice; checkouts
alternate. Processor seconds are printed beside wall seconds: they hardly depend on what else the machine does.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

REPEATS = 5
HERE = str(Path(__file__).parents[1] / "src")
CODE = """
import time
import factorfield as ff
model = ff.paper_model(ff.problems.get("advection", b=0.1, row=0))
for _ in range(2):
    wall, processor = time.perf_counter(), time.process_time()
    ff.solve(model, method="mean-field")
    print(time.perf_counter() - wall, time.process_time() - processor)
"""
Seconds = tuple[float, float]


def fits(source: str, cache: str) -> tuple[Seconds, Seconds]:
    """(wall, processor) seconds of the first and the second fit in a process."""
    environment = {**os.environ, "PYTHONPATH": source, "NUMBA_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, check=True, capture_output=True, text=True)
    first, second = (line.split() for line in done.stdout.splitlines()[-2:])
    return (float(first[0]), float(first[1])), (float(second[0]), float(second[1]))


def main() -> None:
    sources = [HERE, *sys.argv[1:]]
    found: dict[tuple[str, str], list[Seconds]] = {}
    for _ in range(REPEATS):
        for source in sources:
            with tempfile.TemporaryDirectory() as cache:
                found.setdefault((source, "first on a machine"), []).append(fits(source, cache)[0])
                first, second = fits(source, cache)
            found.setdefault((source, "first in a process"), []).append(first)
            found.setdefault((source, "after that"), []).append(second)
    for (source, label), seconds in found.items():
        wall, processor = (statistics.median(values) for values in zip(*seconds, strict=True))
        place = "" if len(sources) == 1 else f"{source}: "
        print(f"{place}{label:<20} {wall:6.2f} s wall, {processor:6.2f} s of the processor")


if __name__ == "__main__":
    main()
