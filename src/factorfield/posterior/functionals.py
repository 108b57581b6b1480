"""Linear functionals of the weights: sums of derivatives of latents, on a tensor grid or at scattered points.

Whatever is asked of a field becomes one by its best line under the belief. How two places go together, and where the
next measurement tells most, are then covariances of such functionals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield.model.basis import Orders
from factorfield.problem.domain import TIME

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Atom = tuple[str, Orders]  # one derivative of one latent


@dataclass(frozen=True, eq=False)
class Functionals:
    """Functional n is the sum over a of slopes[a, n] times the derivative atoms[a] at place n of a grid (axes in the
    domain's order, first axis slowest) or of scattered `points`."""

    atoms: tuple[Atom, ...]
    slopes: Array
    grid: Mapping[str, Array]
    points: bool
    held: dict[str, Any] = field(init=False, default_factory=dict, repr=False)  # what a posterior made of them once

    @property
    def count(self) -> int:
        return self.slopes.shape[1]

    @cached_property
    def flat(self) -> dict[str, Array]:
        """Every place by its coordinates."""
        if self.points:
            return dict(self.grid)
        mesh = np.meshgrid(*self.grid.values(), indexing="ij")
        return {name: x.ravel() for name, x in zip(self.grid, mesh, strict=True)}

    @cached_property
    def scattered(self) -> Functionals:
        """The same, as points."""
        return replace(self, grid=self.flat, points=True)

    def during(self, chosen: Indices) -> tuple[Functionals, Indices]:
        """Those at some entries of the axis of time (of the points, where these are scattered), and their numbers."""
        if self.points:
            part = {name: x[chosen] for name, x in self.grid.items()}
            return replace(self, grid=part, slopes=self.slopes[:, chosen]), chosen
        across = self.count // len(self.grid[TIME])  # time is the first axis
        numbers = (chosen[:, None] * across + np.arange(across)).ravel()
        return replace(self, grid={**self.grid, TIME: self.grid[TIME][chosen]}, slopes=self.slopes[:, numbers]), numbers
