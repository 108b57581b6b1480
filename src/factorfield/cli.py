"""The command line: `factorfield solve heat --set nu=0.05 --out run.nc --plot run.png`.

Exit codes: 0 solved (with a note if iterations ran out), 1 nothing to trust, 2 bad input (one line, no traceback).
"""

# no `from __future__ import annotations` here: Typer would evaluate every annotation from text at every start
import sys
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factorfield.cli_data import app as data_app
from factorfield.cli_files import AllowOutside, Json, check, is_file_name, new, show, summary, summary_rows
from factorfield.cli_output import number, print_json, print_table
from factorfield.cli_pictures import plot_run, report_run
from factorfield.cli_reproduce import reproduce
from factorfield.errors import AdviceWarning, ProblemError, expected, nearest
from factorfield.version import __version__

if TYPE_CHECKING:
    from factorfield.model import Model
    from factorfield.problem import Problem
    from factorfield.problem_file import ProblemFile
    from factorfield.solution import Solution

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Differential equations and noisy measurements, solved together with honest uncertainty.",
)


app.add_typer(data_app, name="data")
PIPED_WIDTH = 160
PACKAGES = (
    "numpy", "scipy", "sympy", "numba", "xarray", "h5netcdf", "h5py", "typer", "rich", "threadpoolctl", "matplotlib",
    "jax", "optax", "blackjax", "arviz", "distributed",
)  # fmt: skip
app.command("plot")(plot_run)
app.command("report")(report_run)


def _version(value: bool) -> None:
    """Ours, Python's, and those of what we stand on."""
    if not value:
        return
    import platform
    from importlib.metadata import PackageNotFoundError, version

    typer.echo(f"factorfield {__version__}")
    typer.echo(f"python {platform.python_version()}")
    for name in PACKAGES:
        try:
            typer.echo(f"{name} {version(name)}")
        except PackageNotFoundError:
            typer.echo(f"{name} not installed")
    raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the versions.")
    ] = False,
) -> None: ...


@app.command("list")
def list_problems(as_json: Json = False) -> None:
    """The worked problems and the methods."""
    from factorfield import methods, problems

    found = {name: problems.summary(name) for name in problems.names()}
    if as_json:
        print_json({"problems": found, "methods": methods.names()})
        return
    width = max(len(name) for name in found)
    typer.echo("problems")
    for name, text in found.items():
        typer.echo(f"  {name:<{width}}  {text}")
    typer.echo("methods\n  " + ", ".join(methods.names()))


@app.command()
def solve(
    problem: Annotated[str, typer.Argument(help="A problem's name (see `factorfield list`), or a problem file.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="An option of the problem, such as nu=0.05; repeatable.")
    ] = None,
    method: Annotated[str, typer.Option(help="How the posterior is found; empty: the one that suits.")] = "",
    model: Annotated[str, typer.Option(help="default, or paper; empty: the file's, or default.")] = "",
    out: Annotated[Path | None, typer.Option(help="Write the solution (NetCDF).")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a picture (png, pdf or svg).")] = None,
    as_json: Json = False,
    allow_outside: AllowOutside = False,
) -> None:
    """Solve a problem, print a table, write the solution and a picture."""
    from factorfield import methods
    from factorfield.plotting import check_picture
    from factorfield.plotting import plot as draw
    from factorfield.solution import check_writable

    posed = _posed(problem, set_, allow_outside) if is_file_name(problem) else None
    if posed is not None:
        out, plot = out or posed.output.get("solution"), plot or posed.output.get("picture")
    if out is not None:
        check_writable(out)
    if plot is not None:
        check_picture(plot)
    if method:
        methods.get(method)
    posed = posed or _posed(problem, set_, allow_outside)
    # a file's options belong to its own method; windows choose their own representation
    chosen = _method(posed, method)
    settings: dict[str, Any] = dict(posed.model) if not model else {"name": model}
    begin = time.perf_counter()
    windows = not settings or settings == {"name": "default"}
    windows = windows and (chosen is None or getattr(chosen, "takes_problem", False))
    built = posed.problem if windows else _model(posed.problem, settings)
    modelled = time.perf_counter()
    solution = _solved(built, chosen)
    solved = time.perf_counter()
    field = solution.posterior.predict(solution.default_grid())
    predicted = time.perf_counter()
    if out is not None:
        solution.save(out)
    if plot is not None:
        draw(solution, plot, field)
    document = summary(solution, field)
    document["seconds"] = {"model": modelled - begin, "solve": solved - modelled, "predict": predicted - solved}
    document["written"] = {key: str(path) for key, path in (("solution", out), ("picture", plot)) if path is not None}
    _print_solution(document, as_json)
    if solution.status != "converged":
        typer.echo(f"note: {solution.status}: {solution.status.help}", err=True)
    if solution.status == "diverged":
        raise typer.Exit(1)


def _posed(name: str, set_: list[str] | None, allow_outside: bool) -> "ProblemFile":
    """The problem that a command's argument means: a file's, or a worked one by name."""
    from factorfield.problem_file import ProblemFile, read_problem, with_numbers

    options = dict(assignment(text) for text in set_ or [])
    if is_file_name(name):
        return with_numbers(read_problem(name, allow_outside), options)
    from factorfield import problems

    return ProblemFile(problems.get(name, **options))


def _method(posed: "ProblemFile", name: str) -> Any:
    """The configured method, or None for the one that suits."""
    from factorfield import methods
    from factorfield.solve import suited

    if name and name != posed.method:
        return methods.get(name)
    if posed.method is None and not posed.options:
        return None
    return methods.get(posed.method or ("joint" if posed.model else suited(posed.problem)), **posed.options)


def _print_solution(document: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(document)
        return
    rows = summary_rows(document)
    rows += [(f"seconds to {name}", f"{value:.3g}") for name, value in document["seconds"].items()]
    print_table(f"{document['problem']}: {document['equations'][0]}", [], rows)
    for label, path in document["written"].items():
        typer.echo(f"{label} written to {path}")


@app.command()
def compare(
    problem: Annotated[str, typer.Argument(help="A problem's name (see `factorfield list`), or a problem file.")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="An option of the problem, such as b=0.4; repeatable.")
    ] = None,
    names: Annotated[
        str, typer.Option("--methods", help="Names separated by commas.")
    ] = "joint,mean-field,hmc,vi,sgd,laplace",
    model: Annotated[str, typer.Option(help="default, or paper; empty: the file's, or default.")] = "",
    plot: Annotated[Path | None, typer.Option(help="Write a picture (png, pdf or svg).")] = None,
    as_json: Json = False,
    allow_outside: AllowOutside = False,
) -> None:
    """Run several methods on one model; print one table, draw one picture."""
    from factorfield import methods
    from factorfield.compare import COLUMNS, compare, table
    from factorfield.plotting import check_picture, plot_comparison
    from factorfield.progress import bar

    if plot is not None:
        check_picture(plot)
    chosen = [methods.get(name.strip()) for name in names.split(",")]
    posed = _posed(problem, set_, allow_outside)
    built = _model(posed.problem, {"name": model} if model else posed.model)
    with bar() as report:
        contenders = list(compare(built, chosen, report))
    rows = table(contenders)
    if plot is not None:
        plot_comparison(contenders, plot)
    if as_json:
        print_json({"problem": problem, "weights": built.size, "factors": built.factors, "methods": rows})
    else:
        cells = [[row["method"], row["status"], *(number(row[key]) for key in COLUMNS.values())] for row in rows]
        print_table(f"{problem}: {built.size} weights, {built.factors} factors", ["method", "status", *COLUMNS], cells)
        if plot is not None:
            typer.echo(f"picture written to {plot}")
    for contender in contenders:
        status = contender.solution.status
        if status != "converged":
            typer.echo(f"note: {contender.method}: {status}: {status.help}", err=True)


for command in (new, check, show):  # here: help lists commands in this order
    app.command()(command)


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


app.command()(reproduce)


def _solved(model: "Model | Problem", method: Any) -> "Solution":
    import factorfield as ff

    return ff.solve(model, method=method, progress=True)


def _model(problem: "Problem", settings: Mapping[str, Any]) -> "Model":
    from factorfield.estimate import built

    name = settings.get("name", "default")
    if name not in ("default", "paper"):
        raise expected("--model default or paper", name, nearest(name, ("default", "paper")))
    return built(problem, settings)


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


def main(arguments: list[str] | None = None) -> None:
    """Entry point: what the library says as an error becomes one line and exit code 2."""
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = _show_warning
        code, line = _run(arguments)
    if line:
        typer.echo(line, err=True)
    sys.exit(code)


def _run(arguments: list[str] | None) -> tuple[int, str]:
    """The exit code of a command line, and the line that explains it."""
    interrupted = 130, "interrupted; files are whole: as before, or finished"
    try:
        width = {} if sys.stdout.isatty() else {"terminal_width": PIPED_WIDTH}  # help is not cut for a pipe
        code = app(arguments, prog_name="factorfield", standalone_mode=False, **width)
        return interrupted if code == 130 else (code or 0, "")
    except ProblemError as problem:
        return 2, f"error: {problem}"
    except KeyboardInterrupt:
        return interrupted
    except MemoryError:
        return 2, f"error: {expected('a problem that fits into memory', 'a larger one', 'fewer modes or points')}"
    except OSError as problem:
        reason = f"{problem.strerror or problem}: {problem.filename or ''}".rstrip(": ")
        return 2, f"error: {expected('files that can be read and written', reason, 'another path')}"
    except Exception as problem:
        if type(problem).__name__ == "Abort":
            return interrupted
        if not hasattr(problem, "format_message"):  # a bug of ours: its traceback is what helps
            raise
        return _usage(problem)


def _usage(problem: Any) -> tuple[int, str]:
    """What is wrong with the command line itself; told by its methods, as Typer may or may not bring its own Click."""
    context = getattr(problem, "ctx", None)
    path = context.command_path if context is not None else "factorfield"
    if type(problem).__name__ == "NoArgsIsHelpError":
        return 2, problem.format_message()
    message = " ".join(problem.format_message().split()).rstrip(".")
    return 2, f"error: expected arguments of `{path}`, received: {message}; try `{path} --help`"


def _show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
    prefix = "advice" if issubclass(category, AdviceWarning) else "warning"
    typer.echo(f"{prefix}: {message}", err=True)


if __name__ == "__main__":
    main()
