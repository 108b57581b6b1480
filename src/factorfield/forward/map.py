"""The frozen map: coefficients of inputs in, a path of the fields out, with its exact tangent and adjoint.

The windows of time are chosen once (`choose_windows`) and then kept, so that the map is a smooth function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorfield.forward import newton
from factorfield.forward.algebra import Factor, Singular
from factorfield.forward.discrete import Discrete
from factorfield.forward.inputs import Coefficients, Directions
from factorfield.forward.landmarks import BESIDE
from factorfield.forward.newton import NotConverged
from factorfield.forward.paths import Path
from factorfield.forward.radau import Rule, rule_of
from factorfield.forward.system import Instant
from factorfield.problem.domain import TIME

Array = NDArray[np.float64]
AT_ONCE = 4_000_000  # numbers of slopes and right-hand sides that are made at once
START = "the start"  # among inputs: the coefficients of the fields where the map begins, if not at the problem's start


@dataclass(frozen=True)
class Steps:
    """How windows of time are chosen. Errors are relative to the largest value of each field so far."""

    stages: int = 5
    first: float = 1.0 / 16.0  # of the horizon
    shortest: float = 1e-12  # of the horizon
    safety: float = 0.8
    most_growth: float = 4.0
    least_growth: float = 0.1
    most_windows: int = 20_000
    probe_share: float = 1e-3  # probes are shown to the tolerance over this


@dataclass(frozen=True, eq=False)
class Window:
    """A solved window: its values (1 + stages, n) and the factorisation that may serve the next one."""

    values: Array
    factor: Factor


@dataclass(frozen=True, eq=False)
class WindowEquations:
    """The equations at all instants of a window, in departures from its start. Vectors hold instant after instant."""

    instant: Instant
    rule: Rule
    start: Array
    lower: float
    length: float
    sizes: Array  # of every coefficient's field, so far
    offsets: Sequence[int]
    is_linear: bool

    @property
    def t(self) -> Array:
        return self.lower + self.length * self.rule.instants

    def _states(self, departures: Array) -> tuple[Array, Array]:
        table = departures.reshape(self.rule.stages, -1).T
        return self.start[:, None] + table, table @ self.rule.rates.T / self.length

    def residual(self, values: Array) -> Array:
        return np.ascontiguousarray(self.instant.residual(*self._states(values), self.t).T).ravel()

    def linearise(self, values: Array) -> tuple[Array, Factor]:
        missed, slopes, masses = self.instant.residual_and_slopes(*self._states(values), self.t)
        factor = self.instant.system.pattern.stage_factor(slopes, masses, self.rule.rates / self.length, exact=False)
        return np.ascontiguousarray(missed.T).ravel(), factor

    def size(self, step: Array, values: Array) -> float:
        table = (values + step).reshape(self.rule.stages, -1)
        now = sizes_by_field(np.max(np.abs(self.start + table), axis=0), self.offsets)
        sizes = np.maximum(self.sizes, now)
        return float(np.max(np.abs(step.reshape(self.rule.stages, -1)) / sizes, initial=0.0))


@dataclass(frozen=True, eq=False)
class SteadyEquations:
    """The equations without rates, or those of a start."""

    instant: Instant
    t: float
    offsets: Sequence[int]
    is_linear: bool

    def residual(self, values: Array) -> Array:
        return self.instant.residual(values[:, None], np.zeros((len(values), 1)), np.array([self.t]))[:, 0]

    def linearise(self, values: Array) -> tuple[Array, Factor]:
        pattern, nothing = self.instant.system.pattern, np.zeros((len(values), 1))
        if self.is_linear:  # slopes are assembled once
            return self.residual(values), pattern.factor(self.instant.constant[0])
        missed, slopes, _ = self.instant.residual_and_slopes(values[:, None], nothing, np.array([self.t]))
        return missed[:, 0], pattern.factor(slopes[0])

    def size(self, step: Array, values: Array) -> float:
        scale = np.maximum(sizes_by_field(values + step, self.offsets), np.finfo(float).tiny)
        return float(np.max(np.abs(step) / scale, initial=0.0))


def sizes_by_field(values: Array, offsets: Sequence[int]) -> Array:
    """The largest coefficient of each field, repeated for each of them."""
    sizes = np.maximum.reduceat(np.abs(values), offsets)
    return np.repeat(sizes, len(values) // len(offsets))


@dataclass(frozen=True, eq=False)
class ForwardMap:
    """A problem on a grid with its windows of time. `edges` is empty for a steady problem."""

    discrete: Discrete
    edges: Array
    stages: int = Steps.stages

    @property
    def lower(self) -> float:
        if len(self.edges):
            return float(self.edges[0])
        domain = self.discrete.problem.domain
        return domain[TIME].lower if TIME in domain else 0.0

    def run(self, inputs: Coefficients) -> Path:
        """The path; raises NotConverged where there is none."""
        start = self.start(inputs)
        if not len(self.edges):
            return Path(self.discrete.grid, self.edges, start[None, None, :], inputs)
        walk = Walk(self.discrete, inputs, start, self.stages)
        breaks = set(self.discrete.layout.breaks)
        for lower, upper in zip(self.edges[:-1], self.edges[1:], strict=True):
            if float(lower) in breaks:
                walk.restart(float(lower))
            walk.accept(walk.solved(float(lower), float(upper - lower)), float(upper - lower))
        return Path(self.discrete.grid, self.edges, np.stack(walk.windows), inputs)

    def start(self, inputs: Coefficients) -> Array:
        """The fields of a steady problem, or at the start of time: an input of its own where the map begins later."""
        if START in inputs:
            return inputs[START]
        return newton.solve(self._first(inputs), np.zeros(self.discrete.size))[0]

    def _first(self, inputs: Coefficients) -> SteadyEquations:
        """The equations of the steady problem, or of the start."""
        system = self.discrete.start if self.discrete.layout.moves else self.discrete.system
        return SteadyEquations(system.at(inputs), self.lower, self.discrete.offsets, system.is_linear)

    # -- the tangent

    def tangent(self, path: Path, directions: Directions) -> Array:
        """How the path moves where inputs move in directions: (windows, 1 + stages, coefficients, columns)."""
        width = next((columns.shape[1] for columns in directions.values()), 0)
        first = self._start_tangent(path, directions, width)
        if path.is_steady:
            return first[None, None]
        return self._through_windows(path, directions, first, width)

    def _start_tangent(self, path: Path, directions: Directions, width: int) -> Array:
        if START in directions:
            return np.asarray(directions[START], float)
        equations, values = self._first(path.inputs), path.values[0, 0]
        moved = equations.instant.moved(
            values[:, None], np.zeros((len(values), 1)), np.array([self.lower]), directions, width
        )[0]
        return np.asarray(equations.linearise(values)[1].solve(-moved))

    def _through_windows(self, path: Path, directions: Directions, first: Array, width: int) -> Array:
        instant, rule, stages = self.discrete.system.at(path.inputs), rule_of(self.stages), self.stages
        windows, nodes, n = path.values.shape
        tangent = np.empty((windows, nodes, n, width))
        values, rates = path.rates()
        t, moving, lengths = path.instants.ravel(), first, np.diff(path.edges)
        factors, pattern = _Factors(instant, rule), instant.system.pattern
        breaks = set(self.discrete.layout.breaks)
        together = max(1, AT_ONCE // (stages * (n * width + pattern.slots)))
        for begin in range(0, windows, together):
            block = slice(begin * stages, min(begin + together, windows) * stages)
            pushed = instant.moved(values[:, block], rates[:, block], t[block], directions, width)
            slopes, masses = factors.slopes(values[:, block], rates[:, block], t[block])
            for window in range(begin, min(begin + together, windows)):
                part = slice((window - begin) * stages, (window - begin + 1) * stages)
                factor = factors.at(slopes[part], masses[part], float(lengths[window]))
                if window and float(path.edges[window]) in breaks:
                    state, at = path.values[window - 1, -1], float(path.edges[window])
                    moving = restarted(self.discrete, path.inputs, state, at)[1](moving, directions)
                right = pushed[part] + np.stack([pattern.product(slope, moving) for slope in slopes[part]])
                departures = factor.solve(-right.reshape(-1, width)).reshape(stages, n, width)
                tangent[window, 0] = moving
                tangent[window, 1:] = moving + departures
                moving = tangent[window, -1]
        return tangent

    # -- the adjoint

    def adjoint(self, path: Path, rows: Array) -> dict[str, Array]:
        """The transpose of the tangent for a steady path: from functionals of its coefficients, (functionals,
        coefficients), to coefficients of inputs, (coefficients, functionals)."""
        assert path.is_steady
        equations, values = self._first(path.inputs), path.values[0, 0]
        weights = equations.linearise(values)[1].solve_transposed(-np.ascontiguousarray(rows.T))
        return equations.instant.pulled(values, np.zeros(len(values)), self.lower, weights)


class _Factors:
    """Factorised windows of a path; one for all windows of a length where slopes do not change."""

    def __init__(self, instant: Instant, rule: Rule) -> None:
        self.instant, self.rule = instant, rule
        self._kept: dict[float, Factor] = {}

    def slopes(self, values: Array, rates: Array, t: Array) -> tuple[Array, Array]:
        """By u and by u' at instants, (instants, slots)."""
        if self.instant.system.is_linear:
            slopes, masses = self.instant.constant
            shape = len(t), len(slopes)
            return np.broadcast_to(slopes, shape), np.broadcast_to(masses, shape)
        _, changing, masses = self.instant.residual_and_slopes(values, rates, t)
        return changing, masses

    def at(self, slopes: Array, masses: Array, length: float) -> Factor:
        """Of a window."""
        key = round_length(length)
        if key in self._kept:
            return self._kept[key]
        factor = self.instant.system.pattern.stage_factor(slopes, masses, self.rule.rates / length)
        if self.instant.system.is_linear:
            self._kept[key] = factor
        return factor


def round_length(length: float) -> float:
    """Lengths of windows that differ by rounding are one."""
    return float(f"{length:.9e}")


class Walk:
    """Windows one after the other."""

    def __init__(self, discrete: Discrete, inputs: Coefficients, start: Array, stages: int) -> None:
        self.discrete, self.rule = discrete, rule_of(stages)
        self.instant = discrete.system.at(inputs)
        self.is_linear = discrete.system.is_linear
        self.state, self.windows = start, list[Array]()
        self.sizes = np.maximum(sizes_by_field(start, discrete.offsets), np.finfo(float).tiny)
        self._factors: dict[float, Factor] = {}
        self._length, self._is_fresh = 0.0, True

    def solved(self, lower: float, length: float) -> Window:
        equations = WindowEquations(
            self.instant, self.rule, self.state, lower, length, self.sizes, self.discrete.offsets, self.is_linear
        )
        key = round_length(length)
        departures, factor = self._root(equations, self._guess(length), self._factors.get(key))
        self._factors = {**self._factors, key: factor} if self.is_linear else {key: factor}
        table = departures.reshape(self.rule.stages, -1)
        return Window(np.vstack([self.state[None, :], self.state + table]), factor)

    def _root(self, equations: WindowEquations, guess: Array, known: Factor | None) -> tuple[Array, Factor]:
        """From the guess with known slopes, then with new ones, then from rest."""
        attempts = [(guess, known), (guess, None), (np.zeros(len(guess)), None)]
        for number, (start, factor) in enumerate(attempts):
            try:
                return newton.solve(equations, start, factor)
            except NotConverged:
                if number == len(attempts) - 1:
                    raise
        raise AssertionError

    def restart(self, t: float) -> Callable[[Array, Directions], Array]:
        """Meet the walls anew, which may have jumped; the tangent does so too by what is returned."""
        self.state, moved = restarted(self.discrete, self.instant.inputs, self.state, t)
        self._is_fresh = True
        return moved

    def _guess(self, length: float) -> Array:
        """The polynomial of the window before, continued."""
        n, stages = len(self.state), self.rule.stages
        if not self.windows or self._is_fresh or self.is_linear or length > 3.0 * self._length:
            return np.zeros(stages * n)
        at = 1.0 + length / self._length * self.rule.instants
        return np.asarray(self.rule.weights(at) @ self.windows[-1] - self.state, float).ravel()

    def accept(self, window: Window, length: float) -> None:
        self.windows.append(window.values)
        self._is_fresh = False
        self.state, self._length = window.values[-1], length
        for values in window.values[1:]:
            self.sizes = np.maximum(self.sizes, sizes_by_field(values, self.discrete.offsets))


def restarted(
    discrete: Discrete, inputs: Coefficients, state: Array, t: float
) -> tuple[Array, Callable[[Array, Directions], Array]]:  # fmt: skip
    """The state just after t, projected onto walls that may have jumped, and how a tangent is moved the same way."""
    rows, values = discrete.settled, np.array(state)
    if not len(rows):
        return values, lambda moving, directions: moving
    after = np.array([t + 2.0 * BESIDE * discrete.problem.domain[TIME].length])
    instant, still = discrete.projection.at(inputs), np.zeros((len(values), 1))
    pattern = discrete.projection.pattern
    _, slopes, _ = instant.residual_and_slopes(values[:, None], still, after)
    kept = pattern.product(slopes[0], values)  # by the rows of test functions
    for _ in range(newton.TUNING.most_steps):
        missed, slopes, _ = instant.residual_and_slopes(values[:, None], still, after)
        wanted = pattern.product(slopes[0], values) - kept
        wanted[rows] = missed[rows, 0]
        step = pattern.factor(slopes[0]).solve(-wanted)
        values = values + step
        if np.max(np.abs(step)) <= newton.TUNING.settled * max(float(np.max(np.abs(values))), 1e-300):
            break
    _, slopes, _ = instant.residual_and_slopes(values[:, None], still, after)
    factor = pattern.factor(slopes[0])

    def moved(moving: Array, directions: Directions) -> Array:
        right = pattern.product(slopes[0], moving)
        right[rows] = -instant.moved(values[:, None], still, after, directions, moving.shape[1])[0][rows]
        return np.asarray(factor.solve(right))

    return values, moved


def choose_windows(
    discrete: Discrete, inputs: Coefficients, tolerance: float, upper: float, begins: tuple[float, Array],
    probes: Mapping[str, Array] | None = None, steps: Steps = Steps(),
) -> Array:  # fmt: skip
    """Edges of windows that show the path, and how it moves along a few probes, to a tolerance.

    `begins`: when, and the coefficients of the fields there. A probe is a start and directions of the inputs."""
    return _Chooser(discrete, inputs, tolerance, probes, steps).edges(begins[0], upper, begins[1])


class _Chooser:
    def __init__(self, discrete: Discrete, inputs: Coefficients, tolerance: float,
                 probes: Mapping[str, Array] | None, steps: Steps) -> None:  # fmt: skip
        self.discrete, self.inputs, self.tolerance, self.steps = discrete, inputs, tolerance, steps
        self.rule = rule_of(steps.stages)
        self.probes = probes
        self.order = steps.stages + 1.0
        self.probe_share = max(steps.probe_share, tolerance)

    def edges(self, lower: float, upper: float, start: Array) -> Array:
        """Between breaks of the layout, one stretch after the other."""
        walk = Walk(self.discrete, self.inputs, start, self.rule.stages)
        self.factors = _Factors(walk.instant, self.rule)
        self.moving = None if self.probes is None else self.probes[START]
        self.reach = np.zeros(0) if self.moving is None else np.max(np.abs(self.moving), axis=0)
        breaks = [t for t in self.discrete.layout.breaks if lower <= t < upper]
        ends = [t for t in breaks if t > lower]
        edges = [lower]
        for begin, end in zip([lower, *ends], [*ends, upper], strict=True):
            if begin in breaks:
                moved = walk.restart(begin)
                if self.moving is not None and self.probes is not None:
                    self.moving = moved(self.moving, {n: a for n, a in self.probes.items() if n != START})
            edges += self._stretch(walk, begin, end)
        return np.array(edges)

    def _stretch(self, walk: Walk, lower: float, upper: float) -> list[float]:
        horizon, steps, moving, reach = upper - lower, self.steps, self.moving, self.reach
        edges, length = [lower], self._rounded(steps.first * horizon, horizon)
        while edges[-1] < upper - 1e-9 * horizon:
            at = edges[-1]
            length = min(self._fitting(length, at - lower, horizon), upper - at)
            try:
                window = walk.solved(at, length)
                largest = np.max(np.abs(window.values), axis=0)
                sizes = np.maximum(walk.sizes, sizes_by_field(largest, self.discrete.offsets))
                error = self._error(window.values[:, :, None], sizes[:, None])
                if moving is not None and error <= 1.0:
                    tangent = self._moved(walk, window.values, moving, at, length)
                    reach = np.maximum(reach, np.max(np.abs(tangent), axis=(0, 1)))
                    error = max(error, self.probe_share * self._error(tangent, reach[None, :]))
            except (NotConverged, Singular):
                error = np.inf
            growth = float(steps.safety * error ** (-1.0 / self.order)) if error > 0.0 else steps.most_growth
            growth = float(np.clip(growth, steps.least_growth, steps.most_growth))
            if error <= 1.0:
                walk.accept(window, length)
                moving = None if moving is None else tangent[-1]
                edges.append(at + length)
                if len(edges) > steps.most_windows:
                    raise NotConverged(f"more than {steps.most_windows} windows of time")
            elif length < steps.shortest * horizon:
                raise NotConverged(f"no window from t = {at:g} on")
            else:
                growth = min(growth, 0.5)
            length = self._rounded(growth * length, horizon)
        self.moving, self.reach = moving, reach
        return [*edges[1:-1], upper]

    def _rounded(self, length: float, horizon: float) -> float:
        """Linear systems share factorisations: their windows are the horizon over powers of two."""
        if not self.discrete.system.is_linear:
            return length
        return float(horizon * 2.0 ** np.floor(np.log2(min(length / horizon, 1.0)) + 1e-9))

    def _fitting(self, length: float, gone: float, horizon: float) -> float:
        """A power of two begins at a multiple of itself."""
        if not self.discrete.system.is_linear:
            rest = horizon - gone
            return rest / np.ceil(rest / length - 1e-9) if rest < 3.0 * length else length
        while abs(gone / length - round(gone / length)) > 1e-6:
            length *= 0.5
        return length

    def _error(self, values: Array, sizes: Array) -> float:
        """Of the polynomial between the instants, over the tolerance: the last coefficient times its decay."""
        coefficients = np.tensordot(self.rule.legendre, values, 1)
        last, before = (np.max(np.abs(coefficients[k]) / np.maximum(sizes, 1e-300)) for k in (-1, -2))
        decay = min(1.0, float(last) / max(float(before), 1e-300))
        return float(last) * decay / self.tolerance

    def _moved(self, walk: Walk, values: Array, moving: Array, lower: float, length: float) -> Array:
        """The tangent along the probes in a window, (1 + stages, coefficients, probes)."""
        assert self.probes is not None
        table = (values[1:] - values[0]).T
        states, rates = values[0][:, None] + table, table @ self.rule.rates.T / length
        t = lower + length * self.rule.instants
        width = moving.shape[1]
        directions = {name: along for name, along in self.probes.items() if name != START}
        pushed = walk.instant.moved(states, rates, t, directions, width)
        slopes, masses = self.factors.slopes(states, rates, t)
        factor = self.factors.at(slopes, masses, length)
        pattern = walk.instant.system.pattern
        right = pushed + np.stack([pattern.product(slope, moving) for slope in slopes])
        departures = factor.solve(-right.reshape(-1, width)).reshape(len(t), -1, width)
        return np.concatenate([moving[None], moving + departures])
