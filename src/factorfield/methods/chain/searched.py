"""What a chain finds on the marginal likelihood: unknown numbers of a linear equation, and its start's spectrum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorfield.methods.chain.evidence import LinearWindows, NonlinearWindows
from factorfield.methods.marginal import Marginal, axis_points, integrated, of_numbers, slopes_by_numbers
from factorfield.model.model import WindowModel
from factorfield.posterior.numbers import Numbers
from factorfield.progress import Progress

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Searched:
    """The marginal of what was searched, the model it was searched with, and the numbers with their posterior."""

    model: WindowModel
    marginal: Marginal
    numbers: Numbers | None


def windows_of(model: WindowModel, most_iterations: int) -> LinearWindows | NonlinearWindows:
    """The model between its edges, at any position of what is searched."""
    return LinearWindows(model) if model.traits.linear else NonlinearWindows(model, most_iterations)


def search_marginal(
    model: WindowModel, windows: LinearWindows | NonlinearWindows, begin: Array, progress: Progress | None
) -> Marginal:
    """On windows that are given; without a start of the model's own, from the best of several places."""
    numbers = len(model.held)

    def evidence(place: Array) -> float:
        if progress is not None:
            progress("unknown coefficients from the marginal likelihood", 0.5)
        return windows.evidence(place)

    return integrated(evidence, begin, numbers, () if model.start else axis_points(len(begin), numbers))


def searched(model: WindowModel, windows: LinearWindows | NonlinearWindows, found: Marginal) -> Searched:
    """With the slopes of all weights by the numbers."""
    count, coordinates = len(model.held), model.coordinates
    if not count:
        return Searched(model, found, None)
    slopes = slopes_by_numbers(windows.means, coordinates[:count], found)
    mean, root = of_numbers(coordinates[:count], found)
    return Searched(model, found, Numbers(mean, root, slopes))
