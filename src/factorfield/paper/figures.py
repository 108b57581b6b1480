"""The paper's figures from the records (extra `plot`): one function per target, which names the files it wrote."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from factorfield.paper.run import LEVELS
from factorfield.paper.tables import (
    EQUATIONS,
    Record,
    Records,
    against,
    cell,
    cells_of,
    collapsed,
    pairs,
    std_ratio,
)
from factorfield.show.style import BLACK, BLUE, ORANGE, Drawing

COLOURS = {"mean-field": BLUE, "joint": "#009E73", "hmc": BLACK, "vi": ORANGE, "sgd": "#CC79A7"}
STYLE = {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}
MARKERS = {"mean-field": "o", "joint": "s", "hmc": "^", "vi": "v", "sgd": "D"}


def maps(chosen: Sequence[Record], path: Path, title: str) -> Path:
    """Exact, mean, std and error, one row per record."""
    plt = Drawing()
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(
            len(chosen), 4, figsize=(8.0, 1.5 * len(chosen) + 0.5), constrained_layout=True, squeeze=False
        )
        for line, record in zip(panels, chosen, strict=True):
            coarse = record["results"]["coarse"]
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
            line[0].set_ylabel(f"{cell(record)}\nx")
        for panel, label in zip(panels[0], ("exact", "mean", "variance", "mean - exact"), strict=True):
            panel.set_title(label)
        for panel in panels[-1]:
            panel.set_xlabel("t")
        figure.suptitle(title)
        figure.savefig(path, dpi=110)
    return path


def first_rows(records: Sequence[Record]) -> list[Record]:
    """One record per cell: the lowest row."""
    ordered = sorted(records, key=lambda r: r["spec"]["row"])
    return [next(r for r in ordered if cell(r) == name) for name in cells_of(records)]


def solutions(records: Records, folder: Path) -> list[Path]:
    made = []
    advection = first_rows(records.pick(equation="advection", method="mean-field"))
    fisher = first_rows(records.pick(equation="fisher-kpp", method="mean-field"))
    if advection:
        made.append(maps(advection, folder / "solutions-advection.png", "advection over wave speeds"))
    middle = [r for r in fisher if r["spec"]["physics"]["nu"] == 1.0]
    if middle:
        made.append(
            maps(middle, folder / "solutions-fisher-kpp-nu1.png", "Fisher-KPP at nu = 1 over reaction strengths")
        )
    if fisher:
        made.append(maps(fisher, folder / "solutions-fisher-kpp.png", "Fisher-KPP, all settings"))
    return made


def gaussian_bump(records: Records, folder: Path) -> list[Path]:
    chosen = first_rows(records.pick(equation="fisher-kpp", method="mean-field", initial="bump"))
    return [maps(chosen, folder / "gaussian-bump.png", "Fisher-KPP from the Gaussian bump")] if chosen else []


def posteriors(records: Records, folder: Path) -> list[Path]:
    plt = Drawing()
    made = []
    for equation in EQUATIONS:
        names = [m for m in ("mean-field", "vi", "joint") if pairs(records, equation, m, "hmc")]
        if not names:
            continue
        with plt.rc_context(STYLE):
            figure, panels = plt.subplots(1, 3, figsize=(9.0, 3.0), constrained_layout=True)
            for name in names:
                both = pairs(records, equation, name, "hmc")
                style = {"color": COLOURS[name], "marker": MARKERS[name], "ls": "", "ms": 1.5, "alpha": 0.5}
                for index, (ours, theirs) in enumerate(both):
                    label = name if index == 0 else None
                    a, b = ours["results"], theirs["results"]
                    panels[0].plot(b["weight_mean"], a["weight_mean"], **style, label=label)
                    panels[1].plot(b["weight_std"], a["weight_std"], **style)
                where = cells_of(r for r, _ in both)
                x = [where.index(cell(r)) for r, _ in both]
                ratios = [std_ratio(a, b) for a, b in both]
                panels[2].plot(x, ratios, **{**style, "ms": 4, "alpha": 0.8})
                panels[2].set_xticks(range(len(where)), where, rotation=60, fontsize=6)
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
            figure.savefig(made[-1], dpi=110)
    return made


def pinn(records: Records, folder: Path) -> list[Path]:
    if not any(pairs(records, equation, "mean-field", "sgd") for equation in EQUATIONS):
        return []
    plt = Drawing()
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, 2, figsize=(7.0, 3.2), constrained_layout=True)
        for equation, marker, colour in (("advection", "o", BLUE), ("fisher-kpp", "^", ORANGE)):
            both = pairs(records, equation, "mean-field", "sgd")
            what = against(equation, [r for p in both for r in p])
            error = [(b["results"][what]["rmse"] ** 2, a["results"][what]["rmse"] ** 2) for a, b in both]
            residual = [(b["results"]["rms_residual"], a["results"]["rms_residual"]) for a, b in both]
            for panel, points in zip(panels, (error, residual), strict=True):
                if points:
                    panel.plot(*zip(*points, strict=True), marker, color=colour, ms=3, alpha=0.7, label=equation)
        for panel, label in zip(panels, ("MSE", "RMS residual"), strict=True):
            panel.set(xscale="log", yscale="log", xlabel=f"SGD {label}", ylabel=f"message passing {label}")
            low, high = panel.get_xlim()
            panel.plot((low, high), (low, high), color=BLACK, lw=0.6)
        panels[0].legend(frameon=False)
        path = folder / "pinn.png"
        figure.savefig(path, dpi=110)
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
                curve = np.mean([r["results"]["reliability"] for r in chosen], axis=0)
                panels[0].plot(LEVELS, curve, color=COLOURS[name], marker=MARKERS[name], ms=3, label=name)
                pit = np.mean([r["results"]["pit"] for r in chosen], axis=0)
                panels[1].stairs(pit * len(pit), np.linspace(0, 1, len(pit) + 1), color=COLOURS[name])
            for name in cells_of(records.pick(equation=equation, method=names[0])):
                mine = [r for r in records.pick(equation=equation, method=names[0]) if cell(r) == name]
                std = np.mean([r["results"]["std_over_time"] for r in mine], axis=0)
                last = mine[0]["results"]["coarse"]["t"][-1]
                panels[2].plot(np.linspace(0, last, len(std)), std, lw=0.9, label=name)
            panels[0].set(xlabel="nominal level", ylabel="share covered")
            panels[1].set(xlabel="probability integral transform", ylabel="density", yscale="log")
            panels[2].set(xlabel="t", ylabel=f"mean std ({names[0]})", yscale="log")
            panels[2].legend(frameon=False, fontsize=5, ncol=2)
            panels[0].legend(frameon=False)
            figure.suptitle(equation)
            made.append(folder / f"calibration-{equation}.png")
            figure.savefig(made[-1], dpi=110)
    return made


def curves(
    records: Records, folder: Path, target: str, key: str, values: Callable[[Record], float], logarithmic: bool
) -> list[Path]:
    """Relative error of message passing against one option of the model, a line per cell."""
    plt = Drawing()
    made = []
    for equation in EQUATIONS:
        kept = [
            r for r in records.all
            if r["spec"]["kind"] == "scores" and r["spec"]["equation"] == equation
            and r["spec"]["method"] == "mean-field" and not r["spec"]["options"] and r["spec"]["initial"] == "pdebench"
            and set(r["spec"]["model"]) <= {key}
        ]  # fmt: skip
        swept = {(cell(r), r["spec"]["row"]) for r in kept if key in r["spec"]["model"]}
        kept = [r for r in kept if (cell(r), r["spec"]["row"]) in swept]
        if not kept:
            continue
        with plt.rc_context(STYLE):
            figure, panels = plt.subplots(1, 2, figsize=(7.0, 3.0), constrained_layout=True)
            for name in cells_of(kept):
                mine = [r for r in kept if cell(r) == name]
                x = sorted({values(r) for r in mine})
                for panel, quantity in zip(panels, ("relative_l2", "coverage90"), strict=True):
                    y = [np.mean([r["results"]["exact"][quantity] for r in mine if values(r) == v]) for v in x]
                    panel.plot(x, y, marker="o", ms=3, lw=1.0, label=name)
                lost = [v for v in x if any(collapsed(r) for r in mine if values(r) == v)]
                panels[0].plot(lost, [1.0] * len(lost), "x", color=ORANGE, ms=7)
            panels[0].set(yscale="log", ylabel="relative L2 error (x: collapsed)")
            panels[1].set(ylabel="90 % interval covers")
            for panel in panels:
                panel.set(xlabel=key.replace("_", " "), **({"xscale": "log"} if logarithmic else {}))
            panels[0].legend(frameon=False, fontsize=6)
            figure.suptitle(equation)
            made.append(folder / f"{target}-{equation}.png")
            figure.savefig(made[-1], dpi=110)
    return made


def width(records: Records, folder: Path) -> list[Path]:
    return curves(records, folder, "width", "width", lambda r: float(r["spec"]["model"].get("width", 1)), False)


def residual_noise(records: Records, folder: Path) -> list[Path]:
    def noise(record: Record) -> float:
        return float(record["spec"]["model"].get("residual_noise", 0.05))

    return curves(records, folder, "residual-noise", "residual_noise", noise, True)


FIGURES: dict[str, Callable[[Records, Path], list[Path]]] = {
    "solutions": solutions, "gaussian-bump": gaussian_bump, "posteriors": posteriors, "pinn": pinn,
    "calibration": calibration, "width": width, "residual-noise": residual_noise,
}  # fmt: skip


def draw(targets: Sequence[str], records: Records, folder: Path) -> dict[str, list[Path]]:
    """The figures of the targets that have records."""
    drawn: dict[str, Any] = {}
    for target in targets:
        if target in FIGURES and records.all:
            drawn[target] = FIGURES[target](records, folder)
    return drawn
