"""What a user should know about a solved chain: directions that nothing settles, conditions that contradict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from factorfield.errors import Advice
from factorfield.methods.advice import (
    UNFOLLOWED,
    contradictions,
    details_lost,
    free_directions,
    unconstrained,
    unfollowed,
)  # fmt: skip
from factorfield.methods.chain.modes import last_modes
from factorfield.model.factors import FactorGroup
from factorfield.model.modes import LOST
from factorfield.model.windowed import WindowModel
from factorfield.posterior.windows import ChainPosterior

FREE = 0.5  # of the prior's standard deviation: a direction that is left with it


def advice_about(
    model: WindowModel, posterior: ChainPosterior, groups: Sequence[Sequence[FactorGroup]]
) -> Iterator[Advice]:
    state, last = model.layout[0], len(posterior.links) - 1
    open_states, prior = model.open_states, model.prior.std[state]
    for window, place in ((0, "initial"), (last, "final")):
        spread = posterior.seen(window).weight_std[state]
        free = int(np.sum((spread / prior)[open_states] > FREE))
        if free:
            count = f"about {free} of {len(open_states)}"
            yield free_directions(model.problem, f"{count} directions of the {place} state are")
            break
    yield from unconstrained(model.problem, posterior.seen(last))
    yield from _unresolved(model, posterior)
    yield from _contradictions(model, posterior, groups)


def _unresolved(model: WindowModel, posterior: ChainPosterior) -> Iterator[Advice]:
    """Modes that are too few for what the field became: a shock, a thin layer."""
    by_formula = model.traits.starts_by_formula
    if not by_formula and (model.traits.separable or not model.growing):
        return  # noise of labels reaches the last modes too, and what labels leave out the std knows
    if any(advice.kind == "corner" for advice in model.advice):
        return  # a jump at the start, of which the user is told
    at_start = last_modes(model, posterior.window_mean(0))
    worst: dict[str, float] = {}
    for index in np.unique(np.linspace(0, len(posterior.links) - 1, 50).astype(int)):
        for axis, share in last_modes(model, posterior.window_mean(int(index))).items():
            worst[axis] = max(worst.get(axis, 0.0), share)
    for axis, share in worst.items():
        if share > LOST + (0.0 if by_formula else 3.0 * at_start[axis]):
            yield details_lost(axis, model.modes[axis], share)


def _contradictions(
    model: WindowModel, posterior: ChainPosterior, groups: Sequence[Sequence[FactorGroup]]
) -> Iterator[Advice]:
    """Chi-square of each condition at the posterior mean: against chance where its sigma was given, else by far."""
    found: dict[str, tuple[float, int]] = {}
    held = {statement.name for statement in model.held_at_start}
    for index, of_window in enumerate(groups):
        weights = posterior.window_mean(index) if of_window else np.zeros(0)
        for group in of_window:
            misfit = group.misfit(weights)
            missed, count = found.get(group.name, (0.0, 0))
            found[group.name] = missed + float(misfit @ misfit), count + group.count
    yield from contradictions({name: entry for name, entry in found.items() if model.is_given(name)})
    exempt = held | {s.name for s in model.problem.statements if s.noise is not None}
    for name, (missed, count) in found.items():
        if name not in exempt and not model.is_given(name) and missed > UNFOLLOWED**2 * count:
            yield unfollowed(name, float(np.sqrt(missed / count)))
