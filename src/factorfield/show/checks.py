"""Pictures that judge a solution: coefficients beside their priors, convergence, reliability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.show.fields import label
from factorfield.show.style import BLACK, BLUE, GREY, Drawing
from factorfield.show.views import LEVELS, View, beliefs, density, needs_truth
from factorfield.solution import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
MEANING = {  # of the curves that methods leave in solution.trace
    "negative_log_joint": "negative log joint (nats)", "free_energy": "free energy (nats)",
    "max_kl": "largest KL between successive beliefs", "negative_bound": "negative evidence bound (nats)",
    "loss": "loss", "moved": "smoothed path moved by (sd)",
}  # fmt: skip
ENERGIES = ("negative_log_joint", "free_energy", "negative_bound")


def coefficients(plt: Drawing, solution: Solution, _: View) -> Figure:
    """Prior and posterior density of every unknown coefficient, with the 90 % interval."""
    found = beliefs(solution)
    if not found:
        raise expected("unknown coefficients", "a problem without ff.Unknown", "--kind fields")
    columns = min(len(found), 3)
    rows = -(-len(found) // columns)
    figure, panels = plt.subplots(
        rows, columns, figsize=(2.7 * columns + 0.4, 2.2 * rows + 0.6), squeeze=False, constrained_layout=True
    )
    for panel, (name, (prior, after, (low, high))) in zip(panels.ravel(), found.items(), strict=False):
        reach = np.linspace(after.mean - 5.0 * after.spread, after.mean + 5.0 * after.spread, 401)
        x = reach[reach > 0.0] if prior.positive else reach
        y = density(after, x)
        inside = (x >= low) & (x <= high)
        panel.fill_between(x[inside], y[inside], color=BLUE, alpha=0.25, lw=0, label="90 % interval")
        panel.plot(x, y, color=BLUE, label="posterior")
        panel.plot(x, density(prior, x), color=GREY, ls="--", label="prior")
        panel.set(xlabel=label(name, solution.problem.units), ylim=(0.0, None), yticks=[])
        panel.spines["left"].set_visible(False)
        panel.set_title(f"{after.mean:.4g} ± {after.std:.2g}")
    for panel in panels.ravel()[len(found) :]:
        panel.set_visible(False)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncol=3)
    return figure


def trace(plt: Drawing, solution: Solution, _: View) -> Figure:
    """What the method left in its trace: a curve per quantity; the windows of time where there are windows."""
    curves = _curves(solution.trace)
    edges = np.asarray(solution.settings.get("windows") or [], float)
    count = len(curves) + (len(edges) > 2)
    if count == 0:
        method = solution.settings.get("method", "this method")
        raise expected("a method that iterates", f"{method}: {solution.status.help}", "--kind residual")
    figure, panels = plt.subplots(1, count, figsize=(3.9 * count + 0.3, 2.9), squeeze=False, constrained_layout=True)
    for panel, (name, values) in zip(panels[0], curves.items(), strict=False):
        _curve(panel, name, values)
    if len(edges) > 2:
        panels[0, -1].stairs(np.diff(edges), edges, baseline=None, color=BLUE, lw=1.4)
        lengths = np.diff(edges)
        scale = {"yscale": "log"} if lengths.max() > 30.0 * lengths.min() else {"ylim": (0.0, 1.1 * lengths.max())}
        panels[0, -1].set(xlabel=label("t", solution.problem.units), ylabel="length of the window", **scale)
        said = [f"{solution.trace[key]} {word}" for key, word in _COUNTS.items() if key in solution.trace]
        panels[0, -1].set_title(", ".join(said))
    return figure


_COUNTS = {"windows": "windows", "iterations": "iterations", "rejected": "rejected"}


def _curves(trace: Mapping[str, object]) -> dict[str, Array]:
    found = {name: values for name, values in trace.items() if isinstance(values, list | tuple) and name != "passes"}
    plain = {n: values for n, values in found.items() if all(isinstance(value, int | float) for value in values)}
    curves = {name: np.asarray(values, float) for name, values in plain.items() if len(values) > 1}
    return {name: values for name, values in curves.items() if np.any(np.isfinite(values))}


def _curve(panel: Axes, name: str, values: Array) -> None:
    """Energies as what is left above the lowest one: their absolute level says nothing."""
    steps = np.arange(1, len(values) + 1)
    meaning = MEANING.get(name, name.replace("_", " "))
    if name in ENERGIES:
        panel.plot(steps[:-1], np.maximum(values - np.nanmin(values), 1e-12)[:-1], color=BLUE, marker="o", ms=3)
        panel.set(ylabel=f"{meaning}, above its least")
    else:
        panel.plot(steps, values, color=BLUE, marker="o" if len(steps) < 60 else None, ms=3)
        panel.set(ylabel=meaning)
    panel.set(xlabel="iteration", yscale="log" if name in ENERGIES or np.nanmin(values) > 0.0 else "linear")
    panel.locator_params(axis="x", integer=True)


def reliability(plt: Drawing, _: Solution, view: View) -> Figure:
    """How often intervals of each level hold the truth, and where in the predicted distribution it lies."""
    found = needs_truth(view)
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.6, 3.2), constrained_layout=True)
    left.plot((0, 1), (0, 1), color=BLACK, lw=0.7)
    left.plot((0.0, *LEVELS, 1.0), (0.0, *found.reliability, 1.0), color=BLUE, marker="o", ms=3)
    left.set(xlabel="level of the interval", ylabel="share of the truth inside", xlim=(0, 1), ylim=(0, 1.02))
    left.set_aspect("equal")
    pit = np.asarray(found.pit)
    right.stairs(pit * len(pit), np.linspace(0, 1, len(pit) + 1), fill=True, color=BLUE, alpha=0.35)
    right.axhline(1.0, color=BLACK, lw=0.7)
    right.set(xlabel="predicted probability of less than the truth", ylabel="density", xlim=(0, 1))
    scores = found.scores
    left.set_title(f"90 % intervals hold {100 * scores['coverage90']:.1f} %")
    right.set_title(f"RMSE {scores['rmse']:.2g}, CRPS {scores['crps']:.2g}")
    return figure
