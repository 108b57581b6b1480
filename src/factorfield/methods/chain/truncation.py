"""Is a window short enough? What its polynomials cannot follow.

An equation of first order in time is asked as often as it has polynomials to settle (chain_rows.instants_of), so it is
met in any window, and says nothing about the state at its start: what is left to judge is whether the polynomials have
come to an end. One of second order is asked more often, and in too long a window bends the start instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factorfield.messages.links import Belief, Message, Segment
from factorfield.methods.chain.rows import whitened
from factorfield.model.factors import FactorGroup

if TYPE_CHECKING:
    from factorfield.methods.chain.walk import Walk

Array = NDArray[np.float64]
MOVED = 0.1  # standard deviations by which an equation alone may move the state where it starts
CLAIMED = 0.3  # of a standard deviation: what it may claim to know about it
SHARE = 1e-3  # of the uncertainty that the last polynomials may carry
NOMINAL = 1.0  # the same where it comes from the sigmas of formulas, which need not fit together
ROUGH = 0.3  # of it, what the mean may leave to them where walls are noisy: anew at every instant is not smooth


def unfollowed(walk: Walk, weights: Array, start: Belief, link: Segment) -> float:
    """What the last two polynomials carry: of the mean in tolerances, and of the uncertainty as a share of it."""
    allowed = walk.tolerance * walk.setup.scale
    spread = np.sqrt(np.sum((link.slope @ start.root) ** 2, axis=1))
    known = np.sqrt(np.sum(start.root[: walk.setup.field_states] ** 2, axis=1))  # coefficients have other units
    largest = max(spread.max(initial=0.0), known.max(initial=0.0))
    setup = walk.setup
    nominal = (setup.started and not setup.speaks_later) or setup.noisy_walls
    share = NOMINAL if nominal else SHARE
    of_spread = float(spread[walk.last].max(initial=0.0)) / max(share * largest, allowed)
    smooth = max(allowed, ROUGH * largest) if setup.noisy_walls else allowed
    of_mean = float(np.abs(weights[walk.rest[walk.last]]).max(initial=0.0)) / smooth
    worst = max(of_mean, of_spread)
    return worst if np.isfinite(worst) else np.inf


def bent(walk: Walk, arrival: Belief, start: Belief, groups: list[FactorGroup]) -> float:
    """What equation and walls, asked more often than they can be met, do to the state at the start."""
    own = [group for group in groups if group.name not in walk.setup.standing]
    rows, target = whitened(own, np.zeros(len(walk.order)))
    before = arrival * Message(rows[:, walk.state], target)
    known = np.sqrt(np.sum(before.root**2, axis=1)) + walk.tolerance * walk.setup.scale
    moved = float(np.max(np.abs(start.mean - before.mean) / known))
    claimed = float(np.max(1.0 - np.sqrt(np.sum(start.root**2, axis=1)) / known))
    measured = not walk.setup.started  # the sigma of a formula is nominal: fast waves of it need no following
    return max(moved / MOVED, measured * claimed / CLAIMED)
