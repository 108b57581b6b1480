"""What the user knows: equations, where they hold, coefficients, and measurements - a pure description.

Everything is checked when it is built, and everything wrong raises `ProblemError` with one line of advice.
"""

from __future__ import annotations

import copy
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import AdviceWarning, expected
from factorfield.problem.clock import checked_unit
from factorfield.problem.coefficients import DEFAULT_LENGTH, Table, Unknown
from factorfield.problem.conditions import Boundary, Condition, Equation, Initial, Observations
from factorfield.problem.consistency import check_contradictions, check_counts, check_repeats
from factorfield.problem.domain import ARC, TIME, Axis, Domain, Interval
from factorfield.problem.jumps import with_widths
from factorfield.problem.noise import checked_noise
from factorfield.problem.parsing import RESERVED, names_in, operations_in, parse_condition, parse_sides
from factorfield.problem.region import Region
from factorfield.problem.relation import Relation, check_known, find_fields, parse_relation
from factorfield.problem.shape import Shape
from factorfield.problem.statement import Error, GivenSigma, Statement
from factorfield.problem.stencil import average, difference, shifted
from factorfield.problem.units import checked_units, units_of_truth

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Boundary", "Condition", "Equation", "Initial", "Observations", "Problem", "Statement", "Unknown"]
Array = NDArray[np.float64]
LARGEST_VALUE = 1e150  # of a measurement, coefficient or place: squares must be numbers too
MOST_EQUATIONS, MOST_CONDITIONS, MOST_PARAMETERS = 50, 200, 500
MOST_OPERATIONS = 5000  # names, numbers and operations in the texts of all of them
Said = TypeVar("Said", Equation, Initial, Boundary, Observations, Condition)
Equations = str | Equation | Sequence[str | Equation]


class Changes(TypedDict, total=False):
    """What `Problem.replace` takes: the arguments of `Problem` by name."""

    equation: Equations
    domain: Mapping[str, Axis] | Domain
    parameters: Mapping[str, float | Unknown | Table] | None
    conditions: Sequence[Condition]
    truth: xr.DataArray | None
    stored: xr.DataArray | None
    name: str
    units: Mapping[str, str] | None
    region: Region | None


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Problem:
    """A differential equation, its domain and coefficients, and what else is known. Frozen: see `replace`.

    equation    text, ff.Equation, or a list of them ("lhs = rhs", or an expression that should vanish)
    domain      {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 2)}
    parameters  {"b": 0.4}, ff.Unknown(1.0, 0.5), an unknown function ff.Unknown(1.0, 0.5, over="x"), or ff.Table
    conditions  [ff.Observations(...), ff.Initial(...), ff.Boundary(...)], may be empty
    truth       the known solution on a grid (xarray.DataArray), where there is one; `stored` a file's own field
    region      the part of the two space axes where all this holds: ff.Region, or None for the whole domain
    units       {"x": "m", "t": "s", "u": "degC"}: text that labels pictures and files, and changes no number
    """

    equations: tuple[Equation, ...]
    domain: Domain
    parameters: Mapping[str, float | Unknown | Table]
    conditions: tuple[Condition, ...]
    truth: Any  # xarray.DataArray or None
    stored: Any
    name: str
    fields: tuple[str, ...]
    units: Mapping[str, str]
    region: Region | None
    shape: Shape | None  # the region in its domain
    statements: tuple[Statement, ...]
    unknowns: Mapping[str, Unknown]  # unknown numbers
    functions: Mapping[str, Unknown]  # unknown functions
    constants: Mapping[str, Any]  # what is known: numbers, and tables of values
    typical_parameters: Mapping[str, float | Table]  # the same, and unknown coefficients at their prior means

    def __init__(  # noqa: PLR0913
        self,
        equation: Equations,
        domain: Mapping[str, Axis] | Domain,
        parameters: Mapping[str, float | Unknown | Table] | None = None,
        conditions: Sequence[Condition] = (),
        *,
        truth: xr.DataArray | None = None,
        stored: xr.DataArray | None = None,
        name: str = "",
        units: Mapping[str, str] | None = None,
        region: Region | None = None,
    ) -> None:
        self._set(domain=domain if isinstance(domain, Domain) else Domain(domain))
        self._set(equations=tuple(self._with_widths(e) for e in _as_equations(equation)))
        said = tuple(self._with_widths(c) for c in _as_conditions(conditions))
        self._set(parameters=checked_parameters({} if parameters is None else parameters, self.domain), conditions=said)
        self._set(truth=truth, stored=stored, name=name)
        unknown = {n: value for n, value in self.parameters.items() if isinstance(value, Unknown)}
        self._set(
            unknowns={n: value for n, value in unknown.items() if not value.over},
            functions={n: value for n, value in unknown.items() if value.over},
            constants={n: value for n, value in self.parameters.items() if n not in unknown},
            typical_parameters={n: v.mean if isinstance(v, Unknown) else v for n, v in self.parameters.items()},
        )
        shape = None if region is None else Shape.of(region, self.domain, self.parameters)
        self._set(region=region, shape=shape)
        check_counts_of(self.equations, self.conditions)
        texts = [e.text for e in self.equations] + [c.text for c in self.conditions if not isinstance(c, Observations)]
        axes = self.domain.names
        known = [*self.parameters, *axes]
        fields = find_fields(texts, axes, known, ())
        self._set(conditions=tuple(c.on(axes, fields) if isinstance(c, Observations) else c for c in self.conditions))
        observed = [_observed_field(c, self.domain) for c in self.conditions if isinstance(c, Observations)]
        self._set(fields=tuple(find_fields(texts, axes, known, [f for f in observed if f])))
        given = checked_units(units or {}, self.names)
        self._set(units={**units_of_truth(truth, axes, self.fields), **self._counted(given), **given})
        names: Counter[str] = Counter()
        conditioned = (self._condition_statement(condition, names) for condition in self.conditions)
        self._set(statements=(*self._equation_statements(), *conditioned))
        check_counts(self.fields, self.statements)
        check_contradictions(self.statements, self.domain, self.shape, self.constants)
        named = [names_in(parse_sides(text)) for text in (*texts, *(s.relation.text for s in self.statements))]
        named += [names_in([parse_condition(text)]) for text in self._conditions_on_places()]
        used = {name for names in named for name in (*names, *(n.partition("_")[0] for n in names))}
        for unused in sorted(set(self.parameters) - used):
            warnings.warn(f"parameter {unused!r} appears in no equation or condition", AdviceWarning, stacklevel=2)

    def _conditions_on_places(self) -> list[str]:
        """Texts that say where: the region's, and those of walls."""
        walls = [c.at for c in self.conditions if isinstance(c, Boundary) and isinstance(c.at, str)]
        return [*walls, self.region.text] if self.region is not None and self.region.text else walls

    def _with_widths(self, said: Said) -> Said:
        """With a width for every point source that has none."""
        if isinstance(said, Observations):
            return said
        text = with_widths(said.text, self.domain)
        return said if text == said.text else replace(said, text=text)

    def _counted(self, given: Mapping[str, str]) -> dict[str, str]:
        """Units of axes whose numbers were timestamps: those of the problem, where it names them."""
        counted = [c.units for c in self.conditions if isinstance(c, Observations)]
        found: dict[str, str] = {}
        for axis, unit in (item for units in counted for item in units.items()):
            found[axis] = checked_unit(axis, unit, given.get(axis, found.get(axis)))
        return found

    def _set(self, **attributes: object) -> None:
        for name, value in attributes.items():
            object.__setattr__(self, name, value)

    def replace(self, **changes: Unpack[Changes]) -> Problem:
        """A changed copy, checked as a new problem is: problem.replace(parameters={"b": 0.5})."""
        own: Changes = {
            "equation": self.equations, "domain": self.domain, "parameters": self.parameters,
            "conditions": self.conditions, "truth": self.truth, "stored": self.stored, "name": self.name,
            "units": self.units, "region": self.region,
        }  # fmt: skip
        return Problem(**(own | changes))

    def with_statements(self, statements: Iterable[Statement]) -> Problem:
        """The same description with its statements exchanged, such as other noise approximated by Gaussian noise."""
        changed = copy.copy(self)
        changed._set(statements=tuple(statements))
        return changed

    @property
    def names(self) -> tuple[str, ...]:
        """Axes, fields and coefficients: all that may have units."""
        return (*self.domain.names, *self.fields, *self.parameters)

    def relation(self, text: str, on_wall: bool = False) -> Relation:
        """A further relation in this problem's names: what `predict(of=...)` reads; on a region's wall with u_n."""
        tables = {name: tuple(v.axes) for name, v in self.parameters.items() if isinstance(v, Table)}
        plain = tuple(name for name in self.parameters if name not in tables and name not in self.functions)
        plane = self.shape.axes if on_wall and self.shape is not None else ()
        relation = parse_relation(text, self.fields, self.domain.names, plain, tuple(self.functions), tables, plane)
        for jumping in relation.jumps:
            check_known(jumping, self.unknowns)
        return relation

    def __repr__(self) -> str:
        equations = "; ".join(e.text for e in self.equations)
        return f"Problem({self.name or 'unnamed'}: {equations}; {len(self.conditions)} conditions)"

    def _equation_statements(self) -> tuple[Statement, ...]:
        statements = []
        for index, equation in enumerate(self.equations):
            relation = self.relation(equation.text)
            if not relation.jets:
                raise expected(
                    "an equation of a field and its derivatives", f"{equation.text!r}, which has none", "'u_t + b*u_x'"
                )
            name = "equation" if len(self.equations) == 1 else f"equation {index + 1}"
            statements.append(Statement(name, "equation", relation, sigma=_checked_sigma(equation.sigma, 1, name)))
        return tuple(statements)

    def _condition_statement(self, condition: Condition, names: Counter[str]) -> Statement:
        if isinstance(condition, Observations):
            return self._observation_statement(condition, names)
        if isinstance(condition, Initial):
            if TIME not in self.domain:
                raise expected("a time axis 't' for ff.Initial", f"axes {', '.join(self.domain.names)}", "ff.Boundary")
            name = _numbered(f"initial: {condition.text}", names)
            face = {TIME: self.domain[TIME].lower}
            relation, sigma = self._on_face(condition, name)
            error = _error(condition, self._beside(face), name, names.total())
            return Statement(name, "initial", relation, face=face, sigma=sigma, error=error)
        return self._boundary_statement(condition, names)

    def _boundary_statement(self, condition: Boundary, names: Counter[str]) -> Statement:
        if self.shape is not None and not _is_instant(condition.at):
            return self._wall_statement(condition, self.shape, names)
        if not isinstance(condition.at, Mapping):
            attempt = "at={'x': 0}, or region=ff.Region(...) for a boundary of any shape"
            raise expected(f"the face of {condition.text!r} as a mapping", condition.at, attempt)
        face, pair = _checked_face(condition.at, self.domain, condition.inside)
        where = ", ".join(f"{axis} = {value:g}" for axis, value in face.items())
        if pair is not None and "=" in condition.text:
            raise expected(
                "a quantity without '=' that is equal at both places",
                condition.text,
                "'u' for that, or one condition for each place",
            )
        places = where if pair is None else f"{where} and {pair[2]:g}"
        name = _numbered(f"boundary {places}: {condition.text}", names)
        relation, sigma = self._on_face(condition, name)
        stencil = () if pair is None else difference(*pair)
        error = _error(condition, self._beside(face), name, names.total())
        return Statement(name, "boundary", relation, face=face, sigma=sigma, stencil=stencil, error=error)

    def _wall_statement(self, condition: Boundary, shape: Shape, names: Counter[str]) -> Statement:
        at = condition.at
        if isinstance(at, Mapping):
            at, pair = _checked_face(at, self.domain, inside=True)
            if pair is not None or not set(at) <= set(shape.axes):
                remedy = f"at={{'{shape.axes[0]}': 0}}, or at='{shape.axes[0]} > 0'"
                raise expected("one place along a space axis of a region", condition.at, remedy)
        where = ", ".join(f"{a} = {x:g}" for a, x in at.items()) if isinstance(at, Mapping) else condition.where
        name = _numbered(f"boundary {where}: {condition.text}" if where else f"boundary: {condition.text}", names)
        wall = shape.wall(at, self.parameters)
        relation, sigma = self._on_face(condition, name, on_wall=True)
        side = float(np.sqrt(np.prod([end.length for end in shape.ends])))
        free = {ARC: Interval(0.0, side), **{axis: where for axis, where in self.domain.items() if axis == TIME}}
        error = _error(condition, free, name, names.total())
        return Statement(name, "boundary", relation, face={}, sigma=sigma, error=error, wall=wall)

    def _beside(self, face: Mapping[str, float]) -> dict[str, Axis]:
        """The axes along a face."""
        return {axis: where for axis, where in self.domain.items() if axis not in face}

    def _on_face(self, condition: Initial | Boundary, name: str, on_wall: bool = False) -> tuple[Relation, GivenSigma]:
        relation = self.relation(condition.text, on_wall)
        if not relation.jets:
            raise expected("a condition on a field", f"{condition.text!r}, which mentions none", "'u = 0'")
        return relation, _checked_sigma(condition.sigma, 1, name)

    def _observation_statement(self, condition: Observations, names: Counter[str]) -> Statement:
        column = _observed_field(condition, self.domain) or "value"
        relation = self.relation(condition.of or column)
        if not relation.jets and not set(relation.parameters) & set(self.unknowns):
            raise expected("observations of a field", f"{relation.text!r}, which mentions none", "of='u_x'")
        name = _numbered(f"observations of {condition.of or column}", names)
        arrays = {key: np.atleast_1d(_numbers(condition.columns[key], f"{key} of {name}")) for key in condition.columns}
        target = arrays.pop(column)
        if target.ndim != 1:
            raise expected(f"one-dimensional {column}", f"shape {target.shape}", "flattening with .ravel()")
        for key, values in arrays.items():
            if values.shape not in ((1,), target.shape):
                raise expected(
                    f"{key} with one value, or {len(target)} like {column}", f"shape {values.shape}", "equal lengths"
                )
            arrays[key] = np.broadcast_to(values, target.shape).astype(float)
        if len(target) == 0:
            raise expected(f"at least one value of {column}", "none", "leaving the condition out")
        self.domain.check_inside(arrays, name, {axis: "another origin" for axis in condition.units})
        self._check_in_region(arrays, name)
        if condition.units:
            check_repeats(arrays, name)
        sigma = _checked_sigma(condition.sigma, len(target), name)
        noise = checked_noise(condition.noise, target, sigma, name)
        stencil = average(condition.average, arrays, self.domain, name) if condition.average else ()
        if stencil and (noise is not None or not relation.is_linear):
            received = f"{noise.name} noise" if noise is not None else f"{relation.text!r}"
            raise expected("average= of a linear functional with Gaussian noise", received, "values at points")
        for shift, _ in stencil:
            self._check_in_region(shifted(arrays, shift), f"{name}, averages included,")
        return Statement(name, "observation", relation, arrays, None, target, sigma, noise, stencil)

    def _check_in_region(self, points: Mapping[str, Array], what: str) -> None:
        if self.shape is None:
            return
        outside = np.flatnonzero(~self.shape.contains(points))
        if len(outside):
            row = int(outside[0])
            place = ", ".join(f"{axis} = {points[axis][row]:.6g}" for axis in self.shape.axes)
            received = f"{len(outside)} outside, first row {row} ({place})"
            raise expected(f"{what} inside the region", received, "dropping these rows, or a wider region")


def check_number(what: str, count: int, most: int) -> None:
    if count > most:
        attempt = "measurements of one kind as one condition, many numbers as a table"
        raise expected(f"at most {most} {what}", str(count), attempt)


def check_counts_of(equations: Sequence[Equation], conditions: Sequence[Condition]) -> None:
    """Refuse a description that is longer than formulas can be worked with, before any is."""
    check_number("equations", len(equations), MOST_EQUATIONS)
    check_number("conditions", len(conditions), MOST_CONDITIONS)
    texts = [item.of if isinstance(item, Observations) else item.text for item in (*equations, *conditions)]
    operations = sum(operations_in(parse_sides(text)) for text in texts if text is not None)
    if operations > MOST_OPERATIONS:
        received = f"{operations} names, numbers and operations"
        raise expected(f"at most {MOST_OPERATIONS} in all texts together", received, "tables for long formulas")


def _is_instant(at: object) -> bool:
    """Does a condition speak of an instant, and not of walls?"""
    return isinstance(at, Mapping) and TIME in at


def _numbered(name: str, names: Counter[str]) -> str:
    """The name of a statement, made unique: "initial: u = 0", "initial: u = 0 (2)", ..."""
    names[name] += 1
    return name if names[name] == 1 else f"{name} ({names[name]})"


def _as_equations(equation: object) -> tuple[Equation, ...]:
    items = [equation] if isinstance(equation, str | Equation) else equation
    if not isinstance(items, Sequence) or not items or not all(isinstance(e, str | Equation) for e in items):
        raise expected("an equation as text, ff.Equation, or a list of them", equation, "'u_t + b*u_x'")
    return tuple(e if isinstance(e, Equation) else Equation(e) for e in items)


def _as_conditions(conditions: object) -> tuple[Condition, ...]:
    items = [conditions] if isinstance(conditions, Observations | Initial | Boundary) else conditions
    if not isinstance(items, Sequence) or not all(isinstance(c, Observations | Initial | Boundary) for c in items):
        raise expected(
            "a list of ff.Observations, ff.Initial and ff.Boundary", items, "conditions=[ff.Initial('u = 0')]"
        )
    return tuple(items)


def checked_parameters(parameters: Mapping[str, object], domain: Domain) -> dict[str, float | Unknown | Table]:
    checked: dict[str, float | Unknown | Table] = {}
    if not isinstance(parameters, Mapping):
        raise expected("a mapping of parameters", type(parameters).__name__, "parameters={'nu': 0.1}")
    check_number("parameters", len(parameters), MOST_PARAMETERS)
    for name, value in parameters.items():
        if not isinstance(name, str) or not name.isidentifier() or "__" in name or name.startswith("_"):
            raise expected("parameter names of letters, digits and underscores", name, "'nu'")
        if name in domain or name in RESERVED:
            raise expected("parameter names that are no axis, function or constant", name, f"'{name}0'")
        if isinstance(value, Unknown):
            value.check(name, domain)
            checked[name] = value
            continue
        if isinstance(value, Table):
            checked[name] = value.check(name, domain)
            continue
        number = _numbers(value, f"parameter {name}")
        if number.ndim != 0:
            raise expected(
                f"one number for parameter {name}",
                f"shape {number.shape}",
                "a float, ff.Unknown, or ff.Table(x=..., value=...)",
            )
        checked[name] = float(number)
    return checked


def _numbers(values: object, what: str) -> Array:
    if getattr(getattr(values, "dtype", None), "kind", "") == "M":
        attempt = "a table with them: ff.Observations(frame, t={'column': 'time', 'unit': 'h', 'origin': '2024-05-01'})"
        raise expected(f"numbers for {what}", "dates", attempt)
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise expected(f"numbers for {what}", type(values).__name__, "a float or an array of floats") from None
    if not np.all(np.isfinite(array)):
        bad = int(np.sum(~np.isfinite(array)))
        raise expected(f"finite numbers for {what}", f"{bad} NaN or infinite", "dropping or filling them")
    if array.size and np.max(np.abs(array)) > LARGEST_VALUE:
        raise expected(f"numbers up to {LARGEST_VALUE:g} for {what}", f"{np.max(np.abs(array)):g}", "other units")
    return array


def _observed_field(condition: Observations, domain: Domain) -> str | None:
    """The column that carries the values: a field's name, or None when `of` and `value` say it."""
    missing = [axis for axis in domain.names if axis not in condition.columns]
    if missing:
        axis, there = missing[0], ", ".join(condition.there)
        attempt = f"{axis}=... with the name of its column ({there})" if there else f"{axis}=values"
        attempt += f", or {axis}=0.0 if all were measured there"
        raise expected(f"a coordinate for every axis of {', '.join(domain.names)}", f"none for {missing[0]}", attempt)
    others = [name for name in condition.columns if name not in domain]
    if len(others) != 1:
        raise expected("exactly one column of values besides the axes", ", ".join(others) or "none", "u=values")
    if condition.of is not None:
        if others != ["value"]:
            raise expected("the values of `of` under the name value", others[0], f"value={others[0]}")
        return None
    return others[0]


def _checked_sigma(sigma: object, count: int, what: str) -> GivenSigma:
    if sigma is None:
        return None
    values = _numbers(sigma, f"sigma of {what}")
    if np.any(values < 1.0 / LARGEST_VALUE):
        raise expected(
            f"sigma > 0 for {what}", f"{float(values.min()):g}", "the standard deviation, in units of the value"
        )
    if values.ndim == 0:
        return float(values)
    if values.shape != (count,):
        remedy = "sigma.ravel()" if values.size == count else "one number"
        raise expected(f"one sigma, or {count}, for {what}", f"shape {values.shape}", remedy)
    return values


def _error(condition: Initial | Boundary, free: Mapping[str, Axis], name: str, number: int) -> Error | None:
    """How a condition with a sigma is off along its face; on a point there is one number, and nothing to share."""
    lengths = _checked_lengths(condition.length, free, name)
    if condition.length is not None and condition.sigma is None:
        raise expected(f"sigma beside length= of {name}", "none", "sigma=0.1")
    return Error(f"_error{number}", lengths) if lengths and condition.sigma is not None else None


def _checked_lengths(length: object, free: Mapping[str, Axis], what: str) -> dict[str, float]:
    """Per axis of a face: the distance over which a condition on it is off together."""
    lengths = {axis: DEFAULT_LENGTH * where.length for axis, where in free.items()}
    given = length if isinstance(length, Mapping) else {} if length is None else dict.fromkeys(free, length)
    if not free and length is not None:
        raise expected(f"no length= of {what}, which speaks of one point", length, "leaving it out")
    for axis, value in given.items():
        if axis not in free:
            raise expected(f"length= of {what} along {', '.join(free)}", axis, f"length={{'{next(iter(free))}': 0.2}}")
        number = _numbers(value, f"length of {what}")
        if number.ndim != 0 or number <= 0.0:
            raise expected(f"length > 0 for {what}", value, f"length={0.25 * free[axis].length:g}")
        lengths[axis] = float(number)
    return lengths


def _checked_face(at: object, domain: Domain, inside: bool) -> tuple[dict[str, float], tuple[str, float, float] | None]:
    """The face, and (axis, first, second) if one axis names two places."""
    if not isinstance(at, Mapping) or not at:
        raise expected("the face as a mapping", at, "at={'x': 0}")
    face: dict[str, float] = {}
    pair = None
    for name, value in at.items():
        if name not in domain:
            raise expected(f"one of the axes {', '.join(domain.names)}", name, f"at={{'{domain.names[-1]}': 0}}")
        numbers = np.atleast_1d(_numbers(value, f"at[{name!r}]"))
        if numbers.shape not in ((1,), (2,)) or (len(numbers) == 2 and (pair or numbers[0] == numbers[1])):
            raise expected(f"one place along {name}, or two on one axis", value, f"at={{'{name}': (0, 1)}}")
        axis = domain[name]
        ends = f"at={{'{name}': {axis.lower:g}}} or at={{'{name}': {axis.upper:g}}}"
        for number in numbers[~axis.contains(numbers)]:
            raise expected(f"{name} in [{axis.lower:g}, {axis.upper:g}]", f"{number:g}", ends)
        for number in () if inside else numbers[~axis.is_end(numbers)]:
            wanted = f"a face of the domain, {name} = {axis.lower:g} or {name} = {axis.upper:g}"
            between = "inside=True (in a file: true) for a condition between them"
            raise expected(wanted, f"{name} = {number:g}", f"{ends}, or {between}")
        face[name] = float(numbers[0])
        pair = (name, float(numbers[0]), float(numbers[1])) if len(numbers) == 2 else pair
    return face, pair
