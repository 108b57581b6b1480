"""Closed-form moments against adaptive quadrature, and their behaviour at the edges of floating point."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from factorfield import ProblemError
from factorfield.model.activation import Identity, PiecewiseExponential
from reference import gaussian_expectation

G = PiecewiseExponential(0.9, 0.1)
STEEP = PiecewiseExponential(0.5, 1.3)
MEANS = [0.0, 1e-3, -0.02, 0.4, -1.7, 6.0, -25.0]
VARIANCES = [0.0, 1e-10, 1e-4, 0.01, 0.5, 4.0]
TOLERANCE = 1e-10  # |difference| <= 1e-10 (1 + |value|)


def close(value: object, exact: float) -> bool:
    return bool(abs(float(value) - exact) <= TOLERANCE * (1.0 + abs(exact)))  # type: ignore[arg-type]


@pytest.mark.parametrize("g", [G, STEEP, Identity()])
@pytest.mark.parametrize("mean", MEANS)
@pytest.mark.parametrize("variance", VARIANCES)
def test_moments_equal_quadrature(g: PiecewiseExponential | Identity, mean: float, variance: float) -> None:
    rate = 2.0 * getattr(g, "beta", 0.0)

    def expectation(f: object) -> float:
        return gaussian_expectation(f, mean, variance, rate)  # type: ignore[arg-type]

    for order in range(4):
        assert close(g.expectation(mean, variance, order), expectation(lambda z, k=order: float(g(z, k))))
        assert close(g.second_moment(mean, variance, order), expectation(lambda z, k=order: float(g(z, k)) ** 2))
        exact = expectation(lambda z, k=order: (z - mean) * float(g(z, k)))
        assert close(g.covariance(mean, variance, order), exact), order
    assert close(g.cross_moment(mean, variance), expectation(lambda z: float(g(z)) * float(g(z, 1))))
    first, spread = g.moments(mean, variance)
    assert close(first, expectation(lambda z: float(g(z))))
    assert close(spread, expectation(lambda z: (float(g(z)) - float(first)) ** 2))
    _, slope, excess = g.linearise(mean, variance)
    assert excess >= 0.0
    assert close(slope**2 * variance + excess, float(spread))


def test_paper_variant_leaves_the_jumps_out() -> None:
    # at mean 0, sd 0.1 the paper's E[g''] is 0.0005 where the exact sensitivity is 0.0404
    paper = G.covariance(0.0, 0.01, 1, "paper") / 0.01
    exact = G.covariance(0.0, 0.01, 1) / 0.01
    assert paper == pytest.approx(0.0005, abs=5e-5)
    assert exact == pytest.approx(0.0404, abs=5e-5)
    assert G.covariance(0.3, 0.2, 0) == G.covariance(0.3, 0.2, 0, "paper")


@pytest.mark.parametrize("order", range(4))
def test_derivatives_match_finite_differences_away_from_the_kink(order: int) -> None:
    z = np.array([-8.0, -0.5, 0.5, 3.0])
    for g in (G, STEEP, Identity()):
        slope = (g(z + 1e-6, order) - g(z - 1e-6, order)) / 2e-6
        assert_allclose(g(z, order + 1), slope, rtol=2e-8, atol=1e-9)


@pytest.mark.parametrize("order", range(4))
def test_jump_is_the_difference_of_the_branches(order: int) -> None:
    assert G(1e-13, order) - G(-1e-13, order) == pytest.approx(G.jump(order), abs=1e-13)


def test_inverses_undo_the_functions() -> None:
    z = np.array([-30.0, -1.0, -1e-9, 0.0, 1e-9, 2.0, 40.0])
    assert_allclose(G.inverse(G(z)), z, rtol=1e-12)
    positive, negative = z[z > 0], z[z < 0]
    assert_allclose(G.derivative_inverse(G(positive, 1), "positive"), positive, rtol=1e-6, atol=1e-14)
    assert_allclose(G.derivative_inverse(G(negative, 1), "negative"), negative, rtol=1e-6, atol=1e-14)
    assert np.isnan(G.derivative_inverse(0.05, "positive")) and np.isnan(G.derivative_inverse(0.05, "negative"))


def test_backward_moments_are_those_of_the_matched_log_normal() -> None:
    # the log-normal whose first two moments are those of 1 + Y has a logarithm with closed-form moments
    mean, variance = 0.8, 0.04
    log_variance = np.log(1 + variance / 1.8**2)
    m, v = G.inverse_moments(mean, variance)
    assert m == pytest.approx((np.log(1.8) - 0.5 * log_variance) / 0.1)
    assert v == pytest.approx(log_variance / 0.01)
    m, v = G.inverse_moments(-0.45, 0.01)  # 1 - Y/alpha = 1.5
    log_variance = np.log(1 + 0.01 / 0.81 / 1.5**2)
    assert m == pytest.approx(-(np.log(1.5) - 0.5 * log_variance) / 0.1)
    assert v == pytest.approx(log_variance / 0.01)


def test_no_nan_and_no_negative_variance_over_the_stated_range() -> None:
    beta_mean = np.concatenate([-np.logspace(-6, np.log10(250), 60)[::-1], [0.0], np.logspace(-6, np.log10(250), 60)])
    mean, variance = np.meshgrid(beta_mean / G.beta, np.concatenate([[0.0], np.logspace(-18, 4, 67)]))
    first, spread = G.moments(mean, variance)
    assert np.all(np.isfinite(first)) and np.all(np.isfinite(spread)) and np.all(spread >= 0.0)
    assert np.all(spread[variance > 0] > 0.0)
    for part in (*G.linearise(mean, variance), G.cross_moment(mean, variance)):
        assert np.all(np.isfinite(part))
    for order in range(4):
        assert np.all(np.isfinite(G.second_moment(mean, variance, order)))
        assert np.all(np.isfinite(G.covariance(mean, variance, order)))


def test_variance_is_relatively_accurate_however_small() -> None:
    # far from the kink g is an exponential, whose variance is known; near it, compare with a 40-digit evaluation
    mpmath = pytest.importorskip("mpmath")
    mpmath.mp.dps = 60
    a, b = mpmath.mpf(G.alpha), mpmath.mpf(G.beta)
    for mean in (0.0, 1e-6, -3e-4, 0.05, -2.0, 300.0):
        for variance in (1e-18, 1e-12, 1e-7, 1e-3, 0.2, 0.26, 30.0):
            m, s = mpmath.mpf(mean), mpmath.sqrt(mpmath.mpf(variance))

            def upper(r: object, m: object = m, s: object = s) -> object:
                return mpmath.exp(r * m + r * r * s * s / 2) * mpmath.ncdf(m / s + r * s)

            def lower(r: object, m: object = m, s: object = s) -> object:
                return mpmath.exp(-r * m + r * r * s * s / 2) * mpmath.ncdf(r * s - m / s)

            first = upper(b) - upper(0) - a * (lower(b) - lower(0))
            second = upper(2 * b) - 2 * upper(b) + upper(0) + a**2 * (lower(2 * b) - 2 * lower(b) + lower(0))
            assert G.moments(mean, variance)[1] == pytest.approx(float(second - first**2), rel=1e-11)


@pytest.mark.parametrize(("mean", "variance"), [(4000.0, 1.0), (0.0, 1e6), (np.nan, 1.0), (0.0, -1.0), (0.0, np.inf)])
def test_beyond_the_range_there_is_a_clear_error(mean: float, variance: float) -> None:
    with pytest.raises(ProblemError, match=r"expected .*; try "):
        G.moments(mean, variance)


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 0.1), (1.5, 0.1), (0.9, 0.0), (0.9, -1.0)])
def test_constants_are_checked(alpha: float, beta: float) -> None:
    with pytest.raises(ProblemError):
        PiecewiseExponential(alpha, beta)
