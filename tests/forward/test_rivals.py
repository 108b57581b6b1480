"""The rivals of benchmarks/rivals: their derivatives, and their answers where an exact one is known."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from exact_gaussian import HeatLine, Process, Readings, Targets

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from rivals import cases, filters, fisher_kpp, flux, hare_lynx, rod


def differences(values, e: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Central differences of a function of several numbers."""
    steps = step * np.eye(len(e))
    return np.stack([(values(e + s) - values(e - s)) / (2.0 * step) for s in steps], axis=-1)


def test_slopes_of_the_populations_are_those_of_finite_differences() -> None:
    case, e = cases.hare_lynx(), 0.3 * np.random.default_rng(0).standard_normal(6)
    animals = hare_lynx.Animals(case, rtol=1e-11)
    expected = differences(lambda e: animals.values(e, case.t), e)
    np.testing.assert_allclose(animals.slopes(e, case.t), expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("stated", [False, True])
def test_slopes_of_the_ring_are_those_of_finite_differences(stated: bool) -> None:
    case = cases.fisher_kpp(stated)
    ring = fisher_kpp.Ring(case, cells=32, frequencies=5, step=0.01)
    where = ring.at(*case.places)
    e = 0.1 * np.random.default_rng(0).standard_normal(13)

    def values(e: np.ndarray) -> np.ndarray:
        return ring.read(e, (0.02 * np.exp(e[0]), 3.0 * np.exp(e[1])), where, slopes=False)

    slopes = ring.read(e, (0.02 * np.exp(e[0]), 3.0 * np.exp(e[1])), where, slopes=True)
    np.testing.assert_allclose(slopes, differences(values, e), atol=1e-8)


def test_a_rod_with_a_known_start_decays_as_one_wave() -> None:
    case = cases.rod(start=None)
    answer = rod.fit(case)
    alpha = np.exp(case.alpha.latent[0] + case.alpha.latent[1] * answer.fit.mean[0])
    x, t = case.places
    expected = 20.0 + 60.0 * np.sin(np.pi * x / 50.0) * np.exp(-alpha * (np.pi / 50.0) ** 2 * t)
    np.testing.assert_allclose(answer.mean, expected, atol=1e-8)
    by_steps = rod.fit_by_steps(case)  # of second order in space, on 50 cells
    assert by_steps["mean"] == pytest.approx(answer.alpha["mean"], abs=0.1 * answer.alpha["std"])
    assert by_steps["std"] == pytest.approx(answer.alpha["std"], rel=1e-2)


def test_an_uncertain_rod_has_the_evidence_of_the_exact_process() -> None:
    """Laplace's approximation over alpha left out: the start's share at the best alpha."""
    case = cases.rod()
    e = np.zeros(1)
    lines = rod.Lines(case, cells=40, modes=16)
    alpha = float(np.exp(case.alpha.latent[0] + case.alpha.latent[1] * e[0]))
    answers, _ = lines.read(*lines.at(np.full(24, case.x), case.t), alpha)
    spread = answers[:, 1:] @ answers[:, 1:].T
    start = Process(lambda x: 20.0 + 60.0 * np.sin(np.pi * x / 50.0), 2.0, 12.5)
    exact = HeatLine(alpha, 50.0, level=20.0, start=start, end=36.0)
    mean, covariance = exact.joint(Targets(case.x, case.t))
    np.testing.assert_allclose(case.wall + answers[:, 0], mean, atol=1e-9)
    np.testing.assert_allclose(spread, covariance, atol=1e-8)


def test_the_flux_by_superposition_tends_to_the_exact_process() -> None:
    case = cases.flux()
    x, t = np.meshgrid(case.sensors, case.t, indexing="ij")
    bar = HeatLine(1.0, 1.0, ("flux", "flux"), flux=Process(0.0, 1.0, 0.2))
    exact = bar.posterior(Readings(x.ravel(), t.ravel(), case.u.ravel(), case.sigma), Targets(flux=case.places))
    errors = []
    for nodes in (41, 81, 161):  # linear between nodes: the error falls with the square of their distance
        answer = flux.fit(case, nodes)
        errors.append(max(np.abs(answer.mean - exact.mean).max(), abs(answer.log_evidence - exact.log_evidence)))
        assert np.abs(answer.std / exact.std - 1.0).max() < 0.05
    assert errors[0] > 3.0 * errors[1] > 9.0 * errors[2] and errors[2] < 0.02


def test_the_square_root_filter_is_kalmans_formula_for_its_own_covariance() -> None:
    rng = np.random.default_rng(0)
    ensemble, reading, sigma = rng.standard_normal((12, 7)) @ rng.standard_normal((7, 7)), rng.standard_normal(7), 0.8
    prior = np.cov(ensemble.T)
    gain = prior @ np.linalg.inv(prior + sigma**2 * np.eye(7))
    mean = ensemble.mean(axis=0)
    after = filters.sqrt_analysis(ensemble, reading, sigma)
    np.testing.assert_allclose(after.mean(axis=0), mean + gain @ (reading - mean), atol=1e-12)
    np.testing.assert_allclose(np.cov(after.T), prior - gain @ prior, atol=1e-12)
    everywhere = filters.local_analysis(ensemble, reading, sigma, taper=np.ones((7, 7)))
    np.testing.assert_allclose(everywhere, after, atol=1e-12)
    turned = filters.rotation(rng, 12)
    np.testing.assert_allclose(turned @ turned.T, np.eye(12), atol=1e-12)
    np.testing.assert_allclose(turned @ np.ones(12), np.ones(12), atol=1e-12)


def test_the_integrator_of_the_ring_is_of_fourth_order() -> None:
    case = cases.kuramoto_sivashinsky(cycles=1)
    exact, *others = (cases.Etdrk4(128, case.length, step)(case.start, 1.0) for step in (1 / 640, 0.0125, 0.00625))
    coarse, fine = (np.abs(u - exact).max() for u in others)
    assert 11.0 < coarse / fine < 18.0 and fine < 2e-9
