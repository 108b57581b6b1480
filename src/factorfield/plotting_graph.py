"""The factor graph of a problem: weights, the jets that each group of factors reads, factors, what was observed.

White circles are hidden, grey ones observed, black squares are factors; a frame repeats once per point. Blue frames hold
what was measured or stated on a face, orange ones what the equation asks (the paper's first figure).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from factorfield.errors import shortened
from factorfield.formula import MathText, mathtext, symbol
from factorfield.plotting_style import BLACK, BLUE, GREY, ORANGE
from factorfield.problem import Statement
from factorfield.solution import Solution
from factorfield.views import View, kind_of

RADIUS, STEP, ROW = 0.2, 0.56, 0.92  # of a node, between nodes, between groups: inches
WEIGHTS_AT, JETS_AT = 0.95, 2.25
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


def graph(plt: Any, solution: Solution, _: View) -> Any:
    groups = factor_groups(solution)
    hidden = max(len(group.jets) for group in groups) * STEP
    factor_at = JETS_AT + hidden + 0.1
    text_at = factor_at + 1.35
    wide = text_at + max(2.6, 0.072 * max(len(line) for g in groups for line in (*g.notes, _plain(g.formula))))
    high = ROW * len(groups) + 0.75
    figure = plt.figure(figsize=(wide, high + 0.35))
    panel = figure.add_axes((0.0, 0.0, 1.0, high / (high + 0.35)))
    panel.set(xlim=(0.0, wide), ylim=(-ROW * (len(groups) - 0.5) - 0.55, 0.5 * ROW + 0.2), aspect="equal")
    panel.axis("off")
    heights = _weight_heights(solution, groups)
    for name, y in heights.items():
        _prior(panel, name, y)
    for index, group in enumerate(groups):
        _row(panel, solution, group, -ROW * index, heights, factor_at, text_at)
    size = solution.posterior.representation.size
    windows = solution.trace.get("windows")
    held = f"{size} weights" + (f" in each of {windows} windows of time" if windows else "")
    panel.text(WEIGHTS_AT - 0.75, -ROW * (len(groups) - 0.5) - 0.42, held, fontsize=8, color=GREY, va="bottom")
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
    return Group(
        kind, title, relation.text, jets, relation.fields, unknown, seen, (_where(solution, same), _sigma(solution, same))
    )  # fmt: skip


def _where(solution: Solution, same: Sequence[Statement]) -> str:
    if same[0].points is not None:
        count = sum(len(statement.target) for statement in same)
        return f"{count} measurement" + ("s" if count > 1 else "")
    if same[0].face is None:
        counts = solution.settings.get("collocation")
        points = int(np.prod(list(counts.values()))) if counts else 0
        return f"at {points} points of the domain" if points else "at collocation points of every window"
    faces = [", ".join(f"{name} = {value:g}" for name, value in (s.face or {}).items()) for s in same]
    return "at " + "; ".join(faces)


def _sigma(solution: Solution, same: Sequence[Statement]) -> str:
    """The noise as given, or as chosen where the settings say so."""
    given = [np.asarray(statement.sigma, float) for statement in same if statement.sigma is not None]
    if given:
        low, high = min(float(g.min()) for g in given), max(float(g.max()) for g in given)
        return f"$\\sigma$ = {low:.3g}" + ("" if low == high else f" to {high:.3g}")
    chosen = dict(solution.settings.get("sigma") or [])
    found = [chosen[statement.name] for statement in same if statement.name in chosen]
    return f"$\\sigma$ = {max(found):.2g} (chosen)" if found else "$\\sigma$ by the model"


def _weight_heights(solution: Solution, groups: Sequence[Group]) -> dict[str, float]:
    """Weights of every field and unknown coefficients, evenly over the height of the groups."""
    names = [*solution.problem.fields, *solution.problem.unknowns]
    middle, reach = -ROW * (len(groups) - 1) / 2, ROW * max(len(groups) - 1, 0.9 * (len(names) - 1)) / 2
    reach = min(reach, 0.75 * ROW * (len(names) - 1) / 2 + 1e-9) if len(names) > 1 else 0.0
    return dict(zip(names, np.linspace(middle + reach, middle - reach, len(names)), strict=True))


def _plain(formula: str) -> str:
    return shortened(formula.replace("**", "").replace("*", " "), 60)


# -- drawing


def _row(
    panel: Any, solution: Solution, group: Group, y: float, heights: dict[str, float], factor_at: float, text_at: float
) -> None:
    from matplotlib.patches import FancyBboxPatch

    colour = ORANGE if group.kind == "equation" else BLUE
    low = JETS_AT - 0.38
    panel.add_patch(
        FancyBboxPatch(
            (low, y - 0.36), factor_at + 1.08 - low, 0.72, boxstyle="round,pad=0,rounding_size=0.1", fc=colour,
            ec=colour, alpha=0.09, lw=0, zorder=0,
        )
    )  # fmt: skip
    start = factor_at - STEP * len(group.jets)
    for index, name in enumerate(group.jets):
        x = start + STEP * index
        field = name.partition("_")[0] if name not in heights else name
        _bent(panel, (WEIGHTS_AT + RADIUS, heights[field]), (x, y), BLACK)
        _bent(panel, (x, y), (factor_at, y), BLACK, over=index < len(group.jets) - 1)
        _node(panel, x, y, name, "white")
    for name in group.coefficients:
        _bent(panel, (WEIGHTS_AT + RADIUS, heights[name]), (factor_at, y + 0.06), GREY, dashed=True)
    panel.plot((factor_at, factor_at + 0.62), (y, y), color=BLACK, lw=0.8, zorder=1)
    _square(panel, factor_at, y)
    _node(panel, factor_at + 0.68, y, group.seen, "#cccccc")
    panel.text(text_at, y + 0.22, group.title, color=colour, fontsize=8, va="center", weight="bold")
    panel.text(text_at, y, mathtext(group.formula), fontsize=10, va="center")
    panel.text(text_at, y - 0.23, ", ".join(group.notes), fontsize=8, color="#444444", va="center")


def _prior(panel: Any, name: str, y: float) -> None:
    panel.plot((WEIGHTS_AT - 0.6, WEIGHTS_AT), (y, y), color=BLACK, lw=0.8, zorder=1)
    _square(panel, WEIGHTS_AT - 0.6, y)
    _node(panel, WEIGHTS_AT, y, name, "white", weight=True)


def _square(panel: Any, x: float, y: float) -> None:
    panel.plot([x], [y], "s", color=BLACK, ms=8, zorder=4)


def _node(panel: Any, x: float, y: float, name: str, face: str, weight: bool = False) -> None:
    from matplotlib.patches import Circle

    panel.add_patch(Circle((x, y), RADIUS, fc=face, ec=BLACK, lw=0.9, zorder=3))
    text = symbol(name, MathText())
    panel.text(
        x, y, f"${text}$" if name not in ("0", "data") else name, ha="center", va="center",
        fontsize=10 if len(name) < 4 else 8, zorder=5,
    )  # fmt: skip


def _bent(
    panel: Any, start: tuple[float, float], end: tuple[float, float], colour: str, over: bool = False,
    dashed: bool = False,
) -> None:  # fmt: skip
    """A smooth edge; `over` lifts it above the nodes that lie between its ends."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    (x0, y0), (x1, y1) = start, end
    lift = 0.34 if over else 0.0
    bend = [(x0, y0), (0.5 * (x0 + x1), y0 + lift), (0.5 * (x0 + x1), y1 + lift), (x1, y1)]
    path = Path(bend, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    panel.add_patch(PathPatch(path, fc="none", ec=colour, lw=0.8, ls="--" if dashed else "-", zorder=1))
