"""The search on a marginal likelihood and the integral over it: against closed forms and fine quadrature."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from numpy.testing import assert_allclose

from factorfield.methods.marginal import axis_points, elsewhere, integrated, of_numbers
from factorfield.model.searched import Coordinate

Density = Callable[[np.ndarray], float]
FAR = [np.linspace(-9.0, 9.0, 4001)]


def gaussian(mean: np.ndarray, precision: np.ndarray, level: float = 0.0) -> Density:
    return lambda z: level - 0.5 * float((z - mean) @ precision @ (z - mean))


def with_prior(mean: np.ndarray, precision: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Moments and integral of a Gaussian likelihood times the prior N(0, I), by completing the square."""
    covariance = np.linalg.inv(precision + np.eye(len(mean)))
    centre = covariance @ precision @ mean
    gap = -0.5 * mean @ precision @ (mean - centre)
    return centre, covariance, level + float(gap) + 0.5 * float(np.linalg.slogdet(covariance)[1])


def fine(density: Density) -> tuple[float, float, float]:
    """Mean, variance and log integral over one number with its prior, on a fine grid."""
    (z,) = FAR
    logs = np.array([density(np.array([each])) for each in z]) - 0.5 * z**2 - 0.5 * math.log(2.0 * math.pi)
    top, values = logs.max(), np.exp(logs - logs.max())
    total = float(np.trapezoid(values, z))
    mean = float(np.trapezoid(z * values, z)) / total
    return mean, float(np.trapezoid((z - mean) ** 2 * values, z)) / total, float(top) + math.log(total)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("sharpness", [1.0, 1e6])
def test_a_gaussian_density_is_integrated_exactly(count: int, sharpness: float) -> None:
    """By quadrature for one or two numbers, by Laplace's approximation beyond and for other coordinates."""
    rng = np.random.default_rng(count)
    mixed = rng.standard_normal((count, count))
    mean, precision = 0.7 * rng.standard_normal(count), sharpness * (mixed @ mixed.T + np.eye(count))
    centre, covariance, level = with_prior(mean, precision, -3.0)
    for numbers in range(count + 1):
        found = integrated(gaussian(mean, precision, -3.0), np.zeros(count), numbers)
        assert found.settled
        sd = np.sqrt(np.diag(covariance))
        assert np.max(np.abs(found.mean - centre) / sd) < 1e-3
        assert_allclose(found.covariance, covariance, atol=1e-4 * np.max(sd) ** 2)
        assert found.level == pytest.approx(level, abs=1e-4)


SKEWED: dict[str, Density] = {
    "a variance": lambda z: -3.0 * float(z[0]) - 3.0 * math.exp(-float(z[0])),
    "counts": lambda z: 12.0 * float(z[0]) - 6.0 * math.exp(float(z[0])),
    "a saturated rate": lambda z: -0.5 * ((math.tanh(float(z[0])) - 0.3) / 0.1) ** 2,
}


@pytest.mark.parametrize("name", SKEWED)
def test_a_skewed_density_of_one_number_agrees_with_fine_quadrature(name: str) -> None:
    mean, variance, level = fine(SKEWED[name])
    found = integrated(SKEWED[name], np.zeros(1), 1)
    assert found.settled and found.evaluations < 40
    assert abs(found.mean[0] - mean) < 0.02 * math.sqrt(variance)
    assert found.covariance[0, 0] == pytest.approx(variance, rel=0.06)
    assert found.level == pytest.approx(level, abs=0.02)


def test_two_numbers_that_are_skewed_and_go_together_agree_with_fine_quadrature() -> None:
    def density(z: np.ndarray) -> float:
        return (
            8.0 * float(z[0] + z[1]) - 5.0 * math.exp(float(z[0] + z[1])) - 2.0 * (float(z[0] - 0.5 * z[1]) - 0.2) ** 2
        )

    z = np.linspace(-5.0, 5.0, 401)
    grid = np.stack(np.meshgrid(z, z, indexing="ij"), axis=-1)
    logs = 8.0 * grid.sum(-1) - 5.0 * np.exp(grid.sum(-1)) - 2.0 * (grid[..., 0] - 0.5 * grid[..., 1] - 0.2) ** 2
    logs += -0.5 * np.sum(grid**2, axis=-1) - math.log(2.0 * math.pi)
    values = np.exp(logs - logs.max())
    total = values.sum()
    mean = np.einsum("ij,ijk->k", values, grid) / total
    covariance = np.einsum("ij,ijk,ijl->kl", values, grid - mean, grid - mean) / total
    sd = np.sqrt(np.diag(covariance))
    found = integrated(density, np.zeros(2), 2)
    assert found.settled and np.max(np.abs(found.mean - mean) / sd) < 0.03
    assert np.max(np.abs(found.covariance - covariance) / np.outer(sd, sd)) < 0.08
    assert found.level == pytest.approx(math.log(total * (z[1] - z[0]) ** 2) + logs.max(), abs=0.02)


def test_a_number_that_another_coordinate_follows_is_integrated_along_their_ridge() -> None:
    """The second coordinate is Gaussian given the first, about a line: Laplace's approximation of it is exact."""

    def density(z: np.ndarray) -> float:
        bend = 0.5 * float(z[1] - 2.0 * z[0]) ** 2 / 0.1**2
        return 6.0 * float(z[0]) - 6.0 * math.exp(float(z[0])) - bend + 0.5 * float(z[1]) ** 2  # its prior cancelled

    mean, variance, _ = fine(lambda z: 6.0 * float(z[0]) - 6.0 * math.exp(float(z[0])))
    found = integrated(density, np.zeros(2), 1)
    assert found.settled and abs(found.mean[0] - mean) < 0.02 * math.sqrt(variance)
    assert abs(found.mean[1] - 2.0 * mean) < 0.05 * math.sqrt(variance)
    expected = np.array([[variance, 2.0 * variance], [2.0 * variance, 4.0 * variance + 0.01]])
    assert_allclose(found.covariance, expected, atol=0.06 * variance)


@pytest.mark.parametrize("edge", [-0.4, -0.05])
def test_a_density_ends_where_the_model_cannot_be_solved(edge: float) -> None:
    """Beyond an edge there is no value, or an error: the search stays on the side where there is one."""
    calls = []

    def density(z: np.ndarray) -> float:
        calls.append(float(z[0]))
        if z[0] < edge:
            raise np.linalg.LinAlgError("no solution here")
        return 20.0 * math.log(float(z[0]) - edge + 1e-12) - 15.0 * float(z[0])

    (z,) = FAR
    inside = z[z > edge + 1e-9]
    logs = 20.0 * np.log(inside - edge) - 15.0 * inside - 0.5 * inside**2
    values = np.exp(logs - logs.max())
    mean = float((inside * values).sum() / values.sum())
    sd = math.sqrt(float(((inside - mean) ** 2 * values).sum() / values.sum()))
    found = integrated(density, np.array([edge + 0.01]), 1)
    assert found.settled and abs(found.mean[0] - mean) < 0.05 * sd
    assert math.sqrt(found.covariance[0, 0]) == pytest.approx(sd, rel=0.05)
    assert min(calls) < edge  # it was tried, and survived


def test_not_a_number_counts_as_no_density() -> None:
    found = integrated(lambda z: float("nan") if z[0] > 1.0 else -0.5 * float(z[0] - 0.3) ** 2 / 0.01, np.zeros(1), 1)
    assert found.settled and found.mean[0] == pytest.approx(0.3 / 1.01, abs=1e-3)


@pytest.mark.parametrize("sharp", [1e-2, 1e-4])
def test_a_search_from_far_away_arrives(sharp: float) -> None:
    """Hundreds of posterior sds away, in two numbers whose valley bends."""

    def density(z: np.ndarray) -> float:
        bend = (float(z[1]) - float(z[0]) ** 2) / 0.1
        return -0.5 * bend**2 - 0.5 * (float(z[0]) - 1.2) ** 2 / sharp

    found = integrated(density, np.array([-1.5, 0.0]), 2)
    assert found.settled
    assert found.mean[0] == pytest.approx(1.2, abs=0.1) and found.mean[1] == pytest.approx(1.44, abs=0.15)


def test_of_two_modes_the_candidates_decide() -> None:
    """The lower mode holds a search that begins beside it; a candidate near the higher one is preferred."""

    def density(z: np.ndarray) -> float:
        low, high = (-0.5 * ((float(z[0]) - at) / 0.1) ** 2 for at in (-0.8, 1.1))
        return float(np.logaddexp(low, 6.0 + high))

    near, better = integrated(density, np.array([-0.8]), 1), integrated(density, np.array([-0.8]), 1, axis_points(1, 1))
    assert near.settled and better.settled
    assert near.mean[0] == pytest.approx(-0.8 / 1.01, abs=1e-3)
    assert better.mean[0] == pytest.approx(1.1 / 1.01, abs=1e-3)
    assert better.level > near.level + 5.0


def test_a_higher_maximum_is_found_from_a_lower_one() -> None:
    """Of a frequency: many maxima of a fiftieth of the prior's width, the highest of them at 1.13."""

    def density(z: np.ndarray) -> float:
        return 300.0 * math.cos(7.0 * (float(z[0]) - 1.13)) - 40.0 * (float(z[0]) - 1.13) ** 2

    coordinates = (Coordinate("f", 2.0, 0.5, False),)
    lower = integrated(density, np.array([0.0]), 1)
    assert abs(lower.mean[0] - 1.13) > 0.4
    better = elsewhere(density, coordinates, {"f": 2.0 + 0.5 * float(lower.mean[0])}, 1)
    assert better is not None
    found = integrated(density, np.array([(better["f"] - 2.0) / 0.5]), 1)
    assert abs(found.mean[0] - 1.13) < 0.01
    assert elsewhere(density, coordinates, {"f": 2.0 + 0.5 * float(found.mean[0])}, 1) is None


def test_a_needle_between_the_nodes_of_the_quadrature_is_not_called_settled() -> None:
    """A density that exists in a hundredth of the prior's width: its quadrature would have a std of nought."""
    found = integrated(lambda z: 0.0 if abs(float(z[0])) < 0.01 else -math.inf, np.zeros(1), 1)
    assert not found.settled
    assert found.covariance[0, 0] > 0.1


def test_the_way_to_the_maximum_does_not_matter() -> None:
    """Neither for the moments nor for the integral, where the curvature changes along the way."""

    def density(z: np.ndarray) -> float:
        return SKEWED["counts"](z[:1]) - 4.0 * math.cosh(float(z[1] - z[0])) - 2.0 * math.exp(float(z[1] + z[2]))

    ends = [integrated(density, np.array(start), 1) for start in ([0.0, 0.0, 0.0], [0.9, -1.0, 1.0], [-1.0, 1.0, -1.0])]
    for end in ends[1:]:
        sd = np.sqrt(np.diag(ends[0].covariance))
        assert end.settled and np.max(np.abs(end.mean - ends[0].mean) / sd) < 0.02
        assert np.max(np.abs(np.sqrt(np.diag(end.covariance)) / sd - 1.0)) < 0.01
        assert end.level == pytest.approx(ends[0].level, abs=0.01)


def test_candidates_lie_along_the_numbers_only() -> None:
    places = np.array(axis_points(3, 2))
    assert places.shape == (8, 3) and not places[:, 2].any()
    assert sorted(places[:4, 0]) == sorted(places[4:, 1]) == [-2.0, -1.0, 1.0, 2.0]


def test_a_density_that_only_grows_is_not_called_settled() -> None:
    assert not integrated(lambda z: 0.5 * float(z @ z) + 3.0 * float(z[0]), np.zeros(1), 1).settled


def test_the_same_density_gives_the_same_bits_and_no_place_is_asked_twice() -> None:
    asked: list[bytes] = []

    def density(z: np.ndarray) -> float:
        asked.append(z.tobytes())
        return SKEWED["counts"](z[:1]) - 3.0 * float(z[1] - z[0]) ** 2

    one = integrated(density, np.zeros(2), 1)
    assert len(asked) == len(set(asked)) == one.evaluations
    other = integrated(density, np.zeros(2), 1)
    assert np.array_equal(one.mean, other.mean) and np.array_equal(one.covariance, other.covariance)
    assert one.level == other.level and one.evaluations == other.evaluations


def test_moments_of_numbers_are_those_of_their_latents() -> None:
    coordinates = (Coordinate("D", math.log(0.1), 0.5, True), Coordinate("b", 2.0, 3.0, False))
    mean, precision = np.array([0.4, -0.3, 0.1]), np.diag([40.0, 90.0, 10.0]) + 5.0
    found = integrated(gaussian(mean, precision), np.zeros(3), 2)
    latent, root = of_numbers(coordinates, found)
    assert_allclose(latent, [math.log(0.1) + 0.5 * found.mean[0], 2.0 + 3.0 * found.mean[1]])
    assert_allclose(root @ root.T, np.diag([0.5, 3.0]) @ found.covariance[:2, :2] @ np.diag([0.5, 3.0]))
    assert coordinates[0].value(1.0) == pytest.approx(0.1 * math.exp(0.5)) and coordinates[1].value(1.0) == 5.0
