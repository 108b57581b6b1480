"""A posterior of the forward map as text and arrays, and back: what a file holds of it.

The text says which grids, latents and measurements there are, arrays hold numbers. The tangent is not held: it is
computed again when it is needed. A file may come from a stranger, so that everything is checked before it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import ProblemError, expected
from factorfield.forward.discrete import discretised
from factorfield.forward.inputs import Input
from factorfield.forward.layout import Layout
from factorfield.forward.map import START, ForwardMap
from factorfield.forward.paths import Path
from factorfield.inference.fit import Fit, Gaussian, Task
from factorfield.inference.ladder import ErrorColumn
from factorfield.inference.latents import Latent, Latents, LatentVariables, Number, OverSpace, OverTime, latents_of
from factorfield.inference.matern import STATE, TimeNodes
from factorfield.inference.measurements import Measurements
from factorfield.inference.segments import Carried, Segment
from factorfield.inference.sites import LEAST
from factorfield.problem.domain import TIME, Domain
from factorfield.problem.problem import Problem
from factorfield.space.axes import basis_from_spec
from factorfield.space.grid import Grid
from factorfield.space.region import CutGrid

Array = NDArray[np.float64]
Weighted = tuple[float, Segment]
MOST_FUNCTIONS = 200_000  # of a grid that a file describes
MOST_ALONG = 3_000  # of these along one axis, where matrices are dense
MOST_REFERENCES = 10_000  # of columns to paths
MOST_LATENTS = 12_000  # of one segment, and coefficients of one function


# -- to a file


@dataclass
class Writer:
    """Text and arrays of segments; paths that several of them share are held once. What is empty is left out."""

    arrays: dict[str, Array] = field(default_factory=dict)
    paths: list[Path] = field(default_factory=list)
    segments: list[dict[str, Any]] = field(default_factory=list)

    def spec(self, segments: Sequence[Segment], mixture: Sequence[Weighted]) -> dict[str, Any]:
        for segment in (*segments, *(segment for _, segment in mixture)):
            self._add(segment, f"segment{len(self.segments)}")
        paths = [{"grid": path.grid.spec(), "inputs": _sizes(path)} for path in self.paths]
        for number, path in enumerate(self.paths):
            self._keep(f"path{number}_edges", path.edges)
            self._keep(f"path{number}_values", path.values)
            self._keep(f"path{number}_inputs", np.concatenate([np.empty(0), *path.inputs.values()]))
        return {"segments": self.segments, "weights": [weight for weight, _ in mixture], "paths": paths}

    def _keep(self, name: str, values: Array) -> None:
        if values.size:
            self.arrays[name] = values

    def _number(self, path: Path) -> int:
        """Of a path among those that are held."""
        for number, known in enumerate(self.paths):
            if known is path:
                return number
        self.paths.append(path)
        return len(self.paths) - 1

    def _add(self, segment: Segment, prefix: str) -> None:
        fit, measurements = segment.fit, segment.fit.task.measurements
        belief, latents = fit.belief, fit.task.latents
        numbers = {"mean": belief.mean, "point": fit.point.e, "vectors": belief.vectors, "shares": belief.shares}
        if segment.link is not None:
            numbers["link"] = segment.link
        if isinstance(latents, Carried):
            for number, name in enumerate(latents.means):
                numbers |= {f"mean{number}": latents.means[name], f"root{number}": latents.roots[name]}
        for number, group in enumerate(measurements.groups):
            if group.site is not None:
                numbers[f"site{number}"] = np.stack(group.site)
        for number, column in enumerate(segment.columns):
            numbers[f"column{number}"] = column.latents
        for name, values in numbers.items():
            self._keep(f"{prefix}_{name}", values)
        self.segments.append({
            "path": self._number(fit.point.path), "stages": fit.task.map.stages, "latents": _latents_spec(latents),
            "measurements": [group.statement.name for group in measurements.groups],
            "estimated": dict(measurements.estimated), "steps": fit.steps, "settled": fit.has_settled,
            "floors": list(segment.floors),
            "columns": [
                {"paths": [self._number(path) for path in column.paths], "shares": list(map(float, column.shares))}
                for column in segment.columns
            ],
        })  # fmt: skip


def _sizes(path: Path) -> dict[str, int]:
    return {name: len(values) for name, values in path.inputs.items()}


def _latents_spec(latents: LatentVariables) -> dict[str, Any]:
    if isinstance(latents, Carried):
        times = {name: source.time for name, source in latents.inputs.items()}
        nodes = {name: time.spec() for name, time in times.items() if isinstance(time, TimeNodes)}
        return {"carried": list(latents.means), "nodes": nodes}
    assert isinstance(latents, Latents)
    return {"parts": {part.name: _latent_spec(part) for part in latents.parts}}


def _latent_spec(part: Latent) -> dict[str, Any]:
    if isinstance(part, OverTime):
        return {"nodes": part.nodes.spec(), "std": part.std, "length": part.length, "horizon": part.horizon}
    if isinstance(part, OverSpace):
        return {"grid": part.grid.spec(), "std": part.std, "lengths": dict(part.lengths), "whole": part.is_whole}
    assert isinstance(part, Number)
    return {"mean": part.unknown.mean, "std": part.unknown.std}


# -- from a file


def segments_from(
    problem: Problem, spec: Mapping[str, Any], arrays: Mapping[str, Array]
) -> tuple[tuple[Segment, ...], tuple[Weighted, ...]]:
    """The segments and the mixture that `Writer` wrote."""
    reader = Reader(problem, Layout.of(problem), arrays)
    reader.paths = [reader.path(number, one) for number, one in enumerate(spec["paths"])]
    count, weights = len(spec["segments"]) - len(spec["weights"]), spec["weights"]
    if count < 1 or any(not 0.0 <= weight <= 1.0 for weight in weights) or (weights and abs(sum(weights) - 1.0) > 1e-6):
        raise _misfit("segments, and weights of others that add up to one", f"weights {weights}")
    references = sum(len(column["paths"]) for one in spec["segments"] for column in one["columns"])
    if references > MOST_REFERENCES:
        raise _misfit(f"columns of at most {MOST_REFERENCES} paths in all", str(references))
    segments: list[Segment] = []
    for number, one in enumerate(spec["segments"]):
        before = segments[0].fit.task.latents.inputs if 0 < number < count else {}
        segments.append(reader.segment(one, f"segment{number}", before))
    _check_chain(problem, segments[:count])
    for segment in segments[count:]:
        _check_chain(problem, [segment])
    return tuple(segments[:count]), tuple(zip(weights, segments[count:], strict=True))


def _check_chain(problem: Problem, segments: Sequence[Segment]) -> None:
    """Segments in order of time, all but the last with a link to the next."""
    for before, after in pairwise(segments):
        link, edges = before.link, (before.fit.point.path.edges, after.fit.point.path.edges)
        if link is None or link.shape[1] > after.fit.task.latents.size or list(edges[0][-1:]) != list(edges[1][:1]):
            raise _misfit("segments that begin where the one before ends, with links between them", "others")
    first, last = segments[0].fit.point.path, segments[-1].fit.point.path
    if segments[-1].link is not None or (first.is_steady and len(segments) > 1):
        raise _misfit("a last segment without a link", "one with a link")
    if not first.is_steady:
        time, ends = problem.domain[TIME], (first.edges[0], last.edges[-1])
        if ends != (time.lower, time.upper):
            raise _misfit(f"windows from {time.lower:g} to {time.upper:g}", f"from {ends[0]:g} to {ends[1]:g}")


@dataclass
class Reader:
    """The arrays of a file, and what was made of them so far."""

    problem: Problem
    layout: Layout
    arrays: Mapping[str, Array]
    paths: list[Path] = field(default_factory=list)

    def numbers(self, name: str, *shape: int | None) -> Array:
        """A finite array of a shape; None fits any length. What has no entries is not in the file."""
        if name not in self.arrays:
            if shape and 0 not in shape and None not in shape:
                raise _misfit(f"the array {name}", "a file without it")
            return np.zeros([length or 0 for length in shape])
        values = self.arrays[name]
        fits = values.ndim == len(shape) and all(b in (a, None) for a, b in zip(values.shape, shape, strict=True))
        if not fits or not np.all(np.isfinite(values)):
            wanted = " x ".join("any" if length is None else str(length) for length in shape)
            raise _misfit(f"an array {name} of {wanted} finite numbers", f"shape {values.shape}")
        return values

    def path(self, number: int, spec: Mapping[str, Any]) -> Path:
        grid, moves, sizes = self._grid(spec["grid"]), self.layout.moves, spec["inputs"]
        edges = self.numbers(f"path{number}_edges", None)
        values = self.numbers(f"path{number}_values", None, None, grid.size * len(self.layout.states))
        if moves:
            fits = len(edges) >= 2 and len(values) == len(edges) - 1 and bool(np.all(np.diff(edges) > 0.0))
        else:
            fits = len(edges) == 0 and values.shape[:2] == (1, 1)
        if not fits:
            raise _misfit("edges of windows in ascending order, and the values of each window", "others")
        whole = self.numbers(f"path{number}_inputs", sum(sizes.values()))
        parts = np.split(whole, np.cumsum(list(sizes.values()))[:-1]) if sizes else []
        return Path(grid, edges, values, dict(zip(sizes, parts, strict=True)))

    def _grid(self, spec: Mapping[str, Any]) -> Grid | CutGrid:
        space = self.problem.domain.space
        if list(spec) != list(space):
            raise _misfit(f"a grid over {', '.join(space) or 'no axis'}", ", ".join(spec) or "no axis")
        grid = checked_grid(spec, self.problem.domain)
        return grid if self.problem.shape is None else CutGrid.of(grid.axes, self.problem.shape)

    def segment(self, spec: Mapping[str, Any], prefix: str, before: Mapping[str, Input]) -> Segment:
        """`before`: the inputs of the first segment, where this is a later one."""
        path = self._path_at(spec["path"])
        latents = self._latents(spec["latents"], prefix, path, before)
        size, stages = latents.size, spec["stages"]
        columns = [self._column(one, f"{prefix}_column{number}", size) for number, one in enumerate(spec["columns"])]
        self._check_paths(latents, stages, [path, *(one for column in columns for one in column.paths)])
        discrete = discretised(self.layout, path.grid, latents.inputs)
        task = Task(ForwardMap(discrete, path.edges, stages), latents, self._measurements(spec, prefix))
        shares = self.numbers(f"{prefix}_shares", None)
        if np.any(shares < 1.0 - LEAST**-0.5) or np.any(shares > 1.0):  # outliers widen a posterior
            raise _misfit(f"shares of a posterior between {1.0 - LEAST**-0.5:.3g} and 1", "others")
        mean, e = (self.numbers(f"{prefix}_{name}", size) for name in ("mean", "point"))
        belief = Gaussian(mean, self.numbers(f"{prefix}_vectors", size, len(shares)), shares)
        fit = Fit(task, task.read(e, path), None, belief, spec["steps"], spec["settled"])
        link = self.numbers(f"{prefix}_link", size, None) if f"{prefix}_link" in self.arrays else None
        floors = tuple(spec["floors"])
        if len(floors) not in (0, len(self.layout.states)):
            raise _misfit(f"an error of each of {len(self.layout.states)} fields", str(len(floors)))
        return Segment(fit, tuple(columns), floors, link)

    def _path_at(self, number: int) -> Path:
        if number >= len(self.paths):
            raise _misfit(f"the number of one of {len(self.paths)} paths", str(number))
        return self.paths[number]

    def _check_paths(self, latents: LatentVariables, stages: int, paths: Sequence[Path]) -> None:
        for path in paths:
            sizes = {name: source.size for name, source in latents.inputs.items()}
            if isinstance(latents, Carried):
                sizes = {START: path.values.shape[2]} | sizes
            if _sizes(path) != sizes or path.stages != (stages if self.layout.moves else 0):
                raise _misfit("paths with the inputs and instants of their segment", "others")

    def _latents(
        self, spec: Mapping[str, Any], prefix: str, path: Path, before: Mapping[str, Input]
    ) -> LatentVariables:
        if before:
            return self._carried(spec, prefix, path, before)
        parts = latents_of(self.layout)
        named = spec.get("parts", {})
        if list(named) != [part.name for part in parts]:
            raise _misfit(f"latents {', '.join(part.name for part in parts) or 'of nothing'}", ", ".join(named))
        changed = [_latent_from(part, named[part.name], self.problem.domain) for part in parts]
        if sum(part.input.size for part in changed) > MOST_LATENTS:
            raise _misfit(f"at most {MOST_LATENTS} latents", "more")
        return Latents(tuple(changed))

    def _carried(
        self, spec: Mapping[str, Any], prefix: str, path: Path, before: Mapping[str, Input]
    ) -> Carried:  # fmt: skip
        wanted, names = [START, *before], spec.get("carried", [])
        nodes = spec.get("nodes", {})
        if names != wanted or set(nodes) != {name for name, source in before.items() if source.time is not None}:
            raise _misfit(f"what a segment hands to the next, {', '.join(wanted)}", ", ".join(names) or "nothing")
        inputs = {n: Input(n, time=_nodes(nodes[n])) if n in nodes else source for n, source in before.items()}
        means: dict[str, Array] = {}
        roots: dict[str, Array] = {}
        width: int | None = None
        for number, name in enumerate(names):
            size = inputs[name].size if name in inputs else path.values.shape[2]
            means[name] = self.numbers(f"{prefix}_mean{number}", size)
            roots[name] = self.numbers(f"{prefix}_root{number}", size, width)
            width = roots[name].shape[1]
        if path.is_steady:
            raise _misfit("windows of time", "none")
        return Carried(inputs, means, roots, float(path.edges[0]))

    def _measurements(self, spec: Mapping[str, Any], prefix: str) -> Measurements:
        stated = {s.name: s for s in self.problem.statements if s.kind == "observation"}
        names, estimated = spec["measurements"], spec["estimated"]
        if not set(names) <= set(stated) or len(set(names)) != len(names):
            raise _misfit(f"measurements among {', '.join(stated) or 'none'}", ", ".join(names))
        measurements = Measurements.of(self.problem, [stated[name] for name in names])
        wanted = {group.statement.name for group in measurements.open}
        if not wanted <= set(estimated) or any(not sigma > 0.0 for sigma in estimated.values()):
            raise _misfit(f"a sigma > 0 of {', '.join(sorted(wanted))}", ", ".join(estimated) or "none")
        groups = tuple(
            g if g.site is None else replace(g, site=self._site(f"{prefix}_site{number}", len(g.target)))
            for number, g in enumerate(measurements.groups)
        )
        return Measurements(groups, estimated)

    def _site(self, name: str, count: int) -> tuple[Array, Array]:
        """Values and sigmas that stand for readings with outliers."""
        values, sigmas = self.numbers(name, 2, count)
        if not np.all(sigmas > 0.0):
            raise _misfit("sigmas > 0 of readings", "others")
        return values, sigmas

    def _column(self, spec: Mapping[str, Any], name: str, size: int) -> ErrorColumn:
        if len(spec["paths"]) != len(spec["shares"]):
            raise _misfit("a share of every path", f"{len(spec['shares'])} shares")
        paths = tuple(self._path_at(path) for path in spec["paths"])
        return ErrorColumn(paths, tuple(spec["shares"]), self.numbers(name, size))


def _latent_from(part: Latent, spec: Mapping[str, Any], domain: Domain) -> Latent:
    """The latent of a problem with the size, the length and the grid that a file says."""
    wanted = set(_latent_spec(part))
    if set(spec) != wanted:
        raise _misfit(f"{', '.join(sorted(wanted)) or 'nothing'} of {part.name}", ", ".join(spec) or "nothing")
    if isinstance(part, Number):
        return Number(part.name, replace(part.unknown, mean=spec["mean"], std=spec["std"]))
    if isinstance(part, OverTime):
        return OverTime(part.name, _nodes(spec["nodes"]), part.level, spec["std"], spec["length"], spec["horizon"])
    assert isinstance(part, OverSpace)
    if list(spec["lengths"]) != list(part.lengths) or list(spec["grid"]) != list(part.lengths):
        raise _misfit(f"lengths of {part.name} along {', '.join(part.lengths)}", ", ".join(spec["lengths"]))
    grid = checked_grid(spec["grid"], domain)
    return OverSpace(part.name, grid, part.domain, part.level, spec["std"], spec["lengths"], spec["whole"])


def _nodes(spec: Mapping[str, Any]) -> TimeNodes:
    if STATE * spec["count"] > MOST_LATENTS:
        raise _misfit(f"at most {MOST_LATENTS // STATE} nodes of time", str(spec["count"]))
    return TimeNodes(**spec)


def checked_grid(spec: Mapping[str, Any], domain: Domain) -> Grid:
    """The product of bases that a file describes, if they are of the domain's axes."""
    axes, count = {}, 1
    for name, described in spec.items():
        axis, basis = domain[name], basis_from_spec(described)
        lower, upper = basis.ends
        if abs(lower - axis.lower) + abs(upper - axis.upper) > 1e-9 * axis.length:
            raise _misfit(f"functions of {name} from {axis.lower:g} to {axis.upper:g}", f"from {lower:g} to {upper:g}")
        if basis.size > MOST_ALONG:
            raise _misfit(f"at most {MOST_ALONG} functions along {name}", str(basis.size))
        axes[name] = basis
        count *= basis.size
    if count > MOST_FUNCTIONS:
        raise _misfit(f"at most {MOST_FUNCTIONS} functions", str(count))
    return Grid(axes)


def _misfit(wanted: str, received: str) -> ProblemError:
    return expected(wanted, received, "saving it again")
