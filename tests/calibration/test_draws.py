"""Truths come from the priors that problems state."""

from __future__ import annotations

import numpy as np
import pytest

from factorfield.calibration.draws import Ring, log_normal, matern, process, ring_spectrum
from factorfield.problem.coefficients import Unknown


def test_positive_numbers_have_the_stated_moments() -> None:
    rng = np.random.default_rng(0)
    drawn = np.array([log_normal(rng, 1.5, 0.5) for _ in range(20_000)])
    assert drawn.mean() == pytest.approx(1.5, abs=0.02) and drawn.std() == pytest.approx(0.5, abs=0.02)
    centre, variance = Unknown(1.5, 0.5, positive=True).latent_moments  # what a method believes beforehand
    assert np.log(drawn).mean() == pytest.approx(centre, abs=0.015)
    assert np.log(drawn).var() == pytest.approx(variance, rel=0.05)


def test_processes_along_a_line_and_on_a_ring_have_the_stated_covariance() -> None:
    rng, x = np.random.default_rng(1), np.array([0.0, 0.1, 0.35, 0.9])
    line = np.cov([process(rng, x, 0.3) for _ in range(8000)], rowvar=False)
    np.testing.assert_allclose(line, matern(np.abs(x[:, None] - x), 0.3), atol=0.06)  # five standard errors
    ring = np.cov([Ring.drawn(rng, 0.25, 64).heat(x, np.zeros(4), 0.0) for _ in range(8000)], rowvar=False)
    chord = np.abs(np.sin(np.pi * (x[:, None] - x))) / np.pi
    np.testing.assert_allclose(ring, matern(chord, 0.25), atol=0.06)
    assert ring_spectrum(0.25, 256).sum() == pytest.approx(1.0, rel=1e-12)


def test_a_ring_of_waves_obeys_the_heat_equation_and_averages_over_cells() -> None:
    field, d, h = Ring.drawn(np.random.default_rng(2), 0.25, 64), 0.01, 1e-3
    x, t = np.array([0.2, 0.7]), np.array([0.5, 0.8])
    slope = (field.heat(x, t + h, d) - field.heat(x, t - h, d)) / (2 * h)
    bend = (field.heat(x + h, t, d) - 2 * field.heat(x, t, d) + field.heat(x - h, t, d)) / h**2
    np.testing.assert_allclose(slope, d * bend, rtol=1e-3)
    inside = x[:, None] + 0.1 * (np.arange(400) / 400 + 0.5 / 400 - 0.5)
    means = [field.heat(places, np.full(400, at), d).mean() for places, at in zip(inside, t, strict=True)]
    np.testing.assert_allclose(field.heat(x, t, d, width=0.1), means, rtol=1e-4)
