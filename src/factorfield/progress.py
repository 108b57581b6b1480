"""A progress bar that shows itself only after two seconds and only on a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 2.0
UNFINISHED = 0.999  # a task that was once complete has its clock stopped, though there may be more to do
Progress = Callable[[str, float], None]  # what is going on, and how far (0..1)


@contextmanager
def bar() -> Iterator[Progress | None]:
    """A `report(text, fraction)` callback that draws on stderr, or None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as rich
    from rich.console import Console

    text, bar_, share, elapsed = rich.TextColumn, rich.BarColumn, rich.TaskProgressColumn, rich.TimeElapsedColumn
    columns = (text("{task.description}"), bar_(), share(), elapsed())
    display = rich.Progress(*columns, console=Console(stderr=True), transient=True)
    task = display.add_task("solving", total=1.0)
    waiting = threading.Timer(PATIENCE, display.start)  # also where nothing is reported for long
    waiting.daemon = True
    waiting.start()

    def report(text: str, fraction: float) -> None:
        display.update(task, description=text, completed=min(fraction, UNFINISHED))

    try:
        yield report
    finally:
        waiting.cancel()
        waiting.join()
        display.stop()
