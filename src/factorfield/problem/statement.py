"""Statements: everything that is known about the fields, checked and in one form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from factorfield.problem.noise import Noise
from factorfield.problem.relation import Relation
from factorfield.problem.stencil import Stencil

Array = NDArray[np.float64]
Kind = Literal["equation", "initial", "boundary", "observation"]
Sigma = float | Array | None


@dataclass(frozen=True, eq=False)
class Statement:
    """One piece of information, resolved: relation = target +- sigma, at points, on a face, or everywhere.

    With a `stencil` it is not the relation at a point but a weighted sum of it at points around (stencil.py).
    Its name is unique in its problem.
    """

    name: str
    kind: Kind
    relation: Relation
    points: Mapping[str, Array] | None = None
    face: Mapping[str, float] | None = None
    target: Array = field(default_factory=lambda: np.zeros(1))
    sigma: Sigma = None
    noise: Noise | None = None  # None: Gaussian
    stencil: Stencil = ()

    @property
    def is_equation(self) -> bool:
        return self.kind == "equation"
