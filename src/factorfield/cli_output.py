"""How the commands speak: tables on a terminal, tabs in a pipe, one JSON document for machines."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer


def number(value: float) -> str:
    return "-" if value != value else f"{value:.3g}"


def print_table(title: str, header: list[str], rows: Sequence[Sequence[str]]) -> None:
    """Aligned columns on a terminal, tabs when piped: nothing is ever cut. An empty header means pairs."""
    if not sys.stdout.isatty():
        lines = [header, *rows] if header else rows
        typer.echo("\n".join([title, *("\t".join(row) for row in lines)]))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=Text(title), show_header=bool(header))
    for name in header:
        shown.add_column(name, justify="left" if name in ("method", "status") else "right")
    for row in rows:
        shown.add_row(*(Text(cell) for cell in row))  # as it is: brackets are no markup
    Console().print(shown)


def print_json(document: Mapping[str, Any]) -> None:
    """The one document on stdout; what is no number is null, as JSON knows neither NaN nor infinity."""
    import json

    typer.echo(json.dumps(plain(document), ensure_ascii=False, indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(entry) for entry in value]
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool) or value is None else str(value)
