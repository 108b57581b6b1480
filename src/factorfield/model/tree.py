"""The model of nested boxes: local splines over cells, factors that read few weights each, a prior that no resolution
changes.

Equations are asked at two (degree 3) or three (degree 5) Gauss points per cell and axis, walls and starts at as many
along them. Their errors are white noise: `sigma` is that of the mean over a piece of the domain with sides of a quarter
of each axis, whatever the number of points. So a row at a point that stands for the volume V counts sqrt(V / V0) /
sigma, V0 being the volume of such a piece: twice the cells do not make an equation twice as sure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.messages.boxes import Box, nested_boxes
from factorfield.model.activation import Identity
from factorfield.model.basis import Tensor
from factorfield.model.cells import Cost, NestedCells, cost_of, nested_cells
from factorfield.model.choices import (
    BLOCK_RESIDUAL,
    BROAD,
    FACE_NOISE,
    LABEL_NOISE,
    Sigma,
    Sizes,
    block_sigmas,
    checked_counts,
    modes_of_functions,
    shown,
)
from factorfield.model.cut_cells import places_inside, places_on_wall
from factorfield.model.functions import DEFAULT_LENGTH
from factorfield.model.local import LocalGroup, Places, local_group, summed_group
from factorfield.model.matern import matern_rows
from factorfield.model.model import Model, available_memory
from factorfield.model.narrow import check_wide
from factorfield.model.representation import Form, Latent, Representation, coefficient_form, field_form
from factorfield.model.singular import FLUX_POWER, reads_slopes, shares_beside
from factorfield.model.sizes import sizes_of
from factorfield.model.splines import DEGREES, Spline, halved
from factorfield.problem.domain import Domain, Periodic
from factorfield.problem.problem import Problem
from factorfield.problem.statement import Statement

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
HOLDS = 1e-5  # of its size: how well an equation, start or wall without a sigma of its own holds
WALL_HOLDS = 1e-6  # the same on a region's boundary: beyond it splines go on, and the prior would pull at them
PIECE = 0.25  # of each axis: the sides of the piece over which sigma is that of the mean error
FIELD_SMOOTHNESS, FUNCTION_SMOOTHNESS = 2, 3  # Matern 3/2 and 5/2: one derivative, two
FIRST_CELLS = {1: 32, 2: 16, 3: 8}  # by the number of axes; 6 beyond
MODES_PER_CELL, MOST_FIRST = 2, 64  # of sources that cells can follow; cells along an axis to begin with
MOST_OPERATIONS = 3e11  # of an automatic resolution: some ten seconds
MOST_CELLS = 4096  # the same, along one axis
MEMORY_SHARE = 0.5  # of what is available


@dataclass(frozen=True, eq=False)
class LatentPrior:
    """A Matern process about a constant on the splines of one latent; without axes a Gaussian number."""

    latent: Latent
    mean: float
    std: float
    lengths: Mapping[str, float]
    smoothness: int

    def rows(self, ranges: Mapping[str, slice]) -> tuple[Indices, list[Array]]:
        """What a box of cells has of it: the weights, and per axis the rows whose products are the rows."""
        numbers = np.zeros(1, np.int64)
        factors: list[Array] = []
        for axis, spline in self.latent.basis.families.items():
            assert isinstance(spline, Spline)
            std = self.std if not factors else 1.0
            first, count = ranges[axis].start, ranges[axis].stop - ranges[axis].start
            rows = matern_rows(spline, self.lengths[axis], self.smoothness, std, count, first == 0)
            read = spline.weights_of(np.arange(first, first + count))
            own, where = np.unique(np.append(read[:, 0], read[-1, 1:]), return_inverse=True)
            folded = np.zeros((len(rows), len(own)))
            np.add.at(folded.T, where, rows.T)  # around a ring of few cells a weight is read twice
            numbers = (numbers[:, None] * spline.size + own).ravel()
            factors.append(folded)
        return self.latent.block.start + numbers, factors or [np.full((1, 1), 1.0 / self.std)]

    @cached_property
    def _precisions(self) -> list[Array]:
        """Along each axis, of all its weights."""
        whole = {axis: slice(0, s.cells) for axis, s in self.latent.basis.families.items() if isinstance(s, Spline)}
        return [rows.T @ rows for rows in self.rows(whole)[1]]

    def pull(self, weights: Array) -> Array:
        """The gradient of half the squared norm, by this latent's weights."""
        field = (weights[self.latent.block] - self.mean).reshape(self.latent.basis.shape or (1,))
        for precision in self._precisions:  # contracts the leading axis, appends it
            field = np.tensordot(field, precision, axes=(0, 0))
        return field.ravel()

    def norm(self, weights: Array) -> float:
        return float((weights[self.latent.block] - self.mean) @ self.pull(weights))


@dataclass(frozen=True, eq=False, kw_only=True)
class TreeModel(Model):
    """Factors and priors over local features, and the boxes in which their weights are eliminated."""

    degree: int
    sizes: Sizes
    cells: NestedCells
    boxes: tuple[Box, ...]
    groups: tuple[LocalGroup, ...]  # rows in the order of tiles
    priors: tuple[LatentPrior, ...]
    automatic: bool = False  # may the cells prove too few?
    errors_before: tuple[float, ...] = ()  # the numerical errors on wider cells: halving must help
    looseness: float = 1.0  # of equations, and a region's walls, without a sigma of their own: times what was chosen
    first_weights: Array | None = None  # weights where a search begins, instead of the prior mean

    @property
    def is_linear(self) -> bool:
        return all(group.relation.is_linear for group in self.groups)

    @property
    def splines(self) -> dict[str, Spline]:
        return splines_of(self.problem.domain, self.modes, self.degree)

    @cached_property
    def prior_mean(self) -> Array:
        mean = np.empty(self.size)
        for prior in self.priors:
            mean[prior.latent.block] = prior.mean
        return mean

    @cached_property
    def spans(self) -> tuple[Indices, ...]:
        """Per group, where the rows of each tile begin, in the order of the boxes (with the end)."""
        count = len(self.boxes)
        return tuple(np.searchsorted(_tiles(self.cells, group), np.arange(count + 1)) for group in self.groups)

    @cached_property
    def own(self) -> tuple[NDArray[np.int32], ...]:
        """Per group, where each row's weights stand among those that its tile reads."""
        found = []
        position = np.zeros(self.size, np.int64)
        for group, span in zip(self.groups, self.spans, strict=True):
            columns = group.all_columns
            where = np.empty(columns.shape, np.int32)
            for tile in self.cells.tiles:
                reads = np.sort(self.boxes[tile].front)
                position[reads] = np.arange(len(reads))
                where[span[tile] : span[tile + 1]] = position[columns[span[tile] : span[tile + 1]]]
            found.append(where)
        return tuple(found)

    @cached_property
    def tile_priors(self) -> dict[int, list[tuple[Indices, list[Array]]]]:
        """Per tile, every latent's share of its prior: positions among the tile's weights, rows along each axis."""
        found: dict[int, list[tuple[Indices, list[Array]]]] = {}
        known: dict[tuple[object, ...], tuple[Indices, list[Array]]] = {}
        for tile in self.cells.tiles:
            ranges = dict(zip(self.problem.domain.names, self.cells.ranges[tile], strict=True))
            reads, parts = np.sort(self.boxes[tile].front), []
            for index, prior in enumerate(self.priors):
                others = [r for name, r in ranges.items() if name not in prior.latent.basis.axes]
                if any(r.start > 0 for r in others):
                    continue  # what does not vary along an axis has its prior once, not once per tile along it
                key = index, *((r.start, r.stop) for name, r in ranges.items() if name in prior.latent.basis.axes)
                if key not in known:
                    known[key] = prior.rows(ranges)
                numbers, factors = known[key]
                parts.append((np.searchsorted(reads, numbers), factors))
            found[tile] = parts
        return found

    def negative_log_joint(self, weights: Array) -> float:
        """Up to the normalisers of priors and factors."""
        return self.merit(weights, [group.misfit(weights) for group in self.groups])

    def merit(self, weights: Array, misfits: Sequence[Array]) -> float:
        """The same where the misfits are known already."""
        squares = sum(float(misfit @ misfit) for misfit in misfits)
        return 0.5 * (squares + sum(prior.norm(weights) for prior in self.priors))


def splines_of(domain: Domain, cells: Mapping[str, int], degree: int) -> dict[str, Spline]:
    return {
        name: Spline(degree, cells[name], axis.lower, axis.upper, isinstance(axis, Periodic))
        for name, axis in domain.items()
    }


def _tiles(cells: NestedCells, group: LocalGroup) -> Indices:
    return cells.tile_of[tuple(group.cell.values())]


def tree_model(problem: Problem, *, cells: Mapping[str, int] | None = None, degree: int | None = None) -> TreeModel:
    """Local splines over the whole domain. `cells` per axis and `degree` (3 or 5) override what is chosen."""
    power = _checked_degree(problem, degree)
    check_wide(problem, problem.domain)
    given = checked_counts(cells, problem, "cells", MOST_CELLS)
    chosen = {**_first_cells(problem, power), **given}
    _check_cells(problem, chosen, power)
    model = built(problem, chosen, power, sizes_of(problem, Identity()))
    return replace(model, automatic=len(given) < len(problem.domain))


def built(problem: Problem, cells: Mapping[str, int], degree: int, sizes: Sizes) -> TreeModel:
    """The model with so many cells along each axis."""
    splines = splines_of(problem.domain, cells, degree)
    representation = _representation(problem, splines)
    nested = nested_cells(tuple(spline.cells for spline in splines.values()))
    sigmas = _sigmas(problem, sizes)
    groups = tuple(
        _in_order_of_tiles(_group(problem, representation, statement, sigma, splines), nested)
        for statement, sigma in zip(problem.statements, sigmas, strict=True)
    )
    priors = _priors(problem, representation, sizes)
    boxes = _boxes(problem, representation, nested, groups)
    settings = {
        "model": "local", "cells": dict(cells), "degree": degree, "scale": sizes.scale, "offset": sizes.shown,
        "sigma": shown(problem, sigmas), "piece": PIECE,
    }  # fmt: skip
    return TreeModel(
        problem=problem, representation=representation, sigmas=sigmas, modes=dict(cells), scale=sizes.scale,
        settings=settings, degree=degree, sizes=sizes, cells=nested, boxes=boxes, groups=groups, priors=priors,
    )  # fmt: skip


def with_cells(model: TreeModel, cells: Mapping[str, int], first_weights: Array | None = None) -> TreeModel:
    """The same problem and choices on other cells."""
    changed = built(model.problem, cells, model.degree, model.sizes)
    return replace(changed, automatic=model.automatic, first_weights=first_weights)


def with_looseness(model: TreeModel, looseness: float) -> TreeModel:
    """The same with equations, and walls of a region, that hold so much worse than was chosen; those with a sigma of
    their own keep it."""
    free = (s for s in model.problem.statements if s.sigma is None)
    loose = {s.name for s in free if s.kind == "equation" or s.wall is not None}
    if not loose:
        return model
    share = looseness / model.looseness
    sigmas = tuple(
        replace(sigma, value=share * sigma.value, origin="estimated") if s.name in loose else sigma
        for s, sigma in zip(model.problem.statements, model.sigmas, strict=True)
    )
    groups = tuple(replace(g, sigma=share * g.sigma) if g.name in loose else g for g in model.groups)
    settings = {**model.settings, "sigma": shown(model.problem, sigmas)}
    return replace(model, sigmas=sigmas, groups=groups, settings=settings, looseness=looseness)


def prolonged(model: TreeModel, coarse: TreeModel, weights: Array) -> Array:
    """Weights of a model with cells twice as wide (along the axes where they are), as weights of this one."""
    found = np.empty(model.size)
    for name, latent in model.representation.latents.items():
        field = weights[coarse.representation.latents[name].block]
        field = field.reshape(coarse.representation.latents[name].basis.shape or (1,))
        for axis, spline in latent.basis.families.items():
            assert isinstance(spline, Spline)
            matrix = np.eye(spline.size) if coarse.modes[axis] == spline.cells else halved(spline)
            field = np.tensordot(field, matrix, axes=(0, 1))
        found[latent.block] = field.ravel()
    return found


def _representation(problem: Problem, splines: Mapping[str, Spline]) -> Representation:
    everywhere = Tensor(splines)
    parts = [(name, everywhere, field_form(name, problem.domain.names, Identity())) for name in problem.fields]
    parts += [(name, Tensor({}), coefficient_form(name, u.positive)) for name, u in problem.unknowns.items()]
    for name, unknown in problem.functions.items():
        axes = tuple(axis for axis in problem.domain.names if axis in unknown.over)
        link = "exp" if unknown.positive else "activation"
        parts.append((name, Tensor({axis: splines[axis] for axis in axes}), Form((name,), axes, link=link)))
    return Representation.build(parts)


def _priors(problem: Problem, representation: Representation, sizes: Sizes) -> tuple[LatentPrior, ...]:
    found = []
    for name, latent in representation.latents.items():
        default = {axis: DEFAULT_LENGTH * problem.domain[axis].length for axis in latent.basis.axes}
        if name in problem.fields:
            mean, std = sizes.offsets.get(name, 0.0), BROAD * sizes.reach
            found.append(LatentPrior(latent, mean, std, default, FIELD_SMOOTHNESS))
            continue
        unknown = problem.unknowns[name] if name in problem.unknowns else problem.functions[name]
        mean, variance = unknown.latent_moments
        lengths = {axis: unknown.length or length for axis, length in default.items()}
        found.append(LatentPrior(latent, mean, math.sqrt(variance), lengths, FUNCTION_SMOOTHNESS))
    return tuple(found)


def _sigmas(problem: Problem, sizes: Sizes) -> tuple[Sigma, ...]:
    """As for one block, but what has no sigma of its own holds better: cells follow where modes could not."""
    found = []
    for statement, sigma in zip(problem.statements, block_sigmas(problem, sizes), strict=True):
        if sigma.origin == "default" and statement.kind != "observation":
            share = BLOCK_RESIDUAL if statement.kind == "equation" else FACE_NOISE
            tight = HOLDS if statement.wall is None else WALL_HOLDS
            sigma = replace(sigma, value=tight / share * sigma.value)
        found.append(sigma)
    return tuple(found)


def sigmas_without_errors(model: TreeModel) -> dict[str, float]:
    """By the names of starts and walls that are off: how well they would hold, were nothing said about that."""
    held = [replace(s, sigma=None) for s in model.problem.statements if s.error is not None]
    found = _sigmas(model.problem.with_statements(held), model.sizes)
    return {statement.name: sigma.typical for statement, sigma in zip(held, found, strict=True)}


def _group(
    problem: Problem, representation: Representation, statement: Statement, sigma: Sigma, splines: Mapping[str, Spline]
) -> LocalGroup:
    if statement.points is not None:
        places, value = Places.at(statement.points, splines), sigma.value
    else:
        places, shares = _places(problem, statement, splines)
        sides = len(splines) - len(statement.face or {}) - (statement.wall is not None)
        value = sigma.value * np.sqrt(PIECE**sides / shares)
        if problem.shape is not None and statement.kind == "equation":
            value = value / shares_beside(places.points, problem)
        if statement.wall is not None and reads_slopes(statement):
            value = value / shares_beside(places.points, problem, FLUX_POWER)
    if statement.stencil:
        return summed_group(statement, representation, places, value, problem.constants, splines)
    return local_group(statement, representation, places, value, problem.constants)


def _places(problem: Problem, statement: Statement, splines: Mapping[str, Spline]) -> tuple[Places, Array]:
    """Of a statement that speaks of no points of its own, with their shares of where it holds."""
    if statement.wall is not None:
        return places_on_wall(splines, statement.wall)
    if problem.shape is not None:
        return places_inside(splines, problem.shape, statement.face or {})
    return Places.gauss(splines, statement.face or {})


def _in_order_of_tiles(group: LocalGroup, nested: NestedCells) -> LocalGroup:
    return group.part(np.argsort(_tiles(nested, group), kind="stable"))


def _boxes(
    problem: Problem, representation: Representation, nested: NestedCells, groups: Sequence[LocalGroup]
) -> tuple[Box, ...]:
    numbers = np.array([representation.latents[name].block.start for name in problem.unknowns], np.int64)
    reads = _reads(nested, groups, representation, problem.domain.names)
    return nested_boxes(representation.size, reads, nested.children, nested.in_leaf, numbers)


def _reads(
    nested: NestedCells, groups: Sequence[LocalGroup], representation: Representation, names: Sequence[str]
) -> list[Indices]:
    """The weights that each tile reads: those of its cells, and what averages and pairs of walls read elsewhere."""
    nothing = np.zeros(0, np.int64)
    found = [nothing] * len(nested.ranges)
    tiles = [_tiles(nested, group) if group.statement.stencil else nothing for group in groups]
    for tile in nested.tiles:
        ranges = dict(zip(names, nested.ranges[tile], strict=True))
        parts = []
        for latent in representation.latents.values():
            numbers = np.zeros(1, np.int64)
            for axis, spline in latent.basis.families.items():
                assert isinstance(spline, Spline)
                read = np.unique(spline.weights_of(np.arange(ranges[axis].start, ranges[axis].stop)))
                numbers = (numbers[:, None] * spline.size + read).ravel()
            parts.append(latent.block.start + numbers)
        parts += [g.all_columns[t == tile].ravel() for g, t in zip(groups, tiles, strict=True) if len(t)]
        found[tile] = np.unique(np.concatenate(parts))
    return found


# -- how many cells, of which degree


def _checked_degree(problem: Problem, degree: int | None) -> int:
    orders = {axis: max(s.relation.order(axis) for s in problem.statements) for axis in problem.domain.names}
    axis = max(orders, key=orders.__getitem__)
    lowest = orders[axis] + 1
    if degree is not None and (isinstance(degree, bool) or degree not in DEGREES):
        raise expected(f"degree {DEGREES[0]} or {DEGREES[1]} of splines", degree, f"degree={DEGREES[1]}")
    if degree is None:
        degree = 5 if lowest > 3 or len(problem.domain) < 3 or problem.shape is not None else 3
    if degree < lowest:
        remedy = f"degree={DEGREES[1]}" if lowest <= DEGREES[1] else "an equation of lower order, or method='joint'"
        raise expected(f"splines of degree {lowest} or more for the {orders[axis]} derivatives along {axis}",
                       f"degree {degree}", remedy)  # fmt: skip
    return degree


def _first_cells(problem: Problem, degree: int) -> dict[str, int]:
    """Twice as many, again and again, where coefficients are unknown and sources are finer than cells: an equation that
    cells cannot follow would be met by coefficients that make all of it small."""
    count = max(FIRST_CELLS.get(len(problem.domain), 6), 2 * degree + 2 if len(problem.domain) < 4 else 6)
    cells = dict.fromkeys(problem.domain.names, count)
    for name in problem.domain.names if problem.unknowns and problem.shape is not None else ():
        while MODES_PER_CELL * cells[name] < modes_of_functions(problem, name) and cells[name] < MOST_FIRST:
            cells[name] *= 2
    return cells


def _check_cells(problem: Problem, cells: Mapping[str, int], degree: int) -> None:
    for axis, count in cells.items():
        if count < degree + 1:
            raise expected(
                f"at least {degree + 1} cells along {axis} for splines of degree {degree}", count,
                f"cells={{'{axis}': {2 * degree + 2}}}",
            )  # fmt: skip
    needed, free = 8.0 * cost_for(problem, cells, degree).numbers, available_memory()
    if needed > MEMORY_SHARE * free:
        raise expected(
            f"cells that take at most {MEMORY_SHARE * free / 2**30:.1f} GiB (of the memory available)",
            f"{' x '.join(map(str, cells.values()))} cells, which take about {needed / 2**30:.1f} GiB",
            "fewer cells, or degree=3",
        )  # fmt: skip


def cost_for(problem: Problem, cells: Mapping[str, int], degree: int) -> Cost:
    axes = [problem.domain[name] for name in problem.domain.names]
    fields = len(problem.fields) + len(problem.functions)
    shape = tuple(cells[name] for name in problem.domain.names)
    return cost_of(shape, tuple(isinstance(axis, Periodic) for axis in axes), degree, fields)


def refined_cells(model: TreeModel) -> dict[str, int] | None:
    """Twice the cells along every axis, where their number, the operations and the memory allow."""
    cells = {name: 2 * count for name, count in model.modes.items()}
    if max(cells.values()) > MOST_CELLS:
        return None
    cost = cost_for(model.problem, cells, model.degree)
    fits = cost.operations <= MOST_OPERATIONS and 8.0 * cost.numbers <= MEMORY_SHARE * available_memory()
    return cells if fits else None


def with_condition(model: TreeModel, problem: Problem) -> TreeModel:
    """The same choices for the same problem with further conditions at its end."""
    added = problem.statements[len(model.problem.statements) :]
    default = Sigma(LABEL_NOISE * model.scale, "default")
    sigmas = tuple(default if s.sigma is None else Sigma(s.sigma, "given") for s in added)
    groups = tuple(
        _in_order_of_tiles(_group(problem, model.representation, s, sigma, model.splines), model.cells)
        for s, sigma in zip(added, sigmas, strict=True)
    )
    every, boxes = (*model.groups, *groups), model.boxes
    if any(statement.stencil for statement in added):  # averages may read what their tile did not
        boxes = _boxes(problem, model.representation, model.cells, every)
    settings = {**model.settings, "sigma": shown(problem, (*model.sigmas, *sigmas))}
    return replace(
        model, problem=problem, sigmas=(*model.sigmas, *sigmas), groups=every, boxes=boxes, settings=settings,
        automatic=False,
    )  # fmt: skip
