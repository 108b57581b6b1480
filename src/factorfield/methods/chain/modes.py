"""Are there enough modes in space? What the last ones carry tells, window by window."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from factorfield.messages.gaussian import Belief
from factorfield.methods.resolution import beyond
from factorfield.model.basis import Departure
from factorfield.model.choices import GROWTH, LEAST_GROWTH, LOST, RESOLVED
from factorfield.model.model import WindowModel
from factorfield.model.windowed import DEGREE_LEAST, MOST_WEIGHTS, window_model
from factorfield.problem.domain import TIME, Interval

Array = NDArray[np.float64]
MOST_POLYNOMIALS = 30  # along an interval: rates of the fastest grow with the fourth power, and windows shrink
MOST_OF_LINEAR = 90  # the same of linear equations, whose windows do not have to be searched


def last_modes(model: WindowModel, weights: Array, start: Belief | None = None) -> dict[str, float]:
    """Per space axis, the largest coefficient of its last modes, in units of the field's scale; beyond its own std if
    the belief at the window's start is given."""
    found = dict.fromkeys(model.problem.domain.space, 0.0)
    if start is not None:
        spread = np.zeros(len(weights))
        spread[model.layout[0]] = start.std
        weights = beyond(weights, spread)
    for latent in model.representation.latents.values():
        basis = latent.basis
        if not isinstance(basis.families.get(TIME), Departure):
            continue
        table = np.abs(weights[latent.block]).reshape(basis.shape)[0]  # the state at the window's start
        for position, axis in enumerate(name for name in basis.axes if name != TIME):
            size = table.shape[position]
            last = np.moveaxis(table, position, 0)[size - max(2, size // 10) :]
            found[axis] = max(found[axis], float(last.max()) / model.scale)
    return found


def unresolved_axis(
    model: WindowModel, weights: Array, start: Belief, at_start: dict[str, float]
) -> str | None:
    """An axis that needs more modes, and may have them. What modes carry within the belief about the window's start is
    no sign of that: nobody knows it.

    Labels are given the modes they show, so only what the equation has added since the start counts against those.
    """
    for axis in model.growing:
        more = grown_modes(model, axis)
        if more is None:
            continue
        share = last_modes(model, weights, start)[axis]
        dear = more[axis] < GROWTH * model.modes[axis]  # as many as a window can hold
        allowed = LOST if dear else RESOLVED
        if not model.traits.starts_by_formula:
            allowed += 2.0 * at_start.setdefault(axis, share)
        if share > allowed:
            return axis
    return None


def grown_modes(model: WindowModel, axis: str) -> dict[str, int] | None:
    """More modes along an axis, at most as many as a window can afford, or None where that is no gain."""
    basis = next(iter(model.representation.latents.values())).basis
    across = basis.size // basis.families[TIME].size * len(model.problem.fields)
    features = MOST_WEIGHTS // (DEGREE_LEAST + 1) // (across // basis.families[axis].size)
    interval = isinstance(model.problem.domain[axis], Interval)
    bounded = MOST_OF_LINEAR if model.traits.linear else MOST_POLYNOMIALS
    most = min(features - 1, bounded) if interval else (features - 1) // 2
    more = min(math.ceil(GROWTH * model.modes[axis]), most)
    return {**model.modes, axis: more} if more > LEAST_GROWTH * model.modes[axis] else None


def grown(model: WindowModel, axis: str, near: Mapping[str, float]) -> WindowModel:
    """The model with more modes along an axis; what the user did not ask for is chosen anew. What was found on the
    marginal likelihood is near what will be."""
    more = window_model(
        model.problem, modes=grown_modes(model, axis), degree=model.asked.degree, windows=model.asked.edges,
        activation=next(iter(model.representation.forms.values())).activation,
    )  # fmt: skip
    return replace(more, growing=model.growing, start={**model.start, **near})
