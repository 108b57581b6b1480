"""Pictures of fields: maps of mean and std, slices with 90 % bands, residuals - for every shape of a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield.domain import TIME
from factorfield.formula import MathText, mathtext, symbol
from factorfield.plotting_style import BAND, BLACK, BLUE, ORANGE, SIGNED, SPREAD, VALUES
from factorfield.solution import Solution
from factorfield.views import Data, View, data_of, residuals

Array = NDArray[np.float64]
FRAMES = 4
NEAR = 0.01  # data this close to a slice, in lengths of the axis, are drawn on it
MOST_POINTS = 150


def label(name: str) -> str:
    """An axis' or field's name as a symbol."""
    return f"${symbol(name, MathText())}$"


# -- figures


def fields(plt: Any, solution: Solution, view: View) -> Any:
    """Maps of mean and std (lines where there is one axis, frames where there are three)."""
    if len(view.axes) == 1:
        return slices(plt, solution, view)
    if len(view.axes) == 2:
        return _maps(plt, solution, view)
    return _frames(plt, solution, view, [("mean", view.mean, VALUES), ("std", view.std, SPREAD)])


def slices(plt: Any, solution: Solution, view: View) -> Any:
    """The field along one axis at a few positions of the others: a row per field."""
    at_each = cuts(view)
    wide = 2.3 * len(at_each) if len(at_each) > 1 else 5.4
    figure, panels = plt.subplots(
        len(view.names), len(at_each), figsize=(wide + 0.5, 2.2 * len(view.names) + 0.9), squeeze=False, sharey="row",
        sharex=True, constrained_layout=True,
    )  # fmt: skip
    for row, name in enumerate(view.names):
        for column, at in enumerate(at_each):
            line(panels[row, column], solution, view, row, at)
            if row == 0:
                panels[row, column].set_title(", ".join(f"{label(n)} = {view.axes[n][i]:.3g}" for n, i in at.items()))
            if row < len(view.names) - 1:
                panels[row, column].set_xlabel("")
        panels[row, 0].set_ylabel(label(name))
    legend(figure, panels.ravel())
    return figure


def residual(plt: Any, solution: Solution, _: View) -> Any:
    """Left minus right side of each equation, and how uncertain it is."""
    shown = residuals(solution)
    if len(shown.axes) == 1:
        axis, x = next(iter(shown.axes.items()))
        figure, panels = plt.subplots(
            len(shown.names), 1, figsize=(5.6, 2.0 * len(shown.names) + 0.9), squeeze=False, sharex=True,
            constrained_layout=True,
        )  # fmt: skip
        for row, panel in enumerate(panels[:, 0]):
            _band(panel, x, shown.mean[row], shown.std[row])
            panel.axhline(0.0, color=BLACK, lw=0.6)
            panel.set(ylabel="left - right side")
            panel.set_title(mathtext(shown.names[row]), loc="left")
        panels[-1, 0].set_xlabel(label(axis))
        legend(figure, panels.ravel())
        return figure
    if len(shown.axes) > 2:
        return _frames(plt, solution, shown, [("residual", shown.mean, SIGNED), ("std", shown.std, SPREAD)])
    figure, panels = plt.subplots(
        len(shown.names), 2, figsize=(6.6, 2.5 * len(shown.names) + 0.4), squeeze=False, constrained_layout=True
    )
    for row in range(len(shown.names)):
        heat(figure, panels[row, 0], shown, shown.mean[row], SIGNED, least=1e-6 * float(shown.std[row].max()))
        heat(figure, panels[row, 1], shown, shown.std[row], SPREAD)
        panels[row, 0].set_title("residual, left - right side" if len(shown.names) == 1 else mathtext(shown.names[row]))
        panels[row, 1].set_title("its std")
    return figure


def _maps(plt: Any, solution: Solution, view: View) -> Any:
    rows = len(view.names)
    columns = 2 + (view.truth is not None)
    square = view.times is None
    figure, panels = plt.subplots(
        rows, columns, figsize=(3.1 * columns, (2.9 if square else 2.5) * rows + 0.4), squeeze=False,
        constrained_layout=True,
    )  # fmt: skip
    for row in range(rows):
        maps(figure, panels[row], solution, view, row)
    return figure


def maps(figure: Any, panels: Sequence[Any], solution: Solution, view: View, row: int) -> None:
    """Mean with the places of the data, std, and the error where the truth is known."""
    name = label(view.names[row])
    heat(figure, panels[0], view, view.mean[row], VALUES)
    heat(figure, panels[1], view, view.std[row], SPREAD)
    panels[0].set_title(f"posterior mean of {name}")
    panels[1].set_title(f"posterior std of {name}")
    if view.truth is not None:
        heat(figure, panels[2], view, view.mean[row] - view.truth[row], SIGNED)
        panels[2].set_title("mean - truth")
    _places(panels[0], solution, view, view.names[row])


def _frames(plt: Any, solution: Solution, view: View, quantities: Sequence[tuple[str, Array, str]]) -> Any:
    """Maps over space at a few times: a row per quantity of each field, one colour scale per row."""
    times = _spread(len(view.axes[TIME]), FRAMES)
    rows = len(quantities) * len(view.names)
    figure, panels = plt.subplots(
        rows, len(times), figsize=(2.1 * len(times) + 0.8, 2.0 * rows + 0.4), squeeze=False, sharex=True, sharey=True,
        constrained_layout=True,
    )  # fmt: skip
    for index in range(rows):
        which, (what, values, colours) = index // len(quantities), quantities[index % len(quantities)]
        for column, time in enumerate(times):
            panel = panels[index, column]
            limits = _limits(values[which], colours, least=1e-6 * float(view.std[which].max()))
            picture = _mesh(panel, view, values[which, time], colours, limits)
            if what == "mean":
                _places(panel, solution, view, view.names[which], float(view.axes[TIME][time]))
            panel.set(xlabel=label(view.space[0]) if index == rows - 1 else "")
            panel.locator_params(nbins=3)  # frames are small
            if index == 0:
                panel.set_title(f"{label(TIME)} = {view.axes[TIME][time]:.3g}")
        bar = figure.colorbar(picture, ax=list(panels[index]), shrink=0.85, aspect=15)
        field = view.names[which] in solution.problem.fields
        bar.set_label(f"{what} of {label(view.names[which])}" if field else what)
        panels[index, 0].set_ylabel(label(view.space[1]))
    return figure


# -- panels


def heat(figure: Any, panel: Any, view: View, values: Array, colours: str, least: float = 0.0) -> None:
    """A map over two axes with its colour bar: time runs to the right, or the first axis of space does.

    `least` is the smallest reach of a signed scale: rounding should not look like structure.
    """
    picture = _mesh(panel, view, values, colours, _limits(values, colours, least))
    across, up = view.axes
    panel.set(xlabel=label(across), ylabel=label(up))
    figure.colorbar(picture, ax=panel, shrink=0.9, aspect=15)


def _mesh(panel: Any, view: View, values: Array, colours: str, limits: Mapping[str, float]) -> Any:
    across, up = [view.axes[name] for name in list(view.axes)[-2:]]
    picture = panel.pcolormesh(across, up, values.T, cmap=colours, shading="nearest", rasterized=True, **limits)
    if TIME not in list(view.axes)[-2:]:
        panel.set_aspect("equal")
    for side in ("top", "right"):  # a map is a box
        panel.spines[side].set_visible(True)
    return picture


def _limits(values: Array, colours: str, least: float = 0.0) -> dict[str, float]:
    if colours == SIGNED:
        reach = max(float(np.nanmax(np.abs(values))), least) or 1.0
        return {"vmin": -reach, "vmax": reach}
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if colours == SPREAD:
        low = 0.0  # a std that hardly varies should look that way
    return {"vmin": low, "vmax": high if high > low else low + 1.0}


def _places(panel: Any, solution: Solution, view: View, name: str, time: float | None = None) -> None:
    """Where a field was measured (near a time, if one is given)."""
    across, up = list(view.axes)[-2:]
    near = {} if time is None else {TIME: (time, NEAR * solution.problem.domain[TIME].length)}
    for data in data_of(solution.problem):
        points = data.near(**near).points
        if data.field == name and len(points[across]):
            thin = max(1, len(points[across]) // (2 * MOST_POINTS))
            panel.plot(
                points[across][::thin], points[up][::thin], "o", mfc="white", mec=BLACK, mew=0.4, ms=2.4, clip_on=False
            )


def line(panel: Any, solution: Solution, view: View, row: int, at: Mapping[str, int]) -> None:
    """One slice: mean, 90 % band, truth if known, and the data that lie on it."""
    cut = view.pick(**{name: slice(index, index + 1) for name, index in at.items()})
    axis = next(name for name in view.axes if name not in at)
    x = view.axes[axis]
    _band(panel, x, cut.mean[row].ravel(), cut.std[row].ravel())
    if cut.truth is not None:
        panel.plot(x, cut.truth[row].ravel(), color=BLACK, lw=0.9, ls="--", label="truth")
    domain = solution.problem.domain
    where = {name: (float(view.axes[name][index]), NEAR * domain[name].length) for name, index in at.items()}
    where |= {name: (value, NEAR * domain[name].length) for name, value in view.fixed.items()}
    for data in data_of(solution.problem):
        if data.field == view.names[row]:
            _points(panel, data.near(**where), axis)
    panel.set(xlabel=label(axis))


def _band(panel: Any, x: Array, mean: Array, std: Array) -> None:
    panel.fill_between(x, mean - BAND * std, mean + BAND * std, color=BLUE, alpha=0.25, lw=0, label="90 % interval")
    panel.plot(x, mean, color=BLUE, label="mean")


def _points(panel: Any, data: Data, axis: str) -> None:
    thin = max(1, len(data.values) // MOST_POINTS)
    if len(data.values):
        panel.plot(data.points[axis][::thin], data.values[::thin], "o", color=ORANGE, ms=2.6, mew=0, label="data")


def legend(figure: Any, panels: Sequence[Any]) -> None:
    """One legend under the figure: every label that some panel has."""
    found: dict[str, Any] = {}
    for panel in panels:
        for handle, text in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(text, handle)
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncol=len(found))


# -- where to cut


def cuts(view: View, most: int = FRAMES) -> list[dict[str, int]]:
    """Positions along all axes but the one that a slice runs along (the first axis of space, or time alone)."""
    along = view.space[0] if view.space else TIME
    others = [name for name in view.axes if name != along]
    if not others:
        return [{}]
    first, *rest = others
    inner = {name: len(view.axes[name]) // 2 for name in rest}
    count = len(view.axes[first])
    where = _spread(count, most) if first == TIME else [round(share * (count - 1)) for share in (0.25, 0.5, 0.75)]
    return [{first: index, **inner} for index in where]


def _spread(count: int, most: int) -> list[int]:
    return sorted({round(index) for index in np.linspace(0, count - 1, min(most, count))})
