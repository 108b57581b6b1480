"""Are there enough modes? Models without time get more of their own until the last ones carry almost nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from factorfield.errors import Advice
from factorfield.methods.advice import details_lost
from factorfield.model.block import block_model
from factorfield.model.choices import GROWTH, LEAST_GROWTH, LOST, RESOLVED, affordable_modes
from factorfield.model.model import BlockModel
from factorfield.posterior.base import Posterior
from factorfield.problem.domain import TIME, Periodic
from factorfield.solution import Solution

SEEN = 3.0  # standard deviations from which a coefficient is there at all


def last_modes(model: BlockModel, posterior: Posterior) -> dict[str, float]:
    """Per axis, the largest coefficient of a field's last modes that is there, in units of the field's scale."""
    mean, std = posterior.weight_mean, posterior.weight_std
    found = dict.fromkeys(model.problem.domain.names, 0.0)
    for name in model.problem.fields:
        for unit in model.representation.forms[name].latents:
            latent = model.representation.latents[unit]
            size = np.abs(mean[latent.block])
            table = np.where(size > SEEN * std[latent.block], size, 0.0).reshape(latent.basis.shape)
            for position, axis in enumerate(latent.basis.axes):
                count = table.shape[position]
                last = np.moveaxis(table, position, 0)[count - max(2, count // 10) :]
                found[axis] = max(found[axis], float(last.max()) / model.scale)
    return found


def richer(model: BlockModel, solution: Solution) -> BlockModel | None:
    """The same problem with more modes along the axes that need them, or None; points and readout stay as asked.

    Along an axis there are at most as many features as points that the user asked for: those settle no more.
    """
    problem, automatic = model.problem, model.automatic
    if not automatic or TIME in problem.domain:
        return None
    carried = last_modes(model, solution.posterior)
    wanted = {a: math.ceil(GROWTH * model.modes[a]) if carried[a] > RESOLVED else model.modes[a] for a in automatic}
    for axis in model.collocation.keys() & wanted.keys():
        points, of_mode = model.collocation[axis], 2 if isinstance(problem.domain[axis], Periodic) else 1
        wanted[axis] = max(model.modes[axis], min(wanted[axis], (points - 1) // of_mode))
    counts = affordable_modes(problem, {**model.modes, **wanted}, automatic)
    if not any(counts[axis] > LEAST_GROWTH * model.modes[axis] for axis in automatic):
        return None
    readout = model.representation.forms[problem.fields[0]].readout
    more = block_model(problem, modes=counts, collocation=model.collocation, readout=readout)
    return replace(more, automatic=automatic, settings={**more.settings, "automatic": list(automatic)})


def lost_details(model: BlockModel, posterior: Posterior) -> Iterator[Advice]:
    """Advice where the last modes of an automatic choice carry much of the field."""
    for axis, share in last_modes(model, posterior).items() if model.automatic else ():
        if share > LOST:
            yield details_lost(axis, model.modes[axis], share)
