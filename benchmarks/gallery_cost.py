"""What do the gallery's forward problems cost against another version? Processor seconds, both in turn.

    python benchmarks/gallery_cost.py /tmp/before [NAME ...] [--repeat 3]      a Markdown table of the least of each

`/tmp/before` is a checkout of the other version. Each solve has a process of its own, in which a small problem was
solved before; ff.problems.get is not counted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from gallery import FORWARD
from rows import header, line

SOLVE = """
import sys, time, warnings
import factorfield as ff
warnings.simplefilter("ignore")
for name in ("klein-gordon", "poisson"):
    ff.solve(ff.problems.get(name))
problem = ff.problems.get(sys.argv[1])
begin = time.process_time()
ff.solve(problem)
print(time.process_time() - begin)
"""
THREADS = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")


def seconds(checkout: Path, name: str) -> float:
    environment = {**os.environ, **THREADS, "PYTHONPATH": str(checkout.resolve() / "src")}
    command = [sys.executable, "-c", SOLVE, name]
    return float(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("names", nargs="*", default=FORWARD)
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    checkouts, totals = (asked.before, Path(__file__).parents[1]), [0.0, 0.0]
    header("problem", "before, s", "after, s", "ratio")
    for name in asked.names:
        runs = [[seconds(checkout, name) for checkout in checkouts] for _ in range(asked.repeat)]
        before, after = (min(own) for own in zip(*runs, strict=True))
        totals = [totals[0] + before, totals[1] + after]
        line(name, f"{before:.2f}", f"{after:.2f}", f"{after / before:.2f}")
    line("all", f"{totals[0]:.1f}", f"{totals[1]:.1f}", f"{totals[1] / totals[0]:.2f}")


if __name__ == "__main__":
    main()
