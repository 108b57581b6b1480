"""Splines over cells of any width, and cells that follow a density."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate

import factorfield as ff
from factorfield.model.basis import Tensor, family_from_spec
from factorfield.model.graded import GradedSpline, cells_of, coarser, monitor, sampling, transfer, uniform

Array = NDArray[np.float64]
RNG = np.random.default_rng(3)
BREAKS = (0.0, 0.05, 0.1, 0.22, 0.3, 0.45, 0.7, 0.8, 1.1, 1.3, 1.6, 2.0)


def splines() -> list[GradedSpline]:
    return [GradedSpline(BREAKS), GradedSpline(BREAKS, periodic=True)]


@pytest.mark.parametrize("spline", splines(), ids=["interval", "ring"])
def test_splines_add_up_to_one_and_each_derivative_is_that_of_the_one_before(spline: GradedSpline) -> None:
    x = np.linspace(0.013, 1.987, 40)
    np.testing.assert_allclose(spline(x).sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(Tensor({"x": spline}).constant, np.ones(spline.size))
    step = 1e-5
    for order in (1, 2, 3):
        difference = (spline(x + step, order - 1) - spline(x - step, order - 1)) / (2 * step)
        size = np.abs(spline(x, order)).max()
        np.testing.assert_allclose(spline(x, order) / size, difference / size, atol=1e-5)


def test_on_an_interval_the_outer_weights_are_the_values_at_the_ends_and_a_ring_closes_smoothly() -> None:
    interval, ring = splines()
    np.testing.assert_allclose(interval([0.0, 2.0])[:, [0, -1]], np.eye(2), atol=1e-14)
    for order in range(5):
        before, after = ring([2.0 - 1e-12], order), ring([0.0], order)
        np.testing.assert_allclose(before, after, atol=1e-7 * max(1.0, np.abs(after).max()))


def test_quadrature_of_cells_integrates_polynomials_of_degree_seven() -> None:
    spline = splines()[0]
    points, shares = spline.quadrature
    weights = RNG.standard_normal(spline.size)
    moment, _ = integrate.quad(lambda x: float(x**2 * (spline([x]) @ weights)[0]), 0.0, 2.0, points=BREAKS, limit=200)
    assert shares @ (points**2 * (spline(points) @ weights)) == pytest.approx(moment, rel=1e-8)


@pytest.mark.parametrize("spline", splines(), ids=["interval", "ring"])
def test_a_spline_survives_its_spec(spline: GradedSpline) -> None:
    assert family_from_spec(spline.spec()) == spline


def wavy(x: Array) -> Array:
    return np.asarray(np.sin(np.pi * x) + 0.3 * np.cos(2 * np.pi * x), float)


@pytest.mark.parametrize("periodic", [False, True])
def test_a_smooth_function_crosses_to_other_cells_nearly_unchanged_and_back(periodic: bool) -> None:
    axis = ff.Periodic(0.0, 2.0) if periodic else ff.Interval(0.0, 2.0)
    old = uniform(axis, 40)
    new = cells_of(axis, 40, np.linspace(0, 2, 400), 1.0 + 5.0 * np.exp(-((np.linspace(0, 2, 400) - 1) ** 2) / 0.02))
    weights = np.linalg.lstsq(old(np.linspace(0, 2, 300)), wavy(np.linspace(0, 2, 300)), rcond=None)[0]
    moved = transfer(old, new) @ weights
    x = np.linspace(0, 2, 501)
    np.testing.assert_allclose(new(x) @ moved, wavy(x), atol=1e-6)
    if not periodic:  # walls stay where they were
        for order in (0, 1):
            np.testing.assert_allclose(new([0.0, 2.0], order) @ moved, old([0.0, 2.0], order) @ weights, atol=1e-9)


@pytest.mark.parametrize("periodic", [False, True])
def test_cells_share_a_density_evenly_and_neighbours_differ_little(periodic: bool) -> None:
    axis = ff.Periodic(-1.0, 1.0) if periodic else ff.Interval(-1.0, 1.0)
    at = np.linspace(-1, 1, 4001)
    cells = cells_of(axis, 60, at, 1.0 / np.cosh((at - 0.4) / 0.005) ** 2 / 0.005)
    width = np.diff(cells.breaks)
    assert cells.cells == 60 and width.min() > 0.0
    assert width.min() < 0.004 < 0.04 < width.max()
    assert abs(cells.breaks[int(np.argmin(width))] - 0.4) < 0.02
    ratios = width[1:] / width[:-1]
    assert max(ratios.max(), 1 / ratios.min()) < 1.6
    if periodic:
        assert max(width[0] / width[-1], width[-1] / width[0]) < 1.6


def test_a_steep_place_asks_for_cells_in_proportion_to_its_slope() -> None:
    axis, fine = ff.Interval(-1.0, 1.0), uniform(ff.Interval(-1.0, 1.0), 400)
    x, at = np.linspace(-1, 1, 2001), sampling(fine)
    for width in (0.05, 0.1):
        weights = np.linalg.lstsq(fine(x), np.tanh(x / width), rcond=None)[0]
        density = monitor(fine, weights, 1.0, at)
        assert density.max() == pytest.approx(1.26 / width, rel=0.05)  # of the third derivative: (2 / width^3)^(1/3)
        assert density[0] < 0.1 * density.max()
    assert cells_of(axis, 40, at, density).cells == 40


def test_fewer_cells_are_spread_the_same_way() -> None:
    spline = splines()[0]
    fewer = coarser(spline, 0.5)
    assert fewer.cells == 6 and fewer.breaks[0] == 0.0 and fewer.breaks[-1] == 2.0
    assert np.diff(fewer.breaks).min() == np.diff(fewer.breaks)[0]
