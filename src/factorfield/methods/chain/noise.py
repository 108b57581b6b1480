"""The noise of labels from the evidence, where the user gave none and the initial spectrum does not tell it.

At the maximum of the evidence sigma^2 = sum of squared misfits / (labels - gamma), gamma the number of directions that
the labels settle: the sum over labels of predictive variance / sigma^2 (MacKay's fixed point).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np

from factorfield.model.choices import Sigma
from factorfield.model.linearisation import linearise
from factorfield.model.model import WindowModel
from factorfield.model.window_factors import WindowFactors
from factorfield.posterior.windows import ChainPosterior

SMALLEST = 1e-5  # in units of the field's scale: modelling is never exact
NOISE_ROUNDS = 15
SIGMA_SETTLED = 0.02  # relative change of sigma that ends the search


def next_sigmas(model: WindowModel, posterior: ChainPosterior) -> list[Sigma] | None:
    """One step of the fixed point for every sigma that is being estimated; None when they rest."""
    squares: dict[str, float] = {}
    freedom: dict[str, float] = {}
    pairs = list(zip(model.problem.statements, model.sigmas, strict=True))
    names = {s.name for s, sigma in pairs if sigma.is_open and sigma.rounds < NOISE_ROUNDS}
    factors = WindowFactors(model)
    for index, (lower, upper) in enumerate(pairwise(posterior.edges) if names else ()):
        speaking = [group for group in factors.own(lower, upper, index == 0) if group.name in names]
        belief = posterior.window(index) if speaking else None
        for group in speaking:
            assert belief is not None
            line = linearise(group.relation, group.project(belief.mean), None, group.parameters, group.points)
            seen = group.pull_back(line.slopes, len(belief.mean)) @ belief.root
            settled = np.sum(seen**2, axis=1) / group.sigma**2
            squares[group.name] = squares.get(group.name, 0.0) + float(np.sum((line.value - group.target) ** 2))
            left = group.count - float(np.sum(np.minimum(settled, 1.0)))
            freedom[group.name] = freedom.get(group.name, 0.0) + left
    sigmas, moved = list(model.sigmas), 0.0
    for index, (statement, sigma) in enumerate(pairs):
        if statement.name in squares:
            found = np.sqrt(squares[statement.name] / max(freedom[statement.name], 1e-3))
            value = max(float(found), SMALLEST * model.scale)
            moved = max(moved, abs(float(np.log(value / sigma.value))))
            sigmas[index] = replace(sigma, value=value, rounds=sigma.rounds + 1)
    return sigmas if moved >= SIGMA_SETTLED else None
