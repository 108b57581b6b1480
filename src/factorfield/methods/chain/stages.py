"""A window of a plane as a Runge-Kutta step: equations of first order in time at Radau's instants, as many rows as
unknowns.

With the same slopes at all instants, the eigenvectors of the differentiation matrix take the instants apart: one
system in space for each, sparse where splines are local, and of a pair of complex eigenvalues one only. Newton steps
with these slopes are a fraction of an elimination; the window's linear map is corrected by the slopes of every instant.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.sparse import linalg as sparse_linalg

from factorfield.errors import ProblemError
from factorfield.messages.elimination import InteriorNoise, Segment
from factorfield.messages.gaussian import Message
from factorfield.methods.chain.dynamics import radau_window
from factorfield.model.basis import Departure
from factorfield.model.instants import Instants, Matrix
from factorfield.model.model import WindowModel

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]
Systems = tuple[float, Callable[[Array], Array]]  # of windows of a length, factorised
SETTLED = 1e-11  # of the field: what a last Newton step may leave
NEARLY = 1e-8  # of the field: a search that goes no further has settled here too
SLOW = 0.3  # of a step's size that the next one may have: with more, slopes are taken anew
MOST_STEPS, MOST_SLOPES = 40, 5
LINEAR = 1e-4  # of the map from start to end: what its last correction may be


@dataclass(frozen=True, eq=False)
class Rule:
    """Radau's instants of a window of length one: values of the departing polynomials there, their rates from these
    values, its eigenvalues and -vectors, and the weights of an integral."""

    instants: Array
    values: Array
    rates: Array
    eigenvalues: Complex
    vectors: Complex
    inverse: Complex
    weights: Array


@lru_cache(maxsize=16)
def rule_of(degree: int) -> Rule:
    instants, values, _ = radau_window(degree)
    slopes = Departure(degree, 0.0, 1.0)(instants, 1)[:, 1:]
    rates = np.asarray(np.linalg.solve(values.T, slopes.T).T, float)
    eigenvalues, vectors = np.linalg.eig(rates)
    powers = np.vander(instants, degree, increasing=True).T
    weights = np.asarray(np.linalg.solve(powers, 1.0 / np.arange(1, degree + 1)), float)
    return Rule(instants, values, rates, eigenvalues, vectors, np.linalg.inv(vectors), weights)


class Stages:
    """Solves windows of one model whose equations at an instant are as many as its coefficients."""

    def __init__(self, model: WindowModel, equations: Instants) -> None:
        self.model, self.equations, self.rule = model, equations, rule_of(model.degree)
        self.factorisations = self.iterations = 0
        self._kept: Systems | None = None
        self._latest: Systems | None = None
        blocks = [model.representation.latents[name].block for name in model.problem.fields]
        self._blocks = blocks
        self._end = Departure(model.degree, 0.0, 1.0)([1.0])[0, 1:]

    # -- weights of a window, and values at its instants

    def weights(self, state: Array, departures: Array) -> Array:
        """From a state and what is departed from it at the instants, (instants, coefficients)."""
        inner, found = np.linalg.solve(self.rule.values, departures), np.empty(self.model.size)
        parts = zip(self.equations.split(state), np.split(inner, self._cuts, axis=1), self._blocks, strict=True)
        for own, powers, block in parts:
            found[block] = np.vstack([own, powers]).ravel()
        return found

    def table(self, weights: Array) -> tuple[Array, Array]:
        """The state at the start, and the weights of polynomials in time, (polynomials, coefficients)."""
        tables = [weights[block].reshape(self.model.degree + 1, -1) for block in self._blocks]
        return np.concatenate([own[0] for own in tables]), np.column_stack([own[1:] for own in tables])

    def end(self, weights: Array) -> Array:
        state, powers = self.table(weights)
        return np.asarray(state + self._end @ powers, float)

    @property
    def _cuts(self) -> NDArray[np.int64]:
        return np.cumsum(self.equations.sizes)[:-1]

    # -- the mean path

    def at_walls(self, state: Array, time: float) -> Array:
        """The nearest state that walls allow: a field that begins beside them would jump there."""
        walls = ~self.equations.noisy
        if not np.any(walls):
            return state
        at_rest = np.zeros(len(state))
        missed = self.equations.residual(state, at_rest, time)[walls]
        rows = _dense(self.equations.slopes(state, at_rest, time)[0][walls])
        size = np.linalg.norm(rows, axis=1)
        return np.asarray(state - linalg.lstsq(rows / size[:, None], missed / size)[0], float)

    def forward(self, state: Array, lower: float, upper: float) -> Array:
        """The weights of a window that begins at a state."""
        length = upper - lower
        departures, size, scale = np.zeros((self.model.degree, len(state))), np.inf, self.model.scale
        systems, fresh = self._kept, 0
        if systems is not None and not math.isclose(systems[0], length):
            systems = None
        for _ in range(MOST_STEPS):
            if systems is None:
                systems, fresh, size = self._factorised(state, departures, lower, length), fresh + 1, np.inf
            step = systems[1](-self.residual(state, departures, lower, length))
            self.iterations += 1
            before, size = size, float(np.max(np.abs(step)))
            settled = size < SETTLED * scale or (size > SLOW * before and before < NEARLY * scale)
            if settled:
                self._latest = systems
                return self.weights(state, departures)
            if not np.isfinite(size) or (size > SLOW * before and fresh == MOST_SLOPES):
                break
            departures = departures if size > before else departures + step
            systems = None if size > SLOW * before else systems
        raise ProblemError(f"expected a window in which the equation is met, received none at t = {lower:g}")

    def keep(self) -> None:
        """Let the next window begin with the systems of the last one: what was tried in vain leaves no trace."""
        self._kept = self._latest

    def residual(self, state: Array, departures: Array, lower: float, length: float) -> Array:
        """Of all rows at the instants, (instants, rows)."""
        rates, found = self.rule.rates @ departures / length, []
        for share, own, rate in zip(self.rule.instants, departures, rates, strict=True):
            found.append(self.equations.residual(state + own, rate, lower + share * length))
        return np.array(found)

    def _factorised(self, state: Array, departures: Array, lower: float, length: float) -> Systems:
        """The systems of the instants with slopes at the middle of what is known of the window."""
        values, rates = self.equations.slopes(*self._middle(state, departures, length), lower + 0.5 * length)
        self.factorisations += 1
        solvers = [_solver(rate / length * rates + values) for rate in self._distinct]
        return length, lambda right: self._taken_apart(solvers, right)

    def _middle(self, state: Array, departures: Array, length: float) -> tuple[Array, Array]:
        return state + self.rule.weights @ departures, self.rule.weights @ self.rule.rates @ departures / length

    @property
    def _distinct(self) -> Complex:
        """Eigenvalues, one of each pair."""
        return self.rule.eigenvalues[self.rule.eigenvalues.imag >= 0.0]

    def _taken_apart(self, solvers: list[Callable[[Complex], Complex]], right: Array) -> Array:
        """Right-hand sides (instants, rows, ...) solved in the eigenvectors of the instants."""
        rule = self.rule
        apart = np.tensordot(rule.inverse, right, 1)
        found: Array = np.zeros(right.shape)
        for number, solver in zip(np.flatnonzero(rule.eigenvalues.imag >= 0.0), solvers, strict=True):
            twice = 1.0 if rule.eigenvalues[number].imag == 0.0 else 2.0  # its conjugate adds the conjugate
            own = solver(apart[number])
            for instant, factor in enumerate(rule.vectors[:, number]):
                found[instant] += twice * (factor * own).real
        return found

    # -- the linear map of a window

    def segment(self, weights: Array, lower: float, upper: float) -> Segment:
        """The window linearised at weights: how it follows its state, and an error of its equations.

        That error is one function of space in each window, of the size that errors of their own at each instant would
        have at its end: no noise stays inside."""
        length, rule = upper - lower, self.rule
        state, powers = self.table(weights)
        departures = rule.values @ powers
        missed = self.residual(state, departures, lower, length)
        slopes = [
            self.equations.slopes(state + own, rate, lower + share * length)
            for share, own, rate in zip(rule.instants, departures, rule.rates @ departures / length, strict=True)
        ]
        width = len(state)
        noise = np.sqrt(np.sum(rule.weights**2)) * self.equations.noise.toarray()
        right = np.zeros((len(slopes), width, 1 + 2 * width))
        for number, (values, _) in enumerate(slopes):
            right[number, :, 0] = -missed[number]
            right[number, :, 1 : 1 + width] = -_dense(values)
            right[number, :, 1 + width : 1 + width + noise.shape[1]] = noise
        found = self._solved(right, slopes, length)
        inner = np.tensordot(np.linalg.inv(rule.values), found, 1)
        follows, noisy = inner[:, :, 1 : 1 + width], inner[:, :, 1 + width :]
        offset = powers + inner[:, :, 0] - follows @ state
        identity = np.eye(width)
        return Segment(
            self.inner(follows), self.inner(offset[:, :, None])[:, 0], InteriorNoise(inner[:, :, 0].size, ()),
            self.inner(noisy), Message.nothing(width), identity + np.tensordot(self._end, follows, 1),
            self._end @ offset, np.tensordot(self._end, noisy, 1),
        )  # fmt: skip

    def merit(self, weights: Array, lower: float, upper: float) -> float:
        """Half of what equations are missed by, squared, in units of their noise."""
        state, powers = self.table(weights)
        missed = self.residual(state, self.rule.values @ powers, lower, upper - lower)
        mean = self.rule.weights @ missed / np.sqrt(np.sum(self.rule.weights**2))
        noise = self._noise_factor.solve(mean[self.equations.noisy])
        return 0.5 * float(noise @ noise)

    @cached_property
    def _noise_factor(self) -> Any:
        return sparse_linalg.splu(sparse.csc_matrix(self.equations.noise[self.equations.noisy]))

    def inner(self, table: Array) -> Array:
        """(polynomials, coefficients, columns) in the order of a window's inner weights."""
        parts = np.split(table, self._cuts, axis=1)
        return np.concatenate([np.ascontiguousarray(own).reshape(-1, table.shape[2]) for own in parts])

    def _solved(self, right: Array, slopes: list[tuple[Matrix, Matrix]], length: float) -> Array:
        """The linear system of all instants: by the mean of its slopes, then corrected until those of each are met."""
        rule = self.rule
        values = sum(share * own for share, (own, _) in zip(rule.weights, slopes, strict=True))
        rates = sum(share * own for share, (_, own) in zip(rule.weights, slopes, strict=True))
        inverses = [np.linalg.inv(_dense(rate / length * rates + values)) for rate in self._distinct]
        solvers: list[Callable[[Complex], Complex]] = [inverse.__matmul__ for inverse in inverses]
        found = self._taken_apart(solvers, right)
        size = float(np.max(np.abs(found)))
        before = np.inf
        while True:
            moved = np.tensordot(rule.rates / length, found, 1)
            left = np.stack([
                right[number] - own @ found[number] - rate @ moved[number] for number, (own, rate) in enumerate(slopes)
            ])  # fmt: skip
            step = self._taken_apart(solvers, left)
            change = float(np.max(np.abs(step)))
            if not change < before:
                raise linalg.LinAlgError("the slopes of a window change too much")
            found, before = found + step, change
            if change < LINEAR * size:
                return found


def _dense(matrix: Matrix) -> NDArray[Any]:
    return np.asarray(matrix.toarray() if sparse.issparse(matrix) else matrix)


def _solver(matrix: Matrix) -> Callable[[Complex], Complex]:
    if sparse.issparse(matrix):
        with np.errstate(all="ignore"):
            factor = sparse_linalg.splu(sparse.csc_matrix(matrix, dtype=complex))
        return lambda right: factor.solve(np.ascontiguousarray(right))
    dense = linalg.lu_factor(matrix)
    return lambda right: linalg.lu_solve(dense, right)
