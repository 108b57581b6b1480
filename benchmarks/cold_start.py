"""How long until the command line answers, over the third-party packages it cannot do without?

Each contender is a fresh interpreter; contenders alternate, medians are compared.      python benchmarks/cold_start.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

REPEATS = 11
OURS = "import sys; sys.argv = ['factorfield', *{arguments!r}]; from factorfield.cli.app import main; main()"
LISTING = """
import atexit, sys
atexit.register(lambda: print(*[m for m in sys.modules if m.split('.')[0] in {packages!r} and '._' not in m],
                              file=sys.stderr))
"""
PACKAGES = (
    "numpy",
    "scipy",
    "sympy",
    "numba",
    "xarray",
    "pandas",
    "h5py",
    "h5netcdf",
    "typer",
    "rich",
    "threadpoolctl",
)


def seconds(code: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return time.perf_counter() - begin


def imports_of(code: str) -> str:
    """Code that imports exactly the third-party modules that `code` loads."""
    listed = subprocess.run(
        [sys.executable, "-c", LISTING.format(packages=PACKAGES) + code], check=True, capture_output=True, text=True
    ).stderr.splitlines()[-1]
    return (
        f"import importlib\nfor m in {listed.split()!r}:\n  try: importlib.import_module(m)\n  except Exception: pass"
    )


def main() -> None:
    solve = OURS.format(arguments=["solve", "poisson"])
    for label, ours, base, limit in (
        ("factorfield --help", OURS.format(arguments=["--help"]), "import typer, rich", 1.5),
        ("factorfield solve poisson", solve, imports_of(solve), 2.0),
    ):
        times: dict[str, list[float]] = {ours: [], base: []}
        for _ in range(REPEATS):
            for code, found in times.items():
                found.append(seconds(code))
        mine, theirs = (statistics.median(found) for found in times.values())
        print(f"{label}: {mine:.3f} s, imports alone {theirs:.3f} s, ratio {mine / theirs:.2f} (at most {limit:g})")


if __name__ == "__main__":
    main()
