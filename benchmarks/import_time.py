"""What does importing the package and a first small solve cost, over the third-party packages they load?

Each contender is a fresh interpreter; contenders alternate, medians are compared.     python benchmarks/import_time.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

REPEATS = 11
PACKAGES = ("numpy", "scipy", "sympy", "numba", "xarray", "pandas", "h5py", "h5netcdf")
SOLVE = "import factorfield as ff; ff.solve(ff.problems.get('heat')).predict(x=[0.5], t=[0.5])"


def seconds(code: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    return time.perf_counter() - begin


def third_party(code: str) -> str:
    """Code that imports exactly the third-party modules that `code` loads."""
    listing = f"print(*[m for m in sys.modules if m.split('.')[0] in {PACKAGES!r} and '._' not in m])"
    names = subprocess.run(
        [sys.executable, "-c", f"import sys; {code}; {listing}"], check=True, capture_output=True, text=True
    ).stdout.split()
    return (
        "pass"
        if not names
        else (f"import importlib\nfor m in {names!r}:\n  try: importlib.import_module(m)\n  except Exception: pass")
    )


def main() -> None:
    for label, code in (("import factorfield", "import factorfield"), ("first heat solve", SOLVE)):
        base = third_party(code)
        times: dict[str, list[float]] = {"ours": [], "third-party only": []}
        for _ in range(REPEATS):
            times["ours"].append(seconds(code))
            times["third-party only"].append(seconds(base))
        ours, theirs = (statistics.median(values) for values in times.values())
        print(f"{label}: {ours:.3f} s, its third-party imports alone {theirs:.3f} s, ratio {ours / theirs:.2f}")


if __name__ == "__main__":
    main()
