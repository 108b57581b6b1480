"""What cells leave out: the same windows on fewer cells and with polynomials of one degree less in time tell, and on
fewer still, how fast more of them help.

Only means are compared, by a walk forward from where the path begins: what measurements say of that, and of unknown
coefficients, is taken as it is. The difference of two solutions gives the error its shape; beside it stand
its derivatives times the width of cells, which are large where the difference passes through zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.errors import FAILED
from factorfield.messages.gaussian import Belief
from factorfield.methods.chain.plane import solver_of
from factorfield.methods.resolution import NumericalError
from factorfield.model.basis import Departure
from factorfield.model.graded import GradedSpline, transfer
from factorfield.model.inside import features_at
from factorfield.model.model import WindowModel
from factorfield.model.moving import cells_of_window, on_fewer_cells
from factorfield.problem.domain import TIME

Array = NDArray[np.float64]
SLOWEST, FASTEST = 0.5, 0.02  # what is left of an error on half as many cells more, at most and at least
FLOOR = 0.5  # of the error's root mean square, at every place of a plane
INSTANTS = np.linspace(0.0, 1.0, 9)  # of a window, where fields are compared


def numerical_error(
    model: WindowModel, weights: Sequence[Array], iterations: int, last: Belief
) -> NumericalError | None:
    """Of the mean path `weights`, whose last window starts at a belief; None where it does not exist on fewer cells."""
    fewer = on_fewer_cells(model)
    try:
        coarse = _walked(fewer, _start_on(fewer, model, weights[0]), iterations)
    except FAILED:
        return None
    change = [own - _on(model, fewer, index, coarse[index]) for index, own in enumerate(weights)]
    size, about = _size(model, change), _size(model, weights)
    share = 1.0 / (1.0 / _rate(fewer, coarse, size, iterations) - 1.0)
    columns = [[share * own for own in change]]
    for axis in model.local:
        beside = [_beside(model, index, axis, own) for index, own in enumerate(change)]
        ratio = size / max(_size(model, beside), 1e-300)
        columns.append([share * ratio * own for own in beside])
    if model.in_plane:
        columns += _everywhere(model, FLOOR * share * size)
    root = np.stack([np.column_stack(own) for own in zip(*columns, strict=True)])
    left_open = _left_open(model, last) / max(about, 1e-300) if model.in_plane else 0.0
    return NumericalError(root, share * size / max(about, 1e-300), {}, left_open)


def _left_open(model: WindowModel, last: Belief) -> float:
    """Root mean square of the first field's std where the last window starts: there all but its own data are known."""
    cells = cells_of_window(model, 0)
    mesh = np.meshgrid(*(own.places for own in cells.values()), indexing="ij")
    places = {axis: each.ravel() for axis, each in zip(cells, mesh, strict=True)}
    shape = model.problem.shape
    inside = np.ones(mesh[0].size, bool) if shape is None else shape.contains(places)
    values = features_at(cells, {axis: x[inside] for axis, x in places.items()}, ())
    return float(np.sqrt(np.mean(np.sum((values @ last.root[: values.shape[1]]) ** 2, axis=1))))


def _everywhere(model: WindowModel, size: float) -> list[list[Array]]:
    """For every field a constant of a size: no place of a plane is known far better than all of it."""
    found = []
    for name in model.problem.fields:
        latent, own = model.representation.latents[name], np.zeros(model.size)
        table = np.zeros(latent.basis.shape)
        table[0] = size
        own[latent.block] = table.ravel()
        found.append([own] * (len(model.edges or ()) - 1))
    return found


def _walked(model: WindowModel, state: Array, iterations: int) -> list[Array]:
    """The weights of every window of the mean path from a state."""
    solver, edges, found = solver_of(model, iterations), model.edges or (), []
    state = solver.at_walls(state, edges[0])
    for lower, upper in pairwise(edges):
        found.append(solver.forward(state, lower, upper))
        state = solver.end(found[-1], lower, upper)
    return found


def _rate(fewer: WindowModel, coarse: Sequence[Array], size: float, iterations: int) -> float:
    """What is left of an error from one number of cells to the next."""
    fewest = on_fewer_cells(fewer)
    try:
        coarsest = _walked(fewest, _start_on(fewest, fewer, coarse[0]), iterations)
    except FAILED:
        return SLOWEST
    before = _size(fewer, [own - _on(fewer, fewest, index, coarsest[index]) for index, own in enumerate(coarse)])
    return float(np.clip(size / before if before > 0.0 else FASTEST, FASTEST, SLOWEST))


def _start_on(fewer: WindowModel, model: WindowModel, weights: Array) -> Array:
    """The state at the start of given weights of the first window, on fewer cells."""
    ways, found = _transfers(model, fewer, 0), np.zeros(fewer.size)
    for name, latent in fewer.representation.latents.items():
        other = model.representation.latents[name]
        own = weights[other.block]
        if isinstance(latent.basis.families.get(TIME), Departure):
            table = np.zeros(latent.basis.shape)
            table[0] = _along(ways, own.reshape(other.basis.shape)[:1])[0]  # of first order: one row is the state
            own = table.ravel()
        found[latent.block] = own
    return found[fewer.layout[0]]


def _on(model: WindowModel, fewer: WindowModel, index: int, weights: Array) -> Array:
    """Weights on fewer cells and polynomials, as those of the nearest function that a model has."""
    ways, found = _transfers(fewer, model, index), np.zeros(model.size)
    for name, latent in model.representation.latents.items():
        other = fewer.representation.latents[name]
        own = weights[other.block]
        if isinstance(latent.basis.families.get(TIME), Departure):
            table = np.zeros(latent.basis.shape)
            table[: other.basis.shape[0]] = _along(ways, own.reshape(other.basis.shape))
            own = table.ravel()
        found[latent.block] = own
    return found


def _transfers(old: WindowModel, new: WindowModel, index: int) -> list[Array]:
    """Along every axis of space, from the cells of a window to those of another model."""
    pairs = zip(cells_of_window(old, index).values(), cells_of_window(new, index).values(), strict=True)
    return [transfer(one, other) for one, other in pairs]


def _along(ways: Sequence[Array], table: Array) -> Array:
    """A table (time, space ...) with a matrix applied along every axis of space."""
    for axis, way in enumerate(ways, 1):
        table = np.moveaxis(np.tensordot(way, table, axes=(1, axis)), 0, axis)
    return table


def _beside(model: WindowModel, index: int, axis: str, weights: Array) -> Array:
    """Of the fields, the derivative along an axis of space times the width of cells there."""
    cells, found = cells_of_window(model, index), np.zeros(model.size)
    ways = [_slope(own) if name == axis else np.eye(own.size) for name, own in cells.items()]
    for name in model.problem.fields:
        for unit in model.representation.forms[name].latents:
            latent = model.representation.latents[unit]
            found[latent.block] = _along(ways, weights[latent.block].reshape(latent.basis.shape)).ravel()
    return found


def _slope(cells: GradedSpline) -> Array:
    points, shares = cells.quadrature
    width = np.repeat(np.diff(cells.breaks), len(points) // cells.cells)
    root = np.sqrt(shares)[:, None]
    return np.asarray(linalg.lstsq(root * cells(points), root * width[:, None] * cells(points, 1))[0], float)


def _inside(model: WindowModel, index: int) -> NDArray[np.bool_]:
    """Which Gauss points of a window's cells are in the region."""
    grid = {axis: cells.quadrature[0] for axis, cells in cells_of_window(model, index).items()}
    mesh = np.meshgrid(*grid.values(), indexing="ij")
    assert model.problem.shape is not None
    return model.problem.shape.contains({axis: each.ravel() for axis, each in zip(grid, mesh, strict=True)})


def _size(model: WindowModel, weights: Sequence[Array]) -> float:
    """The root mean square over time and space of the field of which it is largest."""
    lengths, total = np.diff(model.edges or ()), np.zeros(len(model.problem.fields))
    for index, (own, length) in enumerate(zip(weights, lengths, strict=True)):
        ways, shares = [], np.ones(1)
        for cells in cells_of_window(model, index).values():
            points, weight = cells.quadrature
            ways.append(cells(points))
            shares = np.kron(shares, weight / weight.sum())
        if model.problem.shape is not None:
            shares = shares * _inside(model, index)
        for place, name in enumerate(model.problem.fields):
            latent = model.representation.latents[model.representation.forms[name].latents[0]]
            in_time = Departure(latent.basis.shape[0] - 1, 0.0, 1.0)(INSTANTS)
            table = np.tensordot(in_time, own[latent.block].reshape(latent.basis.shape), 1)
            values = _along(ways, table).reshape(len(INSTANTS), -1)
            total[place] += length * float(np.mean(values**2 @ shares))
    return float(np.sqrt(total.max() / lengths.sum()))
