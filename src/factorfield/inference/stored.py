"""Segments as text and arrays, and back: what a file holds of a posterior of the forward map.

The text says which grids, nodes and measurements there are, arrays hold numbers. The tangent is not held: it is computed
again when it is needed. A file may come from a stranger, so that everything is checked before it is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.forward.discrete import Layout, discretised
from factorfield.forward.inputs import Input
from factorfield.forward.map import START, ForwardMap
from factorfield.forward.paths import Path
from factorfield.inference.fit import Fit, Gaussian, Task
from factorfield.inference.ladder import ErrorColumn
from factorfield.inference.latents import Latents, LatentVariables, OverTime, latents_from_spec, latents_spec
from factorfield.inference.matern import TimeNodes
from factorfield.inference.measurements import Measurements
from factorfield.inference.segments import Carried, Segment
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Problem
from factorfield.space.axes import Fourier, Spline, basis_from_spec
from factorfield.space.grid import Grid
from factorfield.space.region import CutGrid

Array = NDArray[np.float64]
MOST_FUNCTIONS = 200_000  # of a grid that a file describes
MOST_LATENTS = 10_000  # of one segment


# -- to a file


def segments_spec(segments: Sequence[Segment]) -> tuple[dict[str, Any], dict[str, Array]]:
    """Text and arrays; what is empty is left out."""
    arrays: dict[str, Array] = {}
    spec = {"segments": [_segment_spec(s, f"segment{n}", arrays) for n, s in enumerate(segments)]}
    return spec, {name: values for name, values in arrays.items() if values.size}


def _segment_spec(segment: Segment, prefix: str, arrays: dict[str, Array]) -> dict[str, Any]:
    fit = segment.fit
    measurements, latents = fit.task.measurements, fit.task.latents
    paths = [fit.point.path]
    for path in (path for column in segment.columns for path in column.paths):
        if not any(path is known for known in paths):
            paths.append(path)
    numbers = {id(path): number for number, path in enumerate(paths)}
    for number, path in enumerate(paths):
        arrays[f"{prefix}_path{number}_edges"] = path.edges
        arrays[f"{prefix}_path{number}_values"] = path.values
        arrays[f"{prefix}_path{number}_inputs"] = np.concatenate([np.empty(0), *path.inputs.values()])
    belief = fit.belief
    arrays |= {
        f"{prefix}_mean": belief.mean, f"{prefix}_point": fit.point.e, f"{prefix}_vectors": belief.vectors,
        f"{prefix}_shares": belief.shares,
    }  # fmt: skip
    if segment.link is not None:
        arrays[f"{prefix}_link"] = segment.link
    for number, column in enumerate(segment.columns):
        arrays[f"{prefix}_column{number}"] = column.latents
    if isinstance(latents, Carried):
        for number, name in enumerate(latents.means):
            arrays[f"{prefix}_mean{number}"], arrays[f"{prefix}_root{number}"] = latents.means[name], latents.roots[name]
    return {
        "stages": fit.task.map.stages,
        "latents": _latents_spec(latents),
        "measurements": [group.statement.name for group in measurements.groups],
        "estimated": dict(measurements.estimated),
        "grids": [path.grid.spec() for path in paths],
        "columns": [
            {"paths": [numbers[id(path)] for path in column.paths], "shares": list(map(float, column.shares))}
            for column in segment.columns
        ],
        "steps": fit.steps, "settled": fit.has_settled,
    }  # fmt: skip


def _latents_spec(latents: LatentVariables) -> dict[str, Any]:
    if isinstance(latents, Latents):
        return {"parts": latents_spec(latents)}
    assert isinstance(latents, Carried)
    nodes = {name: source.time.spec() for name, source in latents.inputs.items() if isinstance(source.time, TimeNodes)}
    return {"carried": list(latents.means), "nodes": nodes}


# -- from a file


def segments_from(problem: Problem, spec: Mapping[str, Any], arrays: Mapping[str, Array]) -> tuple[Segment, ...]:
    """The segments that `segments_spec` wrote."""
    layout, segments = Layout.of(problem), list[Segment]()
    for number, described in enumerate(spec["segments"]):
        inputs = segments[0].fit.task.latents.inputs if segments else {}
        segments.append(_Reader(problem, layout, described, arrays, f"segment{number}").segment(inputs))
    _check_chain(problem, segments)
    return tuple(segments)


def _check_chain(problem: Problem, segments: Sequence[Segment]) -> None:
    """Segments in order of time, each with a link to the next."""
    for before, after in zip(segments[:-1], segments[1:], strict=True):
        fits = before.link is not None and before.link.shape[1] <= after.fit.task.latents.size
        if not fits or before.fit.point.path.edges[-1:].tolist() != after.fit.point.path.edges[:1].tolist():
            raise _misfit("segments that begin where the one before ends, with links between them", "others")
    first, last = segments[0].fit.point.path, segments[-1].fit.point.path
    if segments[-1].link is not None:
        raise _misfit("a last segment without a link", "one with a link")
    if not first.is_steady:
        time = problem.domain[TIME]
        if first.edges[0] != time.lower or last.edges[-1] != time.upper:
            received = f"{first.edges[0]:g} to {last.edges[-1]:g}"
            raise _misfit(f"windows from {time.lower:g} to {time.upper:g}", received)


@dataclass(frozen=True)
class _Reader:
    """One segment of a file; `prefix` begins the names of its arrays."""

    problem: Problem
    layout: Layout
    spec: Mapping[str, Any]
    arrays: Mapping[str, Array]
    prefix: str

    def segment(self, inputs: Mapping[str, Input]) -> Segment:
        """`inputs` are those of the first segment."""
        latents = self._latents(inputs)
        paths = [self._path(number, grid, latents) for number, grid in enumerate(self.spec["grids"])]
        stages, size = self.spec["stages"], latents.size
        if any(path.stages != (0 if path.is_steady else stages) for path in paths):
            raise _misfit(f"paths of {stages} instants a window", "others")
        discrete = discretised(self.layout, paths[0].grid, latents.inputs)
        task = Task(ForwardMap(discrete, paths[0].edges, stages), latents, self._measurements())
        mean, e = self._numbers("mean", size), self._numbers("point", size)
        shares = self._numbers("shares", None)
        vectors = self._numbers("vectors", size, len(shares))
        if np.any(shares < 0.0) or np.any(shares > 1.0):
            raise _misfit("shares of a posterior between 0 and 1", "others")
        fit = Fit(task, task.read(e, paths[0]), None, Gaussian(mean, vectors, shares), self.spec["steps"],
                  self.spec["settled"])  # fmt: skip
        link = self._numbers("link", size, None) if f"{self.prefix}_link" in self.arrays else None
        return Segment(fit, tuple(self._column(n, c, paths, size) for n, c in enumerate(self.spec["columns"])), link)

    def _numbers(self, name: str, *shape: int | None) -> Array:
        """A finite array of a shape, where None fits any length; an array without entries is not in the file."""
        name = f"{self.prefix}_{name}"
        if name not in self.arrays:
            if any(length not in (0, None) for length in shape) and None not in shape and 0 not in shape:
                raise _misfit(f"the array {name}", "a file without it")
            return np.zeros([length or 0 for length in shape])
        values = self.arrays[name]
        fits = values.ndim == len(shape) and all(b in (a, None) for a, b in zip(values.shape, shape, strict=True))
        if not fits or not np.all(np.isfinite(values)):
            wanted = " x ".join("any" if length is None else str(length) for length in shape)
            raise _misfit(f"an array {name} of {wanted} finite numbers", f"shape {values.shape}")
        return values

    def _path(self, number: int, spec: Mapping[str, Any], latents: LatentVariables) -> Path:
        grid, moves = self._grid(spec), self.layout.moves
        edges = self._numbers(f"path{number}_edges", None)
        values = self._numbers(f"path{number}_values", None, None, grid.size * len(self.layout.fields))
        is_ordered = len(edges) >= 2 and bool(np.all(np.diff(edges) > 0.0))
        fits = len(values) == len(edges) - 1 if moves else len(edges) == 0 and values.shape[:2] == (1, 1)
        if not fits or (moves and not is_ordered):
            raise _misfit("edges of windows in ascending order, and the values of each window", "others")
        sizes = {name: source.size for name, source in latents.inputs.items()}
        if isinstance(latents, Carried):
            sizes = {START: values.shape[2]} | sizes
        whole = self._numbers(f"path{number}_inputs", sum(sizes.values()))
        parts = np.split(whole, np.cumsum(list(sizes.values()))[:-1]) if sizes else []
        return Path(grid, edges, values, dict(zip(sizes, parts, strict=True)))

    def _grid(self, spec: Mapping[str, Any]) -> Grid | CutGrid:
        domain = self.problem.domain
        if list(spec) != list(domain.space):
            raise _misfit(f"a grid over {', '.join(domain.space) or 'no axis'}", ", ".join(spec) or "no axis")
        grid = checked_grid(spec, domain)
        return grid if self.problem.shape is None else CutGrid.of(grid.axes, self.problem.shape)

    def _latents(self, inputs: Mapping[str, Input]) -> LatentVariables:
        spec = self.spec["latents"]
        if "parts" in spec:
            if inputs:
                raise _misfit("latents that a segment hands to the next", "a segment with latents of its own")
            latents = latents_from_spec(self.problem, spec["parts"], checked_grid)
            _check_count(latents.size)
            return latents
        return self._carried(spec, inputs)

    def _carried(self, spec: Mapping[str, Any], inputs: Mapping[str, Input]) -> Carried:
        if spec["carried"] != [START, *inputs] or not set(spec["nodes"]) <= set(inputs):
            raise _misfit(f"what a segment hands on: {', '.join([START, *inputs])}", ", ".join(spec["carried"]))
        known = dict(inputs)
        for name, nodes in spec["nodes"].items():
            known[name] = Input(name, time=TimeNodes.from_spec(nodes))
        means, roots, size = {}, {}, None
        for number, name in enumerate(spec["carried"]):
            means[name] = self._numbers(f"mean{number}", known[name].size if name in known else None)
            roots[name] = self._numbers(f"root{number}", len(means[name]), size)
            size = roots[name].shape[1]
        _check_count(size or 0)
        edges = self._numbers("path0_edges", None)
        if not len(edges):
            raise _misfit("the windows of a segment", "none")
        return Carried(known, means, roots, float(edges[0]))

    def _measurements(self) -> Measurements:
        stated = {s.name: s for s in self.problem.statements if s.kind == "observation"}
        names, estimated = self.spec["measurements"], self.spec["estimated"]
        if not set(names) <= set(stated) or len(set(names)) != len(names):
            raise _misfit(f"measurements among {', '.join(stated) or 'none'}", ", ".join(names))
        measurements = Measurements.of(self.problem, [stated[name] for name in names])
        wanted = {group.statement.name for group in measurements.open}
        if not wanted <= set(estimated) or any(not sigma > 0.0 for sigma in estimated.values()):
            raise _misfit(f"a sigma > 0 of {', '.join(sorted(wanted))}", ", ".join(estimated) or "none")
        return Measurements(measurements.groups, estimated)

    def _column(self, number: int, spec: Mapping[str, Any], paths: Sequence[Path], size: int) -> ErrorColumn:
        if len(spec["paths"]) != len(spec["shares"]) or any(path >= len(paths) for path in spec["paths"]):
            raise _misfit(f"columns of the numerical error by {len(paths)} paths", str(spec["paths"]))
        latents = self._numbers(f"column{number}", size)
        return ErrorColumn(tuple(paths[path] for path in spec["paths"]), tuple(spec["shares"]), latents)


def checked_grid(spec: Mapping[str, Any], domain: Mapping[str, Any]) -> Grid:
    """The product of bases that a file describes, if these are of the domain's axes."""
    count = 1
    for name, described in spec.items():
        axis = domain[name]
        basis = basis_from_spec(described)
        if isinstance(basis, Spline):
            fits = (basis.breaks[0], basis.breaks[-1]) == (axis.lower, axis.upper)
        else:
            assert isinstance(basis, Fourier)
            fits = (basis.lower, basis.period) == (axis.lower, axis.length)
        if not fits:
            raise _misfit(f"functions of {name} from {axis.lower:g} to {axis.upper:g}", "others")
        count *= basis.size
    if count > MOST_FUNCTIONS:
        raise _misfit(f"at most {MOST_FUNCTIONS} functions", str(count))
    return Grid.from_spec(spec)


def _check_count(latents: int) -> None:
    if latents > MOST_LATENTS:
        raise _misfit(f"at most {MOST_LATENTS} latents", str(latents))


def _misfit(wanted: str, received: str) -> Exception:
    return expected(wanted, received, "saving it again")
