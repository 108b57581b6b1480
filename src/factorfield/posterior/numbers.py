"""Unknown numbers beside the weights of windows: what is believed about them, and how the weights follow them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorfield.posterior.base import shaped

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Numbers:
    """N(mean, root root') of the numbers' latents; a window's weights move by slopes[window] when they do."""

    mean: Array
    root: Array
    slopes: Array  # (windows, weights, numbers)

    def extended(self, index: int, mean: Array, root: Array) -> tuple[Array, Array]:
        """A window's belief given the numbers at their mean, extended by the numbers and what they make uncertain."""
        given = np.vstack([root, np.zeros((len(self.mean), root.shape[1]))])
        return np.concatenate([mean, self.mean]), np.column_stack([given, self.shared_root(index)])

    def shared_root(self, index: int) -> Array:
        """What the numbers' noises, the same for all windows, do to a window's weights and to the numbers."""
        return np.vstack([self.slopes[index] @ self.root, self.root])

    def drawn(self, path: Array, rng: np.random.Generator) -> Array:
        """A path of windows drawn given the numbers at their mean, moved to numbers that are drawn."""
        away = self.root @ rng.standard_normal(len(self.mean))
        numbers = np.broadcast_to(self.mean + away, (len(path), len(self.mean)))
        return np.column_stack([path + self.slopes @ away, numbers])

    def arrays(self) -> dict[str, Array]:
        return {"numbers_mean": self.mean, "numbers_root": self.root, "numbers_slopes": self.slopes}

    @staticmethod
    def from_arrays(arrays: Mapping[str, Array], size: int) -> Numbers | None:
        """From a file, whose representation has `size` weights, the numbers among them."""
        if "numbers_mean" not in arrays:
            return None
        mean = shaped(arrays, "numbers_mean", None)
        count, windows = len(mean), len(shaped(arrays, "chain_edges", None)) - 1
        root = shaped(arrays, "numbers_root", count, count)
        return Numbers(mean, root, shaped(arrays, "numbers_slopes", windows, size - count, count))
