"""How our pictures look, and how they are written: one place for colours, fonts and files."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factorfield.errors import ProblemError, needed
from factorfield.files.atomic import complete
from factorfield.files.results import check_writable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, BLACK, GREEN, PINK, GREY = "#0072B2", "#D55E00", "#222222", "#009E73", "#CC79A7", "#777777"  # Okabe-Ito
BAND = 1.645
VALUES, SPREAD, SIGNED = "viridis", "cividis", "RdBu_r"  # maps of a field, of a std, of what has a sign
STYLE = {
    "font.size": 9, "axes.titlesize": 9, "axes.labelsize": 9, "xtick.labelsize": 8, "ytick.labelsize": 8,
    "legend.fontsize": 8, "legend.frameon": False, "axes.spines.top": False, "axes.spines.right": False,
    "axes.formatter.limits": (-3, 4), "axes.formatter.use_mathtext": True, "lines.linewidth": 1.4,
    "svg.fonttype": "none", "pdf.fonttype": 42,
}  # fmt: skip


class Drawing:
    """What the pictures need of pyplot, without its windows: the caller's backend and open figures are left alone."""

    def __init__(self) -> None:
        matplotlib = needed("matplotlib", "plot")
        known = {key: value for key, value in matplotlib.rcParamsDefault.items() if not key.startswith("backend")}
        # a matplotlibrc in the current folder may be a stranger's, and LaTeX runs what it says
        base = known if Path(matplotlib.matplotlib_fname()).resolve().parent == Path.cwd() else {}
        self.rc_context: Callable[[dict[str, Any]], Any] = lambda style: matplotlib.rc_context({**base, **style})
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        class Picture(Figure):
            def _repr_png_(self) -> bytes:
                """What a notebook shows."""
                held = io.BytesIO()
                self.savefig(held, format="png", dpi=110, bbox_inches=_box(self))
                return held.getvalue()

        self._picture, self._canvas = Picture, FigureCanvasAgg

    def figure(self, figsize: tuple[float, float] | None = None, constrained_layout: bool = False) -> Figure:
        figure = self._picture(figsize=figsize, constrained_layout=constrained_layout)
        self._canvas(figure)
        return figure

    def subplots(
        self, rows: int, columns: int, figsize: tuple[float, float], *,
        constrained_layout: bool = False, squeeze: bool = True, sharex: bool = False, sharey: bool = False,
    ) -> tuple[Figure, Any]:  # fmt: skip
        """A figure and the array of its panels."""
        figure = self.figure(figsize, constrained_layout)
        return figure, figure.subplots(rows, columns, squeeze=squeeze, sharex=sharex, sharey=sharey)


def check_picture(path: str | os.PathLike[str]) -> Path:
    """Refuse a picture that could not be written - before a solve, not after it."""
    target = check_writable(path)
    formats = Drawing().figure().canvas.get_supported_filetypes()
    suffix = target.suffix.lstrip(".").lower()
    if suffix not in formats:
        raise ProblemError(f"expected a picture format such as png, pdf or svg, received {target.name}; try run.png")
    return target


def _box(figure: Figure) -> str | None:
    """Layouts that Matplotlib arranges fit already; what we placed ourselves is measured."""
    return None if figure.get_layout_engine() else "tight"


def set_title(figure: Figure, lines: list[str]) -> None:
    """A title on one line if it fits, on several if not, smaller if it must be."""
    wide = 0.97 * figure.bbox.width
    title = figure.suptitle("   ".join(lines), fontsize=10)
    if title.get_window_extent().width > wide:
        title.set_text("\n".join(lines))
    rows = math.ceil(title.get_window_extent().width / wide)
    if rows > 1:  # long sources go on in the next row
        longest = max(map(len, lines))
        title.set_text("\n".join(row for text in lines for row in wrapped(text, -(-longest // rows))))
    reach = title.get_window_extent().width
    title.set_fontsize(max(5.0, 10.0 * min(1.0, wide / reach)))


def wrapped(formula: str, most: int) -> list[str]:
    """A formula in rows of about so many characters: cut before signs between its terms."""
    if len(formula) <= most or not (formula.startswith("$") and formula.endswith("$")):
        return [formula]
    rows, depth = [""], 0
    for position, character in enumerate(formula[1:-1]):
        depth += (character in "({[") - (character in ")}]")
        sign = character in "+-=" and depth == 0 and position > 0
        if sign and len(rows[-1]) > 0.6 * most:
            rows.append("")
        rows[-1] += character
    return [f"${row}$" for row in rows]


def write_picture(figure: Figure, target: Path, dpi: int = 200, tight: bool = True) -> None:
    """The figure as a file that appears complete or not at all."""
    drawn = io.BytesIO()  # what Matplotlib does with a file that cannot grow is not one line
    kind = target.suffix.lstrip(".").lower()
    figure.savefig(drawn, format=kind, dpi=dpi, bbox_inches=_box(figure) if tight else None)
    with complete(target) as part:
        part.write_bytes(drawn.getbuffer())
