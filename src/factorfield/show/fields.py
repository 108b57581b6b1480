"""Pictures of fields: maps of mean and std, slices with 90 % bands, residuals - for every shape of a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factorfield.problem.domain import TIME
from factorfield.problem.units import in_units
from factorfield.show.formula import MathText, mathtext, symbol
from factorfield.show.outline import outlines
from factorfield.show.style import BAND, BLACK, BLUE, ORANGE, SIGNED, SPREAD, VALUES, Drawing
from factorfield.show.views import Check, Data, View, cut, data_of, residuals
from factorfield.solution import Solution

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
FRAMES = 4
ON_SLICE, NEAR_SLICE = 0.01, 0.04  # data this close to a slice, in lengths of the axis, are drawn on it, or faintly
MOST_POINTS, MANY_POINTS = 150, 50
MOST_BESIDE = 4  # entries of a legend in one line
SHARES = (0.0, 0.25, 0.5, 1.0)  # of time: early, when most happens, and late
FINE = 200  # points along an axis that look smooth without being joined
USUAL = 99.0  # per cent: colours reach this far, so that a spike does not hide the rest


def label(name: str, units: Mapping[str, str] = MappingProxyType({})) -> str:
    """An axis' or field's name as a symbol, with its units where they are known."""
    return in_units(f"${symbol(name, MathText())}$", unit(units, name))


def unit(units: Mapping[str, str], name: str) -> str:
    return units.get(name, "").replace("$", r"\$")  # money is no formula


# -- figures


def fields(plt: Drawing, solution: Solution, view: View) -> Figure:
    """Maps of mean and std (lines where there is one axis, frames where there are three)."""
    if len(view.axes) == 1:
        return slices(plt, solution, view)
    if len(view.axes) == 2:
        return _maps(plt, solution, view)
    both = [("mean", view.mean, Scale(VALUES)), ("std", view.std, Scale(SPREAD, usual=True))]
    return _frames(plt, solution, view, both)


def slices(plt: Drawing, solution: Solution, view: View) -> Figure:
    """The field along one axis at a few positions of the others: a row per field, each panel on its own scale."""
    at_each = cuts(solution, view)
    wide = 2.3 * len(at_each) if len(at_each) > 1 else 5.4
    figure, panels = plt.subplots(
        len(view.names), len(at_each), figsize=(wide + 0.5, 2.2 * len(view.names) + 0.9), squeeze=False, sharex=True,
        constrained_layout=True,
    )  # fmt: skip
    for row, name in enumerate(view.names):
        for panel, piece in zip(panels[row], at_each, strict=True):
            line(panel, solution, piece, row)
            if row == 0:
                panel.set_title(place(solution, piece))
            if row < len(view.names) - 1:
                panel.set_xlabel("")
        panels[row, 0].set_ylabel(label(name, solution.problem.units))
    legend(figure, panels.ravel())
    return figure


def residual(plt: Drawing, solution: Solution, _: View) -> Figure:
    """Left minus right side of each equation, and how uncertain it is."""
    shown = residuals(solution)
    if len(shown.axes) == 1:
        axis, x = next(iter(shown.axes.items()))
        figure, panels = plt.subplots(
            len(shown.names), 1, figsize=(5.6, 2.0 * len(shown.names) + 0.9), squeeze=False, sharex=True,
            constrained_layout=True,
        )  # fmt: skip
        for row, panel in enumerate(panels[:, 0]):
            band(panel, x, shown.mean[row], shown.std[row])
            panel.axhline(0.0, color=BLACK, lw=0.6)
            reach = _usual(np.abs(shown.mean[row]) + BAND * np.nan_to_num(shown.std[row]))
            panel.set_ylim(-1.1 * reach, 1.1 * reach)
            panel.set(ylabel="left - right side")
            panel.set_title(mathtext(shown.names[row]), loc="left")
        panels[-1, 0].set_xlabel(label(axis, solution.problem.units))
        legend(figure, panels.ravel())
        return figure
    if len(shown.axes) > 2:
        both = [("residual", shown.mean, Scale(SIGNED, usual=True)), ("std", shown.std, Scale(SPREAD, usual=True))]
        return _frames(plt, solution, shown, both)
    figure, panels = plt.subplots(
        len(shown.names), 2, figsize=(6.6, 2.5 * len(shown.names) + 0.4), squeeze=False, constrained_layout=True
    )
    for row in range(len(shown.names)):
        least, units = 1e-6 * _most(shown.std[row]), solution.problem.units
        heat(panels[row, 0], shown, shown.mean[row], Scale(SIGNED, least, usual=True), units)
        heat(panels[row, 1], shown, shown.std[row], Scale(SPREAD, usual=True), units)
        walls(panels[row, 0], solution, shown)
        panels[row, 0].set_title("residual, left - right side" if len(shown.names) == 1 else mathtext(shown.names[row]))
        panels[row, 1].set_title("its std")
    return figure


def _maps(plt: Drawing, solution: Solution, view: View) -> Figure:
    rows = len(view.names)
    columns = 2 + (view.truth is not None)
    square = view.times is None
    figure, panels = plt.subplots(
        rows, columns, figsize=(3.1 * columns, (2.9 if square else 2.5) * rows + 0.4), squeeze=False,
        constrained_layout=True,
    )  # fmt: skip
    for row in range(rows):
        maps(panels[row], solution, view, row)
    if solution.problem.shape is not None:
        legend(figure, panels[0, :1])
    return figure


def maps(panels: Sequence[Axes], solution: Solution, view: View, row: int) -> None:
    """Mean with the places of the data, std, and the error where the truth is known."""
    name, units = label(view.names[row]), solution.problem.units
    heat(panels[0], view, view.mean[row], Scale(VALUES), units, of=view.names[row])
    heat(panels[1], view, view.std[row], Scale(SPREAD, usual=True), units, of=view.names[row])
    panels[0].set_title(f"posterior mean of {name}")
    panels[1].set_title(f"posterior std of {name}")
    if view.truth is not None:
        heat(panels[2], view, view.mean[row] - view.truth[row], Scale(SIGNED), units, of=view.names[row])
        panels[2].set_title("mean - truth")
    walls(panels[0], solution, view)
    _places(panels[0], solution, view, view.names[row])


def walls(panel: Axes, solution: Solution, view: View) -> None:
    """The outline of a region, where the map shows its plane."""
    shape = solution.problem.shape
    if shape is None or tuple(view.axes)[-2:] != shape.axes:
        return
    for outline in outlines(solution.problem):
        for index, points in enumerate(outline.lines):
            (drawn,) = panel.plot(*points.T, color=outline.colour, lw=1.4, solid_capstyle="round", clip_on=False)
            drawn.set_label(outline.label if index == 0 else "_")  # one entry of the legend for all of its lines


def _frames(plt: Drawing, solution: Solution, view: View, quantities: Sequence[tuple[str, Array, Scale]]) -> Figure:
    """Maps over space at a few times: a row per quantity of each field, one colour scale per row."""
    last, units = len(view.axes[TIME]) - 1, solution.problem.units
    times = sorted({round(share * last) for share in SHARES})
    rows = len(quantities) * len(view.names)
    figure, panels = plt.subplots(
        rows, len(times), figsize=(2.1 * len(times) + 0.8, 2.0 * rows + 0.4), squeeze=False, sharex=True, sharey=True,
        constrained_layout=True,
    )  # fmt: skip
    for index in range(rows):
        which, (what, values, scale) = index // len(quantities), quantities[index % len(quantities)]
        limits = replace(scale, least=1e-6 * _most(view.std[which])).limits(values[which])
        for column, time in enumerate(times):
            panel = panels[index, column]
            picture = _mesh(panel, view, values[which, time], scale.colours, limits)
            if what == "mean":
                walls(panel, solution, view)
                _places(panel, solution, view, view.names[which], float(view.axes[TIME][time]))
            panel.set(xlabel=label(view.space[0], units) if index == rows - 1 else "")
            panel.locator_params(nbins=3)  # frames are small
            if index == 0:
                panel.set_title(place(solution, view.pick(t=slice(time, time + 1)), [TIME]))
        extend = _beyond(values[which], limits)
        bar = figure.colorbar(picture, ax=list(panels[index]), shrink=0.85, aspect=15, extend=extend)
        field = view.names[which] in solution.problem.fields
        bar.set_label(f"{what} of {label(view.names[which], units)}" if field else what)
        panels[index, 0].set_ylabel(label(view.space[1], units))
    if solution.problem.shape is not None:
        legend(figure, panels[0, :1])
    return figure


# -- panels


@dataclass(frozen=True)
class Scale:
    """A colour map and how far its colours reach.

    `least` is the smallest reach of a signed scale: rounding should not look like structure; `usual` lets colours end
    where a spike begins.
    """

    colours: str
    least: float = 0.0
    usual: bool = False

    def limits(self, values: Array) -> tuple[float, float]:
        known = values[np.isfinite(values)]
        if not known.size:  # a method without a std
            return 0.0, 1.0
        most = _usual if self.usual else np.max
        if self.colours == SIGNED:
            reach = max(float(most(np.abs(known))), self.least) or 1.0
            return -reach, reach
        # a std that hardly varies should look that way
        low, high = 0.0 if self.colours == SPREAD else float(known.min()), float(most(known))
        return low, high if high > low else low + 1.0


def heat(panel: Axes, view: View, values: Array, scale: Scale, units: Mapping[str, str], of: str = "") -> None:
    """A map over two axes with its colour bar: time runs to the right, or the first axis of space does.

    `of` names what has the values' units.
    """
    limits = scale.limits(values)
    picture = _mesh(panel, view, values, scale.colours, limits)
    across, up = view.axes
    panel.set(xlabel=label(across, units), ylabel=label(up, units))
    beside = panel.inset_axes((1.04, 0.0, 0.05, 1.0))  # as high as the map, whatever its shape
    bar = panel.figure.colorbar(picture, cax=beside, extend=_beyond(values, limits))
    bar.set_label(unit(units, of))


def _mesh(panel: Axes, view: View, values: Array, colours: str, limits: tuple[float, float]) -> QuadMesh:
    across, up = [view.axes[name] for name in list(view.axes)[-2:]]
    smooth = min(len(across), len(up)) > 1 and len(across) + len(up) < 2 * FINE and not _is_cut(values)
    picture = panel.pcolormesh(
        across, up, values.T, cmap=colours, vmin=limits[0], vmax=limits[1],
        shading="gouraud" if smooth else "nearest", rasterized=True,
    )  # fmt: skip
    if TIME not in list(view.axes)[-2:]:
        panel.set_aspect("equal")
    for side in ("top", "right"):  # a map is a box
        panel.spines[side].set_visible(True)
    return picture


def _is_cut(values: Array) -> bool:
    """Is a part of a map missing, outside a region? Colours cannot be joined over its edge."""
    return bool(0 < np.isnan(values).sum() < values.size)


def _most(values: Array) -> float:
    """The largest that is a number; 0 if none is."""
    return float(np.max(values, initial=0.0, where=np.isfinite(values)))


def _usual(sizes: Array) -> float:
    """The largest of these sizes, or what nearly all stay below if the largest is far beyond it."""
    largest, most = float(np.max(sizes)), float(np.percentile(sizes, USUAL))
    return 1.2 * most if 0.0 < most < largest / 3.0 else largest


def _beyond(values: Array, limits: tuple[float, float]) -> str:
    """Arrows at the ends of a colour bar that some values lie beyond."""
    below, above = bool(np.any(values < limits[0])), bool(np.any(values > limits[1]))
    return {(True, True): "both", (True, False): "min", (False, True): "max"}.get((below, above), "neither")


def checked(panel: Axes, check: Check, name: str, units: Mapping[str, str]) -> None:
    """Every measured value beside the 90 % interval that the solution gives a measurement there."""
    low, high = check.mean - BAND * check.std, check.mean + BAND * check.std
    held = (low <= check.measured) & (check.measured <= high)
    ends = (float(min(low.min(), check.measured.min())), float(max(high.max(), check.measured.max())))
    panel.plot(ends, ends, color=BLACK, lw=0.7)
    thin = max(1, len(held) // MOST_POINTS)
    panel.vlines(check.measured[::thin], low[::thin], high[::thin], color=BLUE, lw=0.8, alpha=0.5)
    panel.plot(check.measured[::thin], check.mean[::thin], "o", color=BLUE, ms=2.6, mew=0)
    panel.set(xlabel=f"measured {label(name, units)}", ylabel="predicted, 90 % bars")
    panel.set_title(f"{held.sum()} of {len(held)} data in 90 % bars")


def _places(panel: Axes, solution: Solution, view: View, name: str, time: float | None = None) -> None:
    """Where a field was measured (near a time, if one is given)."""
    across, up = list(view.axes)[-2:]
    near = {} if time is None else {TIME: (time, ON_SLICE * solution.problem.domain[TIME].length)}
    for data in data_of(solution.problem):
        points = data.near(**near).points
        if data.field == name and len(points[across]):
            thin = max(1, len(points[across]) // (2 * MOST_POINTS))
            size, edge = (2.4, 0.4) if len(points[across]) < MANY_POINTS else (1.3, 0.0)  # many do not hide the map
            panel.plot(
                points[across][::thin], points[up][::thin], "o", mfc="white", mec=BLACK, mew=edge, ms=size,
                clip_on=False,
            )  # fmt: skip


def line(panel: Axes, solution: Solution, piece: View, row: int) -> None:
    """One slice (a view with one position on all axes but one): mean, 90 % band, truth if known, data close to it."""
    axis = along(piece)
    x = piece.axes[axis]
    band(panel, x, piece.mean[row].ravel(), piece.std[row].ravel())
    if piece.truth is not None:
        panel.plot(x, piece.truth[row].ravel(), color=BLACK, lw=0.9, ls="--", label="truth")
    position = {name: float(at[0]) for name, at in piece.axes.items() if name != axis} | dict(piece.fixed)
    near, nearby = (
        {name: (value, reach * solution.problem.domain[name].length) for name, value in position.items()}
        for reach in (ON_SLICE, NEAR_SLICE)
    )
    for data in data_of(solution.problem):
        if data.field == piece.names[row]:
            points(panel, data.between(near, nearby), axis, "data nearby", 0.35)
            points(panel, data.near(**near), axis, "data", 1.0)
    panel.set(xlabel=label(axis, solution.problem.units))


def place(solution: Solution, piece: View, names: Sequence[str] = ()) -> str:
    """Where a slice lies: "t = 0.25 s"."""
    units, names = solution.problem.units, names or [name for name in piece.axes if name != along(piece)]
    return ", ".join(f"{label(n)} = {float(piece.axes[n][0]):.4g} {unit(units, n)}".strip() for n in names)


def band(panel: Axes, x: Array, mean: Array, std: Array) -> None:
    panel.fill_between(x, mean - BAND * std, mean + BAND * std, color=BLUE, alpha=0.25, lw=0, label="90 % interval")
    panel.plot(x, mean, color=BLUE, label="mean")


def points(panel: Axes, data: Data, axis: str, name: str, strength: float) -> None:
    """Data under the curve; many of them smaller and fainter, so that they do not bury it."""
    thin = max(1, len(data.values) // MOST_POINTS)
    x, values = data.points[axis][::thin], data.values[::thin]
    if len(values):
        size, fade = (2.6, 1.0) if len(values) < MANY_POINTS else (1.9, 0.55)
        panel.plot(x, values, "o", color=ORANGE, ms=size, mew=0, alpha=fade * strength, zorder=1.5, label=name)


def legend(figure: Figure, panels: Sequence[Axes]) -> None:
    """One legend under the figure: every label that some panel has."""
    found: dict[str, Artist] = {}
    for panel in panels:
        for handle, text in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(text, handle)
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncol=min(len(found), MOST_BESIDE))


# -- where to cut


def along(view: View) -> str:
    """The axis that slices run along: the first one of space, or time alone."""
    return view.space[0] if view.space else TIME


def cuts(solution: Solution, view: View, most: int = FRAMES) -> list[View]:
    """Slices along one axis at round positions of the others."""
    others = [name for name in view.axes if name != along(view)]
    if not others:
        return [view]
    first, *rest = others
    ends = {name: (float(view.axes[name][0]), float(view.axes[name][-1])) for name in others}
    shares = ((0.0, 0.5, 1.0) if most < FRAMES else SHARES) if first == TIME else (0.25, 0.5, 0.75)
    middle = {name: 0.5 * sum(ends[name]) for name in rest}
    positions = [ends[first][0] + share * (ends[first][1] - ends[first][0]) for share in shares]
    return [cut(solution, view, {first: position, **middle}) for position in positions]
