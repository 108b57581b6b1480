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
from factorfield.methods.chain.solver import WindowSolver
from factorfield.methods.resolution import NumericalError
from factorfield.model.basis import Departure
from factorfield.model.graded import DEGREE, GradedSpline, transfer
from factorfield.model.model import WindowModel
from factorfield.model.moving import on_fewer_cells
from factorfield.problem.domain import TIME

Array = NDArray[np.float64]
SLOWEST = 0.5  # what is left of an error on half as many cells more, at most
FASTEST = (2.0 / 3.0) ** (DEGREE + 1)  # and at least: the order of the splines
NEIGHBOURS = 4  # cells to either side over which sizes of differences are averaged
INSTANTS = np.linspace(0.0, 1.0, 9)  # of a window, where fields are compared


def numerical_error(model: WindowModel, weights: Sequence[Array], iterations: int) -> NumericalError | None:
    """Of the mean path `weights`; None where it does not exist on fewer cells."""
    fewer = on_fewer_cells(model)
    try:
        coarse = _walked(fewer, _start_on(fewer, model, weights[0], iterations), iterations)
    except FAILED:
        return None
    change = [own - _on(model, fewer, index, coarse[index]) for index, own in enumerate(weights)]
    left = _left(model, fewer, change, coarse, iterations)
    size, columns = _size(model, left), [left]
    for partner in (_beside, _around):
        others = [partner(model, index, own) for index, own in enumerate(left)]
        ratio = size / max(_size(model, others), 1e-300)
        columns.append([ratio * own for own in others])
    root = np.stack([np.column_stack(own) for own in zip(*columns, strict=True)])
    return NumericalError(root, size / max(_size(model, weights), 1e-300), {})


def _walked(model: WindowModel, state: Array, iterations: int) -> list[Array]:
    """The weights of every window of the mean path from a state."""
    solver, edges, found = WindowSolver(model, iterations), model.edges or (), []
    for lower, upper in pairwise(edges):
        found.append(solver.forward(state, lower, upper))
        state = solver.factors.end_map(lower, upper) @ found[-1]
    return found


def _left(
    model: WindowModel, fewer: WindowModel, change: Sequence[Array], coarse: Sequence[Array], iterations: int
) -> list[Array]:
    """Of the difference to fewer cells, the part that the model's own are off by: by how much larger the difference of
    those to fewer still was, there and then. Kinks of a start converge more slowly than fronts."""
    fewest = on_fewer_cells(fewer)
    try:
        coarsest = _walked(fewest, _start_on(fewest, fewer, coarse[0], iterations), iterations)
    except FAILED:
        return [SLOWEST / (1.0 - SLOWEST) * own for own in change]
    found = []
    for index, own in enumerate(change):
        before, cells = coarse[index] - _on(fewer, fewest, index, coarsest[index]), model.cells[index]
        points = cells.quadrature[0]
        now, then = (
            _smoothed(cells, np.max(np.mean(_values(each, index, weights, points) ** 2, axis=1), axis=0))
            for each, weights in ((model, own), (fewer, before))
        )
        rate = np.clip(np.sqrt(now / np.maximum(then, 1e-300)), FASTEST, SLOWEST)
        found.append(_mapped(model, own, _nearest(cells, (rate / (1.0 - rate))[:, None] * cells(points))))
    return found


def _start_on(fewer: WindowModel, model: WindowModel, weights: Array, iterations: int) -> Array:
    """The state at the start of given weights of the first window, on fewer cells, moved by what these miss more of a
    start by formula."""
    state = _transferred(fewer, model, weights)
    if not model.traits.starts_by_formula:
        return state
    told, own = (_told(each, iterations) for each in (fewer, model))
    whole = np.zeros(model.size)
    whole[model.layout[0]] = own
    return state + told - _transferred(fewer, model, whole)


def _told(model: WindowModel, iterations: int) -> Array:
    """The state that a start by formula alone gives."""
    first, second = (model.edges or ())[:2]
    return WindowSolver(model, iterations).state_at_start(first, second)


def _transferred(fewer: WindowModel, model: WindowModel, weights: Array) -> Array:
    """The state at the start of given weights of the first window, as that of the nearest function on fewer cells."""
    way, found = transfer(model.cells[0], fewer.cells[0]), np.zeros(fewer.size)
    for name, latent in fewer.representation.latents.items():
        other = model.representation.latents[name]
        own = weights[other.block]
        if isinstance(latent.basis.families.get(TIME), Departure):
            table = np.zeros(latent.basis.shape)
            table[0] = way @ own.reshape(other.basis.shape)[0]  # of first order in time: one row is the state
            own = table.ravel()
        found[latent.block] = own
    return found[fewer.layout[0]]


def _on(model: WindowModel, fewer: WindowModel, index: int, weights: Array) -> Array:
    """Weights on fewer cells and polynomials, as those of the nearest function that a model has."""
    way, found = transfer(fewer.cells[index], model.cells[index]), np.zeros(model.size)
    for name, latent in model.representation.latents.items():
        other = fewer.representation.latents[name]
        own = weights[other.block]
        if isinstance(latent.basis.families.get(TIME), Departure):
            table = np.zeros(latent.basis.shape)
            table[: other.basis.shape[0]] = own.reshape(other.basis.shape) @ way.T
            own = table.ravel()
        found[latent.block] = own
    return found


def _beside(model: WindowModel, index: int, weights: Array) -> Array:
    """Of the fields, the derivative along space times the width of cells there."""
    cells = model.cells[index]
    points, _ = cells.quadrature
    width = np.repeat(np.diff(cells.breaks), len(points) // cells.cells)
    return _mapped(model, weights, _nearest(cells, width[:, None] * cells(points, 1)))


def _around(model: WindowModel, index: int, weights: Array) -> Array:
    """Of the fields, the root mean square over neighbours and a window's time, constant over that: an error oscillates
    between cells, and two solutions may agree by chance where it does."""
    cells, found = model.cells[index], np.zeros(model.size)
    values = _values(model, index, weights, cells.quadrature[0])
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


def _mapped(model: WindowModel, weights: Array, way: Array) -> Array:
    """Weights of the fields, each instant's mapped by a matrix; all others zero."""
    found = np.zeros(model.size)
    for name in model.problem.fields:
        for unit in model.representation.forms[name].latents:
            latent = model.representation.latents[unit]
            found[latent.block] = (weights[latent.block].reshape(latent.basis.shape) @ way.T).ravel()
    return found


def _values(model: WindowModel, index: int, weights: Array, points: Array) -> Array:
    """Of the fields during a window, (fields, instants, points)."""
    found, in_space = [], model.cells[index](points)
    for name in model.problem.fields:
        latent = model.representation.latents[model.representation.forms[name].latents[0]]
        in_time = Departure(latent.basis.shape[0] - 1, 0.0, 1.0)(INSTANTS)
        found.append(in_time @ weights[latent.block].reshape(latent.basis.shape) @ in_space.T)
    return np.stack(found)


def _size(model: WindowModel, weights: Sequence[Array]) -> float:
    """The root mean square over time and space of the field of which it is largest."""
    lengths, total = np.diff(model.edges or ()), np.zeros(len(model.problem.fields))
    for index, (cells, own, length) in enumerate(zip(model.cells, weights, lengths, strict=True)):
        points, shares = cells.quadrature
        total += length * np.mean(_values(model, index, own, points) ** 2 @ shares, axis=1)
    return float(np.sqrt(total.max() / (lengths.sum() * np.ptp(model.cells[0].breaks))))
