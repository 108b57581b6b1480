"""What every posterior answers: coordinates, noise, and requests that cannot be met."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.solution import Solution

X, T = np.linspace(0.0, 0.95, 9), np.linspace(0.0, 1.0, 5)


def test_coordinates_come_back_exactly_as_given_and_noise_adds_up(linear: Solution) -> None:
    field = linear.predict(x=X, t=T)
    assert np.array_equal(field["x"], X) and np.array_equal(field["t"], T) and field["mean"].dims == ("t", "x")
    noisy = linear.predict(x=X, t=T, noise=True)
    assert_allclose(noisy["std"] ** 2, field["std"] ** 2 + 0.05**2, rtol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"x": X}, "none for t"), ({"x": X, "t": T, "y": X}, "axes"), ({"x": X, "t": [7.0]}, "t inside"),
        ({"x": X, "t": [np.nan]}, "finite"), ({"x": X, "t": T, "points": True}, "equally many"),
        ({"x": X, "t": T, "of": "w"}, "unknown symbol"), ({"x": X, "t": T, "of": "u_x", "noise": True}, "noise"),
    ],
)  # fmt: skip
def test_bad_requests_are_answered_in_one_line(linear: Solution, arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ff.ProblemError, match=words):
        linear.predict(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["joint", "chain"])
def test_predicted_noise_is_the_root_mean_square_over_all_observations_of_the_field(method: str) -> None:
    """10 values of sigma 0.1 and 30 of sigma 1, in two conditions; those of u_x say nothing about u."""
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0.0, 1.0, 40), rng.uniform(0.0, 0.5, 40)
    sigma = np.repeat([0.1, 1.0], [10, 30])
    u = np.sin(2 * np.pi * (x - 0.5 * t)) + sigma * rng.standard_normal(40)
    first, second = slice(0, 10), slice(10, 40)
    seen = [ff.Observations(x=x[part], t=t[part], u=u[part], sigma=sigma[part][0]) for part in (first, second)]
    seen.append(ff.Observations(x=x[:3], t=0.0, of="u_x", value=2 * np.pi * np.cos(2 * np.pi * x[:3]), sigma=30.0))
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 0.5)}
    solution = ff.solve(ff.Problem("u_t + 0.5*u_x", domain, {}, seen), method=method, modes={"x": 2})
    field, noisy = solution.predict(x=X, t=[0.2]), solution.predict(x=X, t=[0.2], noise=True)
    assert_allclose(noisy["std"] ** 2 - field["std"] ** 2, (10 * 0.1**2 + 30 * 1.0**2) / 40, rtol=1e-9)
    with pytest.raises(ff.ProblemError, match="noise=False"):
        solution.predict(x=X, t=[0.2], of="u_x", noise=True)


@pytest.mark.parametrize("most", [1, 2, 4, 7, 11])
def test_many_places_are_looked_at_in_parts_without_a_difference(
    most: int, linear: Solution, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> list[np.ndarray]:
        grid = linear.predict(x=X, t=T, quantiles=[0.1, 0.9])
        scattered = linear.predict(x=X, t=np.linspace(0, 1, len(X)), points=True, quantiles=[0.1])
        return [np.asarray(found[key]) for found in (grid, scattered) for key in ("mean", "std", "quantiles")]

    whole = asked()
    monkeypatch.setattr("factorfield.posterior.base.MOST_SCATTERED", most)
    monkeypatch.setattr("factorfield.posterior.base.MOST_ON_GRID", most)
    for once, in_parts in zip(whole, asked(), strict=True):
        assert_allclose(in_parts, once, rtol=1e-10, atol=1e-12)  # sums of BLAS may be ordered otherwise
