"""Pictures of a solution (extra `plot`): colour-blind-safe, readable in print, vector where the file name says so."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from factorfield.errors import ProblemError, expected, nearest
from factorfield.problem.coefficients import Table
from factorfield.show.checks import coefficients, reliability, trace
from factorfield.show.fields import checked, cuts, fields, label, legend, line, maps, place, residual, slices
from factorfield.show.formula import mathtext, vanishing
from factorfield.show.graph import graph
from factorfield.show.questions import plot_next, plot_ranking
from factorfield.show.sensors import history, sensors, sensors_of
from factorfield.show.style import (
    BLUE,
    ORANGE,
    SPREAD,
    STYLE,
    Drawing,
    check_picture,
    set_title,
    write_picture,
)
from factorfield.show.views import View, check_of, view
from factorfield.solution import Solution

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from factorfield.data.audit import Audit
    from factorfield.methods.compare import Contender

__all__ = [
    "KINDS", "check_kind", "check_picture", "plot", "plot_audit", "plot_comparison", "plot_next", "plot_ranking",
]  # fmt: skip


def summary(plt: Drawing, solution: Solution, shown: View) -> Figure:
    """Maps above, slices below, where one field over two axes leaves room for both; else the fields. Where sensors
    stand and no truth is known, their histories in place of slices.

    Beside the maps of mean and std: the error where the truth is known, else the measurements against predictions.
    """
    if len(shown.axes) != 2 or len(shown.names) > 1:
        return fields(plt, solution, shown)
    figure = plt.figure(figsize=(9.0, 5.6), constrained_layout=True)
    check = check_of(solution, shown.names[0]) if shown.truth is None else None
    count = 2 if shown.truth is None and check is None else 3  # panels above, of equal width
    grid = figure.add_gridspec(2, 6, height_ratios=[1.1, 1.0])
    wide = 6 // count
    above = [figure.add_subplot(grid[0, wide * index : wide * (index + 1)]) for index in range(count)]
    maps(above, solution, shown, 0)
    if check is not None:
        checked(above[2], check, shown.names[0], solution.problem.units)
    below: list[Axes] = []
    stand = sensors_of(solution, shown.names[0], 3) if shown.truth is None else []
    pieces = [] if stand else cuts(solution, shown, 3)
    for index in range(len(stand or pieces)):
        below.append(figure.add_subplot(grid[1, 2 * index : 2 * (index + 1)]))
        if stand:
            history(below[-1], solution, stand[index])
        else:
            line(below[-1], solution, pieces[index], 0)
            below[-1].set_title(place(solution, pieces[index]))
    below[0].set_ylabel(label(shown.names[0], solution.problem.units))
    legend(figure, below if solution.problem.shape is None else [*below, above[0]])
    return figure


KINDS: dict[str, Callable[[Drawing, Solution, View], Figure]] = {
    "summary": summary, "fields": fields, "slices": slices, "sensors": sensors, "residual": residual,
    "coefficients": coefficients, "trace": trace, "reliability": reliability, "graph": graph,
}  # fmt: skip


def check_kind(kind: str) -> str:
    if kind not in KINDS:
        raise expected("one of the pictures " + ", ".join(KINDS), kind, nearest(kind, KINDS, "'summary'"))
    return kind


def plot(
    solution: Solution, path: str | os.PathLike[str] | None = None, field: xr.Dataset | None = None,
    kind: str = "summary",
) -> Figure:  # fmt: skip
    """One picture of a solution: a Matplotlib figure, which a notebook shows, and its file if `path` is given.

    path    vector where the name says so (.pdf, .svg)
    field   a prediction that is already there, instead of one on the default grid
    kind    summary, fields (maps of mean and std), slices (90 % bands and data), sensors (value against time where
            they stand, forecast shaded), residual, coefficients (beside their priors), trace (convergence),
            reliability (where the truth is known), graph (the factor graph)
    """
    draw = KINDS[check_kind(kind)]
    target = None if path is None else check_picture(path)
    plt = Drawing()
    with plt.rc_context(STYLE):
        figure = draw(plt, solution, view(solution, field))
        set_title(figure, _title(solution))
        if target is not None:
            write_picture(figure, target)
    return figure


def _title(solution: Solution) -> list[str]:
    """Equations, known constants and estimated coefficients, a line each."""
    constants = solution.problem.constants.items()
    values = [f"{mathtext(name)} = {value:g}" for name, value in constants if not isinstance(value, Table)]
    texts = [mathtext(vanishing(equation.text)) for equation in solution.problem.equations]
    found = [f"{mathtext(name)} = {_estimate(p['mean'], p['std'])}" for name, p in solution.parameters.items()]
    return [*texts, *([f"({', '.join(values)})"] if values else []), *([", ".join(found)] if found else [])]


def _estimate(mean: float, std: float) -> str:
    """Mean and std to the same place, two digits of the std."""
    if not (1e-4 <= std < 1e5 and abs(mean) < 1e6):
        return rf"{mean:.3g} $\pm$ {std:.1g}"
    places = max(0, 1 - int(np.floor(np.log10(std))))
    return rf"{mean:.{places}f} $\pm$ {std:.{places}f}"


def plot_comparison(contenders: Sequence[Contender], path: str | os.PathLike[str]) -> None:
    """A column per method: std on one colour scale, and the field with its band at three times."""
    target = check_picture(path)
    plt = Drawing()
    with plt.rc_context({**STYLE, "font.size": 8}):
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
                    shown[slow], shown[fast], np.asarray(shown["std"]).T, cmap=SPREAD, vmin=0.0, vmax=top,
                    shading="nearest", rasterized=True,
                )  # fmt: skip
            else:
                panel.text(0.5, 0.5, "no std", ha="center", va="center", transform=panel.transAxes)
            units = contender.solution.problem.units
            panel.set(xlabel=label(slow, units), ylabel=label(fast, units), title=f"{contender.method}: std")
            last = shown.sizes[slow] - 1
            for row, position in enumerate((0, last // 2, last)):
                panel = panels[row + 1, column]
                piece = view(contender.solution, shown).pick(**{slow: slice(position, position + 1)})
                line(panel, contender.solution, piece, 0)
                panel.set_title(place(contender.solution, piece))
        figure.legend(*panels[1, 0].get_legend_handles_labels(), loc="outside lower center", ncol=4, frameon=False)
        if np.isfinite(top):
            figure.colorbar(picture, cax=panels[0, -1].inset_axes([1.04, 0.0, 0.05, 1.0]))
        set_title(figure, _title(contenders[0].solution))
        write_picture(figure, target)


def plot_audit(result: Audit, path: str | os.PathLike[str]) -> None:
    """Error against the reference and PDE residual over time, one line per row; defective rows in orange."""
    target = check_picture(path)
    plt = Drawing()
    with plt.rc_context(STYLE):
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
        write_picture(figure, target)
