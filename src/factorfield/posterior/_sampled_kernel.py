"""Mean and variance over draws of u = g(z), in one pass over z."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from factorfield.compiled import compiled

Array = NDArray[np.float64]


@compiled(nogil=True)
def moments_of(z: Array, alpha: float, beta: float) -> tuple[Array, Array]:
    """z (draws, points); variances with the draws' own mean. Sums run over g - g(first draw): nothing cancels."""
    draws, points = z.shape
    shift, first, second = np.empty(points), np.zeros(points), np.zeros(points)
    for i in range(draws):
        for j in range(points):
            grown = math.exp(beta * abs(z[i, j])) - 1.0
            value = grown if z[i, j] > 0.0 else -alpha * grown
            if i == 0:
                shift[j] = value
            first[j] += value - shift[j]
            second[j] += (value - shift[j]) ** 2
    mean = first / draws
    return shift + mean, np.maximum(second - draws * mean**2, 0.0) / (draws - 1)
