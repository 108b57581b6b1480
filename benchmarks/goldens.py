"""Answers of the released method to the problems of this repository, kept in a small file for later versions.

python benchmarks/goldens.py [NAME ...] [--records DIR]        # solves what is not recorded, writes goldens.json
python benchmarks/goldens.py --list                            # the names
python benchmarks/goldens.py --compare [--method forward] [--only NAME ...] [--records DIR]    # a markdown table

Problems: the gallery with its defaults, draw 0 of the registry's cells, and the problems that examples and pages of
docs/ build. Every problem is solved in a process of its own, within `--limit` seconds of processor time (400). Records
are kept outside the repository, one file per problem and method, and a second run resumes: add `--again`, or another
folder, when the code has changed.

A golden is: mean and std of every field and unknown function at eight fixed places, log evidence, coefficients, status,
processor seconds. Deviations are the largest over places and fields: of means in units of the golden's std and of
the field's size, of stds as the smallest and the largest ratio.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import contextlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy starts its threads: processor time of one

import numpy as np  # noqa: E402
from rows import header, line  # noqa: E402

import factorfield as ff  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
GOLDENS = Path(__file__).with_name("goldens.json")
PLACES, CANDIDATES, DIGITS = 8, 64, 8
PAGES = ("quickstart", "tasks", "your-own-pde", "after-the-solution", "regions", "how-it-works", "limits", "index")
IN_SD, OF_SIZE = 0.1, 1e-5  # how far a mean may move: of the golden's std, or of the field's size (the tolerance)
SOLVING = {"solve", "load", "rank", "default_model", "plot"}  # public functions that want a solution or make one
Golden = dict[str, Any]


# -- the problems


def names() -> list[str]:
    from factorfield.calibration.registry import ROWS

    written = [*(f"example/{path.stem}" for path in examples()), *(f"docs/{page}" for page in PAGES)]
    built = [name for source in written for name in stated(source)]
    return [*(f"gallery/{name}" for name in ff.problems.names()), *(f"registry/{row.name}" for row in ROWS), *built]


def problem_of(name: str) -> ff.Problem:
    kind, _, rest = name.partition("/")
    if kind == "gallery":
        return ff.problems.get(rest)
    if kind == "registry":
        from factorfield.calibration.registry import chosen

        return chosen([rest])[0].pose(0).problem
    return stated(name.partition(":")[0])[name]


def examples() -> list[Path]:
    return sorted((ROOT / "examples").glob("*.py"))


def stated(source: str) -> dict[str, ff.Problem]:
    """The problems that a script of examples/ or a page of docs/ builds, by the names of their variables.

    Statements that need a solution are left out, and so are those that need their results.
    """
    kind, _, stem = source.partition("/")
    path = ROOT / ("examples" if kind == "example" else "docs") / f"{stem}.{'py' if kind == 'example' else 'md'}"
    text = path.read_text(encoding="utf-8")
    if kind == "docs":
        text = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    known: dict[str, Any] = {"__name__": stem}
    problems: dict[str, ff.Problem] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for statement in ast.parse(text).body:
            if needs_solution(statement) or not names_read(statement) <= {*known, *dir(builtins)}:
                continue
            exec(compile(ast.Module([statement], []), path.name, "exec"), known)
            for name, problem in problems_in(statement, known):
                number = 1 + sum(re.sub(r"#\d+$", "", old) == f"{source}:{name}" for old in problems)
                problems[f"{source}:{name}" + (f"#{number}" if number > 1 else "")] = problem
    return problems


def problems_in(statement: ast.stmt, known: Mapping[str, Any]) -> Iterator[tuple[str, ff.Problem]]:
    """The problems that an assignment has just made, alone or in a dictionary."""
    if not isinstance(statement, ast.Assign):
        return
    for target in statement.targets:
        value = known.get(target.id) if isinstance(target, ast.Name) else None
        if isinstance(value, ff.Problem):
            yield target.id, value
        elif isinstance(value, dict):
            yield from ((re.sub(r"\W", "_", str(key)), v) for key, v in value.items() if isinstance(v, ff.Problem))


def names_read(statement: ast.stmt) -> set[str]:
    """Names that a statement takes from outside."""
    names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
    inside = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    inside |= {node.arg for node in ast.walk(statement) if isinstance(node, ast.arg)}
    return {node.id for node in names if isinstance(node.ctx, ast.Load)} - inside


def needs_solution(statement: ast.stmt) -> bool:
    attributes = (node for node in ast.walk(statement) if isinstance(node, ast.Attribute))
    return any(isinstance(a.value, ast.Name) and a.value.id == "ff" and a.attr in SOLVING for a in attributes)


# -- one golden


def places(problem: ff.Problem) -> dict[str, np.ndarray]:
    """Points spread over the domain by multiples of irrational numbers; more where a region leaves some out."""
    count = PLACES if problem.region is None else CANDIDATES
    shift = np.sqrt([2.0, 3.0, 5.0, 7.0])
    axes = {}
    for name, step in zip(problem.domain.names, shift, strict=False):
        axis = problem.domain[name]
        share = np.modf(step * np.arange(1, count + 1))[0]
        axes[name] = axis.lower + (axis.upper - axis.lower) * share
    return axes


def golden(name: str, method: str | None) -> Golden:
    """Solves one problem; called in a process of its own. What is imported at the first use is not timed."""
    warnings.simplefilter("ignore")
    problem = problem_of(name)
    options = {} if method is None else {"method": method}
    ff.solve(ff.Problem("u_t = -1.3*u", {"t": ff.Interval(0, 0.7)}, {}, [ff.Initial("u = 1.1")]), **options)
    begin = time.process_time()
    solution = ff.solve(problem, **options)
    seconds = time.process_time() - begin
    at = places(problem)
    fields: dict[str, dict[str, list[float]]] = {}
    for field in (*problem.fields, *problem.functions):
        answer = solution.predict(of=field, points=True, **at)
        mean, std = (np.asarray(answer[key], float).ravel() for key in ("mean", "std"))
        inside = np.flatnonzero(np.isfinite(mean))[:PLACES]
        fields[field] = {"mean": short(mean[inside]), "std": short(std[inside])}
    evidence = solution.log_evidence
    return {
        "problem": repr(problem), "fields": fields, "log_evidence": None if evidence is None else short([evidence])[0],
        "coefficients": {key: short([p["mean"], p["std"]]) for key, p in solution.parameters.items()},
        "status": str(solution.status), "seconds": round(seconds, 3),
    }  # fmt: skip


def short(values: Any) -> list[float]:
    return [float(f"{float(value):.{DIGITS}g}") for value in values]


def recorded(name: str, method: str | None, folder: Path, limit: int, again: bool) -> Golden:
    """From the records, or solved anew in a process with a limit of processor time."""
    path = folder / (re.sub(r"[^\w.-]", "_", f"{method or 'default'}-{name}") + ".json")
    if path.exists() and not again:
        return json.loads(path.read_text(encoding="utf-8"))
    command = [sys.executable, __file__, "--one", name, *(["--method", method] if method else [])]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5)),
    )  # fmt: skip
    if done.returncode == 0:
        result = json.loads(done.stdout)
    elif done.returncode < 0:  # by a signal: the limit
        result = {"status": "not finished", "seconds": limit}
    else:
        result = {"status": "failed", "error": done.stderr.strip().splitlines()[-1][:300]}
    written(path, json.dumps(result))
    return result


def written(path: Path, text: str) -> None:
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


# -- comparison


def largest(old: Golden, new: Golden) -> tuple[float, float, float, float]:
    """Of all fields and places: mean in golden stds, mean in field sizes, smallest and largest ratio of stds."""
    sds, sizes, ratios = [0.0], [0.0], []
    for field, before in old["fields"].items():
        after = new["fields"].get(field)
        if after is None:
            return (np.nan,) * 4
        mean, std = np.array(before["mean"]), np.array(before["std"])
        moved = np.abs(np.array(after["mean"]) - mean)
        sds.append(float(np.max(moved / np.maximum(std, 1e-300))))
        sizes.append(float(np.max(moved) / max(float(np.max(np.abs(mean))), 1e-300)))
        ratios.extend(np.array(after["std"]) / np.maximum(std, 1e-300))
    return max(sds), max(sizes), float(np.min(ratios)), float(np.max(ratios))


def compared(name: str, old: Golden, new: Golden) -> tuple[bool, float] | None:
    """Prints a row. Are the means within `IN_SD` or `OF_SIZE`, and the ratio of times; None without both answers."""
    if "fields" not in old or "fields" not in new:
        line(name, old["status"], new["status"], *["-"] * 6, new.get("error", ""))
        return None
    sd, size, low, high = largest(old, new)
    after = new["coefficients"]
    shifts = [
        f"{key} {abs(after[key][0] - mean) / std:.2g}, x{after[key][1] / std:.3g}"
        for key, (mean, std) in old["coefficients"].items() if key in after
    ]  # fmt: skip
    evidences = old["log_evidence"], new["log_evidence"]
    evidence = "-" if None in evidences else f"{evidences[1] - evidences[0]:+.3g}"
    ratio = new["seconds"] / max(old["seconds"], 1e-3)
    line(
        name, old["status"], new["status"], f"{sd:.2g}", f"{size:.1e}", f"{low:.3g} to {high:.3g}",
        "; ".join(shifts) or "-", evidence, f"{ratio:.3g}",
        "" if old["problem"] == new["problem"] else "the problem changed",
    )  # fmt: skip
    return sd <= IN_SD or size <= OF_SIZE, ratio


def compare(stored: dict[str, Golden], solve: Callable[[str], Golden]) -> None:
    header(
        "problem", "golden", "now", "mean moved, in sd", "of the field's size", "std ratio",
        "coefficients moved in sd, std ratio", "log evidence", "time ratio", "note",
    )  # fmt: skip
    rows = [compared(name, old, solve(name)) for name, old in stored.items()]
    answered = [row for row in rows if row is not None]
    agree = sum(same for same, _ in answered)
    median = float(np.median([ratio for _, ratio in answered])) if answered else np.nan
    print(
        f"\n{len(rows)} problems, {len(answered)} with answers now and then; means of {agree} within {IN_SD} sd or "
        f"{OF_SIZE} of the field's size; median time ratio {median:.3g}"
    )


def record(chosen: list[str], stored: dict[str, Golden], solve: Callable[[str], Golden]) -> None:
    for number, name in enumerate(chosen):
        stored[name] = solve(name)
        shown = f"{stored[name]['status']}, {stored[name].get('seconds')} s"
        print(f"{number + 1}/{len(chosen)} {name}: {shown}", flush=True)
    lines = ",\n".join(f'"{name}": {json.dumps(stored[name])}' for name in names() if name in stored)
    head = {"command": "python benchmarks/goldens.py", "version": ff.__version__, "method": "default"}
    written(GOLDENS, f'{json.dumps(head)[:-1]}, "problems": {{\n{lines}\n}}}}\n')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="names, or their beginnings such as gallery/")
    parser.add_argument("--only", nargs="+", default=[], help="the same as names")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--method", help="solve by this method; only to compare")
    parser.add_argument("--records", type=Path, default=Path(tempfile.gettempdir()) / "factorfield-goldens")
    parser.add_argument("--limit", type=int, default=400)
    parser.add_argument("--again", action="store_true")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(golden(arguments.one, arguments.method)))
        return
    if arguments.method and not arguments.compare:
        parser.error("expected --compare beside --method, since goldens are answers of the default; try adding it")
    begins = (*arguments.names, *arguments.only)
    stored = json.loads(GOLDENS.read_text(encoding="utf-8"))["problems"] if GOLDENS.exists() else {}
    every = list(stored) if arguments.compare else names()
    chosen = [name for name in every if not begins or name.startswith(begins)]
    if not chosen:
        parser.error(f"expected names of problems, received {', '.join(begins)}; try --list")
    arguments.records.mkdir(parents=True, exist_ok=True)

    def solve(name: str) -> Golden:
        return recorded(name, arguments.method, arguments.records, arguments.limit, arguments.again)

    if arguments.list:
        print("\n".join(chosen))
    elif arguments.compare:
        compare({name: stored[name] for name in chosen}, solve)
    else:
        record(chosen, stored, solve)


if __name__ == "__main__":
    main()
