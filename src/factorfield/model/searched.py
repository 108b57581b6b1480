"""Quantities that are found on the marginal likelihood, outside the weights: unknown numbers, the start's spectrum.

With unknown numbers held, an equation that is linear in its fields stays linear, and what the measurements say about
the numbers is the evidence: all weights integrated out. Searched together with loosely known weights instead, a number
would follow the noise, because the determinant of the weights is missing.

The spectrum is that of a start which only later measurements tell: coefficients a_k ~ N(0, p_k) with p_k proportional
to (1 + |k / k_0|^2)^(-2). Its parameters are the corner frequency k_0 and, for every field, the root mean square A of
what varies: unlike the size of single coefficients, the data tell it whatever k_0 is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorfield.model.basis import Departure, Fourier, Tensor
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
AMPLITUDE_SPREAD, CORNER, CORNER_SPREAD = 1.5, 3.0, 1.0  # of the weak priors of log A and log k_0
DECAY = 2.0  # of the amplitude, beyond the corner: a field with one continuous derivative
CONSTANT = 3.0  # prior sd of the constant, about the field's offset, in amplitudes
CORNER_NAME = "corner of the start's spectrum"


@dataclass(frozen=True)
class Coordinate:
    """One searched quantity: mean + std z with z ~ N(0, 1) is its value, or the logarithm of it."""

    name: str
    mean: float
    std: float
    is_logarithm: bool

    def latent(self, z: float) -> float:
        return self.mean + self.std * z

    def value(self, z: float) -> float:
        return math.exp(min(self.latent(z), 700.0)) if self.is_logarithm else self.latent(z)


def position(coordinates: Sequence[Coordinate], start: Mapping[str, float]) -> Array:
    """Where a search begins: at latent values that are named, else in the middle of the prior."""
    return np.array([(start[each.name] - each.mean) / each.std if each.name in start else 0.0 for each in coordinates])


def latents(coordinates: Sequence[Coordinate], position: Array) -> dict[str, float]:
    """The latent values at a position, by name."""
    return {each.name: each.latent(float(z)) for each, z in zip(coordinates, position, strict=True)}


def number_coordinates(problem: Problem) -> tuple[Coordinate, ...]:
    """Of the unknown numbers, with their own priors."""
    found = []
    for name, unknown in problem.unknowns.items():
        mean, variance = unknown.latent_moments
        found.append(Coordinate(name, mean, math.sqrt(variance), unknown.positive))
    return tuple(found)


@dataclass(frozen=True)
class StartSpectrum:
    """The prior of a start that only later measurements tell: amplitudes by field, and the corner frequency."""

    amplitudes: Mapping[str, float]
    corner: float
    rate: float  # of the fastest wave, for states that are time derivatives

    def coordinates(self) -> tuple[Coordinate, ...]:
        amplitudes = [
            Coordinate(_amplitude_name(name), math.log(size), AMPLITUDE_SPREAD, True)
            for name, size in self.amplitudes.items()
        ]
        return (*amplitudes, Coordinate(CORNER_NAME, math.log(self.corner), CORNER_SPREAD, True))

    def at(self, values: Mapping[str, float]) -> StartSpectrum:
        """With other parameters, by the names of their coordinates; those not named stay."""
        amplitudes = {name: values.get(_amplitude_name(name), size) for name, size in self.amplitudes.items()}
        return StartSpectrum(amplitudes, values.get(CORNER_NAME, self.corner), self.rate)

    def deviations(self, name: str, basis: Tensor) -> Array:
        """Prior sds of a field's state at the start: its coefficients, and those of its time derivatives."""
        frequencies, squares = np.zeros(1), np.ones(1)
        for axis, family in basis.families.items():
            if axis != TIME:
                along = np.arange(family.size)
                own = (along + 1) // 2 if isinstance(family, Fourier) else 0.5 * along
                frequencies = np.hypot(frequencies[:, None], own).ravel()
                squares = np.outer(squares, np.where(along > 0, 0.5, 1.0)).ravel()  # a wave has a mean square of a half
        shape = (1.0 + (frequencies / self.corner) ** 2) ** (-0.5 * DECAY)
        varying = np.sqrt(np.sum(squares[1:] * shape[1:] ** 2))
        sd = self.amplitudes[name] / varying * shape
        sd[0] = CONSTANT * self.amplitudes[name]
        departure = basis.families[TIME]
        assert isinstance(departure, Departure)
        rates = self.rate * np.maximum(frequencies, 1.0) / max(float(frequencies.max()), 1.0)
        return np.concatenate([sd * rates**order for order in range(departure.states)])


def _amplitude_name(field: str) -> str:
    return f"amplitude of {field} at the start"
