"""Shapes: a region in the box of its domain, with the curves that bound it.

The boundary is what of the zero curves of its comparisons, or of a polygon's edges, parts inside from outside, and what
of the box's sides lies inside. Pieces end where two curves meet, so that each point of a piece has one normal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from factorfield.errors import expected
from factorfield.problem.curves import Curved, Piece, Straight, bisected, split_at_kinks, zero_chains
from factorfield.problem.domain import ARC, Axis, Domain, Interval, Periodic, Points, normal_along
from factorfield.problem.inequality import Inequality, Level
from factorfield.problem.polygon import Polygon
from factorfield.problem.region import Region

Array = NDArray[np.float64]
Truth = NDArray[np.bool_]
Step = tuple[int, int]
TRACED = 240  # cells along each axis of the grid on which curves are found: details that are smaller are not
MOST_TRACED = 400  # curves times comparisons: at every point of a curve all comparisons are looked at
ON_WALL = 1e-9  # of the box: so far outside is still on the wall
SHORTEST = 1e-7  # of the box: a piece below is none
SAMPLED = 16  # places at least along a piece where a condition is looked at before its ends are bisected
AROUND, AROUND_RADIUS = 720, 1e-4  # points on a circle, of this share of the box, by which an angle is measured
REENTRANT = 0.02  # of a straight angle: what an angle must exceed it by
PER_RUN = 3  # Gauss points of a run along a wall
LEAST_SHARE = 1e-3  # of the box: a smaller region, or a smaller rest outside, is none


@dataclass(frozen=True, eq=False)
class Stretch:
    """Part of a piece by its arc length."""

    piece: Piece
    low: float
    high: float

    @property
    def length(self) -> float:
        return self.high - self.low


@dataclass(frozen=True, eq=False)
class Wall:
    """Stretches of a boundary: where one condition holds."""

    axes: tuple[str, str]
    stretches: tuple[Stretch, ...]

    @property
    def length(self) -> float:
        return sum(stretch.length for stretch in self.stretches)

    @property
    def ends(self) -> list[Array]:
        """Of its stretches, those at one place once."""
        found: list[Array] = []
        near = SHORTEST * self.length
        for stretch in self.stretches:
            for place in stretch.piece.at(np.array([stretch.low, stretch.high]))[0]:
                if not found or np.min(np.linalg.norm(np.array(found) - place, axis=1)) > near:
                    found.append(place)
        return found

    def shared(self, other: Wall) -> Wall | None:
        """What two walls have in common."""
        found = []
        for one in self.stretches:
            for two in other.stretches:
                low, high = max(one.low, two.low), min(one.high, two.high)
                if one.piece is two.piece and high - low > SHORTEST * one.piece.length:
                    found.append(Stretch(one.piece, low, high))
        return Wall(self.axes, tuple(found)) if found else None

    def points(self, spacing: float) -> tuple[dict[str, Array], Array]:
        """Gauss points of runs of about this length along every stretch, with normals and arc lengths (`chains`), and
        the lengths that they stand for: strictly inside the stretches, so that no corner is among them."""
        nodes, shares = np.polynomial.legendre.leggauss(PER_RUN)
        places, normals, arcs, lengths = [], [], [], []
        for index, stretch in enumerate(self.stretches):
            edges = np.linspace(stretch.low, stretch.high, 1 + max(1, int(np.ceil(stretch.length / spacing))))
            half = 0.5 * np.diff(edges)[:, None]
            along = (edges[:-1, None] + half * (1.0 + nodes)).ravel()
            here, normal = stretch.piece.at(along)
            places.append(here)
            normals.append(normal)
            arcs.append(self.walked(np.full(len(along), index), along))
            lengths.append((half * shares).ravel())
        where, out = np.concatenate(places), np.concatenate(normals)
        found = {axis: where[:, i] for i, axis in enumerate(self.axes)} | {ARC: np.concatenate(arcs)}
        return found | {normal_along(axis): out[:, i] for i, axis in enumerate(self.axes)}, np.concatenate(lengths)

    def walked(self, stretch: NDArray[np.int64], arc: Array) -> Array:
        """Arc lengths along the wall, from the numbers of stretches and arc lengths along their pieces."""
        begin, sense, entry = self._entries
        return np.asarray(begin[stretch] + sense[stretch] * (arc - entry[stretch]))

    @cached_property
    def _entries(self) -> tuple[Array, Array, Array]:
        """Per stretch, the arc length at which a walk enters it, 1 or -1, and the arc length of its piece there."""
        courses = [self._courses[index] for index in range(len(self.stretches))]
        entry = [s.low if is_forward else s.high for s, (_, is_forward) in zip(self.stretches, courses, strict=True)]
        sense = [1.0 if is_forward else -1.0 for _, is_forward in courses]
        return np.array([begin for begin, _ in courses]), np.array(sense), np.array(entry)

    @cached_property
    def _walks(self) -> list[tuple[list[Step], bool]]:
        """Walks along stretches that meet, and whether each ends where it began."""
        ends = [s.piece.at(np.array([s.low, s.high]))[0] for s in self.stretches]
        return _walks(ends, SHORTEST * self.length)

    @cached_property
    def chains(self) -> tuple[Interval | Periodic, ...]:
        """The arc lengths of parts that hang together, one after the other; closed ones are rings."""
        found: list[Interval | Periodic] = []
        for walk, is_closed in self._walks:
            begin = found[-1].upper if found else 0.0
            end = begin + sum(self.stretches[index].length for index, _ in walk)
            found.append(Periodic(begin, end) if is_closed else Interval(begin, end))
        return tuple(found)

    @cached_property
    def _courses(self) -> dict[int, tuple[float, bool]]:
        """Per stretch, the arc length at which a walk enters it, and whether by its lower end."""
        found, begin = {}, 0.0
        for index, out in (step for walk, _ in self._walks for step in walk):
            found[index] = begin, out == 1
            begin += self.stretches[index].length
        return found


def _walks(ends: Sequence[Array], near: float) -> list[tuple[list[Step], bool]]:
    """Through pieces by their two ends, a step being a piece and the end (0, 1) by which it is left. Where more than
    two ends meet a walk is over."""

    places = np.array(ends).reshape(-1, 2, 2)  # an outline has thousands: compared all at once

    def following(step: Step) -> Step | None:
        close = np.linalg.norm(places - places[step], axis=2) <= near
        close[step] = False
        found = np.argwhere(close)
        return (int(found[0, 0]), 1 - int(found[0, 1])) if len(found) == 1 else None

    left, walks = set(range(len(ends))), []
    begins = [(i, out) for i in range(len(ends)) for out in (1, 0) if following((i, 1 - out)) is None]
    for begin in (*begins, *((i, 1) for i in range(len(ends)))):  # open walks from an end, then rings
        walk: list[Step] = []
        step: Step | None = begin
        while step is not None and step[0] in left:
            left.remove(step[0])
            walk.append(step)
            step = following(step)
        if walk:
            walks.append((walk, step == begin))
    return walks


@dataclass(frozen=True, eq=False)
class _ZeroLevel:
    """A comparison's function of points (n, 2)."""

    level: Level
    axes: tuple[str, str]

    def __call__(self, points: Array) -> Array:
        return self.level(dict(zip(self.axes, points.T, strict=True)))

    def gradient(self, points: Array) -> Array:
        return self.level.gradient(dict(zip(self.axes, points.T, strict=True)))


@dataclass(frozen=True, eq=False)
class Shape:
    """A region between the ends of its two axes."""

    region: Region
    axes: tuple[str, str]
    ends: tuple[Axis, Axis]
    inequality: Inequality | None

    @staticmethod
    def of(region: object, domain: Domain, parameters: Mapping[str, object]) -> Shape:
        """Checked against the domain and the numbers that it names."""
        if not isinstance(region, Region):
            raise expected("an ff.Region", region, "ff.Region('x**2 + y**2 < 1')")
        if len(domain.space) != 2:
            received = f"the axes {', '.join(domain.space) or 'of time only'}"
            raise expected("two space axes for a region", received, "a domain such as {'x': ..., 'y': ...}")
        axes = domain.space[0], domain.space[1]
        ends = domain[axes[0]], domain[axes[1]]
        inequality = None
        if region.outline is not None:
            _check_corners(region.outline, axes, ends)
        else:
            inequality = Inequality.of(region.text, axes, parameters)
        found = Shape(region, axes, ends, inequality)
        found._check_extent()
        return found

    def _check_extent(self) -> None:
        share = float(np.mean(self._sampled))
        if share == 0.0 or (self.inequality is None and self.area_share < LEAST_SHARE**2):
            box = " x ".join(f"[{end.lower:g}, {end.upper:g}]" for end in self.ends)
            attempt = "another sign, or a domain that holds it"
            raise expected(f"a region with an inside in the domain {box}", f"{self.region!r}, which is empty", attempt)
        if not self.pieces or (share == 1.0 and self.inequality is not None and not self._has_inner_pieces):
            raise expected("a region that leaves out some of the domain", f"{self.region!r}, which fills it",
                           "leaving the region out")  # fmt: skip

    @property
    def _has_inner_pieces(self) -> bool:
        return any(isinstance(piece, Curved) for piece in self.pieces)

    @property
    def size(self) -> float:
        """Of the box."""
        return max(end.length for end in self.ends)

    # -- inside and outside

    def contains(self, points: Points) -> Truth:
        """Inside, or on the wall up to rounding; around a ring, points count by their place on it."""
        where = self._plane(points)
        in_box = self._in_box(where)
        found = self._inside(where) & in_box
        rest = np.flatnonzero(~found)
        if len(rest):
            found = found.copy()
            found[rest] = self._on_wall(where[rest]) & in_box[rest]
        return found

    def _in_box(self, where: Array) -> Truth:
        return np.all([end.contains(x) for end, x in zip(self.ends, where.T, strict=True)], axis=0)

    def _plane(self, points: Points) -> Array:
        columns = []
        for axis, end in zip(self.axes, self.ends, strict=True):
            x = np.asarray(points[axis], float)
            columns.append(end.lower + np.mod(x - end.lower, end.length) if isinstance(end, Periodic) else x)
        return np.stack(np.broadcast_arrays(*columns), axis=1)

    def _inside(self, where: Array) -> Truth:
        if self.region.outline is not None:
            return self.region.outline.contains(where)
        assert self.inequality is not None
        return self.inequality.holds(dict(zip(self.axes, where.T, strict=True)))

    def _on_wall(self, where: Array) -> Truth:
        """Which points outside are so by rounding only."""
        if self.region.outline is not None:
            return self.region.outline.distance(where) <= ON_WALL * self.size
        assert self.inequality is not None
        points, found = dict(zip(self.axes, where.T, strict=True)), np.zeros(len(where), bool)
        for level in self.inequality.levels:
            with np.errstate(all="ignore"):
                near = np.abs(level(points)) <= ON_WALL * self.size * np.hypot(*level.gradient(points).T)
            parts = self.inequality.with_level(level, True, points) | self.inequality.with_level(level, False, points)
            found |= near & parts
        return found

    @cached_property
    def _sampled(self) -> Truth:
        """Inside or not, in the middle of the cells on whose lines curves are traced."""
        x, y = (end.cells(TRACED) for end in self.ends)
        return self._inside(np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)).reshape(TRACED, TRACED)

    @property
    def area_share(self) -> float:
        """Of the box, to about the grid's accuracy."""
        return float(np.mean(self._sampled))

    @cached_property
    def parts(self) -> list[dict[str, Array]]:
        """Places in each of the parts that do not touch, most of them far from walls first."""
        label, count = ndimage.label(self._sampled)
        for axis, end in enumerate(self.ends):
            if isinstance(end, Periodic):
                label = _joined(label, axis)
        x, y = (end.cells(TRACED) for end in self.ends)
        depth = ndimage.distance_transform_edt(np.pad(self._sampled, 1))[1:-1, 1:-1]
        found = []
        for number in range(1, count + 1):
            i, j = np.nonzero(label == number)
            order = np.argsort(-depth[i, j], kind="stable")
            if len(order):
                found.append({self.axes[0]: x[i[order]], self.axes[1]: y[j[order]]})
        return found

    # -- the boundary

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        if self.region.outline is not None:
            polygon = self.region.outline
            triples = zip(polygon.starts, polygon.ends, polygon.normals, strict=True)
            return tuple(Straight(a, b, n, i) for i, (a, b, n) in enumerate(triples))
        return (*self._curves(), *self._sides())

    def _curves(self) -> Iterator[Piece]:
        assert self.inequality is not None
        x, y = (np.linspace(end.lower, end.upper, TRACED + 1) for end in self.ends)
        traced, levels = 0, self.inequality.levels
        for level in levels:
            function = _ZeroLevel(level, self.axes)
            chains = zero_chains(function, x, y)
            traced += len(chains)
            if traced * len(levels) > MOST_TRACED:
                received = f"{traced} curves of {len(levels)} comparisons, or more"
                raise expected(f"a region whose curves, times its comparisons, are at most {MOST_TRACED}",
                               received, "fewer comparisons, or ff.Region.polygon with holes")  # fmt: skip
            for chain in chains:
                for smooth in split_at_kinks(function, chain):
                    yield from self._parting(function, smooth)

    def _parting(self, function: _ZeroLevel, chain: Array) -> Iterator[Piece]:
        """The parts of a chain that have inside on one side only: -1 where the function is positive inside, 1 else."""
        whole = Curved(function, chain, 1.0)
        for low, high, sense in _runs(lambda arc: self._sense(function.level, whole.at(arc)[0]), whole):
            if sense:
                kept = (whole.arcs > low) & (whole.arcs < high)
                ends, _ = whole.at(np.array([low, high]))
                nodes = np.concatenate([ends[:1], chain[kept], ends[1:]])
                if np.hypot(*np.diff(nodes, axis=0).T).sum() > SHORTEST * self.size:
                    yield Curved(function, nodes, float(sense))

    def _sense(self, level: Level, where: Array) -> Array:
        assert self.inequality is not None
        points = dict(zip(self.axes, where.T, strict=True))
        above, below = (self.inequality.with_level(level, is_positive, points) for is_positive in (True, False))
        return below.astype(float) - above.astype(float)

    def _sides(self) -> Iterator[Piece]:
        """The box's own sides, where they bound the region and no zero curve does."""
        for i, end in enumerate(self.ends):
            other = self.ends[1 - i]
            for value, out in () if isinstance(end, Periodic) else ((end.lower, -1.0), (end.upper, 1.0)):
                corners, normal = np.empty((2, 2)), np.zeros(2)
                corners[:, i], corners[:, 1 - i], normal[i] = value, (other.lower, other.upper), out
                side = Straight(corners[0], corners[1], normal)
                bounds = partial(self._bounds, side, -1e-6 * end.length * normal)
                for low, high, inside in _runs(bounds, side):
                    if inside and high - low > SHORTEST * self.size:
                        start, stop = side.at(np.array([low, high]))[0]
                        yield Straight(start, stop, normal)

    def _bounds(self, side: Straight, inward: Array, arc: Array) -> Array:
        assert self.inequality is not None
        where, _ = side.at(arc)
        found, points = self._inside(where + inward), dict(zip(self.axes, where.T, strict=True))
        for level in self.inequality.levels:
            with np.errstate(all="ignore"):
                near = np.abs(level(points)) <= 1e-9 * self.size * np.hypot(*level.gradient(points).T)
            found = found & ~near
        return found.astype(float)

    @cached_property
    def boundary(self) -> Wall:
        """All of it."""
        return Wall(self.axes, tuple(Stretch(piece, 0.0, piece.length) for piece in self.pieces))

    def angle(self, place: Array) -> float:
        """Of the region around a place on its boundary."""
        around = np.linspace(0.0, 2.0 * np.pi, AROUND, endpoint=False)
        circle = place + AROUND_RADIUS * self.size * np.stack([np.cos(around), np.sin(around)], axis=1)
        return 2.0 * np.pi * float(np.mean(self._inside(circle) & self._in_box(circle)))

    @cached_property
    def reentrant_corners(self) -> list[Array]:
        """Where pieces meet at more than a straight angle inside."""
        return [place for place in self.boundary.ends if self.angle(place) > (1.0 + REENTRANT) * np.pi]

    def away_from_corners(self, width: float) -> dict[str, Array]:
        """Points on the boundary, farther than a few widths from the ends of pieces that are not closed."""
        kept = []
        for piece in self.pieces:
            ends, _ = piece.at(np.array([0.0, piece.length]))
            margin = 0.0 if np.hypot(*(ends[1] - ends[0])) < SHORTEST * self.size else 1.5 * width
            if piece.length > 2.0 * margin:
                kept.append(Stretch(piece, margin, piece.length - margin))
        return Wall(self.axes, tuple(kept)).points(width)[0] if kept else {}

    def wall(self, at: object, parameters: Mapping[str, object]) -> Wall:
        """A part of the boundary: all of it (None), where a condition holds (text), on a side of the box (mapping), or
        edges of a polygon by their numbers."""
        if at is None:
            return self.boundary
        if isinstance(at, Mapping):
            found = self._on_sides(at)
        elif isinstance(at, str):
            found = self._where(Inequality.of(at, self.axes, parameters))
        else:
            found = self._edges(at)
        if not found:
            raise expected(f"a part of the boundary at {at!r}", "none there", self._extent())
        return Wall(self.axes, tuple(found))

    def _extent(self) -> str:
        points, _ = self.boundary.points(0.01 * self.size)
        spans = (f"{axis} from {points[axis].min():.4g} to {points[axis].max():.4g}" for axis in self.axes)
        return f"a place on it ({', '.join(spans)})"

    def _where(self, condition: Inequality) -> list[Stretch]:
        def holds(piece: Piece) -> Callable[[Array], Array]:
            def told(arc: Array) -> Array:
                where = piece.at(arc)[0]
                return condition.holds(dict(zip(self.axes, where.T, strict=True))).astype(float)

            return told

        return [
            Stretch(piece, low, high)
            for piece in self.pieces
            for low, high, chosen in _runs(holds(piece), piece)
            if chosen and high - low > SHORTEST * self.size
        ]

    def _on_sides(self, at: Mapping[str, object]) -> list[Stretch]:
        found = []
        for piece in self.pieces:
            where = piece.at(np.linspace(0.0, piece.length, SAMPLED + 1)[1:-1])[0]
            gaps = [np.max(np.abs(where[:, self.axes.index(axis)] - float(x))) for axis, x in at.items()]  # type: ignore[arg-type]
            if max(gaps) <= ON_WALL * self.size:
                found.append(Stretch(piece, 0.0, piece.length))
        return found

    def _edges(self, at: object) -> list[Stretch]:
        numbers = [at] if isinstance(at, int | np.integer) else at
        whole = isinstance(numbers, Sequence | np.ndarray) and all(
            isinstance(n, int | np.integer) and not isinstance(n, bool) for n in numbers
        )
        if not whole:
            raise expected("at= as text, a mapping, or numbers of a polygon's edges", at, "at='x > 0.9'")
        if self.region.outline is None:
            raise expected("a polygon where edges are named by number", f"{self.region!r}", "at='x > 0.9'")
        count = len(self.region.outline.starts)
        assert isinstance(numbers, Sequence | np.ndarray)
        for number in numbers:
            if not 0 <= number < count:
                raise expected(f"an edge from 0 to {count - 1}", str(number), "at=0")
        pieces = [self.pieces[number] for number in dict.fromkeys(int(n) for n in numbers)]
        return [Stretch(piece, 0.0, piece.length) for piece in pieces]


def _check_corners(polygon: Polygon, axes: tuple[str, str], ends: tuple[Axis, Axis]) -> None:
    for i, (axis, end) in enumerate(zip(axes, ends, strict=True)):
        outside = polygon.starts[~end.contains(polygon.starts[:, i])]
        if len(outside):
            x, y = outside[0]
            raise expected(
                f"corners with {axis} in [{end.lower:g}, {end.upper:g}]", f"({x:g}, {y:g})", "a wider domain"
            )


def _joined(label: NDArray[np.int32], axis: int) -> NDArray[np.int32]:
    """Parts that meet around a ring have one number."""
    for place in np.flatnonzero((np.take(label, 0, axis) > 0) & (np.take(label, -1, axis) > 0)):
        first, last = np.take(label, 0, axis)[place], np.take(label, -1, axis)[place]
        if first != last:
            label = np.where(label == last, first, label)
    return label


def _runs(told: Callable[[Array], Array], piece: Piece) -> list[tuple[float, float, float]]:
    """Where along a piece a function of few values has which: (from, to, value), ends bisected."""
    count = max(SAMPLED, len(piece.arcs)) if isinstance(piece, Curved) else TRACED
    arcs = np.clip(np.arange(-0.5, count + 1.0), 1e-9, count - 1e-9) * (piece.length / count)  # next to both ends too
    values = told(arcs)
    changes = np.flatnonzero(values[1:] != values[:-1])
    edges = [0.0]
    if len(changes):
        first = values[changes]
        places = bisected(lambda arc: told(arc) == first, arcs[changes], arcs[changes + 1], np.ones(len(changes), bool))
        edges += [float(place) for place in places]
    edges.append(piece.length)
    of_run = [values[0], *values[changes + 1]]
    return [(low, high, float(v)) for low, high, v in zip(edges, edges[1:], of_run, strict=False)]
