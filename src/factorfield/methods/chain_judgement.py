"""Is a window short enough? What its polynomials cannot follow, waves that were given up, knowledge out of nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factorfield.domain import TIME
from factorfield.factors import FactorGroup
from factorfield.links import Belief, Segment
from factorfield.methods.chain_rows import is_equation
from factorfield.methods.chain_setup import length_of

if TYPE_CHECKING:
    from factorfield.methods.chain_walk import Walk

Array = NDArray[np.float64]
MET = 0.1  # sigmas by which an equation may be missed in a window that is short enough
CLAIMED = 0.01  # of the largest standard deviation: what it may claim to know about the state there
CLAIMED_COUPLED = 0.3  # the same where every window costs a factorisation
PRETENCE = 0.05  # share of a coefficient's prior sd that may be lost before any data speak
SHARE = 1e-3  # of the uncertainty that the last polynomials may carry
NOMINAL = 0.1  # the same where it comes from the sigmas of formulas: the start's and the walls' need not fit together


def unfollowed(walk: Walk, weights: Array, start: Belief, link: Segment) -> float:
    """What the last two polynomials carry: of the mean in tolerances, and of the uncertainty as a share of it."""
    allowed = walk.tolerance * walk.setup.scale
    spread = np.sqrt(np.sum((link.slope @ start.root) ** 2, axis=1))
    known = np.sqrt(np.sum(start.root[: walk.setup.field_states] ** 2, axis=1))  # coefficients have other units
    largest = max(spread.max(initial=0.0), known.max(initial=0.0))
    share = NOMINAL if walk.setup.started and not walk.setup.speaks_later else SHARE
    of_spread = float(spread[walk.last].max(initial=0.0)) / max(share * largest, allowed)
    of_mean = float(np.abs(weights[walk.rest[walk.last]]).max(initial=0.0)) / allowed
    worst = max(of_mean, of_spread)
    return worst if np.isfinite(worst) else np.inf


def given_up(
    walk: Walk, groups: list[FactorGroup], weights: Array, start: Belief, link: Segment, upper: float
) -> float:
    """Does the equation alone miss its sigma, or claim to know the state? Then waves are too fast for it."""
    plain = walk.shared.get(length_of(walk.edges[-1], upper), link).message
    faces = any(group.name in walk.setup.standing and not is_equation(group) for group in groups)
    if not faces and (plain is not link.message or all(map(is_equation, groups))):
        claimed = np.sqrt(np.sum((start.root @ (plain.rows @ start.root).T) ** 2, axis=1).max())
        known = max(np.sqrt(np.sum(start.root**2, axis=1).max()), 1e-6 * walk.setup.scale)
        unmet = np.max(np.abs(plain.misfit(start.mean)), initial=0.0)
        measured = not walk.setup.started  # the sigma of a formula is nominal: fast waves of it need no following
        allowed = CLAIMED if walk.setup.is_linear else CLAIMED_COUPLED
        return max(measured * float(claimed / known) / allowed, float(unmet) / MET)
    missed = [float(np.max(np.abs(walk.misfit(group, weights)))) for group in groups if is_equation(group)]
    return max(missed, default=0.0) / MET


def pretence(walk: Walk, arrival: Belief, groups: list[FactorGroup], weights: Array, upper: float) -> float:
    """What start, walls and equation alone claim to know about coefficients, which only data after it can tell.

    Where walls and the start do not fit together in their derivatives, a window that is too long bends the
    coefficients until they seem to.
    """
    lower = walk.edges[-1]
    silent = [g for g in groups if g.name in walk.setup.standing or np.all(g.points[TIME] <= lower)]
    known = arrival * walk.segment_at(silent, weights, lower, upper).message
    own = slice(walk.setup.field_states, None)
    before, after = (np.sqrt(np.sum(belief.root[own] ** 2, axis=1)) for belief in (arrival, known))
    return float(np.max(1.0 - after / before)) / PRETENCE
