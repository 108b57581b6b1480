"""Domains: named axes, time first, and points on them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.problem.domain import Axis, Domain

BOX = Domain({"x": ff.Periodic(0, 2), "t": ff.Interval(-1, 1)})


def test_time_comes_first_in_every_ordering() -> None:
    assert BOX.names == ("t", "x") and BOX.space == ("x",)
    grid = BOX.tensor({"x": [0.0, 0.5, 1.0], "t": [0.0, 1.0]})
    assert_allclose(grid["t"], [0, 0, 0, 1, 1, 1])
    assert_allclose(grid["x"], [0, 0.5, 1, 0, 0.5, 1])


def test_cells_are_even_and_chebyshev_points_crowd_at_the_ends() -> None:
    assert_allclose(BOX["x"].cells(4), [0.25, 0.75, 1.25, 1.75])
    assert_allclose(BOX["x"].collocation(4), BOX["x"].cells(4))
    points = BOX["t"].collocation(8)
    assert_allclose(np.sort(points), -np.cos(np.pi * (np.arange(8) + 0.5) / 8))


def test_one_stratified_draw_lies_in_each_cell() -> None:
    points = BOX.stratified({"t": 4, "x": 8}, np.random.default_rng(0))
    cells = zip(np.floor(2 * (points["t"] + 1)).astype(int), np.floor(4 * points["x"]).astype(int), strict=True)
    assert sorted(cells) == [(i, j) for i in range(4) for j in range(8)]


def test_points_outside_are_refused_with_the_first_of_them() -> None:
    BOX.check_inside({"t": np.array([1.0]), "x": np.array([2.0])}, "labels")  # ends belong to the domain
    with pytest.raises(ff.ProblemError, match=r"labels inside \[-1, 1\] along t, received 2 outside \(first t = 1.5\)"):
        BOX.check_inside({"t": np.array([0.0, 1.5, 2.0]), "x": np.zeros(3)}, "labels")


@pytest.mark.parametrize("axes", [{}, {"xy": ff.Interval(0, 1)}, {"X": ff.Interval(0, 1)}, {"x": (0, 1)}, 3])
def test_bad_domains_are_refused(axes: object) -> None:
    with pytest.raises(ff.ProblemError, match="expected"):
        Domain(axes)  # type: ignore[arg-type]


@pytest.mark.parametrize("ends", [(1, 0), (0, 0), (0, np.inf), (np.nan, 1)])
@pytest.mark.parametrize("kind", [ff.Periodic, ff.Interval])
def test_bad_ends_are_refused(kind: type[Axis], ends: tuple[float, float]) -> None:
    with pytest.raises(ff.ProblemError, match="lower < upper"):
        kind(*ends)
