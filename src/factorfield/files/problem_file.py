"""Problems as files: TOML that names equations, domain, coefficients and data, read without running anything.

What a file may hold is in problem_file.schema.json, which editors read too. Data are named relative to the file and
stay in its folder. Everything wrong with a file is one line that says where: "heat.toml, line 12: expected ...".
"""

from __future__ import annotations

import bisect
import json
import os
import re
import tomllib
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorfield.errors import AdviceWarning, ProblemError, expected, nearest, shortened
from factorfield.files import schema as schemas
from factorfield.files.outline_file import region_from_file
from factorfield.files.toml_lines import line_of
from factorfield.problem.coefficients import Table, Unknown
from factorfield.problem.conditions import Boundary, Condition, Equation, Initial, Observations
from factorfield.problem.domain import Axis, Domain, Interval, Periodic
from factorfield.problem.noise import StudentT
from factorfield.problem.parsing import names_in, parse_sides
from factorfield.problem.problem import MOST_EQUATIONS, MOST_PARAMETERS, Problem, check_number, checked_parameters
from factorfield.problem.region import Region
from factorfield.problem.relation import find_fields
from factorfield.problem.shape import Shape

LARGEST_FILE = 1 << 20  # bytes of text; more numbers belong into a data file
# a key of a thousand parts is a table in a table in a table, and the standard library's reader takes for ever
LONG_KEY = re.compile(r"""(?<![\w-])(?:(?>[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*+\.[ \t]*+){20}""", re.ASCII)
ORIGIN = "origin"  # of timestamps: the one key whose value may be a date
OPTIONS = ("file", "sigma", "of", "noise", "average", "value")  # of observations, besides axes and fields
BLOCKS = ("initial", "boundary", "observations")
FACE_WORDS = r"a face|one of the axes| in \[|one place along|the two places"  # of errors about where a wall is
Array = NDArray[np.float64]
Parameters = dict[str, float | Unknown | Table]


@dataclass(frozen=True, eq=False)
class ProblemFile:
    """What a file says: ff.solve(file.problem, method=file.method, **file.options)."""

    problem: Problem
    method: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)
    model: Mapping[str, object] = field(default_factory=dict)
    output: Mapping[str, Path] = field(default_factory=dict)
    inputs: tuple[Path, ...] = ()  # the file itself and the data it names: nothing may be written over them


def schema_text() -> str:
    return Path(__file__).with_name("problem_file.schema.json").read_text(encoding="utf-8")


def read_problem(path: str | os.PathLike[str], allow_outside: bool = False) -> ProblemFile:
    """A problem from a TOML file; `allow_outside` lets it name files outside its own folder."""
    source = Path(path).expanduser()
    return parse_problem(_text(source), source, allow_outside)


def check_no_input(target: Path, inputs: Iterable[Path]) -> Path:
    """Refuse to write over a problem file or its data, by whatever name."""
    for source in inputs:
        if source == target.resolve() or (target.exists() and source.exists() and target.samefile(source)):
            raise expected("an output beside the inputs", f"{source.name}, which is read", "another name")
    return target


def with_numbers(file: ProblemFile, numbers: Mapping[str, float]) -> ProblemFile:
    """The same problem with other numbers for some of its parameters."""
    problem = file.problem
    for name in numbers:
        if name not in problem.parameters:
            raise expected(f"--set of a parameter of {problem.name}", name, nearest(name, problem.parameters))
    if not numbers:
        return file
    return replace(file, problem=problem.replace(parameters={**problem.parameters, **numbers}))


def parse_problem(text: str, source: Path, allow_outside: bool = False) -> ProblemFile:
    """The same from text; `source` names it in errors, and its folder holds the data."""
    return _Reader(text, source, allow_outside).read()


def _text(source: Path) -> str:
    try:
        if not source.is_file():
            raise expected("an existing problem file", str(source), "factorfield new heat")
        size = source.stat().st_size
        if size > LARGEST_FILE:
            raise expected(
                f"a problem file of at most {LARGEST_FILE >> 20} MiB", f"{size >> 20} MiB", "numbers in a CSV file"
            )
        return source.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as problem:
        raise expected(f"{source.name} in UTF-8", f"other bytes at {problem.start}", "saving it as UTF-8") from None
    except OSError as problem:
        raise expected("a readable problem file", f"{source} ({problem.strerror})", "another file") from None
    except ValueError as problem:
        if isinstance(problem, ProblemError):
            raise
        raise expected("a path", repr(str(source)), "heat.toml") from None


class _Reader:
    """Reads one file into a Problem."""

    def __init__(self, text: str, source: Path, allow_outside: bool) -> None:
        self.text, self.source, self.allow_outside = text, source, allow_outside
        self.inputs = [source.resolve()]
        self.document = self._document()

    def _document(self) -> dict[str, Any]:
        found = LONG_KEY.search(self.text)
        if found:
            line = self.text.count("\n", 0, found.start()) + 1
            raise expected("keys of at most 20 parts", f"more in line {line} of {self.source.name}", "fewer dots")
        try:
            return _with_plain_dates(tomllib.loads(self.text))
        except tomllib.TOMLDecodeError as problem:
            reason = shortened(str(problem), 120)
            raise ProblemError(
                f"{self.source.name}: expected TOML, received {reason}; try quotes around text, [ ] around lists"
            ) from None
        except (RecursionError, ValueError, OverflowError) as problem:  # nested too deeply, numbers too long
            # Python words the first by where its stack ended, which a debugger or coverage moves
            deep = "maximum recursion depth exceeded"
            reason = deep if isinstance(problem, RecursionError) else str(problem) or type(problem).__name__
            reason = shortened(reason, 60)
            raise expected(f"{self.source.name} in plain TOML", reason, "less nesting, shorter numbers") from None

    @contextmanager
    def at(self, *path: str | int) -> Iterator[None]:
        """Errors inside get the line of this key."""
        try:
            yield
        except ProblemError as problem:
            raise self.with_line(problem, path) from None
        except schemas.Misfit as fault:
            raise self.with_line(fault.error, (*path, *fault.path)) from None

    def with_line(self, problem: ProblemError, path: schemas.Path) -> ProblemError:
        if len(path) == 2 and path[0] in BLOCKS and isinstance(path[1], int):
            path = (*path, *_key_about(str(problem), self.document[path[0]][path[1]]))
        return ProblemError(f"{self.source.name}, line {line_of(self.text, path)}: {problem}")

    def read(self) -> ProblemFile:
        with self.at():
            schemas.check(self.document, json.loads(schema_text()))
        name = self._name()
        equations = self._equations()
        domain = self._domain()
        parameters = self._parameters(domain)
        region = self._region(domain, parameters)
        conditions = self._conditions(domain, parameters, equations)
        problem = self._problem(equations, domain, parameters, conditions, {"name": name, "region": region})
        method = dict(self.document.get("method", {}))
        chosen = method.pop("name", None)
        if chosen in ("chain", "tree") and "model" in self.document:
            own = "modes under [method]" if chosen == "chain" else "cells under [method]"
            with self.at("model"):
                raise expected(f"no [model] beside method {chosen}, which makes its own", "one", own)
        output = {}
        for key, text in self.document.get("output", {}).items():
            with self.at("output", key):
                output[key] = check_no_input(self._inside(text), self.inputs)
        return ProblemFile(problem, chosen, method, self.document.get("model", {}), output, tuple(self.inputs))

    def _name(self) -> str:
        name = self.document.get("name", self.source.stem)
        if not name.isprintable() or len(name) > 200:
            with self.at("name"):
                raise expected("a short printable name", repr(name), "'heat'")
        return name

    def _equations(self) -> list[Equation]:
        entry = self.document["equation"]
        several = isinstance(entry, list)
        equations = []
        with self.at("equation"):
            check_number("equations", len(entry) if several else 1, MOST_EQUATIONS)
        for index, item in enumerate(entry if several else [entry]):
            text, sigma = (item, None) if isinstance(item, str) else (item["text"], item.get("sigma"))
            with self.at("equation", *([index] if several else [])):
                parse_sides(text)
                equations.append(Equation(text, sigma))
        return equations

    def _domain(self) -> Domain:
        axes: dict[str, Axis] = {}
        for name, entry in self.document["domain"].items():
            with self.at("domain", name):
                if isinstance(entry, dict) and "periodic" in entry:
                    axes[name] = Periodic(*entry["periodic"])
                else:
                    axes[name] = Interval(*(entry["interval"] if isinstance(entry, dict) else entry))
                Domain({name: axes[name]})  # its name
        with self.at("domain"):
            return Domain(axes)

    def _region(self, domain: Domain, parameters: Parameters) -> Region | None:
        entry = self.document.get("region")
        if entry is None:
            return None
        with self.at("region"):
            if sum(key in entry for key in ("inside", "polygon", "file")) != 1:
                received = ", ".join(entry) or "nothing"
                raise expected("one of inside, polygon and file in [region]", received, 'inside = "x**2 + y**2 < 1"')
            if "holes" in entry and "polygon" not in entry:
                raise expected("holes beside polygon", ", ".join(entry), 'inside = "... and not ..."')
        with self.at("region", next(key for key in entry if key != "holes")):
            if "inside" in entry:
                region = Region(entry["inside"])
            elif "polygon" in entry:
                region = Region.polygon(entry["polygon"], entry.get("holes", ()))
            else:
                region = region_from_file(self._input(entry["file"]), domain.space)
            Shape.of(region, domain, parameters)
        return region

    # -- coefficients

    def _parameters(self, domain: Domain) -> Parameters:
        found: Parameters = {}
        entries = self.document.get("parameters", {})
        with self.at("parameters"):
            check_number("parameters", len(entries), MOST_PARAMETERS)
        for name, entry in entries.items():
            with self.at("parameters", name):
                found[name] = self._parameter(entry)
                checked_parameters({name: found[name]}, domain)
        return found

    def _parameter(self, entry: float | Mapping[str, Any]) -> float | Unknown | Table:
        if isinstance(entry, int | float):
            return entry
        if "mean" in entry:
            return Unknown(**entry)
        entry = dict(entry)
        file = entry.pop("file", None)
        if file is not None:
            return self._table_from_file(self._input(file), entry)
        for key, value in entry.items():
            if isinstance(value, str | dict):
                raise expected(f"numbers for {key}, or `file` beside a column's name", value, 'file = "table.csv"')
        return _grid(entry)

    def _table_from_file(self, path: Path, names: Mapping[str, str | list[float] | dict[str, str]]) -> Table:
        from factorfield.problem.sources import FileSource, assembled

        for key in [key for key, name in names.items() if isinstance(name, list)]:
            raise expected(f"the name of a column for {key}", "numbers", f'{key} = "{key}"')
        found = assembled(FileSource(path), names, None)  # type: ignore[arg-type]
        for text in found.notes:
            warnings.warn(text, AdviceWarning, stacklevel=2)
        return _grid_from_points({name: np.asarray(column, float) for name, column in found.columns.items()})

    def _input(self, text: str) -> Path:
        self.inputs.append(self._inside(text))
        return self.inputs[-1]

    def _inside(self, text: str) -> Path:
        """A path that the file names: resolved once, links followed, never expanded (`~` is a name like any other).

        What is checked to stay in the file's folder is what is opened.
        """
        home = self.source.parent.resolve()
        try:
            target = (home / text).resolve()
        except (OSError, RuntimeError, ValueError):
            raise expected("the path of a file", repr(text), "'measurements.csv'") from None
        if not self.allow_outside and not target.is_relative_to(home):
            raise expected("a path inside the problem file's folder", repr(text), "--allow-outside if you trust it")
        return target

    # -- conditions

    def _conditions(
        self, domain: Domain, parameters: Parameters, equations: list[Equation]
    ) -> list[tuple[schemas.Path, Condition]]:
        found: list[tuple[schemas.Path, Condition]] = []
        for index, entry in enumerate(self.document.get("initial", ())):
            found.append((("initial", index), Initial(**entry)))
        for index, entry in enumerate(self.document.get("boundary", ())):
            found.append((("boundary", index), Boundary(**entry)))
        for path, condition in found:
            with self.at(*path, "text"):
                parse_sides(condition.text)  # type: ignore[union-attr]
        texts = [e.text for e in equations] + [c.text for _, c in found]  # type: ignore[union-attr]
        fields = find_fields(texts, domain.names, [*parameters, *domain.names], ())
        mentioned = {name.partition("_")[0] for text in texts for name in names_in(parse_sides(text))}
        for index, entry in enumerate(self.document.get("observations", ())):
            path = ("observations", index)
            for key in entry:
                own = [*domain.names, *sorted(mentioned - set(parameters) - set(domain.names))]
                if key not in (*OPTIONS, *own):
                    attempt = nearest(key, [*OPTIONS, *own], f"the name of a field: {', '.join(fields) or 'u'}")
                    with self.at(*path, key):
                        raise expected(f"one of {', '.join((*own, *OPTIONS))}", key, attempt)
            with self.at(*path):
                found.append((path, self._observations(entry, domain, fields)))
        return found

    def _observations(self, entry: Mapping[str, Any], domain: Domain, fields: list[str]) -> Observations:
        settings = {key: entry[key] for key in ("sigma", "of", "average") if key in entry}
        noise = entry.get("noise", "gaussian")
        settings["noise"] = StudentT(noise["student-t"]) if isinstance(noise, dict) else noise
        columns = {key: value for key, value in entry.items() if key not in OPTIONS or key == "value"}
        if "file" in entry:
            for axis in domain.names:  # a column is called as we call it, unless told
                if axis not in columns and not any(
                    isinstance(v, dict) and axis in _places(v) for v in columns.values()
                ):
                    columns[axis] = axis
            if all(key in domain.names for key in columns):
                columns |= {key: key for key in (["value"] if "of" in entry else fields if len(fields) == 1 else [])}
            return Observations.from_file(self._input(entry["file"]), **settings, **columns)
        for key, value in {**columns, "sigma": entry.get("sigma")}.items():
            if isinstance(value, str | dict):
                raise expected(f"numbers for {key}, or `file` beside a column's name", value, 'file = "data.csv"')
        return Observations(**settings, **columns)

    # -- all of it

    def _problem(
        self, equations: list[Equation], domain: Domain, parameters: Parameters,
        conditions: list[tuple[schemas.Path, Condition]], more: Mapping[str, Any],
    ) -> Problem:  # fmt: skip
        def build(count: int, units: Mapping[str, str], several: int = len(equations)) -> Problem:
            known = [c for _, c in conditions[:count]]
            return Problem(equations[:several], domain, parameters, known, units=units, **more)

        units = self.document.get("units", {})
        try:
            return build(len(conditions), units)
        except ProblemError as problem:
            said = str(problem)

            def fails(count: int, units: Mapping[str, str]) -> bool:
                return _fails(lambda: build(count, units), said)

            where = _faulty_piece(fails, [path for path, _ in conditions], units)
            symbol = re.search(r"unknown symbol '(\w+)'", said)
            if symbol and any(re.search(rf"\b{symbol[1]}\b", each.text) for each in equations):
                where = ("equation",)  # whose other words made the first condition fail
            if where == ("equation",) and isinstance(self.document["equation"], list):
                counts = range(1, len(equations))
                first = next((n for n in counts if _fails(lambda n=n: build(0, {}, n), said)), len(equations))  # type: ignore[misc]
                where = ("equation", first - 1)
            raise self.with_line(problem, where) from None


def _fails(build: Callable[[], Problem], message: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            build()
        except ProblemError as problem:
            return str(problem) == message
    return False


def _faulty_piece(
    fails: Callable[[int, Mapping[str, str]], bool], conditions: list[schemas.Path], units: Mapping[str, str]
) -> schemas.Path:
    """The place of what makes a problem fail: its equations, the first condition with which it does, or a unit."""
    if fails(0, {}) or not (units or conditions):
        return ("equation",)
    if fails(len(conditions), {}):
        first = bisect.bisect_left(range(1, len(conditions) + 1), True, key=lambda count: fails(count, {}))
        return conditions[min(first, len(conditions) - 1)]
    every = len(conditions)
    return next((("units", key) for key, unit in units.items() if fails(every, {key: unit})), ("equation",))


def _key_about(said: str, entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The key of a block that an error in it is about, by the words of the error; nothing where they do not say."""
    what = said.partition(", received")[0]
    words = {"average": "average", "length": "length=", "noise": "noise", "sigma": "sigma", "at": FACE_WORDS}
    found = next((key for key, word in words.items() if key in entry and re.search(word, what)), None)
    own = [key for key in entry if key not in (*OPTIONS, *words, "text") or key == "value"]
    found = found or next((key for key in own if re.search(rf"(?:expected|for|along|of) {key}\b", what)), None)
    if "sensor" in what:
        found = found or next((key for key in own if isinstance(entry[key], dict) and _places(entry[key])), None)
    found = found or next((key for key in ("file", "text") if key in entry), None)
    return () if found is None else (found,)


def _with_plain_dates(value: Any) -> Any:
    """A document in which an origin of time is a text, though TOML knows dates without quotes too."""
    if isinstance(value, dict):
        return {k: str(v) if k == ORIGIN and isinstance(v, date) else _with_plain_dates(v) for k, v in value.items()}
    return [_with_plain_dates(entry) for entry in value] if isinstance(value, list) else value


def _places(sensors: Mapping[str, object]) -> set[str]:
    """The axes along which a column per sensor says where it is."""
    return {axis for place in sensors.values() if isinstance(place, dict) for axis in place}


def _grid(entry: Mapping[str, ArrayLike]) -> Table:
    try:
        return Table(**entry)
    except TypeError:
        raise expected("a table of axes and value", ", ".join(entry), "{ x = [0, 1], value = [1, 2] }") from None


def _grid_from_points(columns: dict[str, Array]) -> Table:
    """Columns with one row per point of a grid, in any order, as a table over that grid."""
    value = columns.pop("value")
    axes = {name: np.unique(x) for name, x in columns.items()}
    shape = tuple(len(x) for x in axes.values())
    order = np.lexsort(tuple(reversed(list(columns.values())))) if columns else np.zeros(0, int)
    if int(np.prod(shape)) != len(value):
        raise expected(
            f"one row for every point of a grid of {' x '.join(map(str, shape))}", f"{len(value)} rows", "a full grid"
        )
    return _grid({"value": value[order].reshape(shape), **axes})
