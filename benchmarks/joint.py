"""One Gaussian over all weights against the paper's mean-field messages, HMC and the hardware.

    FACTORFIELD_PDEBENCH=... python benchmarks/joint.py speed [--speeds 0.1,0.4,1,2,7]   solve and end-to-end ratios
    FACTORFIELD_PDEBENCH=... python benchmarks/joint.py hmc                              std and mean against HMC
    FACTORFIELD_PDEBENCH=... python benchmarks/joint.py memory                           peak memory at b = 7

`speed` runs both sides with one BLAS thread and again with two, contenders alternating, medians of three rows. `hmc`
needs the extra `baselines` and prints the gate; a comparison counts only where it is passed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import time
from typing import Any

THREADS = os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", THREADS)

import numpy as np  # noqa: E402
from rows import advection, fisher  # noqa: E402

import factorfield as ff  # noqa: E402


def timed(action: Any) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = action()
    return time.perf_counter() - begin, result


def speed(speeds: list[str]) -> None:
    print(f"BLAS threads: {THREADS}")
    warm = ff.paper_model(advection("0.1", 0))
    ff.solve(warm, method="mean-field", epochs=1)
    ff.solve(warm, method="joint")
    for b in speeds:
        columns: dict[str, list[float]] = {}
        for row in (0, 2, 5) if float(b) < 7 else (0,):
            problem = advection(b, row)
            grid = {"x": problem.truth.x, "t": problem.truth.t}
            build, model = timed(lambda p=problem: ff.paper_model(p))
            gemm, _ = timed(lambda m=model: np.ones((m.size, m.factors)) @ np.ones((m.factors, m.size)))
            for _ in range(3 if float(b) < 7 else 1):
                joint, solution = timed(lambda m=model: ff.solve(m, method="joint"))
                predict, _ = timed(lambda s=solution, g=grid: s.predict(**g))
                a, c = np.ones((model.size, model.factors)), np.ones((model.factors, model.size))
                gemm, _ = timed(lambda a=a, c=c: a @ c)
                raw_build, raw = timed(lambda p=problem: ff.paper_model(p, rotation=False))
                raw_joint, raw_solution = timed(lambda m=raw: ff.solve(m, method="joint"))
                raw_predict, _ = timed(lambda s=raw_solution, g=grid: s.predict(**g))
                del raw, raw_solution, a, c
                parts = {
                    "joint": joint, "predict": predict, "gemm": gemm, "build": build,
                    "raw": raw_build + raw_joint + raw_predict,
                }  # fmt: skip
                for name, value in parts.items():
                    columns.setdefault(name, []).append(value)
            mean_field, slow = timed(lambda m=model: ff.solve(m, method="mean-field"))
            slow_predict, _ = timed(lambda s=slow, g=grid: s.predict(**g))
            columns.setdefault("mean-field", []).append(mean_field)
            columns.setdefault("slow", []).append(build + mean_field + slow_predict)
        m = {name: statistics.median(values) for name, values in columns.items()}
        total = m["build"] + m["joint"] + m["predict"]
        faster = m["mean-field"] / m["joint"]
        print(
            f"b = {b:>3}: joint {m['joint']:.3f} s, mean-field {m['mean-field']:.2f} s: {faster:.0f}x; "
            f"solve = {m['joint'] / m['gemm']:.1f} dgemm; predict {m['predict']:.3f} s = "
            f"{m['predict'] / m['joint']:.2f} solves; end to end {m['slow'] / total:.0f}x "
            f"(without rotation {m['slow'] / m['raw']:.0f}x)",
            flush=True,
        )


# -- HMC


def compare_hmc() -> None:
    cases = [(f"b = {b}", advection(b, 0)) for b in ("0.1", "0.4")]
    cases += [(f"nu = {nu:g}, rho = {rho:g}", fisher(nu, rho, 0)) for nu, rho in ((0.5, 1.0), (1.0, 5.0))]
    for label, problem in cases:
        model = ff.paper_model(problem)
        # both sides see the same density: the pointwise relation, the jumps of g' at 0 included
        seconds, reference = timed(lambda m=model: ff.solve(m, method="hmc"))
        mean, std = reference.posterior.weight_mean, reference.posterior.weight_std
        grid = {"x": problem.truth.x[::16], "t": problem.truth.t[::10]}
        spread = reference.predict(**grid)["std"].values
        print(f"{label}: HMC {seconds:.0f} s, {reference.status}: {reference.status.help}")
        for name in ("joint", "laplace", "mean-field"):
            solve, solution = timed(lambda n=name, m=model: ff.solve(m, method=n))
            posterior = solution.posterior
            ratio = np.quantile(posterior.weight_std / std, [0.05, 0.5, 0.95])
            distance = np.quantile(np.abs(posterior.weight_mean - mean) / std, 0.95)
            field = np.median(solution.predict(**grid)["std"].values / spread)
            print(
                f"  {name:<11} std ratio 5/50/95 %: {ratio[0]:.2f} {ratio[1]:.2f} {ratio[2]:.2f}; mean within "
                f"{distance:.3f} sd (95 %); field std ratio {field:.3f}; {seconds / solve:.0f}x faster than HMC",
                flush=True,
            )


def memory() -> None:
    import resource

    model = ff.paper_model(advection("7", 0))
    design = sum(rows.nbytes for group in model.groups for rows in group.rows)
    bytes_full = 2 * 8 * sum(g.count for g in model.groups if g.name.startswith("equation")) * model.size
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    import tracemalloc

    tracemalloc.start()
    ff.solve(model)
    peak = tracemalloc.get_traced_memory()[1] + model.memory
    print(
        f"b = 7: {model.size} weights, {model.factors} factors; Phi and R {bytes_full / 2**20:.0f} MiB, kept "
        f"{design / 2**20:.0f} MiB; peak during the solve, design included, {peak / 2**20:.0f} MiB = "
        f"{peak / bytes_full:.2f} x Phi and R (process peak while building {before / 2**10:.0f} MiB)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "hmc", "memory"])
    parser.add_argument("--speeds", default="0.1,0.4,1,2,7")
    parser.add_argument("--here", action="store_true", help="speed: this process's threads only")
    arguments = parser.parse_args()
    if arguments.what == "speed" and not arguments.here:
        for threads in ("1", "2"):
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
            command = [sys.executable, __file__, "speed", "--here", "--speeds", arguments.speeds]
            subprocess.run(command, env=environment, check=True)
    elif arguments.what == "speed":
        speed(arguments.speeds.split(","))
    elif arguments.what == "hmc":
        compare_hmc()
    else:
        memory()


if __name__ == "__main__":
    main()
