"""`factorfield calibrate`: do intervals hold the truth as often as they say? The registry of coverage."""

# no `from __future__ import annotations` here: Typer would evaluate every annotation from text at every start
from pathlib import Path
from typing import Annotated

import typer

from factorfield.cli.output import print_table, say
from factorfield.errors import expected, shown_path


def calibrate(
    rows: Annotated[
        list[str] | None, typer.Argument(metavar="ROWS", help="Names of rows, such as ring-start; none: a few draws.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All rows with all their draws: about an hour.")] = False,
    draws: Annotated[int | None, typer.Option(help="Draws per row, instead of each row's own number.")] = None,
    method: Annotated[str | None, typer.Option(help="A method (see `factorfield list`), not the default one.")] = None,
    records: Annotated[Path, typer.Option(help="Folder of records, one per draw; a second call resumes.")] = Path(
        "calibration"
    ),
    out: Annotated[Path | None, typer.Option(help="Write the table (.csv), or a page with failures (.md).")] = None,
) -> None:
    """Draw truths and data, solve, and count how often intervals hold the truth: one row per feature."""
    from factorfield import methods
    from factorfield.calibration.page import page
    from factorfield.calibration.records import Records
    from factorfield.calibration.registry import chosen
    from factorfield.calibration.study import registry_table, study
    from factorfield.files.atomic import write_text
    from factorfield.files.results import check_writable
    from factorfield.progress import bar

    if draws is not None and draws < 1:
        raise expected("--draws of at least 1", draws, "--draws 40")
    if everything and rows:
        raise expected("--all, or names of rows", f"both ({', '.join(rows)})", "--all")
    full = everything or bool(rows)
    wanted = {row: draws or (row.draws if full else row.small) for row in chosen(rows or [])}
    target = None if out is None else check_writable(out)
    solver = None if method is None else methods.get(method)
    with bar() as tell:
        found = study(wanted, Records.of(records, method or "default"), solver, tell)
    table = registry_table(found)
    print_table(table.title, table.header, table.cells())
    if target is not None:
        write_text(target, page(found) if target.suffix == ".md" else table.csv())
        say(f"written to {shown_path(target)}")
