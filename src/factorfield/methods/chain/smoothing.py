"""The pass backward, and Gauss-Newton along the smoothed path: what later windows know returns to earlier ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.errors import ProblemError
from factorfield.messages.path import backward_messages, propagate
from factorfield.messages.square_root import Message
from factorfield.methods.chain.filtering import Path
from factorfield.methods.chain.solver import WindowSolver
from factorfield.progress import Progress
from factorfield.solution import Status

Array = NDArray[np.float64]
HOPELESS = 1e9  # standard deviations that a path may move in one step
SETTLED = 1e-3  # standard deviations: a path that moves less rests
NEAR, SHORTEST = 1.0, 1e-3  # standard deviations within which a step is taken as it is, and the least part of one
LINEAR = "linear and Gaussian: exact for the windows chosen"


def smooth(solver: WindowSolver, path: Path, progress: Progress | None) -> tuple[Status, list[float]]:
    """Bring the future back; nonlinear chains are linearised along the smoothed path until it rests.

    Returns how far each step moved the states, in standard deviations.
    """
    if isinstance(path.starts, list):
        path.futures = backward_messages(path.links)
    else:  # an equation alone says next to nothing (1e-5 of a standard deviation) about where it began
        path.futures = [Message.nothing(len(solver.state))] * len(path.links)
    traits = solver.model.traits
    moves: list[float] = []
    if traits.linear or not traits.has_later_data:
        return Status("converged", LINEAR if traits.linear else "every window settled"), []
    for _ in range(solver.most_iterations):
        try:
            moves.append(newton_step(solver, path, first=not moves))
        except (ValueError, linalg.LinAlgError):  # infinite rows
            raise _lost() from None
        if progress is not None:
            progress(f"smoothing, the path moved by {moves[-1]:.1e} sd", 0.9)
        if not moves[-1] < HOPELESS:
            break
        if moves[-1] < SETTLED:
            return Status("converged", f"the smoothed path rests to {moves[-1]:.1e} standard deviations"), moves
    return Status("max-iterations", f"the smoothed path still moves by {moves[-1]:.1e} standard deviations"), moves


def newton_step(solver: WindowSolver, path: Path, first: bool) -> float:
    """One Gauss-Newton step of the whole chain; how far it would move the states, in their standard deviations.

    `first`: the path is the filtered one, which has jumps, and its density says nothing.
    """
    moved, wanted, count = 0.0, [], len(solver.state)
    for index in range(len(path.links)):
        known = path.smoothed(index)
        spread = np.sqrt(np.sum(known.root[:count] ** 2, axis=1)) + 1e-12 * solver.model.scale
        change = np.abs(known.mean[:count] - path.centres[index][solver.state]) / spread
        moved = max(moved, float(change.max()))
        wanted.append(solver.in_order(known.mean))
    path.centres = _towards(solver, path, wanted, first) if moved > NEAR else wanted
    relinearise(solver, path)
    return moved


def relinearise(solver: WindowSolver, path: Path) -> None:
    """Eliminate and filter anew with all factors linearised at `centres`, then send information backward."""
    arrival = solver.model.prior_state
    assert isinstance(path.starts, list)
    for index, (groups, weights) in enumerate(zip(path.groups, path.centres, strict=True)):
        path.links[index] = solver.eliminate(groups, weights, path.edges[index], path.edges[index + 1])
        path.starts[index] = arrival * path.links[index].message
        arrival = propagate(path.starts[index], path.links[index])
    path.futures = backward_messages(path.links)


def _towards(solver: WindowSolver, path: Path, wanted: list[Array], first: bool) -> list[Array]:
    """As far as the density does not fall; from the filtered path, as far as there is one."""
    least = np.finfo(float).max if first else solver.path_merit(path.groups, path.centres.__getitem__)
    length = 1.0
    while True:
        candidate = [old + length * (new - old) for old, new in zip(path.centres, wanted, strict=True)]
        if length < SHORTEST or solver.path_merit(path.groups, candidate.__getitem__) <= least:
            return candidate
        length *= 0.5


def _lost() -> ProblemError:
    text = "expected a path that the data lead to, received one that runs away while it is corrected; try starts=5, "
    return ProblemError(f"{text}priors of the unknowns nearer to what is expected, or conditions at the start")
