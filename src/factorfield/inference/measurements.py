"""What is measured, as a function of a path: residuals in units of their sigma, and rows over path and inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from factorfield.forward.paths import Path, Reading, read
from factorfield.forward.relations import Expression, expression_of
from factorfield.problem.noise import LogNormal
from factorfield.problem.problem import Problem
from factorfield.problem.statement import Statement
from factorfield.problem.stencil import shifted

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Group:
    """The measurements of one statement. With outliers, `site` holds the Gaussian values and sigmas that stand for
    them."""

    statement: Statement
    expression: Expression
    stated: Array | None  # the sigma that was given; None: estimated
    target: Array
    site: tuple[Array, Array] | None = None

    @staticmethod
    def of(problem: Problem, statement: Statement) -> Group:
        expression = expression_of(problem, statement.relation)
        target, sigma = statement.target, statement.sigma
        stated = None if sigma is None else np.broadcast_to(np.asarray(sigma, float), target.shape)
        if isinstance(statement.noise, LogNormal):  # Gaussian in the logarithm
            return Group(statement, expression.logarithm, stated, np.log(target))
        site = None
        if statement.noise is not None:
            assert stated is not None
            site = statement.noise.first_guess(target, stated)
        return Group(statement, expression, stated, target, site)

    @property
    def sigma(self) -> Array | None:
        return self.stated if self.site is None else self.site[1]

    @property
    def values(self) -> Array:
        """What is compared with readings of the path."""
        return self.target if self.site is None else self.site[0]

    @property
    def log_jacobian(self) -> float:
        """What makes a density of logarithms one of values."""
        return -float(np.sum(self.target)) if isinstance(self.statement.noise, LogNormal) else 0.0

    def part(self, chosen: NDArray[np.int64]) -> Group:
        """Some of the measurements."""
        stated = None if self.stated is None else self.stated[chosen]
        site = None if self.site is None else (self.site[0][chosen], self.site[1][chosen])
        statement = self.statement.part(chosen)
        return replace(self, statement=statement, stated=stated, target=self.target[chosen], site=site)

    def reading(self, path: Path, inputs: Mapping[str, Any]) -> Reading:
        points = self.statement.points or {}
        if not self.statement.stencil:
            return read(self.expression, path, points, inputs)
        parts = [
            (weight, read(self.expression, path, shifted(points, shift), inputs))
            for shift, weight in self.statement.stencil
        ]
        values = np.sum([weight * part.values for weight, part in parts], axis=0)
        rows = sum(weight * part.rows for weight, part in parts)
        names = {name for _, part in parts for name in part.input_rows}
        input_rows = {
            name: np.sum([weight * part.input_rows[name] for weight, part in parts], axis=0) for name in names
        }
        return Reading(values, rows, input_rows, {})


@dataclass(frozen=True, eq=False)
class Measurements:
    """All of a problem. `scale` are the sigmas of groups that have none, by name of the statement."""

    groups: tuple[Group, ...]
    estimated: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def of(problem: Problem, statements: Sequence[Statement] | None = None) -> Measurements:
        """Of all statements of a problem, or of some."""
        chosen = problem.statements if statements is None else statements
        return Measurements(tuple(Group.of(problem, s) for s in chosen if s.kind == "observation"))

    @property
    def count(self) -> int:
        return sum(len(group.statement.target) for group in self.groups)

    @property
    def targets(self) -> Array:
        return np.concatenate([np.empty(0), *(group.values for group in self.groups)])

    @property
    def sigmas(self) -> Array:
        parts = [
            np.full(len(g.statement.target), self.estimated[g.statement.name]) if g.sigma is None else g.sigma
            for g in self.groups
        ]
        return np.concatenate([np.empty(0), *parts])

    @property
    def open(self) -> list[Group]:
        """The groups whose sigma is estimated."""
        return [group for group in self.groups if group.sigma is None]

    def reading(self, path: Path, inputs: Mapping[str, Any]) -> Reading:
        """Of all groups, one after the other, in units of the fields."""
        parts = [group.reading(path, inputs) for group in self.groups]
        if not parts:
            return Reading(np.empty(0), sparse.csr_matrix((0, path.values.size)), {}, {})
        rows = parts[0].rows if len(parts) == 1 else sparse.vstack([part.rows for part in parts], format="csr")
        names = {name for part in parts for name in part.input_rows}
        input_rows = {}
        for name in names:
            width = next(part.input_rows[name].shape[1] for part in parts if name in part.input_rows)
            input_rows[name] = np.concatenate(
                [np.asarray(part.input_rows.get(name, np.zeros((len(part.values), width)))) for part in parts]
            )
        return Reading(np.concatenate([part.values for part in parts]), rows, input_rows, {})
