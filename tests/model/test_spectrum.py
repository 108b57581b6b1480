"""The evidence of labels for a spectrum: noise, and what modes leave out."""

from __future__ import annotations

import numpy as np
import pytest

from factorfield.model.spectrum import fit


def test_the_evidence_finds_noise_and_modes_on_even_and_uneven_points() -> None:
    rng = np.random.default_rng(2)
    for x in (np.arange(256) / 256, np.sort(rng.uniform(0, 1, 256))):
        clean = np.sin(2 * np.pi * x) + 0.5 * np.cos(6 * np.pi * x)
        found = fit(x, clean + 0.1 * rng.standard_normal(256), 0.0, 1.0, None)
        assert found.sigma == pytest.approx(0.1, rel=0.15)
        assert 3 <= found.enough(0.05, 32) <= 12
        assert found.left_out(3) > found.left_out(12) >= 0.0
