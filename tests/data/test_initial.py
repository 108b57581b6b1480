"""Random initial conditions: those of PDEBench by their statistics, reproducible."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from factorfield.data.initial import pdebench_wave, smooth_field


def test_generated_initial_conditions_have_the_published_statistics() -> None:
    """10,000 draws; published: doubles 0.25, folded and windowed 0.1, u in [-3.35, 3.41], mean -0.012, std 0.797."""
    waves = [pdebench_wave(row, seed=1) for row in range(10_000)]
    x = (np.arange(64) + 0.5) / 64
    values = np.stack([wave(x) for wave in waves])
    share = [np.mean([w.counts.max() == 2 for w in waves]), np.mean([w.folded for w in waves]),
             np.mean([w.window is not None for w in waves]), np.mean([w.sign > 0 for w in waves])]  # fmt: skip
    for found, exact in zip(share, (0.25, 0.1, 0.1, 0.5), strict=True):
        assert found == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 10_000))  # four standard errors
    # fields of one row are correlated: the mean's error is that of 10,000 row means with std about 0.6
    assert values.mean() == pytest.approx(0.0, abs=4 * 0.6 / 100)
    assert values.std() == pytest.approx(0.797, abs=0.02)
    assert -4.0 < values.min() < -2.8 and 2.8 < values.max() < 4.0
    windows = np.array([w.window for w in waves if w.window is not None])
    assert windows.min() >= 0.1 and windows.max() <= 0.135


def test_generated_waves_are_reproducible() -> None:
    x = (np.arange(64) + 0.5) / 64
    assert np.array_equal(pdebench_wave(3)(x), pdebench_wave(3)(x))
    assert not np.array_equal(pdebench_wave(3)(x), pdebench_wave(3, seed=1)(x))


def test_heat_flow_damps_a_fields_modes_by_their_wave_numbers_squared() -> None:
    field, x = smooth_field(0), (np.arange(64) + 0.5) / 64
    spectra = [np.fft.rfft(field(x, decay))[1:5] for decay in (0.0, 0.1)]
    assert_allclose(np.abs(spectra[1] / spectra[0]), np.exp(-0.1 * np.arange(1, 5) ** 2), rtol=1e-10)
