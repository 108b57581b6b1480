"""`factorfield data`: fetch, audit and generate PDEBench files."""

# no `from __future__ import annotations` here: Typer would evaluate every annotation from text at every start
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from factorfield.cli.output import print_table, say
from factorfield.cli.problems import assignment
from factorfield.errors import expected, shown_path

app = typer.Typer(no_args_is_help=True, help="PDEBench files: fetch, audit and generate.")


@contextmanager
def _counted(text: str) -> Iterator[Callable[[int, int], None]]:
    """A bar for (done, in all) reports, on a terminal and after two seconds only."""
    from factorfield.progress import bar

    with bar() as report:

        def count(done: int, total: int) -> None:
            if report is not None:
                report(text, done / total if total else 0.0)

        yield count


@app.command()
def fetch(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NAMES", help="Names of published files; none: list them.")
    ] = None,
    to: Annotated[Path, typer.Option(help="The folder to write into.")] = Path("."),
) -> None:
    """Download published files; broken downloads continue, checksums are verified."""
    from factorfield.data.fetch import FILES
    from factorfield.data.fetch import fetch as download

    if not names:
        say("\n".join(FILES))
        return
    for name in names:
        with _counted(name) as report:
            say(shown_path(download(name, to, report)))


@app.command()
def audit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A PDEBench advection or reaction-diffusion file.")],
    rows: Annotated[str | None, typer.Option(help="Positions such as 0,1,2, or paper; all rows if left out.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a picture of errors and residuals over time.")] = None,
) -> None:
    """Compare a file with independent solutions. Exit code 1 if it has a defect."""
    from factorfield.data.audit import audit as examine
    from factorfield.show.plotting import check_picture, plot_audit

    if plot is not None:
        check_picture(plot)
    chosen: list[int] | str | None = rows
    if rows is not None and rows != "paper":
        try:
            chosen = [int(part) for part in rows.split(",")]
        except ValueError:
            raise expected("--rows as numbers, or paper", rows, "--rows 0,1,2") from None
    result = examine(file, chosen)
    physics = ", ".join(f"{name} = {value:g}" for name, value in result.physics.items())
    header, *lines = result.table()
    print_table(f"{file.name}: {result.equation}, {physics}", header, lines)
    if plot is not None:
        plot_audit(result, plot)
        say(f"picture written to {shown_path(plot)}")
    if result.defects:
        say("defects: " + ", ".join(result.defects))
        raise typer.Exit(1)
    say("no defect; the error is that of the file's discretisation")


@app.command()
def generate(
    equation: Annotated[str, typer.Argument(metavar="EQUATION", help="advection or fisher-kpp.")],
    out: Annotated[Path, typer.Option(help="The file to write (HDF5, published layout).")],
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A coefficient, such as b=0.4; repeatable.")
    ] = None,
    rows: Annotated[int, typer.Option(help="How many trajectories.")] = 10,
    seed: Annotated[int, typer.Option(help="Another seed, other initial conditions.")] = 0,
) -> None:
    """Write a file of our own in the published layout: no download needed."""
    from factorfield.data.generate import generate as write

    physics = {}
    for text in settings or []:
        name, value = assignment(text)
        if not isinstance(value, int | float):
            raise expected(f"a number for {name}", value, f"--set {name}=1.0")
        physics[name] = float(value)
    with _counted(f"{rows} rows of {equation}") as report:
        target = write(equation, out, rows, physics, seed, report)
    say(f"data written to {shown_path(target)}")
