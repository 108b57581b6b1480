"""How the commands speak: tables on a terminal, tabs in a pipe, one JSON document for machines."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from factorfield.errors import expected, visible

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]
Level = Annotated[float, typer.Option("--level", help="Probability that an interval holds what it is about.")]
DURATIONS = ((30.0, "seconds"), (1800.0, "minutes"), (86400.0, "hours"))
WORDS = (
    "method",
    "name",
    "evidence",
    "coefficients",
    "status",
    "cell",
    "row",
    "feature",
    "judged by",
    "verdict",
)  # columns of words, not numbers


def say(text: str, err: bool = False) -> None:
    """Lines for people; what a terminal would obey, names from files included, is spelt out."""
    lines = ("\t".join(map(visible, line.split("\t"))) for line in text.split("\n"))
    typer.echo("\n".join(lines), err=err)


def number(value: float) -> str:
    return "-" if value != value else f"{value:.3g}"


def share(value: float) -> str:
    return "-" if value != value else f"{100 * value:.1f} %"


def uncertain(mean: float, std: float, low: float, high: float, level: float = 0.9) -> str:
    """A number, its std to two digits and its interval, all to the same place."""
    held = percent(level)
    if not (1e-4 <= std < 1e5 and abs(mean) < 1e6):
        return f"{mean:.3e} +- {std:.1e}  {held}: [{low:.3e}, {high:.3e}]"
    places = max(0, 1 - math.floor(math.log10(std)))
    return f"{mean:.{places}f} +- {std:.{places}f}  {held}: [{low:.{places}f}, {high:.{places}f}]"


def percent(level: float) -> str:
    """A level of intervals as people say it: 90 %."""
    return f"{100.0 * level:g} %"


def checked_level(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise expected("a level of intervals between 0 and 1", f"{level:g}", "--level 0.95")
    return level


def duration(seconds: float) -> str:
    """As much as an estimate knows: seconds, minutes, hours or days."""
    return next((word for most, word in DURATIONS if seconds < most), "days")


def space(size: float) -> str:
    """Bytes as people say them."""
    if size < 2**20:
        return "less than 1 MiB"
    return f"about {size / 2**20:.0f} MiB" if size < 2**30 else f"about {size / 2**30:.1f} GiB"


def print_table(title: str, header: list[str], rows: Sequence[Sequence[str]]) -> None:
    """Aligned columns on a terminal, tabs when piped: nothing is ever cut. An empty header means pairs."""
    title, rows = visible(title), [[visible(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        lines = [header, *rows] if header else rows
        say("\n".join([title, *("\t".join(row) for row in lines)]))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=Text(title), show_header=bool(header))
    for name in header:
        shown.add_column(name, justify="left" if name in WORDS else "right")
    for row in rows:
        shown.add_row(*(Text(cell) for cell in row))  # as it is: brackets are no markup
    Console().print(shown)


def print_json(document: Mapping[str, object]) -> None:
    """The one document on stdout; what is no number is null, as JSON knows neither NaN nor infinity."""
    import json

    is_ascii = (getattr(sys.stdout, "encoding", "") or "").lower() not in ("utf-8", "utf8")
    text = json.dumps(plain(document), ensure_ascii=is_ascii, indent=2, allow_nan=False)
    # what no terminal may show, and what is no text, as JSON spells it: the same document
    typer.echo("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


def plain(value: object) -> Json:
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool) or value is None else str(value)
