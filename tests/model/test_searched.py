"""What is searched on the marginal likelihood: its coordinates, and the prior of a start that later data tell."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.model.basis import Departure, Tensor, family_for
from factorfield.model.searched import CONSTANT, Coordinate, StartSpectrum, latents, position
from factorfield.model.windowed import window_model

AXES = {
    "a ring": {"x": ff.Periodic(0, 3)},
    "a line": {"x": ff.Interval(-1, 1)},
    "a tube": {"x": ff.Periodic(0, 1), "y": ff.Interval(0, 2)},
}


@pytest.mark.parametrize("corner", [1.0, 6.0])
@pytest.mark.parametrize("name", AXES)
def test_the_amplitude_is_the_root_mean_square_of_what_varies(name: str, corner: float) -> None:
    """Draws of the start, averaged over places and draws; on a line, over Chebyshev's places."""
    axes = AXES[name]
    families = {axis: family_for(own, 6) for axis, own in axes.items()}
    basis = Tensor({"t": Departure(4, 0.0, 1.0), **families})
    sd = StartSpectrum({"u": 2.5}, corner, 1.0).deviations("u", basis)
    assert sd[0] == CONSTANT * 2.5
    sd = sd.copy()
    sd[0] = 0.0
    grid: np.ndarray = np.ones((1, 1))
    for axis, own in axes.items():
        grid = np.kron(grid, families[axis](own.collocation(40)))
    draws = grid @ (sd[:, None] * np.random.default_rng(0).standard_normal((len(sd), 4000)))
    assert np.sqrt(np.mean(draws**2)) == pytest.approx(2.5, rel=0.05)


def test_coefficients_decay_beyond_the_corner_and_rates_grow_with_frequency() -> None:
    basis = Tensor({"t": Departure(6, 0.0, 1.0, 2), "x": family_for(ff.Periodic(0, 1), 20)})
    sd = StartSpectrum({"u": 1.0}, 3.0, 10.0).deviations("u", basis)
    values, rates = sd[:41], sd[41:]
    assert len(sd) == 82 and np.all(np.diff(values[1:]) <= 0.0)
    assert values[-1] / values[1] == pytest.approx((1 + 1 / 9) / (1 + 400 / 9), rel=1e-9)
    assert rates[-1] / values[-1] == pytest.approx(10.0) and rates[1] / values[1] == pytest.approx(0.5)


def test_parameters_of_a_spectrum_are_set_by_the_names_of_their_coordinates() -> None:
    spectrum = StartSpectrum({"u": 2.0, "v": 0.1}, 3.0, 1.0)
    coordinates = spectrum.coordinates()
    assert [math.exp(each.mean) for each in coordinates] == pytest.approx([2.0, 0.1, 3.0])
    moved = spectrum.at({coordinates[1].name: 0.7, coordinates[2].name: 5.0})
    assert moved.amplitudes == {"u": 2.0, "v": 0.7} and moved.corner == 5.0 and spectrum.corner == 3.0


def test_a_position_and_its_latent_values_are_one_thing() -> None:
    coordinates = (Coordinate("D", -2.0, 0.5, True), Coordinate("b", 1.0, 2.0, False))
    place = np.array([0.3, -1.2])
    assert_allclose(position(coordinates, latents(coordinates, place)), place)
    assert_allclose(position(coordinates, {"b": 3.0}), [0.0, 1.0])


def scattered(start: list[object]) -> ff.Problem:
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0, 1, (2, 40))
    u = 290.0 + 3.0 * np.sin(2 * np.pi * x) * np.exp(-0.4 * t) + 0.1 * rng.standard_normal(40)
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    unknown = {"D": ff.Unknown(0.02, 0.02, positive=True)}
    return ff.Problem("u_t = D*u_xx", domain, unknown, [*start, ff.Observations(x=x, t=t, u=u, sigma=0.1)])


def test_a_start_that_only_later_data_tell_has_a_prior_of_their_own_size_and_mean() -> None:
    model = window_model(scattered([]), modes={"x": 8})
    assert model.spectrum is not None and 0.5 < model.spectrum.amplitudes["u"] / (3.0 / math.sqrt(2.0)) < 2.0
    assert model.coordinates[0].name == "D" and len(model.coordinates) == 3
    state = model.prior_state
    assert abs(state.mean[0] - 290.0) < 2.0 and 3.0 < state.std[0] < 30.0 and np.all(state.std[1:] < 5.0)
    solution = ff.solve(model)
    std = solution.predict(x=np.linspace(0, 0.9, 5), t=[0.0, 1.0])["std"]
    assert float(std.max()) < 2.0
    told = window_model(scattered([ff.Initial("u = 290")]), modes={"x": 8})
    assert told.spectrum is None and [each.name for each in told.coordinates] == ["D"]


def test_a_model_at_a_position_has_its_numbers_and_its_spectrum() -> None:
    model = window_model(scattered([]), modes={"x": 8})
    assert model.held["D"] == pytest.approx(model.coordinates[0].value(0.0))
    moved = model.at(np.array([1.0, 2.0, 0.0]))
    assert moved.held["D"] == pytest.approx(model.coordinates[0].value(1.0)) == moved.constants["D"]
    assert_allclose(moved.prior_state.std, math.exp(2.0 * model.coordinates[1].std) * model.prior_state.std)
    assert_allclose(moved.at(np.zeros(3)).prior_state.std, model.prior_state.std)
