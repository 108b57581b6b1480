"""How a factor is linearised: its tangent at a point, or the best line under a belief, in the space of functionals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from factorfield.model.representation import LatentRelation

Array = NDArray[np.float64]
Rule = Literal["taylor", "moments"]


@dataclass(frozen=True)
class Linearised:
    """relation(zeta) ~ value + slopes . (zeta - mean) + N(0, excess), factor by factor."""

    value: Array
    slopes: Array
    excess: Array
    explained: Array  # variance that the line carries: slopes' covariance slopes


def linearise(
    relation: LatentRelation,
    mean: Array,
    covariance: Array | None,
    parameters: Mapping[str, float],
    coordinates: Mapping[str, Array],
    rule: Rule = "moments",
) -> Linearised:
    """The line through a relation: its tangent at `mean` ("taylor"), or the best line under N(mean, covariance).

    mean (..., J), covariance (..., J, J). "moments" is exact for linear relations and for u = g(z), and a cubature
    of degree five (exact for relations up to second order in the functionals) otherwise.
    """
    if rule == "taylor" or covariance is None or relation.is_linear:
        value, slopes = relation.value_and_gradient(mean, parameters, coordinates)
        zero = np.zeros_like(value)
        carried = zero if covariance is None else np.einsum("...i,...ij,...j->...", slopes, covariance, slopes)
        return Linearised(value, slopes, zero, carried)
    activation = relation.is_activation
    if activation is not None:
        value, slope, excess = activation.linearise(mean[..., 0], covariance[..., 0, 0])
        return Linearised(value, slope[..., None], excess, slope**2 * covariance[..., 0, 0])
    return _cubature(relation, mean, covariance, parameters, coordinates)


def _cubature(
    relation: LatentRelation,
    mean: Array,
    covariance: Array,
    parameters: Mapping[str, float],
    coordinates: Mapping[str, Array],
) -> Linearised:
    """Moments by the fully symmetric rule of degree five; slopes are E[gradient] (Stein's lemma)."""
    nodes, weights = symmetric_rule(mean.shape[-1])
    root = covariance_root(covariance)
    value = np.zeros(mean.shape[:-1])
    second = np.zeros_like(value)
    slopes = np.zeros(mean.shape)
    centre = relation.value(mean, parameters, coordinates)  # moments about the centre do not cancel
    for node, weight in zip(nodes, weights, strict=True):
        shifted, gradient = relation.value_and_gradient(mean + root @ node, parameters, coordinates)
        value += weight * (shifted - centre)
        second += weight * (shifted - centre) ** 2
        slopes += weight * gradient
    explained = np.einsum("...i,...ij,...j->...", slopes, covariance, slopes)
    return Linearised(centre + value, slopes, np.maximum(second - value**2 - explained, 0.0), explained)


def symmetric_rule(size: int) -> tuple[Array, Array]:
    """Nodes and weights, exact for polynomials of degree five under N(0, I): centre, +-sqrt3 e_i, pairs of them."""
    reach = np.sqrt(3.0)
    unit = np.eye(size)
    nodes, weights = [np.zeros(size)], [1.0 + (size * size - 7.0 * size) / 18.0]
    for i in range(size):
        for sign in (reach, -reach):
            nodes.append(sign * unit[i])
            weights.append((4.0 - size) / 18.0)
    for i in range(size):
        for j in range(i):
            for first in (reach, -reach):
                for second in (reach, -reach):
                    nodes.append(first * unit[i] + second * unit[j])
                    weights.append(1.0 / 36.0)
    return np.array(nodes), np.array(weights)


def covariance_root(covariance: Array) -> Array:
    """A root L with L L' = covariance for (possibly singular) small matrices, batched."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :]
