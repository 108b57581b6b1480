"""The prior of a start over cells: a process that no cells change."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.model.graded import cells_of, uniform
from factorfield.model.process import kernel, root_on, size_and_lengths
from factorfield.problem.domain import Axis

AXES = {"interval": ff.Interval(0.0, 2.0), "ring": ff.Periodic(0.0, 2.0)}


@pytest.mark.parametrize("axis", AXES.values(), ids=AXES)
def test_any_cells_that_are_fine_enough_give_the_process_its_own_covariance(axis: Axis) -> None:
    """Between the places where it is met, a quintic spline over cells of 0.05 is off by little of a process of length
    0.4, ends included."""
    at = np.linspace(0.0, 2.0, 400)
    graded = cells_of(axis, 60, at, 1.0 + 4.0 * np.exp(-((at - 1.0) ** 2) / 0.02))
    x = np.linspace(0.0, 1.99, 23)
    wanted = 1.5**2 * kernel(x[:, None] - x, axis, 0.4)
    for cells in (uniform(axis, 40), graded):
        root = 1.5 * cells(x) @ root_on(cells, axis, 0.4)
        assert_allclose(root @ root.T, wanted, atol=0.01 * 1.5**2)


@pytest.mark.parametrize("sigma", [0.1, None])
def test_size_and_length_are_found_from_noisy_labels(sigma: float | None) -> None:
    """Over ten draws of a process, the mean logarithms are right to a third: a draw holds some five lengths."""
    axis, x, found = AXES["interval"], np.linspace(0.0, 2.0, 60), []
    root = np.linalg.cholesky(4.0 * kernel(x[:, None] - x, axis, 0.4) + 1e-9 * np.eye(60))
    for seed in range(10):
        rng = np.random.default_rng(seed)
        y = root @ rng.standard_normal(60) + 0.1 * rng.standard_normal(60)
        size, (length,) = size_and_lengths([x], y, [axis], sigma)
        found.append((size, length))
    assert_allclose(np.mean(np.log(found), axis=0), np.log([2.0, 0.4]), atol=0.35)
