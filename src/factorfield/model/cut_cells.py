"""Where factors are asked in a region: in whole cells at Gauss points, in cells that its boundary cuts at a finer grid
of points inside, and along its walls.

A point stands for a share of the domain: in a cut cell, for its part of the cell. Cells that lie outside have none;
what splines there are left with is the prior, which continues the field smoothly.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from factorfield.model.local import Places
from factorfield.model.splines import Spline
from factorfield.problem.domain import TIME
from factorfield.problem.shape import Shape, Wall

Array = NDArray[np.float64]
WITHIN_CUT = 6  # points along each axis of a cell that the boundary cuts
SLIVER = 0.5  # of these points: a cell with fewer of them inside is asked along its wall too
FINE = 0.25  # of a cell: steps along the boundary by which cut cells are found


def places_inside(splines: Mapping[str, Spline], shape: Shape, face: Mapping[str, float]) -> tuple[Places, Array]:
    """Of an equation, or a start: places and their shares of the domain."""
    plane = {axis: splines[axis] for axis in shape.axes}
    whole, shares = Places.gauss(plane, {})
    is_cut = cut_cells(plane, shape)
    cells = tuple(whole.cell[axis] for axis in shape.axes)
    kept = np.flatnonzero(~is_cut[cells] & shape.contains(whole.points))
    parts, weights = [whole.part(kept)], [shares[kept]]
    within = _within_cut(plane, shape, is_cut)
    for found, of_found in (within, _in_slivers(plane, shape, within[0])):
        parts.append(found)
        weights.append(of_found)
    together = Places(
        {axis: np.concatenate([part.points[axis] for part in parts]) for axis in plane},
        {axis: np.concatenate([part.cell[axis] for part in parts]) for axis in plane},
        {axis: np.concatenate([part.share[axis] for part in parts]) for axis in plane},
    )
    return _over_time(together, np.concatenate(weights), splines, face)


def places_on_wall(splines: Mapping[str, Spline], wall: Wall) -> tuple[Places, Array]:
    """Of a condition on a wall: places with normals, and their shares of a length as of the box's sides."""
    plane = {axis: splines[axis] for axis in wall.axes}
    points, lengths = wall.points(min(spline.width for spline in plane.values()))
    at = Places.at(points, plane)
    side = float(np.sqrt(np.prod([spline.upper - spline.lower for spline in plane.values()])))
    return _over_time(Places(points, at.cell, at.share), lengths / side, splines, {})


def cut_cells(plane: Mapping[str, Spline], shape: Shape) -> NDArray[np.bool_]:
    """The cells that the boundary runs through."""
    points, _ = shape.boundary.points(FINE * min(spline.width for spline in plane.values()))
    found = np.zeros(tuple(spline.cells for spline in plane.values()), bool)
    at = Places.at(points, plane)
    found[tuple(at.cell[axis] for axis in plane)] = True
    return found


def _within_cut(plane: Mapping[str, Spline], shape: Shape, is_cut: NDArray[np.bool_]) -> tuple[Places, Array]:
    steps = (np.arange(WITHIN_CUT) + 0.5) / WITHIN_CUT
    at = np.argwhere(is_cut)
    shares = np.stack(np.meshgrid(steps, steps, indexing="ij"), axis=-1).reshape(-1, 2)
    cell = {axis: np.repeat(at[:, i], len(shares)) for i, axis in enumerate(plane)}
    share = {axis: np.tile(shares[:, i], len(at)) for i, axis in enumerate(plane)}
    points = {axis: s.lower + (cell[axis] + share[axis]) * s.width for axis, s in plane.items()}
    inside = np.flatnonzero(shape.contains(points))
    return Places(points, cell, share).part(inside), np.full(len(inside), 1.0 / (is_cut.size * WITHIN_CUT**2))


def _in_slivers(plane: Mapping[str, Spline], shape: Shape, within: Places) -> tuple[Places, Array]:
    """Points on the boundary, half a step of the grid deep, in cells of which hardly a point of the grid is inside:
    splines that end there would have nothing but the wall."""
    width = min(spline.width for spline in plane.values())
    points, lengths = shape.boundary.points(width)
    at = Places.at({axis: points[axis] for axis in plane}, plane)
    asked = np.zeros(tuple(spline.cells for spline in plane.values()), np.int64)
    np.add.at(asked, tuple(within.cell[axis] for axis in plane), 1)
    kept = np.flatnonzero(asked[tuple(at.cell[axis] for axis in plane)] < SLIVER * WITHIN_CUT**2)
    area = float(np.prod([spline.upper - spline.lower for spline in plane.values()]))
    return at.part(kept), lengths[kept] * (0.5 * width / WITHIN_CUT) / area


def _over_time(
    places: Places, shares: Array, splines: Mapping[str, Spline], face: Mapping[str, float]
) -> tuple[Places, Array]:
    """The same at every instant that is asked at."""
    if TIME not in splines:
        return places, shares
    times, of_times = Places.gauss({TIME: splines[TIME]}, face)
    count, many = len(shares), len(of_times)
    return Places(
        {TIME: np.repeat(times.points[TIME], count), **{n: np.tile(x, many) for n, x in places.points.items()}},
        {TIME: np.repeat(times.cell[TIME], count), **{n: np.tile(x, many) for n, x in places.cell.items()}},
        {TIME: np.repeat(times.share[TIME], count), **{n: np.tile(x, many) for n, x in places.share.items()}},
    ), np.outer(of_times, shares).ravel()  # fmt: skip
