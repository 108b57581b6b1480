"""The exact reference of the forward engine, against closed forms, other series and finer quadrature."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import integrate

from exact_gaussian import HeatLine, Process, Readings, Targets

WALLS = [("value", "value"), ("flux", "value"), ("flux", "flux"), ("value", "flux")]
START, FLUX = Process(0.0, 2.0, 0.25), Process(0.3, 1.0, 0.2)
X, T = (a.ravel() for a in np.meshgrid([0.0, 0.05, 0.4, 0.93], [0.004, 0.1, 0.77]))
EVERYTHING = Targets(X, T, [0.0, 0.31, 1.0])


def line(walls: tuple[str, str]) -> HeatLine:
    flux = FLUX if walls[0] == "flux" else None
    return HeatLine(0.7, 1.1, walls, start=START, flux=flux)


@pytest.mark.parametrize("walls", WALLS)
def test_more_points_panels_and_terms_do_not_change_the_covariance(walls: tuple[str, str]) -> None:
    coarse = line(walls)
    fine = replace(coarse, panels=170, nodes=60, shortest=coarse.shortest / 2.0)
    for one, other in zip(coarse.joint(EVERYTHING), fine.joint(EVERYTHING), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("walls", WALLS)
def test_one_wave_of_the_start_decays_at_its_own_rate(walls: tuple[str, str]) -> None:
    waves = line(walls).waves[1]
    shape = np.sin if walls[0] == "value" else np.cos
    start = Process(lambda x: shape(waves * x), 1.0, 0.3)
    mean, _ = HeatLine(0.7, 1.1, walls, start=start).joint(Targets(X, T))
    np.testing.assert_allclose(mean, shape(waves * X) * np.exp(-0.7 * waves**2 * T), atol=1e-12)


@pytest.mark.parametrize("walls", WALLS)
def test_the_series_of_the_start_agrees_with_a_sum_over_mirror_images(walls: tuple[str, str]) -> None:
    """Reflecting ends mirror the start, held ones mirror it with the other sign."""
    signs = [1.0 if wall == "flux" else -1.0 for wall in walls]
    width, length, time = np.sqrt(2.0 * 0.7 * 0.01), 1.1, 0.01
    x, y = np.array([0.1, 0.6]), np.linspace(0.0, length, 2201)

    def spread(gap: np.ndarray) -> np.ndarray:
        return np.exp(-0.5 * (gap / width) ** 2) / (np.sqrt(2.0 * np.pi) * width)

    green = spread(x[:, None] - y) + signs[0] * spread(x[:, None] + y) + signs[1] * spread(x[:, None] - 2 * length + y)
    both = signs[0] * signs[1]
    green += both * (spread(x[:, None] + 2 * length - y) + spread(x[:, None] - 2 * length - y))
    weights = integrate.simpson(np.eye(len(y)), x=y)
    expected = (green * weights) @ START.kernel(y[:, None] - y) @ (green * weights).T
    _, covariance = HeatLine(0.7, length, walls, start=START).joint(Targets(x, [time, time]))
    np.testing.assert_allclose(covariance, expected, rtol=1e-8)


def test_a_start_that_is_read_covaries_as_the_limit_of_short_times() -> None:
    """The covariance changes linearly at first: two short times, extrapolated to none."""
    close, x = replace(line(("value", "value")), shortest=1e-4), [0.3, 0.8, 0.5]
    at_start, early, twice = (close.joint(Targets(x, [t, t, 0.2]))[1] for t in (0.0, 2e-4, 4e-4))
    np.testing.assert_allclose(at_start, 2.0 * early - twice, atol=5e-3)
    assert at_start[0, 0] == START.std**2


@pytest.mark.parametrize("right", ["value", "flux"])
def test_a_constant_and_a_growing_flux_have_their_closed_forms(right: str) -> None:
    """Late enough for all that fades to have faded: exp(-0.7 (pi / 2.2)^2 16) = 1e-10."""
    heated = HeatLine(0.7, 1.1, ("flux", right), flux=Process(1.0, 1.0, 0.2), end=16.0)
    x, t = np.array([0.0, 0.3, 1.0]), 16.0
    rows, q = np.array([heated.flux_row(place, t) for place in x]), heated.flux_times
    if right == "value":  # the field tends to the straight line q (L - x), and lags behind a growing q
        steady, lag = 1.1 - x, (1.1**3 / 3.0 - 1.1 * x**2 / 2.0 + x**3 / 6.0) / 0.7
        np.testing.assert_allclose(rows.sum(axis=1), steady, atol=1e-9)
        np.testing.assert_allclose(rows @ q, steady * t - lag, atol=1e-9)
    else:  # all that comes in stays: heat D t over the length L, and a parabola
        parabola, wave = x**2 / 2.2 - x + 1.1 / 3.0, np.pi * np.arange(1, 2001) / 1.1
        np.testing.assert_allclose(rows.sum(axis=1), 0.7 * t / 1.1 + parabola, atol=1e-9)
        lag = (1.4 / 1.1) * np.cos(np.multiply.outer(x, wave)) @ (0.7 * wave**2) ** -2.0
        np.testing.assert_allclose(rows @ q, 0.7 * t**2 / 2.2 + parabola * t - lag, atol=1e-9)


def test_the_covariance_from_the_flux_is_the_double_integral() -> None:
    heated = HeatLine(0.7, 1.1, ("flux", "value"), flux=FLUX)
    _, covariance = heated.joint(Targets([0.2, 0.5], [0.3, 0.7], [0.55]))

    def inner(s: float, x: float, t: float) -> float:
        value = lambda r: float(heated.pulse(x, np.array([t - r]))[0] * FLUX.kernel(np.array(r - s)))  # noqa: E731
        kink = [s] if 0.0 < s < t else None
        return integrate.quad(value, 0.0, t * (1.0 - 1e-14), points=kink, epsabs=1e-12, limit=200)[0]

    outer = lambda s: float(heated.pulse(0.2, np.array([0.3 - s]))[0]) * inner(s, 0.5, 0.7)  # noqa: E731
    expected = integrate.quad(outer, 0.0, 0.3 * (1.0 - 1e-14), epsabs=1e-11, limit=200)[0]
    assert covariance[0, 1] == pytest.approx(expected, abs=1e-9)
    assert covariance[1, 2] == pytest.approx(inner(0.55, 0.5, 0.7), abs=1e-9)


def test_readings_in_two_parts_say_what_they_say_together() -> None:
    """The evidence of both is that of the first, times that of the second given the first."""
    rng = np.random.default_rng(0)
    heated = line(("flux", "value"))
    x, t, sigma = rng.uniform(0.0, 1.1, 30), rng.uniform(0.05, 1.0, 30), 0.1
    y = rng.standard_normal(30)
    targets = Targets([0.0, 0.7], [0.5, 0.0], [0.2])
    whole = heated.posterior(Readings(x, t, y, sigma), targets)
    more = Targets(np.concatenate([x[20:], [0.0, 0.7]]), np.concatenate([t[20:], [0.5, 0.0]]), [0.2])
    part = heated.posterior(Readings(x[:20], t[:20], y[:20], sigma), more)
    gain = part.covariance[:, :10] @ np.linalg.inv(part.covariance[:10, :10] + sigma**2 * np.eye(10))
    misfit = y[20:] - part.mean[:10]
    np.testing.assert_allclose((part.mean + gain @ misfit)[10:], whole.mean, atol=1e-9)
    covariance = part.covariance - gain @ part.covariance[:10]
    np.testing.assert_allclose(covariance[10:, 10:], whole.covariance, atol=1e-9)
    spread = part.covariance[:10, :10] + sigma**2 * np.eye(10)
    second = -0.5 * misfit @ np.linalg.solve(spread, misfit) - 0.5 * np.linalg.slogdet(2.0 * np.pi * spread)[1]
    assert part.log_evidence + second == pytest.approx(whole.log_evidence, abs=1e-9)


def test_a_reading_long_after_says_nothing_about_the_start() -> None:
    """Walls at 20 and a start 20 +- 2: at t = 1 only exp(-pi^2) of the first wave is left."""
    bar = HeatLine(1.0, 1.0, level=20.0, start=Process(20.0, 2.0, 0.25))
    answer = bar.posterior(Readings(0.5, 1.0, 20.001, 0.5), Targets([0.5, 0.5], [0.0, 0.01]))
    _, before = bar.joint(Targets([0.5, 0.5], [0.0, 0.01]))
    np.testing.assert_allclose(answer.std, np.sqrt(np.diag(before)), rtol=1e-6)
    assert answer.std[0] == pytest.approx(2.0, rel=1e-6)
