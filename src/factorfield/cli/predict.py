"""`factorfield predict`: numbers of a stored solution at any places, as CSV."""

# no `from __future__ import annotations` here: Typer would evaluate every annotation from text at every start
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factorfield.cli.files import Run
from factorfield.cli.output import Level, checked_level, say
from factorfield.errors import expected, shown_path

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import xarray as xr
    from numpy.typing import NDArray

    from factorfield.problem.domain import Domain

MOST_PLACES = 5_000_000
EXAMPLE = "--grid x=0:100:11 t=48:60:13"


def predict(  # noqa: PLR0913
    run: Run,
    more: Annotated[
        list[str] | None, typer.Argument(metavar="[AXIS=PLACES]...", help="Further axes of --grid.", show_default=False)
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(metavar="AXIS=PLACES", help="lower:upper:count, or numbers with commas; one for each axis."),
    ] = None,
    at: Annotated[Path | None, typer.Option(help="A CSV file of points: a column per axis.")] = None,
    of: Annotated[str, typer.Option(help="Another quantity than the field, such as u_x or k*u_x.")] = "",
    noise: Annotated[bool, typer.Option("--noise", help="Of a new measurement: with its noise.")] = False,
    level: Level = 0.9,
    csv: Annotated[Path | None, typer.Option(help="The file to write; without it, to stdout.")] = None,
) -> None:
    """Mean, std and interval of a stored solution at places of your choice: one row per place."""
    from factorfield.files.atomic import complete
    from factorfield.files.problem_file import check_no_input
    from factorfield.files.results import check_writable
    from factorfield.solution import load

    checked_level(level)
    if csv is not None:
        check_no_input(check_writable(csv), [path.resolve() for path in (run, at) if path is not None])
    solution = load(run)
    axes: dict[str, Any] = _places([*(grid or ()), *(more or ())], at, solution.problem.domain)
    table = rows(solution.predict(of=of or None, noise=noise, points=at is not None, level=level, **axes))
    if csv is None:
        table.to_csv(sys.stdout, index=False, float_format="%.8g", lineterminator="\n")
        return
    with complete(csv) as part:
        table.to_csv(part, index=False, float_format="%.8g", lineterminator="\n")
    say(f"{len(table)} rows written to {shown_path(csv)}")


def rows(found: "xr.Dataset") -> "pd.DataFrame":
    """A prediction with its intervals as a table: coordinates, mean, std, lower, upper."""
    names = [str(name) for name in ("field", *(n for n in found.coords if n != "field"))]
    table = found.to_dataframe().reset_index()
    return table[[name for name in names if name in table] + ["mean", "std", "lower", "upper"]]


def _places(grid: list[str], at: Path | None, domain: "Domain") -> dict[str, Any]:
    from factorfield.problem.tables import column_names, read_columns

    if (at is None) == (not grid):
        raise expected("either --grid or --at", "both" if grid else "neither", f"{EXAMPLE}, or --at points.csv")
    if at is not None:
        there = column_names(at)
        points = read_columns(at, [name for name in domain.names if name in there] or list(domain.names), {})
        _check_count(len(next(iter(points.values()))), "a part of them")
        return points
    axes = {}
    for name, x in map(axis_places, grid):
        if name in axes:
            raise expected(f"places along {name} once", "twice", EXAMPLE)
        axes[name] = x
    _check_count(math.prod(len(x) for x in axes.values()), "fewer along some axis")
    return axes


def _check_count(count: int, attempt: str) -> None:
    if count > MOST_PLACES:
        raise expected(f"at most {MOST_PLACES} places", str(count), attempt)


def axis_places(text: str) -> "tuple[str, NDArray[np.float64]]":
    import numpy as np

    name, sign, value = text.partition("=")
    parts = value.split(":")
    try:
        if not sign or len(parts) not in (1, 3):
            raise ValueError
        if len(parts) == 3:
            lower, upper, count = float(parts[0]), float(parts[1]), int(parts[2])
            if not (1 <= count <= MOST_PLACES and math.isfinite(upper - lower)):
                raise ValueError
            return name, np.linspace(lower, upper, count)
        return name, np.array([float(part) for part in value.split(",")])
    except ValueError:
        raise expected("places as axis=lower:upper:count", text, EXAMPLE) from None
