"""What measurements say in one window; many of a linear functional are folded to as few rows as there are weights.

With rows A and values y, the triangle of a QR of [A y] has the same |A w - y|^2 for every w: nothing is lost, also not
how badly the values are met. It is folded block by block, so that memory does not grow with the number of measurements.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield.messages.gaussian import triangle
from factorfield.model.factors import ROWS_PER_BLOCK, FactorGroup, chosen_group
from factorfield.model.linearisation import linearise
from factorfield.model.representation import LatentRelation, Representation
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Statement

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
MANY = 2  # measurements per weight from which they are folded


@dataclass(frozen=True, eq=False)
class Summary(FactorGroup):
    """The fold of many factors: the same sum of squared misfits at every weight vector, in other rows."""

    stands_for: int

    @property
    def count(self) -> int:
        return self.stands_for


def folded(
    statement: Statement, representation: Representation, inside: Indices, lower: float, sigma: float | Array,
    constants: Mapping[str, Any],
) -> list[FactorGroup]:  # fmt: skip
    """Factors of the many measurements `inside` a window that begins at `lower`; those at its start are kept apart:
    they speak about the state alone."""
    assert statement.points is not None

    def build(chosen: Indices) -> FactorGroup:
        return chosen_group(statement, representation, chosen, sigma, constants)

    at_start = statement.points[TIME][inside] <= lower
    parts = [chosen for chosen in (inside[at_start], inside[~at_start]) if len(chosen)]
    many = MANY * representation.size
    return [_folded(build, chosen) if len(chosen) > many else build(chosen) for chosen in parts]


def _folded(build: Callable[[Indices], FactorGroup], chosen: Indices) -> Summary:
    some = build(chosen[:1])
    blocks = list(dict.fromkeys((block.start, block.stop) for block in some.blocks))
    width = sum(high - low for low, high in blocks)
    unit = float(some.sigma[0])  # rows of other sigmas are scaled to it
    fold, latest = np.zeros((0, width + 1)), -np.inf
    step = max(ROWS_PER_BLOCK, 8 * width)  # what was folded before is folded again: few blocks
    for start in range(0, len(chosen), step):
        group = build(chosen[start : start + step])
        nothing = np.zeros((group.count, len(group.blocks)))
        line = linearise(group.relation, nothing, None, group.parameters, group.points)
        shared = group.shared
        parts = {at: left if shared is None else left @ shared for at, left in group.combined(line.slopes).items()}
        rows = np.column_stack([*(parts[at] for at in blocks), group.target - line.value])
        fold = triangle(np.concatenate([fold, rows * (unit / group.sigma)[:, None]]))
        latest = max(latest, float(group.points[TIME].max()))
    ends = np.cumsum([0, *(high - low for low, high in blocks)])
    return Summary(
        some.statement, _sum_of(some.relation, blocks, some.blocks),
        tuple(np.ascontiguousarray(fold[:, low:high]) for low, high in itertools.pairwise(ends)),
        tuple(slice(*at) for at in blocks), None, fold[:, -1].copy(), np.full(len(fold), unit), some.parameters,
        {TIME: np.full(len(fold), latest)}, len(chosen),
    )  # fmt: skip


def _sum_of(relation: LatentRelation, blocks: list[tuple[int, int]], of: tuple[slice, ...]) -> LatentRelation:
    """One functional for every block of weights, and their sum."""
    import sympy

    where = [(block.start, block.stop) for block in of]
    functionals = tuple(relation.functionals[where.index(at)] for at in blocks)
    inputs = tuple(sympy.Symbol(f"q{i}", real=True) for i in range(len(blocks)))
    return LatentRelation(sympy.Add(*inputs), functionals, inputs, {}, (), ())
