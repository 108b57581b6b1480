"""The noise of labels from the evidence, where the user gave none and the initial spectrum does not tell it.

At the maximum of the evidence sigma^2 = sum of squared misfits / (labels - gamma), gamma the number of directions that
the labels settle: the sum over labels of predictive variance / sigma^2 (MacKay's fixed point).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from factorfield.model.factors import FactorGroup, linearise
from factorfield.model.windowed import Setup
from factorfield.posterior.windows import ChainPosterior

SMALLEST = 1e-5  # in units of the field's scale: modelling is never exact
ROUNDS = 15
SETTLED = 0.02  # relative change of sigma that ends the search


def updated(setup: Setup, posterior: ChainPosterior, groups: Sequence[list[FactorGroup] | None]) -> Setup:
    """One step of the fixed point for every sigma that is being estimated; the same setup when they rest."""
    names = {setup.problem.statements[i].name: i for i in setup.estimated}
    squares, freedom = dict.fromkeys(names.values(), 0.0), dict.fromkeys(names.values(), 0.0)
    for index, of_window in enumerate(groups):
        spoken = [group for group in of_window or [] if group.name in names]
        if not spoken:
            continue
        belief = posterior.window(index)
        for group in spoken:
            line = linearise(group.relation, group.project(belief.mean), None, group.parameters, group.points)
            seen = group.pull_back(line.slopes, len(belief.mean)) @ belief.root
            squares[names[group.name]] += float(np.sum((line.value - group.target) ** 2))
            settled = np.sum(seen**2, axis=1) / group.sigma**2
            freedom[names[group.name]] += group.count - float(np.sum(np.minimum(settled, 1.0)))
    sigma, noise = list(setup.sigma), dict(setup.noise)
    for i in setup.estimated:
        found = np.sqrt(squares[i] / max(freedom[i], 1e-3))
        sigma[i] = max(float(found), SMALLEST * setup.scale)
        jets = list(setup.problem.statements[i].relation.jets.values())
        if len(jets) == 1 and not jets[0].orders:
            noise[jets[0].field] = sigma[i]
    if all(abs(np.log(sigma[i] / setup.sigma[i])) < SETTLED for i in setup.estimated):
        return setup
    shown = [
        (name, sigma[k] if k in setup.estimated else value) for k, (name, value) in enumerate(setup.settings["sigma"])
    ]
    return replace(setup, sigma=sigma, noise=noise, settings={**setup.settings, "sigma": shown})
