"""`factorfield compare`: methods side by side."""

# no `from __future__ import annotations` here: Typer would evaluate every annotation from text at every start
import math
from pathlib import Path
from typing import Annotated

import typer

from factorfield.cli.output import number, print_json, print_table, say, share
from factorfield.cli.problems import AllowOutside, Json, ModelName, ProblemName, Settings, posed_problem
from factorfield.errors import ProblemError, shown_path

COMPARED = ("joint", "mean-field", "hmc", "vi", "sgd", "laplace")


def compare(
    problem: ProblemName,
    settings: Settings = None,
    names: Annotated[
        str, typer.Option("--methods", help=f"Names separated by commas; left out: {', '.join(COMPARED)}.")
    ] = "",
    model: ModelName = "",
    plot: Annotated[Path | None, typer.Option(help="Write a picture (png, pdf or svg).")] = None,
    as_json: Json = False,
    allow_outside: AllowOutside = False,
) -> None:
    """Run several methods on one model; print one table, draw one picture."""
    from factorfield import methods
    from factorfield.cli.estimate import built
    from factorfield.methods.compare import COLUMNS, Contender, compare, table
    from factorfield.progress import bar
    from factorfield.show.plotting import check_picture, plot_comparison

    if plot is not None:
        check_picture(plot)
    chosen = [methods.get(name.strip()) for name in (names.split(",") if names else _installed())]
    posed = posed_problem("compare", problem, settings, allow_outside)
    subject = built(posed.problem, {"name": model} if model else posed.model)
    contenders: list[Contender] = []
    refused: dict[str, str] = {}
    with bar() as report:
        for method in chosen:
            try:
                contenders += compare(subject, [method], report)
            except ProblemError as reason:  # a model that this method cannot take: the others run
                refused[method.name] = str(reason)
    if not contenders:
        raise ProblemError(next(iter(refused.values())))
    rows = table(contenders) + [
        {"method": name, "status": f"refused: {reason}", **dict.fromkeys(COLUMNS.values(), math.nan)}
        for name, reason in refused.items()
    ]
    if plot is not None:
        plot_comparison(contenders, plot)
    if as_json:
        document = {"problem": problem, "weights": subject.size, "factors": subject.factors, "methods": rows}
        print_json(document | {"written": {} if plot is None else {"picture": shown_path(plot)}})
    else:
        _print_comparison(f"{problem}: {subject.size} weights, {subject.factors} factors", rows)
        if plot is not None:
            say(f"picture written to {shown_path(plot)}")
    for contender in contenders:
        status = contender.solution.status
        if status != "converged":
            say(f"note: {contender.method}: {status}: {status.help}", err=True)
    for name, why in refused.items():
        say(f"note: {name}: refused: {why}", err=True)
    if refused or any(contender.solution.status == "diverged" for contender in contenders):
        raise typer.Exit(1)


def _installed() -> list[str]:
    """The methods compared by default, without those whose packages are not there."""
    from factorfield import methods

    left_out = [name for name in COMPARED if methods.missing_packages(name)]
    if left_out:
        attempt = f"pip install 'factorfield[{methods.EXTRA}]'"
        say(f"note: {', '.join(left_out)} left out, whose packages are not installed; try {attempt}", err=True)
    return [name for name in COMPARED if name not in left_out]


def _print_comparison(title: str, rows: list[dict[str, str | float]]) -> None:
    from factorfield.methods.compare import COLUMNS

    # without HMC, or without a truth, there is nothing to say in some columns
    columns = {text: key for text, key in COLUMNS.items() if any(row[key] == row[key] for row in rows)}
    header = {"method": "method", "status": "status", **columns}
    print_table(title, list(header), [[_cell(key, row[key]) for key in header.values()] for row in rows])


def _cell(key: str, value: str | float) -> str:
    if isinstance(value, str):
        return value
    return share(value) if key == "coverage90" else number(value)
