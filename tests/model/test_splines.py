"""Local features: B-splines against SciPy's, rings, halved cells, and rows that repeat bit by bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import BSpline

from factorfield.model.basis import family_from_spec
from factorfield.model.splines import Spline, halved

X = np.linspace(0.3, 1.99, 60)


@pytest.mark.parametrize("degree", [3, 5])
def test_values_and_derivatives_are_those_of_b_splines(degree: int) -> None:
    spline = Spline(degree, 7, 0.3, 2.0)
    knots = 0.3 + spline.width * np.arange(-degree, 7 + degree + 1)
    for order in range(degree):
        for i in range(spline.size):
            piece = BSpline.basis_element(knots[i : i + degree + 2], extrapolate=False)
            wanted = np.nan_to_num((piece.derivative(order) if order else piece)(X))
            assert np.allclose(spline(X, order)[:, i], wanted, atol=1e-10 * spline.width**-order)
    assert not np.any(spline(X, degree + 1))


@pytest.mark.parametrize("degree", [3, 5])
def test_features_add_up_to_one_and_a_ring_closes(degree: int) -> None:
    for periodic in (False, True):
        assert np.allclose(Spline(degree, 8, 0.3, 2.0, periodic)(X).sum(axis=1), 1.0)
    ring = Spline(degree, 8, 0.3, 2.0, True)
    ends = [ring([0.3], order) - ring([2.0], order) for order in range(degree)]
    assert max(np.abs(gap).max() / ring.width**-k for k, gap in enumerate(ends)) < 1e-12
    assert np.allclose(ring([0.5]), ring([0.5 + 1.7]))


@pytest.mark.parametrize("degree", [3, 5])
@pytest.mark.parametrize("periodic", [False, True])
def test_a_function_on_wide_cells_is_one_on_halved_cells(degree: int, periodic: bool) -> None:
    wide, fine = Spline(degree, 7, 0.3, 2.0, periodic), Spline(degree, 14, 0.3, 2.0, periodic)
    weights = np.random.default_rng(0).standard_normal(wide.size)
    assert np.allclose(fine(X) @ (halved(fine) @ weights), wide(X) @ weights, atol=1e-13)


def test_the_same_place_in_any_cell_has_the_same_row_bit_by_bit() -> None:
    spline = Spline(5, 12, 0.1, 0.7)
    rows = spline.within(np.full(12, 0.2113248654051871), 2)
    assert np.array_equal(rows, np.broadcast_to(rows[0], rows.shape))


def test_its_description_gives_it_back() -> None:
    spline = Spline(3, 9, -1.0, 2.0, True)
    assert family_from_spec(spline.spec()) == spline
