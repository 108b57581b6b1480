"""Every problem of the gallery by the default method: error from exact data, coverage from noisy data, seconds, size.

python benchmarks/gallery.py [NAME ...] [--draws 5]      # a markdown table; one line per problem as it finishes
python benchmarks/gallery.py errors [NAME ...]     # errors from exact data beside the std that estimates them
python benchmarks/gallery.py intervals [NAME ...] [--draws 100]   # how often 90 % intervals hold the coefficient
python benchmarks/gallery.py methods [NAME ...] [--out FILE] [--limit 120]   # every problem by every method

`methods` solves each pair in a process of its own within a time limit, with small budgets for methods that sample or
descend (`BUDGETS`). Results go to FILE as JSON lines as they come; a second run skips what is there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from rows import header, line

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
DRAWN: dict[str, Any] = {"reaction-inverse": {"modes": {"x": 20}}}  # the automatic 30 take three times as long
METHODS = ("chain", "joint", "laplace", "mean-field", "hmc", "vi", "sgd")
# of methods that sample or descend: enough to see what they do, not to converge; rate and iterations of Adam
BUDGETS: dict[str, dict[str, Any]] = {
    "mean-field": {"epochs": 100},
    "hmc": {"chains": 2, "iterations": 200, "warmup": 100},
    "vi": {"rate": 3e-3, "iterations": 5000},
    "sgd": {"rate": 3e-3, "iterations": 5000},
}


def measured(problem: ff.Problem) -> tuple[dict[str, float], float, Any]:
    begin = time.perf_counter()
    solution = ff.solve(problem)
    seconds = time.perf_counter() - begin
    axes = {name: problem.truth[name] for name in problem.domain.names}
    return ff.metrics.score(solution.predict(**axes), problem.truth), seconds, solution


def covered(task: tuple[str, int]) -> float:
    """Share of the truth inside 90 % intervals from one draw of noisy data."""
    warnings.simplefilter("ignore")
    name, seed = task
    return measured(ff.problems.get(name, noise=NOISE.get(name, 0.02), seed=seed))[0]["coverage90"]


def table(names: list[str], draws: int, jobs: int) -> None:
    header(
        "problem", "relative L2, exact data", f"90 % covers, mean of {draws} noisy draws", "least and most", "seconds",
        "weights per window", "windows",
    )  # fmt: skip
    for name in names:
        exact, seconds, solution = measured(ff.problems.get(name))
        with ProcessPoolExecutor(jobs) as pool:
            noisy = 100.0 * np.array(list(pool.map(covered, [(name, seed) for seed in range(draws)])))
        weights, windows = solution.posterior.representation.size, solution.trace.get("windows", "-")
        covers = f"{noisy.mean():.0f} %", f"{noisy.min():.0f}-{noisy.max():.0f} %"
        line(name, f"{exact['relative_l2']:.1e}", *covers, f"{seconds:.1f}", weights, windows)


def errors(names: list[str]) -> None:
    """Of forward problems: is the std an estimate of the error? 1e-3 to 3 where that exceeds 1e-10 of the field."""
    header("problem", "largest error", "estimate", "error / std, 95 % point", "status")
    for problem in (ff.problems.get(name) for name in names or FORWARD):
        solution, truth = ff.solve(problem), problem.truth
        field = solution.predict(**{name: truth[name] for name in problem.domain.names})
        error = np.abs(field["mean"] - truth)
        relative = float(error.max() / np.abs(truth).max())
        ratio = float((error / field["std"]).quantile(0.95)) if relative > 1e-10 else np.nan
        told = f"{solution.trace.get('numerical_error', np.nan):.1e}"
        line(problem.name, f"{relative:.1e}", told, "-" if np.isnan(ratio) else f"{ratio:.2g}", solution.status)


def found_by(task: tuple[str, int]) -> Any:
    """Coefficients of one draw."""
    warnings.simplefilter("ignore")
    name, seed = task
    return ff.solve(ff.problems.get(name, seed=seed), **DRAWN.get(name, {})).parameters


def intervals(names: list[str], draws: int, jobs: int) -> None:
    header("problem", "coefficient", "truth", "mean of means", "mean std", "draws", "90 % intervals that hold it")
    for name, truths in ((name, UNKNOWN[name]) for name in names or UNKNOWN):
        with ProcessPoolExecutor(jobs) as pool:
            found = list(pool.map(found_by, [(name, seed) for seed in range(draws)]))
        for coefficient, truth in truths.items():
            results = [one[coefficient] for one in found]
            inside = np.mean([r["interval"][0] <= truth <= r["interval"][1] for r in results])
            means, stds = [r["mean"] for r in results], [r["std"] for r in results]
            averages = f"{np.mean(means):.4f}", f"{np.mean(stds):.4f}"
            line(name, coefficient, f"{truth:g}", *averages, draws, f"{100 * inside:.0f} %")


def one(name: str, method: str) -> dict[str, Any]:
    """One problem by one method, here and now: error and seconds, or why it does not run."""
    options = dict(BUDGETS.get(method, {}))
    problem = ff.problems.get(name)
    try:
        if method in ("vi", "sgd"):
            from factorfield.methods.baselines.adam import Schedule

            options = {"schedule": Schedule(**options)}
        begin = time.perf_counter()
        with warnings.catch_warnings(record=True) as advice:
            warnings.simplefilter("always", ff.AdviceWarning)
            solution = ff.solve(problem, method=method, **options)
        seconds = time.perf_counter() - begin
        found: dict[str, Any] = {"seconds": seconds, "status": str(solution.status)}
        found["advice"] = [str(one.message) for one in advice if issubclass(one.category, ff.AdviceWarning)]
        found["weights"] = solution.posterior.representation.size
        found["parameters"] = {key: [value["mean"], value["std"]] for key, value in solution.parameters.items()}
        if problem.truth is not None:
            axes = {axis: problem.truth[axis] for axis in problem.domain.names}
            found |= ff.metrics.score(solution.predict(**axes), problem.truth)
        return found
    except ff.ProblemError as error:
        return {"refused": str(error).splitlines()[0]}
    except Exception as error:  # anything else that reaches a user is a bug, and the table says so
        return {"bug": f"{type(error).__name__}: {error}".splitlines()[0]}


def methods(names: list[str], out: Path, limit: float, show: bool) -> None:
    done: dict[tuple[str, str], dict[str, Any]] = {}
    if out.exists():
        for text in out.read_text().splitlines():
            row = json.loads(text)
            done[row["problem"], row["method"]] = row
    for method in METHODS:  # the fast ones first
        for name in names:
            if show or (name, method) in done:
                continue
            command = [sys.executable, __file__, "one", name, method]
            try:
                run = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=os.environ)
                answer = json.loads(run.stdout.splitlines()[-1]) if run.returncode == 0 else {"bug": run.stderr[-300:]}
            except subprocess.TimeoutExpired:
                answer = {"limit": limit}
            done[name, method] = {"problem": name, "method": method, **answer}
            with out.open("a") as file:
                file.write(json.dumps(done[name, method]) + "\n")
            print(name, method, cell(done[name, method]), file=sys.stderr, flush=True)
    header("problem", *METHODS)
    for name in names:
        line(name, *(cell(done.get((name, method))) for method in METHODS))


def cell(row: dict[str, Any] | None) -> str:
    """Relative L2 and seconds; * stopped by its budget, ! 90 % intervals hold less than half of the truth."""
    if row is None:
        return "not run"
    if "limit" in row:
        return f"over {row['limit']:g} s"
    if "bug" in row:
        return f"BUG {row['bug']}"
    if "refused" in row:
        short = {"time axis": "needs time axis", "finite at the prior mean": "no value at the prior mean"}
        return next((text for part, text in short.items() if part in row["refused"]), row["refused"])
    text = f"{row['relative_l2']:.0e}" if "relative_l2" in row else "no truth"
    note = {"converged": "", "max-iterations": "*"}.get(row["status"], f" {row['status']}")
    note += "!" if row.get("coverage90", 1.0) < 0.5 else ""
    return f"{text}{note}, {row['seconds']:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--draws", type=int, help="of noise: 5 for the table, 100 for intervals")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the draws")
    parser.add_argument("--out", type=Path, default=Path("gallery-methods.jsonl"))
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one problem by one method")
    parser.add_argument("--show", action="store_true", help="only the table of what FILE has")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.names[:1] == ["errors"]:
        errors(arguments.names[1:])
    elif arguments.names[:1] == ["intervals"]:
        intervals(arguments.names[1:], arguments.draws or 100, arguments.jobs)
    elif arguments.names[:1] == ["methods"]:
        methods(arguments.names[1:] or ff.problems.names(), arguments.out, arguments.limit, arguments.show)
    elif arguments.names[:1] == ["one"]:
        print(json.dumps(one(*arguments.names[1:])))
    else:
        table(arguments.names or list(FORWARD), arguments.draws or 5, arguments.jobs)


if __name__ == "__main__":
    main()
