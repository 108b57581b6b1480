"""Problems as text and arrays: what a solution's file holds of the question it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NotRequired, TypedDict, final

import numpy as np
from numpy.typing import NDArray

from factorfield.problem.coefficients import Table
from factorfield.problem.conditions import Place
from factorfield.problem.domain import Domain, Interval, Periodic
from factorfield.problem.noise import noise_from_spec, noise_spec
from factorfield.problem.polygon import Corner
from factorfield.problem.problem import Boundary, Condition, Equation, Initial, Observations, Problem, Unknown
from factorfield.problem.region import Region

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]


class EquationSpec(TypedDict):
    text: str
    sigma: float | None
    length: NotRequired[float | dict[str, float] | None]  # old files lack it


class FaceSpec(EquationSpec):
    kind: Literal["initial", "boundary"]
    at: NotRequired[Place]
    inside: NotRequired[bool]  # old files lack it, and could have meant it


class ObservationsSpec(TypedDict):
    """Their numbers are arrays beside the text: condition3_x, condition3_sigma, condition3_average_x."""

    kind: Literal["observations"]
    of: str | None
    columns: list[str]
    noise: NotRequired[str | tuple[str, float]]  # old files lack it, and the next
    average: NotRequired[list[str]]


@final
class UnknownSpec(TypedDict):
    mean: float
    std: float | None
    positive: bool
    over: NotRequired[Sequence[str]]  # old files lack it, and the next
    length: NotRequired[float | None]


@final
class TableSpec(TypedDict):
    table: list[str]  # its axes; the numbers are in arrays such as table_D_x and table_D_value


class ProblemSpec(TypedDict):
    """A problem as JSON."""

    name: str
    equations: list[EquationSpec]
    domain: dict[str, tuple[str, float, float]]
    parameters: dict[str, float | UnknownSpec | TableSpec]
    conditions: list[FaceSpec | ObservationsSpec]
    units: NotRequired[Mapping[str, str]]
    region: NotRequired[RegionSpec]


@final
class RegionSpec(TypedDict, total=False):
    """A text, or rings of corners, the outline first."""

    inside: str
    rings: Sequence[Sequence[Corner]]


def problem_spec(problem: Problem) -> tuple[ProblemSpec, dict[str, Array]]:
    """A problem's description, and the arrays that go with it."""
    columns: dict[str, Array] = {}
    conditions: list[FaceSpec | ObservationsSpec] = []
    for index, condition in enumerate(problem.conditions):
        if isinstance(condition, Observations):
            for key, values in condition.columns.items():
                columns[f"condition{index}_{key}"] = np.asarray(values, float)
            conditions.append({
                "kind": "observations", "of": condition.of, "columns": list(condition.columns),
                "noise": noise_spec(condition.noise or "gaussian"), "average": list(condition.average),
            })  # fmt: skip
            for key, widths in condition.average.items():
                columns[f"condition{index}_average_{key}"] = np.asarray(widths, float)
            if condition.sigma is not None:
                columns[f"condition{index}_sigma"] = np.asarray(condition.sigma, float)
        else:
            conditions.append(_face_spec(condition))
    spec: ProblemSpec = {
        "name": problem.name,
        "equations": [{"text": e.text, "sigma": e.sigma, "length": _plain(e.length)} for e in problem.equations],
        "domain": {
            name: (type(problem.domain[name]).__name__, problem.domain[name].lower, problem.domain[name].upper)
            for name in problem.domain.names
        },
        "parameters": {name: _parameter_spec(name, value, columns) for name, value in problem.parameters.items()},
        "conditions": conditions,
        "units": problem.units,
    }
    if problem.region is not None:
        outline = problem.region.outline
        spec["region"] = {"inside": problem.region.text} if outline is None else {"rings": outline.rings}
    return spec, columns


def _region_from_spec(spec: RegionSpec | None) -> Region | None:
    if spec is None:
        return None
    if "rings" in spec:
        return Region.polygon(spec["rings"][0], spec["rings"][1:])
    return Region(spec["inside"])


def _face_spec(condition: Initial | Boundary) -> FaceSpec:
    length = _plain(condition.length)
    spec: FaceSpec = {"kind": "initial", "text": condition.text, "sigma": condition.sigma, "length": length}
    if isinstance(condition, Initial):
        return spec
    return {**spec, "kind": "boundary", "at": _plain_place(condition.at), "inside": condition.inside}


def _plain(length: float | Mapping[str, float] | None) -> float | dict[str, float] | None:
    return dict(length) if isinstance(length, Mapping) else length


def _plain_place(at: Place) -> Place:
    """As JSON takes it."""
    if isinstance(at, Mapping):
        return {name: np.asarray(value, float).tolist() for name, value in at.items()}
    return at if at is None or isinstance(at, str) else np.asarray(at, int).tolist()


def _parameter_spec(
    name: str, value: float | Unknown | Table, columns: dict[str, Array]
) -> float | UnknownSpec | TableSpec:
    if isinstance(value, Unknown):
        return {
            "mean": value.mean, "std": value.std, "positive": value.positive, "over": value.over,
            "length": value.length,
        }  # fmt: skip
    if isinstance(value, Table):
        columns |= {f"table_{name}_{axis}": x for axis, x in (*value.axes.items(), ("value", value.value))}
        return {"table": list(value.axes)}
    return value


def _parameter_from_spec(
    name: str, spec: float | UnknownSpec | TableSpec, arrays: Mapping[str, Array]
) -> float | Unknown | Table:
    if isinstance(spec, int | float):
        return spec
    if "table" in spec:
        return Table(**{axis: arrays[f"table_{name}_{axis}"] for axis in (*spec["table"], "value")})
    return Unknown(**spec)


def problem_from_spec(
    spec: ProblemSpec, arrays: Mapping[str, Array], truth: xr.DataArray | None, stored: xr.DataArray | None
) -> Problem:
    kinds = {"Periodic": Periodic, "Interval": Interval}
    domain = Domain({name: kinds[kind](lower, upper) for name, (kind, lower, upper) in spec["domain"].items()})
    parameters = {name: _parameter_from_spec(name, value, arrays) for name, value in spec["parameters"].items()}
    conditions: list[Condition] = []
    for index, entry in enumerate(spec["conditions"]):
        if entry["kind"] == "observations":
            columns = {key: arrays[f"condition{index}_{key}"] for key in entry["columns"]}
            sigma = arrays.get(f"condition{index}_sigma", arrays.get(f"condition{index}.sigma"))  # format 1: a dot
            average = {axis: arrays[f"condition{index}_average_{axis}"] for axis in entry.get("average", ())}
            noise = noise_from_spec(entry.get("noise", "gaussian"))
            conditions.append(Observations(sigma=sigma, of=entry["of"], noise=noise, average=average, **columns))
        elif entry["kind"] == "initial":
            conditions.append(Initial(entry["text"], entry["sigma"], entry.get("length")))
        else:
            inside = entry.get("inside", True)
            conditions.append(Boundary(entry["text"], entry["at"], entry["sigma"], entry.get("length"), inside))
    equations: Sequence[Equation] = [Equation(e["text"], e["sigma"], e.get("length")) for e in spec["equations"]]
    return Problem(
        equations, domain, parameters, conditions, truth=truth, stored=stored, name=spec["name"],
        units=spec.get("units"), region=_region_from_spec(spec.get("region")),
    )  # fmt: skip
