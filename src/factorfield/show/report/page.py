"""A report: one HTML page about a solution that needs no network, no script of others and no plotting package.

What a reader must know first comes first: status and warnings. The page draws its pictures itself (report.js) from
numbers embedded in it. All text is escaped, and a content security policy admits our own script and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from factorfield.errors import expected
from factorfield.files.atomic import complete
from factorfield.files.results import check_writable
from factorfield.problem.coefficients import Table
from factorfield.problem.domain import Periodic
from factorfield.problem.problem import Problem, Statement
from factorfield.show.formula import mathml, vanishing
from factorfield.show.report.conditions import (
    TOO_FAR,
    contradicted,
    misfit,
    place_text,
    sigma_text,
    statement_text,
    symbolic,
    written,
)
from factorfield.show.report.data import frame_count, page_data
from factorfield.show.views import View, calibration, kind_of, view
from factorfield.solution import Solution
from factorfield.version import __version__

Cell = str  # HTML, escaped already

MEANING = {  # of solution.settings: what was chosen, and from what
    "method": "How the posterior was found. Left open: windows of time where there is time, else one belief.",
    "model": "How the problem was represented.",
    "modes": "Frequencies (periodic axes) or polynomial degrees. Left open: chosen from data and equation.",
    "degree": "Polynomial degree in time within a window. Left open: 20, or 12 where modes mix.",
    "scale": "Typical size of the field: the root mean square of what the conditions say about it.",
    "activation": "The ansatz: field = activation of a weighted sum of features.",
    "sigma": "Noise of every condition and equation: as given; else estimated from the data, or a small share of the "
    "natural size.",
    "left_out": "Standard deviation of the modes that are not part of the belief; it is added to std.",
    "tolerance": "What a further step or a window's last polynomials may still change.",
    "windows": "Windows of time, as long as the tolerance allows.",
    "factorisations": "Matrix factorisations that were needed.",
    "collocation": "Points per axis at which the equation is asked to hold: twice the features.",
    "path": "The linear algebra that the conditioning of the problem asked for.",
}
STATUS = {
    "converged": "Converged: the method came to rest, and going on would change the result little.",
    "max-iterations": "Not finished: the limit of iterations came first, and the result may still change.",
    "diverged": "Diverged: nothing on this page can be trusted.",
}
TIMINGS = {"choose": "choosing modes and noise", "solve": "solving, all choices included"}


def check_page(path: str | os.PathLike[str]) -> Path:
    """Refuse a page that could not be written - before the work, not after it."""
    target = Path(path)
    if target.suffix.lower() not in (".html", ".htm"):
        raise expected("a page to write such as run.html", target.name or str(target), f"{target.stem or 'run'}.html")
    return check_writable(target)


def write(solution: Solution, path: str | os.PathLike[str]) -> Path:
    """Write the report; the file appears complete or not at all."""
    target = check_page(path)
    text = page(solution)
    with complete(target) as part:
        part.write_text(text, encoding="utf-8")
    return target


def page(solution: Solution) -> str:
    """The report as HTML text."""
    shown = view(solution)
    numbers = page_data(solution, shown)
    problem = solution.problem
    title = problem.name or "Untitled problem"
    here = files("factorfield.show.report")
    style, script = (here.joinpath(name).read_text("utf-8") for name in ("report.css", "report.js"))
    embedded = json.dumps(numbers, allow_nan=False).replace("<", "\\u003c")
    policy = f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'"
    sections = [
        _first(solution),
        _problem(problem),
        _data(solution),
        _field(shown, frame_count(numbers), bool(numbers["field"]["data"])),
        _coefficients(solution),
        _calibration(shown),
        _settings(solution),
        _timings(solution),
        _versions(solution),
    ]
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{escape(title)} - factorfield report</title>
<style>{style}</style>
</head>
<body>
<header><h1>{escape(title)}</h1></header>
<main>
{"".join(section for section in sections if section)}
</main>
<script type="application/json" id="numbers">{embedded}</script>
<script>{script}</script>
</body>
</html>
"""


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


# -- sections, in the order of the page


def _first(solution: Solution) -> str:
    """Status and warnings: in plain words, the method's own ones smaller."""
    status = solution.status
    parts = [
        f'<div class="status {escape(str(status))}" role="status"><strong>{STATUS[str(status)]}</strong>'
        f'<p class="quiet">{escape(status.help[:1].upper() + status.help[1:])}.</p></div>'
    ]
    told = [*contradicted(solution), *(solution.warnings or ())]
    if told:
        items = "".join(f"<li>{escape(text)}</li>" for text in told)
        parts.append(
            f'<div class="warnings"><strong>{len(told)} warning{"s" if len(told) > 1 else ""}</strong>'
            f"<ul>{items}</ul></div>"
        )
    if not solution.warnings and not told:
        said = "No warnings were given." if solution.warnings is not None else "The file does not tell of warnings."
        parts.append(f'<p class="quiet">{said}</p>')
    return "\n".join(parts)


def _problem(problem: Problem) -> str:
    equations = "".join(f"<p>{mathml(vanishing(e.text), display=True)}</p>" for e in problem.equations)
    rows = []
    for name in problem.domain.names:
        axis = problem.domain[name]
        kind = ", periodic" if isinstance(axis, Periodic) else ""
        rows.append([symbolic(name), f"from {axis.lower:g} to {axis.upper:g}{_unit(problem, name)}{kind}"])
    rows += [[symbolic(name), f"field, in{_unit(problem, name)}"] for name in problem.fields if name in problem.units]
    for name, value in problem.constants.items():
        known = f"a table over {', '.join(value.axes)}" if isinstance(value, Table) else f"= {value:g}"
        rows.append([symbolic(name), f"{known}{_unit(problem, name)}, known"])
    for name, prior in {**problem.unknowns, **problem.functions}.items():
        kind = ", positive" if prior.positive else ""
        over = f", a function of {', '.join(prior.over)}" if prior.over else ""
        said = f"unknown{over}; prior {prior.mean:g} &#177; {prior.std:g}{_unit(problem, name)}{kind}"
        rows.append([symbolic(name), said])
    return _section("Problem", f'<div class="formulas">{equations}</div>', _table(["symbol", "meaning"], rows))


def _unit(problem: Problem, name: str) -> Cell:
    return f" {escape(problem.units[name])}" if name in problem.units else ""


def _data(solution: Solution) -> str:
    """What was measured or stated, how often, how exactly - and how far the solution is from it."""
    chosen = dict(solution.settings.get("sigma") or [])
    rows = [
        [
            statement_text(statement), place_text(statement), str(len(statement.target)) if statement.points else "",
            sigma_text(statement, chosen), _distance(solution, statement, chosen),
        ]
        for statement in solution.problem.statements if kind_of(statement) != "equation"
    ]  # fmt: skip
    header = ["condition", "where", "values", "sigma", "misfit"]
    body = _table(header, rows, numbers=(2, 3, 4)) if rows else "<p>None: only the equation speaks.</p>"
    note = (
        "Misfit: root mean square distance of the posterior mean from the values, in sigmas; about 1 if sigma is right."
    )
    return _section("Data and conditions", body, f'<p class="quiet">{note}</p>' if rows else "")


def _distance(solution: Solution, statement: Statement, chosen: Mapping[str, float]) -> Cell:
    found = misfit(solution, statement, chosen)
    return "" if found is None else f"<strong>{written(found)}</strong>" if found > TOO_FAR else written(found)


def _field(shown: View, frames: int, measured: bool) -> str:
    """Places for the script to draw into: lines, maps over time, or maps over the plane."""
    dimensions, fields = len(shown.axes), range(len(shown.names))
    shape = "plane" if len(shown.space) > 1 else "overview"
    legend = ["mean", "band", *["truth"] * (shown.truth is not None), *["data"] * measured]
    main, side = [], []
    for n in fields:
        name = symbolic(shown.names[n])
        if shape == "overview":
            main.append(_figure("lines", f"{name} with its 90 % interval", n))
        if dimensions == 1:
            side.append(_figure("spread", f"standard deviation of {name}", n))
            continue
        more = "circles: where it was measured" if shape == "plane" else "the line is the time of the slider"
        main.append(_figure(f"{shape}-mean", f"posterior mean of {name}; {more}", n))
        side.append(_figure(f"{shape}-std", f"standard deviation of {name}", n))
        if shown.truth is not None:
            side.append(_figure(f"{shape}-error", f"posterior mean of {name} minus the truth", n))
    fixed = ", ".join(f"{name} = {value:g}" for name, value in shown.fixed.items())
    return _section(
        "Field",
        "<noscript><p>The pictures need JavaScript, which this browser does not run.</p></noscript>",
        _slider(frames) if frames > 1 else "",
        _legend(legend) if shape == "overview" else "",
        f'<div class="panels">{"".join(main)}</div>',
        f'<p class="quiet">Shown at {escape(fixed)}.</p>' if fixed else "",
    ) + _section("Uncertainty", _spread_text(shown), f'<div class="panels">{"".join(side)}</div>')


def _slider(frames: int) -> str:
    return (
        '<div class="control"><label for="time">time <i>t</i> = <output id="time-said" for="time"></output></label>'
        f'<input type="range" id="time" min="0" max="{frames - 1}" step="1" value="0">'
        '<button type="button" id="play">Play</button></div>'
    )


def _spread_text(shown: View) -> str:
    if not np.all(np.isfinite(shown.std)):
        return "<p>This method gives no standard deviation.</p>"
    typical, most = float(shown.std.mean()), float(shown.std.max())
    size = float(np.sqrt(np.mean(shown.mean**2))) or 1.0
    return (
        f"<p>The standard deviation is {written(typical)} on average and {written(most)} at most; the field's own root "
        f"mean square is {written(size)}.</p>"
    )


def _coefficients(solution: Solution) -> str:
    found = solution.parameters
    if not found:
        return ""
    rows, pictures = [], []
    for index, (name, values) in enumerate(found.items()):
        prior, (low, high) = solution.problem.unknowns[name], values["interval"]
        rows.append(
            [symbolic(name), written(values["mean"], 5), written(values["std"]),
             f"{written(low, 5)} to {written(high, 5)}", f"{prior.mean:g} &#177; {prior.std:g}",
             escape(solution.problem.units.get(name, ""))]
        )  # fmt: skip
        pictures.append(_figure("coefficient", f"posterior of {symbolic(name)}", index))
    header = ["coefficient", "mean", "std", "90 % interval", "prior", "units"]
    if not set(found) & set(solution.problem.units):
        header, rows = header[:-1], [row[:-1] for row in rows]
    table = _table(header, rows, numbers=(1, 2))
    legend = _legend(["posterior", "band", "prior"])
    return _section("Coefficients", table, legend, f'<div class="panels">{"".join(pictures)}</div>')


def _calibration(shown: View) -> str:
    """Where the truth is known: are the intervals what they say?"""
    found = calibration(shown)
    if found is None:
        return ""
    scores = found["scores"]
    labels = {
        "rmse": "root mean square error", "relative_l2": "the same, relative to the truth",
        "max_error": "largest error",
        "crps": "continuous ranked probability score", "nll": "negative log density, mean", "mean_std": "mean std",
    }  # fmt: skip
    rows = [[text, written(scores[key])] for key, text in labels.items()]
    rows += [
        [f"{level} % intervals that hold the truth", f"{100 * scores[f'coverage{level}']:.1f} %"]
        for level in (50, 90, 95)
    ]
    pictures = _figure("reliability", "on the dashed line: intervals hold the truth as often as they say", 0)
    pictures += _figure("pit", "flat: the truth falls anywhere in the predicted distribution", 0)
    return _section(
        "Calibration",
        "<p>The truth of this problem is known, so the intervals can be judged - by one set of data: "
        "neighbouring points err together, and only over many sets should the share reach the level.</p>",
        _table(["score", "value"], rows, numbers=(1,)), f'<div class="panels">{pictures}</div>',
    )  # fmt: skip


def _settings(solution: Solution) -> str:
    rows = [
        [escape(key.replace("_", " ")), _value(key, value), MEANING.get(key, "")]
        for key, value in solution.settings.items()
    ]
    return _section("Settings, and what they come from", _table(["setting", "value", "meaning"], rows))


def _timings(solution: Solution) -> str:
    rows = [[TIMINGS.get(name, escape(name)), f"{written(value)} s"] for name, value in solution.timings.items()]
    counts = {name: value for name, value in solution.trace.items() if isinstance(value, int | float)}
    rows += [[escape(name.replace("_", " ")), written(value, 6)] for name, value in counts.items()]
    return _section("Work", _table(["", ""], rows, numbers=(1,)))


def _versions(solution: Solution) -> str:
    made = ", ".join(f"{escape(name)} {escape(value)}" for name, value in solution.versions.items())
    said = f"Solved with {made}." if made else "The file does not tell which versions solved it."
    return _section("Versions", f"<p>{said} Report written by factorfield {escape(__version__)}.</p>")


# -- pieces


def _section(title: str, *parts: str) -> str:
    return f"<section><h2>{title}</h2>\n" + "\n".join(part for part in parts if part) + "\n</section>\n"


def _figure(kind: str, caption: str, index: int) -> str:
    return f'<figure><div data-draw="{kind}" data-field="{index}"></div><figcaption>{caption}</figcaption></figure>'


def _legend(names: Sequence[str]) -> str:
    words = {
        "mean": ("mean", "mean"), "posterior": ("mean", "posterior"), "band": ("band", "90 % interval"),
        "truth": ("truth", "truth"), "prior": ("prior", "prior"), "data": ("data", "data"),
    }  # fmt: skip
    return '<p class="legend">' + "".join(f'<span class="{words[n][0]}">{words[n][1]}</span>' for n in names) + "</p>"


def _table(header: Sequence[str], rows: Iterable[Sequence[Cell]], numbers: Sequence[int] = ()) -> str:
    """`header` and `rows` are HTML already; columns in `numbers` stand to the right."""
    kinds = [' class="number"' if index in numbers else "" for index in range(len(header))]
    head = "".join(f"<th{kind}>{text}</th>" for kind, text in zip(kinds, header, strict=True))
    body = ""
    for row in rows:
        cells = zip(kinds, header, row, strict=True)
        body += "<tr>" + "".join(f'<td{kind} data-label="{text}">{cell}</td>' for kind, text, cell in cells) + "</tr>"
    stacked = ' class="stack"' if len(header) > 2 else ""
    shown = f"<thead><tr>{head}</tr></thead>" if any(header) else ""
    return f'<div class="scroll"><table{stacked}>{shown}<tbody>{body}</tbody></table></div>'


def _value(key: str, value: Any) -> Cell:
    if key == "windows" and isinstance(value, Sequence):
        return f"{len(value) - 1} windows"
    if key == "sigma":
        return "<br>".join(f"{escape(str(name))}: {written(number)}" for name, number in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{escape(str(name))}: {_value('', one)}" for name, one in value.items()) or "-"
    if isinstance(value, float):
        return written(value, 4)
    return escape(str(value)) if value not in (None, "") else "-"
