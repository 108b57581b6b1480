"""The prior of local features: a Matern process that no number of cells and no end of an axis changes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from factorfield.model.matern import matern_rows
from factorfield.model.splines import Spline

Array = NDArray[np.float64]
LENGTH, STD = 0.25, 1.5


def covariance(spline: Spline, smoothness: int) -> Array:
    rows = matern_rows(spline, LENGTH, smoothness, STD, spline.cells, True)
    whole = np.zeros((len(rows), spline.size))
    np.add.at(whole.T, np.arange(rows.shape[1]) % spline.size, rows.T)
    return np.linalg.inv(whole.T @ whole)


def kernel(distance: Array, smoothness: int) -> Array:
    scaled = np.sqrt(2.0 * smoothness - 1.0) * np.abs(distance) / LENGTH
    return STD**2 * (1.0 + scaled + (scaled**2 / 3.0 if smoothness == 3 else 0.0)) * np.exp(-scaled)


@pytest.mark.parametrize("degree", [3, 5])
@pytest.mark.parametrize("smoothness", [2, 3])
def test_the_covariance_is_the_kernel_ends_included(degree: int, smoothness: int) -> None:
    spline = Spline(degree, 32)
    x = np.linspace(0.0, 1.0, 21)
    found = spline(x) @ covariance(spline, smoothness) @ spline(x).T
    assert np.max(np.abs(found - kernel(x[:, None] - x, smoothness))) < 2e-3 * STD**2


@pytest.mark.parametrize("degree", [3, 5])
@pytest.mark.parametrize("periodic", [False, True])
def test_the_std_is_the_stated_one_whatever_the_cells(degree: int, periodic: bool) -> None:
    x, found = np.linspace(0.0, 1.0, 37), []
    for cells in (8, 16, 32):
        spline = Spline(degree, cells, periodic=periodic)
        found.append(np.sqrt(np.einsum("ni,ij,nj->n", spline(x), covariance(spline, 2), spline(x))))
    assert np.max(np.abs(np.array(found) / STD - 1.0)) < 0.02  # asked: 0.1
    assert np.max(np.abs(found[1] / found[0] - 1.0)) < 0.016  # asked: 0.02
    assert np.max(np.abs(found[2] / found[1] - 1.0)) < 0.01


def test_corners_of_three_axes_are_no_exception() -> None:
    """The rows of several axes are products: so is the variance."""
    spline = Spline(3, 8)
    own = covariance(spline, 3) / STD**2
    corner = np.einsum("ni,ij,nj->n", spline([0.0, 1.0]), own, spline([0.0, 1.0]))
    assert np.max(np.abs(np.sqrt(np.kron(np.kron(corner, corner), corner)) - 1.0)) < 0.01


def test_derivatives_that_an_equation_reads_have_a_variance() -> None:
    slopes, bends = [], []
    for cells in (16, 32, 64):
        spline = Spline(5, cells)
        known = covariance(spline, 3)
        slopes.append(float(spline([0.4], 1)[0] @ known @ spline([0.4], 1)[0]))
        bends.append(float(spline([0.4], 2)[0] @ known @ spline([0.4], 2)[0]))
    rate = np.sqrt(5.0) / LENGTH
    assert slopes[-1] == pytest.approx(STD**2 * rate**2 / 3.0, rel=1e-3)
    assert bends[-1] == pytest.approx(STD**2 * rate**4, rel=0.15) and bends[0] < bends[1] < bends[2]


def test_ranges_of_cells_add_up_to_the_axis() -> None:
    spline = Spline(3, 12)
    total = np.zeros((spline.size, spline.size))
    for start, count in ((0, 5), (5, 4), (9, 3)):
        rows = matern_rows(spline, LENGTH, 2, STD, count, start == 0)
        total[start : start + count + 3, start : start + count + 3] += rows.T @ rows
    assert np.allclose(total @ covariance(spline, 2), np.eye(spline.size), atol=1e-9)
