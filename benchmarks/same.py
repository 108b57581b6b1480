"""Are the results still those of another version? Means, standard deviations and parameters of many solves, compared.

    PYTHONPATH=/tmp/before/src python benchmarks/same.py record /tmp/before-results [PREFIX ...]
    python benchmarks/same.py record /tmp/after-results [PREFIX ...]      resumes: finished cases are kept
    python benchmarks/same.py compare /tmp/before-results /tmp/after-results

Cases: every problem of the gallery, noisy and joint ones, and with FACTORFIELD_PDEBENCH=FOLDER the paper's rows by
chain, joint and mean-field. A prefix such as `gallery-` or `jpaper-adv-0.1` picks some. A case is the same if at every
point its mean has moved by at most 1e-3 posterior sd or 1e-9 of the field's size, and its std by at most 1e-3 of it;
for parameters likewise.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy starts its threads: sums in one order

import numpy as np  # noqa: E402
import pandas as pd  # noqa: E402
from rows import advection, fisher  # noqa: E402

import factorfield as ff  # noqa: E402

IN_SD, OF_SIZE, OF_STD = 1e-3, 1e-9, 1e-3
LISTED = 15  # worst cases shown
NOISY = ("heat", "advection", "fisher-kpp", "burgers", "wave", "poisson", "poisson-2d", "heat-2d", "lotka-volterra",
         "klein-gordon")  # fmt: skip
JOINT = ("heat", "advection", "fisher-kpp", "wave", "heat-2d", "lotka-volterra", "fisher-kpp-rates")
DIFFUSIONS, REACTIONS = (0.5, 1.0, 2.0, 5.0), (1.0, 2.0, 5.0, 10.0)
Case = tuple[str, Callable[[], object], str | None]  # name, what is solved, method


def generated() -> Iterator[Case]:
    for name in ff.problems.names():
        yield f"gallery-{name}", lambda name=name: ff.problems.get(name), None
    for name in NOISY:
        noise = 2.0 if name == "lotka-volterra" else 0.02
        yield f"noisy-{name}", lambda name=name, noise=noise: ff.problems.get(name, noise=noise, seed=1), None
    for name in JOINT:
        yield f"joint-{name}", lambda name=name: ff.problems.get(name), "joint"


def of_the_paper() -> Iterator[Case]:
    for b in (0.1, 0.4, 1, 2, 7):
        for row in range(10):
            make = lambda b=b, row=row: advection(b, row)  # noqa: E731
            paper = lambda make=make: ff.paper_model(make())  # noqa: E731
            yield f"chain-adv-{b}-{row}", make, None
            if b < 7:
                yield f"jpaper-adv-{b}-{row}", paper, "joint"
            if b < 7 and row < 2:
                yield f"mpaper-adv-{b}-{row}", paper, "mean-field"
    for nu in DIFFUSIONS:
        for rho in REACTIONS:
            for row in range(5):
                yield f"chain-fis-{nu}-{rho}-{row}", lambda nu=nu, rho=rho, row=row: fisher(nu, rho, row), None
            yield f"jpaper-fis-{nu}-{rho}", lambda nu=nu, rho=rho: ff.paper_model(fisher(nu, rho, 0)), "joint"
        yield f"mpaper-fis-{nu}", lambda nu=nu: ff.paper_model(fisher(nu, 5.0, 0)), "mean-field"


def record(folder: Path, prefixes: tuple[str, ...]) -> None:
    """One .npz per case: mean and std on at most about 40 points per axis, the rest as JSON in `info`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make, method in [*generated(), *(of_the_paper() if "FACTORFIELD_PDEBENCH" in os.environ else ())]:
        if (folder / f"{name}.npz").exists() or not name.startswith(prefixes or ""):
            continue
        asked = make()
        begin = time.perf_counter()
        try:
            solution = ff.solve(asked) if method is None else ff.solve(asked, method=method)
        except Exception as problem:  # the others go on; `compare` says what is missing
            print(name, type(problem).__name__, str(problem)[:200], flush=True)
            continue
        seconds = time.perf_counter() - begin
        field = solution.predict(**grid(getattr(asked, "problem", asked)))
        parameters = {key: [np.ravel(value[part]).tolist() for part in ("mean", "std")]
                      for key, value in solution.parameters.items()}  # fmt: skip
        info = {"seconds": seconds, "status": str(solution.status), "warnings": list(solution.warnings or ()),
                "parameters": parameters}  # fmt: skip
        np.savez(folder / f"{name}.npz", mean=field["mean"].values, std=field["std"].values, info=json.dumps(info))
        print(name, f"{seconds:.2f} s", solution.status, flush=True)


def grid(problem: ff.Problem) -> dict[str, np.ndarray]:
    names = problem.domain.names
    if problem.truth is None:
        return {name: np.linspace(problem.domain[name].lower, problem.domain[name].upper, 33) for name in names}
    axes = {name: np.asarray(problem.truth[name], float) for name in names}
    return {name: x[:: max(1, len(x) // 40)] for name, x in axes.items()}


def moved(name: str, before: Path, after: Path) -> dict[str, object]:
    """How far one case has moved; `worst` is in units of what is allowed."""
    with np.load(before / f"{name}.npz") as old, np.load(after / f"{name}.npz") as new:
        was, now = json.loads(str(old["info"])), json.loads(str(new["info"]))
        pairs = [(old["mean"], old["std"], new["mean"], new["std"])]
    if was["parameters"].keys() != now["parameters"].keys() or pairs[0][0].shape != pairs[0][2].shape:
        return {"case": name, "worst": np.inf, "notes": "other parameters or another shape"}
    for key, (mean, std) in was["parameters"].items():
        pairs.append(tuple(np.array(part, float) for part in (mean, std, *now["parameters"][key])))
    rows = np.array([difference(*pair) for pair in pairs])  # the field's, then one of each parameter
    notes = [] if was["status"] == now["status"] else [f"{was['status']} -> {now['status']}"]
    if was["warnings"] != now["warnings"]:
        notes.append("other warnings")
    return {
        "case": name, "mean [sd]": rows[0, 0], "mean [size]": rows[0, 1], "std [std]": rows[0, 2],
        "worst": rows[:, 3].max(), "parameters [sd]": rows[1:, 0].max(initial=0.0),
        "time": now["seconds"] / was["seconds"], "notes": ", ".join(notes),
    }  # fmt: skip


def difference(mean: np.ndarray, std: np.ndarray, new_mean: np.ndarray, new_std: np.ndarray) -> tuple[float, ...]:
    """Largest change of the mean in sd and in sizes of the field, of the std in itself, of both in what is allowed."""
    size = float(np.nanmax(np.abs(mean), initial=0.0)) or 1.0
    step, spread = np.abs(new_mean - mean), np.abs(new_std - std)
    if not np.array_equal(np.isnan(mean + std), np.isnan(new_mean + new_std)):
        return (np.inf,) * 4
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = [step / std, step / size, spread / std, step / np.maximum(IN_SD * std, OF_SIZE * size)]
    in_sd, of_size, of_std, allowed = (float(np.nanmax(part, initial=0.0)) for part in parts)
    return in_sd, of_size, of_std, max(allowed, of_std / OF_STD)


def compare(before: Path, after: Path) -> int:
    names, there = ({path.stem for path in folder.glob("*.npz")} for folder in (before, after))
    table = pd.DataFrame([moved(name, before, after) for name in sorted(names & there)])
    if table.empty:
        print("no case in both folders")
        return 1
    table = table.sort_values("worst", ascending=False)
    changed = table[table["worst"] > 1.0]
    print(table.head(max(LISTED, len(changed))).to_string(index=False, float_format="{:.2g}".format))
    print(f"\n{len(table) - len(changed)} of {len(table)} cases are the same (worst <= 1: moved by what is allowed); "
          f"times after : before, median {table['time'].median():.2f}")  # fmt: skip
    for title, missing in (("not made after", names - there), ("not there before", there - names)):
        if missing:
            print(f"{title} ({len(missing)}): {', '.join(sorted(missing)[:LISTED])}{' ...' * (len(missing) > LISTED)}")
    noted = table.loc[table["notes"] != "", ["case", "notes"]]
    print(*(f"{case}: {note}" for case, note in noted.itertuples(index=False)), sep="\n")
    return int(len(changed) > 0)


def main() -> None:
    match sys.argv[1:]:
        case ["record", folder, *prefixes]:
            warnings.simplefilter("ignore")
            record(Path(folder), tuple(prefixes))
        case ["compare", before, after]:
            sys.exit(compare(Path(before), Path(after)))
        case _:
            print(__doc__)


if __name__ == "__main__":
    main()
