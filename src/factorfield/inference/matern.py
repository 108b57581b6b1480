"""Matern processes of smoothness 5/2: over time as a state-space model, over space by their covariance.

Over time the state is (z, length z', length^2 z''). At equal nodes it is a Markov chain; between two nodes z is the
quintic polynomial through both states. Later nodes do not change what earlier ones say, so that a process is extended
by appending nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.problem.domain import Axis, Periodic

Array = NDArray[np.float64]
STATE = 3  # entries of the state over time
RATE = float(np.sqrt(5.0))
# the covariance of the state at one instant, derivatives in units of the process's length
STATIONARY = np.array([[1.0, 0.0, -5.0 / 3.0], [0.0, 5.0 / 3.0, 0.0], [-5.0 / 3.0, 0.0, 25.0]])


@dataclass(frozen=True)
class Resolution:
    """How finely a random function is represented."""

    nodes_per_length: float = 4.0  # over time: the variance between nodes is then right to 2e-5
    cells_per_length: float = 8.0  # over space: the variance between places is then right to 1e-5
    fewest_cells: int = 8
    dropped: float = 1e-7  # of the variance: directions of a function of space that have less in all


RESOLUTION = Resolution()


def kernel(distance: Array, length: float) -> Array:
    """Of unit variance."""
    scaled = np.minimum(np.sqrt(5.0) * distance / length, 700.0)
    return np.asarray((1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled), float)


def distances(axis: Axis, x: Array, y: Array) -> Array:
    """Between places on an axis; across the circle on a ring."""
    gap = np.abs(x[:, None] - y[None, :])
    if isinstance(axis, Periodic):
        return np.asarray(axis.length / np.pi * np.sin(np.pi * gap / axis.length), float)
    return gap


@dataclass(frozen=True)
class TimeNodes:
    """Functions of time that interpolate states (z, length z', length^2 z'') at equal nodes from `begin` on."""

    begin: float
    spacing: float
    count: int
    length: float

    @staticmethod
    def covering(begin: float, end: float, length: float, resolution: Resolution = RESOLUTION) -> TimeNodes:
        spacing = length / resolution.nodes_per_length
        return TimeNodes(begin, spacing, int(np.ceil((end - begin) / spacing - 1e-9)) + 1, length)

    def until(self, end: float) -> TimeNodes:
        """The same nodes and as many more as reach a later end."""
        wanted = int(np.ceil((end - self.begin) / self.spacing - 1e-9)) + 1
        return replace(self, count=max(wanted, self.count))

    @property
    def size(self) -> int:
        return STATE * self.count

    @property
    def end(self) -> float:
        return self.begin + self.spacing * (self.count - 1)

    def features(self, t: Array, order: int = 0) -> Array:
        t = np.asarray(t, float)
        at = (t - self.begin) / self.spacing
        node = np.clip(np.floor(at), 0, self.count - 2).astype(int)
        share = at - node
        powers = np.zeros((len(t), 6))
        for degree in range(order, 6):
            factor = np.prod(np.arange(degree, degree - order, -1)) if order else 1.0
            powers[:, degree] = factor * share ** (degree - order)
        scale = np.array([1.0, self.spacing / self.length, (self.spacing / self.length) ** 2] * 2)
        values = powers @ _hermite() * scale / self.spacing**order
        result = np.zeros((len(t), self.size))
        columns = STATE * node[:, None] + np.arange(2 * STATE)
        np.put_along_axis(result, columns, values, axis=1)
        return result

    def transition(self, length: float) -> tuple[Array, Array]:
        """F and a root of Q in state' = F state + root noise, for a process of unit variance and one step."""
        drift = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [-(RATE**3), -3.0 * RATE**2, -3.0 * RATE]])
        step = linalg.expm(drift * self.spacing / length)
        noise = _root(STATIONARY - step @ STATIONARY @ step.T)
        scale = (self.length / length) ** np.arange(STATE)  # derivatives in units of the nodes' length
        return scale[:, None] * step / scale, scale[:, None] * noise

    def first(self, length: float) -> Array:
        """A root of the covariance of the state at one instant."""
        return np.asarray((self.length / length) ** np.arange(STATE)[:, None] * _root(STATIONARY))

    def root(self, length: float) -> Array:
        """From independent standard normal numbers, three a node, to the states of all nodes."""
        step, noise = self.transition(length)
        result = np.zeros((self.size, self.size))
        result[:STATE, :STATE] = self.first(length)
        for node in range(1, self.count):
            now, before = (slice(STATE * n, STATE * (n + 1)) for n in (node, node - 1))
            result[now] = step @ result[before]
            result[now, now] = noise
        return result

    def spec(self) -> dict[str, Any]:
        return {"begin": self.begin, "spacing": self.spacing, "count": self.count, "length": self.length}


def _root(covariance: Array) -> Array:
    """A square root that bears rounding."""
    values, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)), float)


def _hermite() -> Array:
    """Columns: coefficients of the quintic polynomials on [0, 1] with one of value, slope, curvature at one end."""
    conditions = np.zeros((6, 6))
    for order in range(3):
        conditions[order, order] = float(np.prod(np.arange(1, order + 1)))
        for degree in range(order, 6):
            conditions[3 + order, degree] = float(np.prod(np.arange(degree, degree - order, -1)))
    return np.asarray(np.linalg.inv(conditions), float)
