"""Fisher-KPP in two dimensions: what a solve with std costs beside one classical solve that is about as accurate.

python benchmarks/two_dimensions.py [--modes 8]      # one markdown table; run it alone on the machine

Seconds of the solve and of mean and std on 64 x 64 x 51 points, peak memory of the process, error against the truth,
and the ratio to Strang splitting (`data.reference`) on 64 x 64 cells with the longest step whose error is
not larger than ours.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import factorfield as ff
from factorfield.data.reference import fisher_kpp
from factorfield.problems.fisher_kpp_2d import initial

STEPS = (0.02, 0.01, 0.005, 0.0025)  # of the classical solver; all divide the gap between times


def relative(values: np.ndarray, truth: np.ndarray) -> float:
    return float(np.linalg.norm(values - truth) / np.linalg.norm(truth))


def classical(problem: ff.Problem, bound: float) -> tuple[float, float, float]:
    """Step, seconds and error at the last time of the cheapest splitting that reaches the bound, or of the finest."""
    cells = np.asarray(problem.truth.x)
    x, y = np.meshgrid(cells, cells, indexing="ij")
    for step in STEPS:
        begin = time.perf_counter()
        start = initial({"x": x, "y": y})["u"]
        physics = problem.constants
        values = fisher_kpp(start, physics["nu"], physics["rho"], np.asarray(problem.truth.t), step=step)
        seconds, error = time.perf_counter() - begin, relative(values, problem.truth.values)
        if error <= bound:
            break
    return step, seconds, error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modes", type=int, default=8)
    modes = parser.parse_args().modes
    problem = ff.problems.get("fisher-kpp-2d")
    begin = time.perf_counter()
    solution = ff.solve(problem, modes={"x": modes, "y": modes})
    solved = time.perf_counter() - begin
    begin = time.perf_counter()
    field = solution.predict(x=problem.truth.x, y=problem.truth.y, t=problem.truth.t)
    predicted = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    scores = ff.metrics.score(field, problem.truth)
    step, seconds, error = classical(problem, scores["relative_l2"])
    print("| | value |\n|---|---|")
    print(f"| features | {2 * modes + 1} x {2 * modes + 1} in space, degree {solution.settings['degree']} in time |")
    print(f"| windows, factorisations | {solution.trace['windows']}, {solution.settings['factorisations']} |")
    print(f"| seconds of the solve | {solved:.1f} |")
    print(f"| seconds of mean and std on {' x '.join(map(str, field['mean'].shape))} points | {predicted:.1f} |")
    print(f"| peak memory | {peak:.2f} GiB |")
    print(f"| relative L2 | {scores['relative_l2']:.1e} |")
    print(f"| 90 % covers | {100 * scores['coverage90']:.0f} % |")
    print(f"| classical solve (step {step:g}, relative L2 {error:.1e}) | {seconds:.3f} s |")
    print(f"| solve / classical | {solved / seconds:.0f} |")


if __name__ == "__main__":
    main()
