"""The algebra of beliefs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import integrate, stats

from factorfield.messages.gaussian import Dense, Diagonal, LowRank, Message

means = st.floats(-1e3, 1e3)
variances = st.floats(1e-3, 1e3)
seeds = st.integers(0, 10_000)


def random_dense(seed: int, size: int = 4) -> Dense:
    rng = np.random.default_rng(seed)
    a = rng.standard_normal((size + 3, size))
    return Dense.from_moments(rng.standard_normal(size), a.T @ a / size + 0.1 * np.eye(size))


@given(means, variances, means, variances)
def test_dividing_by_a_factor_undoes_multiplying_by_it(m1: float, v1: float, m2: float, v2: float) -> None:
    a, b = Diagonal.from_moments([m1], [v1]), Diagonal.from_moments([m2], [v2])
    back = (a * b) / b
    # subtraction loses at most the digits by which b outweighs a
    slack = 1e-14 * (1.0 + v1 / v2)
    assert_allclose(back.precision, a.precision, rtol=slack)
    assert_allclose(back.shift, a.shift, rtol=slack, atol=1e-14 * (abs(m1 / v1) + abs(m2 / v2)))


@given(seeds, seeds)
@settings(deadline=None)
def test_dense_quotient_undoes_the_product(s1: int, s2: int) -> None:
    a, b = random_dense(s1), random_dense(s2)
    back = (a * b) / b
    assert_allclose(back.precision, a.precision, atol=1e-12 * np.abs(b.precision).max())


@given(means, variances, st.floats(0.1, 10.0), st.floats(-5.0, 5.0))
def test_affine_law_of_moments(m: float, v: float, scale: float, offset: float) -> None:
    a = Diagonal.from_moments([m], [v])
    moved = Diagonal.from_moments(scale * a.mean + offset, scale**2 * a.variance)
    assert_allclose(moved.mean, scale * m + offset, rtol=1e-12, atol=1e-12)
    assert_allclose(moved.variance, scale**2 * v, rtol=1e-12)


def test_improper_beliefs_have_no_moments() -> None:
    message = Diagonal(np.zeros(2), np.zeros(2))
    assert np.all(np.isnan(message.mean)) and np.all(np.isinf(message.variance))


def test_diagonal_density_agrees_with_quadrature_and_scipy() -> None:
    a = Diagonal.from_moments([0.3], [0.5])
    assert_allclose(a.log_density(0.9), stats.norm(0.3, 0.5**0.5).logpdf(0.9), rtol=1e-13)
    unnormalised = integrate.quad(lambda x: np.exp(-0.5 * a.precision[0] * x**2 + a.shift[0] * x), -20, 20)[0]
    assert_allclose(a.log_normaliser, np.log(unnormalised), rtol=1e-9)


def test_samples_have_the_stated_moments() -> None:
    # 200,000 draws: the standard error of a mean is sd/447, six of them is 1.4 % of an sd
    a = random_dense(4)
    draws = a.sample(200_000, np.random.default_rng(0))
    assert np.all(np.abs(draws.mean(0) - a.mean) < 6 * a.std / 447)
    assert_allclose(np.cov(draws.T), a.covariance, atol=0.03 * a.variance.max())
    d = Diagonal.from_moments([1.0, -2.0], [0.5, 3.0])
    assert np.all(np.abs(d.sample(200_000, np.random.default_rng(1)).mean(0) - d.mean) < 6 * d.std / 447)


@pytest.mark.parametrize("kind", ["dense", "square root", "low rank"])
def test_whitening_and_stretching_are_roots_of_covariance_and_precision(kind: str) -> None:
    rng = np.random.default_rng(6)
    rows, target = rng.standard_normal((3, 5)), rng.standard_normal(3)
    dense = Dense(np.eye(5) + rows.T @ rows, rows.T @ target)
    belief = {
        "dense": dense,
        "square root": Message(np.eye(5), np.zeros(5)) * Message(rows, target),
        "low rank": LowRank.from_rows(rows, target),
    }[kind]
    columns = rng.standard_normal((5, 4))
    assert_allclose(belief.mean, dense.mean, atol=1e-12)
    assert_allclose(belief.variance, np.diag(np.linalg.inv(dense.precision)), rtol=1e-10)
    assert_allclose(belief.root @ belief.root.T, np.linalg.inv(dense.precision), atol=1e-12)
    white, wide = belief.whiten(columns), belief.stretch(columns)
    assert_allclose(white.T @ white, columns.T @ np.linalg.inv(dense.precision) @ columns, atol=1e-11)
    assert_allclose(wide.T @ wide, columns.T @ dense.precision @ columns, rtol=1e-10)
    assert belief.log_determinant == pytest.approx(np.linalg.slogdet(dense.precision)[1])
    assert_allclose(belief.dense().precision, dense.precision, atol=1e-11)
