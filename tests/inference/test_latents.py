"""Random functions: state-space processes and principal components have the covariance of Matern's kernel."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import factorfield as ff
from factorfield.forward.layout import Layout
from factorfield.inference.latents import Latents, OverSpace, OverTime, latents_of, space_grid
from factorfield.inference.matern import TimeNodes, distances, kernel
from factorfield.problem.domain import Domain

Array = NDArray[np.float64]
AXES = Domain({"x": ff.Interval(0, 1), "y": ff.Interval(-1, 1), "a": ff.Periodic(0, 2)})


def process(nodes: TimeNodes, length: float | None = None) -> OverTime:
    return OverTime("q", nodes, 0.7, 1.3, length or nodes.length, nodes.end - nodes.begin)


def over_time(part: OverTime, t: Array, order: int = 0) -> Array:
    """Rows that read the process, over its latents."""
    return part.nodes.features(t, order) @ part.root


@pytest.mark.parametrize("length", [0.3, 0.45, 1.2])
def test_a_process_has_the_kernels_covariance_at_nodes_and_almost_in_between(length: float) -> None:
    """The nodes stay as they are when the length changes."""
    part = process(TimeNodes.covering(0.2, 2.0, 0.3), length)
    at_nodes = part.nodes.begin + part.nodes.spacing * np.arange(part.nodes.count)
    for t, error in ((at_nodes, 1e-12), (np.linspace(0.2, 2.0, 60), 5e-5)):
        rows = over_time(part, t)
        expected = 1.3**2 * kernel(np.abs(t[:, None] - t), length)
        np.testing.assert_allclose(rows @ rows.T, expected, atol=error * 1.3**2)
        np.testing.assert_allclose(part.nodes.features(t) @ part.mean, 0.7, atol=1e-12)


def test_derivatives_of_a_process_are_those_of_its_polynomials() -> None:
    part, t, step = process(TimeNodes.covering(0.0, 1.0, 0.3)), np.array([0.11, 0.52, 0.93]), 1e-5
    for order in (0, 1):
        ahead, behind = (over_time(part, t + s, order) for s in (step, -step))
        slopes = over_time(part, t, order + 1)
        np.testing.assert_allclose((ahead - behind) / (2.0 * step), slopes, atol=1e-7 * np.max(np.abs(slopes)))


def test_the_latents_of_coefficients_are_those_that_made_them() -> None:
    rng = np.random.default_rng(0)
    part = process(TimeNodes.covering(0.0, 1.0, 0.3), 0.4)
    e = rng.standard_normal(part.size)
    np.testing.assert_allclose(part.latents_at(part.mean + part.root @ e), e, atol=1e-6)
    rows = rng.standard_normal((3, part.nodes.size))
    np.testing.assert_allclose(part.times_root(rows), rows @ part.root, atol=1e-12)
    space = plane(False)
    e = rng.standard_normal(space.size)
    np.testing.assert_allclose(space.latents_at(space.mean + space.root @ e), e, atol=1e-6)
    rows = rng.standard_normal((3, space.grid.size))
    whole = plane(True)
    np.testing.assert_allclose(np.sort(whole.times_root(rows)), np.sort(rows @ whole.root), atol=1e-9)


def test_an_extended_process_keeps_what_its_latents_say() -> None:
    part = process(TimeNodes.covering(0.0, 1.0, 0.3))
    longer = part.extended(1.7)
    t = np.linspace(0.0, 1.0, 17)
    rows = over_time(longer, t)
    np.testing.assert_array_equal(rows[:, part.size :], 0.0)
    np.testing.assert_allclose(rows[:, : part.size], over_time(part, t), atol=1e-13)
    assert longer.nodes.end >= 1.7 and part.extended(0.5).nodes == part.nodes


def plane(is_whole: bool) -> OverSpace:
    lengths = {"x": 0.4, "y": 0.7}
    return OverSpace("k", space_grid(AXES, lengths), AXES, 0.2, 1.5, lengths, is_whole)


@pytest.mark.parametrize("lengths", [{"x": 0.3}, {"a": 0.5}, {"x": 0.4, "y": 0.7}])
def test_functions_of_space_have_the_kernels_covariance(lengths: dict[str, float]) -> None:
    """At places between those of the grid too, but for what is dropped."""
    part = OverSpace("k", space_grid(AXES, lengths), AXES, 0.2, 1.5, lengths)
    rng = np.random.default_rng(1)
    points = {axis: AXES[axis].lower + AXES[axis].length * rng.uniform(size=40) for axis in lengths}
    features = part.input.over_space(points, ())
    rows = np.asarray(features @ part.root)
    expected = np.full((40, 40), 1.5**2)
    for axis, length in lengths.items():
        expected = expected * kernel(distances(AXES[axis], points[axis], points[axis]), length)
    np.testing.assert_allclose(rows @ rows.T, expected, atol=3e-4 * 1.5**2)
    np.testing.assert_allclose(features @ part.mean, 0.2, atol=1e-10)


def test_a_problem_has_a_latent_for_everything_uncertain() -> None:
    problem = ff.Problem(
        "u_t = k*u_xx + q", {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)},
        {"k": ff.Unknown(2.0, 1.0, positive=True), "q": ff.Unknown(1.0, 2.0, over="t", length=0.5), "c": 1.0},
        [ff.Boundary("u = c", at={"x": 0}, sigma=0.1), ff.Boundary("u = 0", at={"x": 1}),
         ff.Initial("u = 1", sigma=0.3, length=0.2)],
    )  # fmt: skip
    latents = Latents(latents_of(Layout.of(problem)))
    assert [type(part).__name__ for part in latents.parts] == ["Number", "OverTime", "OverTime", "OverSpace"]
    e = np.random.default_rng(0).standard_normal((latents.size, 20_000))
    numbers = np.array([latents.coefficients(one)["k"][0] for one in e.T[:2000]])
    mean, variance = problem.unknowns["k"].latent_moments
    assert numbers.mean() == pytest.approx(mean, abs=4.0 * np.sqrt(variance / 2000))
    moved = latents.directions(e)
    assert moved["k"].std() == pytest.approx(np.sqrt(variance), rel=0.03)
    rows = {name: np.random.default_rng(1).standard_normal((len(part), 3)) for name, part in moved.items()}
    expected = sum(rows[name].T @ moved[name][:, :5] for name in rows)
    np.testing.assert_allclose(latents.gathered(rows, 3).T @ e[:, :5], expected, atol=1e-9)
