"""The noise of labels from the evidence, where the user gave none and the initial spectrum does not tell it.

At the maximum of the evidence sigma^2 = sum of squared misfits / (labels - gamma), gamma the number of directions that
the labels settle: the sum over labels of predictive variance / sigma^2 (MacKay's fixed point).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from factorfield.model.choices import Sigma
from factorfield.model.factors import FactorGroup
from factorfield.model.linearisation import linearise
from factorfield.model.model import BlockModel, Model, WindowModel
from factorfield.model.window_factors import WindowFactors
from factorfield.posterior.gaussian import GaussianPosterior
from factorfield.posterior.windows import ChainPosterior

SMALLEST = 1e-5  # in units of the field's scale: modelling is never exact
NOISE_ROUNDS = 15
SIGMA_SETTLED = 0.02  # relative change of sigma that ends the search
Spoken = tuple[FactorGroup, GaussianPosterior]  # measurements, and the belief about the weights that they read


def of_windows(model: WindowModel, posterior: ChainPosterior) -> Iterator[Spoken]:
    """Measurements whose noise is being estimated, window by window."""
    factors, names = WindowFactors(model), open_names(model)
    for index, (lower, upper) in enumerate(pairwise(posterior.edges) if names else ()):
        speaking = [group for group in factors.own(lower, upper, index == 0) if group.name in names]
        belief = posterior.window(index) if speaking else None
        for group in speaking:
            assert belief is not None
            yield group, belief


def of_block(model: BlockModel, posterior: GaussianPosterior) -> Iterator[Spoken]:
    """The same of one block."""
    names = open_names(model)
    return ((group, posterior) for group in model.groups if group.name in names)


def open_names(model: Model) -> set[str]:
    """Statements whose sigma is being estimated."""
    pairs = zip(model.problem.statements, model.sigmas, strict=True)
    return {s.name for s, sigma in pairs if sigma.is_open and sigma.rounds < NOISE_ROUNDS}


def next_sigmas(model: Model, spoken: Iterable[Spoken]) -> list[Sigma] | None:
    """One step of the fixed point for every sigma that is being estimated; None when they rest."""
    squares: dict[str, float] = {}
    freedom: dict[str, float] = {}
    for group, belief in spoken:
        line = linearise(group.relation, group.project(belief.mean), None, group.parameters, group.points)
        seen = group.pull_back(line.slopes, len(belief.mean)) @ belief.root
        settled = np.sum(seen**2, axis=1) / group.sigma**2
        squares[group.name] = squares.get(group.name, 0.0) + float(np.sum((line.value - group.target) ** 2))
        left = group.count - float(np.sum(np.minimum(settled, 1.0)))
        freedom[group.name] = freedom.get(group.name, 0.0) + left
    sigmas, moved = list(model.sigmas), 0.0
    for index, (statement, sigma) in enumerate(zip(model.problem.statements, model.sigmas, strict=True)):
        if statement.name in squares:
            found = np.sqrt(squares[statement.name] / max(freedom[statement.name], 1e-3))
            value = max(float(found), SMALLEST * model.scale)
            moved = max(moved, abs(float(np.log(value / sigma.value))))
            sigmas[index] = replace(sigma, value=value, origin="estimated", rounds=sigma.rounds + 1)
    return sigmas if moved >= SIGMA_SETTLED else None
