"""Writes what docs/reproduction.md and benchmarks/results say about the paper, from the records of a sweep.

    python docs/make_reproduction.py RECORDS        the --out folder of `factorfield reproduce --data ...`

Marked parts of the page are replaced, the rest is left. Runs add up over sweeps: those of benchmarks/results/
reproduction-runs.csv that have no record here are kept with the numbers they have there. An earlier sweep (816 runs)
left tables but no runs; its numbers, in benchmarks/results/earlier-table1.csv, stand where there are fewer runs, with a
dagger.
"""

from __future__ import annotations

import ast
import math
import re
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pandas as pd

from factorfield.paper import figures
from factorfield.paper.claims import answered, as_table
from factorfield.paper.plan import METHODS, TARGETS, Scope
from factorfield.paper.run import Record, Run
from factorfield.paper.store import Store
from factorfield.paper.tables import EQUATIONS, PAPER, TABLES, Records, drawn_again, over_seeds
from factorfield.show.table import Table, shown

ROOT = Path(__file__).parent.parent
PAGE, RESULTS, IMAGES = ROOT / "docs" / "reproduction.md", ROOT / "benchmarks" / "results", ROOT / "docs" / "images"
NAMES = figures.EQUATION_NAMES
EARLIER = "†"
LONG_RUNS = "long: "  # how columns of the runs with more epochs begin
TIMED = {"advection": "b = 0.4", "fisher-kpp": "nu = 1, rho = 1"}  # where Table 1 takes its seconds from
PER_RUN = [
    "equation", "cell", "row", "method", "seed", "model", "options", "initial", "kind", "status", "rmse", "coverage90",
    "crps", "exact_rmse", "exact_coverage90", "exact_crps", "late_rmse", "epochs", "rhat", "ess", "fit", "processor",
    "cold", "warm", "predict",
]  # fmt: skip
BY_NUMBERS = ("table1", "spread", "timing")  # tables that need nothing of a run but these
SPEC = ["equation", "cell", "row", "method", "seed", "model", "options", "initial", "kind"]  # which run it is


@dataclass(frozen=True)
class Accumulated(Records):
    """Records, and runs of earlier sweeps of which numbers are left."""

    kept: pd.DataFrame = field(default_factory=pd.DataFrame)

    @cached_property
    def frame(self) -> pd.DataFrame:
        new = Records(self.all).frame
        known = set(new[SPEC].astype(str).itertuples(index=False, name=None))
        is_old = [line not in known for line in self.kept[SPEC].astype(str).itertuples(index=False, name=None)]
        old = self.kept[is_old].copy()
        for name in ("model", "options"):
            old[name] = [ast.literal_eval(text) for text in old[name]]
        old["physics"] = [dict(_number(part) for part in cell.split(", ")) for cell in old["cell"]]
        old["label"] = old["equation"] + ", " + old["cell"]
        for score in ("rmse", "coverage90", "crps"):
            old[f"stored_{score}"] = old[score].where(old["equation"] == "advection")
            old[f"exact_{score}"] = old[f"exact_{score}"].where(old["equation"] == "advection", old[score])
        frame = pd.concat([new.astype({"cell": str, "method": str}), old], ignore_index=True)[new.columns]
        physics = dict(zip(frame["cell"], frame["physics"], strict=True))
        cells = sorted(physics, key=lambda name: [value for _, value in sorted(physics[name].items())])
        frame["cell"] = pd.Categorical(frame["cell"], cells, ordered=True)
        frame["method"] = pd.Categorical(frame["method"], [*METHODS, "prior"], ordered=True)
        return frame


def _number(text: str) -> tuple[str, float]:
    name, value = text.split(" = ")
    return name, float(value)


def main() -> None:
    store, runs = Store.open(sys.argv[1]), everything()
    kept = pd.read_csv(RESULTS / "reproduction-runs.csv").reindex(columns=PER_RUN)
    records = Accumulated([record for run in runs if (record := store.read(run)) is not None], kept)
    text = PAGE.read_text(encoding="utf-8")
    parts = {
        "table1": table1(records), "counts": counts(records), "spread": spread(records), "misses": misses(records),
        "claims": claims(records, text), "beyond": beyond(records), "origin": origin(records, len(runs)),
    }  # fmt: skip
    for name, part in parts.items():
        marked = rf"(<!-- {name}: docs/make_reproduction.py -->\n).*?(<!-- end -->)"
        text, found = re.subn(marked, lambda match, part=part: match[1] + part + "\n" + match[2], text, flags=re.S)
        assert found == 1, name
    PAGE.write_text(text, encoding="utf-8")
    (RESULTS / "reproduction.md").write_text(all_tables(records, parts["origin"]), encoding="utf-8")
    frame = records.frame[PER_RUN].sort_values(SPEC, key=lambda column: column.astype(str), kind="stable")
    frame.to_csv(RESULTS / "reproduction-runs.csv", index=False, float_format="%.6g", lineterminator="\n")
    figures.story(records, IMAGES)


def everything() -> list[Run]:
    scope = Scope(source="pdebench")
    return list({run.key: run for target in TARGETS.values() for run in target(scope)}.values())


def markdown(header: list[str], lines: list[list[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    cells = [[cell.replace("|", r"\|") for cell in row] for row in rows]
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)


def table1(records: Records) -> str:
    earlier = pd.read_csv(RESULTS / "earlier-table1.csv").set_index(["equation", "method"])
    lines = []
    for equation in EQUATIONS:
        tables = [t.frame for t in TABLES["table1"](records) if t.title == reference(equation)]
        now = pd.concat([pd.DataFrame(columns=["method", "runs"]), *tables]).set_index("method")
        for method in METHODS:
            old, new = int(earlier["runs"].get((equation, method), 0)), int(now["runs"].get(method, 0))
            if new and new >= old:
                line, runs = now.loc[method, ["RMSE x1e-2", "coverage 90 %", "CRPS x1e-3", "converged"]], f"{new}"
            elif old:
                line, runs = (
                    earlier.loc[(equation, method), ["rmse", "coverage", "crps", "converged"]],
                    f"{old}{EARLIER}",
                )
            else:
                continue
            *values, converged = line
            paper = PAPER.get((equation, method), (math.nan,) * 3)
            cells = [beside(float(ours), theirs) for ours, theirs in zip(values, paper, strict=True)]
            cells[1] = "-" if method == "sgd" else cells[1]
            lines.append([NAMES[equation], method, runs, *cells, converged, seconds(records, equation, method)])
    return markdown(["", "method", "runs", "RMSE", "coverage", "CRPS", "converged", "seconds"], lines)


def beside(ours: float, papers: float) -> str:
    return digits(ours) if math.isnan(papers) else f"{digits(ours)} [{digits(papers)}]"


def digits(value: float) -> str:
    """Three significant digits, zeros included."""
    return "-" if math.isnan(value) else f"{value:#.3g}".rstrip(".") if value else "0"


def reference(equation: str) -> str:
    return f"{equation}, against the {'stored field' if equation == 'advection' else 'exact solution'}"


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
            where = runs.loc[runs["method"] == line["method"], "cell"]
            cells = ", ".join(map(str, where.cat.remove_unused_categories().cat.categories))
            numbers = [
                f"{shown(float(line[name]))} ± {float(line[f'sd of {name.split()[0]}']):.2g}"
                for name in ("RMSE x1e-2", "coverage 90 %", "CRPS x1e-3")
            ]
            place = f"{NAMES[equation]}, {cells if equation == 'advection' else f'{where.nunique()} settings'}"
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
    for claim in answered(Records(records.all)):
        old = standing.get(claim.text.replace("|", r"\|"))
        is_better = claim.answer != "not run" and (old is None or claim.runs >= int(old[3].rstrip(EARLIER)))
        own = [claim.text, claim.answer, claim.number, str(claim.runs)]
        lines.append(own if old is None or is_better else [cell.replace(r"\|", "|") for cell in old])
    return markdown(["claim", "answer", "number", "runs"], lines)


def origin(records: Records, planned: int) -> str:
    commits = ", ".join(sorted({record["provenance"]["commit"] for record in records.all}))
    hours = sum(map(cost, records.all)) / 3600.0
    return (
        f"{len(records.frame)} of {planned} planned runs are done (all of them: "
        f"`benchmarks/results/reproduction-runs.csv`), the last {len(records.all)} at commit {commits} in {hours:.1f} "
        f"core-hours. {EARLIER} marks numbers of an earlier sweep of 816 runs, whose records were not kept (commits "
        "62e2bf8, 43a2df3, a9a96fb, 590eb80)."
    )


def cost(record: Record) -> float:
    """Processor seconds of a run; of early records, and of timings, seconds by the clock."""
    timings = record["timings"]
    own = sum(record["results"].get(key, 0.0) for key in ("cold", "warm"))  # type: ignore[misc]
    return float(timings.get("processor", timings.get("total", own)))


def all_tables(records: Records, about: str) -> str:
    def block(table: Table) -> str:
        return f"```text\n{table.text()}\n```\n"

    head = "# The paper's experiments, from records\n\n    python docs/make_reproduction.py RECORDS\n\n" + about + "\n"
    new = Records(records.all)  # earlier runs have left only numbers
    made = [make(records if name in BY_NUMBERS else new) for name, make in TABLES.items()]
    parts = [block(table) for tables in made for table in tables if len(table.frame)]
    gate = records.pick(method="hmc", seed=None)[["label", "row", "seed", "status", "rhat", "ess"]]
    if len(gate):
        parts.append(block(Table("gate: HMC, run by run", gate.rename(columns={"label": "cell"}))))
    here = [claim for claim in answered(new) if claim.answer != "not run"]
    return "\n".join([head, *parts, block(as_table(here))])


if __name__ == "__main__":
    main()
