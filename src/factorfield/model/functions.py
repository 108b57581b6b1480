"""Unknown coefficients in weights: a number is one weight, a function its own expansion with a smooth prior.

A function has the prior of a Gaussian process (Matern 5/2 of the stated length, so that two derivatives exist), written
in its principal components (Karhunen-Loeve): a rotation of Fourier or Chebyshev features whose weights are independent
and standard normal. The errors of starts and walls (face_errors.py) are such functions too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.model.basis import Tensor, family_for
from factorfield.model.representation import Form, Representation, coefficient_form
from factorfield.problem.coefficients import DEFAULT_LENGTH, Unknown
from factorfield.problem.domain import Axis, Domain, Periodic
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
Part = tuple[str, Tensor, Form]
FINEST = 48  # features along an axis at most
MOST_FEATURES = 2500  # of all unknown functions together
FINER = 1.5  # than a function that is only drawn: beside what data leave, the short waves of the prior count
LEFT_OUT = 1e-6  # of the variance: what the principal components may miss


def coefficient_parts(problem: Problem) -> list[Part]:
    """(name, basis, form) of every unknown number and function, after the fields in a representation."""
    _check_features(problem)
    numbers = [(name, Tensor({}), coefficient_form(name, u.positive)) for name, u in problem.unknowns.items()]
    return numbers + [_function_part(name, u, problem.domain) for name, u in problem.functions.items()]


def with_numbers(representation: Representation, problem: Problem) -> Representation:
    """A representation with the unknown numbers as its last weights, those that it has not yet."""
    bases = {unit: latent.basis for unit, latent in representation.latents.items()}
    parts = [(name, bases[form.latents[0]], form) for name, form in representation.forms.items()]
    added = [part for part in coefficient_parts(problem) if part[0] not in representation.forms]
    return Representation.build(parts + added)


def coefficient_prior(problem: Problem, name: str) -> tuple[float, float]:
    """Mean and variance of the weights of a coefficient, or of an error; a function's are standard normal."""
    return problem.unknowns[name].latent_moments if name in problem.unknowns else (0.0, 1.0)


def _check_features(problem: Problem) -> None:
    """Refuse functions that would need more features than their principal components can be found of."""
    total = 0
    for name, unknown in problem.functions.items():
        axes = [problem.domain[axis] for axis in unknown.over]
        total += math.prod(family_for(axis, features_of(unknown, axis)).size for axis in axes)
        if total > MOST_FEATURES:
            received = f"{total} up to {name}"
            raise expected(f"unknown functions of at most {MOST_FEATURES} features", received, "a larger length")


@lru_cache(maxsize=64)  # a model asks for them several times
def _function_part(name: str, unknown: Unknown, domain: Domain) -> Part:
    axes = tuple(axis for axis in domain.names if axis in unknown.over)
    mean, variance = unknown.latent_moments
    lengths = {axis: unknown.length or DEFAULT_LENGTH * domain[axis].length for axis in axes}
    counts = {axis: features_of(unknown, domain[axis]) for axis in axes}
    link = "exp" if unknown.positive else "activation"
    basis = principal_components(domain, lengths, counts, variance, LEFT_OUT)
    return name, basis, Form((name,), axes, link=link, offset=mean)


def principal_components(
    domain: Mapping[str, Axis],
    lengths: Mapping[str, float],
    counts: Mapping[str, int],
    variance: float,
    left_out: float,
) -> Tensor:
    """The basis of a process over the axes of `lengths` whose weights are standard normal, the largest ones first.

    As many as leave out less than this share of the variance. On a product of axes they are products too.
    """
    values, vectors = np.full(1, variance), np.ones((1, 1))
    for axis, length in lengths.items():
        along, directions = np.linalg.eigh(_coefficient_covariance(domain[axis], counts[axis], length))
        values, vectors = np.kron(values, np.maximum(along, 0.0)), np.kron(vectors, directions)
        order = np.argsort(-values, kind="stable")
        values, vectors = values[order], vectors[:, order]
    kept = int(np.searchsorted(np.cumsum(values) / values.sum(), 1.0 - left_out)) + 1
    rotation = np.ascontiguousarray(vectors[:, :kept] * np.sqrt(values[:kept]))
    return Tensor({axis: family_for(domain[axis], counts[axis]) for axis in lengths}, rotation)


def features_of(unknown: Unknown, axis: Axis) -> int:
    """Frequencies or degrees along an axis that follow an unknown function, also where data leave little of it open."""
    return features_along(axis, (unknown.length or DEFAULT_LENGTH * axis.length) / FINER)


def features_along(axis: Axis, length: float) -> int:
    """Frequencies or degrees along an axis that follow a function which varies over a length."""
    turns = axis.length / length
    return int(np.clip(np.ceil((2.0 if isinstance(axis, Periodic) else 4.0) * turns), 6, FINEST))


def followed_length(axis: Axis, count: int) -> float:
    """The shortest length of a function that so many frequencies or degrees follow with its size everywhere."""
    return (1.0 if isinstance(axis, Periodic) else 2.0) * axis.length / count


def _coefficient_covariance(axis: Axis, modes: int, length: float) -> Array:
    """Covariance of the features' coefficients of a process with unit variance: least squares at many points."""
    family = family_for(axis, modes)
    x = axis.collocation(3 * family.size)
    gap = np.abs(x[:, None] - x[None, :])
    if isinstance(axis, Periodic):  # as the crow flies across the circle
        gap = axis.length / np.pi * np.sin(np.pi * gap / axis.length)
    scaled = np.minimum(np.sqrt(5.0) * gap / length, 700.0)  # farther, the kernel is zero and squares overflow
    kernel = (1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled)
    solve = np.linalg.pinv(family(x))
    return np.asarray(solve @ kernel @ solve.T, float)
