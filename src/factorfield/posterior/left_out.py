"""Where in space the modes sit that a basis of waves leaves out.

A kink or a jump has waves of all lengths, and all of them are in phase there. So the finest waves that a basis holds,
those of its last octave, are large where the next ones are: the envelope of what the mean has of them tells the place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorfield.model.basis import Family, Fourier
from factorfield.posterior.gaussian import GaussianPosterior
from factorfield.problem.domain import TIME

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LastOctave:
    """The finest waves of a window's mean: polynomials in time of their sines and cosines in turn.

    `sure` is the share of them that is no uncertainty of their coefficients: of noise no place can be told.
    """

    in_time: Family
    axis: str
    waves: Fourier
    weights: Array  # (polynomials, waves)
    sure: float

    @staticmethod
    def of(window: GaussianPosterior, name: str, axis: str) -> LastOctave:
        latent = window.representation.latents[name]
        waves = latent.basis.families[axis]
        assert isinstance(waves, Fourier)
        fine = np.arange(_first(waves), waves.size)
        weights = window.mean[latent.block].reshape(latent.basis.shape)[:, fine]
        start = latent.block.start + fine  # of a window's weights the first are its state at the start
        held, unsure = float(np.sum(weights[0] ** 2)), float(np.sum(window.root[start] ** 2))
        return LastOctave(latent.basis.families[TIME], axis, waves, weights, held / max(held + unsure, 1e-300))

    def share(self, grid: Mapping[str, Array], points: bool) -> Array:
        """The local share of what is left out, one on average over the axis: (times, places), or (points, 1)."""
        coefficients = self.in_time(grid[TIME]) @ self.weights
        features = self.waves(grid[self.axis])[:, _first(self.waves) :]
        turned = np.stack([features[:, 1::2], -features[:, 0::2]], axis=-1).reshape(features.shape)  # a quarter wave
        pairs = "nk,nk->n" if points else "nk,mk->nm"
        envelope = np.einsum(pairs, coefficients, features) ** 2 + np.einsum(pairs, coefficients, turned) ** 2
        energy = np.maximum(np.sum(coefficients**2, axis=1), 1e-300)[:, None]
        return np.asarray(1.0 - self.sure + self.sure * envelope.reshape(len(energy), -1) / energy, float)


def _first(waves: Fourier) -> int:
    """The feature with which the last octave begins."""
    return 2 * (waves.modes // 2) + 1
