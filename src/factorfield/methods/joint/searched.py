"""Unknown numbers of a model of one block on the marginal likelihood, where all else is linear given them.

With the numbers at values, the tangents of all factors are the factors themselves, and the other weights a Gaussian.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.messages.gaussian import LOG_TWO_PI, Message, triangle
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
    coordinates, known = number_coordinates(model.problem), GivenNumbers(model)
    begin = position(coordinates, model.start)
    candidates = () if model.start else axis_points(len(begin), len(begin))
    found = integrated(_evidence_of(known, progress), begin, len(begin), candidates)
    slopes = slopes_by_numbers(lambda place: known.belief(latents(coordinates, place)).mean, coordinates, found)
    given = known.belief(latents(coordinates, found.mean))
    return found, _assembled(model, given, slopes, *of_numbers(coordinates, found))


def evidence_of(model: BlockModel, progress: Progress | None = None) -> Density:
    """log p(measurements | numbers), at positions of the numbers."""
    return _evidence_of(GivenNumbers(model), progress)


def _evidence_of(known: GivenNumbers, progress: Progress | None = None) -> Density:
    coordinates = number_coordinates(known.model.problem)

    def evidence(place: Array) -> float:
        if progress is not None:
            progress("unknown coefficients from the marginal likelihood", 0.5)
        return known.evidence(latents(coordinates, place))

    return evidence


def near_numbers(model: BlockModel, fine: BlockModel, found: Marginal) -> Array:
    """The mean of all weights of a model, given the marginal of a finer one: the numbers move by one Newton step of the
    difference of their log evidences."""
    coordinates, known = number_coordinates(model.problem), GivenNumbers(model)
    place = moved(found, evidence_of(fine), _evidence_of(known))
    numbers, whole = latents(coordinates, place), np.empty(model.size)
    own = _others(model)
    whole[own] = model.prior.mean[own] + model.prior.std[own] * known.belief(numbers).mean
    for name, value in numbers.items():
        whole[model.representation.latents[name].block.start] = value
    return whole


@dataclass(frozen=True, eq=False)
class GivenNumbers:
    """Evidence of the measurements, and the belief about whitened weights other than the numbers, given these.

    Where factors are linear in the numbers too, such as in the strength of a source, their values move nothing but
    targets: rows are eliminated once."""

    model: BlockModel

    def evidence(self, numbers: Mapping[str, float]) -> float:
        """log p(measurements | equation, conditions, prior of all other weights, numbers)."""
        measured = tuple(group for group in self.model.groups if group.statement.kind == "observation")
        noise = sum(float(np.sum(np.log(group.sigma))) + 0.5 * group.count * LOG_TWO_PI for group in measured)
        place, without = self._place(numbers), self._given(numbers, False)
        seen = [(rows[:, : without.size], target - rows[:, without.size :] @ place[_held(self.model)])
                for rows, target in _blocks(replace(self.model, groups=measured), place)]  # fmt: skip
        return (_gain(without, _stacked(seen)) if seen else 0.0) - noise

    def belief(self, numbers: Mapping[str, float]) -> Message:
        return self._given(numbers, True)

    def _given(self, numbers: Mapping[str, float], with_measurements: bool) -> Message:
        """What all factors say about the weights other than the numbers."""
        place, count = self._place(numbers), len(_others(self.model))
        if not self.model.is_linear:
            whole = self._eliminated(place, with_measurements)
        else:
            if with_measurements not in self._known:
                self._known[with_measurements] = self._eliminated(np.zeros(self.model.size), with_measurements)
            whole = self._known[with_measurements]
        target = whole.target - whole.rows[:, count:] @ place[_held(self.model)]
        left = target[count:]  # rows about the numbers alone
        return Message(whole.rows[:count, :count], target[:count], whole.level - 0.5 * float(left @ left))

    @cached_property
    def _known(self) -> dict[bool, Message]:
        return {}

    def _eliminated(self, place: Array, with_measurements: bool) -> Message:
        """All factors at a place as one triangular message about the weights, the numbers last."""
        model, count = self.model, len(_others(self.model))
        kept = tuple(g for g in model.groups if with_measurements or g.statement.kind != "observation")
        belief, waiting = Message(np.eye(count, model.size), np.zeros(count)), []
        for block in _blocks(replace(model, groups=kept), place):
            waiting.append(block)
            if sum(len(rows) for rows, _ in waiting) > FOLDED * model.size:
                belief, waiting = belief * _stacked(waiting), []
        return belief * _stacked(waiting) if waiting else belief

    def _place(self, numbers: Mapping[str, float]) -> Array:
        """Whitened weights: the numbers, and nothing else."""
        place, prior = np.zeros(self.model.size), self.model.prior
        for name, value in numbers.items():
            at = self.model.representation.latents[name].block.start
            place[at] = (value - prior.mean[at]) / prior.std[at]
        return place


def _blocks(model: BlockModel, place: Array) -> Iterator[tuple[Array, Array]]:
    """Factors as rows of the whitened weights, the numbers last."""
    order = np.concatenate([_others(model), _held(model)])
    lines = tangents(model, unwhitened(model, place))
    for rows, target in whitened_blocks(model, lines, place, max(CACHED_ROWS, FOLDED * model.size)):
        yield rows[:, order], target


def _stacked(blocks: Sequence[tuple[Array, Array]]) -> Message:
    rows, target = zip(*blocks, strict=True)
    return Message(np.vstack(rows), np.concatenate(target))


def _gain(belief: Message, seen: Message) -> float:
    """The log of the integral of a belief, a density, times a message."""
    if len(seen.rows) > belief.size:
        informed = belief * seen
        levels = informed.level - belief.level
        return levels + 0.5 * (belief.log_determinant - informed.log_determinant)
    spread = belief.whiten(seen.rows.T)
    factor = triangle(np.vstack([spread, np.eye(len(seen.rows))]))
    gap = linalg.solve_triangular(factor, seen.target - seen.rows @ belief.mean, trans=1, check_finite=False)
    return -float(np.sum(np.log(np.abs(np.diag(factor))))) - 0.5 * float(gap @ gap)


def _others(model: BlockModel) -> Indices:
    return np.setdiff1d(np.arange(model.size), _held(model))


def _held(model: BlockModel) -> Indices:
    return np.array([model.representation.latents[name].block.start for name in model.problem.unknowns], np.int64)


def _assembled(model: BlockModel, given: Message, slopes: Array, mean: Array, root: Array) -> GaussianPosterior:
    """All weights: those other than the numbers given these at their mean, and what the numbers make uncertain."""
    own, held = _others(model), _held(model)
    sd = model.prior.std[own]
    whole, spread = np.empty(model.size), np.zeros((model.size, model.size))
    whole[own], whole[held] = model.prior.mean[own] + sd * given.mean, mean
    spread[np.ix_(own, np.arange(len(own)))] = sd[:, None] * given.root
    spread[np.ix_(own, np.arange(len(own), model.size))] = sd[:, None] * (slopes @ root)
    spread[np.ix_(held, np.arange(len(own), model.size))] = root
    return GaussianPosterior(model.problem, model.representation, model.noise, whole, spread)


