"""A posterior in segments of time: each has latents of its own, and hands what it knows of its end to the next.

The posterior of (state, inputs) at the end of a segment is written as new latents ~ N(0, I): the next segment begins
there, and costs the same however long the past is. What later measurements say of these latents flows back to earlier
segments when their past is asked for (Rauch, Tung and Striebel's smoother in square-root form).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield.forward.algebra import Singular
from factorfield.forward.inputs import Input
from factorfield.forward.map import START
from factorfield.forward.newton import NotConverged
from factorfield.inference.fit import Fit
from factorfield.inference.ladder import ErrorColumn
from factorfield.inference.latents import OverTime
from factorfield.inference.matern import STATE, TimeNodes

Array = NDArray[np.float64]
BENDS = 4  # pairs of draws by which the error of a linearisation is measured
NEGLIGIBLE = 1e-12  # of the largest direction: smaller ones are dropped between segments


@dataclass(frozen=True, eq=False)
class Belief:
    """N(mean, root root') over the latents of a segment."""

    mean: Array
    root: Array

    def spread(self, rows: Array) -> Array:
        return np.asarray(rows @ self.root)


@dataclass(frozen=True, eq=False)
class Segment:
    """A fit by measurements up to its end. `link` (latents, first latents of the next segment): where these lie
    in this one's posterior, in units of its root; None for the last segment."""

    fit: Fit
    columns: tuple[ErrorColumn, ...] = ()  # of its numerical error
    floors: tuple[float, ...] = ()  # by field, the least std of that error; none where there are no columns
    link: Array | None = None

    @property
    def begin(self) -> float:
        edges = self.fit.point.path.edges
        return float(edges[0]) if len(edges) else -np.inf

    @property
    def filtered(self) -> Belief:
        belief = self.fit.belief
        return Belief(belief.mean, belief.spread(np.eye(len(belief.mean))))


def smoothed(segments: Sequence[Segment], number: int) -> Belief:
    """What all measurements say of the latents of a segment."""
    belief = segments[-1].filtered
    for segment in reversed(segments[number:-1]):
        before, link = segment.filtered, segment.link
        assert link is not None
        shared = link.shape[1]  # later latents of the next segment are new there
        free = _root_of(np.eye(len(link)) - link @ link.T)
        mean = before.mean + before.root @ (link @ belief.mean[:shared])
        belief = Belief(mean, before.root @ np.concatenate([link @ belief.root[:shared], free], axis=1))
    return belief


def _root_of(covariance: Array) -> Array:
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def bend(segment: Segment, draws: int = BENDS) -> Array:
    """What the tangent does not show of the end of a segment, (coefficients, draws): of pairs of opposite draws of the
    latents, half the sum of both ends less the middle. Their second moment is that of the linearisation's error."""
    fit = segment.fit
    task, end = fit.task, fit.point.path.end
    if task.is_affine or not task.latents.size:
        return np.zeros((len(end), 0))
    drawn = fit.belief.spread(np.random.default_rng(0).standard_normal((draws, task.latents.size)))
    columns = []
    for move in drawn:
        try:
            ends = [task.at(fit.point.e + sign * move).path.end for sign in (1.0, -1.0)]
        except (NotConverged, Singular):
            continue
        columns.append(0.5 * (ends[0] + ends[1]) - end)
    return np.stack(columns, axis=1) / np.sqrt(len(columns)) if columns else np.zeros((len(end), 0))


@dataclass(frozen=True, eq=False)
class Carried:
    """Latents of a segment that begins where another ended: means and roots of the inputs' coefficients and of the
    state. It has the interface of `Latents`."""

    inputs: Mapping[str, Input]
    means: Mapping[str, Array]
    roots: Mapping[str, Array]
    begin: float

    @property
    def size(self) -> int:
        return self.roots[START].shape[1]

    def coefficients(self, e: Array) -> dict[str, Array]:
        return {name: mean + self.roots[name] @ e for name, mean in self.means.items()}

    def directions(self, along: Array) -> dict[str, Array]:
        return {name: root @ along for name, root in self.roots.items()}

    def gathered(self, rows: Mapping[str, Array], count: int) -> Array:
        result = np.zeros((self.size, count))
        for name, part in rows.items():
            result += self.roots[name].T @ part
        return result


def carried(segment: Segment, end: float, functions: Mapping[str, OverTime]) -> tuple[Segment, Carried]:
    """The segment with its link, and the latents of the next one until `end`.

    `functions` of time are continued: their last nodes are carried, later ones get latents of their own."""
    fit = segment.fit
    latents: Any = fit.task.latents
    names = list(latents.inputs)
    size = latents.size
    directions = latents.directions(np.eye(size))
    parts = {START: (fit.point.path.end, fit.tangent[-1, -1])}
    parts |= {name: (fit.point.path.inputs[name], directions[name]) for name in names}
    whole = fit.belief.spread(np.concatenate([rows for _, rows in parts.values()]))
    bent = bend(segment)
    errors = np.zeros((len(whole), bent.shape[1]))
    errors[: len(bent)] = bent
    whole = np.concatenate([whole, errors], axis=1)
    scale = np.linalg.norm(whole, axis=1, keepdims=True)
    scale[scale == 0.0] = 1.0  # entries of different units weigh alike
    left, sizes, right = np.linalg.svd(whole / scale, full_matrices=False)
    kept = sizes > NEGLIGIBLE * max(float(sizes[0]) if len(sizes) else 0.0, 1e-300)
    root = scale * left[:, kept] * sizes[kept]
    means: dict[str, Array] = {}
    roots: dict[str, Array] = {}
    begin = 0
    for name, (mean, rows) in parts.items():
        means[name], roots[name] = mean, root[begin : begin + len(rows)]
        begin += len(rows)
    inputs = dict(latents.inputs)
    for name, function in functions.items():
        _continue(name, function, end, inputs, means, roots)
    at = float(fit.point.path.edges[-1])
    link = np.ascontiguousarray(right[kept].T[:size])
    return replace(segment, link=link), Carried(inputs, means, roots, at)


def _continue(
    name: str, function: OverTime, end: float, inputs: dict[str, Input], means: dict[str, Array],
    roots: dict[str, Array],
) -> None:  # fmt: skip
    """A function of time with nodes until `end`: the two last nodes are kept, new ones depart from the last."""
    old: Any = inputs[name].time
    assert isinstance(old, TimeNodes)
    more = old.until(end).count - old.count
    first = old.count - 2  # of the nodes that are kept
    step, noise = old.transition(function.length)
    mean, root = means[name][STATE * first :], roots[name][STATE * first :]
    level = np.array([function.level, 0.0, 0.0])
    width = root.shape[1]
    for key in roots:
        roots[key] = np.concatenate([roots[key], np.zeros((len(roots[key]), STATE * more))], axis=1)
    root = np.concatenate([root, np.zeros((len(root), STATE * more))], axis=1)
    for number in range(more):
        fresh = step @ root[-STATE:]
        columns = slice(width + STATE * number, width + STATE * (number + 1))
        fresh[:, columns] += function.std * noise
        root = np.concatenate([root, fresh])
        mean = np.concatenate([mean, level + step @ (mean[-STATE:] - level)])
    nodes = replace(old, begin=old.begin + first * old.spacing, count=2 + more)
    inputs[name], means[name], roots[name] = Input(name, time=nodes), mean, root
