"""A window of time: its basis moved along, its state at the start, the map to its end; and the modes left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorfield.model.basis import Departure, Tensor
from factorfield.model.representation import Latent, Representation
from factorfield.problem.domain import TIME

Array = NDArray[np.float64]


def window_representation(template: Representation, lower: float, upper: float) -> Representation:
    """The same representation with every time axis moved to another window."""
    parts = []
    for name, form in template.forms.items():
        basis = template.latents[form.latents[0]].basis
        families = {
            axis: Departure(family.degree, lower, upper, family.states) if isinstance(family, Departure) else family
            for axis, family in basis.families.items()
        }
        parts.append((name, Tensor(families, basis.rotation), form))
    return Representation.build(parts)


def states_of(latent: Latent) -> int:
    """How many time derivatives at a window's start are weights of their own; one for what does not depend on time."""
    family = latent.basis.families.get(TIME)
    return family.states if isinstance(family, Departure) else 1


def layout(representation: Representation) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which weights of a window are its state at the start (unknown coefficients included), and which the rest."""
    state: list[int] = []
    for latent in representation.latents.values():
        basis = latent.basis
        count = basis.size
        family = basis.families.get(TIME)
        if isinstance(family, Departure):
            count = family.states * (basis.size // family.size)
        state += range(latent.start, latent.start + count)
    rest = np.setdiff1d(np.arange(representation.size), state)
    return np.array(state, int), rest


def end_map(representation: Representation) -> Array:
    """The state at the end of a window as a linear map of its weights."""
    state, _ = layout(representation)
    rows = np.zeros((len(state), representation.size))
    at = 0
    for latent in representation.latents.values():
        basis = latent.basis
        family = basis.families.get(TIME)
        if not isinstance(family, Departure):
            rows[at : at + basis.size, latent.block] = np.eye(basis.size)
            at += basis.size
            continue
        across = basis.size // family.size
        for order in range(family.states):
            values = family([family.upper], order)[0]
            rows[at : at + across, latent.block] = np.kron(values, np.eye(across))
            at += across
    return rows


@dataclass(frozen=True, eq=False)
class Tail:
    """Modes that the basis leaves out: wave numbers, variances at the start, complex rates of the linear equation."""

    axis: str
    wave: Array
    variance: Array
    rate: NDArray[np.complex128]

    def of(self, orders: Mapping[str, int], times: Array) -> Array:
        """Variance of a derivative of the left-out part at each time (from the start)."""
        grown = np.exp(2.0 * np.minimum(np.outer(times, self.rate.real), 0.0))
        size = self.wave ** (2 * orders.get(self.axis, 0)) * np.abs(self.rate) ** (2 * orders.get(TIME, 0))
        return grown @ (size * self.variance)
