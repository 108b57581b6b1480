"""Unknown numbers of a model of boxes on the marginal likelihood, where all else is linear given them.

With the numbers held, boxes are eliminated twice, with the measurements and without them: that is the evidence. The
belief about all other weights is the tree given the numbers at their mean, and what follows when these move.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from factorfield.messages.boxes import BoxTree
from factorfield.methods.marginal import (
    Density,
    Marginal,
    axis_points,
    integrated,
    moved,
    of_numbers,
    slopes_by_numbers,
)
from factorfield.methods.tree.errors import followed
from factorfield.methods.tree.search import Found, given, log_evidence
from factorfield.model.block import is_linear_given_numbers
from factorfield.model.searched import latents, number_coordinates, position
from factorfield.model.tree import TreeModel
from factorfield.progress import Progress

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class FoundNumbers:
    """The marginal of the numbers, and the belief given their mean, beside which stands what their spread adds."""

    marginal: Marginal
    found: Found


def is_searched(model: TreeModel) -> bool:
    """Has it unknown numbers, and are its factors linear in all other weights?"""
    return bool(model.problem.unknowns) and is_linear_given_numbers(model)


def evidence_of(model: TreeModel, progress: Progress | None = None) -> Density:
    """log p(measurements | numbers), at positions of the numbers."""
    coordinates = number_coordinates(model.problem)

    def evidence(place: Array) -> float:
        if progress is not None:
            progress("unknown coefficients from the marginal likelihood", 0.5)
        return log_evidence(model, followed(model, given(model, latents(coordinates, place))))

    return evidence


def search_numbers(model: TreeModel, progress: Progress | None) -> FoundNumbers:
    coordinates = number_coordinates(model.problem)
    begin = position(coordinates, model.start)
    candidates = () if model.start else axis_points(len(begin), len(begin))
    marginal = integrated(evidence_of(model, progress), begin, len(begin), candidates)
    slopes = slopes_by_numbers(lambda place: mean_given(model, place), coordinates, marginal)
    mean, root = of_numbers(coordinates, marginal)
    found = followed(model, given(model, latents(coordinates, marginal.mean)))
    slopes[found.held] = np.eye(len(mean))
    beside = slopes @ root if found.beside is None else np.hstack([slopes @ root, found.beside])
    return FoundNumbers(marginal, replace(found, tree=_without_spread(found), beside=beside))


def mean_given(model: TreeModel, place: Array) -> Array:
    """The mean of all weights with the numbers at a position."""
    return followed(model, given(model, latents(number_coordinates(model.problem), place))).weights


def mean_near(model: TreeModel, fine: TreeModel, found: Marginal) -> Array:
    """The mean of all weights of a model, given the marginal of the numbers on finer cells."""
    return mean_given(model, moved(found, evidence_of(fine), evidence_of(model)))


def _without_spread(found: Found) -> BoxTree:
    """The tree with the numbers, which nothing follows in it and which the root eliminates, held."""
    root, last = found.tree.conditionals[-1], found.tree.boxes[-1]
    assert root is not None
    spread = root.root.copy()
    spread[np.isin(last.eliminated, found.held)] = 0.0
    return replace(found.tree, conditionals=(*found.tree.conditionals[:-1], replace(root, root=spread)), keys=())
