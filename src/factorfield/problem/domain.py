"""Where a problem lives: named axes, each periodic or an interval, and points on them.

Time, if there is any, is the axis called `t`; it comes first in every ordering, so that features are
kron(time, space) as in the paper. Points are mappings from axis name to equally long arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorfield.errors import ProblemError, expected, shortened

Array = NDArray[np.float64]
Points = Mapping[str, Array]
Orders = tuple[tuple[str, int], ...]  # ((axis, times differentiated), ...), sorted, zeros left out
TIME = "t"
SHORTEST, LONGEST = 1e-30, 1e30  # axes: eighth derivatives of fields over them are still numbers
DISTINCT = 1e-10  # length of an axis over its ends, at least: points in between must differ
MOST_AXES = 4  # time and space
NORMAL = "_normal_"  # before an axis: that part of the unit normal out of a region; no text can name it
ARC = "wall"  # the arc length along a wall, among the coordinates of its points; no axis can have this name
PLACES = 9  # along every axis, where coefficients are read; odd: the centre is among them


def normal_along(axis: str) -> str:
    """The name, among the coordinates of points on a wall, of the outward normal's part along an axis."""
    return NORMAL + axis


@dataclass(frozen=True)
class Axis:
    """A stretch [lower, upper] of one coordinate."""

    lower: float
    upper: float
    length: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            try:
                object.__setattr__(self, name, float(getattr(self, name)))
            except (TypeError, ValueError, OverflowError):
                received = shortened(getattr(self, name), 30)
                raise expected(f"a number as {name} end", received, f"{type(self).__name__}(0, 1)") from None
        object.__setattr__(self, "length", self.upper - self.lower)
        ends = f"[{self.lower}, {self.upper}]"
        if not (np.isfinite(self.lower) and np.isfinite(self.upper) and self.lower < self.upper):
            raise expected("finite ends with lower < upper", ends, f"{type(self).__name__}(0, 1)")
        if not SHORTEST <= self.length <= LONGEST or self.length < DISTINCT * max(abs(self.lower), abs(self.upper)):
            wanted = f"an axis from {SHORTEST:g} to {LONGEST:g} long, whose ends differ in the first ten digits"
            raise expected(wanted, ends, "other units, or another origin")

    def cells(self, count: int) -> Array:
        """Centres of `count` equal cells."""
        return self.lower + (np.arange(count, dtype=float) + 0.5) * (self.length / count)

    def collocation(self, count: int) -> Array:
        """Points where an equation is asked to hold: evenly spread."""
        return self.cells(count)

    def contains(self, x: ArrayLike) -> NDArray[np.bool_]:
        slack = 1e-9 * self.length
        x = np.asarray(x, float)
        return (x >= self.lower - slack) & (x <= self.upper + slack)

    def is_end(self, x: ArrayLike) -> NDArray[np.bool_]:
        """Which of these are one of the two ends, up to rounding?"""
        apart = np.abs(np.subtract.outer(np.asarray(x, float), [self.lower, self.upper]))
        return np.asarray(np.min(apart, axis=-1) <= 1e-9 * self.length)


@dataclass(frozen=True)
class Periodic(Axis):
    """The field at `upper` is the field at `lower`."""


@dataclass(frozen=True)
class Interval(Axis):
    """No relation between the two ends."""

    def collocation(self, count: int) -> Array:
        """Chebyshev points: dense near the ends, where polynomials are hardest to hold."""
        angle = np.pi * (np.arange(count) + 0.5) / count
        return self.lower + 0.5 * self.length * (1.0 - np.cos(angle))


class Domain(dict[str, Axis]):
    """Named axes, time first: a mapping from name to axis that is never changed. `space` names the others."""

    def __init__(self, axes: Mapping[str, Axis]) -> None:
        if not isinstance(axes, Mapping) or not axes:
            raise expected(
                "a domain such as {'x': ff.Periodic(0, 1), 't': ff.Interval(0, 2)}", axes, "naming each axis"
            )
        for name, axis in axes.items():
            if not (isinstance(name, str) and len(name) == 1 and name.isascii() and name.islower()):
                first = str(name)[:1].lower()
                attempt = f"{first!r}" if first.isalpha() else "'x', 'y' or 't'"
                wanted = "axis names of one lower-case letter (u_xt then means d2u/dxdt, and U, T or N can be fields)"
                raise expected(wanted, repr(name), attempt)
            if not isinstance(axis, Axis):
                raise expected(
                    f"ff.Periodic or ff.Interval for axis {name!r}", axis, f"{{'{name}': ff.Interval(0, 1)}}"
                )
        if len(axes) > MOST_AXES:
            raise expected(f"at most {MOST_AXES} axes", str(len(axes)), "a problem of fewer dimensions")
        order = [name for name in axes if name == TIME] + [name for name in axes if name != TIME]
        super().__init__({name: axes[name] for name in order})
        self.names = tuple(order)
        self.space = tuple(name for name in order if name != TIME)

    def __setitem__(self, name: str, axis: Axis) -> None:
        raise expected("a domain as it was made", f"a new axis {name!r}", "problem.replace(domain=...)")

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self.items()))

    def __reduce__(self) -> tuple[type[Domain], tuple[dict[str, Axis]]]:
        return Domain, (dict(self),)  # pickle and copy would set its axes one by one

    @property
    def centre(self) -> dict[str, Array]:
        """The point in the middle."""
        return {name: np.array([0.5 * (self[name].lower + self[name].upper)]) for name in self.names}

    def tensor(self, axes: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """The points of a tensor grid, first axis slowest, as flat arrays."""
        values = [np.atleast_1d(np.asarray(axes[name], float)) for name in self.names]
        mesh = np.meshgrid(*values, indexing="ij")
        return {name: m.ravel() for name, m in zip(self.names, mesh, strict=True)}

    def places(self) -> dict[str, Array]:
        """A few all over the domain, in the middle of cells: polar coordinates have infinite coefficients at ends."""
        return self.tensor({name: axis.cells(PLACES) for name, axis in self.items()})

    def stratified(self, counts: Mapping[str, int], rng: np.random.Generator) -> dict[str, Array]:
        """One uniform draw in each cell of the product grid with `counts` cells per axis."""
        mesh = np.meshgrid(*[np.arange(counts[name]) for name in self.names], indexing="ij")
        points = {}
        for name, cell in zip(self.names, mesh, strict=True):
            axis = self[name]
            offset = cell.ravel() + rng.random(cell.size)
            points[name] = axis.lower + offset * (axis.length / counts[name])
        return points

    def check_inside(self, points: Points, what: str, remedies: Mapping[str, str] = MappingProxyType({})) -> None:
        """Refuse points beyond the ends; `remedies` names what else to try for some axes."""
        for name in self.names:
            axis, x = self[name], points[name]
            outside = ~axis.contains(x)
            if np.any(outside):
                others = f"{remedies[name]}, " if name in remedies else ""
                raise ProblemError(
                    f"expected {what} inside [{axis.lower:g}, {axis.upper:g}] along {name}, received "
                    f"{int(outside.sum())} outside (first {name} = {x[outside][0]:.6g}); "
                    f"try {self._exchanged(points, name)}{others}the units of both, a wider domain, or dropping these "
                    "points"
                )

    def _exchanged(self, points: Points, name: str) -> str:
        """The axis whose column may have been taken for this one: each lies inside the other's ends."""
        for other in self.names:
            swapped = np.all(self[name].contains(points[other])) and np.all(self[other].contains(points[name]))
            if other != name and swapped:
                return f"exchanging the columns of {name} and {other}, "
        return ""
