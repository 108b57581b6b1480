"""Pictures of a solution (extra `plot`): colour-blind-safe, readable in print, vector where the file name says so."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from factorfield.domain import TIME
from factorfield.errors import ProblemError, needed
from factorfield.problem import Observations
from factorfield.solution import Solution, check_writable

if TYPE_CHECKING:
    import xarray as xr

    from factorfield.compare import Contender
    from factorfield.data.audit import Audit

BLUE, ORANGE, BLACK = "#0072B2", "#D55E00", "#222222"  # Okabe-Ito
BAND = 1.645


def pyplot() -> Any:
    """Matplotlib without a screen, or one line on how to get it."""
    matplotlib = needed("matplotlib", "plot")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def check_picture(path: str | os.PathLike[str]) -> Path:
    """Refuse a picture that could not be written - before a solve, not after it."""
    target = check_writable(path)
    formats = pyplot().figure().canvas.get_supported_filetypes()
    pyplot().close("all")
    suffix = target.suffix.lstrip(".").lower()
    if suffix not in formats:
        raise ProblemError(f"expected a picture format such as png, pdf or svg, received {target.name}; try run.png")
    return target


def plot(solution: Solution, path: str | os.PathLike[str], field: xr.Dataset | None = None) -> None:
    """The solution as one figure: maps of mean and std, and slices in time with 90 % bands, data and truth."""
    target = check_picture(path)
    plt = pyplot()
    shown = solution.posterior.predict(solution.default_grid()) if field is None else field
    if "field" in shown.dims:
        shown = shown.isel(field=0)
    axes = [str(name) for name in shown["mean"].dims]
    with plt.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "svg.fonttype": "none"}):
        if len(axes) == 1:
            figure, panel = plt.subplots(figsize=(5.0, 3.2), constrained_layout=True)
            _line(panel, solution, shown, axes[0], None, legend=True)
        elif len(axes) == 2:
            figure = _two_axes(plt, solution, shown, axes)
        else:
            raise ProblemError(
                f"expected a field over one or two axes, received {len(axes)}; try predict() and a slice"
            )
        figure.suptitle(_title(solution), fontsize=10)
        figure.savefig(target, dpi=160)
        plt.close(figure)


def _title(solution: Solution) -> str:
    problem = solution.problem
    values = ", ".join(f"{name} = {value:g}" for name, value in problem.constants.items())
    text = "; ".join(e.text for e in problem.equations)
    return f"{text}" + (f"   ({values})" if values else "")


def _two_axes(plt: Any, solution: Solution, shown: xr.Dataset, axes: list[str]) -> Any:
    slow, fast = axes
    figure = plt.figure(figsize=(9.0, 5.2), constrained_layout=True)
    grid = figure.add_gridspec(2, 3, height_ratios=[1.1, 1.0])
    truth = solution.problem.truth
    maps = [("posterior mean", shown["mean"], "viridis"), ("posterior std", shown["std"], "cividis")]
    if truth is not None and truth.shape == shown["mean"].shape:
        maps.append(("mean - truth", shown["mean"] - truth.transpose(*axes), "RdBu_r"))
    for index, (label, values, colours) in enumerate(maps):
        panel = figure.add_subplot(grid[0, index])
        limits = {}
        if colours == "RdBu_r":
            reach = float(np.abs(values).max()) or 1.0
            limits = {"vmin": -reach, "vmax": reach}
        picture = panel.pcolormesh(
            shown[slow], shown[fast], np.asarray(values).T, cmap=colours, shading="nearest", rasterized=True, **limits
        )
        panel.set(xlabel=slow, ylabel=fast, title=label)
        figure.colorbar(picture, ax=panel, shrink=0.9)
    count = shown.sizes[slow]
    for index, position in enumerate((0, count // 2, count - 1)):
        _line(figure.add_subplot(grid[1, index]), solution, shown, fast, (slow, position), legend=index == 0)
    return figure


def _line(
    panel: Any, solution: Solution, shown: xr.Dataset, axis: str, at: tuple[str, int] | None, legend: bool
) -> None:
    """One slice: mean, 90 % band, truth if known, and the data that lie on it."""
    cut = shown if at is None else shown.isel({at[0]: at[1]})
    x, mean, std = (np.asarray(cut[name], float) for name in (axis, "mean", "std"))
    panel.fill_between(x, mean - BAND * std, mean + BAND * std, color=BLUE, alpha=0.25, lw=0, label="90 % interval")
    panel.plot(x, mean, color=BLUE, lw=1.4, label="mean")
    truth = solution.problem.truth
    if truth is not None and truth.shape == shown["mean"].shape:
        exact = truth.transpose(*shown["mean"].dims)
        exact = exact if at is None else exact.isel({at[0]: at[1]})
        panel.plot(x, np.asarray(exact), color=BLACK, lw=0.9, ls="--", label="truth")
    value = None if at is None else float(shown[at[0]][at[1]])
    _data(panel, solution, axis, None if at is None else at[0], value)
    panel.set(xlabel=axis, ylabel=str(shown.attrs.get("of", "u")))
    if at is not None:
        panel.set_title(f"{at[0]} = {value:.3g}")
    if legend:
        panel.legend(frameon=False, fontsize=7, loc="best")


def _data(panel: Any, solution: Solution, axis: str, fixed: str | None, value: float | None) -> None:
    for condition in solution.problem.conditions:
        if not isinstance(condition, Observations) or condition.of is not None:
            continue
        columns = {key: np.atleast_1d(np.asarray(values, float)) for key, values in condition.columns.items()}
        name = next(key for key in columns if key not in solution.problem.domain)
        columns = dict(zip(columns, np.broadcast_arrays(*columns.values()), strict=True))
        on_slice = np.ones(len(columns[name]), bool)
        if fixed is not None and value is not None:
            width = solution.problem.domain[fixed].length
            on_slice = np.abs(columns[fixed] - value) < (1e-6 if fixed == TIME else 1e-3) * width
        thin = max(1, int(on_slice.sum()) // 128)
        panel.plot(
            columns[axis][on_slice][::thin], columns[name][on_slice][::thin], ".", color=ORANGE, ms=3, label="data"
        )


def plot_comparison(contenders: Sequence[Contender], path: str | os.PathLike[str]) -> None:
    """A column per method: std on one colour scale, and the field with its band at three times."""
    target = check_picture(path)
    plt = pyplot()
    style = {"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(style):
        count = len(contenders)
        size = (2.4 * count + 0.8, 6.6)
        figure, panels = plt.subplots(4, count, figsize=size, constrained_layout=True, squeeze=False)
        axes = [str(name) for name in contenders[0].field["mean"].dims]
        if len(axes) != 2:
            raise ProblemError(f"expected a field over two axes, received {len(axes)}; try leaving --plot out")
        slow, fast = axes
        top = float(np.nanmax([np.nanmax(np.append(c.field["std"], -np.inf)) for c in contenders]))
        for column, contender in enumerate(contenders):
            shown, panel = contender.field, panels[0, column]
            known = bool(np.isfinite(shown["std"]).all())
            if known:
                picture = panel.pcolormesh(
                    shown[slow], shown[fast], np.asarray(shown["std"]).T, cmap="cividis", vmin=0.0, vmax=top,
                    shading="nearest", rasterized=True,
                )  # fmt: skip
            else:
                panel.text(0.5, 0.5, "no std", ha="center", va="center", transform=panel.transAxes)
            panel.set(xlabel=slow, ylabel=fast, title=f"{contender.method}: std")
            last = shown.sizes[slow] - 1
            for row, position in enumerate((0, last // 2, last)):
                _line(panels[row + 1, column], contender.solution, shown, fast, (slow, position), legend=False)
        figure.legend(*panels[1, 0].get_legend_handles_labels(), loc="outside lower center", ncol=4, frameon=False)
        if np.isfinite(top):
            figure.colorbar(picture, ax=panels[0, :], shrink=0.9)
        figure.suptitle(_title(contenders[0].solution), fontsize=10)
        figure.savefig(target, dpi=160)
        plt.close(figure)


def plot_audit(result: Audit, path: str | os.PathLike[str]) -> None:
    """Error against the reference and PDE residual over time, one line per row; defective rows in orange."""
    target = check_picture(path)
    plt = pyplot()
    with plt.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure, (left, right) = plt.subplots(1, 2, figsize=(8.0, 3.2), constrained_layout=True)
        for row in result.rows:
            colour = BLUE if row.verdict == "ok" else ORANGE
            left.plot(result.times[1:], np.maximum(row.errors[1:], 1e-12), color=colour, lw=0.9)
            right.plot(result.times[1:], np.maximum(row.residual, 1e-12), color=colour, lw=0.9)
            if row.frozen_from is not None:
                left.axvline(row.frozen_from, color=ORANGE, lw=0.6, ls=":")
        left.set(yscale="log", xlabel="t", ylabel="relative error", title="against an independent solution")
        right.set(yscale="log", xlabel="t", ylabel="RMS residual", title="PDE residual of the stored field")
        verdict = ", ".join(result.defects) or "no defect"
        physics = ", ".join(f"{name} = {value:g}" for name, value in result.physics.items())
        figure.suptitle(f"{result.equation}, {physics}: {verdict}", fontsize=10)
        figure.savefig(target, dpi=160)
        plt.close(figure)
