"""Advice in words: conditions that seem to be missing, unknown coefficients that nothing constrains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import Advice
from factorfield.model.functions import coefficient_prior
from factorfield.model.model import Model
from factorfield.posterior.base import Posterior
from factorfield.problem.completeness import missing_conditions
from factorfield.problem.problem import Problem
from factorfield.solution import Solution

Array = NDArray[np.float64]
SURPRISE = 6.0  # standard deviations of chi-square from which a group is said to contradict the others
UNFOLLOWED = 10.0  # the same for sigmas of our choice, root mean square: below 2 in solves that follow the field
ALONE = 8.0  # times what all others are missed by: a reading that is wrong by itself
EXCLUDED = 4.0  # standard deviations of a prior: what it says does not happen
UNMOVED = 0.95  # of the prior's standard deviation: what an unknown that was told nothing keeps


def free_directions(problem: Problem, text: str) -> Advice:
    """Directions that stay with the prior, with the conditions that a classical solver would miss."""
    missing = missing_conditions(problem)
    named = f" (seen: {'; '.join(missing)})" if missing else ""
    return Advice(
        "free-directions",
        f"{text} told by neither data nor equation: there the std is as large as the prior's{named}; add "
        "observations, initial or boundary conditions if that is too large",
    )


def contradictions(misfits: Mapping[str, tuple[float, int]], posterior: Posterior) -> list[Advice]:
    """Conditions whose chi-square (given with their count), by the user's own sigmas, is far beyond chance."""
    missed = {}
    for name, (total, count) in misfits.items():
        if total > count + SURPRISE * np.sqrt(2.0 * count) + 3.0:
            worst = _worst_reading(posterior, name)
            missed[name] = f"{name} by {np.sqrt(total / count):.3g} sigma (root mean square over {count}{worst})"
    text = (
        f"values are missed by more than chance: {'; '.join(missed.values())}. They contradict each other or the "
        "equation, or their sigma is too small"
    )
    return [Advice("contradiction", text, name) for name in missed]


def _worst_reading(posterior: Posterior, name: str) -> str:
    """The measurement that is farthest off, in words; nothing where none is a value at a point."""
    stated = next(s for s in posterior.problem.statements if s.name == name)
    if stated.points is None or stated.sigma is None or stated.stencil or len(stated.target) == 1:
        return ""
    seen = posterior.exact.predict(stated.points, stated.relation.text, points=True)["mean"].values
    off = np.abs(seen - stated.target) / stated.sigma
    worst = int(np.argmax(off))
    place = ", ".join(f"{axis} = {x[worst]:.4g}" for axis, x in stated.points.items())
    rest = float(np.sqrt(np.mean(np.delete(off, worst) ** 2)))
    alone = "; if it is a wrong reading, leave it out, or noise='student-t'" if off[worst] > ALONE * rest else ""
    return f"; the worst: {stated.target[worst]:.4g} at {place}, {off[worst]:.3g} sigma{alone}"


def is_missed(solution: Solution) -> bool:
    """Are values missed by more than chance?"""
    return any(advice.kind == "contradiction" for advice in solution.advice or ())


def error_misfits(model: Model, weights: Array) -> dict[str, tuple[float, int]]:
    """Chi-square of the errors of starts and walls that have weights, and their number: a standard normal each."""
    named = {s.error.name: s.name for s in model.problem.statements if s.error is not None}
    found = {named[key]: weights[z.block] for key, z in model.representation.latents.items() if key in named}
    return {name: (float(own @ own), len(own)) for name, own in found.items()}


def unfollowed(name: str, missed: float) -> Advice:
    """An equation, start or wall that is missed by many of the sigmas that we chose for it."""
    return Advice(
        "misfit",
        f"{name}: misses its values by {missed:.3g} sigma (root mean square), so it contradicts other conditions, or "
        "jumps where smooth features cannot; check the values, enlarge its sigma or add modes",
        name,
    )


def details_lost(axis: str, modes: int, share: float) -> Advice:
    """Modes that are too few for what the field became: a shock, a thin layer."""
    return Advice(
        "modes",
        f"the last of {modes} modes along {axis} still carry {share:.1g} of the field: details are lost that std does "
        f"not know of; try modes={{'{axis}': ...}} with more, or a smoother problem",
        axis,
    )


def unconstrained(problem: Problem, belief: Posterior) -> Iterator[Advice]:
    """Unknown coefficients whose posterior is their prior, or lies where the prior all but excludes it."""
    weights, std = belief.weight_mean, belief.weight_std
    for name in problem.unknowns:
        at = belief.representation.latents[name].block.start
        mean, variance = coefficient_prior(problem, name)
        sd = float(np.sqrt(variance))
        if std[at] > UNMOVED * sd and abs(weights[at] - mean) < 0.3 * sd:
            text = (
                f"nothing constrains the unknown {name!r}: its posterior is its prior; add observations that depend on "
                "it, or give its value"
            )
            yield Advice("unconstrained", text, name)
        away = abs(weights[at] - mean) / sd
        if away > EXCLUDED:
            text = (
                f"the unknown {name!r} lies {away:.2g} standard deviations from the mean of its prior: one of the two "
                "is wrong, or the modes are too few for the equation; check the equation, widen the prior or add modes"
            )
            yield Advice("excluded-by-prior", text, name)
