"""Unknown numbers of a model of one block on the marginal likelihood, where all else is linear given them.

With the numbers at values, the tangents of all factors are the factors themselves, and the other weights a Gaussian.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from factorfield.messages.gaussian import LOG_TWO_PI, Message
from factorfield.methods.joint.belief import CACHED_ROWS, FOLDED, tangents, unwhitened, whitened_blocks
from factorfield.methods.marginal import (
    Density,
    Marginal,
    axis_points,
    integrated,
    moved,
    of_numbers,
    slopes_by_numbers,
)
from factorfield.model.block import is_linear_given_numbers
from factorfield.model.model import BlockModel
from factorfield.model.searched import latents, number_coordinates, position
from factorfield.posterior.gaussian import GaussianPosterior
from factorfield.progress import Progress

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def is_searched(model: BlockModel) -> bool:
    """Has it unknown numbers, and are its factors linear in all other weights?"""
    return bool(model.problem.unknowns) and not model.follows_protocol and is_linear_given_numbers(model)


def search_numbers(model: BlockModel, progress: Progress | None) -> tuple[Marginal, GaussianPosterior]:
    """The marginal of the numbers, and the belief about all weights: given the numbers at their mean, and moved by
    them."""
    coordinates = number_coordinates(model.problem)
    begin = position(coordinates, model.start)
    candidates = () if model.start else axis_points(len(begin), len(begin))
    found = integrated(evidence_of(model, progress), begin, len(begin), candidates)
    slopes = slopes_by_numbers(lambda place: _given(model, latents(coordinates, place)).mean, coordinates, found)
    given = _given(model, latents(coordinates, found.mean))
    return found, _assembled(model, given, slopes, *of_numbers(coordinates, found))


def evidence_of(model: BlockModel, progress: Progress | None = None) -> Density:
    """log p(measurements | numbers), at positions of the numbers."""
    coordinates = number_coordinates(model.problem)

    def evidence(place: Array) -> float:
        if progress is not None:
            progress("unknown coefficients from the marginal likelihood", 0.5)
        return conditional_evidence(model, latents(coordinates, place))

    return evidence


def near_numbers(model: BlockModel, fine: BlockModel, found: Marginal) -> Array:
    """The mean of all weights of a model, given the marginal of a finer one: the numbers move by one Newton step of the
    difference of their log evidences."""
    coordinates = number_coordinates(model.problem)
    place = moved(found, evidence_of(fine), evidence_of(model))
    numbers, whole = latents(coordinates, place), np.empty(model.size)
    own = _others(model)
    whole[own] = model.prior.mean[own] + model.prior.std[own] * _given(model, numbers).mean
    for name, value in numbers.items():
        whole[model.representation.latents[name].block.start] = value
    return whole


def conditional_evidence(model: BlockModel, numbers: dict[str, float]) -> float:
    """log p(measurements | equation, conditions, prior of all other weights, numbers)."""
    measured = [group for group in model.groups if group.statement.kind == "observation"]
    others = tuple(group for group in model.groups if group.statement.kind != "observation")
    noise = sum(float(np.sum(np.log(group.sigma))) + 0.5 * group.count * LOG_TWO_PI for group in measured)
    without = _given(replace(model, groups=others), numbers)
    informed = without
    for rows, target in _rows(replace(model, groups=tuple(measured)), numbers):
        informed = informed * Message(rows, target)
    return _integral(informed) - _integral(without) - noise


def _given(model: BlockModel, numbers: dict[str, float]) -> Message:
    """The belief about whitened weights other than the numbers, given these."""
    size = model.size - len(numbers)
    belief = Message(np.eye(size), np.zeros(size))
    for rows, target in _rows(model, numbers):
        belief = belief * Message(rows, target)
    return belief


def _integral(belief: Message) -> float:
    """The log of the integral of what was multiplied."""
    return belief.level - float(np.sum(np.log(np.abs(np.diag(belief.rows)))))


def _rows(model: BlockModel, numbers: dict[str, float]) -> Sequence[tuple[Array, Array]]:
    """Factors as rows of the whitened weights other than the numbers."""
    own = _others(model)
    place = np.zeros(model.size)
    for name, value in numbers.items():
        at = model.representation.latents[name].block.start
        place[at] = (value - model.prior.mean[at]) / model.prior.std[at]
    held = np.setdiff1d(np.arange(model.size), own)
    lines = tangents(model, unwhitened(model, place))
    blocks = whitened_blocks(model, lines, place, max(CACHED_ROWS, FOLDED * model.size))
    return [(rows[:, own], target - rows[:, held] @ place[held]) for rows, target in blocks]


def _others(model: BlockModel) -> Indices:
    held = [model.representation.latents[name].block.start for name in model.problem.unknowns]
    return np.setdiff1d(np.arange(model.size), held)


def _assembled(model: BlockModel, given: Message, slopes: Array, mean: Array, root: Array) -> GaussianPosterior:
    """All weights: those other than the numbers given these at their mean, and what the numbers make uncertain."""
    own = _others(model)
    held = [model.representation.latents[name].block.start for name in model.problem.unknowns]
    sd = model.prior.std[own]
    whole, spread = np.empty(model.size), np.zeros((model.size, model.size))
    whole[own], whole[held] = model.prior.mean[own] + sd * given.mean, mean
    spread[np.ix_(own, np.arange(len(own)))] = sd[:, None] * given.root
    spread[np.ix_(own, np.arange(len(own), model.size))] = sd[:, None] * (slopes @ root)
    spread[np.ix_(held, np.arange(len(own), model.size))] = root
    return GaussianPosterior(model.problem, model.representation, model.noise, whole, spread)


