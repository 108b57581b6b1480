"""Where in space the modes sit that a basis of waves leaves out.

A kink or a jump has waves of all lengths, and all of them are in phase there. So the finest waves that a basis holds,
those of its last octave, are large where the next ones are: the envelope of what the mean has of them tells the place.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from factorfield.model.basis import Fourier
from factorfield.posterior.gaussian import GaussianPosterior
from factorfield.problem.domain import TIME

Array = NDArray[np.float64]


def profile(window: GaussianPosterior, name: str, axis: str, grid: Mapping[str, Array], points: bool) -> Array:
    """The local share of what is left out, one on average over the axis: (times, places), or (points, 1).

    As much of it is even as the last octave's coefficients are uncertain: of noise no place can be told.
    """
    latent = window.representation.latents[name]
    departure, waves = latent.basis.families[TIME], latent.basis.families[axis]
    assert isinstance(waves, Fourier)
    fine = np.arange(2 * (waves.modes // 2) + 1, waves.size)  # sine and cosine in turn
    table = window.mean[latent.block].reshape(latent.basis.shape)[:, fine]
    start = latent.block.start + fine  # of a window's weights the first are its state at the start
    held, unsure = float(np.sum(table[0] ** 2)), float(np.sum(window.root[start] ** 2))
    coefficients = departure(grid[TIME]) @ table
    features = waves(grid[axis])[:, fine]
    turned = np.stack([features[:, 1::2], -features[:, 0::2]], axis=-1).reshape(features.shape)  # a quarter of a wave
    pairs = "nk,nk->n" if points else "nk,mk->nm"
    envelope = np.einsum(pairs, coefficients, features) ** 2 + np.einsum(pairs, coefficients, turned) ** 2
    energy = np.sum(coefficients**2, axis=1)
    local = held / max(held + unsure, 1e-300)
    shape = envelope.reshape(len(coefficients), -1) / np.maximum(energy, 1e-300)[:, None]
    return np.asarray(1.0 - local + local * shape, float)
