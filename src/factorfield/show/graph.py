"""The factor graph of a problem: weights, the jets that each group of factors reads, factors, what was observed.

White circles are hidden, grey ones observed, black squares are factors; a frame repeats once per point. Blue frames
hold what was measured or stated on a face, orange ones what the equation asks (the paper's first figure).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from factorfield.problem.problem import Statement
from factorfield.show.formula import MathText, mathtext, symbol
from factorfield.show.style import BLACK, BLUE, GREY, ORANGE, Drawing
from factorfield.show.views import View, chosen_sigmas, kind_of
from factorfield.solution import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RADIUS, STEP, PADDING, GAP = 0.2, 0.48, 0.17, 0.16  # of a node, between nodes, within and between frames: inches
WEIGHTS_AT, JETS_AT, FACTOR_AT, SEEN_AT, TEXT_AT = 0.75, 2.35, 3.4, 4.1, 4.75
MOST_ROWS = 14


@dataclass(frozen=True)
class Group:
    """Factors that say the same thing, at points, on faces or everywhere."""

    kind: str
    title: str
    formula: str
    jets: tuple[str, ...]
    fields: tuple[str, ...]
    coefficients: tuple[str, ...]
    seen: str
    notes: tuple[str, ...]


def graph(plt: Drawing, solution: Solution, _: View) -> Figure:
    groups = factor_groups(solution)
    heights = [max(0.44, STEP * (len(group.jets) - 1)) + 2 * (RADIUS + PADDING) for group in groups]
    ends = np.cumsum([height + GAP for height in heights])
    centres = [float(end - 0.5 * height) for end, height in zip(ends, heights, strict=True)]
    high = float(ends[-1]) + 0.45
    figure = plt.figure(figsize=(TEXT_AT + 2.2, high))
    panel = figure.add_axes((0.0, 0.0, 1.0, 0.94))
    panel.set(xlim=(0.0, TEXT_AT + 2.2), ylim=(-high, 0.0), aspect="equal", anchor="NW")
    panel.axis("off")
    roots = _weight_heights(solution, 0.5 * (centres[0] + centres[-1]))
    for name, y in roots.items():
        _prior(panel, name, y, weights=name not in solution.problem.unknowns)
    for group, y, height in zip(groups, centres, heights, strict=True):
        _row(panel, group, -y, height, roots)
    size = solution.posterior.representation.size
    windows = solution.trace.get("windows")
    of_time = "1 window" if windows == 1 else f"each of {windows} windows"
    held = f"{size} weights" + (f" in {of_time} of time" if windows else "")
    panel.text(0.0, -high + 0.1, held, fontsize=8, color=GREY, va="bottom")
    return figure


# -- what there is to draw


def factor_groups(solution: Solution) -> list[Group]:
    """The problem's statements, those that differ only in their face or points as one."""
    merged: dict[tuple[str, str], list[Statement]] = {}
    for statement in solution.problem.statements:
        merged.setdefault((kind_of(statement), statement.relation.text), []).append(statement)
    return [_group(solution, kind, same) for (kind, _), same in merged.items()][:MOST_ROWS]


def _group(solution: Solution, kind: str, same: Sequence[Statement]) -> Group:
    first = same[0]
    relation = first.relation
    unknown = tuple(name for name in relation.parameters if name in solution.problem.unknowns)
    jets = tuple(str(s) for s in sorted(relation.jets, key=lambda s: (len(str(s)), str(s))))
    title = first.name.split(":")[0].split(" (")[0] if kind != "data" else "data"
    seen = "data" if kind == "data" else "0"
    written = mathtext(relation.text) + ("" if "=" in relation.text else f" = {seen}")
    return Group(
        kind, title, written, jets, relation.fields, unknown, seen, (_where(solution, same), _sigma(solution, same))
    )  # fmt: skip


def _where(solution: Solution, same: Sequence[Statement]) -> str:
    if same[0].points is not None:
        count = sum(len(statement.target) for statement in same)
        return f"{count} measurement" + ("s" if count > 1 else "")
    if same[0].face is None:
        counts = solution.settings.get("collocation")
        points = int(np.prod(list(counts.values()))) if counts else 0
        return f"at {points} points of the domain" if points else "at collocation points of every window"
    if same[0].wall is not None:
        return "on the boundary"
    faces = [", ".join(f"{name} = {value:g}" for name, value in (s.face or {}).items()) for s in same]
    return "at " + "; ".join(faces)


def _sigma(solution: Solution, same: Sequence[Statement]) -> str:
    """The noise as given, or as chosen where the settings say so."""
    given = [np.asarray(statement.sigma, float) for statement in same if statement.sigma is not None]
    if given:
        low, high = min(float(g.min()) for g in given), max(float(g.max()) for g in given)
        return f"$\\sigma$ = {low:.3g}" + ("" if low == high else f" to {high:.3g}")
    chosen = chosen_sigmas(solution)
    found = [chosen[statement.name] for statement in same if statement.name in chosen]
    return f"$\\sigma$ = {max(found):.2g} (chosen)" if found else "$\\sigma$ by the model"


def _weight_heights(solution: Solution, middle: float) -> dict[str, float]:
    """Where the weights of fields and functions and the unknown coefficients stand: around the middle of the groups."""
    names = [*solution.problem.fields, *solution.problem.functions, *solution.problem.unknowns]
    offsets = 0.75 * (np.arange(len(names)) - 0.5 * (len(names) - 1))
    return {name: -middle - float(offset) for name, offset in zip(names, offsets, strict=True)}


# -- drawing


def _row(panel: Axes, group: Group, y: float, height: float, roots: dict[str, float]) -> None:
    from matplotlib.patches import FancyBboxPatch

    colour = ORANGE if group.kind == "equation" else BLUE
    low, high = JETS_AT - RADIUS - PADDING, SEEN_AT + RADIUS + PADDING
    shape = "round,pad=0,rounding_size=0.1"
    panel.add_patch(
        FancyBboxPatch((low, y - height / 2), high - low, height, shape, fc=colour, alpha=0.1, lw=0, zorder=0)
    )
    for index, name in enumerate(group.jets):
        at = y + STEP * (0.5 * (len(group.jets) - 1) - index)
        field = name if name in roots else name.partition("_")[0]
        _edge(panel, (WEIGHTS_AT, roots[field]), (JETS_AT, at))
        _edge(panel, (JETS_AT, at), (FACTOR_AT, y))
        _node(panel, JETS_AT, at, name, "white")
    for name in group.coefficients:  # below the jets, straight into the factor
        floor = y - height / 2 + 0.07
        _edge(panel, (WEIGHTS_AT, roots[name]), (FACTOR_AT, y), over=floor)
    panel.plot((FACTOR_AT, SEEN_AT), (y, y), color=BLACK, lw=0.8, zorder=1)
    _square(panel, FACTOR_AT, y)
    _node(panel, SEEN_AT, y, group.seen, "#cccccc")
    panel.text(TEXT_AT, y + 0.25, group.title, color=colour, fontsize=8, va="center", weight="bold")
    panel.text(TEXT_AT, y, group.formula, fontsize=10, va="center")
    panel.text(TEXT_AT, y - 0.26, ", ".join(group.notes), fontsize=8, color="#444444", va="center")


def _prior(panel: Axes, name: str, y: float, weights: bool) -> None:
    panel.plot((WEIGHTS_AT - 0.6, WEIGHTS_AT), (y, y), color=BLACK, lw=0.8, zorder=1)
    _square(panel, WEIGHTS_AT - 0.6, y)
    _node(panel, WEIGHTS_AT, y, name, "white", weights=weights)


def _square(panel: Axes, x: float, y: float) -> None:
    panel.plot([x], [y], "s", color=BLACK, ms=8, zorder=4)


def _node(panel: Axes, x: float, y: float, name: str, face: str, weights: bool = False) -> None:
    from matplotlib.patches import Circle

    panel.add_patch(Circle((x, y), RADIUS, fc=face, ec=BLACK, lw=0.9, zorder=3))
    text = f"W_{{{symbol(name, MathText())}}}" if weights else symbol(name, MathText())
    shown = name if name in ("0", "data") else f"${text}$"
    panel.text(x, y, shown, ha="center", va="center", fontsize=10 if len(name) < 4 else 8, zorder=5)


def _edge(panel: Axes, start: tuple[float, float], end: tuple[float, float], over: float | None = None) -> None:
    """A smooth line that leaves and arrives level; `over` is a height that it passes on the way (dashed)."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    corners = [start, end] if over is None else [start, (JETS_AT, over), end]
    points, codes = [start], [Path.MOVETO]
    for (x0, y0), (x1, y1) in pairwise(corners):
        points += [(0.5 * (x0 + x1), y0), (0.5 * (x0 + x1), y1), (x1, y1)]
        codes += [Path.CURVE4] * 3
    style = "-" if over is None else (0, (3, 2))
    panel.add_patch(PathPatch(Path(points, codes), fc="none", ec=BLACK, lw=0.8, ls=style, zorder=1))
