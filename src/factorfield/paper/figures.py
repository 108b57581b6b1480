"""The paper's figures from the records (extra `plot`): one function per target, which names the files it wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from factorfield.paper.plan import METHODS, NOISES, WIDTHS
from factorfield.paper.run import LEVELS
from factorfield.paper.tables import EQUATIONS, PAPER, Records, ablation, pairs
from factorfield.show.style import BLACK, BLUE, ORANGE, Drawing, write_picture

COLOURS = {"mean-field": BLUE, "joint": "#009E73", "chain": "#D55E00", "hmc": BLACK, "vi": "#56B4E9", "sgd": "#CC79A7"}
EQUATION_NAMES = {"advection": "advection", "fisher-kpp": "Fisher-KPP"}
STYLE = {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}
MARKERS = {"mean-field": "o", "joint": "s", "chain": "P", "hmc": "^", "vi": "v", "sgd": "D"}


def story(records: Records, folder: Path) -> list[Path]:
    """Table 1 in one picture: error, coverage and time of every method, single runs behind their mean."""
    plt = Drawing()
    columns = {
        "exact_rmse": "RMSE against the exact solution", "exact_coverage90": "90 % intervals cover [%]",
        "warm": "training, warm [s of one processor]",
    }  # fmt: skip
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(2, 3, figsize=(9.0, 4.4), constrained_layout=True, sharey=True)
        for line, equation in zip(panels, EQUATIONS, strict=True):
            for panel, name in zip(line, columns, strict=True):
                runs = timed_alike(records, equation) if name == "warm" else records.pick(equation=equation)
                for place, method in enumerate(METHODS):
                    chosen = runs.loc[runs["method"] == method, name].dropna()
                    _single_runs(panel, place, method, 100.0 * chosen if name == "exact_coverage90" else chosen)
                    paper = PAPER.get((equation, method), (np.nan, np.nan))
                    known = {"exact_rmse": paper[0] / 100.0, "exact_coverage90": paper[1]}.get(name, np.nan)
                    if np.isfinite(known):
                        panel.plot(known, place - 0.33, "D", mfc="none", color=BLACK, ms=5, label="the paper")
                panel.set(yticks=range(len(METHODS)), yticklabels=METHODS, ylim=(len(METHODS) - 0.4, -0.7))
                if name == "exact_coverage90":
                    panel.axvline(90.0, color=BLACK, lw=0.6, ls=":")
                    panel.set(xlim=(-4, 104))
                else:
                    panel.set(xscale="log")
            line[0].set_ylabel(EQUATION_NAMES[equation])
        for column, label in zip(panels.T, columns.values(), strict=True):
            ends = [end for panel in column if panel.has_data() for end in panel.get_xlim()] or [0.1, 1.0]
            for panel in column:
                panel.set_xlim(min(ends), max(ends))
            column[-1].set_xlabel(label)
        handles, labels = panels[0, 0].get_legend_handles_labels()
        panels[0, 0].legend(handles[:1], labels[:1], frameon=False, loc="lower left")
        path = folder / "story.png"
        write_picture(figure, path, dpi=110, tight=False)
    return [path]


def timed_alike(records: Records, equation: str) -> pd.DataFrame:
    """Timings of the cells in which every timed method was timed: means over others would not compare."""
    runs = records.pick(equation=equation, kind="timing")
    counts = runs.groupby("cell", observed=True)["method"].transform("nunique")
    return runs[counts == runs["method"].nunique()]


def _single_runs(panel: Any, place: int, method: str, values: pd.Series) -> None:
    """One method's runs as small strokes, their mean as a marker."""
    if len(values):
        style = {"color": COLOURS[method], "ls": ""}
        panel.plot(values, np.full(len(values), float(place)), marker="|", ms=6, alpha=0.35, **style)
        panel.plot(np.mean(values), place, marker=MARKERS[method], ms=7, **style)


def maps(chosen: pd.DataFrame, path: Path, title: str) -> Path:
    """Exact, mean, std and error, one row per run."""
    plt = Drawing()
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            len(chosen), 4, figsize=(8.0, 1.5 * len(chosen) + 0.5), constrained_layout=True, squeeze=False
        )
        for line, cell, coarse in zip(panels, chosen["cell"], chosen["coarse"], strict=True):
            t, x = np.array(coarse["t"]), np.array(coarse["x"])
            exact, mean, std = (np.array(coarse[key]) for key in ("exact", "mean", "std"))
            reach = float(np.abs(mean - exact).max()) or 1.0
            shared = {"vmin": float(exact.min()), "vmax": float(exact.max())}
            for panel, values, colours, limits in zip(
                line, (exact, mean, std**2, mean - exact), ("viridis", "viridis", "cividis", "RdBu_r"),
                (shared, shared, {}, {"vmin": -reach, "vmax": reach}), strict=True,
            ):  # fmt: skip
                picture = panel.pcolormesh(t, x, values.T, cmap=colours, shading="nearest", rasterized=True, **limits)
                figure.colorbar(picture, ax=panel, shrink=0.9)
            line[0].set_ylabel(f"{cell}\nx")
        for panel, label in zip(panels[0], ("exact", "mean", "variance", "mean - exact"), strict=True):
            panel.set_title(label)
        for panel in panels[-1]:
            panel.set_xlabel("t")
        figure.suptitle(title)
        write_picture(figure, path, dpi=110, tight=False)
    return path


def first_rows(runs: pd.DataFrame) -> pd.DataFrame:
    """One run per cell: the lowest row."""
    return runs.sort_values(["cell", "row"], kind="stable").drop_duplicates("cell")


def solutions(records: Records, folder: Path) -> list[Path]:
    advection, fisher = (first_rows(records.pick(equation=e, method="mean-field")) for e in EQUATIONS)
    middle = fisher[[physics["nu"] == 1.0 for physics in fisher["physics"]]]
    parts = [
        (advection, "solutions-advection.png", "advection over wave speeds"),
        (middle, "solutions-fisher-kpp-nu1.png", "Fisher-KPP at nu = 1 over reaction strengths"),
        (fisher, "solutions-fisher-kpp.png", "Fisher-KPP, all settings"),
    ]
    return [maps(runs, folder / name, title) for runs, name, title in parts if len(runs)]


def gaussian_bump(records: Records, folder: Path) -> list[Path]:
    chosen = first_rows(records.pick(equation="fisher-kpp", method="mean-field", initial="bump"))
    return [maps(chosen, folder / "gaussian-bump.png", "Fisher-KPP from the Gaussian bump")] if len(chosen) else []


def posteriors(records: Records, folder: Path) -> list[Path]:
    plt = Drawing()
    made = []
    for equation in EQUATIONS:
        paired = {m: pairs(records, equation, m, "hmc") for m in ("mean-field", "vi", "joint")}
        if all(both.empty for both in paired.values()):
            continue
        with plt.rc_context(STYLE):
            figure, panels = plt.subplots(1, 3, figsize=(9.0, 3.0), constrained_layout=True)
            for name, both in paired.items():
                if both.empty:
                    continue
                style = {"color": COLOURS[name], "marker": MARKERS[name], "ls": "", "ms": 1.5, "alpha": 0.5}
                for index, run in enumerate(both.itertuples()):
                    label = name if index == 0 else None
                    panels[0].plot(run.weight_mean_other, run.weight_mean, **style, label=label)
                    panels[1].plot(run.weight_std_other, run.weight_std, **style)
                where = both["cell"].cat.remove_unused_categories().cat
                panels[2].plot(where.codes, both["hmc_std_ratio"], **{**style, "ms": 4, "alpha": 0.8})
                panels[2].set_xticks(range(len(where.categories)), where.categories, rotation=60, fontsize=6)
            for panel, label in ((panels[0], "mean"), (panels[1], "std")):
                ends = panel.get_xlim()
                panel.plot(ends, ends, color=BLACK, lw=0.6)
                panel.set(xlabel=f"HMC weight {label}", ylabel=f"weight {label}")
            panels[1].set(xscale="log", yscale="log")
            panels[2].axhline(1.0, color=BLACK, lw=0.6)
            panels[2].set(yscale="log", ylabel="median predictive std / HMC's")
            panels[0].legend(frameon=False, markerscale=3)
            figure.suptitle(equation)
            made.append(folder / f"posteriors-{equation}.png")
            write_picture(figure, made[-1], dpi=110, tight=False)
    return made


def pinn(records: Records, folder: Path) -> list[Path]:
    paired = {equation: pairs(records, equation, "mean-field", "sgd") for equation in EQUATIONS}
    if all(both.empty for both in paired.values()):
        return []
    plt = Drawing()
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, 2, figsize=(7.0, 3.2), constrained_layout=True)
        for equation, marker, colour in (("advection", "o", BLUE), ("fisher-kpp", "^", ORANGE)):
            both = paired[equation]
            if both.empty:
                continue
            style = {"color": colour, "ms": 3, "alpha": 0.7, "label": equation}
            panels[0].plot(both["rmse_other"] ** 2, both["rmse"] ** 2, marker, **style)
            panels[1].plot(both["rms_residual_other"], both["rms_residual"], marker, **style)
        for panel, label in zip(panels, ("MSE", "RMS residual"), strict=True):
            panel.set(xscale="log", yscale="log", xlabel=f"SGD {label}", ylabel=f"message passing {label}")
            low, high = panel.get_xlim()
            panel.plot((low, high), (low, high), color=BLACK, lw=0.6)
        panels[0].legend(frameon=False)
        path = folder / "pinn.png"
        write_picture(figure, path, dpi=110, tight=False)
    return [path]


def calibration(records: Records, folder: Path) -> list[Path]:
    plt = Drawing()
    made = []
    for equation in EQUATIONS:
        names = [m for m in records.methods(equation) if m != "sgd"]
        if not names:
            continue
        with plt.rc_context(STYLE):
            figure, panels = plt.subplots(1, 3, figsize=(9.0, 3.0), constrained_layout=True)
            panels[0].plot((0, 1), (0, 1), color=BLACK, lw=0.6)
            for name in names:
                chosen = records.pick(equation=equation, method=name)
                curve = np.mean([*chosen["reliability"]], axis=0)
                panels[0].plot(LEVELS, curve, color=COLOURS[name], marker=MARKERS[name], ms=3, label=name)
                pit = np.mean([*chosen["pit"]], axis=0)
                panels[1].stairs(pit * len(pit), np.linspace(0, 1, len(pit) + 1), color=COLOURS[name])
            for name, runs in records.pick(equation=equation, method=names[0]).groupby("cell", observed=True):
                std = np.mean([*runs["std_over_time"]], axis=0)
                last = runs["coarse"].iloc[0]["t"][-1]
                panels[2].plot(np.linspace(0, last, len(std)), std, lw=0.9, label=name)
            panels[0].set(xlabel="nominal level", ylabel="share covered")
            panels[1].set(xlabel="probability integral transform", ylabel="density", yscale="log")
            panels[2].set(xlabel="t", ylabel=f"mean std ({names[0]})", yscale="log")
            panels[2].legend(frameon=False, fontsize=5, ncol=2)
            panels[0].legend(frameon=False)
            figure.suptitle(equation)
            made.append(folder / f"calibration-{equation}.png")
            write_picture(figure, made[-1], dpi=110, tight=False)
    return made


def curves(swept: pd.DataFrame, folder: Path, target: str, logarithmic: bool) -> list[Path]:
    """Relative error of message passing against one option of the model, a line per cell."""
    plt = Drawing()
    made = []
    for equation, runs in swept.groupby("equation"):
        with plt.rc_context(STYLE):
            figure, panels = plt.subplots(1, 2, figsize=(7.0, 3.0), constrained_layout=True)
            for name, mine in runs.groupby("cell", observed=True):
                means = mine.groupby("value")[["exact_relative_l2", "exact_coverage90"]].mean()
                for panel, quantity in zip(panels, means, strict=True):
                    panel.plot(means.index, means[quantity], marker="o", ms=3, lw=1.0, label=name)
                lost = sorted(set(mine.loc[mine["collapsed"] > 0.0, "value"]))
                panels[0].plot(lost, [1.0] * len(lost), "x", color=ORANGE, ms=7)
            panels[0].set(yscale="log", ylabel="relative L2 error (x: collapsed)")
            panels[1].set(ylabel="90 % interval covers")
            for panel in panels:
                panel.set(xlabel=target.replace("-", " "), **({"xscale": "log"} if logarithmic else {}))
            panels[0].legend(frameon=False, fontsize=6)
            figure.suptitle(equation)
            made.append(folder / f"{target}-{equation}.png")
            write_picture(figure, made[-1], dpi=110, tight=False)
    return made


def width(records: Records, folder: Path) -> list[Path]:
    return curves(ablation(records, "width", WIDTHS, 1), folder, "width", False)


def residual_noise(records: Records, folder: Path) -> list[Path]:
    return curves(ablation(records, "residual_noise", NOISES, 0.05), folder, "residual-noise", True)


FIGURES: dict[str, Callable[[Records, Path], list[Path]]] = {
    "table1": story, "solutions": solutions, "gaussian-bump": gaussian_bump, "posteriors": posteriors, "pinn": pinn,
    "calibration": calibration, "width": width, "residual-noise": residual_noise,
}  # fmt: skip


def draw(targets: Sequence[str], records: Records, folder: Path) -> dict[str, list[Path]]:
    """The figures of the targets that have records."""
    return {target: FIGURES[target](records, folder) for target in targets if target in FIGURES and records.all}
