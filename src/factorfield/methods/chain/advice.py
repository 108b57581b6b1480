"""What a user should know about a solved chain: directions that nothing settles, conditions that contradict."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import Advice
from factorfield.methods.advice import (
    UNFOLLOWED,
    contradictions,
    details_lost,
    error_misfits,
    free_directions,
    unconstrained,
    unfollowed,
)  # fmt: skip
from factorfield.methods.chain.modes import last_modes
from factorfield.methods.chain.passes import Path, chi_squares
from factorfield.methods.chain.solver import WindowSolver
from factorfield.model.choices import HOLDS, LOST
from factorfield.posterior.windows import ChainPosterior

Array = NDArray[np.float64]
FREE = 0.5  # of the prior's standard deviation: a direction that is left with it


def advice_about(solver: WindowSolver, path: Path, posterior: ChainPosterior) -> Iterator[Advice]:
    model, last = solver.model, len(path.links) - 1
    free = _free(solver, path) if model.spectrum is None else None  # a spectrum that the data tell is no lack of data
    if free is not None:
        yield free
    if model.problem.unknowns:
        yield from unconstrained(model.problem, posterior.seen(last))
    yield from _unresolved(solver, path)
    yield from _contradictions(solver, path, posterior, free is not None)


def _unresolved(solver: WindowSolver, path: Path) -> Iterator[Advice]:
    """Modes that are too few for what the field became: a shock, a thin layer."""
    model = solver.model
    if model.local:
        return
    by_formula = model.traits.starts_by_formula
    if not by_formula and (model.traits.separable or not model.growing):
        return  # noise of labels reaches the last modes too, and what labels leave out the std knows
    if any(advice.kind == "corner" for advice in model.advice):
        return  # a jump at the start, of which the user is told
    at_start = last_modes(model, solver.in_order(path.mean(0)))
    worst: dict[str, float] = {}
    for index in map(int, np.unique(np.linspace(0, len(path.links) - 1, 50).astype(int))):
        for axis, share in last_modes(model, solver.in_order(path.mean(index)), path.starts[index]).items():
            worst[axis] = max(worst.get(axis, 0.0), share)
    for axis, share in worst.items():
        if share > LOST + (0.0 if by_formula else 3.0 * at_start[axis]):
            yield details_lost(axis, model.modes[axis], share)


def _free(solver: WindowSolver, path: Path) -> Advice | None:
    """Details of the field that nothing tells, at its start or its end."""
    open_states, prior = solver.model.open_states, solver.model.prior.std[solver.state]
    for window, place in ((0, "start"), (len(path.links) - 1, "end")):
        spread = path.smoothed(window).std[: len(prior)]
        free = int(np.sum((spread / prior)[open_states] > FREE))
        if free:
            count = f"about {free} of {len(open_states)}"
            return free_directions(solver.model.problem, f"{count} details of the field at its {place} are")
    return None


def _contradictions(
    solver: WindowSolver, path: Path, posterior: ChainPosterior, is_open: bool
) -> Iterator[Advice]:
    """Chi-square of each condition at the posterior mean: against chance where its sigma was given, else by far. A
    field that is open may be so large that equations and walls are missed in rounding: not a word about these."""
    model, given = solver.model, solver.model.given
    found = chi_squares(solver, path) | error_misfits(model, solver.in_order(path.mean(0)))
    yield from contradictions({name: entry for name, entry in found.items() if name in given}, posterior)
    held = {statement.name for statement in model.held_at_start}
    exempt = given | held | {s.name for s in model.problem.statements if s.noise is not None}
    # what holds by default is missed by the numerical error, which is told by itself
    usual = HOLDS**2 if model.holds else 1.0
    for name, (missed, count) in found.items() if not is_open else ():
        if name not in exempt and usual * missed > UNFOLLOWED**2 * count:
            yield unfollowed(name, float(np.sqrt(usual * missed / count)))
