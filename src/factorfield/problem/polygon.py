"""Polygons: closed rings of straight edges, an outline and holes, with sharp corners.

Which edge a point lies beside is exact: nothing is traced, and every edge has one normal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected

Array = NDArray[np.float64]
Truth = NDArray[np.bool_]
Corner = tuple[float, float]
MOST_CORNERS = 2000
BLOCK = 1 << 22  # pairs of points and edges that are compared at once
SMALLEST = 1e-9  # of a polygon's extent: shorter edges, and thinner polygons, are none


@dataclass(frozen=True)
class Polygon:
    """Rings of corners, the outline first; edge i leads from corner i to the next one of its ring."""

    rings: tuple[tuple[Corner, ...], ...]

    @staticmethod
    def of(points: object, holes: object) -> Polygon:
        """Checked: rings that neither cross themselves nor each other, holes inside the outline."""
        if not isinstance(holes, Sequence | np.ndarray):
            raise expected("holes as a list of polygons", holes, "holes=[[(0.4, 0.4), (0.6, 0.4), (0.5, 0.6)]]")
        rings = [_ring(points, "the outline"), *(_ring(hole, f"hole {i}") for i, hole in enumerate(holes))]
        count = sum(len(ring) for ring in rings)
        if count > MOST_CORNERS:
            raise expected(f"polygons of at most {MOST_CORNERS} corners", count, "leaving out some on straight walls")
        found = Polygon(tuple(tuple((float(x), float(y)) for x, y in ring) for ring in rings))
        found._check_crossings()
        for i, ring in enumerate(rings[1:]):
            middles = 0.5 * (ring + np.roll(ring, -1, axis=0))
            if not np.all(Polygon(found.rings[:1]).contains(middles)):
                raise expected(f"hole {i} inside the outline", "one that leaves it", "the outline itself with a notch")
        return found

    @cached_property
    def starts(self) -> Array:
        return np.concatenate([np.array(ring) for ring in self.rings])

    @cached_property
    def ends(self) -> Array:
        return np.concatenate([np.roll(np.array(ring), -1, axis=0) for ring in self.rings])

    @cached_property
    def normals(self) -> Array:
        """Of unit length, out of the region: to the right of a ring that turns left, and of a hole to its inside."""
        along = self.ends - self.starts
        right = np.stack([along[:, 1], -along[:, 0]], axis=1) / np.hypot(*along.T)[:, None]
        signs = [np.sign(_area(np.array(ring))) * (1.0 if i == 0 else -1.0) for i, ring in enumerate(self.rings)]
        return right * np.repeat(signs, [len(ring) for ring in self.rings])[:, None]

    @property
    def extent(self) -> float:
        return float(np.max(np.ptp(self.starts, axis=0)))

    def contains(self, points: Array) -> Truth:
        """Inside the outline and no hole: a ray to the right crosses an odd number of edges."""
        found = np.empty(len(points), bool)
        step = max(1, BLOCK // len(self.starts))
        (x0, y0), (x1, y1) = self.starts.T, self.ends.T
        with np.errstate(divide="ignore", invalid="ignore"):
            slope = (x1 - x0) / (y1 - y0)
        for low in range(0, len(points), step):
            x, y = points[low : low + step].T[:, :, None]
            with np.errstate(invalid="ignore"):
                crossed = ((y0 > y) != (y1 > y)) & (x < x0 + (y - y0) * slope)
            found[low : low + step] = crossed.sum(axis=1) % 2 == 1
        return found

    def distance(self, points: Array) -> Array:
        """To the nearest edge."""
        found = np.empty(len(points))
        along = self.ends - self.starts
        step = max(1, BLOCK // len(self.starts))
        for low in range(0, len(points), step):
            away = points[low : low + step, None, :] - self.starts
            share = np.clip(np.sum(away * along, axis=2) / np.sum(along**2, axis=1), 0.0, 1.0)
            found[low : low + step] = np.linalg.norm(away - share[:, :, None] * along, axis=2).min(axis=1)
        return found

    def _check_crossings(self) -> None:
        """No two edges cross or run along each other; neighbours share a corner, and rings may touch in one."""
        a, b, count = self.starts, self.ends, len(self.starts)
        for i in range(count - 1):
            later = slice(i + 1, count)
            c, d = a[later], b[later]
            sides = _side(a[i], b[i], c), _side(a[i], b[i], d), _side(c, d, a[i]), _side(c, d, b[i])
            crossing = (sides[0] * sides[1] < 0.0) & (sides[2] * sides[3] < 0.0)
            straight = (sides[0] == 0.0) & (sides[1] == 0.0)
            along = b[i] - a[i]
            low = np.minimum((c - a[i]) @ along, (d - a[i]) @ along) / (along @ along)
            high = np.maximum((c - a[i]) @ along, (d - a[i]) @ along) / (along @ along)
            crossing |= straight & (np.minimum(high, 1.0) - np.maximum(low, 0.0) > SMALLEST)
            if np.any(crossing):
                other = i + 1 + int(np.argmax(crossing))
                place = f"edges {i} and {other}, near ({0.5 * (a[i] + b[i])[0]:.4g}, {0.5 * (a[i] + b[i])[1]:.4g})"
                raise expected("a polygon whose edges do not cross", place, "corners in the order of a walk around it")


def _side(a: Array, b: Array, c: Array) -> Array:
    """Positive where c lies to the left of the line from a to b, 0 on it up to rounding."""
    (ux, uy), (vx, vy) = (b - a).T, (c - a).T
    cross = ux * vy - uy * vx
    return np.where(np.abs(cross) <= 1e-14 * (np.abs(ux * vy) + np.abs(uy * vx)), 0.0, cross)


def _area(ring: Array) -> float:
    """Positive for corners in a left turn; about a corner, so that a far origin costs no digits."""
    (x, y), (u, v) = (ring - ring[0]).T, (np.roll(ring, -1, axis=0) - ring[0]).T
    return 0.5 * float(np.sum(x * v - u * y))


def _ring(points: object, what: str) -> Array:
    try:
        ring = np.asarray(points, float)
    except (TypeError, ValueError):
        raise expected(f"{what} as a list of corners (x, y)", points, "[(0, 0), (2, 0), (2, 1)]") from None
    if ring.ndim != 2 or ring.shape[1] != 2:
        raise expected(f"{what} as a list of corners (x, y)", f"shape {ring.shape}", "[(0, 0), (2, 0), (2, 1)]")
    if not np.all(np.isfinite(ring)):
        raise expected(f"finite corners of {what}", "NaN or infinite ones", "dropping them")
    if len(ring) > 1 and np.array_equal(ring[0], ring[-1]):
        ring = ring[:-1]  # a ring that repeats its first corner, as files write it
    if len(ring) < 3:
        raise expected(f"at least three corners of {what}", len(ring), "[(0, 0), (2, 0), (2, 1)]")
    extent = float(np.max(np.ptp(ring, axis=0)))
    lengths = np.hypot(*(np.roll(ring, -1, axis=0) - ring).T)
    if np.min(lengths) <= SMALLEST * extent:
        at = ring[int(np.argmin(lengths))]
        raise expected(f"different corners of {what}", f"({at[0]:g}, {at[1]:g}) twice", "dropping the second one")
    if np.linalg.svd(ring - ring[0], compute_uv=False)[1] <= SMALLEST * extent:
        raise expected(f"{what} with an area", "corners on a line", "[(0, 0), (2, 0), (2, 1)]")
    return ring
