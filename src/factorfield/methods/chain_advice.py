"""What a user should know about a solved chain: directions that nothing settles, conditions that contradict."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from factorfield.chain_posterior import ChainPosterior
from factorfield.errors import AdviceWarning
from factorfield.factors import FactorGroup
from factorfield.links import inner
from factorfield.methods.chain_setup import Setup

Array = NDArray[np.float64]
SURPRISE = 6.0  # standard deviations of chi-square from which a group is said to contradict the others


def advise(setup: Setup, posterior: ChainPosterior, groups: Sequence[list[FactorGroup] | None]) -> None:
    first = inner(posterior.starts[0], posterior.links[0], posterior.futures[0])
    width = len(posterior.starts[0].mean)
    spread = np.sqrt(np.sum(first.root[:width] ** 2, axis=1))
    prior = np.sqrt(np.sum(setup.prior.root**2, axis=1))
    free = int(np.sum((spread / prior)[setup.informative] > 0.1))
    if free:
        warnings.warn(
            f"about {free} of {width} directions of the initial state are settled by neither data nor equation and "
            "stay with the prior; add observations, initial or boundary conditions if the std is too large",
            AdviceWarning, stacklevel=5,
        )  # fmt: skip
    _contradictions(setup, posterior, groups)


def _contradictions(setup: Setup, posterior: ChainPosterior, groups: Sequence[list[FactorGroup] | None]) -> None:
    """Chi-square of each condition whose sigma was given, at the posterior mean."""
    found: dict[str, list[Array]] = {}
    for index, of_window in enumerate(groups):
        spoken = [group for group in of_window or [] if group.name in setup.given]
        weights = posterior.window_mean(index) if spoken else np.zeros(0)
        for group in spoken:
            value = group.relation.value(group.project(weights), group.parameters, group.points)
            found.setdefault(group.name, []).append((value - group.target) / group.sigma)
    missed = []
    for name, parts in found.items():
        misfit = np.concatenate(parts)
        if float(misfit @ misfit) > len(misfit) + SURPRISE * np.sqrt(2.0 * len(misfit)) + 3.0:
            missed.append(f"{name} by {np.sqrt(np.mean(misfit**2)):.3g} sigma (root mean square over {len(misfit)})")
    if missed:
        warnings.warn(
            f"values are missed by more than chance: {'; '.join(missed)}. They contradict each other or the equation, "
            "or their sigma is too small",
            AdviceWarning, stacklevel=6,
        )  # fmt: skip
