"""Coefficients that are no plain number: unknown ones, unknown functions of coordinates, and given tables of values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorfield.errors import expected
from factorfield.problem.domain import Domain, Periodic, Points

Array = NDArray[np.float64]
Knots = tuple[Array, int]  # of a spline, and its degree
PADDING = 6  # values of the next period on either side of a periodic table: a spline hardly depends on farther ones
LARGEST_SIZE = 1e75  # of a mean and a std: the square of their ratio must be a number too
DEFAULT_LENGTH = 0.25  # of an axis: over which an unknown function, or the error of a condition, goes together
END_SLACK = 1e-9  # of the axis: a table may miss its ends by rounding


@dataclass(frozen=True)
class Unknown:
    """A coefficient to be inferred: mean and std of the coefficient itself; positive ones are log-normal.

    std     None: that of a function is estimated by method="forward"; other methods take the size of the mean
    over    axes that it is a function of, such as "x" or ("x", "y"); none for a number
    length  distance over which the function varies (a quarter of the domain unless given, estimated by
            method="forward"); smooth on smaller ones
    """

    mean: float
    std: float | None = None
    positive: bool = False
    over: str | Sequence[str] = ()
    length: float | None = None

    def __post_init__(self) -> None:
        over = (self.over,) if isinstance(self.over, str) else self.over
        if self.std is None and np.isfinite(self.mean) and over:
            if not self.positive and self.mean == 0.0:
                raise expected("a std where the mean is 0", "none", f"ff.Unknown(0.0, 1.0, over={self.over!r})")
        elif self.std is None or not (np.isfinite(self.mean) and np.isfinite(self.std) and self.std > 0):
            attempt = f"{self.mean:g} for a known value" if self.std == 0 else "ff.Unknown(1.0, 0.5)"
            raise expected("a finite mean and std > 0", f"mean={self.mean}, std={self.std}", attempt)
        sizes = [abs(number) for number in (self.mean, self.std) if number]
        if sizes and not 1.0 / LARGEST_SIZE <= min(sizes) <= max(sizes) <= LARGEST_SIZE:
            wanted = f"a mean and a std between {1.0 / LARGEST_SIZE:g} and {LARGEST_SIZE:g} in size"
            raise expected(wanted, f"mean={self.mean}, std={self.std}", "other units")
        if self.positive and self.mean <= 0:
            raise expected("mean > 0 for a positive coefficient", f"mean={self.mean}", "positive=False")
        if not isinstance(over, Sequence) or not all(isinstance(axis, str) for axis in over):
            raise expected("the axes of an unknown function by name", self.over, "over='x'")
        object.__setattr__(self, "over", tuple(over))
        if self.length is not None and not (np.isfinite(self.length) and self.length > 0 and over):
            raise expected("length > 0, of a function (over=...)", self.length, "over='x', length=0.3")

    def check(self, name: str, domain: Domain) -> None:
        for axis in self.over:
            if axis not in domain:
                raise expected(f"{name} over some of the axes {', '.join(domain.names)}", axis, "over='x'")

    @property
    def text(self) -> str:
        """Mean and std as people write them."""
        return f"{self.mean:g} +- {'an unknown size' if self.std is None else format(self.std, 'g')}"

    @property
    def spread(self) -> float:
        """The std; where none is stated, the size of the mean, with which the search begins."""
        return abs(self.mean) if self.std is None else self.std

    @property
    def latent_moments(self) -> tuple[float, float]:
        """Mean and variance of what is inferred: the coefficient itself, or its logarithm if it is positive."""
        std = self.spread
        if not self.positive:
            return self.mean, std**2
        variance = float(np.log1p((std / self.mean) ** 2))
        return float(np.log(self.mean)) - 0.5 * variance, variance


class Table:
    """A known coefficient as values on a grid: Table(x=positions, value=numbers), or over several axes.

    Between the grid's points it is a cubic spline (periodic along periodic axes), so that derivatives of it such as
    D_x may stand in an equation too. The grid has to cover the domain along its axes.
    """

    def __init__(self, *, value: ArrayLike, **axes: ArrayLike) -> None:
        try:
            self.axes = {name: np.asarray(x, float) for name, x in axes.items()}
            self.value = np.asarray(value, float)
        except (TypeError, ValueError):
            raise expected("numbers in a table", type(value).__name__, "ff.Table(x=[0, 1], value=[1.0, 2.0])") from None
        shape = tuple(len(np.atleast_1d(x)) for x in self.axes.values())
        if not self.axes or self.value.shape != shape:
            raise expected(
                "a table of one value per point of its grid", f"value of shape {self.value.shape}, axes of {shape}",
                "ff.Table(x=x, y=y, value=v) with v.shape == (len(x), len(y))",
            )  # fmt: skip
        if not (np.all(np.isfinite(self.value)) and all(np.all(np.isfinite(x)) for x in self.axes.values())):
            raise expected("finite numbers in a table", "NaN or infinity", "filling the gaps first")
        for name, x in self.axes.items():
            if len(x) < 2 or np.any(np.diff(x) <= 0.0):
                raise expected(f"two or more increasing {name} in a table", f"{len(x)} values", "sorting the rows")

    def check(self, name: str, domain: Domain) -> Table:
        """The same table fitted to a domain: continued over the ends of periodic axes, refused where it is short."""
        axes, value = dict(self.axes), self.value
        for position, (axis, x) in enumerate(self.axes.items()):
            if axis not in domain:
                raise expected(f"a table {name} over some of the axes {', '.join(domain.names)}", axis, "renaming it")
            whole = domain[axis]
            if isinstance(whole, Periodic):
                once = x < x[0] + whole.length * (1.0 - END_SLACK)  # the last point may repeat the first
                kept = np.compress(once, value, axis=position)
                if whole.length - (x[once][-1] - x[0]) > 3.0 * float(np.diff(x).max()):
                    raise self._short(name, axis, whole.lower, whole.upper)
                turns = -(-PADDING // int(once.sum()))
                shifts = [turn * whole.length for turn in range(-turns, turns + 1)]
                axes[axis] = np.concatenate([x[once] + shift for shift in shifts])
                value = np.concatenate([kept] * len(shifts), axis=position)
                base = np.floor((x[0] - whole.lower) / whole.length) * whole.length
                axes[axis] = axes[axis] - base
            elif x[0] > whole.lower + END_SLACK * whole.length or x[-1] < whole.upper - END_SLACK * whole.length:
                raise self._short(name, axis, whole.lower, whole.upper)
        fitted = Table(value=value, **axes)
        fitted._check_sign(name)
        return fitted

    def _check_sign(self, name: str) -> None:
        """A diffusion that is positive in the table must not be negative between its points."""
        if len(self.axes) > 1 or not np.all(self.value > 0.0):
            return
        ((axis, x),) = self.axes.items()
        fine = np.unique(x[:-1, None] + np.diff(x)[:, None] * np.linspace(0.0, 1.0, 11))
        curve = self({axis: fine})
        if curve.min() <= 0.0:
            at = f"{curve.min():.3g} at {axis} = {fine[np.argmin(curve)]:.3g}"
            raise expected(
                f"a table {name} that a smooth curve can follow (its values are positive)",
                f"a curve that falls to {at}", "more values where it bends",
            )  # fmt: skip

    def _short(self, name: str, axis: str, lower: float, upper: float) -> Exception:
        x = self.axes[axis]
        received = f"{axis} from {x[0]:g} to {x[-1]:g}"
        return expected(f"a table {name} that covers {axis} from {lower:g} to {upper:g}", received, "a longer table")

    def __call__(self, points: Points, along: str = "") -> Array:
        """Values, or a derivative along axes such as "x" or "xx", at points."""
        from scipy.interpolate import BSpline

        splines, weights = self._spline(tuple(along.count(name) for name in self.axes))
        count = len(next(iter(points.values())))
        shares, places = [], []
        for name, (knots, degree) in zip(self.axes, splines, strict=True):
            features = BSpline.design_matrix(np.asarray(points[name], float), knots, degree, extrapolate=True)
            shares.append(features.data.reshape(count, degree + 1))
            places.append(features.indices.reshape(count, degree + 1))
        found = np.zeros(count)
        for which in np.ndindex(*(degree + 1 for _, degree in splines)):  # the few B-splines that live at a point
            share = math.prod(own[:, at] for own, at in zip(shares, which, strict=True))
            found += share * weights[tuple(own[:, at] for own, at in zip(places, which, strict=True))]
        return found

    @cached_property
    def _splines(self) -> dict[tuple[int, ...], tuple[list[Knots], Array]]:
        return {}

    def _spline(self, orders: tuple[int, ...]) -> tuple[list[Knots], Array]:
        """The tensor spline through the values, or a derivative of it: knots and degree per axis, and its weights."""
        from scipy.interpolate import BSpline, make_interp_spline

        if orders not in self._splines:
            splines, weights = [], self.value
            for position, (x, order) in enumerate(zip(self.axes.values(), orders, strict=True)):
                degree = min(3, len(x) - 1)
                spline = make_interp_spline(x, np.moveaxis(weights, position, 0), k=degree)
                spline = spline.derivative(order) if order <= degree else BSpline(spline.t, 0.0 * spline.c, degree)
                splines.append((spline.t, spline.k))
                weights = np.moveaxis(spline.c[: len(spline.t) - spline.k - 1], 0, position)
            self._splines[orders] = splines, weights
        return self._splines[orders]


def located(points: Points, names: Sequence[str], constants: Mapping[str, float | Table]) -> dict[str, Array]:
    """Points with a further column for every table, or derivative of one, that a relation mentions."""
    located = dict(points)
    for name in names:
        if name not in located:
            base, _, along = name.partition("_") if name not in constants else (name, "", "")
            table = constants[base]
            assert isinstance(table, Table)
            located[name] = table(points, along)
    return located
