"""A posterior read back from a file's arrays."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from factorfield.model.representation import Representation
from factorfield.posterior import windows
from factorfield.posterior.base import GaussianPosterior, Posterior
from factorfield.posterior.sampled import SampledPosterior
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]


def posterior_from_arrays(
    problem: Problem, representation: Representation, noise: Mapping[str, float], arrays: Mapping[str, Array]
) -> Posterior:
    """The posterior of the class whose own array is among those of a file."""
    if "weight_draws" in arrays:
        return SampledPosterior(problem, representation, noise, arrays["weight_draws"])
    if "chain_edges" in arrays:
        return windows.from_arrays(problem, representation, noise, arrays)
    return GaussianPosterior(problem, representation, noise, arrays["weight_mean"], arrays["weight_root"])
