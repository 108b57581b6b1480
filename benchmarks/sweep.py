"""Does a second worker nearly double a sweep's throughput on a real scheduler?

    python benchmarks/sweep.py        starts `dask scheduler` and one, then two `dask worker` processes on loopback

Each turn runs the same 40 short runs into a fresh folder; turns alternate, the ratio of medians is printed.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from factorfield.paper.run import Run
from factorfield.paper.store import Store
from factorfield.paper.sweep import ONE_THREAD, sweep

PORT = 18799
ADDRESS = f"tcp://127.0.0.1:{PORT}"


def turn(workers: int, runs: list[Run]) -> float:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": {**os.environ, **ONE_THREAD}}
    dask = [sys.executable, "-m", "dask"]
    started = [
        subprocess.Popen(
            [*dask, "scheduler", "--host", "127.0.0.1", "--port", str(PORT), "--dashboard-address", ":0"], **quiet
        )
    ]
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(workers):
            worker = [*dask, "worker", ADDRESS, "--nthreads", "1", "--no-dashboard", "--local-directory", folder]
            started.append(subprocess.Popen(worker, **quiet))
        try:
            warm = Store.open(Path(folder) / "warm")
            sweep([Run("advection", {"b": 0.1}, 100 + k, "joint") for k in range(6)], warm, scheduler=ADDRESS)
            begin = time.perf_counter()
            sweep(runs, Store.open(Path(folder) / "out"), scheduler=ADDRESS)
            return time.perf_counter() - begin
        finally:
            for process in started:
                process.kill()
                process.wait()


def main() -> None:
    runs = [Run("advection", {"b": 0.4}, row, "mean-field", options={"epochs": 40}) for row in range(40)]
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(3):
        for workers, values in seconds.items():
            values.append(turn(workers, runs))
            print(f"{workers} worker(s): {values[-1]:.1f} s for {len(runs)} runs", flush=True)
    ratio = statistics.median(seconds[1]) / statistics.median(seconds[2])
    print(f"throughput of two workers : one = {ratio:.2f}")


if __name__ == "__main__":
    main()
