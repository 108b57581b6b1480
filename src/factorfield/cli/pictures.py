"""`factorfield plot` and `factorfield report`: pictures and a page of a stored solution."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from factorfield.cli.files import Run
from factorfield.cli.output import Level, checked_level, say
from factorfield.errors import shown_path


def plot_run(
    run: Run,
    kind: Annotated[
        str,
        typer.Option(help="summary, fields, slices, sensors, residual, coefficients, trace, reliability or graph."),
    ] = "summary",
    out: Annotated[Path | None, typer.Option(help="png, pdf or svg; without it, run-<kind>.png here.")] = None,
) -> None:
    """Draw a stored solution: maps, slices, sensors over time, coefficients, convergence, reliability, factor graph."""
    from factorfield.files.problem_file import check_no_input
    from factorfield.show.plotting import check_kind, check_picture, plot
    from factorfield.solution import load

    check_kind(kind)
    target = check_no_input(check_picture(out or Path(f"{run.stem}-{kind}.png")), [run.resolve()])
    plot(load(run), target, kind=kind)
    say(f"picture written to {shown_path(target)}")


def report_run(
    run: Run,
    out: Annotated[Path | None, typer.Option(help="The page to write; without it, run.html here.")] = None,
    level: Level = 0.9,
) -> None:
    """Write one self-contained page about a stored solution; it needs no network and no further package."""
    from factorfield.files.problem_file import check_no_input
    from factorfield.show.report.page import check_page, write
    from factorfield.solution import load

    checked_level(level)
    target = check_no_input(check_page(out or Path(f"{run.stem}.html")), [run.resolve()])
    write(load(run), target, level)
    say(f"report written to {shown_path(target)}")
