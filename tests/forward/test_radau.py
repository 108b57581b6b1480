"""Radau IIA: its rates are exact for polynomials, its order is 2s - 1, and what is stiff is damped."""

from __future__ import annotations

from math import comb, factorial

import numpy as np
import pytest

from factorfield.forward.radau import rule_of

stages = pytest.mark.parametrize("stages", [1, 2, 3, 5, 7])


@stages
def test_rates_and_readings_are_exact_for_polynomials(stages: int) -> None:
    rule = rule_of(stages)
    at = np.linspace(0.0, 1.0, 7)
    for degree in range(1, stages + 1):
        slopes = degree * rule.instants ** (degree - 1)
        np.testing.assert_allclose(rule.rates @ rule.instants**degree, slopes, atol=1e-10)
        for order, values in ((0, at**degree), (1, degree * at ** (degree - 1.0))):
            np.testing.assert_allclose(rule.weights(at, order) @ rule.nodes**degree, values, atol=1e-9)
        coefficients = rule.legendre @ rule.nodes**degree
        np.testing.assert_allclose(coefficients[degree + 1 :], 0.0, atol=1e-10)
        assert abs(coefficients[degree]) > 1e-6


def growth(stages: int, z: complex) -> complex:
    """What u' = z u does to 1 in a window of length one: departures d solve rates d = z (1 + d)."""
    rule = rule_of(stages)
    return complex(1.0 + np.linalg.solve(rule.rates - z * np.eye(stages), z * np.ones(stages))[-1])


def pade(above: int, below: int, z: complex) -> complex:
    """The rational function of these degrees that agrees with exp(z) up to z^(above + below)."""

    def polynomial(k: int, m: int, z: complex) -> complex:
        return sum(comb(k, j) * factorial(m + k - j) / factorial(m + k) * z**j for j in range(k + 1))

    return polynomial(above, below, z) / polynomial(below, above, -z)


@stages
@pytest.mark.parametrize("z", [-0.3, -5.0, 0.5, 2.0j, -3.0 + 4.0j])
def test_the_order_at_the_end_is_twice_the_stages_less_one(stages: int, z: complex) -> None:
    assert growth(stages, z) == pytest.approx(pade(stages - 1, stages, z), rel=1e-11)


@stages
def test_what_is_stiff_is_damped_and_nothing_grows_on_the_left(stages: int) -> None:
    """L-stable: |R(z)| <= 1 where Re z <= 0, and R tends to 0."""
    assert abs(growth(stages, -1e8)) < 1e-6
    angles = np.linspace(0.5 * np.pi, np.pi, 9)
    for size in (0.1, 1.0, 10.0, 100.0):
        assert all(abs(growth(stages, size * np.exp(1j * angle))) <= 1.0 + 1e-12 for angle in angles)
