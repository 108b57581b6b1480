"""Ordinary differential equations forward: SciPy's solvers and, where it is installed, probdiffeq.

python benchmarks/rivals/odes.py [--rtol 1e-3 1e-5 1e-8]
FACTORFIELD_PROBDIFFEQ=DIR/bin/python python benchmarks/rivals/odes.py       # see environment.txt

Errors are at the case's times against a reference, in units of each field's largest value.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import integrate

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from rivals.cases import Ode, odes

Array = NDArray[np.float64]
PYTHON = "FACTORFIELD_PROBDIFFEQ"  # names the interpreter of the environment that has probdiffeq


@dataclass(frozen=True)
class Run:
    method: str
    rtol: float
    error: float
    seconds: float  # processor time of one run
    first: float = 0.0  # of the first run, compilation included


def scale(reference: Array) -> Array:
    return np.max(np.abs(reference), axis=1, keepdims=True)


@cache
def reference(name: str) -> Array:
    """The case's fields at its times, to about 1e-12 of their size; stiff ones to 1e-10, as jumps magnify errors."""
    case = named(name)
    method, tolerance = ("Radau", 1e-12) if case.stiff else ("DOP853", 3e-14)
    return solved(case, method, tolerance)


def named(name: str) -> Ode:
    return next(case for case in odes() if case.name == name)


def solved(case: Ode, method: str, rtol: float) -> Array:
    extra = {"jac": case.jacobian} if method in ("Radau", "BDF", "LSODA") else {}
    run = integrate.solve_ivp(
        case.slope, (0.0, case.times[-1]), case.y0, method, case.times, rtol=rtol, atol=rtol * np.abs(case.y0).max(),
        **extra,
    )  # fmt: skip
    if not run.success:
        raise ArithmeticError(run.message)
    return run.y


def by_scipy(case: Ode, method: str, rtol: float, repeats: int = 3) -> Run:
    """DOP853 where the equation is not stiff, Radau or LSODA where it is; the median of some runs."""
    seconds = []
    for _ in range(repeats):
        begin = time.process_time()
        y = solved(case, method, rtol)
        seconds.append(time.process_time() - begin)
    exact = reference(case.name)
    return Run(method, rtol, float(np.max(np.abs(y - exact) / scale(exact))), float(np.median(seconds)))


def best_of_scipy(case: Ode, error: float) -> Run:
    """The fastest run whose error is at most this, over methods and tolerances."""
    methods = ("Radau", "LSODA", "BDF") if case.stiff else ("DOP853", "RK45", "LSODA")
    runs = []
    for method, power in itertools.product(methods, range(3, 13)):
        with contextlib.suppress(ArithmeticError):  # a tolerance that the method cannot reach
            runs.append(by_scipy(case, method, 10.0**-power))
    good = [run for run in runs if run.error <= error]
    return min(good or runs, key=lambda run: run.seconds if good else run.error)


def by_probdiffeq(case: Ode, rtol: float) -> Run | str:
    """In the environment that FACTORFIELD_PROBDIFFEQ names; a reason where there is none."""
    python = os.environ.get(PYTHON)
    if not python:
        return f"probdiffeq: skipped, {PYTHON} is not set (see environment.txt)"
    command = [python, __file__, "--probdiffeq", case.name, "--rtol", repr(rtol)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"probdiffeq: failed, {(done.stderr.strip().splitlines() or ['no message'])[-1]}"
    y = json.loads(done.stdout)
    exact = reference(case.name)
    error = float(np.max(np.abs(np.array(y["mean"]).T - exact) / scale(exact)))
    return Run(y["method"], rtol, error, y["seconds"], y["first"])


def probabilistic(case: Ode, rtol: float, derivatives: int, dt0: float = 1e-2) -> dict[str, object]:
    """Mean at the case's times by probdiffeq, as its documentation proposes: a filter with calibrated steps.

    Order 1 linearisation on a dense covariance for stiff equations, order 0 on an isotropic one otherwise.
    """
    import jax
    import jax.numpy as jnp
    from probdiffeq import ivpsolve, probdiffeq

    jax.config.update("jax_enable_x64", True)
    field = probdiffeq.ode(lambda y, /, *, t: jnp.stack(case.slope(t, y)), jacobian=probdiffeq.jacobian_materialize())
    space = probdiffeq.state_space_model_dense() if case.stiff else probdiffeq.state_space_model_isotropic()
    constraint = (space.constraint_ode_ts1 if case.stiff else space.constraint_ode_ts0)(field)
    solver = probdiffeq.solver_dynamic(strategy=probdiffeq.strategy_filter(), constraint=constraint)
    march = ivpsolve.solve_adaptive_save_at(
        solver=solver, error=probdiffeq.error_residual_std(constraint=constraint), warn=False
    )
    expand = probdiffeq.jetexpand_ode_padded_scan(num=derivatives)

    @jax.jit
    def run(y0: jax.Array) -> jax.Array:
        coefficients, _ = expand(field, (y0,), t=0.0)
        prior = space.prior_wiener_integrated(coefficients)
        atol = rtol * float(np.abs(case.y0).max())
        return march(prior, save_at=jnp.asarray(case.times), atol=atol, rtol=rtol, dt0=dt0).u.mean[0]

    start, seconds = jnp.asarray(case.y0), []
    for _ in range(4):  # the first one compiles
        begin = time.process_time()
        mean = np.asarray(run(start).block_until_ready())
        seconds.append(time.process_time() - begin)
    method = f"probdiffeq {'ts1 dense' if case.stiff else 'ts0 isotropic'} nu={derivatives}"
    return {"method": method, "mean": mean.tolist(), "seconds": float(np.median(seconds[1:])), "first": seconds[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rtol", type=float, nargs="+", default=[1e-3, 1e-5, 1e-8])
    parser.add_argument("--derivatives", type=int, help="of probdiffeq's prior: 4, and 5 for stiff equations")
    parser.add_argument("--probdiffeq", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.probdiffeq:
        case = named(arguments.probdiffeq)
        derivatives = arguments.derivatives or (5 if case.stiff else 4)  # the fastest of 3 to 8 at equal error
        print(json.dumps(probabilistic(case, arguments.rtol[0], derivatives)))
        return
    for case in odes():
        for method in ("Radau", "LSODA", "BDF") if case.stiff else ("DOP853", "Radau", "LSODA"):
            for rtol in arguments.rtol:
                print(case.name, asdict(by_scipy(case, method, rtol)), flush=True)
        for rtol in arguments.rtol:
            run = by_probdiffeq(case, rtol)
            print(case.name, run if isinstance(run, str) else asdict(run), flush=True)


if __name__ == "__main__":
    main()
