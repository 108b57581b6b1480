"""Functions along one axis: splines against SciPy's, modes against formulas, test functions that vanish."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.interpolate import BSpline

import factorfield as ff
from factorfield.space import axes
from factorfield.space.axes import LEFT, RIGHT, Basis, Fourier, Held, Spline, basis_from_spec

Array = NDArray[np.float64]
GRADED = (0.0, 0.1, 0.3, 0.35, 0.9, 1.4, 2.0)
X = np.random.default_rng(3).uniform(0.0, 2.0, 60)


def dense(basis: Basis, x: Array, order: int = 0) -> Array:
    """All functions at points, (points, functions)."""
    index, values = basis.local(x, order)
    table = np.zeros((len(x), basis.size))
    np.add.at(table, (np.arange(len(x))[:, None], index), values)
    return table


@pytest.mark.parametrize(("degree", "repeats"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 3), (5, 1), (5, 2), (5, 3)])
def test_splines_and_their_derivatives_are_those_of_scipy(degree: int, repeats: int) -> None:
    """A break that is repeated `repeats` times is a knot so often."""
    breaks = tuple(np.sort(np.append(GRADED, [0.35] * (repeats - 1))))
    spline = Spline(breaks, degree)
    assert spline.size == len(breaks) - 1 + degree
    for order in range(degree + 1):
        expected = np.array([BSpline(spline.knots, row, degree)(X, order) for row in np.eye(spline.size)]).T
        # divided differences over the shortest cell, 0.05, grow with its power
        np.testing.assert_allclose(dense(spline, X, order), expected, rtol=1e-10, atol=1e-12 / 0.05**order)
    assert np.all(dense(spline, X, degree + 1) == 0.0)


@pytest.mark.parametrize("degree", [3, 5])
def test_periodic_splines_are_splines_that_go_around(degree: int) -> None:
    spline = Spline((*GRADED, 2.6), degree, periodic=True)
    length = 2.6
    whole = np.array([BSpline(spline.knots, row, degree)(X) for row in np.eye(len(spline.knots) - degree - 1)]).T
    around = np.zeros((len(X), spline.size))
    np.add.at(around.T, np.arange(whole.shape[1]) % spline.size, whole.T)
    np.testing.assert_allclose(dense(spline, X), around, atol=1e-13)
    for order in range(degree):  # all but the last derivative are continuous at the seam
        below, above = dense(spline, np.array([length - 1e-13]), order), dense(spline, np.array([0.0]), order)
        np.testing.assert_allclose(below, above, atol=1e-9 / 0.05 ** (order + 1))
        np.testing.assert_allclose(dense(spline, X + length, order), dense(spline, X, order), atol=1e-10 / 0.05**order)


@pytest.mark.parametrize("repeats", [1, 2, 5])
def test_a_repeated_break_lowers_the_smoothness_there(repeats: int) -> None:
    spline = Spline(tuple(np.sort([*GRADED, *[0.9] * (repeats - 1)])), 5)
    for order in range(6):
        below, above = (dense(spline, np.array([x]), order) for x in (np.nextafter(0.9, 0.0), 0.9))
        jump = np.max(np.abs(below - above)) / np.max(np.abs(above))
        assert jump < 1e-9 if order <= 5 - repeats else jump > 0.1


@pytest.mark.parametrize(
    "basis",
    [Spline(GRADED, 3), Spline(GRADED, 5), Spline((*GRADED, 2.6), 3, True), Spline((0.0, 0.5, 0.5, 0.5, 1.0), 3),
     Fourier(4, 0.3, 2.0)],
)  # fmt: skip
def test_derivatives_are_limits_of_differences(basis: Basis) -> None:
    x, step = np.array([0.17, 0.44, 0.62, 0.83]), 1e-6
    for order in (1, 2, 3):
        slope = (dense(basis, x + step, order - 1) - dense(basis, x - step, order - 1)) / (2.0 * step)
        value = dense(basis, x, order)
        np.testing.assert_allclose(value, slope, atol=1e-6 * max(1.0, np.abs(value).max()))


@pytest.mark.parametrize("basis", [Spline(GRADED, 3), Spline(GRADED, 5), Spline((*GRADED, 2.6), 5, True)])
def test_splines_sum_to_one_and_are_large_at_their_places(basis: Spline) -> None:
    np.testing.assert_allclose(dense(basis, X).sum(axis=1), 1.0, atol=1e-13)
    at_places = dense(basis, basis.places)
    assert np.all(np.diag(at_places) > 0.5 * dense(basis, np.linspace(0.0, basis.breaks[-1], 400)).max(axis=0))


def test_both_ends_belong_to_the_cells_next_to_them() -> None:
    for breaks in (GRADED, (*GRADED, 2.0)):  # a repeated last break too
        table = dense(Spline(breaks, 3), np.array([0.0, 2.0]))
        assert table[0, 0] == 1.0 and np.isclose(table[1].sum(), 1.0)


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
def test_gauss_points_of_cells_integrate_what_their_number_promises(degree: int) -> None:
    line = Spline(GRADED, degree).line
    assert line.points.shape == (6, degree // 2 + 2)
    most = 2 * (degree // 2 + 2) - 1
    integrals = [np.sum(line.weights * line.points**power) for power in range(most + 2)]
    exact = [2.0 ** (power + 1) / (power + 1) for power in range(most + 2)]
    np.testing.assert_allclose(integrals[:-1], exact[:-1], rtol=1e-13)
    assert abs(integrals[-1] / exact[-1] - 1.0) > 1e-9


def test_repeated_breaks_are_no_cells() -> None:
    line = Spline((0.0, 0.5, 0.5, 0.5, 1.0), 3).line
    assert len(line.points) == 2 and np.isclose(line.weights.sum(), 1.0)
    np.testing.assert_allclose(line.table(0).sum(axis=2), 1.0)


def test_points_on_a_ring_integrate_products_of_three_modes() -> None:
    ring = Fourier(3, 0.5, 2.0)
    table = ring.line.table(0)[0]
    triple = np.einsum("p,pi,pj,pk->ijk", ring.line.weights[0], table, table, table)
    fine = 0.5 + 2.0 * np.arange(200) / 200
    many = dense(ring, fine)
    np.testing.assert_allclose(triple, np.einsum("pi,pj,pk->ijk", many, many, many) * 2.0 / 200, atol=1e-13)


@pytest.mark.parametrize("order", range(6))
def test_modes_are_sines_and_cosines(order: int) -> None:
    table, rate = dense(Fourier(2, 0.5, 2.0), X, order), 2.0 * np.pi  # of the second mode
    angle = rate * (X - 0.5) + 0.5 * np.pi * order
    np.testing.assert_allclose(table[:, 3], rate**order * np.sin(angle), atol=1e-10 * rate**order)
    np.testing.assert_allclose(table[:, 4], rate**order * np.cos(angle), atol=1e-10 * rate**order)


VALUE = ((0, 1.0),)
ROBIN = ((1, 2.0), (0, -3.0))
CLAMPED = [Held(LEFT, VALUE), Held(LEFT, ((1, 1.0),)), Held(RIGHT, VALUE), Held(RIGHT, ((2, 1.0),))]


@pytest.mark.parametrize("held", [[Held(LEFT, VALUE)], [Held(LEFT, ROBIN), Held(RIGHT, VALUE)], CLAMPED])
def test_test_functions_vanish_where_conditions_hold(held: list[Held]) -> None:
    spline = Spline(GRADED, 5)
    weighting = axes.vanishing_weighting(spline, held)
    assert weighting.shares is not None and set(weighting.settled) == set(held)
    free = np.setdiff1d(np.arange(spline.size), list(weighting.settled.values()))
    assert len(free) == spline.size - len(held) == np.linalg.matrix_rank(weighting.shares[:, free])
    for condition in held:
        place = np.array([0.0 if condition.end == LEFT else 2.0])
        row = sum(share * dense(spline, place, order) for order, share in condition.shares)
        assert np.max(np.abs(row @ weighting.shares[:, free])) < 1e-11 * np.max(np.abs(row))


@pytest.mark.parametrize("held", [[], [Held(LEFT, ROBIN), Held(RIGHT, VALUE)], CLAMPED])
def test_tables_of_test_functions_are_their_values_cell_by_cell(held: list[Held]) -> None:
    spline = Spline(GRADED, 5)
    weighting, line = axes.vanishing_weighting(spline, held), spline.line
    rows, values = weighting.table(line)
    shares = np.eye(spline.size) if weighting.shares is None else weighting.shares
    for cell, points in enumerate(line.points):
        full = dense(spline, points) @ shares
        for column, row in enumerate(rows[cell]):
            if row >= 0:
                np.testing.assert_allclose(values[cell, :, column], full[:, row], atol=1e-13)
        outside = np.setdiff1d(np.arange(spline.size), rows[cell])
        assert np.allclose(full[:, np.setdiff1d(outside, list(weighting.settled.values()))], 0.0)


def test_one_condition_twice_is_refused() -> None:
    with pytest.raises(ff.ProblemError, match="conditions at an end that differ"):
        axes.vanishing_weighting(Spline(GRADED, 3), [Held(LEFT, VALUE), Held(LEFT, ((0, 2.0),))])


@pytest.mark.parametrize("basis", [Spline(GRADED, 3), Spline((*GRADED, 2.6), 5, True), Fourier(3, 0.5, 2.0)])
def test_a_basis_is_what_its_spec_says(basis: Basis) -> None:
    assert basis_from_spec(basis.spec()) == basis


def test_a_spec_with_breaks_in_disorder_is_refused() -> None:
    with pytest.raises(ff.ProblemError, match="ascending order"):
        basis_from_spec({"breaks": [0.0, 2.0, 1.0], "degree": 3, "periodic": False})


def test_uniform_rings_have_enough_cells() -> None:
    assert Spline.uniform(0.0, 1.0, 2, 5, periodic=True).size == 6
    np.testing.assert_allclose(Spline.uniform(0.0, 1.0, 4).edges, [0.0, 0.25, 0.5, 0.75, 1.0])
