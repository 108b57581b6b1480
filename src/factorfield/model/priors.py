"""Priors of the weights, of one block and of a window of time; coefficients have the prior they were given."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.messages.gaussian import Diagonal
from factorfield.model.activation import Activation
from factorfield.model.basis import Departure
from factorfield.model.functions import coefficient_prior
from factorfield.model.representation import Representation
from factorfield.model.spectrum import Spectrum
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Problem

BROAD = 10.0  # prior sd of a state that nothing is known about, in units of the field's scale
OPEN = 1e3  # of what the equation settles: every window has its own, and together they must not speak about the state


def block_prior(problem: Problem, representation: Representation, scale: float, activation: Activation) -> Diagonal:
    """Every field weight N(0, s^2), s the pre-activation that gives the field's scale; coefficients as stated."""
    mean, variance = np.zeros(representation.size), np.empty(representation.size)
    reach = float(abs(activation.inverse(scale)))
    for name, form in representation.forms.items():
        for latent in form.latents:
            block = representation.latents[latent].block
            if name in problem.parameters:
                mean[block], variance[block] = coefficient_prior(problem, name)
            else:
                variance[block] = reach**2
    return Diagonal.from_moments(mean, variance)


def window_prior(
    problem: Problem, representation: Representation, scale: float, activation: Activation,
    spectra: Mapping[str, Spectrum], modes: Mapping[str, int], fastest: float,
) -> Diagonal:  # fmt: skip
    """Means and sds of a window's weights: the spectrum at the start, broad for what the equation settles."""
    reach = float(abs(activation.inverse(scale)))
    mean, sd = np.zeros(representation.size), np.full(representation.size, OPEN * reach)
    horizon = problem.domain[TIME].length
    for name, form in representation.forms.items():
        for latent_name in form.latents:
            latent = representation.latents[latent_name]
            if name in problem.parameters:
                mean[latent.block], variance = coefficient_prior(problem, name)
                sd[latent.block] = np.sqrt(variance)
                continue
            family = latent.basis.families[TIME]
            assert isinstance(family, Departure)
            across = latent.basis.size // family.size
            sd[latent.start : latent.start + across] = BROAD * reach
            if name in spectra and activation.name == "identity":
                count = modes[problem.domain.space[0]]
                sd[latent.start : latent.start + across] = np.concatenate(
                    [[spectra[name].constant], np.repeat(np.sqrt(spectra[name].variance[:count]), 2)]
                )
            rate = max(fastest, 1.0 / horizon)
            for order in range(1, family.states):
                block = slice(latent.start + order * across, latent.start + (order + 1) * across)
                sd[block] = BROAD * reach * rate**order
    return Diagonal.from_moments(mean, sd**2)
