"""Nested boxes of cells: the whole grid, halved along its longest side again and again, down to small tiles.

A tile is as many cells as make a dense block of rows; a leaf, of several tiles, is the smallest box that is worth
eliminating in: below it most weights are read by neighbours too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]
Ranges = tuple[slice, ...]  # of cells, one per axis
TILE = {1: 16, 2: 36, 3: 64, 4: 81}  # cells, by the number of axes
LEAF = {1: 16, 2: 256, 3: 512, 4: 625}


@dataclass(frozen=True, eq=False)
class NestedCells:
    """Boxes in an order in which children come before their parents; the last one is the whole grid."""

    ranges: tuple[Ranges, ...]
    children: tuple[tuple[int, ...], ...]
    in_leaf: tuple[bool, ...]  # is it part of a leaf, too small to eliminate in?
    tile_of: Indices  # the tile of every cell, in the grid's shape
    leaf_of: Indices

    @property
    def tiles(self) -> list[int]:
        return [index for index, below in enumerate(self.children) if not below]

    @property
    def leaves(self) -> list[int]:
        return [int(index) for index in np.unique(self.leaf_of)]


def nested_cells(shape: tuple[int, ...]) -> NestedCells:
    axes = min(len(shape), max(TILE))
    ranges: list[Ranges] = []
    children: list[tuple[int, ...]] = []
    in_leaf: list[bool] = []
    tile_of, leaf_of = np.zeros(shape, np.int64), np.zeros(shape, np.int64)

    def visit(box: Ranges, inside: bool) -> int:
        sides = [part.stop - part.start for part in box]
        is_leaf = not inside and math.prod(sides) <= LEAF[axes]
        below = () if math.prod(sides) <= TILE[axes] else tuple(visit(h, inside or is_leaf) for h in _halves(box))
        index = len(ranges)
        ranges.append(box)
        children.append(below)
        in_leaf.append(inside)
        if not below:
            tile_of[box] = index
        if is_leaf:
            leaf_of[box] = index
        return index

    visit(tuple(slice(0, side) for side in shape), False)
    return NestedCells(tuple(ranges), tuple(children), tuple(in_leaf), tile_of, leaf_of)


def _halves(box: Ranges) -> tuple[Ranges, Ranges]:
    sides = [part.stop - part.start for part in box]
    axis = int(np.argmax(sides))
    middle = box[axis].start + (sides[axis] + 1) // 2
    first, second = slice(box[axis].start, middle), slice(middle, box[axis].stop)
    return (*box[:axis], first, *box[axis + 1 :]), (*box[:axis], second, *box[axis + 1 :])


@dataclass(frozen=True)
class Cost:
    """What an elimination takes, before anything is allocated: numbers held at once, and operations."""

    numbers: float
    operations: float


def cost_of(shape: tuple[int, ...], periodic: tuple[bool, ...], degree: int, fields: int) -> Cost:
    """By the sizes of the fronts of a box in the middle of every level; all marginals included."""
    sides, boxes = list(shape), 1
    numbers, operations, largest = 0.0, 0.0, 0.0
    while math.prod(sides) > LEAF[min(len(shape), max(LEAF))]:
        axis = int(np.argmax(sides))
        across = math.prod(side + degree for i, side in enumerate(sides) if i != axis)
        separator = fields * degree * across * (2 if boxes == 1 and periodic[axis] else 1)
        shell = fields * (math.prod(side + degree for side in sides) - math.prod(max(s - degree, 0) for s in sides))
        interface = 0.0 if boxes == 1 else min(float(shell), _open_faces(shape, sides) * shell)
        front = separator + interface
        numbers += boxes * separator * front
        operations += boxes * (separator**3 + 5.0 * separator * interface * front)
        largest = max(largest, front)
        sides[axis] = (sides[axis] + 1) // 2
        boxes *= 2
    leaf = fields * math.prod(side + degree for side in sides)
    per_cell = 2 ** len(shape) * fields * (degree + 1) ** len(shape)
    numbers += boxes * 0.5 * leaf**2 + 4.0 * largest**2 + 4.0 * fields * math.prod(shape) * per_cell
    return Cost(numbers, operations + boxes * 2.0 * leaf**3)


def _open_faces(shape: tuple[int, ...], sides: list[int]) -> float:
    """The share of a box's faces that other boxes lie behind, on average."""
    area = [math.prod(s for j, s in enumerate(sides) if j != i) for i in range(len(sides))]
    inner = [(1.0 - side / whole) * a for side, whole, a in zip(sides, shape, area, strict=True)]
    return sum(inner) / sum(area)
