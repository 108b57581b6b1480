"""Are the versions that pyproject.toml declares true? `python tests/lower_bounds.py` installs exactly the lowest ones.

It makes an environment in a temporary folder, installs every dependency at its lower bound ("numpy>=1.26" as
numpy==1.26.*) and this checkout, and runs a smoke test: commands, a solve of every kind of posterior that needs no
JAX, files written and read, a picture and a report. Needs a network. The last line is for CONTRIBUTING.md.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = ("plot", "cluster")
SMOKE = """
import time
import warnings

import numpy as np
import xarray as xr

import factorfield as ff
from factorfield.cli.app import main
from factorfield.paper.sweep import connected

COMMANDS = [
    "--version", "list", "new heat", "check heat.toml", "solve heat.toml --out run.nc", "show run.nc",
    "plot run.nc --out run.png", "report run.nc --out run.html", "solve poisson --out block.nc",
    "solve heat-conductivity --out function.nc", "compare poisson --methods joint,laplace",
]
if __name__ == "__main__":  # workers of the cluster import this file too
    warnings.simplefilter("ignore")
    for words in COMMANDS:
        try:
            main(words.split())
        except SystemExit as end:
            assert not end.code, (words, end.code)
    for name in ("run.nc", "block.nc", "function.nc"):
        assert ff.load(name).status == "converged"
    x = np.linspace(0, 1, 5)
    xr.Dataset({"u": ("x", x)}, {"x": x}).to_netcdf("a.nc", engine="h5netcdf")
    assert len(ff.Observations.from_file("a.nc", x="x", t=0.0, u="u").columns["u"]) == 5
    begin = time.monotonic()
    with connected(None, 1) as client:
        assert client.submit(sum, [1, 2]).result() == 3
    print(f"smoke test passed, its cluster in {time.monotonic() - begin:.0f} s")
"""


def lowest(requirement: str) -> str:
    """numpy>=1.26 as numpy==1.26.*: the oldest series, in its last repair."""
    found = re.fullmatch(r"([A-Za-z0-9_-]+)>=([0-9.]+).*", requirement)
    assert found, requirement
    return f"{found[1]}=={found[2]}.*" if found[2].count(".") == 1 else f"{found[1]}=={found[2]}"


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(r for extra in EXTRAS for r in project["optional-dependencies"][extra])]
    pins = [lowest(requirement) for requirement in wanted]
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(Path(folder) / "bin" / "python")
        steps = [
            [python, "-m", "pip", "install", "--quiet", *pins],
            [python, "-m", "pip", "install", "--quiet", "--no-deps", str(ROOT)],
            [python, "smoke.py"],
        ]
        Path(folder, "smoke.py").write_text(SMOKE)
        for step in steps:
            done = subprocess.run(step, cwd=folder, check=False)
            if done.returncode:
                print(f"failed: {' '.join(step[1:4])} ... with {', '.join(pins)}")
                return 1
    print(f"passed on Python {sys.version_info.major}.{sys.version_info.minor} with {', '.join(pins)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
