"""Is a window short enough? What its polynomials in time leave out.

An equation of first order in time is asked as often as it has polynomials to settle (model/window_factors.py), so it is
met in any window, and says nothing about the state at its start: what is left to judge is whether the polynomials have
come to an end. One of second order is asked more often, and in too long a window moves the start instead.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorfield.messages.square_root import Belief, Message
from factorfield.methods.chain.solver import Window, WindowSolver
from factorfield.model.basis import Departure
from factorfield.model.factors import whitened_rows
from factorfield.model.window import states_of
from factorfield.model.windowed import WindowModel, is_standing
from factorfield.problem.domain import TIME

Array = NDArray[np.float64]
MOVED = 0.1  # standard deviations by which an equation alone may move the state where it starts
CLAIMED = 0.3  # of a standard deviation: what it may claim to know about it
SHARE = 1e-3  # of the uncertainty that the last polynomials may carry
NOMINAL = 1.0  # the same where it comes from the sigmas of formulas, which need not fit together
ROUGH = 0.3  # of it, what the mean may leave to them where walls are noisy: anew at every instant is not smooth


def window_error(solver: WindowSolver, tolerance: float, arrival: Belief, window: Window, lower: float) -> float:
    """The error of a window in tolerances; above 1 it is too long."""
    error = truncation_error(solver.model, tolerance, window)
    if error > 1.0 or max(map(states_of, solver.model.representation.latents.values())) < 2:
        return error
    if all(is_standing(g.statement) or np.all(g.points[TIME] <= lower) for g in window.groups):
        error = max(error, start_bias(solver, tolerance, arrival, window))
    return error


def truncation_error(model: WindowModel, tolerance: float, window: Window) -> float:
    """What the last two polynomials carry: of the mean in tolerances, and of the uncertainty as a share of it."""
    allowed, traits = tolerance * model.scale, model.traits
    last = last_polynomials(model)
    inner = np.isin(model.layout[1], last)
    spread = np.sqrt(np.sum((window.link.slope @ window.start.root) ** 2, axis=1))
    known = window.start.std[: model.field_states]  # coefficients have other units
    largest = max(spread.max(initial=0.0), known.max(initial=0.0))
    nominal = (traits.starts_by_formula and not traits.has_later_data) or traits.has_noisy_walls
    of_spread = float(spread[inner].max(initial=0.0)) / max((NOMINAL if nominal else SHARE) * largest, allowed)
    smooth = max(allowed, ROUGH * largest) if traits.has_noisy_walls else allowed
    of_mean = float(np.abs(window.weights[last]).max(initial=0.0)) / smooth
    worst = max(of_mean, of_spread)
    return worst if np.isfinite(worst) else np.inf


def last_polynomials(model: WindowModel) -> NDArray[np.int64]:
    """Weights of the last two polynomials in time of every field."""
    found: list[int] = []
    for latent in model.representation.latents.values():
        family = latent.basis.families.get(TIME)
        if isinstance(family, Departure):
            across = latent.basis.size // family.size
            found += range(latent.block.stop - 2 * across, latent.block.stop)
    return np.array(found, int)


def start_bias(solver: WindowSolver, tolerance: float, arrival: Belief, window: Window) -> float:
    """What equation and walls, asked more often than they can be met, do to the state at the start."""
    own = [group for group in window.groups if not is_standing(group.statement)]
    rows, target = whitened_rows(own, np.zeros(len(solver.order)))
    before = arrival * Message(rows[:, solver.state], target)
    known = before.std + tolerance * solver.model.scale
    moved = float(np.max(np.abs(window.start.mean - before.mean) / known))
    claimed = float(np.max(1.0 - window.start.std / known))
    # the sigma of a formula is nominal: fast waves of it need no following
    measured = not solver.model.traits.starts_by_formula
    return max(moved / MOVED, measured * claimed / CLAIMED)
