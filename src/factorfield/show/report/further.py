"""What a report says about further measurements: where they would tell most, and how coefficients go together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factorfield.solution import Solution

COUNT = 5
MOST_WEIGHTS = 3000  # of one window or block: a report should take no longer than a solve


@dataclass(frozen=True)
class Further:
    """Places for further measurements, in the order of their use, each with the std that it leaves."""

    of: str
    sigma: float
    now: float
    places: tuple[tuple[tuple[tuple[str, float], ...], float], ...]  # coordinates by axis, and the std after


def further(solution: Solution) -> Further | None:
    """For the first field as a whole; None where nothing was measured, no std is known, or it would take long."""
    of, size = solution.problem.fields[0], solution.posterior.representation.size
    if of not in solution.posterior.noise or size > MOST_WEIGHTS or solution.status == "diverged":
        return None
    if not np.all(np.isfinite(solution.posterior.weight_std)):
        return None
    found = solution.next_measurements(COUNT, of=of)
    axes = solution.problem.domain.names
    where = zip(*(found[name].values.tolist() for name in axes), strict=True)
    places = tuple(
        (tuple(zip(axes, place, strict=True)), std)
        for place, std in zip(where, found["std"].values.tolist(), strict=True)
    )
    return Further(of, float(found.attrs["sigma"]), float(found["std_now"]), places)


def correlations(solution: Solution) -> list[tuple[str, str, float]]:
    """Of every two unknown coefficients."""
    names = list(solution.problem.unknowns)
    if len(names) < 2:
        return []
    table = solution.correlation().values
    return [(names[i], names[j], float(table[i, j])) for i in range(len(names)) for j in range(i)]
