"""A progress bar that shows itself only after two seconds and only on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from factorfield.methods import Report

PATIENCE = 2.0


@contextmanager
def bar() -> Iterator[Report | None]:
    """A `report(text, fraction)` callback that draws on stderr, or None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    display = Progress(*columns, console=Console(stderr=True), transient=True)
    task = display.add_task("", total=1.0)
    begin = time.monotonic()
    state = {"shown": False}

    def report(text: str, fraction: float) -> None:
        if not state["shown"] and time.monotonic() - begin > PATIENCE:
            display.start()
            state["shown"] = True
        display.update(task, description=text, completed=fraction)

    try:
        yield report
    finally:
        if state["shown"]:
            display.stop()
