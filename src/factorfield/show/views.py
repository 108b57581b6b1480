"""What pictures and reports look at: fields on a grid beside their truth, data in units of a field, densities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factorfield import metrics
from factorfield.errors import expected
from factorfield.problem.domain import TIME
from factorfield.problem.inversion import inverse
from factorfield.problem.parsing import evaluate, parse_sides
from factorfield.problem.problem import Problem, Statement, Unknown
from factorfield.solution import Solution

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]
MOST_SPACE = 2  # axes of space that a picture shows; others are held at their middle
LEVELS = tuple(round(0.05 * k, 2) for k in range(1, 20))  # of a reliability curve


@dataclass(frozen=True, eq=False)
class View:
    """Fields over a tensor grid, time first: `mean`, `std` and `truth` have shape (fields, *axes)."""

    names: tuple[str, ...]
    axes: Mapping[str, Array]
    mean: Array
    std: Array
    truth: Array | None
    fixed: Mapping[str, float]

    @property
    def times(self) -> Array | None:
        return self.axes.get(TIME)

    @property
    def space(self) -> tuple[str, ...]:
        return tuple(name for name in self.axes if name != TIME)

    def pick(self, **chosen: NDArray[np.int64] | slice) -> View:
        """Some positions along some axes."""
        where = (slice(None), *(chosen.get(name, slice(None)) for name in self.axes))

        def cut(values: Array) -> Array:
            for axis, part in enumerate(where):
                values = values[(slice(None),) * axis + (part,)]
            return values

        axes = {name: x[chosen.get(name, slice(None))] for name, x in self.axes.items()}
        truth = None if self.truth is None else cut(self.truth)
        return replace(self, axes=axes, mean=cut(self.mean), std=cut(self.std), truth=truth)


def view(solution: Solution, shown: xr.Dataset | None = None) -> View:
    """The solution on its default grid, or a prediction of it that is already there."""
    grid, fixed = _looking(solution)
    if shown is None:
        shown = solution.posterior.predict(grid)
    mean, std = (_fields_first(shown[key]) for key in ("mean", "std"))
    names = solution.problem.fields if "field" in shown.dims else (str(shown.attrs.get("of", "u")),)
    axes = {str(name): np.asarray(shown[name], float) for name in mean.dims[1:]}
    kept = [name for name in axes if name not in fixed]
    shape = (len(names), *(len(axes[name]) for name in kept))
    truth = _truth_on(solution.problem, axes, names)
    return View(
        tuple(str(name) for name in names), {name: axes[name] for name in kept}, np.asarray(mean, float).reshape(shape),
        np.asarray(std, float).reshape(shape), None if truth is None else truth.reshape(shape), fixed,
    )  # fmt: skip


def cut(solution: Solution, shown: View, at: Mapping[str, float]) -> View:
    """A view at one position of some axes: predicted just there, unless that would lose the truth on its grid."""
    nearest = {name: int(np.abs(shown.axes[name] - value).argmin()) for name, value in at.items()}
    on_grid = all(np.isclose(shown.axes[name][index], at[name], rtol=1e-9) for name, index in nearest.items())
    if on_grid or shown.truth is not None:
        return shown.pick(**{name: slice(index, index + 1) for name, index in nearest.items()})
    grid = {**shown.axes, **{name: np.array([value]) for name, value in {**at, **shown.fixed}.items()}}
    of = shown.names[0] if len(shown.names) == 1 else None
    return view(solution, solution.posterior.predict(grid, of))


def residuals(solution: Solution, most: int = 128) -> View:
    """Left minus right side of every equation over the domain."""
    grid, fixed = _looking(solution)
    coarse = {name: x[:: -(-len(x) // most)] for name, x in grid.items()}
    parts = [solution.posterior.predict(coarse, equation.text) for equation in solution.problem.equations]
    axes = {name: x for name, x in coarse.items() if name not in fixed}
    shape = (len(parts), *(len(x) for x in axes.values()))
    mean, std = (np.stack([np.asarray(part[key], float) for part in parts]).reshape(shape) for key in ("mean", "std"))
    return View(tuple(e.text for e in solution.problem.equations), axes, mean, std, None, fixed)


def _looking(solution: Solution) -> tuple[dict[str, Array], dict[str, float]]:
    grid, fixed = solution.default_grid(), {}
    for name in solution.problem.domain.space[MOST_SPACE:]:
        grid[name] = grid[name][[len(grid[name]) // 2]]
        fixed[name] = float(grid[name][0])
    return grid, fixed


def _fields_first(values: xr.DataArray) -> xr.DataArray:
    return values if "field" in values.dims else values.expand_dims("field")


def _truth_on(problem: Problem, axes: Mapping[str, Array], names: tuple[str, ...]) -> Array | None:
    """The truth at a prediction's own coordinates; None where it is not known there."""
    if problem.truth is None:
        return None
    truth = _fields_first(problem.truth)
    if truth.sizes["field"] != len(names) or set(truth.dims) != {"field", *axes}:
        return None
    try:
        return np.asarray(truth.transpose("field", *axes).sel({name: x for name, x in axes.items()}), float)
    except KeyError:
        return None


# -- data


@dataclass(frozen=True, eq=False)
class Data:
    """Measured values of one field at points."""

    field: str
    points: Mapping[str, Array]
    values: Array

    def near(self, **where: tuple[float, float]) -> Data:
        """The data within a distance of a position along some axes: near(t=(0.5, 0.01))."""
        return self._some(self._within(where))

    def between(self, inner: Mapping[str, tuple[float, float]], outer: Mapping[str, tuple[float, float]]) -> Data:
        """The data that are near by one measure and not by another."""
        return self._some(self._within(outer) & ~self._within(inner))

    def _within(self, where: Mapping[str, tuple[float, float]]) -> NDArray[np.bool_]:
        kept = np.ones(len(self.values), bool)
        for name, (position, distance) in where.items():
            kept &= np.abs(self.points[name] - position) <= distance
        return kept

    def _some(self, kept: NDArray[np.bool_]) -> Data:
        return Data(self.field, {name: x[kept] for name, x in self.points.items()}, self.values[kept])


def data_of(problem: Problem) -> list[Data]:
    """Observations in units of their field; those of a function of it (log(u)) are turned back where that can be."""
    found = []
    for statement in problem.statements:
        values = None if statement.points is None else _in_field_units(statement)
        if values is not None and statement.points is not None:
            found.append(Data(statement.relation.fields[0], statement.points, values))
    return found


@dataclass(frozen=True, eq=False)
class Check:
    """Measured values of a field beside what the solution expects a measurement there to be, and how far off."""

    measured: Array
    mean: Array
    std: Array  # of a new measurement: the field's and the noise's together


def chosen_sigmas(solution: Solution) -> dict[str, float]:
    """The sigma that was used for every statement, by the statement's name; empty where a method does not say."""
    pairs = solution.settings.get("sigma") or []
    return {name: sigma for name, sigma in pairs if isinstance(sigma, int | float)}  # a file may say anything


def check_of(solution: Solution, field: str) -> Check | None:
    """All values of a field that were measured at points; None where there are none, or no std to judge them by."""
    chosen, found = chosen_sigmas(solution), []
    for statement in solution.problem.statements:
        sigma = chosen.get(statement.name) if statement.sigma is None else statement.sigma
        if statement.points is None or statement.stencil or statement.relation.text != field or sigma is None:
            continue
        seen = solution.posterior.predict(statement.points, field, points=True)
        spread = np.hypot(np.asarray(seen["std"], float), sigma)
        found.append(np.stack([statement.target, np.asarray(seen["mean"], float), spread]))
    together = np.concatenate(found, axis=1) if found else np.zeros((3, 0))
    return Check(*together) if together.size and np.all(np.isfinite(together)) else None


def _in_field_units(statement: Statement) -> Array | None:
    relation = statement.relation
    if len(relation.jets) != 1 or relation.expression.free_symbols != set(relation.jets):
        return None
    (seen, jet), *_ = relation.jets.items()
    if jet.orders:
        return None
    if relation.expression == seen:
        return statement.target
    sides = parse_sides(relation.text)  # None where u**2 was measured: nobody knows the sign
    return inverse(lambda u: np.broadcast_to(evaluate(sides, {str(seen): u}), u.shape), statement.target)


def kind_of(statement: Statement) -> str:
    """equation, data or condition: the three roles of a factor."""
    if statement.points is not None:
        return "data"
    return "equation" if statement.face is None else "condition"


# -- coefficients and calibration


def density(coefficient: Unknown, at: Array) -> Array:
    """Of a coefficient with these moments: normal, or log-normal if it is positive."""
    mean, variance = coefficient.latent_moments
    inside = at > 0.0 if coefficient.positive else np.ones(at.shape, bool)
    safe = np.where(inside, at, 1.0)
    z = np.log(safe) if coefficient.positive else safe
    scale = safe if coefficient.positive else 1.0
    values = np.exp(-0.5 * (z - mean) ** 2 / variance) / (scale * np.sqrt(2.0 * np.pi * variance))
    return np.where(inside, values, 0.0)


def beliefs(solution: Solution, level: float = 0.9) -> dict[str, tuple[Unknown, Unknown, tuple[float, float]]]:
    """For every unknown coefficient: prior, posterior (by its moments) and its interval."""
    found = {}
    for name, prior in solution.problem.unknowns.items():
        values = solution.posterior.parameters(level)[name]
        after = Unknown(values["mean"], max(values["std"], 1e-300), prior.positive)
        found[name] = (prior, after, (float(values["interval"][0]), float(values["interval"][1])))
    return found


@dataclass(frozen=True)
class Calibration:
    """How the intervals fare against the truth."""

    scores: Mapping[str, float]
    reliability: list[float]  # shares of the truth inside intervals of each of LEVELS
    pit: list[float]  # histogram of the probability integral transform: shares per bin


def calibration(shown: View) -> Calibration | None:
    """None where there is no truth or no std."""
    inside = np.isfinite(shown.mean)  # of a region
    if shown.truth is None or not np.any(inside) or not np.all(np.isfinite(shown.std[inside])):
        return None
    arrays = (shown.mean[inside], shown.std[inside], shown.truth[inside])
    shares = [metrics.coverage(*arrays, level) for level in LEVELS]
    return Calibration(metrics.scores(*arrays), shares, metrics.pit_histogram(*arrays))


def needs_truth(shown: View) -> Calibration:
    found = calibration(shown)
    if found is None:
        received = "no std" if shown.truth is not None else "none"
        raise expected("a known truth and a std to judge the intervals by", received, "--kind fields")
    return found
