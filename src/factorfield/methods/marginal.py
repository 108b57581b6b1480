"""The search on the marginal likelihood: its mode, its curvature, and the integral over what was searched.

Coordinates z have the prior N(0, I); `density` is the log of prior times evidence, all weights integrated out. Newton's
steps are taken by differences over about half a posterior sd, so that the curvature is that of the density where its
mass is, and rounding in the evidence is nothing beside it. One or two unknown numbers are then integrated out by
Gauss-Hermite quadrature, more of them by Laplace's approximation; other coordinates always by Laplace's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from factorfield.errors import FAILED, ProblemError, expected
from factorfield.messages.gaussian import LOG_TWO_PI
from factorfield.model.searched import Coordinate, latents, position

Array = NDArray[np.float64]
Density = Callable[[Array], float]
FIRST_STEP, STEP = 0.1, 0.5  # of differences: in prior sds at first, then in posterior sds
SMALLEST_STEP = 1e-5  # prior sds
FARTHEST = 0.5  # prior sds that a step may go: no farther than the next mode
LEAST_CURVATURE = 0.3  # of the prior's: where the density is not concave
MOST_CURVATURE = 1e12  # a std of a millionth of the prior's: narrower is a cliff, where nothing is to be found
ARRIVED, NEAR = 5e-3, 0.5  # posterior sds: a step that goes no farther has arrived, or needs no proof that it gains
DIFFERENCE = 0.3  # posterior sds, of slopes that are compared between two models
MOST_STEPS, HALVINGS = 30, 6
NEEDLE = 1e-3  # of the variance by curvature: less than that is between the nodes of the quadrature
MOST_CLIMBS = 4  # each from a place that was found beside the last maximum
NODES = {1: 7, 2: 3}  # of the quadrature per unknown number
SCANNED = np.linspace(-2.5, 2.5, 31)  # prior sds along a number, where the density may have several maxima
RIVALS, ZOOMS = 3, 3  # of these, how many are looked at more closely, and how often
ABOVE = 1.0  # nats: a place that is better by more belongs to another maximum
MARGINAL = "what is unknown beside the fields was found on its marginal likelihood"
UNSETTLED = "the search on the marginal likelihood did not come to rest; try starts=5 or narrower priors"


@dataclass(frozen=True, eq=False)
class Marginal:
    """What is known about the coordinates: moments, the log of the density's integral, and how the search went."""

    mean: Array
    covariance: Array
    level: float
    settled: bool
    evaluations: int


class _Counted:
    """The density, minus infinity where there is none, with the evaluations counted and remembered."""

    def __init__(self, density: Density) -> None:
        self._density = density
        self._known: dict[bytes, float] = {}

    def __call__(self, z: Array) -> float:
        key = z.tobytes()
        if key not in self._known:
            try:
                value = self._density(z) - 0.5 * float(z @ z) - 0.5 * len(z) * LOG_TWO_PI
            except FAILED:
                value = -math.inf
            self._known[key] = value if math.isfinite(value) else -math.inf
        return self._known[key]

    @property
    def count(self) -> int:
        return len(self._known)


def integrated(density: Density, start: Array, numbers: int, candidates: Sequence[Array] = ()) -> Marginal:
    """Search from the most probable of `start` and `candidates`, then integrate; the first `numbers` coordinates are
    unknown numbers. `density` is the log evidence; the prior is added here."""
    counted = _Counted(density)
    try:
        return _integrated(counted, max([start, *candidates], key=counted), numbers)
    except ProblemError:
        raise
    except FAILED as problem:  # differences of numbers that rounding made
        raise expected(
            "measurements whose probability changes smoothly with the unknown coefficients", f"none ({problem})",
            "checking signs: a field that grows without bound does this, such as heat that a wall u_x = +h*(u - 18) at "
            "an upper end brings in; else narrower priors",
        ) from None  # fmt: skip


def _integrated(counted: _Counted, best: Array, numbers: int) -> Marginal:
    for _ in range(MOST_CLIMBS):
        mode, curvature, settled = _climb(counted, best)
        covariance: Array = np.asarray(np.linalg.inv(curvature), float)
        level = counted(mode) + 0.5 * len(mode) * LOG_TWO_PI - 0.5 * float(np.linalg.slogdet(curvature)[1])
        if not settled or numbers not in NODES:
            return Marginal(mode, covariance, level, settled, counted.count)
        nodes = _nodes(mode, covariance, numbers)
        best = max(nodes.places, key=counted)
        if counted(best) < counted(mode) + ABOVE:  # else the slope of a higher maximum
            found = _quadrature(counted, mode, covariance, level, nodes)
            if found is not None:
                return Marginal(*found, True, counted.count)
            break
    return Marginal(mode, covariance, level, False, counted.count)


def of_numbers(coordinates: Sequence[Coordinate], found: Marginal) -> tuple[Array, Array]:
    """Mean and root of the latents of unknown numbers, which are the first coordinates."""
    count, std = len(coordinates), np.array([each.std for each in coordinates])
    mean = np.array([each.mean for each in coordinates]) + std * found.mean[:count]
    return mean, std[:, None] * np.linalg.cholesky(found.covariance[:count, :count])


def moved(found: Marginal, evidence: Density, other: Density) -> Array:
    """The mean under another evidence that differs little: one Newton step by the difference of their slopes."""
    steps = DIFFERENCE * np.diag(np.sqrt(np.diag(found.covariance)))

    def slopes(of: Density) -> Array:
        ends = [(of(found.mean + step), of(found.mean - step)) for step in steps]
        return np.array([(a - b) / (2.0 * step.sum()) for (a, b), step in zip(ends, steps, strict=True)])

    return np.asarray(found.mean + found.covariance @ (slopes(other) - slopes(evidence)), float)


def slopes_by_numbers(
    means: Callable[[Array], Array], coordinates: Sequence[Coordinate], found: Marginal
) -> Array:
    """How means of weights follow the latents of unknown numbers (the last axis): differences over one posterior sd."""
    spread, slopes = np.sqrt(np.diag(found.covariance)), []
    for index, each in enumerate(coordinates):
        step = spread[index] * np.eye(len(found.mean))[index]
        change = means(found.mean + step) - means(found.mean - step)
        slopes.append(change / (2.0 * spread[index] * each.std))
    return np.stack(slopes, axis=-1)


def axis_points(count: int, numbers: int) -> list[Array]:
    """One and two prior sds to either side along every unknown number."""
    return [step * np.eye(count)[axis] for axis in range(numbers) for step in (-1.0, 1.0, -2.0, 2.0)]


def elsewhere(
    evidence: Density, coordinates: Sequence[Coordinate], near: Mapping[str, float], numbers: int
) -> dict[str, float] | None:
    """Latent values that are more probable than those found, along one unknown number after the other; None: none are.

    A frequency, or the speed of waves that few sensors see, has many maxima, each far narrower than the prior.
    """
    density = _Counted(evidence)
    best = place = position(coordinates, near)
    for axis in range(numbers):
        along = np.eye(len(place))[axis]
        line = [best + (z - best[axis]) * along for z in SCANNED]
        values = np.array([density(each) for each in line])
        padded = np.concatenate([[-math.inf], values, [-math.inf]])
        peaks = [i for i in range(len(line)) if values[i] >= max(padded[i], padded[i + 2])]
        for index in sorted(peaks, key=lambda i: -values[i])[:RIVALS]:
            best = max([best, _zoomed(density, line[index], along)], key=density)
    return latents(coordinates, best) if density(best) > density(place) + ABOVE else None


def _zoomed(density: _Counted, place: Array, along: Array) -> Array:
    """The best place near one of a scan, by steps that are halved."""
    step = 0.5 * (SCANNED[1] - SCANNED[0])
    for _ in range(ZOOMS):
        place = max([place, place + step * along, place - step * along], key=density)
        step *= 0.5
    return place


def _climb(density: _Counted, place: Array) -> tuple[Array, Array, bool]:
    """Newton's steps to a maximum: the place, minus the second derivatives there, and whether they came to rest.

    Far from it a step has to gain. Near it the differences and their curvature stay, and the search ends where the
    gradient vanishes: the maximum of the density smoothed over half a posterior sd.
    """
    moves, near = FIRST_STEP * np.eye(len(place)), False
    curvature = np.eye(len(place))
    for _ in range(MOST_STEPS):
        gradient, own = _slopes(density, place, moves)
        if not near:
            curvature = _concave(own, density, place, moves)
        wanted: Array = np.asarray(np.linalg.solve(curvature, gradient), float)
        length = math.sqrt(max(float(wanted @ gradient), 0.0))
        suited = _suited(curvature)
        sizes = np.sqrt(np.einsum("ji,jk,ki->i", moves, curvature, moves)) / STEP
        fits = bool(np.all(sizes < 3.0) and np.all(sizes > 1.0 / 3.0))
        if length < ARRIVED and fits:  # the curvature of this place, whatever way led here
            _, own = _slopes(density, place, suited)
            return place, _concave(own, density, place, suited), True
        near = fits and length < NEAR
        moved = place + wanted if near else _ascent(density, place, wanted)
        if moved is None and fits:
            return place, curvature, False
        place = place if moved is None else moved
        moves = moves if near else suited
    return place, curvature, False


def _suited(curvature: Array) -> Array:
    """Moves for differences, as columns: half a posterior sd along each principal direction, so that numbers of which
    the data know a combination alone are moved together."""
    values, vectors = linalg.eigh(curvature)
    return np.asarray(vectors * np.maximum(STEP / np.sqrt(values), SMALLEST_STEP), float)


def _slopes(density: _Counted, place: Array, moves: Array) -> tuple[Array, Array]:
    """By differences along each move: the gradient, and minus the second derivatives by the moves."""
    here, count = density(place), len(place)
    by_move, curvature = np.zeros(count), np.ones(count)
    for i, move in enumerate(moves.T):
        ahead, behind = density(place + move), density(place - move)
        length = float(np.linalg.norm(move))
        if math.isinf(ahead) or math.isinf(behind):  # an edge of where the density exists
            by_move[i] = 0.0 if ahead == behind else math.copysign(length, ahead - behind)
            curvature[i] = length**2
        else:
            by_move[i] = 0.5 * (ahead - behind)
            curvature[i] = -(ahead - 2.0 * here + behind)
    return np.asarray(np.linalg.solve(moves.T, by_move), float), curvature


def _concave(own: Array, density: _Counted, place: Array, moves: Array) -> Array:
    """Minus the Hessian, mixed derivatives by differences too, raised where the density is not concave."""
    hessian = np.diag(own)
    for i, j in combinations(range(len(place)), 2):
        signs = ((1.0, 1.0), (-1.0, -1.0), (1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0), (0.0, 0.0))
        values = np.array([density(place + a * moves[:, i] + b * moves[:, j]) for a, b in signs])
        if np.all(np.isfinite(values)):
            mixed = float(values @ [1.0, 1.0, -1.0, -1.0, -1.0, -1.0, 2.0])
            hessian[i, j] = hessian[j, i] = -0.5 * mixed
    back = np.linalg.inv(moves)
    values, vectors = linalg.eigh(back.T @ hessian @ back)
    return np.asarray((vectors * np.clip(values, LEAST_CURVATURE, MOST_CURVATURE)) @ vectors.T, float)


def _ascent(density: _Counted, place: Array, wanted: Array) -> Array | None:
    """The farthest part of a step, by halves, that gains; None if none does."""
    here = density(place)
    step = wanted * min(1.0, FARTHEST / max(float(np.abs(wanted).max()), 1e-300))
    for _ in range(HALVINGS):
        if density(place + step) > here:
            return np.asarray(place + step, float)
        step = 0.5 * step
    return None


@dataclass(frozen=True, eq=False)
class _Nodes:
    """Of Gauss-Hermite quadrature over the numbers: standard normal, their weights, and the places they stand for,
    along the line on which other coordinates follow the numbers."""

    standard: Array
    weights: Array
    follow: Array  # from numbers to all coordinates
    root: Array  # of the covariance of the numbers
    places: list[Array]


def _nodes(mode: Array, covariance: Array, numbers: int) -> _Nodes:
    own = covariance[:numbers, :numbers]
    root = linalg.cholesky(own, lower=True)
    follow = covariance[:, :numbers] @ np.linalg.inv(own)
    x, weight = np.polynomial.hermite_e.hermegauss(NODES[numbers])
    standard = np.array(list(product(x, repeat=numbers)))
    weights = np.prod(np.array(list(product(weight, repeat=numbers))), axis=1) / (2.0 * math.pi) ** (0.5 * numbers)
    return _Nodes(standard, weights, follow, root, [mode + follow @ (root @ node) for node in standard])


def _quadrature(
    density: _Counted, mode: Array, covariance: Array, level: float, nodes: _Nodes
) -> tuple[Array, Array, float] | None:
    """Moments and integral over the numbers; None where the density is a needle between the nodes."""
    gains = np.array([density(place) for place in nodes.places]) - density(mode)
    shares = nodes.weights * np.exp(np.minimum(gains + 0.5 * np.sum(nodes.standard**2, axis=1), 50.0))
    total = float(shares.sum())
    shares = shares / total
    centre = shares @ nodes.standard
    spread = (nodes.standard - centre).T @ (shares[:, None] * (nodes.standard - centre))
    if linalg.eigvalsh(spread)[0] < NEEDLE:
        return None
    wide = nodes.follow @ nodes.root
    moved = covariance - wide @ wide.T + wide @ spread @ wide.T
    return mode + wide @ centre, moved, level + math.log(total)
