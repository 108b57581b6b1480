"""Problems that others have published numbers for: our answer, its interval, and the seconds it took.

python benchmarks/head_to_head.py
"""

from __future__ import annotations

import time
import warnings

import factorfield as ff

CASES = (
    ("reaction-inverse", {"noise": 0.0}),
    ("reaction-inverse", {"noise": 0.01}),
    ("reaction-coefficient", {}),
    ("reaction-coefficient", {"sigma": 0.05}),
    ("reaction-coefficient", {"noise": 0.05}),
    ("reaction-coefficient", {"labels": 200}),
    ("hare-lynx", {}),
)


def main() -> None:
    warnings.simplefilter("ignore", ff.AdviceWarning)
    print("| problem | options | seconds | status | coefficients with 90 % intervals |")
    print("|---|---|---|---|---|")
    for name, options in CASES:
        problem = ff.problems.get(name, **options)
        begin = time.perf_counter()
        solution = ff.solve(problem)
        seconds = time.perf_counter() - begin
        found = ", ".join(
            f"{key} = {p['mean']:.4g} +- {p['std']:.2g} [{p['interval'][0]:.4g}, {p['interval'][1]:.4g}]"
            for key, p in solution.parameters.items()
        )
        shown = ", ".join(f"{key} {value:g}" for key, value in options.items()) or "-"
        print(f"| {name} | {shown} | {seconds:.1f} | {solution.status} | {found} |", flush=True)


if __name__ == "__main__":
    main()
