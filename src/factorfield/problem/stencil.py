"""Linear functionals of more than one point: a cell's average, the difference of two faces.

A stencil is a few shifts with weights: what is meant at a point x is the sum over them of weight * relation(x + shift).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorfield.errors import expected
from factorfield.problem.domain import Domain, Interval, Points

Array = NDArray[np.float64]
Shift = Mapping[str, float | Array]  # per axis, one for all points or one for each
Stencil = tuple[tuple[Shift, float], ...]
FEW, MANY = 8, 24  # Gauss points along a cell: narrow ones, and those wider than a tenth of the axis


def difference(axis: str, first: float, second: float) -> Stencil:
    """At the first face minus at the second."""
    return (({}, 1.0), ({axis: second - first}, -1.0))


def average(widths: Mapping[str, ArrayLike], points: Points, domain: Domain, what: str) -> Stencil:
    """The mean over cells of given widths about the points, by Gauss-Legendre points."""
    stencil: Stencil = (({}, 1.0),)
    for name, given in widths.items():
        if name not in domain:
            raise expected(f"average along the axes {', '.join(domain.names)}", name, "average={'x': 0.1}")
        axis = domain[name]
        count = len(points[name])
        try:
            width = np.asarray(given, float)
        except (TypeError, ValueError):
            width = np.full((), np.nan)
        if width.shape not in ((), (count,)) or not np.all(np.isfinite(width) & (width > 0.0)):
            raise expected(f"one width > 0, or {count}, along {name} ({what})", given, f"average={{'{name}': 0.1}}")
        ends = (points[name] - 0.5 * width, points[name] + 0.5 * width)
        if isinstance(axis, Interval) and not (np.all(axis.contains(ends[0])) and np.all(axis.contains(ends[1]))):
            received = f"cells from {ends[0].min():g} to {ends[1].max():g}"
            raise expected(f"cells inside [{axis.lower:g}, {axis.upper:g}] along {name}", received, "narrower cells")
        nodes, weights = np.polynomial.legendre.leggauss(MANY if np.max(width) > 0.1 * axis.length else FEW)
        stencil = tuple(
            ({**shift, name: 0.5 * width * node}, share * 0.5 * float(weight))
            for shift, share in stencil
            for node, weight in zip(nodes, weights, strict=True)
        )
    return stencil


def shifted(points: Points, shift: Shift) -> dict[str, Array]:
    return {name: x + shift[name] if name in shift else x for name, x in points.items()}


def part_of(stencil: Stencil, chosen: slice | NDArray[np.bool_ | np.intp]) -> Stencil:
    """The stencil of some of the points."""
    return tuple(
        ({name: s[chosen] if isinstance(s, np.ndarray) and s.ndim else s for name, s in shift.items()}, weight)
        for shift, weight in stencil
    )
