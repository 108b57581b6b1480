"""The evidence of labels for a spectrum: noise, and what modes leave out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import optimize

import factorfield as ff
from factorfield.model.spectrum import _Labels, fastest_rates, fit, rates, spectra_of, tails_of


def test_the_evidence_finds_noise_and_modes_on_even_and_uneven_points() -> None:
    rng = np.random.default_rng(2)
    for x in (np.arange(256) / 256, np.sort(rng.uniform(0, 1, 256))):
        clean = np.sin(2 * np.pi * x) + 0.5 * np.cos(6 * np.pi * x)
        found = fit(x, clean + 0.1 * rng.standard_normal(256), 0.0, 1.0, None)
        assert found.sigma == pytest.approx(0.1, rel=0.15)
        assert 3 <= found.enough(0.05, 32) <= 12
        assert found.left_out(3) > found.left_out(12) >= 0.0


@pytest.mark.parametrize("sigma", [0.1, None])
@pytest.mark.parametrize("even", [True, False])
def test_slopes_of_the_evidence_are_its_differences(even: bool, sigma: float | None) -> None:
    rng = np.random.default_rng(0)
    x = np.arange(64) / 64 if even else np.sort(rng.uniform(0, 1, 64))
    labels = _Labels.of(x, np.sin(6.3 * x) + 0.1 * rng.standard_normal(64), 0.0, 1.0, sigma)
    theta = np.log([0.7, 3.0, 1.5, 0.05, 0.08])[: 5 if sigma is None else 4]
    found = optimize.approx_fprime(theta, lambda place: labels.negative_evidence(place)[0], 1e-6)
    assert_allclose(labels.negative_evidence(theta)[1], found, rtol=1e-4)


def test_a_given_sigma_is_kept_and_even_points_agree_with_uneven_ones() -> None:
    """The fast transform on even points and dense algebra on the same points, a little apart."""
    x = np.arange(64) / 64
    y = np.sin(2 * np.pi * x) + 0.3 * np.cos(8 * np.pi * x)
    even, uneven = fit(x, y, 0.0, 1.0, 0.05), fit(x + 1e-5 * np.sin(9 * x), y, 0.0, 1.0, 0.05)
    assert even.sigma == uneven.sigma == 0.05
    assert_allclose(even.second_moment[:4], uneven.second_moment[:4], atol=0.02)
    assert even.second_moment[0] == pytest.approx(0.5, rel=0.1)  # sine and cosine, half a square each


def test_a_weak_kink_beside_a_large_wave_is_seen_in_what_is_left_out() -> None:
    """Its waves fall off as 1 / k^2: few rise above the noise, together they are what eight modes miss."""
    x = np.arange(1024) / 1024
    kink = 0.2 * (np.abs(x - 0.5) - 0.25)
    waves = np.fft.rfft(kink) / 512
    for seed in range(3):
        rng = np.random.default_rng(seed)
        found = fit(x, np.sin(2 * np.pi * x) + kink + 0.005 * rng.standard_normal(1024), 0.0, 1.0, 0.005)
        true = 0.5 * np.sum(np.abs(waves[9:]) ** 2)
        assert true / 4 < found.left_out(8) < 16 * true  # a size that is read from noise: within a factor of four


def test_enough_modes_leave_out_less_than_is_asked() -> None:
    found = fit(np.arange(64) / 64, np.sin(4 * np.pi * np.arange(64) / 64), 0.0, 1.0, 0.01)
    for tolerance in (0.5, 0.05):
        count = found.enough(tolerance, 512)
        assert found.left_out(count) <= tolerance**2 < found.left_out(count - 1)
    assert found.enough(1e-9, 5) == 5 and found.enough(1e9, 512) == 1


# -- the linear part of an equation


def advection_diffusion() -> ff.Problem:
    domain = {"x": ff.Periodic(0, 2), "t": ff.Interval(0, 1)}
    return ff.Problem("u_t + 3*u_x = 0.5*u_xx - 0.1*u", domain, {}, [ff.Initial("u = 1")])


def test_rates_are_those_of_waves() -> None:
    problem, k = advection_diffusion(), np.array([1.0, 4.0])
    found = rates(problem, problem.statements[0], {"x": k})  # at one instant and place: nothing depends on them
    assert found is not None and found.shape == (1, 1, 2)
    assert_allclose(found[0, 0], -3j * k - 0.5 * k**2 - 0.1, rtol=1e-12)
    wave = problem.replace(equation="u_tt = 9*u_xx")
    found = rates(wave, wave.statements[0], {"x": k})
    assert found is not None
    assert_allclose(found[0, 0] ** 2, -9.0 * k**2, rtol=1e-12)
    still = problem.replace(equation="u_xx = u")
    assert rates(still, still.statements[0], {"x": k}) is None
    assert fastest_rates(problem, {"x": 4})[0] == pytest.approx(abs(-3j * 4 * np.pi - 0.5 * (4 * np.pi) ** 2 - 0.1))


def test_what_is_left_out_decays_with_the_equation() -> None:
    x = np.arange(64) / 32
    labels = ff.Observations(x=x, t=0.0, u=np.sin(np.pi * x) + 0.1 * np.sin(6 * np.pi * x), sigma=0.01)
    problem = advection_diffusion().replace(conditions=[labels])
    (spectrum,) = spectra_of(problem, {}).values()
    tail = tails_of(problem, {"u": spectrum}, {"x": 3}, ff.Identity())["u"]
    assert_allclose(tail.wave[:2], [4 * np.pi, 5 * np.pi])
    variance = tail.of({}, np.array([0.0, 0.1]))
    assert variance[0] == pytest.approx(spectrum.left_out(3), rel=1e-12)
    assert_allclose(variance[1], np.sum(tail.variance * np.exp(-0.2 * (0.5 * tail.wave**2 + 0.1))), rtol=1e-10)
    assert_allclose(tail.of({"x": 1}, np.zeros(1)), np.sum(tail.variance * tail.wave**2), rtol=1e-12)


def test_only_a_start_along_one_periodic_axis_has_a_spectrum() -> None:
    x = np.linspace(0, 2, 16, endpoint=False)
    problem = advection_diffusion()

    def measured(**options: object) -> ff.Problem:
        return problem.replace(
            conditions=[ff.Observations(**{"x": x, "t": 0.0, "u": np.sin(x), "sigma": 0.1, **options})]
        )

    assert set(spectra_of(measured(), {})) == {"u"}
    assert spectra_of(measured(t=0.5), {}) == {}
    assert spectra_of(measured(x=x[:5], u=x[:5]), {}) == {}  # too few
    interval = measured().replace(domain={"x": ff.Interval(0, 2), "t": ff.Interval(0, 1)})
    assert spectra_of(interval, {}) == {}
