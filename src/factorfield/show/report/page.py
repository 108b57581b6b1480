"""A report: one HTML page about a solution that needs no network, no script of others and no plotting package.

What a reader must know first comes first: status and warnings. The page draws its pictures itself (report.js) from
numbers embedded in it. This file says things in plain text; the templates make HTML of it and escape all of it. A
content security policy admits our own script and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from factorfield.errors import expected
from factorfield.files.atomic import write_text
from factorfield.files.results import check_writable
from factorfield.problem.coefficients import Table
from factorfield.problem.domain import Periodic
from factorfield.problem.problem import Problem
from factorfield.problem.region import Region
from factorfield.show.formula import mathml, mathml_symbol, vanishing
from factorfield.show.report.conditions import conditions, rounded, unexplained
from factorfield.show.report.data import frame_count, page_data
from factorfield.show.report.further import correlations, further
from factorfield.show.views import View, calibration, view
from factorfield.solution import Solution
from factorfield.version import __version__

MEANING = {  # of solution.settings: what was chosen, and from what
    "method": "How the posterior was found. Left open: boxes in regions and in three axes of space, else windows "
    "where there is time, else one belief.",
    "model": "How the problem was represented.",
    "modes": "Frequencies (periodic axes) or polynomial degrees. Left open: chosen from data and equation.",
    "cells": "Cells per axis, each with a spline of its own. Left open: halved until the tolerance is met.",
    "degree": "Polynomial degree in time within a window (left open: 20, or 12 where modes mix), or of splines.",
    "scale": "Typical size of the field: the root mean square of what the conditions say about it, beside its offset.",
    "offset": "Level that a field varies about, where only differences from it matter.",
    "activation": "The ansatz: field = activation of a weighted sum of features.",
    "sigma": "Noise of every condition and equation: as given; else estimated from the data, or a small share of the "
    "natural size.",
    "piece": "Share of each axis: the sigma of an equation or wall is that of its mean error over such a piece.",
    "left_out": "Standard deviation of the modes that are not part of the belief; it is added to std.",
    "tolerance": "Asked of the numerical error, relative to the field.",
    "std": "Root mean square of the standard deviation over the domain: what the data leave open, and the estimated "
    "numerical error.",
    "windows": "Windows of time, as long as the tolerance allows.",
    "factorisations": "Matrix factorisations that were needed.",
    "collocation": "Points per axis at which the equation is asked to hold: twice the features.",
    "path": "The linear algebra that the conditioning of the problem asked for.",
}
STATUS = {
    "converged": "Converged: the method came to rest, and going on would change the result little.",
    "unresolved": "Not resolved: the representation leaves out more than was asked, and details are lost.",
    "max-iterations": "Not finished: the limit of iterations came first, and the result may still change.",
    "diverged": "Diverged: nothing on this page can be trusted.",
}
TIMINGS = {
    "choose": "choosing modes and noise", "solve": "solving, all choices included",
    "compare": "comparing with wider cells",
}  # fmt: skip


def check_page(path: str | os.PathLike[str]) -> Path:
    """Refuse a page that could not be written - before the work, not after it."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise expected("a page to write such as run.html", target.name or str(target), f"{target.stem or 'run'}.html")
    return check_writable(target)


def write(solution: Solution, path: str | os.PathLike[str], level: float = 0.9) -> Path:
    """Write the report, its intervals of this level; the file appears complete or not at all."""
    target = check_page(path)
    text = page(solution, level)
    write_text(target, text)
    return target


def page(solution: Solution, level: float = 0.9) -> str:
    """The report as HTML text."""
    shown = view(solution)
    numbers, stated = page_data(solution, shown, level), conditions(solution)
    here = files("factorfield.show.report")
    style, script = (Markup(here.joinpath(name).read_text("utf-8")) for name in ("report.css", "report.js"))
    return templates().get_template("page.html").render(
        style=style, script=script, numbers=numbers, frames=frame_count(shown), version=__version__,
        solution=solution, problem=solution.problem, shown=shown,
        title=solution.problem.name or "Untitled problem",
        status=solution.status, headline=STATUS[solution.status],
        warnings=[*unexplained(stated, solution.advice or ()), *(solution.warnings or ())],
        meanings=_meanings(solution.problem), conditions=stated, spread=_spread(shown),
        coefficients=_coefficients(solution, level), level=f"{100.0 * level:g} %", calibration=calibration(shown),
        settings=_settings(solution), work=_work(solution), further=further(solution), pairs=correlations(solution),
    )  # fmt: skip


def templates() -> Environment:
    """The templates of all our pages: what is put into them is escaped, and a name that is missing is an error."""
    found = Environment(
        loader=PackageLoader("factorfield.show.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    found.policies["json.dumps_kwargs"] = {"allow_nan": False}  # JSON knows neither NaN nor infinity
    found.filters |= {
        "digest": _digest, "mathml": mathml, "number": rounded, "symbol": mathml_symbol, "vanishing": vanishing
    }  # fmt: skip
    return found


def _digest(text: str) -> str:
    """What a content security policy knows a script or style by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


# -- what the sections say, in the order of the page


def _meanings(problem: Problem) -> list[tuple[str, str]]:
    """Every symbol of the problem - axes, fields with units, coefficients - and what it stands for."""
    unit = {name: f" {problem.units[name]}" if name in problem.units else "" for name in problem.names}
    found = []
    for name in problem.domain.names:
        axis = problem.domain[name]
        kind = ", periodic" if isinstance(axis, Periodic) else ""
        kind += _part(problem.region) if problem.region is not None and name in problem.domain.space[:1] else ""
        found.append((name, f"from {axis.lower:g} to {axis.upper:g}{unit[name]}{kind}"))
    found += [(name, f"field, in{unit[name]}") for name in problem.fields if unit[name]]
    for name, value in problem.constants.items():
        known = f"a table over {', '.join(value.axes)}" if isinstance(value, Table) else f"= {value:g}"
        found.append((name, f"{known}{unit[name]}, known"))
    for name, prior in {**problem.unknowns, **problem.functions}.items():
        kind = ", positive" if prior.positive else ""
        over = f", a function of {', '.join(prior.over)}" if prior.over else ""
        found.append((name, f"unknown{over}; prior {prior.text.replace('+-', '±')}{unit[name]}{kind}"))
    return found


def _part(region: Region) -> str:
    """Of the plane, in words."""
    return f", only where {region.text}" if region.outline is None else f", only inside {region!r}"


@dataclass(frozen=True)
class Spread:
    """The size of the std over the grid, beside the size of the field."""

    mean: float
    most: float
    field: float  # root mean square


def _spread(shown: View) -> Spread | None:
    mean, std = (values[np.isfinite(shown.mean)] for values in (shown.mean, shown.std))  # inside a region
    if not std.size or not np.all(np.isfinite(std)):
        return None
    size = float(np.sqrt(np.mean(mean**2))) or 1.0
    return Spread(float(std.mean()), float(std.max()), size)


@dataclass(frozen=True)
class Coefficient:
    """Posterior and prior of an unknown coefficient, as a row of the report's table."""

    name: str
    mean: float
    std: float
    interval: tuple[float, float]
    prior: str
    unit: str


def _coefficients(solution: Solution, level: float) -> list[Coefficient]:
    unknowns, units = solution.problem.unknowns, solution.problem.units
    priors = {name: f"{prior.text.replace('+-', '±')}" for name, prior in unknowns.items()}
    return [
        Coefficient(name, after["mean"], after["std"], after["interval"], priors[name], units.get(name, ""))
        for name, after in solution.posterior.parameters(level).items()
    ]


def _settings(solution: Solution) -> list[tuple[str, list[str], str]]:
    return [
        (key.replace("_", " "), _lines(key, value), MEANING.get(key, "")) for key, value in solution.settings.items()
    ]


def _lines(key: str, value: object) -> list[str]:
    """The value of a setting, in a line; sigmas in a line each."""
    if key == "windows" and isinstance(value, Sequence):
        return ["1 window" if len(value) == 2 else f"{len(value) - 1} windows"]
    if key == "sigma" and isinstance(value, Sequence):
        return [f"{name}: {rounded(number)}" for name, number in value]
    return [_text(value)]


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_text(one)}" for name, one in value.items()) or "-"
    if isinstance(value, float):
        return rounded(value, 4)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_text, value)) or "-"
    return str(value) if value not in (None, "") else "-"


def _work(solution: Solution) -> list[tuple[str, str]]:
    """Seconds, and what the method counted."""
    seconds = [(TIMINGS.get(name, name), f"{rounded(value)} s") for name, value in solution.timings.items()]
    counts = {name: value for name, value in solution.trace.items() if isinstance(value, int | float)}
    return seconds + [(name.replace("_", " "), rounded(value, 6)) for name, value in counts.items()]
