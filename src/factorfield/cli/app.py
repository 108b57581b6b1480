"""The command line: `factorfield solve heat --set nu=0.05 --out run.nc --plot run.png`.

Exit codes: 0 solved (with a note if iterations ran out), 1 nothing to trust, 2 bad input (one line, no traceback).
"""

# no `from __future__ import annotations` here: Typer would evaluate every annotation from text at every start
import io
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TextIO, runtime_checkable

import typer

from factorfield.cli.calibrate import calibrate
from factorfield.cli.compare import compare
from factorfield.cli.data import app as data_app
from factorfield.cli.files import check, new, print_summary, seconds_rows, show, summary
from factorfield.cli.output import Level, checked_level, print_json, say
from factorfield.cli.pictures import plot_run, report_run
from factorfield.cli.predict import predict
from factorfield.cli.problems import AllowOutside, Json, ModelName, ProblemName, Settings, list_problems, posed_problem
from factorfield.cli.questions import next_places, rank
from factorfield.cli.reproduce import reproduce
from factorfield.cli.signals import LINE, unwinding
from factorfield.errors import Advice, AdviceWarning, ProblemError, expected, recorded, shown_path, visible
from factorfield.version import __version__

if TYPE_CHECKING:
    from factorfield.cli.files import Summary

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Differential equations and noisy measurements, solved together with honest uncertainty.",
)


PIPED_WIDTH = 160
READER_GONE = 141  # what a shell says of a program that `| head` ended
AS_PUBLISHED = (
    "this is the paper's model as published, known to be overconfident (docs/reproduction.md); "
    "how the default model's intervals fare is in docs/gallery.md"
)
PACKAGES = (
    "numpy", "scipy", "sympy", "numba", "xarray", "h5netcdf", "h5py", "typer", "rich", "jinja2", "threadpoolctl",
    "matplotlib", "jax", "optax", "blackjax", "arviz", "distributed",
)  # fmt: skip


def _version(value: bool) -> None:
    """Ours, Python's, and those of what we stand on."""
    if not value:
        return
    import platform
    from importlib.metadata import PackageNotFoundError, version

    say(f"factorfield {__version__}")
    say(f"python {platform.python_version()}")
    for name in PACKAGES:
        try:
            say(f"{name} {version(name)}")
        except PackageNotFoundError:
            say(f"{name} not installed")
    raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the versions.")
    ] = False,
) -> None: ...


def solve(  # noqa: PLR0913
    problem: ProblemName,
    settings: Settings = None,
    method: Annotated[
        str, typer.Option(help="chain, joint, tree, laplace, mean-field, sgd, vi or hmc; left out: the one that suits.")
    ] = "",
    model: ModelName = "",
    out: Annotated[Path | None, typer.Option(help="Write the solution (NetCDF, such as run.nc).")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a picture (png, pdf or svg).")] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Asked of the numerical error, relative to the field (1e-5).")
    ] = None,
    level: Level = 0.9,
    as_json: Json = False,
    allow_outside: AllowOutside = False,
) -> None:
    """Solve a problem, print a table, write the solution and a picture."""
    from factorfield import methods, solving
    from factorfield.cli.estimate import asked
    from factorfield.files.problem_file import check_no_input
    from factorfield.files.results import check_result
    from factorfield.show.plotting import check_picture
    from factorfield.show.plotting import plot as draw

    checked_level(level)
    if method:
        methods.get(method)
    with recorded() as told:  # advice about data and model belongs to the result as well
        posed = posed_problem("solve", problem, settings, allow_outside)
        out, plot = out or posed.output.get("solution"), plot or posed.output.get("picture")
        out = None if out is None else check_no_input(check_result(out), posed.inputs)
        plot = None if plot is None else check_no_input(check_picture(plot), posed.inputs)
        start = time.perf_counter()
        subject = asked(posed.problem, {"name": model} if model else posed.model)
        modelling = time.perf_counter() - start
        # a file's options belong to its own method
        options: dict[str, Any] = dict(posed.options if method in ("", posed.method) else {})
        options |= {} if tolerance is None else {"tolerance": tolerance}
        name = method or posed.method or None
        methods.configured(name or methods.default_method(subject), options)
    begin = time.perf_counter()
    solution = solving.solve(subject, method=name, progress=True, **options)
    solution = replace(solution, advice=(*(Advice("problem", text) for text in told), *(solution.advice or ())))
    solved = time.perf_counter()
    field = solution.posterior.predict(solution.default_grid())
    predicted = time.perf_counter()
    if out is not None:
        solution.save(out)
    if plot is not None:
        draw(solution, plot, field)
    seconds = {"model": modelling, "solve": solved - begin, "predict": predicted - solved}
    written = {key: shown_path(path) for key, path in (("solution", out), ("picture", plot)) if path is not None}
    _print_solution(summary(solution, field, level), seconds, written, as_json)
    if solution.status != "converged":
        say(f"note: {solution.status}: {solution.status.help}", err=True)
    if solution.settings.get("model") == "paper":
        say(f"note: {AS_PUBLISHED}", err=True)
    if solution.status == "diverged":
        raise typer.Exit(1)


def _print_solution(document: "Summary", seconds: dict[str, float], written: dict[str, str], as_json: bool) -> None:
    if as_json:
        print_json({**document, "seconds": seconds, "written": written})
        return
    print_summary(document, seconds_rows(seconds))
    for label, path in written.items():
        say(f"{label} written to {path}")


# help lists commands in this order: from a first file to the paper
COMMANDS: dict[str, Callable[..., None]] = {
    "new": new, "check": check, "solve": solve, "show": show, "predict": predict, "plot": plot_run,
    "report": report_run, "rank": rank, "next": next_places,
    "list": list_problems, "compare": compare, "calibrate": calibrate, "reproduce": reproduce,
}  # fmt: skip
for name, command in COMMANDS.items():
    app.command(name)(command)
app.add_typer(data_app, name="data")


def main(arguments: list[str] | None = None) -> None:
    """Entry point: what the library says as an error becomes one line and exit code 2."""
    with warnings.catch_warnings(), _streams(), unwinding() as signals:
        warnings.simplefilter("default")
        warnings.simplefilter("ignore", RuntimeWarning)  # of overflow on the way of a search: the status says what came
        warnings.showwarning = _show_warning
        code, line = 0, ""
        try:
            signals.running = True
            code, line = _run(arguments)
            signals.running = False
        except BaseException:  # what broke because a signal came in between is no error of its own
            if signals.received is None:
                raise
        if signals.received is not None:
            code, line = 128 + signals.received, LINE
        signals.ending = line == LINE
        if line:
            with suppress(OSError):  # stderr may be full too
                say(visible(line) if line.startswith("error: ") else line, err=True)  # help has lines
    sys.exit(code)


@contextmanager
def _streams() -> Iterator[None]:
    """A program without stdout or stderr (`>&-`) writes to nowhere, and one whose reader is gone ends quietly."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what the terminal's encoding lacks is spelt out
            stream.reconfigure(errors="backslashreplace")
    lost = [name for name in ("stdout", "stderr") if getattr(sys, name) is None]
    with ExitStack() as opened:
        for name in lost:
            opened.enter_context(_exchanged(name, opened.enter_context(open(os.devnull, "w"))))
        yield
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:  # what is left in it goes nowhere, so that Python does not try again at its end
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def _exchanged(name: str, stream: TextIO) -> Iterator[None]:
    setattr(sys, name, stream)
    try:
        yield
    finally:
        setattr(sys, name, None)


def _run(arguments: list[str] | None) -> tuple[int, str]:
    """The exit code of a command line, and the line that explains it."""
    try:
        width = {} if sys.stdout.isatty() else {"terminal_width": PIPED_WIDTH}  # help is not cut for a pipe
        code = app(arguments, prog_name="factorfield", standalone_mode=False, **width)
        return code or 0, LINE if code == 130 else ""
    except ProblemError as problem:
        return 2, f"error: {problem}"
    except SystemExit as end:  # Click ends with 1 when its reader is gone: that is no failure of the command
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        return READER_GONE, ""
    except KeyboardInterrupt:
        return 130, LINE
    except MemoryError:
        return 2, f"error: {expected('a problem that fits into memory', 'a larger one', 'fewer modes or points')}"
    except OSError as problem:
        reason = f"{problem.strerror or problem}: {problem.filename or ''}".rstrip(": ")
        return 2, f"error: {expected('files that can be read and written', reason, 'another path')}"
    except Exception as problem:
        if type(problem).__name__ == "Abort":
            return 130, LINE
        if not isinstance(problem, UsageError):  # a bug of ours: its traceback is what helps
            raise
        return _usage(problem)


@runtime_checkable
class UsageError(Protocol):
    """Click's error about a command line, known by its method: Typer may or may not bring a Click of its own."""

    def format_message(self) -> str: ...


def _usage(problem: UsageError) -> tuple[int, str]:
    """What is wrong with the command line itself."""
    context = getattr(problem, "ctx", None)
    path = context.command_path if context is not None else "factorfield"
    if type(problem).__name__ == "NoArgsIsHelpError":
        return 2, problem.format_message()
    message = " ".join(problem.format_message().split()).rstrip(".")
    return 2, f"error: expected arguments of `{path}`, received: {message}; try `{path} --help`"


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    prefix = "advice" if issubclass(category, AdviceWarning) else "warning"
    say(f"{prefix}: {message}", err=True)


if __name__ == "__main__":
    main()
