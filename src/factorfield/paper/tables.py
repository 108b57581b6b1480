"""What the records say, as tables: one function per target, in the paper's units beside the paper's numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from scipy import stats

from factorfield.paper.plan import FULL, LONG, METHODS, NOISES, SCHEDULES, WIDTHS
from factorfield.paper.run import Coarse, Record
from factorfield.show.table import Table

# Table 1 of the paper: RMSE x1e-2, coverage in per cent, CRPS x1e-3
PAPER = {
    ("advection", "mean-field"): (4.89, 14.5, 39.0), ("advection", "vi"): (19.5, 11.1, 160.0),
    ("advection", "hmc"): (4.85, 27.1, 37.9), ("advection", "sgd"): (4.86, math.nan, 39.2),
    ("fisher-kpp", "mean-field"): (2.72, 50.0, 3.78), ("fisher-kpp", "vi"): (72.7, 0.0, 718.0),
    ("fisher-kpp", "hmc"): (2.73, 68.3, 3.65), ("fisher-kpp", "sgd"): (13.7, math.nan, 112.0),
}  # fmt: skip
EQUATIONS = ("advection", "fisher-kpp")
REFERENCES = {"stored": "against the stored field", "exact": "against the exact solution", "late": "t >= 0.02"}
SCORES = ("rmse", "coverage90", "coverage95", "crps", "nll", "relative_l2")
# columns of `Records.frame`: how a run is found, its numbers, and its lists
FOUND_BY = (
    "equation", "physics", "row", "method", "initial", "model", "options", "kind", "seed", "cell", "label", "status",
)  # fmt: skip
NUMBERS = (
    *SCORES, *(f"{reference}_{score}" for reference in REFERENCES for score in SCORES), "rms_residual",
    "std_at_start", "std_at_end", "error_at_start", "error_at_end", "collapsed", "activity_rank", "hmc_std_ratio",
    "hmc_mean_distance", "hmc_std_factor", "fit", "cold", "warm", "predict", "rhat", "ess", "epochs", "processor",
)  # fmt: skip
LISTS = ("coarse", "weight_mean", "weight_std", "reliability", "pit", "std_over_time")
GAUSSIAN = ("mean-field", "joint", "vi")  # methods whose weights and std are compared with HMC's


@dataclass(frozen=True)
class Records:
    """The finished records of a sweep, and how to pick from them."""

    all: Sequence[Record] = ()

    @cached_property
    def frame(self) -> pd.DataFrame:
        """One row per run. Cells and methods are ordered categories: groups come in the order of the paper."""
        columns = (*FOUND_BY, *NUMBERS, *LISTS)
        frame = pd.DataFrame([_row(record) for record in self.all], columns=columns)
        return ordered(beside_hmc(frame.astype({name: float for name in NUMBERS})))

    def pick(self, having: Sequence[str] = (), **wanted: object) -> pd.DataFrame:
        """Runs whose spec has these entries (seed=None: any), and the defaults elsewhere: seed 0, no options.

        having  numbers that a run must have to be counted
        """
        wanted = {"model": {}, "kind": "scores", "initial": "pdebench", "seed": 0, **wanted}
        if wanted["seed"] is None:
            del wanted["seed"]
        keep = np.ones(len(self.frame), dtype=bool)
        for key, value in wanted.items():
            keep &= np.array([entry == value for entry in self.frame[key]], dtype=bool)
        if "options" not in wanted:
            keep &= np.array([set(options) <= {"iterations"} for options in self.frame["options"]], dtype=bool)
        return self.frame[keep].dropna(subset=list(having))

    def compared(self, equation: str) -> pd.DataFrame:
        """Runs of the methods that the paper compares."""
        chosen = self.pick(equation=equation)
        return chosen[chosen["method"] != "prior"]

    def methods(self, equation: str) -> list[str]:
        chosen = set(self.compared(equation)["method"])
        return [method for method in METHODS if method in chosen]


def ordered(frame: pd.DataFrame) -> pd.DataFrame:
    """Cells and methods as categories in the paper's order; the frame in one piece, as pandas wants it for joins."""
    physics = {name: sorted(values.items()) for name, values in zip(frame["cell"], frame["physics"], strict=True)}
    cells = sorted(physics, key=lambda name: [value for _, value in physics[name]])
    frame["cell"] = pd.Categorical(frame["cell"], cells, ordered=True)
    frame["method"] = pd.Categorical(frame["method"], [*METHODS, "prior"], ordered=True)
    return frame.copy()


def beside_hmc(frame: pd.DataFrame) -> pd.DataFrame:
    """Where HMC has sampled the same model: the median ratio of predictive stds on the coarse grid; and, as medians
    over weights, how many of HMC's stds a mean is away from HMC's, and the factor between the stds, always above one.
    """
    scored = frame[frame["kind"] == "scores"]
    names = [f"{run.label}, {run.row}, {run.seed}, {run.initial}, {run.model}" for run in scored.itertuples()]
    methods = scored["method"].to_numpy()
    hmc = {name: index for name, index, method in zip(names, scored.index, methods, strict=True) if method == "hmc"}
    for name, index, method in zip(names, scored.index, methods, strict=True):
        if method not in GAUSSIAN or name not in hmc:
            continue
        ours, theirs = frame.loc[index], frame.loc[hmc[name]]
        ratios = np.array(ours["coarse"]["std"]) / np.array(theirs["coarse"]["std"])
        unit = np.array(theirs["weight_std"])
        away = (np.array(ours["weight_mean"]) - np.array(theirs["weight_mean"])) / unit
        factors = np.array(ours["weight_std"]) / unit
        frame.loc[index, ["hmc_std_ratio", "hmc_mean_distance", "hmc_std_factor"]] = (
            float(np.median(ratios)), float(np.median(np.abs(away))), float(np.exp(np.median(np.abs(np.log(factors))))),
        )  # fmt: skip
    return frame


def _row(record: Record) -> dict[str, object]:
    spec, results = record["spec"], record["results"]
    cell = ", ".join(f"{name} = {value:g}" for name, value in sorted(spec["physics"].items()))
    trace = record["trace"]
    row = {
        **spec, **results, "cell": cell, "label": f"{spec['equation']}, {cell}", "status": record["status"],
        "fit": record["timings"].get("fit"), "rhat": trace.get("rhat"), "ess": trace.get("ess"),
        "epochs": trace.get("epochs"), "processor": record["timings"].get("processor"),
    }  # fmt: skip
    if spec["kind"] == "scores":
        scores = {"stored": results["stored"], "exact": results["exact"], "late": results["late"]}
        for reference, score in scores.items():
            row |= {f"{reference}_{name}": value for name, value in (score or {}).items()}
        # the paper scores advection against the stored field where there is one, Fisher-KPP against the exact one
        row |= (scores["stored"] if spec["equation"] == "advection" else None) or results["exact"]
        row["std_at_start"], *_, row["std_at_end"] = results["std_over_time"]
        row["error_at_start"], *_, row["error_at_end"] = errors_over_time(results["coarse"])
        row["collapsed"] = collapsed(results["coarse"])
        row["activity_rank"] = activity_rank(results["coarse"])
    return row


def errors_over_time(coarse: Coarse) -> list[float]:
    return np.sqrt(np.mean((np.array(coarse["mean"]) - np.array(coarse["exact"])) ** 2, axis=1)).tolist()


def collapsed(coarse: Coarse) -> bool:
    """Has the field lost its size, or its shape, for a quarter of the horizon or more?"""
    mean, exact = np.array(coarse["mean"]), np.array(coarse["exact"])
    size = np.sqrt(np.mean(mean**2, axis=1)) < 0.2 * np.sqrt(np.mean(exact**2, axis=1))
    varied = np.std(exact, axis=1) > 0.05 * np.sqrt(np.mean(exact**2))
    shape = varied & (np.std(mean, axis=1) < 0.1 * np.std(exact, axis=1))
    return bool(np.mean(size | shape) >= 0.25)


def activity_rank(coarse: Coarse) -> float:
    """The rank correlation of the std with |u_t|, over the coarse grid."""
    activity = np.abs(np.gradient(np.array(coarse["exact"]), np.array(coarse["t"]), axis=0))
    std = np.ravel(coarse["std"])
    return float(stats.spearmanr(activity.ravel(), std).statistic) if np.ptp(std) > 0.0 else math.nan


def pairs(records: Records, equation: str, first: str, second: str, having: Sequence[str] = ()) -> pd.DataFrame:
    """Runs of two methods on the same problem; columns of the second one end in `_other`."""
    ours, theirs = (records.pick(having, equation=equation, method=method) for method in (first, second))
    return ours.merge(theirs, on=["equation", "cell", "label", "row"], suffixes=("", "_other"))


def ablation(records: Records, key: str, values: Sequence[float], default: float) -> pd.DataFrame:
    """Message passing at each `value` of a model option, on the cells and rows where the option was varied."""
    models = {value: {} if value == default else {key: value} for value in values}
    parts = [records.pick(method="mean-field", model=model).assign(value=value) for value, model in models.items()]
    runs = pd.concat(parts)
    varied = runs.loc[runs["value"] != default, ["cell", "row"]].drop_duplicates()
    return runs.merge(varied, on=["cell", "row"])


Column = tuple[str, str | Callable[[pd.Series], object]]  # of a summary: what is read, and how it is condensed


def mean(factor: float = 1.0) -> Callable[[pd.Series], float]:
    """The mean over runs, in units of 1 / factor. A run without a number leaves the mean without one."""
    return lambda values: factor * float(np.mean(values.to_numpy()))


def median(values: pd.Series) -> float:
    return float(np.median(values.to_numpy()))


def span(values: pd.Series) -> str:
    return f"{values.min():.2f}..{values.max():.2f}"


def count(flags: pd.Series) -> int:
    return int(flags.sum())


def summary(runs: pd.DataFrame, by: Sequence[str], columns: dict[str, Column]) -> pd.DataFrame:
    """A line per group: the groups' names, the number of runs, the columns."""
    groups = runs.groupby(list(by), observed=True)
    lines = groups.agg(runs=("row", "size"), **columns).reset_index()
    return lines.drop(columns=["equation", "cell"], errors="ignore").rename(columns={"label": "cell"})


COVERAGE: dict[str, Column] = {"90 % covers": ("coverage90", mean(100)), "95 % covers": ("coverage95", mean(100))}
CRPS: dict[str, Column] = {"CRPS x1e-3": ("crps", mean(1000))}


def table1(records: Records) -> list[Table]:
    tables = []
    for equation in EQUATIONS:
        for reference, title in REFERENCES.items():
            if (equation, reference) == ("advection", "late"):
                continue
            lines = beside_paper(records.compared(equation), equation, reference)
            if len(lines):
                tables.append(Table(f"{equation}, {title}", lines))
    return tables + [by_cell(records, equation) for equation in EQUATIONS if records.methods(equation)]


def beside_paper(runs: pd.DataFrame, equation: str, reference: str) -> pd.DataFrame:
    """A line per method: the means of its scores, and the paper's numbers."""
    columns: dict[str, Column] = {
        "RMSE x1e-2": (f"{reference}_rmse", mean(100)), "coverage 90 %": (f"{reference}_coverage90", mean(100)),
        "CRPS x1e-3": (f"{reference}_crps", mean(1000)), "NLL": (f"{reference}_nll", mean()),
        "relative L2": (f"{reference}_relative_l2", mean()),
        "converged": ("status", lambda status: f"{(status == 'converged').sum()}/{len(status)}"),
    }  # fmt: skip
    lines = summary(runs, ["method"], columns).dropna(subset="RMSE x1e-2")
    known = {} if reference == "late" else PAPER
    numbers = [known.get((equation, method), (math.nan,) * 3) for method in lines["method"]]
    lines[["paper: RMSE", "coverage", "CRPS"]] = np.reshape(numbers, (-1, 3))
    return lines


def full_residual(records: Records) -> list[Table]:
    """Fisher-KPP again, with the term of the residual that the authors' release leaves out."""
    runs = records.pick(equation="fisher-kpp", model=FULL)
    note = "with the term -nu g''(z) z_x^2, which the paper derives; its numbers were made without"
    titles = {reference: f"full residual: fisher-kpp, {REFERENCES[reference]}" for reference in ("exact", "late")}
    lines = {reference: beside_paper(runs, "fisher-kpp", reference) for reference in titles}
    return [Table(titles[reference], lines[reference], note) for reference in titles if len(lines[reference])]


def by_cell(records: Records, equation: str) -> Table:
    runs = records.compared(equation)
    columns: dict[str, Column] = {"RMSE x1e-2": ("rmse", mean(100)), "cover %": ("coverage90", mean(100)), **CRPS}
    lines = runs.groupby(["cell", "method"], observed=True).agg(runs=("row", "size"), **columns)
    wide = lines.unstack("method").swaplevel(axis=1)
    wide = wide[[(method, name) for method in records.methods(equation) for name in lines.columns]]
    counts = [column for column in wide.columns if column[1] == "runs"]
    wide = wide.fillna(dict.fromkeys(counts, 0)).astype(dict.fromkeys(counts, int))
    wide.columns = [f"{method} {name}" for method, name in wide.columns]
    stored = equation == "advection" and runs["stored_rmse"].notna().all()
    title = f"{equation} by cell, against the {'stored' if stored else 'exact'} field"
    return Table(title, wide.rename_axis("cell").reset_index())


def posteriors(records: Records) -> list[Table]:
    runs = pd.concat([records.pick(["hmc_std_ratio"], equation=equation) for equation in EQUATIONS])
    columns: dict[str, Column] = {
        "means away [HMC's std]": ("hmc_mean_distance", median), "stds off by a factor": ("hmc_std_factor", median),
        "predictive std ratio": ("hmc_std_ratio", median), "range over runs": ("hmc_std_ratio", span),
    }  # fmt: skip
    lines = summary(runs, ["equation", "method", "cell", "label"], columns)
    return [Table("posteriors: weights and predictive std against HMC's", lines[["cell", "method", "runs", *columns]])]


def pinn(records: Records) -> list[Table]:
    both = pd.concat([pairs(records, equation, "mean-field", "sgd", ["rms_residual"]) for equation in EQUATIONS])
    columns: dict[str, Column] = {
        "MSE ours": ("rmse", lambda rmse: mean()(rmse**2)), "MSE SGD": ("rmse_other", lambda rmse: mean()(rmse**2)),
        "RMS residual ours": ("rms_residual", mean()), "RMS residual SGD": ("rms_residual_other", mean()),
        "SGD collapsed": ("collapsed_other", count),
    }  # fmt: skip
    lines = summary(both, ["equation", "cell", "label"], columns)
    return [Table("pinn: message passing against the SGD point estimate", lines)]


def calibration(records: Records) -> list[Table]:
    runs = pd.concat([records.compared(equation) for equation in EQUATIONS])
    columns = {**CRPS, **COVERAGE, "std at start": ("std_at_start", mean()), "std at end": ("std_at_end", mean())}
    lines = summary(runs[runs["method"] != "sgd"], ["equation", "method", "cell", "label"], columns)
    return [Table("calibration", lines[["cell", "method", "runs", *columns]])]


def spread(records: Records) -> list[Table]:
    """What a number of Table 1 owes to the draw of points and the order of factors; and single runs that missed."""
    tables = []
    for equation in EQUATIONS:
        runs = drawn_again(records.pick(equation=equation, seed=None))
        parts = [over_seeds(runs.assign(cell="all"), ["method", "cell"]), over_seeds(runs, ["method", "cell"])]
        if len(runs):
            tables.append(Table(f"spread: {equation}, mean and standard deviation over seeds", pd.concat(parts)))
    title = "spread: single runs of mean-field, exact RMSE (Fisher-KPP: t >= 0.02) over joint's on the same points"
    lines = misses(records)
    note = f"long: until the KL is below {LONG['tolerance']:g}, at most {LONG['epochs']} epochs a pass, seed 0"
    return tables + ([Table(title, lines, note)] if len(lines) else [])


def drawn_again(runs: pd.DataFrame) -> pd.DataFrame:
    """Of each method, rows that ran with the seeds 0..k-1; k at least 2 and such that most runs take part."""
    chosen = [runs.iloc[:0]]
    for _, mine in runs.groupby("method", observed=True):
        seeds = mine.groupby(["cell", "row"], observed=True)["seed"].transform("nunique")
        parts = [mine[(seeds >= k) & (mine["seed"] < k)] for k in range(2, seeds.max() + 1)]
        chosen += sorted(parts, key=len)[-1:]
    return pd.concat(chosen)


def over_seeds(runs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Per group: every seed's mean over runs as in Table 1; of these, the mean and the standard deviation."""
    names = {"rmse": ("RMSE x1e-2", 100.0), "coverage90": ("coverage 90 %", 100.0), "crps": ("CRPS x1e-3", 1000.0)}
    numbers = runs.groupby([*by, "seed"], observed=True)[[*names]].mean().groupby(level=[*by], observed=True)
    lines = runs.groupby([*by], observed=True).agg(seeds=("seed", "nunique"), runs=("row", "size"))
    for key, (label, factor) in names.items():
        lines[label], lines[f"sd of {label.split()[0]}"] = factor * numbers[key].mean(), factor * numbers[key].std()
    return lines.reset_index()


def misses(records: Records) -> pd.DataFrame:
    """How often message passing ends away from the joint solve of the same model, and what more epochs change."""
    joint = records.pick(method="joint", seed=None)
    runs = {
        "": records.pick(method="mean-field", seed=None),
        "long: ": records.pick(method="mean-field", options=LONG),
    }
    parts = []
    for prefix, mine in runs.items():
        both = mine.merge(joint, on=["equation", "cell", "label", "row", "seed"], suffixes=("", "_other"))
        fisher = both["equation"] == "fisher-kpp"  # at t = 0 all methods share the error of the time basis
        both["ratio"] = (both["late_rmse"] / both["late_rmse_other"]).where(
            fisher, both["exact_rmse"] / both["exact_rmse_other"]
        )
        both["label"] = both["label"].where(~fisher, "fisher-kpp, all settings")
        columns: dict[str, Column] = {
            "converged": ("status", lambda status: count(status == "converged")), "median": ("ratio", median),
            "worst": ("ratio", "max"), "over 1.1": ("ratio", lambda ratio: count(ratio > 1.1)),
            "over 2": ("ratio", lambda ratio: count(ratio > 2.0)),
            "median epochs": ("epochs", lambda epochs: float(np.round(median(epochs)))),
            "most epochs": ("epochs", "max"),
        }  # fmt: skip
        lines = summary(both, ["equation", "label"], columns).set_index("cell")
        parts.append(lines.add_prefix(prefix))
    return pd.concat(parts, axis=1).reset_index() if len(parts[0]) else pd.DataFrame()


def schedule(records: Records) -> list[Table]:
    parts = []
    for name in SCHEDULES:
        options = {} if name in ("prior", "mixed") else {"schedule": name}
        chosen = records.pick(method="prior" if name == "prior" else "mean-field", options=options)
        parts.append(chosen.assign(schedule=name))
    runs = pd.concat(parts).merge(records.pick(method="prior")[["cell", "row"]], on=["cell", "row"])
    runs["schedule"] = pd.Categorical(runs["schedule"], SCHEDULES, ordered=True)
    columns: dict[str, Column] = {"RMSE at t = 0": ("error_at_start", mean()), "RMSE": ("rmse", mean())}
    columns |= {"90 % covers": COVERAGE["90 % covers"], **CRPS}
    return [Table("schedule: which factors are visited", summary(runs, ["label", "schedule"], columns))]


def width(records: Records) -> list[Table]:
    runs = ablation(records, "width", WIDTHS, 1).rename(columns={"value": "H"})
    columns: dict[str, Column] = {
        "relative L2": ("relative_l2", mean()), **COVERAGE, "NLL": ("nll", mean()), "fit [s]": ("fit", median),
        "diverged": ("status", lambda status: count(status == "diverged")),
    }  # fmt: skip
    note = "fit times of a busy machine: `timing` has the clean ones"
    return [Table("width: hidden units", summary(runs, ["label", "H"], columns), note)]


def residual_noise(records: Records) -> list[Table]:
    runs = ablation(records, "residual_noise", NOISES, 0.05).rename(columns={"value": "eps_C"})
    runs["lost"] = (runs["collapsed"] > 0.0) | (runs["status"] == "diverged")
    columns = {"RMSE x1e-2": ("rmse", mean(100)), "90 % covers": COVERAGE["90 % covers"], **CRPS}
    lines = summary(runs.drop(columns="label").rename(columns={"cell": "label"}), ["label", "eps_C"],
                    {**columns, "collapsed": ("lost", count)})  # fmt: skip
    return [Table("residual-noise: eps_C on advection", lines)]


def timing(records: Records) -> list[Table]:
    runs = records.pick(kind="timing").sort_values(["equation", "cell"], kind="stable")
    names = {"cold": "fit cold [s]", "warm": "fit warm [s]", "predict": "predict [s]"}
    ours = runs[runs["method"] == "mean-field"].drop_duplicates("cell").set_index("cell")
    lines = runs[["label", "method", *names]].rename(columns={"label": "cell", **names})
    for key in names:
        lines[f"{key} : ours"] = runs[key] / runs["cell"].map(ours[key]).astype(float)
    return [Table("timing: training cold (compilation included) and warm, inference steady", lines,
                  "seconds of one processor; ours = mean-field message passing, as in the paper")]  # fmt: skip


TABLES: dict[str, Callable[[Records], list[Table]]] = {
    "table1": table1, "full-residual": full_residual, "posteriors": posteriors, "pinn": pinn,
    "calibration": calibration, "spread": spread, "schedule": schedule, "width": width,
    "residual-noise": residual_noise, "timing": timing,
}  # fmt: skip
