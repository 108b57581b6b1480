"""Cells of noisy labels: advection of PDEBench-like initial fields, whose truth is known exactly.

Labels carry noise of 0.5, 2 and 10 % of the initial field's standard deviation. A cell is (noise, number of labels),
with sigma told or not; the field's spectrum, and sigma where it is not told, are read from the labels.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from factorfield import problems
from factorfield.calibration.draws import Posed, of_field

CELLS = tuple(product((0.005, 0.02, 0.1), (64, 256, 1024)))
DRAWS = 40  # of each cell
SHOWN = 64  # points of the field that are judged


def labels_known(seed: int) -> Posed:
    """A start of noisy labels, their sigma known: the field carried around."""
    return _labels(seed, True)


def labels_estimated(seed: int) -> Posed:
    """The same with sigma estimated."""
    return _labels(seed, False)


def cell_of(seed: int) -> tuple[float, int]:
    """Draws go through all cells in turn, so that the first few of them are as mixed as all."""
    return CELLS[seed % len(CELLS)]


def _labels(seed: int, known: bool) -> Posed:
    share, count = cell_of(seed)
    row = seed // len(CELLS)
    clean = problems.get("advection", b=0.4, row=row)
    noise = share * float(clean.truth.isel(t=0).std())
    problem = problems.get(
        "advection", b=0.4, row=row, noise=noise, labels=count, seed=10_000 + seed, sigma=noise if known else None
    )
    rng = np.random.default_rng([seed, 1])
    at = rng.integers(0, problem.truth.sizes["t"], SHOWN), rng.integers(0, problem.truth.sizes["x"], SHOWN)
    truth = problem.truth.values[at]
    return Posed(problem, of_field(truth, t=problem.truth["t"].values[at[0]], x=problem.truth["x"].values[at[1]]))
