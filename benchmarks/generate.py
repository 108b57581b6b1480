"""What does generating a file cost over merely writing its bytes?

1,000 advection trajectories (1024 cells, 201 frames, float32: 0.8 GB) by `data.generate`, against numpy.save of an
array of the same size in the same folder; alternating, medians.          python benchmarks/generate.py [FOLDER]
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from factorfield.data.generate import generate

ROWS = 1000


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as folder:
        times: dict[str, list[float]] = {"generate": [], "save": []}
        array = np.random.default_rng(0).random((ROWS, 201, 1024), dtype=np.float32)
        for run in range(5):  # new files on both sides: ours starts under a temporary name, on new pages
            own, plain = Path(folder) / f"own{run}.hdf5", Path(folder) / f"plain{run}.npy"
            begin = time.perf_counter()
            generate("advection", own, ROWS, {"b": 0.4})
            times["generate"].append(time.perf_counter() - begin)
            begin = time.perf_counter()
            np.save(plain, array)
            times["save"].append(time.perf_counter() - begin)
            own.unlink()
            plain.unlink()
        ours, theirs = (statistics.median(values) for values in times.values())
        print(f"generate {ours:.2f} s, numpy.save {theirs:.2f} s, ratio {ours / theirs:.1f}  (all runs: {times})")


if __name__ == "__main__":
    main()
