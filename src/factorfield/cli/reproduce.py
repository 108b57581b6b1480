"""`factorfield reproduce`: the paper's tables and figures from runs that resume."""

# no `from __future__ import annotations` here: Typer would evaluate every annotation from text at every start
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from factorfield.cli.output import say
from factorfield.errors import expected, needed, shown_path

if TYPE_CHECKING:
    from factorfield.paper.plan import Run, Scope
    from factorfield.paper.store import Store
    from factorfield.paper.sweep import Outcome
    from factorfield.paper.tables import Records


def reproduce(  # noqa: PLR0913
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TARGETS",
            help="table1, solutions, full-residual, gaussian-bump, posteriors, pinn, calibration, spread, schedule, "
            "width, residual-noise, timing, or all (default).",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of records, tables and pictures; a second call resumes.")] = Path(
        "reproduction"
    ),
    methods: Annotated[str, typer.Option(help="Names separated by commas.")] = "mean-field,joint,chain,hmc,vi,sgd",
    rows: Annotated[int | None, typer.Option(help="Trajectories per cell (default: the paper's 10 and 5).")] = None,
    speeds: Annotated[str | None, typer.Option(help="Wave speeds separated by commas.")] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Minutes instead of hours: 2 advection rows at b = 0.1 and 0.4, 1 Fisher-KPP row at 2 settings, "
            "3,000 iterations of SGD and VI.",
        ),
    ] = False,
    data: Annotated[Path | None, typer.Option(help="Folder of PDEBench files (default: generated data).")] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Address of a dask scheduler, which can run code here (default: a cluster of our own)."),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes of the local cluster.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what failed before.")] = False,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Run nothing: tables and pictures of the records that are there.")
    ] = False,
) -> None:
    """Run the paper's experiments and write its tables, figures and an HTML page."""
    from factorfield.paper.plan import TARGETS, checked_targets
    from factorfield.paper.store import Store
    from factorfield.paper.sweep import Outcome
    from factorfield.paper.tables import Records

    wanted = checked_targets(targets or [])
    scope = _scope(methods, rows, speeds, quick, data)
    needed("distributed", "cluster")
    needed("matplotlib", "plot")
    store = Store.open(out)
    runs = list({run.key: run for target in wanted for run in TARGETS[target](scope)}.values())
    folder = None if data is None else str(data.expanduser().resolve())
    if report_only:
        outcome = Outcome(skipped=sum(store.finished(run) for run in runs))
    else:
        outcome = _sweep(runs, store, folder, scheduler, workers, retry)
    records = Records([record for run in runs if (record := store.read(run)) is not None])
    _write(wanted, records, outcome, out)


def _sweep(
    runs: "list[Run]", store: "Store", folder: str | None, scheduler: str | None, workers: int | None, retry: bool
) -> "Outcome":
    """Make the runs; timings need an idle machine: they come last, one at a time."""
    from factorfield.paper.sweep import Outcome, sweep
    from factorfield.progress import bar

    outcome = Outcome()
    for kind, processes in (("scores", workers), ("timing", 1)):
        with bar() as tell:
            done = sweep([run for run in runs if run.kind == kind], store, folder, scheduler, processes, retry, tell)
        outcome.finished += done.finished
        outcome.skipped += done.skipped
        outcome.set_aside += done.set_aside
        outcome.failed |= done.failed
    return outcome


def _scope(methods: str, rows: int | None, speeds: str | None, quick: bool, data: Path | None) -> "Scope":
    from factorfield import methods as known
    from factorfield.paper.plan import METHODS, SPEEDS, Scope

    names = tuple(name.strip() for name in methods.split(","))
    for name in names:
        if name not in METHODS:
            raise expected(f"--methods among {', '.join(METHODS)}", name, ",".join(METHODS))
        known.get(name)  # a missing extra is said before anything runs
    if rows is not None and rows < 1:
        raise expected("--rows of at least 1", rows, "--rows 3")
    try:
        chosen = None if speeds is None else tuple(float(b) for b in speeds.split(","))
    except ValueError:
        raise expected("--speeds as numbers separated by commas", speeds, "--speeds 0.1,0.4") from None
    if data is not None and not data.expanduser().is_dir():
        raise expected("--data with a folder of PDEBench files", str(data), "leaving it out, for generated data")
    if data is not None and chosen and set(chosen) - set(SPEEDS):
        raise expected(f"--speeds among {', '.join(f'{b:g}' for b in SPEEDS)} with --data", speeds, "--speeds 0.4")
    return Scope(names, rows, chosen, "generated" if data is None else "pdebench", quick)


def _write(wanted: list[str], records: "Records", outcome: "Outcome", out: Path) -> None:
    import shlex

    from factorfield.files.atomic import write_text
    from factorfield.paper import numbers
    from factorfield.paper.claims import answered, as_table
    from factorfield.paper.figures import draw
    from factorfield.paper.page import page
    from factorfield.paper.tables import TABLES

    tables = {target: TABLES[target](records) for target in wanted if target in TABLES}
    for target, made in tables.items():
        for index, table in enumerate(made):
            suffix = f"-{index + 1}" if len(made) > 1 else ""
            write_text(out / f"{target}{suffix}.csv", table.csv())
            say(table.text() + "\n")
    numbers.write(numbers.lines_of(records), out / "runs.csv")
    pictures = draw(wanted, records, out)
    claims = [claim for claim in answered(records) if claim.answer != "not run"]
    say(as_table(claims).text() + "\n")
    notes = [f"{len(outcome.failed)} runs failed: {'; '.join(f'{k}: {v}' for k, v in outcome.failed.items())}"] * bool(
        outcome.failed
    )
    command = shlex.join(["factorfield", *sys.argv[1:]])
    write_text(out / "report.html", page(command, records, tables, pictures, claims, notes))
    say(f"{outcome.finished} runs made, {outcome.skipped} were there, {len(outcome.failed)} failed; "
               f"report in {shown_path(out / 'report.html')}")  # fmt: skip
    if outcome.set_aside:
        aside = shown_path(out / "aside")
        say(f"note: {outcome.set_aside} unreadable records set aside in {aside} and run again", err=True)
    for key, reason in outcome.failed.items():
        say(f"note: {key} failed: {reason}; --retry runs it again", err=True)
    if outcome.failed:
        raise typer.Exit(1)
