"""`factorfield rank` and `factorfield next`: which equation, and where to measure next."""

# no `from __future__ import annotations` here: Typer would evaluate every annotation from text at every start
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factorfield.cli.files import Run
from factorfield.cli.output import number, print_json, print_table, say, share
from factorfield.cli.predict import axis_places
from factorfield.cli.problems import AllowOutside, Json, is_file_name, posed_problem
from factorfield.errors import expected, shown_path

if TYPE_CHECKING:
    import xarray as xr

    from factorfield.files.problem_file import ProblemFile
    from factorfield.problem.domain import Domain

WITHIN = "--within t=2, or --within x=0:0.3"


def rank(
    problems: Annotated[list[str], typer.Argument(metavar="PROBLEM...", help="Problem files, or names, two or more.")],
    odds: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=NUMBER", help="Odds before the measurements; one for each, or left out: alike."),
    ] = None,
    method: Annotated[
        str, typer.Option(help="chain, forward, joint, laplace or tree; left out: the one that suits.")
    ] = "",
    plot: Annotated[Path | None, typer.Option(help="Write a picture (png, pdf or svg).")] = None,
    as_json: Json = False,
    allow_outside: AllowOutside = False,
) -> None:
    """Which equation? Problems with the same measurements, the most probable first."""
    from factorfield.files.problem_file import check_no_input
    from factorfield.ranking.rank import rank as ranked
    from factorfield.show.plotting import check_picture, plot_ranking

    posed = {_name(text): posed_problem("rank", text, None, allow_outside) for text in problems}
    if len(posed) < len(problems):
        raise expected("problems with different names", ", ".join(problems), "other file names")
    target = (
        None if plot is None else check_no_input(check_picture(plot), [p for f in posed.values() for p in f.inputs])
    )
    weights = None if odds is None else dict(_odds(text) for text in odds)
    used, options = _method(posed, method)
    found = ranked({n: f.problem for n, f in posed.items()}, weights, used, True, **options)
    if target is not None:
        plot_ranking(found, target)
    if as_json:
        rows = [_row(found.sel(name=name)) for name in found["name"].values]
        written = {} if target is None else {"picture": str(target)}
        print_json({"problems": rows, "advice": found.attrs["advice"], "written": written})
        return
    _print_ranking(found.sortby("probability", ascending=False))
    if target is not None:
        say(f"picture written to {shown_path(target)}")


def _name(text: str) -> str:
    return Path(text).stem if is_file_name(text) else text


def _odds(text: str) -> tuple[str, float]:
    name, sign, value = text.rpartition("=")
    try:
        if sign:
            return name, float(value)
    except ValueError:
        pass
    raise expected("--odds name=number", text, "--odds first=2 --odds second=1")


def _method(posed: "dict[str, ProblemFile]", method: str) -> tuple[str | None, dict[str, Any]]:
    """The one method and options of all files."""
    said = [(each.method, dict(each.options), dict(each.model)) for each in posed.values()]
    if any(model not in ({}, {"name": "default"}) for _, _, model in said):
        raise expected("the default model in all problems", "a [model] of its own", "leaving [model] out")
    if method:
        return method, {}
    if any(each != said[0] for each in said):
        raise expected("one method with the same options in all problems", "several", "--method chain")
    return said[0][0], said[0][1]


def _row(one: "xr.Dataset") -> dict[str, Any]:
    keys = ("mean", "std", "lower", "upper")
    numbers = {str(n): one.sel(coefficient=n) for n in one["coefficient"].values}
    known = {n: c for n, c in numbers.items() if float(c["coefficient_mean"]) == float(c["coefficient_mean"])}
    return {
        "name": str(one["name"].item()), "probability": float(one["probability"]),
        "log_evidence": float(one["log_evidence"]), "evidence": str(one["evidence"].item()),
        "status": str(one["status"].item()),
        "coefficients": {n: {key: float(c[f"coefficient_{key}"]) for key in keys} for n, c in known.items()},
        "misfit": {str(n): float(one["misfit"].sel(measurements=n)) for n in one["measurements"].values},
    }  # fmt: skip


def _print_ranking(found: "xr.Dataset") -> None:
    rows = []
    for name in found["name"].values:
        row = _row(found.sel(name=name))
        numbers = [f"{n} = {c['mean']:.3g} +- {c['std']:.2g}" for n, c in row["coefficients"].items()]
        misfits = ", ".join(number(value) for value in row["misfit"].values())
        behind = row["log_evidence"] - float(found["log_evidence"].max())
        rows.append(
            [row["name"], share(row["probability"]), f"{row['log_evidence']:.2f}", f"{behind:.2f}", row["evidence"],
             row["status"], misfits, "; ".join(numbers) or "-"]
        )  # fmt: skip
    header = [
        "name",
        "probability",
        "log evidence",
        "to the best",
        "evidence",
        "status",
        "misfit (sigma)",
        "coefficients",
    ]
    print_table("which equation: the most probable first", header, rows)


# -- next


def next_places(  # noqa: PLR0913
    run: Run,
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[AXIS=PLACES]...", help="Further axes of --grid.", show_default=False)
    ] = None,
    count: Annotated[int, typer.Option(help="How many measurements.")] = 10,
    sigma: Annotated[float | None, typer.Option(help="Of each; left out: that of the measurements so far.")] = None,
    of: Annotated[str, typer.Option(help="What is measured; left out: the first field.")] = "",
    target: Annotated[str, typer.Option(help="A coefficient or quantity to know; left out: what is measured.")] = "",
    within: Annotated[
        list[str] | None, typer.Option(metavar="AXIS=PLACE", help="The target at a number, or over lower:upper.")
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(metavar="AXIS=PLACES", help="Candidates: lower:upper:count, or numbers with commas."),
    ] = None,
    at: Annotated[Path | None, typer.Option(help="A CSV file of candidates: a column per axis.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the places as CSV.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a map of the gain (png, pdf or svg).")] = None,
    as_json: Json = False,
) -> None:
    """Where to measure next: the places that tell most, one after the other, and what each leaves uncertain."""
    from factorfield.files.atomic import complete
    from factorfield.files.problem_file import check_no_input
    from factorfield.files.results import check_writable
    from factorfield.show.plotting import check_picture, plot_next
    from factorfield.solution import load

    inputs = [path.resolve() for path in (run, at) if path is not None]
    csv = None if csv is None else check_no_input(check_writable(csv), inputs)
    plot = None if plot is None else check_no_input(check_picture(plot), inputs)
    wanted: dict[str, Any] = {"of": target} if target else {}
    wanted |= dict(_place(text) for text in within or ())
    along = [*(grid or ()), *(more or ())]
    if along and at is not None:
        raise expected("either --grid or --at", "both", "one of them")
    solution = load(run)
    places = _candidates(along, at, solution.problem.domain)
    found = solution.next_measurements(count, sigma, candidates=places, of=of, target=wanted or None)
    axes = list(solution.problem.domain.names)
    if plot is not None:
        plot_next(found, plot)
    if csv is not None:
        table = found[["std", "removed"]].to_dataframe().reset_index()[["measurement", *axes, "std", "removed"]]
        with complete(csv) as part:
            table.to_csv(part, index=False, float_format="%.8g", lineterminator="\n")
    written = {key: shown_path(path) for key, path in (("csv", csv), ("picture", plot)) if path is not None}
    _print_places(found, axes, written, as_json)


def _place(text: str) -> tuple[str, float | tuple[float, float]]:
    name, sign, value = text.partition("=")
    try:
        ends = [float(part) for part in value.split(":")]
        if sign and len(ends) in (1, 2):
            return name, ends[0] if len(ends) == 1 else (ends[0], ends[1])
    except ValueError:
        pass
    raise expected("an axis at a number or over lower:upper", text, WITHIN)


def _candidates(grid: list[str], at: Path | None, domain: "Domain") -> Any:
    if at is None:
        return dict(axis_places(text) for text in grid) or None
    import pandas as pd

    from factorfield.problem.tables import read_columns

    return pd.DataFrame(read_columns(at, list(domain.names), {}))


def _print_places(found: "xr.Dataset", axes: list[str], written: dict[str, str], as_json: bool) -> None:
    told = dict(found.attrs)
    if as_json:
        documents = [
            {axis: float(one[axis]) for axis in axes} | {"std": float(one["std"]), "removed": float(one["removed"])}
            for one in (found.sel(measurement=index) for index in found["measurement"].values)
        ]
        print_json({**told, "std_now": float(found["std_now"]), "measurements": documents, "written": written})
        return
    rows = []
    for index in found["measurement"].values:
        one = found.sel(measurement=index)
        rows.append([str(index), *(f"{float(one[a]):.5g}" for a in axes), number(float(one["std"])),
                     share(float(one["removed"]))])  # fmt: skip
    title = f"{told['of']} +- {told['sigma']:.3g}, for {told['target']} (std now {float(found['std_now']):.3g})"
    print_table(title, ["", *axes, "std after", "variance removed"], rows)
    say(f"note: {told['valid']}", err=True)
    for label, path in written.items():
        say(f"{label} written to {path}")
