"""What the records say, as tables: one function per target, in the paper's units beside the paper's numbers."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from factorfield.paper.plan import NOISES, SCHEDULES, WIDTHS

Record = dict[str, Any]
# Table 1 of the paper: RMSE x1e-2, coverage in per cent, CRPS x1e-3
PAPER = {
    ("advection", "mean-field"): (4.89, 14.5, 39.0), ("advection", "vi"): (19.5, 11.1, 160.0),
    ("advection", "hmc"): (4.85, 27.1, 37.9), ("advection", "sgd"): (4.86, math.nan, 39.2),
    ("fisher-kpp", "mean-field"): (2.72, 50.0, 3.78), ("fisher-kpp", "vi"): (72.7, 0.0, 718.0),
    ("fisher-kpp", "hmc"): (2.73, 68.3, 3.65), ("fisher-kpp", "sgd"): (13.7, math.nan, 112.0),
}  # fmt: skip
EQUATIONS = ("advection", "fisher-kpp")


@dataclass(frozen=True)
class Table:
    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[Any]]
    note: str = ""

    def cells(self) -> list[list[str]]:
        return [[shown(value) for value in row] for row in self.rows]

    def text(self) -> str:
        """Aligned columns, nothing cut."""
        lines = [list(self.header), *self.cells()]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.header))]
        body = []
        for line in lines:
            padded = [text.rjust(w) for text, w in zip(line, widths, strict=True)]
            body.append("  ".join([line[0].ljust(widths[0]), *padded[1:]]))
        return "\n".join([self.title, *body, *([self.note] if self.note else [])])

    def csv(self) -> str:
        stream = io.StringIO()
        csv.writer(stream).writerows([self.header, *self.rows])
        return stream.getvalue()


def shown(value: Any) -> str:
    if isinstance(value, float):
        return "-" if math.isnan(value) else f"{value:.3g}"
    return str(value)


@dataclass(frozen=True)
class Records:
    """The finished records of a sweep, and how to pick from them."""

    all: list[Record] = field(default_factory=list)

    def pick(self, test: Callable[[Record], bool] | None = None, **wanted: Any) -> list[Record]:
        """Records whose spec has these entries, and the defaults elsewhere (no options of model or method)."""
        defaults = {"model": {}, "kind": "scores", "initial": "pdebench"}
        found = []
        for record in self.all:
            spec = record["spec"]
            if all(spec[key] == value for key, value in {**defaults, **wanted}.items()):
                plain = "options" in wanted or not set(spec["options"]) - {"iterations"}
                if plain and (test is None or test(record)):
                    found.append(record)
        return found

    def methods(self, equation: str) -> list[str]:
        order = ("mean-field", "joint", "hmc", "vi", "sgd")
        return [method for method in order if self.pick(equation=equation, method=method)]


def ablation(records: Records, equation: str, key: str, value: Any, default: Any) -> list[Record]:
    """Message passing at one value of a model option, on the cells and rows where the option was varied."""
    varied = {
        (cell(r), r["spec"]["row"])
        for r in records.all
        if r["spec"]["equation"] == equation and set(r["spec"]["model"]) == {key}
    }
    model = {} if value == default else {key: value}
    chosen = records.pick(equation=equation, method="mean-field", model=model)
    return [r for r in chosen if (cell(r), r["spec"]["row"]) in varied]


def mean_of(records: Iterable[Record], *path: str) -> float:
    """The mean over runs of one number of their results; NaN without runs."""
    values = []
    for record in records:
        value = record["results"]
        for key in path:
            value = None if value is None else value[key]
        if value is not None:
            values.append(value)
    return float(np.mean(values)) if values else math.nan


def collapsed(record: Record) -> bool:
    """Has the field lost its size, or its shape, for a quarter of the horizon or more?"""
    coarse = record["results"]["coarse"]
    mean, exact = np.array(coarse["mean"]), np.array(coarse["exact"])
    size = np.sqrt(np.mean(mean**2, axis=1)) < 0.2 * np.sqrt(np.mean(exact**2, axis=1))
    varied = np.std(exact, axis=1) > 0.05 * np.sqrt(np.mean(exact**2))
    shape = varied & (np.std(mean, axis=1) < 0.1 * np.std(exact, axis=1))
    return bool(np.mean(size | shape) >= 0.25)


def against(record_or_equation: str, records: Sequence[Record]) -> str:
    """The paper scores advection against the stored field where there is one, Fisher-KPP against the exact one."""
    stored = record_or_equation == "advection" and all(r["results"]["stored"] is not None for r in records)
    return "stored" if stored and records else "exact"


def cell(record: Record) -> str:
    return ", ".join(f"{name} = {value:g}" for name, value in sorted(record["spec"]["physics"].items()))


def cells_of(records: Iterable[Record]) -> list[str]:
    by_value = {cell(r): tuple(v for _, v in sorted(r["spec"]["physics"].items())) for r in records}
    return sorted(by_value, key=lambda name: by_value[name])


def table1(records: Records) -> list[Table]:
    header = ["method", "runs", "RMSE x1e-2", "coverage 90 %", "CRPS x1e-3", "NLL", "relative L2", "converged",
              "paper: RMSE", "coverage", "CRPS"]  # fmt: skip
    tables = []
    for equation in EQUATIONS:
        for what in ("stored", "exact", "late"):
            rows = []
            for method in records.methods(equation):
                chosen = records.pick(equation=equation, method=method)
                if math.isnan(mean_of(chosen, what, "rmse")) or (what == "late" and equation == "advection"):
                    continue
                paper = PAPER.get((equation, method), (math.nan,) * 3) if what != "late" else (math.nan,) * 3
                done = sum(r["status"] == "converged" for r in chosen)
                rows.append([
                    method, len(chosen), 100 * mean_of(chosen, what, "rmse"), 100 * mean_of(chosen, what, "coverage90"),
                    1000 * mean_of(chosen, what, "crps"), mean_of(chosen, what, "nll"),
                    mean_of(chosen, what, "relative_l2"), f"{done}/{len(chosen)}", *paper,
                ])  # fmt: skip
            if rows:
                label = {
                    "stored": "against the stored field",
                    "exact": "against the exact solution",
                    "late": "t >= 0.02",
                }
                tables.append(Table(f"{equation}, {label[what]}", header, rows))
    return tables + [by_cell(records, equation) for equation in EQUATIONS if records.methods(equation)]


def by_cell(records: Records, equation: str) -> Table:
    methods = records.methods(equation)
    everything = [r for method in methods for r in records.pick(equation=equation, method=method)]
    what = against(equation, everything)
    rows = []
    for name in cells_of(everything):
        row: list[Any] = [name]
        for method in methods:
            chosen = records.pick(lambda r, name=name: cell(r) == name, equation=equation, method=method)  # type: ignore[misc]
            row += [len(chosen), 100 * mean_of(chosen, what, "rmse"), 100 * mean_of(chosen, what, "coverage90")]
            row += [1000 * mean_of(chosen, what, "crps")]
        rows.append(row)
    header = ["cell"] + [f"{m} {q}" for m in methods for q in ("runs", "RMSE x1e-2", "cover %", "CRPS x1e-3")]
    return Table(f"{equation} by cell, against the {what} field", header, rows)


def pairs(records: Records, equation: str, first: str, second: str) -> list[tuple[Record, Record]]:
    """Runs of two methods on the same problem."""

    def place(r: Record) -> tuple[Any, ...]:
        return (r["spec"]["row"], *sorted(r["spec"]["physics"].items()))

    others = {place(r): r for r in records.pick(equation=equation, method=second)}
    return [(r, others[place(r)]) for r in records.pick(equation=equation, method=first) if place(r) in others]


def std_ratio(one: Record, other: Record) -> float:
    """Median ratio of predictive standard deviations on the coarse grid."""
    return float(np.median(np.array(one["results"]["coarse"]["std"]) / np.array(other["results"]["coarse"]["std"])))


def posteriors(records: Records) -> list[Table]:
    rows = []
    for equation in EQUATIONS:
        names = [m for m in records.methods(equation) if m != "sgd"]
        for i, first in enumerate(names):
            for second in names[i + 1 :]:
                for name in cells_of(r for r, _ in pairs(records, equation, first, second)):
                    chosen = [p for p in pairs(records, equation, first, second) if cell(p[0]) == name]
                    std, mean, ratio = [], [], []
                    for a, b in chosen:
                        own, theirs = np.array(a["results"]["weight_std"]), np.array(b["results"]["weight_std"])
                        gap = np.array(a["results"]["weight_mean"]) - np.array(b["results"]["weight_mean"])
                        std.append(np.mean(np.abs(own / theirs - 1.0) < 0.1))
                        size = np.abs(np.array(b["results"]["weight_mean"]))
                        mean.append(np.mean(np.abs(gap) < 0.1 * size))
                        ratio.append(std_ratio(a, b))
                    spread = f"{min(ratio):.2f}..{max(ratio):.2f}"
                    rows.append([f"{equation}, {name}", f"{first} : {second}", len(chosen), 100 * float(np.mean(mean)),
                                 100 * float(np.mean(std)), float(np.median(ratio)), spread])  # fmt: skip
    header = [
        "cell",
        "pair",
        "runs",
        "means within 10 %",
        "stds within 10 %",
        "predictive std ratio",
        "range over runs",
    ]
    return [Table("posteriors: weights and predictive std, method against method", header, rows)]


def pinn(records: Records) -> list[Table]:
    rows = []
    for equation in EQUATIONS:
        both = pairs(records, equation, "mean-field", "sgd")
        for name in cells_of(r for r, _ in both):
            chosen = [p for p in both if cell(p[0]) == name]
            what = against(equation, [r for p in chosen for r in p])
            row: list[Any] = [f"{equation}, {name}", len(chosen)]
            for index in (0, 1):
                row.append(float(np.mean([p[index]["results"][what]["rmse"] ** 2 for p in chosen])))
            for index in (0, 1):
                row.append(float(np.mean([p[index]["results"]["rms_residual"] for p in chosen])))
            rows.append([*row, sum(collapsed(p[1]) for p in chosen)])
    header = ["cell", "runs", "MSE ours", "MSE SGD", "RMS residual ours", "RMS residual SGD", "SGD collapsed"]
    return [Table("pinn: message passing against the SGD point estimate", header, rows)]


def calibration(records: Records) -> list[Table]:
    rows = []
    for equation in EQUATIONS:
        for method in records.methods(equation):
            chosen = records.pick(equation=equation, method=method)
            if method == "sgd":
                continue
            for name in cells_of(chosen):
                mine = [r for r in chosen if cell(r) == name]
                what = against(equation, mine)
                first = float(np.mean([r["results"]["std_over_time"][0] for r in mine]))
                last = float(np.mean([r["results"]["std_over_time"][-1] for r in mine]))
                rows.append([f"{equation}, {name}", method, len(mine), 1000 * mean_of(mine, what, "crps"),
                             100 * mean_of(mine, what, "coverage90"), 100 * mean_of(mine, what, "coverage95"),
                             first, last])  # fmt: skip
    header = ["cell", "method", "runs", "CRPS x1e-3", "90 % covers", "95 % covers", "std at start", "std at end"]
    return [Table("calibration", header, rows)]


def schedule(records: Records) -> list[Table]:
    rows = []
    for equation in EQUATIONS:
        for name in SCHEDULES:
            method = "prior" if name == "prior" else "mean-field"
            options = {} if name in ("prior", "mixed") else {"schedule": name}
            chosen = records.pick(equation=equation, method=method, options=options)
            seen = {(cell(r), r["spec"]["row"]) for r in records.pick(equation=equation, method="prior")}
            chosen = [r for r in chosen if (cell(r), r["spec"]["row"]) in seen]
            for where in cells_of(chosen):
                mine = [r for r in chosen if cell(r) == where]
                what = against(equation, mine)
                start = float(np.mean([_rms(r, slice(0, 1)) for r in mine]))
                rows.append([f"{equation}, {where}", name, len(mine), start, mean_of(mine, what, "rmse"),
                             100 * mean_of(mine, what, "coverage90"), 1000 * mean_of(mine, what, "crps")])  # fmt: skip
    rows.sort(key=lambda row: str(row[0]))
    header = ["cell", "schedule", "runs", "RMSE at t = 0", "RMSE", "90 % covers", "CRPS x1e-3"]
    return [Table("schedule: which factors are visited", header, rows)]


def _rms(record: Record, times: slice) -> float:
    coarse = record["results"]["coarse"]
    error = np.array(coarse["mean"])[times] - np.array(coarse["exact"])[times]
    return float(np.sqrt(np.mean(error**2)))


def width(records: Records) -> list[Table]:
    rows = []
    for equation in EQUATIONS:
        for count in WIDTHS:
            chosen = ablation(records, equation, "width", count, 1)
            for where in cells_of(chosen):
                mine = [r for r in chosen if cell(r) == where]
                if mine:
                    what = against(equation, mine)
                    fit = float(np.median([r["timings"]["fit"] for r in mine]))
                    lost = sum(r["status"] == "diverged" for r in mine)
                    rows.append([f"{equation}, {where}", count, len(mine), mean_of(mine, what, "relative_l2"),
                                 100 * mean_of(mine, what, "coverage90"), 100 * mean_of(mine, what, "coverage95"),
                                 mean_of(mine, what, "nll"), fit, lost])  # fmt: skip
    rows.sort(key=lambda row: (row[0], row[1]))
    header = ["cell", "H", "runs", "relative L2", "90 % covers", "95 % covers", "NLL", "fit [s]", "diverged"]
    return [Table("width: hidden units", header, rows, "fit times of a busy machine: `timing` has the clean ones")]


def residual_noise(records: Records) -> list[Table]:
    rows = []
    for noise in NOISES:
        chosen = ablation(records, "advection", "residual_noise", noise, 0.05)
        for where in cells_of(chosen):
            mine = [r for r in chosen if cell(r) == where]
            what = against("advection", mine)
            lost = sum(collapsed(r) or r["status"] == "diverged" for r in mine)
            scores = [100 * mean_of(mine, what, "rmse"), 100 * mean_of(mine, what, "coverage90")]
            rows.append([where, noise, len(mine), *scores, 1000 * mean_of(mine, what, "crps"), lost])
    rows.sort(key=lambda row: float(str(row[0]).rpartition("=")[2]))
    header = ["cell", "eps_C", "runs", "RMSE x1e-2", "90 % covers", "CRPS x1e-3", "collapsed"]
    return [Table("residual-noise: eps_C on advection", header, rows)]


def timing(records: Records) -> list[Table]:
    rows = []
    for equation in EQUATIONS:
        everything = records.pick(equation=equation, kind="timing")
        for where in cells_of(everything):
            here = [r for r in everything if cell(r) == where]
            ours = next((r["results"] for r in here if r["spec"]["method"] == "mean-field"), None)
            for record in here:
                result = record["results"]
                row = [
                    f"{equation}, {where}",
                    record["spec"]["method"],
                    result["cold"],
                    result["warm"],
                    result["predict"],
                ]
                for key in ("cold", "warm", "predict"):
                    row.append(math.nan if ours is None else result[key] / ours[key])
                rows.append(row)
    header = [
        "cell",
        "method",
        "fit cold [s]",
        "fit warm [s]",
        "predict [s]",
        "cold : ours",
        "warm : ours",
        "predict : ours",
    ]
    return [Table("timing: training cold (compilation included) and warm, inference steady", header, rows,
                  "ours = mean-field message passing, as in the paper")]  # fmt: skip


TABLES: dict[str, Callable[[Records], list[Table]]] = {
    "table1": table1, "posteriors": posteriors, "pinn": pinn, "calibration": calibration, "schedule": schedule,
    "width": width, "residual-noise": residual_noise, "timing": timing,
}  # fmt: skip
