"""A second way to unknown coefficients, where the first one got lost: step by step, along solutions of the equation.

Filtering meets the data window by window, and a few windows of an epidemic that has hardly begun can send the rates
anywhere. Here the coefficients are held while the rest is solved (their profile); the smoothed chain then tells where
they want to go, and a step is taken only if what it leads to is more probable.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import ProblemError
from factorfield.messages.links import Belief, inner
from factorfield.methods.chain.walk import Walk
from factorfield.model.windowed import Setup
from factorfield.progress import Progress
from factorfield.solution import Status

Array = NDArray[np.float64]
HELD = 1e-4  # share of the prior's sd within which a coefficient counts as held
STEPS, HALVINGS = 25, 8
ARRIVED = 0.02  # standard deviations
LOST = 3.0  # root mean square misfit of a condition, in its sigmas, from which the way is tried again


def may_climb(setup: Setup) -> bool:
    return not setup.is_linear and bool(setup.problem.unknowns or setup.problem.functions)


def is_lost(walk: Walk, status: Status) -> bool:
    """Did the search for unknown coefficients end nowhere, or far from the data?"""
    squares: dict[str, tuple[float, int]] = {}
    for index, groups in enumerate(walk.groups):
        for group in (group for group in groups or [] if group.name in walk.setup.given):
            misfit = walk.misfit(group, _weights(walk, index))
            total, count = squares.get(group.name, (0.0, 0))
            squares[group.name] = total + float(misfit @ misfit), count + group.count
    return status != "converged" or not all(total < LOST**2 * count for total, count in squares.values())


def climb(setup: Setup, tolerance: float, iterations: int, progress: Progress | None) -> tuple[Walk, Status] | None:
    """The walk at the most probable coefficients reached from the prior mean; None if there is no way."""
    place = setup.start_belief().mean[setup.field_states :]
    here = _profile(setup, place, tolerance, iterations)
    for step in range(STEPS):
        if here is None:
            return None
        walk, level = here
        walk.setup = setup  # the coefficients are free again
        walk.relinearise()
        walk.backward()
        belief = inner(walk.starts[-1], walk.links[-1], walk.futures[-1])
        own = slice(setup.field_states, len(walk.state))
        spread = np.sqrt(np.sum(belief.root[own] ** 2, axis=1))
        wanted = belief.mean[own]
        if progress is not None:
            progress(f"coefficients, step {step + 1}", 0.5)
        if np.all(np.abs(wanted - place) < ARRIVED * spread):
            return walk, walk.smooth()
        for halving in range(HALVINGS):
            there = place + 0.5**halving * (wanted - place)
            found = _profile(setup, there, tolerance, iterations)
            if found is not None and found[1] < level:
                place, here = there, found
                break
        else:
            return walk, walk.smooth()
    return None


def _profile(setup: Setup, place: Array, tolerance: float, iterations: int) -> tuple[Walk, float] | None:
    """The walk with coefficients held at a place, and its negative log density; None where the path runs away."""
    scale = np.ones(len(setup.prior.mean))
    scale[setup.field_states :] = HELD
    mean = np.concatenate([setup.prior.mean[: setup.field_states], place])
    held = replace(setup, prior=Belief(mean, scale[:, None] * setup.prior.root), start={})
    walk = Walk(held, tolerance, iterations, None, None)
    try:
        walk.forward(None, held.prior)
        walk.smooth()
    except ProblemError:
        return None
    own = (place - setup.prior.mean[setup.field_states :]) / np.diagonal(setup.prior.root)[setup.field_states :]
    level = walk.level(lambda index: _weights(walk, index)) + 0.5 * float(own @ own)
    return (walk, level) if np.isfinite(level) else None


def _weights(walk: Walk, index: int) -> Array:
    """The smoothed mean of a window's weights."""
    weights = np.empty(len(walk.order))
    weights[walk.order] = inner(walk.starts[index], walk.links[index], walk.futures[index]).mean
    return weights
