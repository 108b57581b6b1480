"""What a user should know about a solved chain: directions that nothing settles, conditions that contradict."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import AdviceWarning
from factorfield.methods.advice import (
    UNFOLLOWED,
    contradictions,
    details_lost,
    free_directions,
    unconstrained,
    unfollowed,
)  # fmt: skip
from factorfield.methods.chain.modes import LOST, last_modes
from factorfield.methods.chain.rows import projected
from factorfield.model.factors import FactorGroup
from factorfield.model.window import layout
from factorfield.model.windowed import Setup
from factorfield.posterior.windows import ChainPosterior

Array = NDArray[np.float64]
FREE = 0.5  # of the prior's standard deviation: a direction that is left with it


def advise(setup: Setup, posterior: ChainPosterior, groups: Sequence[list[FactorGroup] | None]) -> None:
    for text in setup.jumps:
        warnings.warn(text, AdviceWarning, stacklevel=5)
    prior = np.sqrt(np.sum(setup.prior.root**2, axis=1))
    for window, place in ((0, "initial"), (len(posterior.links) - 1, "final")):
        spread = posterior.seen(window).weight_std[layout(posterior.representation)[0]]
        free = int(np.sum((spread / prior)[setup.informative] > FREE))
        if free:
            text = f"about {free} of {len(setup.informative)} directions of the {place} state are"
            free_directions(setup.problem, text, 5)
            break
    unconstrained(setup.problem, posterior.seen(len(posterior.links) - 1), 5)
    _unresolved(setup, posterior)
    _contradictions(setup, posterior, groups)


def _unresolved(setup: Setup, posterior: ChainPosterior) -> None:
    """Modes that are too few for what the field became: a shock, a thin layer."""
    if not setup.started and (setup.plain or not setup.growing):
        return  # noise of labels reaches the last modes too, and what labels leave out the std knows
    if setup.jumps:
        return  # a jump at the start, of which the user was told
    at_start = last_modes(setup, posterior.window_mean(0))
    worst: dict[str, float] = {}
    for index in np.unique(np.linspace(0, len(posterior.links) - 1, 50).astype(int)):
        for axis, share in last_modes(setup, posterior.window_mean(int(index))).items():
            worst[axis] = max(worst.get(axis, 0.0), share)
    for axis, share in worst.items():
        if share > LOST + (0.0 if setup.started else 3.0 * at_start[axis]):
            details_lost(axis, setup.settings["modes"][axis], share, 6)


def _contradictions(setup: Setup, posterior: ChainPosterior, groups: Sequence[list[FactorGroup] | None]) -> None:
    """Chi-square of each condition at the posterior mean: against chance where its sigma was given, else by far."""
    found: dict[str, tuple[float, int]] = {}
    for index, of_window in enumerate(groups):
        weights = posterior.window_mean(index) if of_window else np.zeros(0)
        for group in of_window or []:
            value = group.relation.value(group.project(weights), group.parameters, group.points)
            misfit = projected(group, (value - group.target) / group.sigma)
            missed, count = found.get(group.name, (0.0, 0))
            found[group.name] = missed + float(misfit @ misfit), count + group.count
    contradictions({name: entry for name, entry in found.items() if name in setup.given}, 6)
    exempt = setup.given | {s.name for s in setup.problem.statements if s.noise is not None}
    for name, (missed, count) in found.items():
        if name not in exempt and not name.startswith("start of ") and missed > UNFOLLOWED**2 * count:
            unfollowed(name, float(np.sqrt(missed / count)), 6)
