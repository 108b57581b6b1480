"""The problem that a command means, by name or by file, and `factorfield list`."""

# no `from __future__ import annotations` here: Typer would evaluate every annotation from text at every start
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factorfield.cli.output import print_json, print_table, say
from factorfield.errors import command as shell
from factorfield.errors import expected

if TYPE_CHECKING:
    from factorfield.files.problem_file import ProblemFile

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else.")]
AllowOutside = Annotated[
    bool, typer.Option("--allow-outside", help="Let a problem file name files outside its own folder.")
]
ProblemName = Annotated[
    str, typer.Argument(metavar="PROBLEM", help="A problem's name (see `factorfield list`), or a problem file.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="An option (see `factorfield list PROBLEM`) or a parameter; repeatable."
    ),
]
ModelName = Annotated[str, typer.Option("--model", help="default, or paper; left out: the file's, or default.")]


def is_file_name(text: str) -> bool:
    """Is the argument of a command a problem file, and not the name of a worked problem?"""
    return text.endswith(".toml") or os.sep in text or bool(os.altsep and os.altsep in text)


def posed_problem(command: str, name: str, settings: list[str] | None, allow_outside: bool) -> "ProblemFile":
    """The problem that a command's argument means: a file's, or a worked one by name."""
    from factorfield.files.problem_file import ProblemFile, read_problem, with_numbers

    options: dict[str, Any] = dict(assignment(text) for text in settings or [])  # text for a number is refused later
    if is_file_name(name):
        return with_numbers(read_problem(name, allow_outside), options)
    from factorfield import problems

    if Path(f"{name}.toml").is_file():
        attempt = shell("factorfield", command, f"{name}.toml")
        if name not in problems.names():
            raise expected("a problem file or the name of a worked problem", name, attempt)
        say(f"note: {name}.toml in this folder was not used; try {attempt}", err=True)
    return ProblemFile(problems.get(name, **options))


def assignment(text: str) -> tuple[str, int | float | str]:
    name, sign, value = text.partition("=")
    if not sign or not name.isidentifier():
        raise expected("--set name=value", text, "--set nu=0.05")
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value


def list_problems(
    name: Annotated[
        str, typer.Argument(metavar="PROBLEM", help="One problem: its equations and options.", show_default=False)
    ] = "",
    as_json: Json = False,
) -> None:
    """The worked problems and the methods, or one problem with its options."""
    from factorfield import methods, problems

    if name:
        _print_problem(name, as_json)
        return
    found = {name: problems.summary(name) for name in problems.names()}
    if as_json:
        print_json({"problems": found, "methods": methods.names()})
        return
    width = max(len(name) for name in found)
    lines = [f"  {name:<{width}}  {text}" for name, text in found.items()]
    hint = "factorfield list PROBLEM shows one problem: its equations, and its options for --set"
    say("\n".join(["problems", *lines, "methods", "  " + ", ".join(methods.names()), hint]))


def _print_problem(name: str, as_json: bool) -> None:
    from factorfield import problems

    if is_file_name(name):
        raise expected("the name of a worked problem", f"the file {name}", shell("factorfield", "check", name))
    problem = problems.get(name)
    # some coefficients are read from a file if there is one: the problem knows what they are without
    options = {
        key: problem.constants.get(key) if value is None else value for key, value in problems.options(name).items()
    }
    equations = [equation.text for equation in problem.equations]
    conditions = [statement.name for statement in problem.statements if statement.kind != "equation"]
    if as_json:
        document = {"name": name, "summary": problems.summary(name), "equations": equations}
        print_json(document | {"conditions": conditions, "options": options})
        return
    rows = [("equation", text) for text in equations]
    rows += [("conditions", f"{len(conditions)}: {'; '.join(conditions)}")]
    rows += [(f"--set {key}", "left out" if value is None else str(value)) for key, value in options.items()]
    print_table(f"{name}: {problems.summary(name)}", [], rows)
