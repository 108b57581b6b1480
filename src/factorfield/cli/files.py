"""`factorfield new`, `check` and `show`: files that describe problems, and files that hold solutions."""

# no `from __future__ import annotations` here: Typer would evaluate every annotation from text at every start
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from factorfield.cli.output import (
    Level,
    checked_level,
    duration,
    number,
    print_json,
    print_table,
    say,
    share,
    space,
    uncertain,
)
from factorfield.cli.problems import AllowOutside, Json
from factorfield.errors import ProblemError, command, expected, nearest, recorded, shown_path

if TYPE_CHECKING:
    import xarray as xr

    from factorfield.cli.estimate import Estimate
    from factorfield.files.problem_file import ProblemFile
    from factorfield.posterior.base import Estimate as CoefficientEstimate
    from factorfield.problem.coefficients import Table, Unknown
    from factorfield.problem.problem import Problem
    from factorfield.problem.relation import Relation
    from factorfield.problem.statement import GivenSigma, Statement
    from factorfield.solution import Solution


class Equation(TypedDict):
    text: str
    understood: str
    linear: bool  # in fields and unknown coefficients together
    kind: str  # in words: linear in the fields or not, and what is unknown
    sigma: float | None


class Condition(TypedDict):
    name: str
    values: int | None  # how many were measured
    where: str  # measured values and places in words
    sigma: float | None
    noise: str


class FunctionRange(TypedDict):
    """An unknown function, as its range over the domain."""

    least: float
    largest: float
    mean_std: float


class Summary(TypedDict):
    """What solve and show both tell about a solution."""

    problem: str
    equations: list[str]
    status: str
    help: str
    method: str | None
    weights: int
    windows: int | None
    modes: dict[str, int]
    mean_std: float
    level: float  # of the intervals of parameters
    parameters: "dict[str, CoefficientEstimate]"
    functions: dict[str, FunctionRange]
    scores: dict[str, float] | None
    warnings: list[str] | None


Run = Annotated[Path, typer.Argument(metavar="RUN", help="A solution written by `solve --out run.nc`.")]
FEW_PLACES = 6  # values that are listed one by one
LEAST_TIME = 1e-3  # seconds worth a line
ONE_DATA_SET = "of the places, for these data: errors of neighbours go together, 90 % is the mean over many data sets"


# -- new


def templates() -> dict[str, Path]:
    return {path.stem: path for path in sorted((Path(__file__).parent / "templates").glob("*.toml"))}


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A template (see --list).", show_default=False)] = "",
    list_: Annotated[bool, typer.Option("--list", help="Name the templates.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")] = False,
) -> None:
    """Write a commented problem file into the current folder."""
    from factorfield.files.atomic import write_text

    known = templates()
    if list_:
        for stem, path in known.items():
            first = path.read_text(encoding="utf-8").splitlines()[0]
            say(f"{stem}\t{first.lstrip('# ').partition('   ')[0]}")
        return
    if name not in known:
        raise expected(
            f"a template among {', '.join(known)}", name or "none", nearest(name, known, "factorfield new --list")
        )
    sources = sorted(known[name].parent.glob(f"{name}.*"))
    for source in sources:
        if os.path.lexists(source.name) and not force:
            raise expected(f"no file {source.name} here", "one", "--force, or another folder")
    for source in sources:
        write_text(Path(source.name), source.read_text(encoding="utf-8"))
        say(f"{source.name} written")


# -- check


def check(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A problem file.", show_default=False)] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of problem files.")] = False,
    as_json: Json = False,
    allow_outside: AllowOutside = False,
) -> None:
    """Say what a problem file means and what solving it will need; solve nothing."""
    from factorfield.cli.estimate import estimate
    from factorfield.files.problem_file import read_problem, schema_text

    if schema:
        say(schema_text().rstrip())
        return
    if file is None:
        raise expected("a problem file", "none", "factorfield new heat, then factorfield check heat.toml")
    if not file.exists() and Path(f"{file}.toml").is_file():
        raise expected("an existing problem file", str(file), command("factorfield", "check", f"{file}.toml"))
    with recorded() as told:
        read = read_problem(file, allow_outside)
        try:
            needs = estimate(read.problem, read.method, read.options, read.model)
        except ProblemError as problem:
            raise ProblemError(f"{file.name}: {problem}") from None
    if as_json:
        print_json(_described(read, needs) | {"warnings": told})
    else:
        _print_description(read, needs)


def _described(read: "ProblemFile", needs: "Estimate") -> dict[str, object]:
    from factorfield.problem.completeness import missing_conditions

    problem = read.problem
    return {
        "name": problem.name,
        "fields": list(problem.fields),
        "equations": _equations(problem),
        "domain": {
            name: {"kind": type(axis).__name__.lower(), "from": axis.lower, "to": axis.upper}
            for name, axis in ((name, problem.domain[name]) for name in problem.domain.names)
        },
        "parameters": {name: _coefficient(value) for name, value in problem.parameters.items()},
        "conditions": _conditions(problem),
        "missing": missing_conditions(problem),
        "method": {"name": read.method, **read.options},
        "output": {key: shown_path(path) for key, path in read.output.items()},
        "estimate": {**{k: v for k, v in vars(needs).items() if k != "seconds"}, "time": duration(needs.seconds)},
    }


def _equations(problem: "Problem") -> list[Equation]:
    return [_equation(problem, statement) for statement in problem.statements if statement.kind == "equation"]


def _equation(problem: "Problem", statement: "Statement") -> Equation:
    from factorfield.model.activation import Identity
    from factorfield.model.functions import coefficient_parts
    from factorfield.model.representation import field_form, substitute

    relation = statement.relation
    # linear in fields and unknown coefficients together, as the methods see it
    forms = {name: field_form(name, problem.domain.names, Identity()) for name in problem.fields}
    linear = substitute(relation, forms | {name: form for name, _, form in coefficient_parts(problem)}).is_linear
    return {
        "text": relation.text, "understood": f"{relation.expression} = 0", "linear": linear,
        "kind": _kind(problem, relation), "sigma": _typical(statement.sigma),
    }  # fmt: skip


def _kind(problem: "Problem", relation: "Relation") -> str:
    """As people classify equations: by their fields, with unknown coefficients beside."""
    own = {symbol: jet for symbol, jet in relation.jets.items() if jet.field in problem.fields}
    linear = all(not relation.jacobian[jet].free_symbols & set(own) for jet in own.values())
    unknown = [n for n in (*problem.unknowns, *problem.functions) if n in {*relation.parameters, *relation.functions}]
    told = {0: "", 1: ", unknown coefficient"}.get(len(unknown), ", unknown coefficients")
    return f"{'linear' if linear else 'nonlinear'} in {', '.join(relation.fields)}{told}"


def _coefficient(value: "float | Table | Unknown") -> str:
    from factorfield.problem.coefficients import Table, Unknown

    if isinstance(value, Unknown):
        kind = "positive unknown" if value.positive else "unknown"
        return f"{kind}{' function of ' + ', '.join(value.over) if value.over else ''}, {value.text}"
    if isinstance(value, Table):
        return "table over " + " x ".join(f"{axis} ({len(x)})" for axis, x in value.axes.items())
    return f"{value:g}"


def _conditions(problem: "Problem") -> list[Condition]:
    return [
        {
            "name": statement.name,
            "values": len(statement.target) if statement.points is not None else None,
            "where": _where(problem, statement),
            "sigma": _typical(statement.sigma),
            "noise": "gaussian" if statement.noise is None else statement.noise.name,
        }
        for statement in problem.statements if statement.kind != "equation"
    ]  # fmt: skip


def _where(problem: "Problem", statement: "Statement") -> str:
    """Values and places of measurements in words: mistaken columns and units show here."""
    import numpy as np

    if statement.points is None:
        return ""
    told = [(statement.relation.text, statement.target), *statement.points.items()]
    parts = []
    for name, values in told:
        unit, distinct = problem.units.get(name, ""), np.unique(values)
        listed = ", ".join(f"{x:.4g}" for x in distinct[:FEW_PLACES])
        text = listed if len(distinct) <= FEW_PLACES else f"{distinct[0]:.4g} to {distinct[-1]:.4g}"
        parts.append(f"{name} = {text} {unit}".rstrip())
    return "; ".join(parts)


def _typical(sigma: "GivenSigma") -> float | None:
    """One number for the sigmas of a statement: their root mean square."""
    import numpy as np

    return None if sigma is None else float(np.sqrt(np.mean(np.square(sigma))))


def _print_description(read: "ProblemFile", needs: "Estimate") -> None:
    from factorfield.problem.completeness import missing_conditions

    problem, rows = read.problem, []
    for equation in _equations(problem):
        rows.append(("equation", f"{equation['understood']}  ({equation['kind']}, {_trusted(equation['sigma'])})"))
    for name in problem.domain.names:
        axis = problem.domain[name]
        rows.append((f"domain {name}", f"{type(axis).__name__.lower()} [{axis.lower:g}, {axis.upper:g}]"))
    rows += [(f"parameter {name}", _coefficient(value)) for name, value in problem.parameters.items()]
    conditions = _conditions(problem)
    for condition in conditions:
        count = "" if condition["values"] is None else f"{condition['values']} values, "
        noise = "" if condition["noise"] == "gaussian" else f", {condition['noise']} noise"
        rows.append(("condition", f"{condition['name']}  ({count}{_trusted(condition['sigma'])}{noise})"))
        rows += [("", condition["where"])] if condition["where"] else []
    rows += [("condition", "none")] if not conditions else []
    rows += [("note", f"{text}: measurements have to tell the rest") for text in missing_conditions(problem)]
    rows += [(f"output {key}", shown_path(path)) for key, path in read.output.items()]
    print_table(f"{problem.name}: fields {', '.join(problem.fields)}", [], rows + _cost(needs))


def _trusted(sigma: float | None) -> str:
    return "sigma chosen or estimated" if sigma is None else f"sigma {sigma:g}"


def _cost(needs: "Estimate") -> list[tuple[str, str]]:
    windows = ""
    if needs.method == "chain":
        windows = " in 1 window" if needs.windows == 1 else f" in each of about {needs.windows} windows"
    return [
        ("method", needs.method),
        ("size", f"{needs.weights} weights, {needs.factors} factors{windows}"),
        ("memory", space(needs.memory)),
        ("time", f"{duration(needs.seconds)} here, if the start shows all that happens"),
    ]


# -- show


def show(
    file: Run,
    level: Level = 0.9,
    as_json: Json = False,
) -> None:
    """Print what a result file holds: problem, status, settings, coefficients, how far data are missed, scores."""
    from factorfield.show.report.conditions import conditions as judged
    from factorfield.solution import load

    checked_level(level)
    solution = load(file)
    field = solution.posterior.predict(solution.default_grid())
    misfits = {row.name: row.misfit for row in judged(solution)}
    document = summary(solution, field, level)
    conditions = _conditions(solution.problem)
    if as_json:
        told = [{**entry, "misfit": misfits[entry["name"]]} for entry in conditions]
        more = {"conditions": told, "settings": dict(solution.settings), "timings": dict(solution.timings)}
        print_json({**document, **more})
        return
    rows = [("warning", text) for text in document["warnings"] or ()]
    rows += [("warning", "the file does not say")] if document["warnings"] is None else []
    for condition in conditions:
        count, misfit = condition["values"], misfits[condition["name"]]
        missed = "" if misfit is None else f", missed by {misfit:.3g} sigma in the root mean square; about 1 is right"
        rows.append(("condition", condition["name"] + (f" ({count} values{missed})" if count else "")))
    rows += [(f"setting {key}", _short(value)) for key, value in solution.settings.items()]
    print_summary(document, rows + seconds_rows(solution.timings))


def _short(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_short(entry)}" for key, entry in value.items()) or "-"
    if isinstance(value, list) and value and all(isinstance(entry, list) for entry in value):  # names and numbers
        return "; ".join(" ".join(_short(part) for part in entry) for entry in value)
    if isinstance(value, list):
        return f"{len(value)} entries" if len(value) > 8 else ", ".join(_short(entry) for entry in value) or "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def summary(solution: "Solution", field: "xr.Dataset", level: float = 0.9) -> Summary:
    from factorfield import metrics

    problem = solution.problem
    return {
        "problem": problem.name,
        "equations": [equation.text for equation in problem.equations],
        "status": str(solution.status),
        "help": solution.status.help,
        "method": solution.settings.get("method"),
        "weights": solution.posterior.representation.size,
        "windows": solution.trace.get("windows"),
        "modes": dict(solution.settings.get("modes", {})),
        "mean_std": float(field["std"].mean()),
        "level": level,
        "parameters": solution.posterior.parameters(level),
        "functions": {name: _range(solution, name) for name in problem.functions},
        "scores": None if problem.truth is None else metrics.score(field, problem.truth),
        "warnings": None if solution.warnings is None else list(solution.warnings),
    }


def _range(solution: "Solution", name: str) -> FunctionRange:
    values = solution.posterior.predict(solution.default_grid(), name)
    mean, std = values["mean"], values["std"]
    return {"least": float(mean.min()), "largest": float(mean.max()), "mean_std": float(std.mean())}


def seconds_rows(timings: Mapping[str, float]) -> list[tuple[str, str]]:
    return [(f"seconds to {key}", number(value)) for key, value in timings.items() if value >= LEAST_TIME]


def print_summary(document: Summary, more: list[tuple[str, str]]) -> None:
    """The table of solve and show: what both tell, then more."""
    rows = [("status", document["status"]), ("method", document["method"] or "-")]
    rows += [("weights", str(document["weights"]))]
    rows += [("windows", str(document["windows"]))] if document["windows"] is not None else []
    rows += [("modes", _short(document["modes"]))] if document["modes"] else []
    score = document["scores"]
    if score is not None:
        rows += [(name, f"{score[key]:.3g}") for name, key in (("RMSE", "rmse"), ("CRPS", "crps"), ("NLL", "nll"))]
        rows += [("coverage (90 %)", f"{share(score['coverage90'])} {ONE_DATA_SET}")]
    rows += [("mean std", f"{document['mean_std']:.3g}")]
    for name, values in document["parameters"].items():
        rows.append((name, uncertain(values["mean"], values["std"], *values["interval"], document["level"])))
    for name, found in document["functions"].items():
        rows.append((name, f"from {found['least']:.4g} to {found['largest']:.4g}, mean std {found['mean_std']:.2g}"))
    print_table(f"{document['problem']}: {'; '.join(document['equations'])}", [], rows + more)
