"""Writes what docs/reproduction.md and benchmarks/results say about the paper.

    python docs/make_reproduction.py                from benchmarks/results/reproduction-runs.csv, a line per run
    python docs/make_reproduction.py RECORDS        takes up new runs first: the --out folder of `factorfield reproduce`

Marked parts of the page are replaced, the rest is left. Runs add up over sweeps (`factorfield.paper.numbers`). The
first sweep left tables but no runs; its numbers, in benchmarks/results/earlier-table1.csv and in the claims that stand
on the page, are kept with a dagger where there are fewer runs.
"""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd

from factorfield.paper import figures, numbers
from factorfield.paper.claims import answered, as_table
from factorfield.paper.numbers import Numbers
from factorfield.paper.plan import FULL, METHODS, TARGETS, Scope
from factorfield.paper.run import Run
from factorfield.paper.store import Store
from factorfield.paper.tables import EQUATIONS, PAPER, TABLES, Records, beside_paper, drawn_again, over_seeds
from factorfield.show.table import Table, shown

ROOT = Path(__file__).parent.parent
PAGE, RESULTS, IMAGES = ROOT / "docs" / "reproduction.md", ROOT / "benchmarks" / "results", ROOT / "docs" / "images"
RUNS = RESULTS / "reproduction-runs.csv"
NAMES = figures.EQUATION_NAMES
EARLIER = "†"
LONG_RUNS = "long: "  # how columns of the runs with more epochs begin
# columns of `beside_paper` and of earlier-table1.csv
SHOWN = {"RMSE x1e-2": "rmse", "coverage 90 %": "coverage", "CRPS x1e-3": "crps", "converged": "converged"}
TIMED = {"advection": "b = 0.4", "fisher-kpp": "nu = 1, rho = 1"}  # where Table 1 takes its seconds from


def main() -> None:
    if len(sys.argv) > 1:
        take_up(Store.open(sys.argv[1]))
    records = Numbers(lines=numbers.read(RUNS))
    text = PAGE.read_text(encoding="utf-8")
    for name, part in parts(records, text).items():
        marked = rf"(<!-- {name}: docs/make_reproduction.py -->\n).*?(<!-- end -->)"
        text, found = re.subn(marked, lambda match, part=part: match[1] + part + "\n" + match[2], text, flags=re.S)
        assert found == 1, name
    PAGE.write_text(text, encoding="utf-8")
    (RESULTS / "reproduction.md").write_text(all_tables(records), encoding="utf-8")
    figures.story(records, IMAGES)


def take_up(store: Store) -> None:
    """Bring the runs of a store into the file of all runs."""
    records = Records([record for run in everything() if (record := store.read(run)) is not None])
    numbers.write(numbers.added(numbers.lines_of(records), numbers.read(RUNS)), RUNS)


def parts(records: Records, page: str) -> dict[str, str]:
    """The marked parts of the page."""
    return {
        "table1": table1(records), "full": full(records), "counts": counts(records), "spread": spread(records),
        "misses": misses(records), "claims": claims(records, page), "beyond": beyond(records),
        "origin": origin(records),
    }  # fmt: skip


def everything() -> list[Run]:
    scope = Scope(source="pdebench")
    return list({run.key: run for target in TARGETS.values() for run in target(scope)}.values())


def markdown(header: list[str], lines: list[list[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    cells = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def table1(records: Records) -> str:
    lines = []
    for equation in EQUATIONS:
        reference = "stored" if equation == "advection" else "exact"
        for line in beside_paper(records.compared(equation), equation, reference).to_dict("records"):
            method = line["method"]
            told = scores(line, PAPER.get((equation, method)))
            lines.append([NAMES[equation], method, str(line["runs"]), *told, seconds(records, equation, method)])
    return markdown(["", "method", "runs", "RMSE", "coverage", "CRPS", "converged", "seconds"], lines)


def full(records: Records) -> str:
    """Fisher-KPP with the full residual; of VI and SGD the first sweep has left these numbers."""
    runs = records.pick(equation="fisher-kpp", model=FULL)
    now = {line["method"]: line for line in beside_paper(runs, "fisher-kpp", "exact").to_dict("records")}
    earlier = pd.read_csv(RESULTS / "earlier-table1.csv").rename(columns={name: key for key, name in SHOWN.items()})
    old = {line["method"]: {**line, "runs": f"{line['runs']}{EARLIER}"} for line in earlier.to_dict("records")}
    known = {**old, **now}
    lines = [[m, str(known[m]["runs"]), *scores(known[m], None)] for m in METHODS if m in known]
    return markdown(["full residual", "runs", "RMSE", "coverage", "CRPS", "converged"], lines)


def scores(line: dict[str, Any], paper: tuple[float, float, float] | None) -> list[str]:
    """RMSE, coverage and CRPS beside the paper's, and how many runs converged."""
    *values, converged = (line[name] for name in SHOWN)
    known = paper or (math.nan,) * 3
    return [*(beside(float(ours), theirs) for ours, theirs in zip(values, known, strict=True)), str(converged)]


def beside(ours: float, papers: float) -> str:
    return digits(ours) if math.isnan(papers) else f"{digits(ours)} [{digits(papers)}]"


def digits(value: float) -> str:
    """Three significant digits, zeros included."""
    return "-" if math.isnan(value) else f"{value:#.3g}".rstrip(".") if value else "0"


def seconds(records: Records, equation: str, method: str) -> str:
    timed = records.pick(equation=equation, kind="timing", method=method)
    here = timed[timed["cell"] == TIMED[equation]]
    return shown(float(here["warm"].iloc[0])) if len(here) else "-"


def counts(records: Records) -> str:
    """Runs of each method in each cell, seed 0; Fisher-KPP as the fewest and most of a setting."""
    lines = []
    for equation in EQUATIONS:
        runs = records.compared(equation)
        sizes = runs.groupby(["cell", "method"], observed=False).size().unstack().reindex(columns=METHODS)
        sizes = sizes[sizes.index.isin(runs["cell"].unique())].fillna(0).astype(int)
        if equation == "advection":
            lines += [
                [f"advection, {cell}", *map(str, row)] for cell, row in zip(sizes.index, sizes.to_numpy(), strict=True)
            ]
        else:
            ends = [(str(column.min()), str(column.max())) for _, column in sizes.items()]
            lines.append(["Fisher-KPP, each setting", *("-".join(dict.fromkeys(end)) for end in ends)])
    return markdown(["runs", *METHODS], lines)


def spread(records: Records) -> str:
    lines = []
    for equation in EQUATIONS:
        runs = drawn_again(records.pick(equation=equation, seed=None))
        for line in over_seeds(runs.assign(cell="all"), ["method", "cell"]).to_dict("records"):
            mine = runs[runs["method"] == line["method"]]
            where, rows = mine["cell"], mine["row"].nunique()
            cells = ", ".join(map(str, where.cat.remove_unused_categories().cat.categories))
            numbers = [
                f"{shown(float(line[name]))} ± {float(line[f'sd of {name.split()[0]}']):.2g}"
                for name in ("RMSE x1e-2", "coverage 90 %", "CRPS x1e-3")
            ]
            place = f"{NAMES[equation]}, {cells if equation == 'advection' else f'{where.nunique()} settings'}"
            place += f", {rows} rows" if rows < 5 else ""
            lines.append([place, line["method"], str(line["seeds"]), str(line["runs"]), *numbers])
    return markdown(["", "method", "seeds", "runs", "RMSE", "coverage", "CRPS"], lines)


def misses(records: Records) -> str:
    """Two tables: with the paper's 300 epochs, and with more."""
    table = next((t for t in TABLES["spread"](records) if "single runs" in t.title), None)
    if table is None:
        return "No runs yet."
    frame = table.frame.set_index("cell").astype(float)
    many = frame.filter(like=LONG_RUNS).dropna()
    parts = [
        frame.drop(columns=frame.filter(like=LONG_RUNS).columns),
        many.rename(columns=lambda c: c[len(LONG_RUNS) :]),
    ]
    return "\n\n".join(
        markdown(["", *part.columns], [[str(name), *map(plain, line)] for name, *line in part.itertuples()])
        for part in parts
        if len(part)
    )


def plain(value: float) -> str:
    return f"{value:.0f}" if value == round(value) else shown(value)


def beyond(records: Records) -> str:
    """Chain against the exact solution, beside the paper's message passing."""
    lines = []
    for equation, papers_runs in zip(EQUATIONS, (50, 80), strict=True):
        runs = records.pick(equation=equation, method="chain")
        if len(runs):
            numbers = [runs[f"exact_{name}"].mean() for name in ("rmse", "coverage90", "crps")]
            later = runs["late_rmse"].mean() if equation == "fisher-kpp" else math.nan
            lines.append(scored(f"chain, {NAMES[equation]}", len(runs), *numbers, later))
        rmse, coverage, crps = PAPER[equation, "mean-field"]
        numbers = [rmse / 100, coverage / 100, crps / 1000]
        lines.append(scored(f"the paper, {NAMES[equation]}", papers_runs, *numbers, math.nan))
    return markdown(["", "runs", "RMSE", "90 % intervals cover", "CRPS", "RMSE for t >= 0.02"], lines)


def scored(label: str, runs: int, rmse: float, coverage: float, crps: float, later: float) -> list[str]:
    return [label, str(runs), shown(rmse), f"{100 * coverage:.1f} %", shown(crps), shown(later)]


def claims(records: Records, page: str) -> str:
    """The answer that rests on more runs: of these records, or the one that stands on the page."""
    block = re.search(r"<!-- claims: .*?-->\n(.*?)\n<!-- end -->", page, re.S)
    assert block is not None
    before = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in block[1].splitlines()[2:]]
    standing = {cells[0]: cells for cells in before}
    lines = []
    for claim in answered(records):
        old = standing.get(claim.text.replace("|", r"\|"))
        is_better = claim.answer != "not run" and (old is None or claim.runs >= int(old[3].rstrip(EARLIER)))
        own = [claim.text, claim.answer, claim.number, str(claim.runs)]
        lines.append(own if old is None or is_better else [cell.replace(r"\|", "|") for cell in old])
    return markdown(["claim", "answer", "number", "runs"], lines)


def origin(records: Records) -> str:
    frame = records.frame
    named = frame["commit"].dropna()
    hours = frame[["processor", "cold", "warm"]].sum(axis=1).sum() / 3600.0
    return (
        f"{len(frame)} of {len(everything())} planned runs are done, a line each of "
        f"`benchmarks/results/reproduction-runs.csv`, in {hours:.1f} core-hours; {len(named)} of them at commits "
        f"{', '.join(sorted(set(named)))}, the others before. {EARLIER} marks numbers of the first sweep (816 runs), "
        "of which single runs were not kept (commits 62e2bf8, 43a2df3, a9a96fb, 590eb80)."
    )


def all_tables(records: Records) -> str:
    def block(table: Table) -> str:
        return f"```text\n{table.text()}\n```\n"

    head = "# The paper's experiments, from records\n\n    python docs/make_reproduction.py RECORDS\n\n"
    made = [block(table) for make in TABLES.values() for table in make(records) if len(table.frame)]
    gate = records.pick(method="hmc", seed=None)[["label", "row", "seed", "status", "rhat", "ess"]]
    if len(gate):
        made.append(block(Table("gate: HMC, run by run", gate.rename(columns={"label": "cell"}))))
    here = [claim for claim in answered(records) if claim.answer != "not run"]
    return "\n".join([head + origin(records) + "\n", *made, block(as_table(here))])


if __name__ == "__main__":
    main()
