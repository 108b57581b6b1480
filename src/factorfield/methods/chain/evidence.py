"""A linear model whose windows are given: its log evidence, and the posterior mean of its weights.

The belief about the state is propagated with the measurements and without them; the difference of the two levels is the
log density of the measurements under what equation, conditions and prior allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from factorfield.messages.elimination import Segment, backward_messages, propagate, smoothed
from factorfield.messages.gaussian import Message
from factorfield.methods.chain.dynamics import Dynamics, dynamics_of
from factorfield.methods.chain.solver import WindowSolver
from factorfield.model.factors import FactorGroup, whitened_rows
from factorfield.model.model import WindowModel, log_noise

Array = NDArray[np.float64]


def linear_evidence(model: WindowModel) -> float:
    """log p(measurements | equation, conditions, prior) of a linear model between its edges."""
    informed = uninformed = model.prior_state
    for with_all, without in _windows(WindowSolver(model, 1)):
        informed = propagate(informed * with_all.message, with_all)
        uninformed = propagate(uninformed * without.message, without)
    return informed.level - uninformed.level - log_noise(model)


def linear_means(model: WindowModel) -> Array:
    """The posterior mean of every window's weights, (windows, weights), of a linear model between its edges."""
    solver = WindowSolver(model, 1)
    dynamics = dynamics_of(model, solver.factors)
    belief, starts, links = model.prior_state, [], []
    for link, _ in _windows(solver):
        starts.append(belief * link.message)
        links.append(link)
        belief = propagate(starts[-1], link)
    means, lengths = [], [solver.factors.length(*edges) for edges in pairwise(model.edges or ())]
    futures = backward_messages(links)
    for start, link, future, length in zip(starts, links, futures, lengths, strict=True):
        mean = smoothed(start, link, future).mean
        means.append(solver.in_order(mean) if dynamics is None else dynamics.weights(length, mean))
    return np.stack(means)


def _windows(solver: WindowSolver) -> Iterator[tuple[Segment, Segment]]:
    """Every window with all of its factors, and without the measurements."""
    model = solver.model
    assert model.edges is not None
    dynamics = dynamics_of(model, solver.factors)
    for index, (lower, upper) in enumerate(pairwise(model.edges)):
        groups = solver.factors.own(lower, upper, index == 0)
        others = [group for group in groups if group.statement.kind != "observation"]
        measured = [group for group in groups if group.statement.kind == "observation"]
        if dynamics is None:
            with_all = _eliminated(solver, [*others, *measured], lower, upper)
            yield with_all, _eliminated(solver, others, lower, upper) if measured else with_all
        else:
            yield _operated(solver, dynamics, others, measured, solver.factors.length(lower, upper))


def _eliminated(solver: WindowSolver, groups: list[FactorGroup], lower: float, upper: float) -> Segment:
    if not solver.model.traits.separable:
        groups = [*solver.factors.standing(lower, upper), *groups]
    return solver.linear_segment(groups, lower, upper)


def _operated(
    solver: WindowSolver, dynamics: Dynamics, others: Sequence[FactorGroup], measured: Sequence[FactorGroup],
    length: float,
) -> tuple[Segment, Segment]:  # fmt: skip
    """By the solution operator, with all of the window's factors and without the measurements."""
    zero = np.zeros(len(solver.order))
    parts = [whitened_rows(groups, zero) for groups in (others, measured)]
    alone = [~np.any(rows[:, solver.inner] != 0.0, axis=1) for rows, _ in parts]
    inside = [(rows[~own], target[~own]) for (rows, target), own in zip(parts, alone, strict=True)]
    about = [Message(rows[own][:, solver.state], target[own]) for (rows, target), own in zip(parts, alone, strict=True)]
    rows, target = (np.concatenate(each) for each in zip(*inside, strict=True))
    with_all, without = dynamics.segments(length, rows, target, (len(rows), len(inside[0][0])))
    return (
        replace(with_all, message=about[0] * about[1] * with_all.message),
        replace(without, message=about[0] * without.message),
    )
