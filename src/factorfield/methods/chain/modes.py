"""Are there enough modes in space? What the last ones carry tells, window by window."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from factorfield.model.basis import Departure
from factorfield.model.windowed import DEGREE_LEAST, MOST_WEIGHTS, Setup
from factorfield.problem.domain import TIME, Interval

Array = NDArray[np.float64]
RESOLVED = 3e-5  # the last modes may carry this share of the field's scale
LOST = 10.0 * RESOLVED  # and from this the user is told that details are lost
GROWTH, LEAST_GROWTH = 1.5, 1.2  # fewer more are not worth another beginning
MOST_POLYNOMIALS = 30  # along an interval: rates of the fastest grow with the fourth power, and windows shrink


class Unresolved(Exception):
    """The last modes along an axis carry too much; at this time."""

    def __init__(self, axis: str, time: float) -> None:
        super().__init__(f"{axis} at t = {time:g}")
        self.axis, self.time = axis, time


def last_modes(setup: Setup, weights: Array) -> dict[str, float]:
    """Per space axis, the largest coefficient of its last modes, in units of the field's scale."""
    carried = dict.fromkeys(setup.problem.domain.space, 0.0)
    for latent in setup.representation.latents.values():
        basis = latent.basis
        if not isinstance(basis.families.get(TIME), Departure):
            continue
        table = np.abs(weights[latent.block]).reshape(basis.shape)[0]  # the state at the window's start
        for position, axis in enumerate(name for name in basis.axes if name != TIME):
            size = table.shape[position]
            last = np.moveaxis(table, position, 0)[size - max(2, size // 10) :]
            carried[axis] = max(carried[axis], float(last.max()) / setup.scale)
    return carried


def check(setup: Setup, weights: Array, time: float, at_start: dict[str, float]) -> None:
    """Labels are given the modes they show, so only what the equation has added since counts against those."""
    for axis, share in last_modes(setup, weights).items():
        more = grown(setup, axis) if axis in setup.growing else None
        if more is None:
            continue
        dear = more[axis] < GROWTH * setup.settings["modes"][axis]  # as many as a window can hold
        allowed = LOST if dear else RESOLVED
        if share > (allowed if setup.started else allowed + 2.0 * at_start.setdefault(axis, share)):
            raise Unresolved(axis, time)


def grown(setup: Setup, axis: str) -> dict[str, int] | None:
    """More modes along an axis, at most as many as a window can afford, or None where that is no gain."""
    basis = next(iter(setup.representation.latents.values())).basis
    across = basis.size // basis.families[TIME].size * len(setup.problem.fields)
    counts = {name: setup.settings["modes"][name] for name in setup.growing}
    features = MOST_WEIGHTS // (DEGREE_LEAST + 1) // (across // basis.families[axis].size)
    interval = isinstance(setup.problem.domain[axis], Interval)
    most = min(features - 1, MOST_POLYNOMIALS) if interval else (features - 1) // 2
    more = min(math.ceil(GROWTH * counts[axis]), most)
    return {**counts, axis: more} if more > LEAST_GROWTH * counts[axis] else None
