"""How many threads BLAS uses changes the time, not the answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

CODE = """
import sys
import numpy as np
import factorfield as ff
from factorfield import threads
threads.SMALL = 0  # small problems would take one thread whatever the user says
name, method, out = sys.argv[1:]
solution = ff.solve(ff.problems.get(name), method=method)
grid = {axis: values[::7] for axis, values in solution.default_grid().items()}
field = solution.predict(**grid)
from threadpoolctl import threadpool_info
counts = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
np.savez(out, mean=field["mean"], std=field["std"], threads=counts)
"""


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core has one thread")
@pytest.mark.parametrize(("name", "method"), [("fisher-kpp", "chain"), ("helmholtz-2d", "joint")])
def test_one_and_two_threads_agree(name: str, method: str, tmp_path: Path) -> None:
    found = []
    for count in (1, 2):
        variables = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), str(count))
        out = tmp_path / f"{count}.npz"
        command = [sys.executable, "-W", "ignore", "-c", CODE, name, method, str(out)]
        done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        with np.load(out) as stored:
            found.append({key: stored[key] for key in stored.files})
        assert set(found[-1]["threads"]) == {count}  # else nothing was compared
    one, two = found
    rounding = 1e-13 * np.max(np.abs(one["mean"]))
    assert np.max(np.abs(one["mean"] - two["mean"]) / (one["std"] + 1e6 * rounding)) < 1e-6
    assert np.max(np.abs(one["std"] / two["std"] - 1)) < 1e-6


def test_threads_that_solve_leave_blas_its_number_of_threads() -> None:
    """The one that began first must not be the one whose number stays, whatever the order they end in."""
    code = """
import threading
from threadpoolctl import threadpool_info
from factorfield import threads
def counts():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
import numpy, scipy.linalg
before, inside, first_out = counts(), threading.Event(), threading.Event()
def first():
    with threads.suited_to(1):
        inside.wait()
    first_out.set()
worker = threading.Thread(target=first)
worker.start()
with threads.suited_to(1):
    inside.set()
    first_out.wait()
    assert set(counts()) == {1}, counts()  # the other one has left, this one is still at work
worker.join()
assert counts() == before, (before, counts())
"""
    variables = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
