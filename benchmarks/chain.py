"""Time windows against the paper's numbers, its methods' clocks, and longer horizons.

FACTORFIELD_PDEBENCH=... python benchmarks/chain.py rows [--speeds 0.1,0.4,1,2,7] [--rows 10]   accuracy
FACTORFIELD_PDEBENCH=... python benchmarks/chain.py fisher [--rows 5]
FACTORFIELD_PDEBENCH=... python benchmarks/chain.py speed [--rows 3]   chain : mean-field : joint : hmc
python benchmarks/chain.py horizon                               12.5 to 100 periods, in memory and on file
FACTORFIELD_PDEBENCH=... python benchmarks/chain.py deepxde      the rows that DeepXDE was measured on
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
import tracemalloc
import warnings
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from rows import advection, fisher, folder  # noqa: E402

import factorfield as ff  # noqa: E402


def measure(problem: ff.Problem) -> dict[str, float]:
    begin = time.perf_counter()
    solution = ff.solve(problem, method="chain")
    solved = time.perf_counter()
    field = solution.predict(x=problem.truth.x, t=problem.truth.t)
    done = time.perf_counter()
    score = ff.metrics.score(field, problem.truth)
    later = {"t": slice(1, None)}
    score["later"] = ff.metrics.score(field.isel(later), problem.truth.isel(later))["rmse"]
    score["stored"] = np.nan if problem.stored is None else ff.metrics.score(field, problem.stored)["rmse"]
    return {**score, "solve": solved - begin, "predict": done - solved, "windows": float(solution.trace["windows"])}


def show(label: str, scores: list[dict[str, float]]) -> None:
    mean = {key: float(np.mean([s[key] for s in scores])) for key in scores[0]}
    print(
        f"{label:<22} RMSE {mean['rmse']:.2e}  t>0 {mean['later']:.2e}  stored {mean['stored']:.2e}  "
        f"cover {100 * mean['coverage90']:5.1f} %  CRPS {mean['crps']:.2e}  solve {mean['solve']:.2f} s  "
        f"predict {mean['predict']:.2f} s  {mean['windows']:.0f} windows  ({len(scores)} runs)",
        flush=True,
    )


def rows(speeds: list[float], count: int) -> None:
    everything = []
    for b in speeds:
        scores = [measure(advection(b, row)) for row in range(count)]
        show(f"b = {b:g}", scores)
        everything += scores
    show("all", everything)


def fisher_rows(count: int) -> None:
    everything = []
    for nu in (0.5, 1.0, 2.0, 5.0):
        for rho in (1.0, 2.0, 5.0, 10.0):
            scores = [measure(fisher(nu, rho, row)) for row in range(count)]
            show(f"nu = {nu:g}, rho = {rho:g}", scores)
            everything += scores
    show("all", everything)


def timed(action: Any) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def speed(count: int) -> None:
    """Solves alternate; medians over rows. HMC at b <= 1 (warm: its second fit), first row only."""
    cases: list[tuple[str, list[ff.Problem]]] = [
        (f"b = {b:g}", [advection(b, row) for row in range(count)]) for b in (0.1, 0.4, 1.0, 2.0, 7.0)
    ]
    cases += [
        (f"nu = {nu:g}, rho = {rho:g}", [fisher(nu, rho, r) for r in range(min(count, 5))])
        for nu, rho in ((0.5, 1.0), (1.0, 5.0), (1.0, 10.0), (5.0, 2.0))
    ]
    for number, (label, problems) in enumerate(cases):
        seconds: dict[str, list[float]] = {"chain": [], "mean-field": [], "joint": []}
        errors: dict[str, list[float]] = {"chain": [], "mean-field": []}
        for index, problem in enumerate(problems):
            model = ff.paper_model(problem)
            if index == 0:
                ff.solve(model, method="mean-field", epochs=1)  # compile
                ff.solve(problem, method="chain")
                if number < 3:
                    ff.solve(model, method="hmc")
                    seconds["hmc"] = [timed(lambda m=model: ff.solve(m, method="hmc"))]
            for _ in range(2):
                seconds["chain"].append(timed(lambda p=problem: ff.solve(p, method="chain")))
                seconds["joint"].append(timed(lambda m=model: ff.solve(m, method="joint")))
            seconds["mean-field"].append(timed(lambda m=model: ff.solve(m, method="mean-field")))
            for name, solved in (("chain", problem), ("mean-field", model)):
                if index < 2:
                    field = ff.solve(solved, method=name).predict(x=problem.truth.x[::8], t=problem.truth.t[::10])
                    errors[name].append(ff.metrics.score(field, problem.truth[::10, ::8])["rmse"])
        middle = {name: statistics.median(values) for name, values in seconds.items()}
        hmc = f", hmc {middle['hmc'] / middle['chain']:.0f}x" if "hmc" in middle else ""
        print(
            f"{label}: chain {middle['chain']:.3f} s, mean-field {middle['mean-field'] / middle['chain']:.1f}x{hmc}, "
            f"chain = {middle['chain'] / middle['joint']:.1f} joint solves (paper's model); "
            f"RMSE {np.mean(errors['chain']):.1e} against {np.mean(errors['mean-field']):.1e}",
            flush=True,
        )


def long_wave(horizon: float) -> ff.Problem:
    x = (np.arange(256) + 0.5) / 256
    labels = ff.Observations(x=x, t=0.0, u=np.exp(np.sin(2 * np.pi * x)), sigma=0.01)
    return ff.Problem("u_t + u_x", {"x": ff.Periodic(0, 1), "t": ff.Interval(0, horizon)}, {}, [labels])


def horizon() -> None:
    """Seconds and peak memory over the horizon, in memory and with windows written to a file as they finish."""
    ff.solve(long_wave(1), method="chain", modes={"x": 16})
    for where in ("memory", "file"):
        before = None
        for periods in (12.5, 25, 50, 100):
            with tempfile.TemporaryDirectory() as scratch:
                options = {"store": f"{scratch}/windows.h5"} if where == "file" else {}
                problem = long_wave(periods)
                seconds = timed(lambda p=problem, o=options: ff.solve(p, method="chain", modes={"x": 16}, **o))
                tracemalloc.start()
                solution = ff.solve(problem, method="chain", modes={"x": 16}, **options)
                end = solution.predict(x=np.linspace(0, 1, 64), t=[periods])["mean"]
                peak = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            error = float(np.abs(np.ravel(end) - np.exp(np.sin(2 * np.pi * (np.linspace(0, 1, 64) - periods)))).max())
            growth = "" if before is None else f", {seconds / before:.2f}x of half the horizon"
            print(
                f"windows in {where}, {periods:g} periods: {seconds:.2f} s{growth}, peak {peak / 2**20:.1f} MiB, "
                f"{len(solution.posterior.links)} windows, error at the end {error:.1e}",
                flush=True,
            )
            before = seconds


def deepxde() -> None:
    """Our seconds (solve and whole field), error and coverage on the rows of ../shared/HEADTOHEAD.md, 4."""
    import h5py

    with h5py.File(folder() / "1D_Advection_Sols_beta0.4.hdf5") as opened:
        rows_there = [int(row) for row in opened["pdebench-row"][:]]
    cases = [(f"advection b = 0.4, row {row}", advection(0.4, rows_there.index(row))) for row in (9394, 898, 2398)]
    with np.load(folder() / "ReacDiff_initial_conditions.npz") as stored:
        names = {name: stored[name] for name in stored.files}
    numbers = next(v for k, v in names.items() if np.issubdtype(v.dtype, np.integer) and v.ndim == 1)
    cases.append(("Fisher-KPP nu = 0.5, rho = 5, row 9394", fisher(0.5, 5.0, [int(n) for n in numbers].index(9394))))
    measure(cases[0][1])
    for label, problem in cases:
        show(label, [measure(problem) for _ in range(3)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["rows", "fisher", "speed", "horizon", "deepxde"])
    parser.add_argument("--speeds", default="0.1,0.4,1,2,7")
    parser.add_argument("--rows", type=int, default=None)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.what == "rows":
        rows([float(b) for b in arguments.speeds.split(",")], arguments.rows or 10)
    elif arguments.what == "fisher":
        fisher_rows(arguments.rows or 5)
    elif arguments.what == "speed":
        speed(arguments.rows or 3)
    elif arguments.what == "deepxde":
        deepxde()
    else:
        horizon()


if __name__ == "__main__":
    main()
