"""Does our message passing give the paper's numbers on the paper's rows?

Runs paper_model with a method on the PDEBench rows and prints Table 1's metrics beside the paper's. Advection is scored
against the stored field (the paper's choice) and the exact translate, Fisher-KPP against the float64 solution.

    FACTORFIELD_PDEBENCH=... python benchmarks/paper_rows.py advection --speeds 0.1,0.4,1,2
    FACTORFIELD_PDEBENCH=... python benchmarks/paper_rows.py fisher-kpp --rows 2 [--no-curvature] [--exact-kinks]
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402
from rows import advection, fisher  # noqa: E402

import factorfield as ff  # noqa: E402

PAPER = {
    "advection": {"ours": "4.89   14.5  39.0", "HMC": "4.85   27.1  37.9"},
    "fisher-kpp": {"ours": "2.72   50.0   3.78", "HMC": "2.73   68.3   3.65"},
}


def run(problem: ff.Problem, against: Any, arguments: argparse.Namespace) -> dict[str, float]:
    options: dict[str, Any] = {
        "curvature": not arguments.no_curvature,
        "variant": "exact" if arguments.exact_kinks else "paper",
    }
    options["seed"] = arguments.seed
    model = ff.paper_model(problem, **options)
    begin = time.perf_counter()
    solution = ff.solve(model, method=arguments.method)
    seconds = time.perf_counter() - begin
    field = solution.predict(x=problem.truth.x, t=problem.truth.t)
    score = ff.metrics.score(field, against)
    late = (field["mean"] - problem.truth).where(problem.truth.t >= 0.02, drop=True)
    return {
        **score, "exact": ff.metrics.score(field, problem.truth)["rmse"], "late": float(np.sqrt((late**2).mean())),
        "seconds": seconds, "converged": float(solution.status == "converged"),
    }  # fmt: skip


def line(label: str, scores: list[dict[str, float]]) -> None:
    mean = {key: float(np.mean([s[key] for s in scores])) for key in scores[0]}
    done = int(sum(s["converged"] for s in scores))
    print(
        f"{label:<22} {100 * mean['rmse']:6.2f} {100 * mean['coverage90']:6.1f} {1000 * mean['crps']:6.2f}   "
        f"{mean['exact']:.2e} {mean['late']:.2e} {mean['nll']:8.1f} {mean['seconds']:6.2f}  {done}/{len(scores)}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("equation", choices=["advection", "fisher-kpp"])
    parser.add_argument("--method", default="mean-field")
    parser.add_argument("--speeds", default="0.1,0.4,1,2")
    parser.add_argument("--rows", type=int, default=None)
    parser.add_argument("--seed", type=int, default=0, help="of the collocation points")
    parser.add_argument("--no-curvature", action="store_true")
    parser.add_argument("--exact-kinks", action="store_true")
    arguments = parser.parse_args()
    print(f"{'':<22} RMSE    cover  CRPS     RMSE     RMSE          NLL  seconds converged")
    print(f"{arguments.method:<22} x1e-2   90 %   x1e-3    exact    t>=0.02       solve")
    everything = []
    if arguments.equation == "advection":
        for speed in arguments.speeds.split(","):
            problems = (advection(speed, row) for row in range(arguments.rows or 10))
            scores = [run(problem, problem.stored, arguments) for problem in problems]
            line(f"b = {speed}", scores)
            everything += scores
    else:
        for nu in (0.5, 1.0, 2.0, 5.0):
            for rho in (1.0, 2.0, 5.0, 10.0):
                problems = (fisher(nu, rho, row) for row in range(arguments.rows or 5))
                scores = [run(problem, problem.truth, arguments) for problem in problems]
                line(f"nu = {nu:g}, rho = {rho:g}", scores)
                everything += scores
    line(f"all {len(everything)} runs", everything)
    for name, numbers in PAPER[arguments.equation].items():
        print(f"{'paper, ' + name:<22}   {numbers}")


if __name__ == "__main__":
    main()
