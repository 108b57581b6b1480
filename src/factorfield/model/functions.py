"""Unknown coefficients in weights: a number is one weight, a function its own expansion with a smooth prior.

A function has the prior of a Gaussian process (Matern 5/2 of the stated length, so that two derivatives exist), written
in its principal components (Karhunen-Loeve): a rotation of Fourier or Chebyshev features whose weights are independent
and standard normal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from factorfield.model.basis import Tensor, family_for
from factorfield.model.representation import Form, Representation, coefficient_form
from factorfield.problem.coefficients import Unknown
from factorfield.problem.domain import Axis, Domain, Periodic
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
Part = tuple[str, Tensor, Form]
DEFAULT_LENGTH = 0.25  # of the axis: the default length
FINEST = 48  # features along an axis at most
LEFT_OUT = 1e-6  # of the variance: what the principal components may miss


def coefficient_parts(problem: Problem) -> list[Part]:
    """(name, basis, form) of every unknown number and function, after the fields in a representation."""
    numbers = [(name, Tensor({}), coefficient_form(name, u.positive)) for name, u in problem.unknowns.items()]
    return numbers + [_function_part(name, u, problem.domain) for name, u in problem.functions.items()]


def with_numbers(representation: Representation, problem: Problem) -> Representation:
    """A representation with the unknown numbers as its last weights, those that it has not yet."""
    bases = {unit: latent.basis for unit, latent in representation.latents.items()}
    parts = [(name, bases[form.latents[0]], form) for name, form in representation.forms.items()]
    added = [part for part in coefficient_parts(problem) if part[0] not in representation.forms]
    return Representation.build(parts + added)


def coefficient_prior(problem: Problem, name: str) -> tuple[float, float]:
    """Mean and variance of a coefficient's weights."""
    return problem.unknowns[name].latent_moments if name in problem.unknowns else (0.0, 1.0)


def _function_part(name: str, unknown: Unknown, domain: Domain) -> Part:
    axes = tuple(axis for axis in domain.names if axis in unknown.over)
    mean, variance = unknown.latent_moments
    families, covariance = {}, np.full((1, 1), variance)
    for axis in axes:
        length = unknown.length or DEFAULT_LENGTH * domain[axis].length
        modes = features_of(unknown, domain[axis])
        families[axis] = family_for(domain[axis], modes)
        covariance = np.kron(covariance, _coefficient_covariance(domain[axis], modes, length))
    values, vectors = np.linalg.eigh(covariance)
    values, vectors = values[::-1], vectors[:, ::-1]
    kept = int(np.searchsorted(np.cumsum(values) / values.sum(), 1.0 - LEFT_OUT)) + 1
    rotation = vectors[:, :kept] * np.sqrt(np.maximum(values[:kept], 0.0))
    link = "exp" if unknown.positive else "activation"
    return name, Tensor(families, np.ascontiguousarray(rotation)), Form((name,), axes, link=link, offset=mean)


def features_of(unknown: Unknown, axis: Axis) -> int:
    """Frequencies or degrees along an axis that follow an unknown function."""
    turns = axis.length / (unknown.length or DEFAULT_LENGTH * axis.length)
    return int(np.clip(np.ceil((2.0 if isinstance(axis, Periodic) else 4.0) * turns), 6, FINEST))


def _coefficient_covariance(axis: Axis, modes: int, length: float) -> Array:
    """Covariance of the features' coefficients of a process with unit variance: least squares at many points."""
    family = family_for(axis, modes)
    x = axis.collocation(3 * family.size)
    gap = np.abs(x[:, None] - x[None, :])
    if isinstance(axis, Periodic):  # as the crow flies across the circle
        gap = axis.length / np.pi * np.sin(np.pi * gap / axis.length)
    scaled = np.sqrt(5.0) * gap / length
    kernel = (1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled)
    solve = np.linalg.pinv(family(x))
    return np.asarray(solve @ kernel @ solve.T, float)
