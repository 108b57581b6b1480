"""What cells leave out: the same windows on fewer cells and with polynomials of one degree less in time tell, and on
fewer still, how fast more of them help.

Only means are compared, by a walk forward from where the path begins: what measurements say of that, and of unknown
coefficients, is taken as it is. The difference of two solutions gives the error its shape; beside it stands
its derivative times the width of cells, which is large where the difference passes through zero.
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
from factorfield.model.graded import DEGREE, GradedSpline, transfer
from factorfield.model.inside import features_at
from factorfield.model.model import WindowModel
from factorfield.model.moving import cells_of_window, on_fewer_cells
from factorfield.problem.domain import TIME

Array = NDArray[np.float64]
SLOWEST = 0.5  # what is left of an error on half as many cells more, at most
FASTEST = (2.0 / 3.0) ** (DEGREE + 1)  # and at least: the order of the splines
NEIGHBOURS = 4  # cells to either side over which sizes of differences are averaged
FLOOR = 0.5  # of the error's root mean square, at every place of a plane
INSTANTS = np.linspace(0.0, 1.0, 9)  # of a window, where fields are compared


def numerical_error(
    model: WindowModel, weights: Sequence[Array], iterations: int, last: Belief
) -> NumericalError | None:
    """Of the mean path `weights`, whose last window starts at a belief; None where it does not exist on fewer cells."""
    fewer = on_fewer_cells(model)
    try:
        coarse = _walked(fewer, _start_on(fewer, model, weights[0], iterations), iterations)
    except FAILED:
        return None
    change = [own - _on(model, fewer, index, coarse[index]) for index, own in enumerate(weights)]
    left = _left(model, fewer, change, coarse, iterations)
    size, about, columns = _size(model, left), max(_size(model, weights), 1e-300), [left]
    partners = [[_beside(model, index, axis, own) for index, own in enumerate(left)] for axis in model.local]
    if not model.in_plane:
        partners.append([_around(model, index, own) for index, own in enumerate(left)])
    for others in partners:
        ratio = size / max(_size(model, others), 1e-300)
        columns.append([ratio * own for own in others])
    if model.in_plane:
        columns += _everywhere(model, FLOOR * size)
    root = np.stack([np.column_stack(own) for own in zip(*columns, strict=True)])
    left_open = _left_open(model, last) / about if model.in_plane else 0.0
    return NumericalError(root, size / about, {}, left_open)


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


def _left(
    model: WindowModel, fewer: WindowModel, change: Sequence[Array], coarse: Sequence[Array], iterations: int
) -> list[Array]:
    """Of the difference to fewer cells, the part that the model's own are off by: by how much larger the difference of
    those to fewer still was; along a line there and then: kinks of a start converge more slowly than fronts."""
    fewest = on_fewer_cells(fewer)
    try:
        coarsest = _walked(fewest, _start_on(fewest, fewer, coarse[0], iterations), iterations)
    except FAILED:
        return [SLOWEST / (1.0 - SLOWEST) * own for own in change]
    before = [own - _on(fewer, fewest, index, coarsest[index]) for index, own in enumerate(coarse)]
    if model.in_plane:
        rate = float(np.clip(_size(model, change) / max(_size(fewer, before), 1e-300), FASTEST, SLOWEST))
        return [rate / (1.0 - rate) * own for own in change]
    return [_left_along(model, fewer, index, own, before[index]) for index, own in enumerate(change)]


def _left_along(model: WindowModel, fewer: WindowModel, index: int, own: Array, before: Array) -> Array:
    """The part of a window's difference, from place to place along its one axis."""
    cells = model.cells[index]
    points = cells.quadrature[0]
    now, then = (
        _smoothed(cells, np.max(np.mean(_values(each, index, weights, [points]) ** 2, axis=1), axis=0))
        for each, weights in ((model, own), (fewer, before))
    )
    rate = np.clip(np.sqrt(now / np.maximum(then, 1e-300)), FASTEST, SLOWEST)
    return _mapped(model, own, [_nearest(cells, (rate / (1.0 - rate))[:, None] * cells(points))])


def _start_on(fewer: WindowModel, model: WindowModel, weights: Array, iterations: int) -> Array:
    """The state at the start of given weights of the first window, on fewer cells, along a line moved by what these
    miss more of a start by formula."""
    state = _transferred(fewer, model, weights)
    if not model.traits.starts_by_formula or model.in_plane:
        return state
    told, own = (_told(each, iterations) for each in (fewer, model))
    whole = np.zeros(model.size)
    whole[model.layout[0]] = own
    return state + told - _transferred(fewer, model, whole)


def _told(model: WindowModel, iterations: int) -> Array:
    """The state that a start by formula alone gives."""
    first, second = (model.edges or ())[:2]
    return solver_of(model, iterations).state_at_start(first, second)


def _transferred(fewer: WindowModel, model: WindowModel, weights: Array) -> Array:
    """The state at the start of given weights of the first window, as that of the nearest function on fewer cells."""
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
    cells = cells_of_window(model, index)
    return _mapped(model, weights, [_slope(own) if name == axis else np.eye(own.size) for name, own in cells.items()])


def _slope(cells: GradedSpline) -> Array:
    points, _ = cells.quadrature
    width = np.repeat(np.diff(cells.breaks), len(points) // cells.cells)
    return _nearest(cells, width[:, None] * cells(points, 1))


def _around(model: WindowModel, index: int, weights: Array) -> Array:
    """Of the fields, the root mean square over neighbours and a window's time, constant over that: an error oscillates
    between cells, and two solutions may agree by chance where it does."""
    cells, found = model.cells[index], np.zeros(model.size)
    values = _values(model, index, weights, [cells.quadrature[0]])
    for own, name in zip(values, model.problem.fields, strict=True):
        latent = model.representation.latents[model.representation.forms[name].latents[0]]
        size = _nearest(cells, np.sqrt(_smoothed(cells, np.mean(own**2, axis=0))))
        if not cells.periodic:  # walls know better: the first and last weights are the values there
            size[[0, -1]] = np.abs(weights[latent.block][: cells.size][[0, -1]])
        found[latent.block][: cells.size] = size
    return found


def _smoothed(cells: GradedSpline, squares: Array) -> Array:
    """The mean of values at Gauss points over the cells near each."""
    points, shares = cells.quadrature
    edges, mode = np.array(cells.breaks), "wrap" if cells.periodic else "constant"
    sums = []
    for own in (squares * shares, shares):
        each = np.pad(own.reshape(cells.cells, -1).sum(axis=1), NEIGHBOURS, mode=mode)  # type: ignore[call-overload]
        sums.append(np.convolve(each, np.ones(2 * NEIGHBOURS + 1), "valid"))
    centres, period = 0.5 * (edges[1:] + edges[:-1]), np.ptp(edges) if cells.periodic else None
    return np.asarray(np.interp(points, centres, sums[0] / sums[1], period=period), float)


def _nearest(cells: GradedSpline, values: Array) -> Array:
    """Weights of the functions that are nearest to values at Gauss points, the first axis."""
    points, shares = cells.quadrature
    root = np.sqrt(shares)
    scaled = root * values if values.ndim == 1 else root[:, None] * values
    return np.asarray(linalg.lstsq(root[:, None] * cells(points), scaled)[0], float)


def _mapped(model: WindowModel, weights: Array, ways: Sequence[Array]) -> Array:
    """Weights of the fields, each instant's mapped by a matrix along every axis of space; all others zero."""
    found = np.zeros(model.size)
    for name in model.problem.fields:
        for unit in model.representation.forms[name].latents:
            latent = model.representation.latents[unit]
            found[latent.block] = _along(ways, weights[latent.block].reshape(latent.basis.shape)).ravel()
    return found


def _values(model: WindowModel, index: int, weights: Array, points: Sequence[Array]) -> Array:
    """Of the fields during a window, (fields, instants, places of a grid of points along each axis)."""
    ways = [cells(x) for cells, x in zip(cells_of_window(model, index).values(), points, strict=True)]
    found = []
    for name in model.problem.fields:
        latent = model.representation.latents[model.representation.forms[name].latents[0]]
        in_time = Departure(latent.basis.shape[0] - 1, 0.0, 1.0)(INSTANTS)
        table = np.tensordot(in_time, weights[latent.block].reshape(latent.basis.shape), 1)
        found.append(_along(ways, table).reshape(len(INSTANTS), -1))
    return np.stack(found)


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
        grids, shares = [], np.ones(1)
        for cells in cells_of_window(model, index).values():
            points, weight = cells.quadrature
            grids.append(points)
            shares = np.kron(shares, weight / weight.sum())
        if model.problem.shape is not None:
            shares = shares * _inside(model, index)
        total += length * np.mean(_values(model, index, own, grids) ** 2 @ shares, axis=1)
    return float(np.sqrt(total.max() / lengths.sum()))
