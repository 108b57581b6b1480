"""Are there enough modes? Models without time get more of their own until the last ones carry almost nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from factorfield.methods.advice import details_lost
from factorfield.methods.chain.modes import GROWTH, LEAST_GROWTH, LOST, RESOLVED
from factorfield.model.model import Model, default_model, most_modes
from factorfield.problem.domain import TIME
from factorfield.solution import Solution

SEEN = 3.0  # standard deviations from which a coefficient is there at all


def last_modes(model: Model, solution: Solution) -> dict[str, float]:
    """Per axis, the largest coefficient of a field's last modes that is there, in units of the field's scale."""
    mean, std = solution.posterior.weight_mean, solution.posterior.weight_std
    carried = dict.fromkeys(model.problem.domain.names, 0.0)
    for name in model.problem.fields:
        for unit in model.representation.forms[name].latents:
            latent = model.representation.latents[unit]
            size = np.abs(mean[latent.block])
            table = np.where(size > SEEN * std[latent.block], size, 0.0).reshape(latent.basis.shape)
            for position, axis in enumerate(latent.basis.axes):
                count = table.shape[position]
                last = np.moveaxis(table, position, 0)[count - max(2, count // 10) :]
                carried[axis] = max(carried[axis], float(last.max()) / model.settings["scale"])
    return carried


def richer(model: Model, solution: Solution) -> Model | None:
    """The same problem with more modes along the axes that need them, or None: then a user is told what is lost."""
    settings, problem = model.settings, model.problem
    if settings.get("model") != "default" or settings["activation"] != "identity" or not settings["automatic"]:
        return None  # a model that was built by hand is as it was meant
    carried, chosen, automatic = last_modes(model, solution), settings["modes"], settings["automatic"]
    if TIME not in problem.domain:
        wanted = {a: math.ceil(GROWTH * chosen[a]) if carried[a] > RESOLVED else chosen[a] for a in automatic}
        counts = most_modes(problem, {**chosen, **wanted}, automatic)
        if any(counts[axis] > LEAST_GROWTH * chosen[axis] for axis in automatic):
            more = default_model(problem, modes=counts)
            return replace(more, settings={**more.settings, "automatic": automatic})
    for axis, share in carried.items():
        if share > LOST:
            details_lost(axis, chosen[axis], share, 4)
    return None
