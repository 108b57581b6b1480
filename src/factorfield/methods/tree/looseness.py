"""How well equations, and walls of a region, hold on cells that are too wide for what data tell.

An equation without a sigma of its own holds as well as it can, and so does a wall. On cells that cannot follow a field
both can hold for a flat field only, and labels of a wave, or heads beside a corner, would be missed. What cells leave
out is an error of them, whose size the evidence of the labels tells: the sigmas at which they are most probable, in
steps of ten. Walls of a box, which cells end at, are met all the same. Wider cells, which the numerical error is
compared with, have their own.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.methods.tree.errors import followed
from factorfield.methods.tree.resolution import coarser
from factorfield.methods.tree.search import given, log_evidence, search
from factorfield.model.tree import TreeModel, with_looseness

MOST = 9  # powers of ten: looser is no equation


def loosened(model: TreeModel, iterations: int, numbers: Mapping[str, float]) -> TreeModel:
    """As loose as makes the measurements most probable (unknown numbers held): at about what wider cells need, which
    are tried first. What has a sigma of its own keeps it."""
    if with_looseness(model, 10.0).looseness == 1.0:
        return model
    wide = coarser(model)
    if wide is None:
        every = [_tried(model, power, iterations, numbers) for power in range(MOST + 1)]
        return max(every, key=lambda pair: pair[1])[0]
    first = round(np.log10(loosened(wide, iterations, numbers).looseness))
    best, highest = _tried(model, first, iterations, numbers)
    for towards in (-1, 1):
        power = first + towards
        while 0 <= power <= MOST:
            other, level = _tried(model, power, iterations, numbers)
            if not level > highest:
                break
            best, highest, power = other, level, power + towards
    return best


def _tried(model: TreeModel, power: int, iterations: int, numbers: Mapping[str, float]) -> tuple[TreeModel, float]:
    """The model with equations and walls 10^power times as loose, and the log evidence of its measurements."""
    loose = with_looseness(model, 10.0**power)
    found = given(loose, numbers, keep=True) if numbers else search(loose, iterations, None, keep=True)
    return loose, log_evidence(loose, followed(loose, found))
