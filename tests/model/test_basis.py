"""Features, their derivatives, tensor products and points."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from factorfield import Interval, Periodic, ProblemError
from factorfield.model.basis import Chebyshev, Departure, Fourier, Tensor, decorrelate, family_from_spec
from factorfield.problem.domain import Domain

FAMILIES = [Fourier(4, 0.3, 2.0), Chebyshev(9, -0.5, 2.0), Chebyshev(0), Chebyshev(1), Fourier(0)]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("order", range(5))
def test_derivatives_match_finite_differences(family: Fourier | Chebyshev, order: int) -> None:
    x, step = np.linspace(0.05, 0.95, 7), 1e-5
    slope = (family(x + step, order) - family(x - step, order)) / (2 * step)
    exact = family(x, order + 1)
    assert_allclose(slope, exact, atol=1e-7 * max(np.abs(exact).max(), np.abs(family(x, order)).max()))


def test_features_are_the_named_functions() -> None:
    x = np.linspace(-0.4, 1.9, 11)
    fourier = Fourier(2, 0.3, 2.0)(x)
    angle = 2 * np.pi * (x - 0.3) / 2.0
    assert_allclose(
        fourier,
        np.column_stack([np.ones(11), np.sin(angle), np.cos(angle), np.sin(2 * angle), np.cos(2 * angle)]),
        atol=1e-15,
    )
    s = 2 * (x + 0.5) / 2.5 - 1
    assert_allclose(Chebyshev(5, -0.5, 2.0)(x), np.cos(np.outer(np.arccos(s), np.arange(6))), atol=1e-13)


@pytest.mark.parametrize("family", FAMILIES)
def test_families_come_back_from_their_description(family: Fourier | Chebyshev) -> None:
    assert family_from_spec(family.spec()) == family


def test_rows_are_kronecker_products_and_grids_need_only_the_factors() -> None:
    basis = Tensor({"t": Chebyshev(3, 0, 2), "x": Fourier(2)})
    domain = Domain({"x": Periodic(0, 1), "t": Interval(0, 2)})
    grid = {"t": np.linspace(0, 2, 4), "x": np.linspace(0, 0.9, 5)}
    rows = basis.rows(domain.tensor(grid), (("t", 1), ("x", 2)))
    time, space = basis.matrices(grid, (("t", 1), ("x", 2)))
    assert_allclose(rows, np.kron(time, space), atol=1e-12)
    assert basis.size == 20 and basis.shape == (4, 5)


def test_rotation_acts_on_features_and_weights_consistently() -> None:
    basis = Tensor({"x": Fourier(3)})
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((7, 5)))[0]
    rotated = basis.rotated(rotation)
    x = {"x": np.linspace(0, 1, 9)}
    w = np.arange(5.0)
    assert_allclose(rotated.rows(x) @ w, basis.rows(x) @ rotated.raw(w), atol=1e-13)


def test_decorrelation_diagonalises_and_keeps_by_rule() -> None:
    rng = np.random.default_rng(1)
    v = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    gram = v @ np.diag([1.0, 0.5, 1e-3, 1e-7, 1e-11, 0.0]) @ v.T
    relative, floor = decorrelate(gram, "relative"), decorrelate(gram, "floor")
    assert relative.shape[1] == 4 and floor.shape[1] == 5
    diagonal = relative.T @ gram @ relative
    assert_allclose(diagonal, np.diag(np.diag(diagonal)), atol=1e-14)
    assert np.all(np.diff(np.diag(diagonal)) < 0)


def test_stratified_points_fall_one_in_each_cell() -> None:
    domain = Domain({"x": Periodic(-1, 1), "t": Interval(0, 2)})
    points = domain.stratified({"t": 5, "x": 8}, np.random.default_rng(0))
    cells = {(int(t / 0.4), int((x + 1) / 0.25)) for t, x in zip(points["t"], points["x"], strict=True)}
    assert len(cells) == 40
    again = domain.stratified({"t": 5, "x": 8}, np.random.default_rng(0))
    assert np.array_equal(points["x"], again["x"])


def test_collocation_stays_inside_and_time_comes_first() -> None:
    domain = Domain({"x": Periodic(-1, 1), "t": Interval(0, 2)})
    assert domain.names == ("t", "x") and domain.space == ("x",)
    for name in domain.names:
        points = domain[name].collocation(9)
        assert len(np.unique(points)) == 9 and np.all(domain[name].contains(points))


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (0, np.inf), (np.nan, 1)])
def test_empty_or_infinite_axes_are_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(ProblemError, match="lower < upper"):
        Interval(*ends)


@pytest.mark.parametrize("axes", [{}, {"xx": Interval(0, 1)}, {"x": (0, 1)}, {"X": Interval(0, 1)}, None])
def test_malformed_domains_are_refused(axes: object) -> None:
    with pytest.raises(ProblemError, match=r"expected .* received .* try"):
        Domain(axes)  # type: ignore[arg-type]


@pytest.mark.parametrize("states", [1, 2, 3])
def test_departures_leave_the_state_alone_and_differentiate(states: int) -> None:
    family = Departure(7, 0.5, 1.25, states)
    at_start = np.stack([family([0.5], k)[0] for k in range(states)])
    assert_allclose(at_start[:, :states], np.eye(states), atol=1e-12)
    assert_allclose(at_start[:, states:], 0.0, atol=1e-9)
    t, step = np.linspace(0.6, 1.2, 5), 1e-5
    for order in range(3):
        slope = (family(t + step, order) - family(t - step, order)) / (2 * step)
        assert_allclose(family(t, order + 1), slope, rtol=1e-5, atol=1e-3)
