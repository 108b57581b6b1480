"""Lines through relations: tangents, best lines under a belief, and the cubature behind them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.model.linearisation import covariance_root, linearise, symmetric_rule
from factorfield.model.representation import Form, substitute
from factorfield.problem.relation import parse_relation
from reference import gaussian_expectation


def test_cubature_is_exact_for_polynomials_of_degree_five() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 4):
        nodes, weights = symmetric_rule(size)
        assert weights.sum() == pytest.approx(1.0)
        a = rng.standard_normal(size)
        moments = [1, 0, a @ a, 0, 3 * (a @ a) ** 2, 0]  # of a . xi, xi ~ N(0, I)
        for power, exact in enumerate(moments):
            assert weights @ (nodes @ a) ** power == pytest.approx(exact, abs=1e-12)


def test_moments_of_a_quadratic_relation_are_exact() -> None:
    relation = substitute(
        parse_relation("u_t + u*u_x - 2*u**2", ["u"], ("t", "x"), ()), {"u": Form(("u",), ("t", "x"))}
    )
    rng = np.random.default_rng(1)
    mean, root = rng.standard_normal((1, 3)), rng.standard_normal((3, 3))
    covariance = (root @ root.T)[None]
    line = linearise(relation, mean, covariance, {}, {})
    draws = mean + rng.standard_normal((2_000_000, 3)) @ root.T
    values, gradients = relation.value_and_gradient(draws, {}, {})
    error = values.std() / np.sqrt(len(values))
    assert abs(line.value[0] - values.mean()) < 5 * error
    assert_allclose(line.slopes[0], gradients.mean(0), atol=5 * gradients.std() / np.sqrt(len(values)))
    total = line.slopes[0] @ covariance[0] @ line.slopes[0] + line.excess[0]
    assert total == pytest.approx(values.var(), rel=0.02)


def test_taylor_is_the_tangent_and_a_data_factor_is_exact() -> None:
    g = ff.PiecewiseExponential()
    relation = substitute(parse_relation("u", ["u"], ("t", "x"), ()), {"u": Form(("u",), ("t", "x"), (1.0,), g)})
    mean, covariance = np.array([[0.3], [-1.0]]), np.array([[[0.5]], [[2.0]]])
    tangent = linearise(relation, mean, covariance, {}, {}, "taylor")
    assert_allclose(tangent.value, g(mean[:, 0]))
    assert_allclose(tangent.slopes[:, 0], g(mean[:, 0], 1))
    assert np.all(tangent.excess == 0.0)
    line = linearise(relation, mean, covariance, {}, {})
    for n in range(2):
        m, v = mean[n, 0], covariance[n, 0, 0]
        exact = gaussian_expectation(lambda z: float(g(z)), m, v)
        slope = gaussian_expectation(lambda z, m=m: (z - m) * float(g(z)), m, v) / v
        spread = gaussian_expectation(lambda z, e=exact: (float(g(z)) - e) ** 2, m, v)
        assert line.value[n] == pytest.approx(exact, rel=1e-10)
        assert line.slopes[n, 0] == pytest.approx(slope, rel=1e-8)
        assert line.excess[n] == pytest.approx(spread - slope**2 * v, rel=1e-5, abs=1e-12)


def test_a_linear_relation_is_its_own_line() -> None:
    relation = substitute(parse_relation("u_t + 3*u - 2", ["u"], ("t", "x"), ()), {"u": Form(("u",), ("t", "x"))})
    rng = np.random.default_rng(2)
    count = len(relation.functionals)
    mean, root = rng.standard_normal((4, count)), rng.standard_normal((4, count, count))
    covariance = root @ root.transpose(0, 2, 1)
    line = linearise(relation, mean, covariance, {}, {})
    elsewhere = rng.standard_normal((4, count))
    there = line.value + np.sum(line.slopes * (elsewhere - mean), axis=1)
    assert_allclose(relation.value(elsewhere, {}, {}), there, atol=1e-12)
    assert np.all(line.excess == 0.0)
    assert_allclose(line.explained, np.einsum("ni,nij,nj->n", line.slopes, covariance, line.slopes), rtol=1e-12)


def test_a_root_of_a_singular_covariance_is_one() -> None:
    direction = np.array([[1.0, 2.0, -1.0]])
    covariance = np.stack([direction.T @ direction, np.diag([1.0, 4.0, 0.0])])
    root = covariance_root(covariance)
    assert_allclose(root @ root.transpose(0, 2, 1), covariance, atol=1e-12)
