"""The command line: `factorfield solve heat --set nu=0.05 --out run.nc --plot run.png`.

Exit codes: 0 solved (with a note if iterations ran out), 1 nothing to trust, 2 bad input (one line, no traceback).
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factorfield.cli_data import app as data_app
from factorfield.cli_reproduce import reproduce
from factorfield.errors import AdviceWarning, ProblemError, expected, nearest
from factorfield.version import __version__

if TYPE_CHECKING:
    from factorfield.model import Model
    from factorfield.problem import Problem
    from factorfield.solution import Solution

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Differential equations and noisy measurements, solved together with honest uncertainty.",
)


app.add_typer(data_app, name="data")
app.command()(reproduce)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"factorfield {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None: ...


@app.command("list")
def list_problems() -> None:
    """The worked problems and the methods."""
    from factorfield import methods, problems

    width = max(len(name) for name in problems.names())
    typer.echo("problems")
    for name in problems.names():
        typer.echo(f"  {name:<{width}}  {problems.summary(name)}")
    typer.echo("methods\n  " + ", ".join(methods.names()))


@app.command()
def solve(
    problem: Annotated[str, typer.Argument(help="A problem's name (see `factorfield list`).")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="An option of the problem, such as nu=0.05; repeatable.")
    ] = None,
    method: Annotated[str, typer.Option(help="How the posterior is found; empty: the one that suits.")] = "",
    model: Annotated[str, typer.Option(help="default, or paper.")] = "default",
    out: Annotated[Path | None, typer.Option(help="Write the solution (NetCDF).")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a picture (png, pdf or svg).")] = None,
) -> None:
    """Solve a problem, print a table, write the solution and a picture."""
    from factorfield import methods, problems
    from factorfield.plotting import check_picture
    from factorfield.plotting import plot as draw
    from factorfield.solution import check_writable

    if out is not None:
        check_writable(out)
    if plot is not None:
        check_picture(plot)
    chosen = methods.get(method) if method else None
    posed = problems.get(problem, **dict(assignment(text) for text in set_ or []))
    begin = time.perf_counter()
    windows = model == "default" and (chosen is None or getattr(chosen, "takes_problem", False))
    built = posed if windows else _model(posed, model)  # windows choose their own representation
    modelled = time.perf_counter()
    solution = _solved(built, chosen)
    solved = time.perf_counter()
    field = solution.posterior.predict(solution.default_grid())
    predicted = time.perf_counter()
    seconds = {"model": modelled - begin, "solve": solved - modelled, "predict": predicted - solved}
    if out is not None:
        solution.save(out)
    if plot is not None:
        draw(solution, plot, field)
    _print_result(solution, field, seconds)
    for label, path in (("solution", out), ("picture", plot)):
        if path is not None:
            typer.echo(f"{label} written to {path}")
    if solution.status != "converged":
        typer.echo(f"note: {solution.status}: {solution.status.help}", err=True)
    if solution.status == "diverged":
        raise typer.Exit(1)


@app.command()
def compare(
    problem: Annotated[str, typer.Argument(help="A problem's name (see `factorfield list`).")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="An option of the problem, such as b=0.4; repeatable.")
    ] = None,
    names: Annotated[
        str, typer.Option("--methods", help="Names separated by commas.")
    ] = "joint,mean-field,hmc,vi,sgd,laplace",
    model: Annotated[str, typer.Option(help="default, or paper.")] = "default",
    plot: Annotated[Path | None, typer.Option(help="Write a picture (png, pdf or svg).")] = None,
) -> None:
    """Run several methods on one model; print one table, draw one picture."""
    from factorfield import methods, problems
    from factorfield.compare import COLUMNS, compare, table
    from factorfield.plotting import check_picture, plot_comparison
    from factorfield.progress import bar

    if plot is not None:
        check_picture(plot)
    chosen = [methods.get(name.strip()) for name in names.split(",")]
    built = _model(problems.get(problem, **dict(assignment(text) for text in set_ or [])), model)
    with bar() as report:
        contenders = list(compare(built, chosen, report))
    rows = table(contenders)
    cells = [[row["method"], row["status"], *(_number(row[key]) for key in COLUMNS.values())] for row in rows]
    print_table(f"{problem}: {built.size} weights, {built.factors} factors", ["method", "status", *COLUMNS], cells)
    if plot is not None:
        plot_comparison(contenders, plot)
        typer.echo(f"picture written to {plot}")
    for contender in contenders:
        status = contender.solution.status
        if status != "converged":
            typer.echo(f"note: {contender.method}: {status}: {status.help}", err=True)


@app.command()
def calibrate(
    draws: Annotated[int, typer.Option(help="Data sets per cell.")] = 40,
    method: Annotated[str, typer.Option(help="How the posterior is found.")] = "chain",
    sigma: Annotated[str, typer.Option(help="unknown, known, or both.")] = "both",
    simulations: Annotated[
        int, typer.Option(help="Instead: fields drawn from the prior, and the ranks of the truth.")
    ] = 0,
    out: Annotated[Path | None, typer.Option(help="Write the table (CSV).")] = None,
) -> None:
    """Draw data with stated noise, solve, and count how often the intervals hold the truth."""
    from factorfield import methods
    from factorfield.experiments.calibration import calibrate as count
    from factorfield.experiments.calibration import cells
    from factorfield.progress import bar
    from factorfield.solution import check_writable

    kinds = {"unknown": [False], "known": [True], "both": [False, True]}
    if sigma not in kinds:
        raise expected("--sigma unknown, known or both", sigma, nearest(sigma, kinds))
    if draws < 1 or simulations < 0:
        raise expected("--draws of at least 1, --simulations of at least 0", f"{draws}, {simulations}", "--draws 40")
    if out is not None:
        check_writable(out)
    chosen = methods.get(method)
    with bar() as report:
        if simulations:
            from factorfield.experiments.simulation import simulation_table

            table = simulation_table(simulations, report)
        else:
            table = count(draws, cells(kinds[sigma]), chosen, report)
    typer.echo(table.text())
    if out is not None:
        out.write_text(table.csv())


def _number(value: float) -> str:
    return "-" if value != value else f"{value:.3g}"


def print_table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Aligned columns on a terminal, tabs when piped: nothing is ever cut."""
    if not sys.stdout.isatty():
        typer.echo("\n".join([title, *("\t".join(row) for row in [header, *rows])]))
        return
    from rich.console import Console
    from rich.table import Table

    shown = Table(title=title)
    for name in header:
        shown.add_column(name, justify="left" if name in ("method", "status") else "right")
    for row in rows:
        shown.add_row(*row)
    Console().print(shown)


def _solved(model: Model | Problem, method: Any) -> Solution:
    import factorfield as ff

    return ff.solve(model, method=method, progress=True)


def _model(problem: Problem, name: str) -> Model:
    import factorfield as ff

    builders: dict[str, Callable[[Problem], Model]] = {"default": ff.default_model, "paper": ff.paper_model}
    if name not in builders:
        raise expected("--model default or paper", name, nearest(name, builders))
    return builders[name](problem)


def assignment(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise expected("--set name=value", text, "--set nu=0.05")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value


def _print_result(solution: Solution, field: Any, seconds: dict[str, float]) -> None:
    from factorfield import metrics

    rows = [("status", str(solution.status)), ("method", str(solution.settings.get("method", "-")))]
    rows += [("weights", str(solution.posterior.representation.size))]
    rows += [("windows", str(solution.trace["windows"]))] if "windows" in solution.trace else []
    rows += [("modes", ", ".join(f"{axis} {n}" for axis, n in solution.settings.get("modes", {}).items()))]
    truth = solution.problem.truth
    if truth is not None:
        score = metrics.score(field, truth)
        rows += [(f"{name}", f"{score[key]:.3g}") for name, key in (("RMSE", "rmse"), ("CRPS", "crps"), ("NLL", "nll"))]
        rows += [("coverage (90 %)", f"{100 * score['coverage90']:.1f} %")]
    rows += [("mean std", f"{float(field['std'].mean()):.3g}")]
    rows += [(f"seconds to {name}", f"{value:.3g}") for name, value in seconds.items()]
    for name, values in solution.parameters.items():
        low, high = values["interval"]
        rows.append((name, f"{values['mean']:.4g} +- {values['std']:.2g}  90 %: [{low:.4g}, {high:.4g}]"))
    title = f"{solution.problem.name}: {solution.problem.equations[0].text}"
    if not sys.stdout.isatty():
        typer.echo("\n".join([title, *(f"{name}\t{value}" for name, value in rows)]))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, show_header=False)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def main() -> None:
    """Entry point: what the library says as an error becomes one line and exit code 2."""
    warnings.showwarning = _show_warning
    try:
        app(standalone_mode=True)
    except ProblemError as problem:
        typer.echo(f"error: {problem}", err=True)
        sys.exit(2)
    except OSError as problem:
        typer.echo(f"error: {problem.strerror or problem}: {problem.filename or ''}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("interrupted; nothing was written", err=True)
        sys.exit(130)


def _show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
    prefix = "advice" if issubclass(category, AdviceWarning) else "warning"
    typer.echo(f"{prefix}: {message}", err=True)


if __name__ == "__main__":
    main()
