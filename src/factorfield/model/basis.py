"""Features: one family per axis with derivatives of any order, their tensor product, and the paper's rotation.

A 1-D family is any class with `size`, `spec()` and `__call__(x, order)` returning the (points, size) matrix of the
order-th derivatives in physical units; the map from the axis to the family's own variable is inside the family.

Features over the whole axis are ordered from coarse to fine: what the last ones carry tells whether there are enough
(`last_modes`). Local ones are in splines.py and graded.py.
`check_orders`, `last_modes` and the quadrature weights in windowed.py assume more: polynomials on intervals, waves on
periodic axes. Along time in windows the family can only be `Departure`, whose first weights are the state.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from factorfield.model.graded import GradedSpline
from factorfield.model.splines import Spline
from factorfield.problem.domain import Axis, Orders, Periodic, Points

Array = NDArray[np.float64]


class Family(Protocol):
    """Features along one axis."""

    @property
    def size(self) -> int: ...

    def __call__(self, x: ArrayLike, order: int = 0) -> Array: ...

    def spec(self) -> dict[str, Any]: ...


FEW_POINTS = 4096  # so many points' features are kept for the next call


@dataclass(frozen=True)
class Fourier:
    """[1, sin(2 pi s), cos(2 pi s), sin(4 pi s), ...] with s = (x - lower) / period; `modes` frequencies."""

    modes: int
    lower: float = 0.0
    period: float = 1.0

    @property
    def size(self) -> int:
        return 2 * self.modes + 1

    def __call__(self, x: ArrayLike, order: int = 0) -> Array:
        x = np.atleast_1d(np.asarray(x, float))
        return self._kept(x.tobytes(), order) if x.size <= FEW_POINTS else self._made(x, order)

    @lru_cache(maxsize=32)  # noqa: B019 - a frozen value; every window of a chain asks for the same points
    def _kept(self, x: bytes, order: int) -> Array:
        features = self._made(np.frombuffer(x), order)
        features.flags.writeable = False
        return features

    def _made(self, x: Array, order: int) -> Array:
        rate = 2.0 * np.pi * np.arange(1, self.modes + 1) / self.period
        angle = np.outer(x - self.lower, rate)
        sine, cosine = np.sin(angle), np.cos(angle)
        for _ in range(order % 4):  # d sin = cos, d cos = -sin
            sine, cosine = cosine, -sine
        features = np.empty((len(x), self.size))
        features[:, 0] = 1.0 if order == 0 else 0.0
        features[:, 1::2] = sine * rate**order
        features[:, 2::2] = cosine * rate**order
        return features

    def spec(self) -> dict[str, Any]:
        return {"family": "fourier", "modes": self.modes, "lower": self.lower, "period": self.period}


@dataclass(frozen=True)
class Chebyshev:
    """T_0 .. T_degree of the variable mapped from [lower, upper] to [-1, 1]."""

    degree: int
    lower: float = -1.0
    upper: float = 1.0

    @property
    def size(self) -> int:
        return self.degree + 1

    def __call__(self, x: ArrayLike, order: int = 0) -> Array:
        x = np.atleast_1d(np.asarray(x, float))
        return self._kept(x.tobytes(), order) if x.size <= FEW_POINTS else self._made(x, order)

    @lru_cache(maxsize=128)  # noqa: B019 - a frozen value; windows and searches ask for the same points
    def _kept(self, x: bytes, order: int) -> Array:
        features = self._made(np.frombuffer(x), order)
        features.flags.writeable = False
        return features

    def _made(self, x: Array, order: int) -> Array:
        half = 0.5 * (self.upper - self.lower)
        s = (x - self.lower) / half - 1.0
        # Differentiating T_{n+1} = 2 s T_n - T_{n-1} k times keeps the three-term form and its stability.
        below = np.zeros((self.size, len(s)))
        for k in range(order + 1):
            current = np.zeros((self.size, len(s)))
            if k == 0:
                current[0] = 1.0
            if self.size > 1:
                current[1] = s if k == 0 else (1.0 if k == 1 else 0.0)
            for n in range(1, self.degree):
                current[n + 1] = 2.0 * s * current[n] - current[n - 1] + 2.0 * k * below[n]
            below = current
        return np.ascontiguousarray(below.T) / half**order

    def spec(self) -> dict[str, Any]:
        return {"family": "chebyshev", "degree": self.degree, "lower": self.lower, "upper": self.upper}


@dataclass(frozen=True)
class Departure:
    """A window of time: 1, (t - lower), ... for the state at its start, then polynomials that depart from it.

    The first `states` weights are the field and its time derivatives at `lower`; the others multiply Chebyshev
    polynomials less their Taylor part there, so that they do not touch the state.
    """

    degree: int
    lower: float
    upper: float
    states: int = 1

    @property
    def size(self) -> int:
        return self.degree + 1

    def __call__(self, x: ArrayLike, order: int = 0) -> Array:
        times = np.atleast_1d(np.asarray(x, float)) - self.lower
        plain = Chebyshev(self.degree, self.lower, self.upper)
        features = plain(x, order).copy()
        for k in range(self.states):
            power = self._power(times, k, order)
            features[:, self.states :] -= np.outer(power / math.factorial(k), plain([self.lower], k)[0, self.states :])
            features[:, k] = power / math.factorial(k)
        return features

    @staticmethod
    def _power(times: Array, power: int, order: int) -> Array:
        if order > power:
            return np.zeros_like(times)
        return math.perm(power, order) * times ** (power - order)

    def spec(self) -> dict[str, Any]:
        return {
            "family": "departure", "degree": self.degree, "lower": self.lower, "upper": self.upper,
            "states": self.states,
        }  # fmt: skip


def family_for(axis: Axis, resolution: int) -> Family:
    """What suits an axis: Fourier where it is periodic, Chebyshev on an interval."""
    if isinstance(axis, Periodic):
        return Fourier(resolution, axis.lower, axis.length)
    return Chebyshev(resolution, axis.lower, axis.upper)


def family_from_spec(spec: Mapping[str, Any]) -> Family:
    families: dict[str, Callable[..., Family]] = {
        "fourier": Fourier, "chebyshev": Chebyshev, "departure": Departure, "spline": Spline,
        "graded spline": GradedSpline.from_spec,
    }  # fmt: skip
    arguments = {key: value for key, value in spec.items() if key != "family"}
    return families[spec["family"]](**arguments)


@dataclass(frozen=True, eq=False)
class Tensor:
    """phi(x) = rotation' kron(family_1(x_1), family_2(x_2), ...), first axis slowest.

    Weights are coordinates in the rotated features; `raw` maps them to the plain Kronecker features, where
    prediction on grids works axis by axis. Without axes it is the single feature 1: an unknown number.
    """

    families: Mapping[str, Family]
    rotation: Array | None = None
    axes: tuple[str, ...] = field(init=False)
    shape: tuple[int, ...] = field(init=False)  # features per axis
    raw_size: int = field(init=False)  # before rotation
    size: int = field(init=False)

    def __post_init__(self) -> None:
        shape = tuple(family.size for family in self.families.values())
        raw_size = int(np.prod(shape, dtype=int))
        size = raw_size if self.rotation is None else self.rotation.shape[1]
        for name, value in (("axes", tuple(self.families)), ("shape", shape), ("raw_size", raw_size), ("size", size)):
            object.__setattr__(self, name, value)

    def matrices(self, axes: Mapping[str, ArrayLike], orders: Orders = ()) -> list[Array]:
        """Per-axis feature matrices: all that a tensor grid needs."""
        times = dict(orders)
        return [family(axes[name], times.get(name, 0)) for name, family in self.families.items()]

    def rows(self, points: Points, orders: Orders = (), count: int | None = None) -> Array:
        """Features (rotated) at scattered points, shape (points, size)."""
        if not self.families:
            if count is None:
                count = len(next(iter(points.values())))
            return np.ones((count, 1))
        product = None
        for matrix in self.matrices(points, orders):
            product = matrix if product is None else row_kron(product, matrix)
        assert product is not None
        return product if self.rotation is None else product @ self.rotation

    def raw(self, weights: Array) -> Array:
        """Coordinates in the Kronecker features of vectors (first axis) given in the rotated ones."""
        return weights if self.rotation is None else self.rotation @ weights

    @property
    def constant(self) -> Array:
        """The plain weights of the function 1: splines add up to it, of other families it is the first feature."""
        weights = np.ones(1)
        for family in self.families.values():
            splines = isinstance(family, Spline | GradedSpline)
            weights = np.kron(weights, np.ones(family.size) if splines else np.eye(1, family.size)[0])
        return weights

    def rotated(self, rotation: Array) -> Tensor:
        return Tensor(self.families, rotation)

    def spec(self) -> dict[str, Any]:
        return {name: family.spec() for name, family in self.families.items()}


def row_kron(left: Array, right: Array) -> Array:
    """Row-wise Kronecker product: (n, p), (n, q) -> (n, p q)."""
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)


RankRule = Literal["relative", "floor"]


def decorrelate(gram: Array, rule: RankRule) -> Array:
    """The paper's rotation: eigenvectors of the weighted Gram matrix, directions without information dropped.

    "relative" drops eigenvalues <= 1e-8 max (advection). "floor" drops only what is zero to rounding,
    100 eps P max (Fisher-KPP): a relative cut would delete its slow, spatially constant directions.
    """
    values, vectors = linalg.eigh(gram, check_finite=False)
    size = len(values)
    cut = 1e-8 if rule == "relative" else 100.0 * np.finfo(float).eps * size
    keep = values > cut * values[-1]
    return np.ascontiguousarray(vectors[:, keep][:, ::-1])
