"""Several starts of a nonlinear search for unknown coefficients: do they end at the same place?

A Gaussian belief has one mode. Where starts spread over the prior end at different ones, the user has to know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import special

from factorfield.errors import FAILED, Advice
from factorfield.model.functions import coefficient_prior
from factorfield.posterior.base import Estimate
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
End = TypeVar("End")
HELD = 1e-4  # share of the prior's sd within which an unknown counts as held
APART = 3.0  # standard deviations of the difference between two ends
RIVAL = 10.0  # nats by which another end may be less probable and still deserve a warning


def start_positions(numbers: int, count: int) -> list[Array]:
    """Besides the prior's mean, count - 1 places in its standard deviations: evenly over its quantiles, shuffled."""
    rng, levels = np.random.default_rng(0), (np.arange(count - 1) + 0.5) / max(count - 1, 1)
    columns = [special.ndtri(rng.permutation(levels)) for _ in range(numbers)]
    return [np.array([column[place] for column in columns]) for place in range(count - 1)]


def start_values(problem: Problem, count: int) -> list[dict[str, float]]:
    """Values of the unknowns' latents where searches begin; the first ones are the prior's own."""
    priors = {name: coefficient_prior(problem, name) for name in problem.unknowns}
    return [{}] + [
        {name: mean + float(np.sqrt(variance)) * float(z)
         for (name, (mean, variance)), z in zip(priors.items(), place, strict=True)}
        for place in start_positions(len(priors), count)
    ]  # fmt: skip


def ends_of(starts: Sequence[Mapping[str, float]], search: Callable[[Mapping[str, float]], End]) -> list[End]:
    """What the searches find; one that leads nowhere is left out, and its failure told only if all do."""
    found: list[End] = []
    failed: Exception | None = None
    for values in starts:
        try:
            found.append(search(values))
        except FAILED as problem:
            failed = failed or problem
    if failed is not None and not found:
        raise failed
    return found


def best_of(ends: Sequence[tuple[float, Mapping[str, Estimate]]]) -> tuple[int, str, tuple[Advice, ...]]:
    """The most probable end of (negative log density, parameters), and what to say about the others."""
    usable = [merit if np.isfinite(merit) else np.inf for merit, _ in ends]
    best = int(np.argmin(usable))
    others: list[tuple[float, str]] = []
    for merit, parameters in ends:
        for name, value in parameters.items():
            chosen = ends[best][1][name]
            if abs(value["mean"] - chosen["mean"]) > APART * np.hypot(value["std"], chosen["std"]):
                others.append((merit - usable[best], f"{name} = {value['mean']:.3g}"))
                break
    if not others:
        return best, f"all {len(ends)} starts end at the same place", ()
    gap, text = min(others)
    said = (
        f"{len(others)} of {len(ends)} starts end elsewhere, the best of them at {text}, "
        f"e^{gap:.3g} times less probable"
    )
    text = (
        f"more than one answer fits: {said}; std describes the best one only. Add observations or a "
        "narrower prior"
    )
    return best, said, (Advice("several-modes", text),) if gap < RIVAL else ()
