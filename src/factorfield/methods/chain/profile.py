"""A second way to unknown coefficients, where the first one got lost: step by step, along solutions of the equation.

Filtering meets the data window by window, and a few windows of an epidemic that has hardly begun can send the rates
anywhere. Here the coefficients are held while the rest is solved (their profile); the smoothed chain then tells where
they want to go, and a step is taken only if what it leads to is more probable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import FAILED
from factorfield.messages.gaussian import Diagonal
from factorfield.methods.chain.passes import Path, chi_squares, filter_windows, newton_step, smooth
from factorfield.methods.chain.solver import WindowSolver
from factorfield.methods.starts import HELD
from factorfield.model.model import WindowModel
from factorfield.progress import Progress
from factorfield.solution import Status

Array = NDArray[np.float64]
Profile = Callable[[Array], tuple[Path, float] | None]
STEPS, HALVINGS = 25, 8
AT_REST = 0.02  # standard deviations
FAR_FROM_DATA = 3.0  # root mean square misfit of a condition, in its sigmas, from which the way is tried again


def is_lost(solver: WindowSolver, path: Path, status: Status) -> bool:
    """Did the search for unknown coefficients end nowhere, or far from the data?"""
    squares = chi_squares(solver, path, solver.model.given)
    return status != "converged" or not all(total < FAR_FROM_DATA**2 * count for total, count in squares.values())


def profile_search(solver: WindowSolver, tolerance: float, progress: Progress | None) -> Path | None:
    """The path at the most probable coefficients reached from the prior mean; None if there is no way."""
    model = solver.model
    place = model.first_state().mean[model.field_states :]
    here = _profile(model, place, tolerance, solver.most_iterations)
    for step in range(STEPS):
        if here is None:
            return None
        path, level = here
        newton_step(solver, path, first=False)  # the coefficients are free again
        belief = path.smoothed(len(path.links) - 1)
        own = slice(model.field_states, len(solver.state))
        wanted, spread = belief.mean[own], np.sqrt(np.sum(belief.root[own] ** 2, axis=1))
        if progress is not None:
            progress(f"coefficients, step {step + 1}", 0.5)
        if np.all(np.abs(wanted - place) < AT_REST * spread):
            return path
        for halving in range(HALVINGS):
            there = place + 0.5**halving * (wanted - place)
            found = _profile(model, there, tolerance, solver.most_iterations)
            if found is not None and found[1] < level:
                place, here = there, found
                break
        else:
            return path
    return None


def _profile(model: WindowModel, place: Array, tolerance: float, iterations: int) -> tuple[Path, float] | None:
    """The path with coefficients held at a place, and its negative log density; None where it runs away."""
    own = model.layout[0][model.field_states :]
    mean, std = np.array(model.prior.mean), np.array(model.prior.std)
    away = (place - mean[own]) / std[own]
    mean[own], std[own] = place, HELD * std[own]
    solver = WindowSolver(replace(model, prior=Diagonal.from_moments(mean, std**2), start={}), iterations)
    try:
        path = filter_windows(solver, tolerance, [], False, None)
        smooth(solver, path, None)
    except FAILED:
        return None
    level = solver.path_merit(path.groups, lambda index: solver.in_order(path.mean(index)))
    level += 0.5 * float(away @ away)
    return (path, level) if np.isfinite(level) else None
