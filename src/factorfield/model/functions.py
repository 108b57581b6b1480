"""Unknown coefficients in weights: a number is one weight, a function its own expansion with a smooth prior.

A function has the prior of a Gaussian process (Matern 5/2 of the stated length, so that two derivatives exist), written
in its principal components (Karhunen-Loeve): a rotation of Fourier or Chebyshev features whose weights are independent
and standard normal.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.model.basis import Tensor, family_for
from factorfield.model.representation import Form, coefficient_form
from factorfield.problem.coefficients import Unknown
from factorfield.problem.domain import Axis, Domain, Periodic
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
Part = tuple[str, Tensor, Form]
DEFAULT_LENGTH = 0.25  # of the axis: the default length
FINEST = 48  # features along an axis at most
MOST_FEATURES = 2500  # of all unknown functions together
LEFT_OUT = 1e-6  # of the variance: what the principal components may miss


def coefficient_parts(problem: Problem) -> list[Part]:
    """(name, basis, form) of every unknown number and function, after the fields in a representation."""
    _check_features(problem)
    numbers = [(name, Tensor({}), coefficient_form(name, u.positive)) for name, u in problem.unknowns.items()]
    return numbers + [_function_part(name, u, problem.domain) for name, u in problem.functions.items()]


def coefficient_prior(problem: Problem, name: str) -> tuple[float, float]:
    """Mean and variance of a coefficient's weights."""
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
    families = {}
    values, vectors = np.ones(1), np.ones((1, 1))
    for axis in axes:  # the components of a product of kernels are the products of theirs
        length = unknown.length or DEFAULT_LENGTH * domain[axis].length
        modes = features_of(unknown, domain[axis])
        families[axis] = family_for(domain[axis], modes)
        scale = variance if axis == axes[0] else 1.0
        own, across = np.linalg.eigh(scale * _coefficient_covariance(domain[axis], modes, length))
        values, vectors = np.kron(values, own), np.kron(vectors, across)
    order = np.argsort(values, kind="stable")[::-1]
    values, vectors = values[order], vectors[:, order]
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
    scaled = np.minimum(np.sqrt(5.0) * gap / length, 700.0)  # farther, the kernel is zero and squares overflow
    kernel = (1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled)
    solve = np.linalg.pinv(family(x))
    return np.asarray(solve @ kernel @ solve.T, float)
