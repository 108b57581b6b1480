"""A tree of boxes as the arrays of a file, and back: what a file says is checked before it is built.

A stranger's file may name weights that do not exist, fronts that do not fit together, or roots that are not there.
Every box's interface must lie in its parent's front, so that no front is larger than what the file holds about it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import ProblemError, expected
from factorfield.messages.boxes import Box, BoxTree, Conditional
from factorfield.model.cells import TILE, NestedCells, nested_cells
from factorfield.model.representation import Representation
from factorfield.model.splines import Spline
from factorfield.posterior.base import shaped

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
LARGEST = 1e150  # squares must be numbers too


def arrays_of(tree: BoxTree) -> dict[str, Array]:
    """The boxes by their weights, and every distinct conditional once."""
    distinct: dict[int, int] = {}
    kept: list[Conditional] = []
    kinds = []
    for conditional in tree.conditionals:
        if conditional is not None and id(conditional) not in distinct:
            distinct[id(conditional)] = len(kept)
            kept.append(conditional)
        kinds.append(-1 if conditional is None else distinct[id(conditional)])
    return {
        "box_kind": np.array(kinds),
        "box_sizes": np.array([(len(box.eliminated), len(box.interface)) for box in tree.boxes]),
        "box_weights": np.concatenate([box.front for box in tree.boxes]),
        "box_roots": np.concatenate([c.root[np.triu_indices(len(c.root))] for c in kept]),
        "box_slopes": np.concatenate([c.slope.ravel() for c in kept]),
    }


def tree_of(arrays: Mapping[str, Array], representation: Representation, splines: Mapping[str, Spline]) -> BoxTree:
    """The tree whose arrays these are."""
    size, shape = representation.size, tuple(spline.cells for spline in splines.values())
    kinds = _whole(arrays, "box_kind", None)
    sizes = _whole(arrays, "box_sizes", len(kinds), 2)
    _check(np.all(sizes >= 0) and np.all(sizes <= size) and not sizes[-1, 1], "box_sizes")
    weights = _whole(arrays, "box_weights", int(sizes.sum()))
    _check_weights(weights, sizes, size)
    _check(len(kinds) * TILE[min(len(shape), max(TILE))] >= math.prod(shape), "box_kind")
    cells = nested_cells(shape)
    _check(len(cells.children) == len(kinds), "box_kind")
    kept = _conditionals(arrays, kinds, sizes)
    boxes = _boxes(weights, sizes, cells.children)
    _check_leaves(boxes, cells, representation, list(splines))
    return BoxTree(boxes, tuple(None if kind < 0 else kept[kind] for kind in kinds))


def _misfit(name: str) -> ProblemError:
    return expected("boxes that fit together and settle every weight once", f"others in {name}", "saving it again")


def _check(fits: bool | np.bool_, name: str) -> None:
    if not fits:
        raise _misfit(name)


def _whole(arrays: Mapping[str, Array], name: str, *shape: int | None) -> Indices:
    found = shaped(arrays, name, *shape)
    _check(np.all(np.abs(found) < 2.0**31) and np.all(found == np.floor(found)), name)  # also not of NaN
    return found.astype(np.int64)


def _check_weights(weights: Indices, sizes: Indices, size: int) -> None:
    """Weights that exist, each once in a front and eliminated once in all."""
    _check(np.all((weights >= 0) & (weights < size)), "box_weights")
    totals = sizes.sum(axis=1)
    box = np.repeat(np.arange(len(sizes)), totals)
    within = np.arange(len(weights)) - np.repeat(np.cumsum(totals) - totals, totals)
    eliminated = weights[within < sizes[box, 0]]
    once = np.all(np.bincount(eliminated, minlength=size) == 1)
    _check(once and len(np.unique(box * size + weights)) == len(weights), "box_weights")


def _conditionals(arrays: Mapping[str, Array], kinds: Indices, sizes: Indices) -> list[Conditional]:
    """One for every kind; boxes of one kind are of one size."""
    present, first = np.unique(kinds[kinds >= 0], return_index=True)
    own = sizes[kinds >= 0]
    known = np.array_equal(present, np.arange(len(present))) and np.all((kinds < 0) == (sizes[:, 0] == 0))
    _check(len(present) > 0 and known and np.array_equal(own, own[first][kinds[kinds >= 0]]), "box_kind")
    counts, rests = own[first].T
    roots = shaped(arrays, "box_roots", int(np.sum(counts * (counts + 1) // 2)))
    slopes = shaped(arrays, "box_slopes", int(counts @ rests)) if counts @ rests else np.zeros(0)
    _check(np.all(np.abs(roots) < LARGEST) and np.all(np.abs(slopes) < LARGEST), "box_roots")  # also not of NaN
    kept: list[Conditional] = []
    at_root = at_slope = 0
    for count, rest in own[first].tolist():
        root, half = np.zeros((count, count)), count * (count + 1) // 2
        root[np.triu_indices(count)] = roots[at_root : at_root + half]
        slope = slopes[at_slope : at_slope + count * rest].reshape(count, rest)
        kept.append(Conditional(root, np.ascontiguousarray(slope)))
        at_root, at_slope = at_root + half, at_slope + count * rest
    return kept


def _boxes(weights: Indices, sizes: Indices, children: Sequence[tuple[int, ...]]) -> tuple[Box, ...]:
    position, owner = np.zeros(weights.max() + 1, np.int64), np.full(weights.max() + 1, -1)
    boxes: list[Box] = []
    ends = np.cumsum(sizes.sum(axis=1))
    for index, ((count, rest), end, below) in enumerate(zip(sizes, ends, children, strict=True)):
        front = weights[end - count - rest : end]
        position[front], owner[front] = np.arange(len(front)), index
        parts = [boxes[child].interface for child in below] if below else [np.sort(front)]
        _check(all(np.all(owner[part] == index) for part in parts), "box_weights")
        boxes.append(Box(front[:count], front[count:], tuple(below), tuple(position[part] for part in parts)))
    return tuple(boxes)


def _check_leaves(boxes: Sequence[Box], cells: NestedCells, representation: Representation, axes: list[str]) -> None:
    """The weights that are read inside a leaf are in its front."""
    for index in cells.leaves:
        ranges, front = dict(zip(axes, cells.ranges[index], strict=True)), np.sort(boxes[index].front)
        for latent in representation.latents.values():
            numbers = np.zeros(1, np.int64)
            for axis, spline in latent.basis.families.items():
                assert isinstance(spline, Spline)
                read = np.unique(spline.weights_of(np.arange(ranges[axis].start, ranges[axis].stop)))
                numbers = (numbers[:, None] * spline.size + read).ravel()
            numbers = numbers + latent.block.start
            at = np.minimum(np.searchsorted(front, numbers), len(front) - 1)
            _check(len(front) > 0 and np.array_equal(front[at], numbers), "box_weights")
