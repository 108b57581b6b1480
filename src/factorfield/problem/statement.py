"""Statements: everything that is known about the fields, checked and in one form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from factorfield.problem.noise import Noise
from factorfield.problem.relation import Jet, Relation
from factorfield.problem.shape import Wall
from factorfield.problem.stencil import Stencil, part_of

Array = NDArray[np.float64]
Kind = Literal["equation", "initial", "boundary", "observation"]
GivenSigma = float | Array | None


@dataclass(frozen=True)
class Error:
    """Of a start or a wall whose sigma was given: a smooth random function over its face, of that size everywhere."""

    name: str  # of its weights; no field or parameter can have it
    lengths: Mapping[str, float]  # per axis of the face, or along a region's wall: where it goes together


@dataclass(frozen=True, eq=False)
class Statement:
    """One piece of information, resolved: relation = target +- sigma, at points, on a face, or everywhere.

    On a `wall`, a part of a region's boundary, its face is empty: it names no axis.
    With a `stencil` it is not the relation at a point but a weighted sum of it at points around (stencil.py).
    Its name is unique in its problem. With an `error`, sigma is the standard deviation of that function.
    """

    name: str
    kind: Kind
    relation: Relation
    points: Mapping[str, Array] | None = None
    face: Mapping[str, float] | None = None
    target: Array = field(default_factory=lambda: np.zeros(1))
    sigma: GivenSigma = None
    noise: Noise | None = None  # None: Gaussian
    stencil: Stencil = ()
    error: Error | None = None
    wall: Wall | None = None

    @property
    def is_direct(self) -> bool:
        """Is it a measurement of a field itself?"""
        return self.kind == "observation" and self.relation.expression in self.relation.jets and not self.jet.orders

    @property
    def jet(self) -> Jet:
        """The first derivative that it reads: the only one, where it reads one."""
        return next(iter(self.relation.jets.values()))

    def part(self, chosen: NDArray[np.int64]) -> Statement:
        """Some of the measurements."""
        assert self.points is not None
        points = {name: x[chosen] for name, x in self.points.items()}
        sigma = self.sigma[chosen] if isinstance(self.sigma, np.ndarray) else self.sigma
        stencil = part_of(self.stencil, chosen) if self.stencil else ()
        return replace(self, points=points, target=self.target[chosen], sigma=sigma, stencil=stencil)
