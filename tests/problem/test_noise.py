"""Noise that is not Gaussian: what is refused, and the Gaussian sites that moment matching finds."""

from __future__ import annotations

import json

import numpy as np
import pytest

import factorfield as ff
from factorfield.problem.noise import (
    LogNormal,
    Noise,
    StudentT,
    checked_noise,
    matched,
    noise_from_spec,
    noise_spec,
)

LINE = {"x": ff.Interval(0, 1)}


def test_the_sites_of_almost_gaussian_noise_are_the_noise() -> None:
    """A Student-t with very many degrees of freedom is Gaussian: mean and precision come back."""
    target, sigma = np.array([0.3, -1.0]), np.array([0.1, 0.5])
    centre, precision = matched(StudentT(1e7), target, sigma, np.array([0.2, 0.0]), np.array([0.04, 1.0]))
    np.testing.assert_allclose(centre, target, atol=1e-5)
    np.testing.assert_allclose(precision, sigma**-2.0, rtol=1e-4)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"noise": "cauchy", "sigma": 0.1}, "noise 'gaussian', 'student-t'"),
        ({"noise": "student-t"}, "a sigma for student-t"),
        ({"noise": "log-normal", "sigma": 0.1}, "positive values"),
        ({"noise": "student-t", "sigma": 0.1, "average": {"x": 0.1}}, "Gaussian noise"),
    ],
)
def test_bad_noise_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(ff.ProblemError, match=words):
        ff.Problem("u_xx = 1", LINE, {}, [ff.Observations(x=0.5, u=-1.0, **options)])  # type: ignore[arg-type]
    with pytest.raises(ff.ProblemError, match="dof > 0"):
        ff.StudentT(-1.0)


def test_the_site_of_a_distant_outlier_hardly_moves_the_cavity() -> None:
    cavity = np.array([0.0]), np.array([0.01])
    centre, precision = matched(StudentT(4.0), np.array([50.0]), np.array([0.1]), *cavity)
    assert precision[0] > 0.0 and abs(centre[0] * precision[0]) * cavity[1][0] < 0.1 * np.sqrt(cavity[1][0])


@pytest.mark.parametrize("noise", ["gaussian", "student-t", "log-normal", StudentT(3.0), LogNormal()])
def test_noise_survives_its_description(noise: str | Noise) -> None:
    described = noise_from_spec(json.loads(json.dumps(noise_spec(noise))))
    target, sigma = np.array([1.0]), 0.1
    assert checked_noise(described, target, sigma, "u") == checked_noise(noise, target, sigma, "u")
