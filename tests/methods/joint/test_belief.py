"""The arithmetic of one belief: rows in blocks, three storages, and how two Gaussians compare."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.messages.gaussian import Dense, LowRank, Message
from factorfield.methods.joint.belief import (
    between,
    condition,
    divergence,
    functional_covariance,
    negative_log_joint,
    quadratic,
    starting_lines,
    starting_place,
    tangents,
    unwhitened,
    whitened_blocks,
)
from factorfield.model.block import block_model
from factorfield.model.model import BlockModel


def heat() -> BlockModel:
    """Labels on a face (shared rows), an equation everywhere, three prior sds apart."""
    x = np.arange(24) / 24
    labels = ff.Observations(x=x, t=0.0, u=2 * np.sin(2 * np.pi * x), sigma=0.1)
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    problem = ff.Problem(ff.Equation("u_t = 0.02*u_xx", sigma=0.1), domain, {}, [labels])
    return block_model(problem, modes={"x": 2, "t": 4})


def random_belief(seed: int, size: int = 5) -> Dense:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((size + 2, size))
    return Dense(rows.T @ rows + 0.1 * np.eye(size), rng.standard_normal(size))


@pytest.mark.parametrize("count", [7, 10_000])
def test_blocks_of_rows_are_the_whitened_factors(count: int) -> None:
    """Their information is that of all factors in weights measured by the prior, however they are cut."""
    model = heat()
    position = np.random.default_rng(0).standard_normal(model.size)
    lines = tangents(model, unwhitened(model, position))
    blocks = list(whitened_blocks(model, lines, position, count))
    rows, target = np.concatenate([b[0] for b in blocks]), np.concatenate([b[1] for b in blocks])
    misfits = [group.linear_misfit(unwhitened(model, position)) for group in model.groups]
    exact = np.concatenate([rows * model.prior.std for _, rows in misfits])
    aim = exact @ position - np.concatenate([misfit for misfit, _ in misfits])
    assert_allclose(rows.T @ rows, exact.T @ exact, atol=1e-9 * np.abs(exact.T @ exact).max())
    assert_allclose(rows.T @ target, exact.T @ aim, atol=1e-9 * np.abs(exact.T @ aim).max())
    assert max(len(b[0]) for b in blocks) <= max(count, model.size)


def test_the_three_storages_hold_one_belief() -> None:
    model = heat()
    lines, zero = tangents(model, model.prior.mean), np.zeros(model.size)
    (dense, condition_number), (root, exact) = (condition(model, lines, zero, limit) for limit in (np.inf, 0.0))
    assert 0.0 < condition_number < 1.0 and exact == np.inf  # reciprocal, as LAPACK estimates it; QR needs none
    assert (type(dense), type(root)) == (Dense, Message)
    rows = np.concatenate([block for block, _ in whitened_blocks(model, lines, zero)])
    target = np.concatenate([aim for _, aim in whitened_blocks(model, lines, zero)])
    low = LowRank.from_rows(rows, target)
    for other in (root, low):
        assert_allclose(other.mean, dense.mean, atol=1e-8)
        assert_allclose(other.variance, dense.variance, rtol=1e-7)
        assert other.log_determinant == pytest.approx(dense.log_determinant, rel=1e-9)
        assert divergence(dense, other) == pytest.approx(0.0, abs=1e-7)


def test_the_covariance_of_functionals_is_that_of_their_rows() -> None:
    model = heat()
    belief, _ = condition(model, tangents(model, model.prior.mean), np.zeros(model.size), np.inf)
    covariance = (model.prior.std[:, None] * belief.root) @ (model.prior.std[:, None] * belief.root).T
    for group in model.groups:  # with shared rows on the face, and without
        found = functional_covariance(group, model.prior.std, belief)
        rows = np.zeros((len(group.blocks), group.count, model.size))
        for j, block in enumerate(group.blocks):
            rows[j][:, block] = group.dense_rows(j)
        exact = np.einsum("inw,wv,jnv->nij", rows, covariance, rows)
        assert_allclose(found, exact, atol=1e-9 * np.abs(exact).max())


def test_divergence_is_the_kl_of_dense_beliefs() -> None:
    one, other = random_belief(1), random_belief(2)
    gap = other.mean - one.mean
    ratio = np.linalg.slogdet(one.precision)[1] - np.linalg.slogdet(other.precision)[1]
    exact = 0.5 * (np.trace(other.precision @ one.covariance) - 5 + gap @ other.precision @ gap + ratio)
    assert divergence(one, other) == pytest.approx(exact, rel=1e-10)
    assert divergence(one, one) == pytest.approx(0.0, abs=1e-12)
    step = np.random.default_rng(3).standard_normal(5)
    assert quadratic(one, step) == pytest.approx(step @ one.precision @ step, rel=1e-12)


def test_between_two_beliefs_lies_their_mean_in_natural_parameters() -> None:
    one, other = random_belief(1), random_belief(2)
    half = between(one, other, 0.5)
    assert_allclose(half.precision, 0.5 * (one.precision + other.precision))
    assert_allclose(between(one, other, 1.0).mean, other.mean, atol=1e-12)


def test_observations_of_a_bent_field_begin_where_they_hold() -> None:
    activation = ff.PiecewiseExponential()
    x = np.arange(8) / 8
    labels = ff.Observations(x=x, u=2.0 + np.sin(2 * np.pi * x), sigma=0.1)
    model = block_model(
        ff.Problem("u_x = 1", {"x": ff.Periodic(0, 1)}, {}, [labels]), modes={"x": 2}, activation=activation
    )
    line, group = starting_lines(model, starting_place(model))[1], model.groups[1]
    inverse = activation.inverse(group.target)
    zeta = group.project(model.prior.mean)[:, 0]
    assert_allclose(line.value + line.slopes[:, 0] * (inverse - zeta), group.target, atol=1e-12)


def test_the_negative_log_joint_has_no_value_where_a_function_has_none() -> None:
    seen = ff.Observations(x=[0.2, 0.4], of="log(u)", value=[0.0, 0.1], sigma=0.1)
    model = block_model(ff.Problem("u_xx = 0", {"x": ff.Interval(0, 1)}, {}, [seen]), modes={"x": 4})
    assert negative_log_joint(model, np.zeros(model.size)) == np.inf
    told = starting_place(model)  # constants that suit log(u) = 0 and 0.1
    assert np.isfinite(negative_log_joint(model, told))
    assert_allclose(model.groups[1].project(unwhitened(model, told))[:, 0], np.mean(np.exp([0.0, 0.1])), rtol=1e-12)


def test_factors_without_a_value_at_anything_told_are_one_line() -> None:
    seen = ff.Observations(x=[0.2, 0.4], u=[1.0, 1.1], sigma=0.1)
    equation = "u_xx = log(-1 - u**2)"
    model = block_model(ff.Problem(equation, {"x": ff.Interval(0, 1)}, {}, [seen]), modes={"x": 4})
    with pytest.raises(ff.ProblemError, match=r"^expected equations and conditions that have a value .*; try ff"):
        starting_place(model)
