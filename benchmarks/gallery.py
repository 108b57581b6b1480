"""Every problem of the gallery by the default method: error from exact data, coverage from noisy data, seconds, size.

python benchmarks/gallery.py [NAME ...]      # a markdown table; one line per problem as it finishes
python benchmarks/gallery.py intervals [--draws 100]   # how often 90 % intervals of unknown coefficients hold the truth
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

import factorfield as ff

NOISE = {"lotka-volterra": 2.0}  # of fields whose size is not about 1
FORWARD = (
    "heat", "advection", "fisher-kpp", "advection-diffusion", "burgers", "allen-cahn", "wave", "klein-gordon", "kdv",
    "kuramoto-sivashinsky", "schroedinger", "poisson", "poisson-2d", "helmholtz-2d", "heat-2d", "lotka-volterra",
    "gray-scott", "fisher-kpp-2d",
)  # fmt: skip
UNKNOWN: dict[str, dict[str, float]] = {
    "reaction-coefficient": {"k": 2.0},
    "wave-speed": {"c": 1.3},
    "fisher-kpp-rates": {"nu": 0.02, "rho": 3.0},
    "reaction-inverse": {"D": 2.0, "k": 0.1},
}


def measured(problem: ff.Problem) -> tuple[dict[str, float], float, Any]:
    begin = time.perf_counter()
    solution = ff.solve(problem)
    seconds = time.perf_counter() - begin
    axes = {name: problem.truth[name] for name in problem.domain.names}
    return ff.metrics.score(solution.predict(**axes), problem.truth), seconds, solution


def table(names: list[str]) -> None:
    print("| problem | relative L2, exact data | 90 % covers, noisy data | seconds | weights per window | windows |")
    print("|---|---|---|---|---|---|")
    for name in names:
        exact, seconds, solution = measured(ff.problems.get(name))
        noisy = measured(ff.problems.get(name, noise=NOISE.get(name, 0.02)))[0]
        weights, windows = solution.posterior.representation.size, solution.trace.get("windows", "-")
        print(
            f"| {name} | {exact['relative_l2']:.1e} | {100 * noisy['coverage90']:.0f} % | {seconds:.1f} | {weights} | "
            f"{windows} |",
            flush=True,
        )


def intervals(draws: int) -> None:
    print("| problem | coefficient | truth | mean of means | mean std | draws | 90 % intervals that hold it |")
    print("|---|---|---|---|---|---|---|")
    for name, truths in UNKNOWN.items():
        found = [ff.solve(ff.problems.get(name, seed=seed)).parameters for seed in range(draws)]
        for coefficient, truth in truths.items():
            results = [one[coefficient] for one in found]
            inside = np.mean([r["interval"][0] <= truth <= r["interval"][1] for r in results])
            means, stds = [r["mean"] for r in results], [r["std"] for r in results]
            print(
                f"| {name} | {coefficient} | {truth:g} | {np.mean(means):.4f} | {np.mean(stds):.4f} | {draws} | "
                f"{100 * inside:.0f} % |",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--draws", type=int, default=100)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.names == ["intervals"]:
        intervals(arguments.draws)
    else:
        table(arguments.names or list(FORWARD))


if __name__ == "__main__":
    main()
