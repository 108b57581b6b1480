"""A chain of windows: its fields are those of each window's dense Gaussian, and its draws are paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.model.spectrum import Tail
from factorfield.posterior.reading import posterior_from_arrays, stored_arrays
from factorfield.posterior.windows import ChainPosterior
from factorfield.solution import Solution

X, T = np.linspace(0.0, 0.9, 5), np.array([0.0, 0.1, 0.3, 0.5, 0.7, 1.0])


@pytest.fixture
def chain(windows: Solution) -> ChainPosterior:
    assert isinstance(windows.posterior, ChainPosterior) and len(windows.posterior.links) == 4
    return windows.posterior


@pytest.mark.parametrize("of", ["u", "u_x", "u_t - b*u", "residual"])
@pytest.mark.parametrize("points", [False, True])
def test_fields_are_those_of_the_windows_own_dense_gaussians(chain: ChainPosterior, of: str, points: bool) -> None:
    """The noise inside a window is added block by block here, and as one root of all weights there."""
    plain = replace(chain, tails={})
    mesh = np.meshgrid(T, X, indexing="ij")
    for index, upper in enumerate(chain.edges[1:]):
        inside = (mesh[0] <= upper) & (mesh[0] > chain.edges[index] - (index == 0))
        times = np.unique(mesh[0][inside])
        axes = {"t": mesh[0][inside], "x": mesh[1][inside]} if points else {"t": times, "x": X}
        whole = plain.predict(axes, of=of, points=points)
        alone = plain.window(index).predict(axes, of=of, points=points)
        assert_allclose(whole["mean"], alone["mean"], rtol=1e-9, atol=1e-9)
        assert_allclose(whole["std"], alone["std"], rtol=1e-6)


def test_neighbouring_windows_agree_about_the_state_between_them(chain: ChainPosterior) -> None:
    for index in range(3):
        left, right = chain.window(index), chain.window(index + 1)
        before = left.predict({"t": [chain.edges[index + 1]], "x": X})
        after = right.predict({"t": [chain.edges[index + 1]], "x": X})
        assert_allclose(before["mean"], after["mean"], atol=1e-8)
        assert_allclose(before["std"], after["std"], rtol=1e-5)


def test_draws_are_continuous_paths_with_the_predicted_moments(chain: ChainPosterior) -> None:
    # 2,000 draws: a mean is known to sd/45, an sd to 1.6 %; tolerances are five of these
    plain = replace(chain, tails={})
    near = np.sort(np.concatenate([T, chain.edges[1:-1] + 1e-9]))
    field, draws = plain.predict({"t": near, "x": X}), plain.sample(2000, x=X, t=near, seed=1)
    assert float((np.abs(draws.mean("sample") - field["mean"]) / field["std"]).max()) < 5 / 45
    assert_allclose(draws.std("sample"), field["std"], rtol=0.08)
    jumps = draws.sel(t=0.5 + 1e-9).values - draws.sel(t=0.5).values
    assert np.abs(jumps).max() < 1e-6


def test_modes_left_out_add_their_variance_on_average_over_space_and_nothing_else(chain: ChainPosterior) -> None:
    tail = Tail("x", np.array([2 * np.pi * 9.0]), np.array([0.04]), np.array([-3.0 + 2.0j]))
    with_tail, without = replace(chain, tails={"u": tail}), replace(chain, tails={})
    axes = {"t": T, "x": np.arange(12) / 12}  # enough places for the mean of a product of three waves each
    for of, power in (("u", 0), ("u_x", 2)):
        one, other = with_tail.predict(axes, of=of), without.predict(axes, of=of)
        added = (one["std"] ** 2 - other["std"] ** 2).values
        assert added.min() > 0.0
        assert_allclose(added.mean(axis=1), 0.04 * (2 * np.pi * 9.0) ** power * np.exp(-6.0 * T), rtol=1e-6, atol=1e-10)
        assert_allclose(one["mean"], other["mean"])


@pytest.mark.parametrize("points", [False, True])
def test_modes_left_out_sit_where_the_field_jumps_and_travel_with_it(points: bool) -> None:
    """A sawtooth that is carried by 0.25: the error at 8 modes is that of Gibbs, at its jump."""
    x, t = np.arange(256) / 256, np.array([0.0, 1.0])
    labels = ff.Observations(x=x, t=0.0, u=x - 0.5, sigma=0.01)
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    found = ff.solve(ff.Problem("u_t + 0.25*u_x = 0", domain, {}, [labels]), modes={"x": 8})
    places = np.array([0.25, 0.5, 0.75, 1.0])  # there is the jump at t = 1, and at t = 0 the last
    if points:
        mesh = np.meshgrid(t, places, indexing="ij")
        std = found.predict(t=mesh[0].ravel(), x=mesh[1].ravel(), points=True)["std"].values.reshape(2, 4)
    else:
        std = found.predict(t=t, x=places)["std"].transpose("t", "x").values
    # of waves 5 to 8 with amplitudes 1 / k the sum is 0.63; a quarter of the ring away it is 0.1 at most
    for at_jump, elsewhere in ((std[0, 3], std[0, :3]), (std[1, 0], std[1, 1:])):
        assert at_jump > 3.0 * elsewhere.max()


def test_coefficients_are_those_of_the_last_window_and_the_same_in_all(chain: ChainPosterior) -> None:
    found = chain.parameters()["b"]
    for index in range(4):
        other = chain.window(index).parameters()["b"]
        assert other["mean"] == pytest.approx(found["mean"], rel=1e-6)
        assert other["std"] == pytest.approx(found["std"], rel=1e-4)


def test_arrays_give_the_same_posterior_back(chain: ChainPosterior) -> None:
    again = posterior_from_arrays(chain.problem, chain.representation, chain.noise, stored_arrays(chain))
    assert again.predict({"t": T, "x": X}).identical(chain.predict({"t": T, "x": X}))
    assert again.sample(3, x=X, t=T, seed=2).identical(chain.sample(3, x=X, t=T, seed=2))
