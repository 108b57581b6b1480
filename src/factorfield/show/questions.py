"""Pictures of what is asked after a solution: probabilities of equations, and where a measurement tells most."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from factorfield.errors import expected
from factorfield.show.style import BLACK, BLUE, ORANGE, SPREAD, STYLE, Drawing, check_picture, write_picture

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure


def plot_ranking(found: xr.Dataset, path: str | os.PathLike[str] | None = None) -> Figure:
    """What `ff.rank` found: probabilities, most probable above, and each coefficient with its 90 % interval."""
    if "log_evidence" not in found:
        raise expected("what ff.rank returned", ", ".join(map(str, found)) or "nothing", "ff.rank({...})")
    target, plt = None if path is None else check_picture(path), Drawing()
    order = found.sortby("probability")
    names, rows = [str(name) for name in order["name"].values], np.arange(order.sizes["name"])
    coefficients = [str(name) for name in order["coefficient"].values]
    with plt.rc_context(STYLE):
        count = 1 + len(coefficients)
        figure, panels = plt.subplots(
            1, count, figsize=(3.2 + 2.2 * len(coefficients), 1.0 + 0.5 * len(names)), constrained_layout=True,
            squeeze=False, sharey=True,
        )  # fmt: skip
        first = panels[0, 0]
        first.barh(rows, order["probability"].values, color=BLUE, height=0.6)
        behind = order["log_evidence"].values - float(order["log_evidence"].max())
        texts = [f"{name}\n{level:.1f} nats" for name, level in zip(names, behind, strict=True)]
        first.set(xlabel="probability", xlim=(0.0, 1.0), yticks=rows, yticklabels=texts)
        for panel, name in zip(panels[0, 1:], coefficients, strict=True):
            one = order.sel(coefficient=name)
            ends = one["coefficient_lower"].values, one["coefficient_upper"].values
            panel.hlines(rows, *ends, color=BLUE, lw=2.0)
            panel.plot(one["coefficient_mean"].values, rows, "o", color=BLUE, ms=4)
            panel.set(xlabel=name)
        if target is not None:
            write_picture(figure, target)
    return figure


def plot_next(found: xr.Dataset, path: str | os.PathLike[str] | None = None) -> Figure:
    """What `solution.next_measurements` found: the share of the target's variance that one measurement would remove,
    wherever it is taken, with the places chosen in their order; beside it the std expected after each."""
    if "gain" not in found:
        received = ", ".join(map(str, found)) or "nothing"
        raise expected("what solution.next_measurements returned", received, "solution.next_measurements(10)")
    target, plt = None if path is None else check_picture(path), Drawing()
    with plt.rc_context(STYLE):
        figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.1), constrained_layout=True)
        _gains(figure, left, found)
        counted = np.arange(found.sizes["measurement"] + 1)
        right.plot(counted, np.append(float(found["std_now"]), found["std"].values), color=BLUE, marker="o", ms=3)
        right.set(xlabel="further measurements", ylabel=f"expected std of {found.attrs['target']}", ylim=(0.0, None))
        right.locator_params(axis="x", integer=True)
        if target is not None:
            write_picture(figure, target)
    return figure


def _gains(figure: Figure, panel: Axes, found: xr.Dataset) -> None:
    """A curve over one axis; over more the first two, others at the best place along them."""
    axes = [name.removeprefix("candidate_") for name in map(str, found.coords) if name.startswith("candidate_")]
    gain, places = found["gain"], [found[axis].values for axis in axes]
    numbers = [str(number) for number in found["measurement"].values]
    if len(axes) == 1:
        panel.plot(found[f"candidate_{axes[0]}"], gain.values, "." if gain.dims == ("candidate",) else "-", color=BLUE)
        heights = np.full(len(numbers), float(gain.max()))
        panel.plot(places[0], heights, "v", color=ORANGE, ms=4)
        panel.set(xlabel=axes[0], ylabel="share of variance removed", ylim=(0.0, None))
        return
    slow, fast = axes[:2]
    x, y = found[f"candidate_{slow}"].values, found[f"candidate_{fast}"].values
    drawn: ScalarMappable
    if gain.dims == ("candidate",):
        drawn = panel.scatter(x, y, c=gain.values, cmap=SPREAD, s=14, vmin=0.0)
    else:
        shown = gain.max([f"candidate_{axis}" for axis in axes[2:]])
        drawn = panel.pcolormesh(x, y, shown.values.T, cmap=SPREAD, shading="nearest", rasterized=True, vmin=0.0)
    figure.colorbar(drawn, ax=panel, label="share of variance removed")
    panel.plot(places[0], places[1], "o", mfc="white", mec=BLACK, ms=9, clip_on=False)
    for number, right, up in zip(numbers, places[0], places[1], strict=True):
        panel.annotate(number, (right, up), ha="center", va="center", fontsize=6)
    panel.set(xlabel=slow, ylabel=fast)
