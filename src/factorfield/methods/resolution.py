"""What modes leave out: the same problem solved with fewer of them along one axis tells, and with fewer still, how fast
more of them help.

The difference d of the two solutions is a function of the finer space. Where errors fall by the same factor from one
count to the next, which kinks and layers that are not resolved yet do, the error of the finer one is d times a known
share; errors of smooth fields fall faster, and the estimate is on the safe side. It is no bound but a Gaussian: d gives
its shape, so that every functional of the field, derivatives too, has the share of it that it had in d; and beside d
stands its derivative along the axis, which is large where d passes through zero.

Where data are noisy and leave modes open, solutions with more and fewer of them differ by what nobody knows. The belief
says so already: only what a weight is off by beyond its own standard deviation is an error of the representation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorfield.model.basis import Chebyshev, Departure, Family, Fourier
from factorfield.model.representation import Representation

Array = NDArray[np.float64]
FEWER = 2.0 / 3.0  # of the modes, in the solution that a model's own is compared with
SLOWEST = 0.5  # what is left of an error from one count of modes to the next, at most: beyond, nothing converges
FASTEST = 1e-3  # and at least: a lucky coincidence is no proof
GEOMETRIC = 2.0  # times what geometric convergence leaves, to be safe
NOTICED = 0.5  # of what the belief leaves open: numerical errors that are smaller hardly widen it
ROUNDING = 1e-13  # of the field: no error is smaller


@dataclass(frozen=True, eq=False)
class NumericalError:
    """A root of the covariance of the weights' errors, its size relative to the fields, and that of each axis alone.

    `left_open` is the size of what the belief itself leaves open, relative to the fields."""

    root: Array
    relative: float
    axes: Mapping[str, float]
    left_open: float = 0.0

    def is_met(self, tolerance: float) -> bool:
        """Is the error within the tolerance, or small beside what data leave open anyway?"""
        return self.relative <= max(tolerance, NOTICED * self.left_open)


def fewer(modes: int, least: int) -> int | None:
    """Modes to compare with: two thirds, at least two less because fields may be even or odd; None: too few."""
    count = min(int(FEWER * modes), modes - 2)
    return count if count >= least else None


def transferred(to: Representation, of: Representation, weights: Array, others: Array | None = None) -> Array:
    """Weights of one representation in another one with more or fewer modes; weights that it lacks are `others`, or 0.

    The first axis of `weights` is that of weights. Features are ordered from coarse to fine; latents whose features are
    not, such as a wall's error, are equally many in both, or left out.
    """
    found = np.zeros((to.size, *weights.shape[1:])) if others is None else np.array(others)
    for name, latent in to.latents.items():
        one, other = latent.basis, of.latents[name].basis
        if one.size == other.size:
            found[latent.block] = weights[of.latents[name].block]
        elif len(one.shape) == len(other.shape) and one.rotation is None is other.rotation:
            table = found[latent.block].reshape(*one.shape, *weights.shape[1:])
            common = tuple(slice(min(pair)) for pair in zip(one.shape, other.shape, strict=True))
            table[common] = weights[of.latents[name].block].reshape(*other.shape, *weights.shape[1:])[common]
            found[latent.block] = table.reshape(one.size, *weights.shape[1:])
    return found


def share_left(change: float, before: float | None) -> float:
    """Of a difference between two solutions, the part that the finer one is off by, to be on the safe side; `before` is
    the difference between the coarser one and a third, coarser still, if there is one."""
    rate = SLOWEST if before is None else change / before if before > 0.0 else FASTEST
    left = float(np.clip(rate, FASTEST, SLOWEST))
    return left / (1.0 - left)


def likely_part(share: float) -> float:
    """Of that share, the part that is likely where modes were fewer: with K/1.5^2, K/1.5 and K of them, errors that
    fall geometrically fall by r and then by r^1.5."""
    left = share / (1.0 + share)
    return min(1.0, GEOMETRIC * left**0.5)


def beyond(change: Array, std: Array) -> Array:
    """The part of differences between solutions that is larger than what the belief about the weights allows."""
    return np.asarray(np.sign(change) * np.maximum(np.abs(change) - std, 0.0), float)


def beside(representation: Representation, axis: str, change: Array, fields: Sequence[str]) -> Array:
    """The derivative of functions along an axis, times the distance to a wall where there are walls: large where the
    function passes through zero. Weights of other axes and latents are zero."""
    found = np.zeros_like(change)
    for name in fields:
        for unit in representation.forms[name].latents:
            latent = representation.latents[unit]
            if axis in latent.basis.axes:
                own = change[latent.block].reshape(*latent.basis.shape, *change.shape[1:])
                position = latent.basis.axes.index(axis)
                slope = _slope(latent.basis.families[axis])
                moved = np.moveaxis(np.tensordot(slope, own, axes=(1, position)), 0, position)
                found[latent.block] = moved.reshape(latent.basis.size, *change.shape[1:])
    return found


def field_sizes(representation: Representation, fields: Sequence[str], weights: Array) -> Array:
    """Root mean squares of fields over their axes, more often asked near walls."""
    found = []
    for name in fields:
        latent = representation.latents[representation.forms[name].latents[0]]
        values = weights[latent.block].reshape(latent.basis.shape)
        for family in latent.basis.families.values():
            values = np.asarray(np.tensordot(values, family(_points(family)), axes=(0, 1)), float)
        found.append(float(np.sqrt(np.mean(values**2))))
    return np.array(found)


def _slope(family: Family) -> Array:
    """A function's weights to those of its derivative, or of (1 - s^2) times it along an interval -1 <= s <= 1."""
    x = _points(family)
    rows = family(x, 1)
    if not isinstance(family, Fourier):
        rows = rows * np.sin(np.pi * (np.arange(len(x)) + 0.5) / len(x))[:, None] ** 2
    return np.asarray(np.linalg.lstsq(family(x), rows, rcond=None)[0], float)


def _points(family: Family) -> Array:
    """Twice as many as features: evenly around a ring, Chebyshev's on an interval."""
    count = 2 * family.size
    if isinstance(family, Fourier):
        return family.lower + np.arange(count) / count * family.period
    assert isinstance(family, Chebyshev | Departure)
    return family.lower + 0.5 * (1.0 - np.cos(np.pi * (np.arange(count) + 0.5) / count)) * (family.upper - family.lower)
