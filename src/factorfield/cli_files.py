"""`factorfield new`, `check` and `show`: files that describe problems, and files that hold solutions."""

# no `from __future__ import annotations` here: Typer would evaluate every annotation from text at every start
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factorfield.cli_output import number, print_json, print_table
from factorfield.errors import ProblemError, expected, nearest

if TYPE_CHECKING:
    from factorfield.estimate import Estimate
    from factorfield.problem import Problem, Statement
    from factorfield.problem_file import ProblemFile
    from factorfield.solution import Solution

Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, nothing else.")]
AllowOutside = Annotated[
    bool, typer.Option("--allow-outside", help="Let a problem file name files outside its own folder.")
]


def is_file_name(text: str) -> bool:
    """Is the argument of a command a problem file, and not the name of a worked problem?"""
    return text.endswith(".toml") or os.sep in text or bool(os.altsep and os.altsep in text)


# -- new


def templates() -> dict[str, Path]:
    return {path.stem: path for path in sorted((Path(__file__).parent / "templates").glob("*.toml"))}


def new(
    name: Annotated[str, typer.Argument(help="A template (see --list).", show_default=False)] = "",
    list_: Annotated[bool, typer.Option("--list", help="Name the templates.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")] = False,
) -> None:
    """Write a commented problem file into the current folder."""
    known = templates()
    if list_:
        for stem, path in known.items():
            first = path.read_text(encoding="utf-8").splitlines()[0]
            typer.echo(f"{stem}\t{first.lstrip('# ').partition('   ')[0]}")
        return
    if name not in known:
        raise expected(f"a template among {', '.join(known)}", name or "none", nearest(name, known))
    sources = sorted(known[name].parent.glob(f"{name}.*"))
    for source in sources:
        if Path(source.name).exists() and not force:
            raise expected(f"no file {source.name} here", "one", "--force, or another folder")
    for source in sources:
        Path(source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
        typer.echo(f"{source.name} written")


# -- check


def check(
    file: Annotated[Path | None, typer.Argument(help="A problem file (TOML).", show_default=False)] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of problem files.")] = False,
    as_json: Json = False,
    allow_outside: AllowOutside = False,
) -> None:
    """Say what a problem file means and what solving it will need; solve nothing."""
    from factorfield.problem_file import read_problem, schema_text

    if schema:
        typer.echo(schema_text().rstrip())
        return
    if file is None:
        raise expected("a problem file", "none", "factorfield new heat, then factorfield check heat.toml")
    read = read_problem(file, allow_outside)
    try:
        document = _described(read)
    except ProblemError as problem:
        raise ProblemError(f"{file.name}: {problem}") from None
    if as_json:
        print_json(document)
    else:
        _print_description(document)


def _described(read: "ProblemFile") -> dict[str, Any]:
    from factorfield.estimate import estimate

    problem = read.problem
    return {
        "name": problem.name,
        "fields": list(problem.fields),
        "equations": [_equation(problem, s) for s in problem.statements if s.is_equation],
        "domain": {
            name: {"kind": type(axis).__name__.lower(), "from": axis.lower, "to": axis.upper}
            for name, axis in ((name, problem.domain[name]) for name in problem.domain.names)
        },
        "parameters": {name: _coefficient(value) for name, value in problem.parameters.items()},
        "conditions": [_condition(s) for s in problem.statements if not s.is_equation],
        "method": {"name": read.method, **read.options},
        "output": {key: str(path) for key, path in read.output.items()},
        "estimate": vars(estimate(problem, read.method, read.options, read.model)),
    }


def _equation(problem: "Problem", statement: "Statement") -> dict[str, Any]:
    relation = statement.relation
    certain = relation.is_linear and not set(relation.parameters) & set(problem.unknowns)
    return {
        "text": relation.text, "understood": f"{relation.expression} = 0", "linear": certain, "sigma": statement.sigma
    }  # fmt: skip


def _coefficient(value: Any) -> str:
    from factorfield.coefficients import Table, Unknown

    if isinstance(value, Unknown):
        kind = "positive unknown" if value.positive else "unknown"
        return f"{kind}{' function of ' + ', '.join(value.over) if value.over else ''}, {value.mean:g} +- {value.std:g}"
    if isinstance(value, Table):
        return "table over " + " x ".join(f"{axis} ({len(x)})" for axis, x in value.axes.items())
    return f"{value:g}"


def _condition(statement: "Statement") -> dict[str, Any]:
    import numpy as np

    known = None if statement.sigma is None else float(np.sqrt(np.mean(np.square(statement.sigma))))
    count = len(statement.target) if statement.points is not None else None
    noise = "gaussian" if statement.noise is None else statement.noise.name
    return {"name": statement.name, "values": count, "sigma": known, "noise": noise}


def _print_description(document: dict[str, Any]) -> None:
    rows = []
    for equation in document["equations"]:
        kind = "linear" if equation["linear"] else "nonlinear"
        rows.append(("equation", f"{equation['understood']}  ({kind}, {_trusted(equation['sigma'])})"))
    rows += [
        (f"domain {n}", f"{axis['kind']} [{axis['from']:g}, {axis['to']:g}]") for n, axis in document["domain"].items()
    ]
    rows += [(f"parameter {name}", text) for name, text in document["parameters"].items()]
    for condition in document["conditions"]:
        count = "" if condition["values"] is None else f"{condition['values']} values, "
        noise = "" if condition["noise"] == "gaussian" else f", {condition['noise']} noise"
        rows.append(("condition", f"{condition['name']}  ({count}{_trusted(condition['sigma'])}{noise})"))
    rows += [("condition", "none")] if not document["conditions"] else []
    rows += [(f"output {key}", path) for key, path in document["output"].items()]
    from factorfield.estimate import Estimate

    rows += _cost(Estimate(**document["estimate"]))
    print_table(f"{document['name']}: fields {', '.join(document['fields'])}", [], rows)


def _trusted(sigma: float | None) -> str:
    return "sigma chosen or estimated" if sigma is None else f"sigma {sigma:g}"


def _cost(needs: "Estimate") -> list[tuple[str, str]]:
    from factorfield.estimate import WITHIN

    windows = f" in each of about {needs.windows} windows" if needs.method == "chain" else ""
    return [
        ("method", needs.method),
        ("size", f"{needs.weights} weights, {needs.factors} factors{windows}"),
        ("memory", f"about {needs.memory / 2**20:.3g} MiB"),
        ("time", f"about {needs.seconds:.2g} s here (rough: within a factor of {WITHIN:g} on most problems)"),
    ]


# -- show


def show(
    file: Annotated[Path, typer.Argument(help="A solution written by --out or solution.save (NetCDF).")],
    as_json: Json = False,
) -> None:
    """Print what a result file holds: problem, status, settings, coefficients, scores."""
    from factorfield.solution import load

    solution = load(file)
    field = solution.predict(**solution.default_grid())  # type: ignore[arg-type]
    document = summary(solution, field) | {"conditions": [_condition(s) for s in _said(solution)]}
    document |= {"settings": dict(solution.settings), "timings": dict(solution.timings)}
    if as_json:
        print_json(document)
        return
    rows = summary_rows(document)
    rows += [
        ("condition", str(c["name"]) + (f" ({c['values']} values)" if c["values"] else ""))
        for c in document["conditions"]
    ]
    rows += [(f"setting {key}", _short(value)) for key, value in solution.settings.items()]
    rows += [(f"seconds to {key}", number(value)) for key, value in solution.timings.items()]
    print_table(f"{document['problem']}: {'; '.join(document['equations'])}", [], rows)


def _said(solution: "Solution") -> list["Statement"]:
    return [statement for statement in solution.problem.statements if not statement.is_equation]


def _short(value: Any) -> str:
    if isinstance(value, list) and len(value) > 8:
        return f"{len(value)} entries"
    if isinstance(value, dict):
        return ", ".join(f"{key} {entry}" for key, entry in value.items()) or "-"
    return str(value)


def summary(solution: "Solution", field: Any) -> dict[str, Any]:
    """What solve and show both tell about a solution."""
    from factorfield import metrics

    problem = solution.problem
    document: dict[str, Any] = {
        "problem": problem.name,
        "equations": [equation.text for equation in problem.equations],
        "status": str(solution.status),
        "help": solution.status.help,
        "method": solution.settings.get("method"),
        "weights": solution.posterior.representation.size,
        "windows": solution.trace.get("windows"),
        "modes": dict(solution.settings.get("modes", {})),
        "mean_std": float(field["std"].mean()),
        "parameters": solution.parameters,
        "functions": _functions(solution),
        "scores": None if problem.truth is None else metrics.score(field, problem.truth),
    }
    return document


def _functions(solution: "Solution") -> dict[str, Any]:
    """Unknown functions, as their range over the domain."""
    found = {}
    for name in solution.problem.functions:
        values = solution.predict(of=name, **solution.default_grid())  # type: ignore[arg-type]
        found[name] = {
            "least": float(values["mean"].min()), "largest": float(values["mean"].max()),
            "mean_std": float(values["std"].mean()),
        }  # fmt: skip
    return found


def summary_rows(document: dict[str, Any]) -> list[tuple[str, str]]:
    rows = [("status", document["status"]), ("method", document["method"] or "-")]
    rows += [("weights", str(document["weights"]))]
    rows += [("windows", str(document["windows"]))] if document["windows"] is not None else []
    rows += [("modes", ", ".join(f"{axis} {n}" for axis, n in document["modes"].items()))]
    score = document["scores"]
    if score is not None:
        rows += [(name, f"{score[key]:.3g}") for name, key in (("RMSE", "rmse"), ("CRPS", "crps"), ("NLL", "nll"))]
        rows += [("coverage (90 %)", f"{100 * score['coverage90']:.1f} %")]
    rows += [("mean std", f"{document['mean_std']:.3g}")]
    for name, values in document["parameters"].items():
        low, high = values["interval"]
        rows.append((name, f"{values['mean']:.4g} +- {values['std']:.2g}  90 %: [{low:.4g}, {high:.4g}]"))
    for name, values in document["functions"].items():
        rows.append((name, f"from {values['least']:.4g} to {values['largest']:.4g}, mean std {values['mean_std']:.2g}"))
    return rows
