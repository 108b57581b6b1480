"""Functions of a field turned back into the field, in numbers: whatever the function, and never for long."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from factorfield.problem.inversion import inverse, nearest_root
from factorfield.problem.parsing import evaluate, parse_sides


def curve_of(text: str):  # type: ignore[no-untyped-def]
    sides = parse_sides(text)
    return lambda u: evaluate(sides, {"u": u})


@pytest.mark.parametrize("text", ["log(u)", "exp(u) - 1", "tanh(u) + 0.1*u", "3 - 2*u", "u**3", "erf(u)", "atan(u)/7"])
def test_a_function_that_is_one_to_one_is_inverted(text: str) -> None:
    u = np.array([1e-3, 0.2, 1.0, 1.9])  # all within reach of the inverse of each of them
    assert_allclose(inverse(curve_of(text), curve_of(text)(u)), u, rtol=1e-6)


@pytest.mark.parametrize("text", ["u**2", "sin(u) + cos(2*u)", "1/u", "abs(u)", "0*u", "log(u - 5)*0 + sin(u)"])
def test_a_function_that_is_not_has_no_inverse(text: str) -> None:
    assert inverse(curve_of(text), np.array([0.5])) is None


def test_values_that_the_function_never_has_have_no_inverse() -> None:
    assert inverse(curve_of("tanh(u)"), np.array([0.5, 2.0])) is None


def test_of_several_roots_the_nearest_to_zero_is_taken_and_the_positive_of_two() -> None:
    assert_allclose(nearest_root(curve_of("u**2"), np.array([4.0, 0.25])), [2.0, 0.5], rtol=1e-9)
    assert_allclose(nearest_root(curve_of("sin(u)"), np.array([0.5])), [np.pi / 6], rtol=1e-9)
    assert np.isnan(nearest_root(curve_of("u**2"), np.array([-1.0]))).all()
    assert np.isnan(nearest_root(curve_of("1/u"), np.array([0.0]))).all()  # a pole is no root
