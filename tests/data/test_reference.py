"""Reference solutions: exact where they can be, of the stated order elsewhere."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.data import reference


def test_exponential_integrator_is_fourth_order_and_agrees_with_splitting() -> None:
    x = (np.arange(64) + 0.5) / 64
    start, times = 0.5 + 0.4 * np.sin(2 * np.pi * x), np.linspace(0, 0.2, 3)
    symbol = 0.05 * reference.laplace_symbol(start.shape, 1.0)

    def run(step: float) -> np.ndarray:
        return reference.exponential_integrator(start, symbol, lambda u: 5.0 * u * (1 - u), times, step)

    finest = run(1.25e-3)
    errors = [np.abs(run(step) - finest).max() for step in (2e-2, 1e-2)]
    assert errors[0] / errors[1] == pytest.approx(16.0, rel=0.25)
    assert np.abs(finest - reference.fisher_kpp(start, 0.05, 5.0, times)).max() < 1e-8


def test_cells_hold_the_waves_of_a_kink_and_no_others() -> None:
    """|x| on -1..1 is 1/2 and waves -4 cos(k pi x) / (k pi)^2 of odd k."""
    cells, finer = 32, 255
    x, fine = (2.0 * (np.arange(n) + 0.5) / n - 1.0 for n in (cells, cells * finer))
    odd = np.arange(1, cells // 2, 2)
    held = 0.5 - np.sum(4.0 / (odd * np.pi) ** 2 * np.cos(np.pi * np.outer(x, odd)), axis=1)
    assert_allclose(reference.coarsened(np.abs(fine), cells), held, atol=1e-6)
    assert np.abs(np.abs(x) - held).max() > 1e-3


def test_two_dimensions_separate_where_the_equation_does() -> None:
    """Pure diffusion of sin(2 pi x) cos(4 pi y) on a 1 x 2 rectangle decays at the sum of the rates."""
    x, y = np.arange(16) / 16, 2 * np.arange(20) / 20
    start = np.outer(np.sin(2 * np.pi * x), np.cos(2 * np.pi * y))
    solved = reference.fisher_kpp(start, 0.03, 0.0, [0.0, 0.4], period=(1.0, 2.0))
    assert_allclose(solved[1], np.exp(-0.03 * 0.4 * 2 * (2 * np.pi) ** 2) * start, atol=1e-12)
    other = reference.exponential_integrator(
        start, 0.03 * reference.laplace_symbol(start.shape, (1.0, 2.0)), np.zeros_like, [0.0, 0.4]
    )
    assert_allclose(other, solved, atol=1e-12)


def test_translate_is_exact_for_whole_periods_and_fourth_order_for_smooth_fields() -> None:
    for cells in (64, 128):
        x = (np.arange(cells) + 0.5) / cells
        moved = reference.translate(np.sin(6 * np.pi * x), [0.123, 1.0])
        error = np.abs(moved[0] - np.sin(6 * np.pi * (x - 0.123))).max()
        assert_allclose(moved[1], np.sin(6 * np.pi * x), atol=1e-12)
        assert error < 0.02 * (6 * np.pi / cells) ** 4


def test_fisher_reference_is_fourth_order_and_exact_for_flat_fields() -> None:
    times = np.linspace(0, 0.1, 3)
    flat = reference.fisher_kpp(np.full(32, 0.2), 0.5, 5.0, times)
    assert_allclose(flat[:, 0], 0.2 / (0.2 + 0.8 * np.exp(-5.0 * times)), rtol=1e-12)
    x = (np.arange(64) + 0.5) / 64
    start = 0.5 + 0.4 * np.sin(2 * np.pi * x)
    finest = reference.fisher_kpp(start, 0.1, 5.0, times, step=2.5e-4)
    errors = [np.abs(reference.fisher_kpp(start, 0.1, 5.0, times, step=s) - finest).max() for s in (1e-2, 5e-3)]
    assert errors[0] / errors[1] == pytest.approx(16.0, rel=0.25)
    default = reference.fisher_kpp(start, 0.1, 5.0, times)
    assert np.abs(default - finest).max() < 1e-8


def test_fisher_reference_agrees_with_stored_rows_before_they_freeze(pdebench: Path) -> None:
    problem = ff.problems.get("fisher-kpp", file=pdebench / "ReacDiff_Nu1.0_Rho2.0.hdf5", row=3)
    early = problem.truth.t <= 0.02
    assert float(np.abs(problem.stored - problem.truth).where(early).max()) < 1e-3
    only = ff.problems.get("fisher-kpp", nu=0.5, rho=1.0, file=pdebench / "ReacDiff_initial_conditions.npz", row=0)
    assert only.stored is None and only.truth.shape == (101, 1024)
