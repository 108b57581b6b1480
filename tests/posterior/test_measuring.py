"""Where to measure next: what is promised is what conditioning gives, and the place is the best one."""

from __future__ import annotations

from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

import factorfield as ff
from factorfield.posterior.gaussian import GaussianPosterior
from factorfield.posterior.measuring import target_of
from factorfield.posterior.sampled import SampledPosterior
from factorfield.solution import Solution, Status

Array = NDArray[np.float64]
pytestmark = pytest.mark.filterwarnings("ignore::factorfield.errors.AdviceWarning")  # values are made up
X, T = np.linspace(0.0, 0.9, 10), np.linspace(0.0, 1.0, 6)


@pytest.fixture(scope="module")
def rod() -> Solution:
    """Heat in a rod whose start is known to 0.3, with one value measured early and one later."""
    domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    seen = ff.Observations(x=[0.3, 0.6], t=[0.1, 0.5], u=[0.7, 0.5], sigma=0.1)
    start = ff.Initial("u = sin(pi*x)", sigma=0.3, length=0.3)
    walls = [ff.Boundary("u = 0", at={"x": end}) for end in (0, 1)]
    return ff.solve(ff.Problem("u_t = 0.05*u_xx", domain, {}, [start, *walls, seen]))


def plate() -> ff.Problem:
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}
    walls = [ff.Boundary("u = 0", at={axis: end}, sigma=0.5) for axis in "xy" for end in (0, 1)]
    seen = ff.Observations(x=[0.3, 0.6], y=[0.1, 0.5], u=[0.7, 0.5], sigma=0.1)
    return ff.Problem(ff.Equation("u_xx + u_yy = -1", sigma=1.0), domain, {}, [*walls, seen])


@pytest.fixture(scope="module")
def boxes() -> Solution:
    return ff.solve(plate(), method="tree", cells={"x": 16, "y": 16}, tolerance=1e-2)


def spread(solution: Solution, target: object = None) -> float:
    return float(np.sqrt(target_of(solution.posterior, "u", target).line(solution.posterior)[1]))


@pytest.mark.parametrize("kind", ["chain", "tree"])
def test_what_is_promised_is_what_conditioning_gives(kind: str, rod: Solution, boxes: Solution) -> None:
    """For a linear problem whatever is measured: here zeros."""
    solution = rod if kind == "chain" else boxes
    found = solution.next_measurements(3, 0.05)
    places = {name: found[name].values for name in solution.problem.domain.names}
    assert found["std_now"] == pytest.approx(spread(solution), rel=1e-9) and np.all(np.diff(found["std"]) < 0.0)
    for count in (1, 3):
        own = {name: x[:count] for name, x in places.items()}
        after = solution.condition(ff.Observations(**own, u=np.zeros(count), sigma=0.05))
        assert spread(after) == pytest.approx(float(found["std"][count - 1]), rel=1e-6)
    assert_allclose(found["removed"], 1.0 - (found["std"] / found["std_now"]) ** 2)
    assert float(found["gain"].max()) == pytest.approx(float(found["removed"][0]))


def dense(posterior: GaussianPosterior, places: dict[str, Array], chosen: list[int], sigma: float) -> Array:
    """The covariance of the field at places after measuring some of them."""
    latent = posterior.representation.latents["u"]
    rows = latent.basis.rows(places) @ posterior.root[latent.block]
    covariance = rows @ rows.T
    for index in chosen:
        column = covariance[:, index]
        covariance = covariance - np.outer(column, column) / (column[index] + sigma**2)
    return covariance


def test_each_place_is_the_best_of_all_and_pairs_are_close_to_the_best_pair(linear: Solution) -> None:
    """On a coarse grid that is target and candidates at once, against all 2,000 pairs."""
    posterior, grid = linear.posterior, {"t": T, "x": X}
    assert isinstance(posterior, GaussianPosterior)
    places = posterior.problem.domain.tensor(grid)
    found = linear.next_measurements(2, 0.02, candidates=grid, target={"t": 1.0})
    wanted = target_of(posterior, "u", {"t": 1.0})
    rows = posterior.representation.latents["u"].basis
    nodes = posterior.problem.domain.tensor(wanted.grid)
    all_places = {name: np.concatenate([places[name], nodes[name]]) for name in grid}
    count = len(places["x"])
    assert rows.size == len(posterior.mean)

    def left(chosen: tuple[int, ...]) -> float:
        return float(wanted.shares @ np.diag(dense(posterior, all_places, list(chosen), 0.02))[count:])

    alone = [left((index,)) for index in range(count)]
    assert float(found["std"][0]) == pytest.approx(np.sqrt(min(alone)), rel=1e-8)
    pairs = combinations_with_replacement(np.argsort(alone)[:12].tolist(), 2)
    best = min(left(pair) for pair in pairs)
    assert float(found["std"][1]) ** 2 <= 1.1 * best


def test_targets_may_be_a_coefficient_a_functional_a_stretch_or_an_instant(windows: Solution) -> None:
    now = {
        "b": windows.parameters["b"]["std"],
        "t": float(np.sqrt(np.mean(windows.predict(x=(np.arange(96) + 0.5) / 96, t=[0.5])["std"] ** 2))),
    }
    assert float(windows.next_measurements(1, 0.1, target="b")["std_now"]) == pytest.approx(now["b"], rel=1e-6)
    instant = windows.next_measurements(1, 0.1, target={"t": 0.5})
    assert float(instant["std_now"]) == pytest.approx(now["t"], rel=1e-3)
    part = windows.next_measurements(1, 0.1, target={"of": "u_x", "x": (0.1, 0.2), "t": 0.9})
    assert part.attrs["target"] == "u_x, x = (0.1, 0.2), t = 0.9" and "linearised" in part.attrs["valid"]
    near = windows.next_measurements(1, 0.1, target={"x": (0.1, 0.2), "t": 0.9})
    assert float(near["t"][0]) > 0.5


def test_candidates_are_a_grid_over_what_is_measured_a_stretch_or_a_table(rod: Solution, tmp_path: Path) -> None:
    found = rod.next_measurements(1)
    assert found.attrs["sigma"] == pytest.approx(0.1) and found["gain"].dims == ("candidate_t", "candidate_x")
    assert float(found["candidate_t"].min()) == 0.1 and float(found["candidate_t"].max()) == 0.5
    later = rod.next_measurements(1, 0.1, candidates={"t": (0.6, 1.0)})
    assert 0.6 <= float(later["t"][0]) <= 1.0 and len(later["candidate_x"]) == 41
    table = pd.DataFrame({"x": [0.1, 0.5, 0.5], "t": [0.2, 0.2, 1.0], "sensor": ["a", "b", "c"]})
    listed = rod.next_measurements(2, 0.1, candidates=table)
    assert listed["gain"].dims == ("candidate",) and (float(listed["x"][0]), float(listed["t"][0])) == (0.5, 0.2)
    again = ff.load(rod.save(tmp_path / "run.nc")).next_measurements(2, 0.1, candidates=table)
    assert_allclose(again["std"], listed["std"], rtol=1e-9)


def test_draws_are_taken_as_a_gaussian_and_a_single_one_is_refused(linear: Solution) -> None:
    posterior = linear.posterior
    draws = np.stack(list(posterior._weight_draws(400, np.random.default_rng(0))))
    sampled = Solution(SampledPosterior(posterior.problem, posterior.representation, {}, draws), Status("converged"))
    one, other = (s.next_measurements(1, 0.05, candidates={"x": X, "t": T}) for s in (sampled, linear))
    assert float(one["removed"][0]) == pytest.approx(float(other["removed"][0]), rel=0.3)
    alone = Solution(SampledPosterior(posterior.problem, posterior.representation, {}, draws[:1]), Status("converged"))
    with pytest.raises(ff.ProblemError, match="a single draw"):
        alone.next_measurements(1, 0.05)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"count": 0}, "1 or more"), ({"sigma": -1.0}, "sigma > 0"), ({"of": "u_x", "sigma": None}, "none yet"),
        ({"of": "0.05*x"}, "a quantity"), ({"target": {"y": 1.0}}, "axes t, x"), ({"target": 3}, "mapping"),
        ({"target": {"x": (0.5, 0.2)}}, "lower end first"), ({"candidates": {"x": (0, "b")}}, "two numbers"),
        ({"candidates": 7}, "table"), ({"candidates": {"t": np.linspace(0, 1, 2000)}}, "at most 50000"),
        ({"candidates": {"z": [0.1]}}, "axes"),
    ],
)  # fmt: skip
def test_requests_that_cannot_be_met_get_one_line(rod: Solution, arguments: dict[str, object], words: str) -> None:
    with pytest.raises(ff.ProblemError, match=words):
        rod.next_measurements(**{"count": 1, "sigma": 0.1, **arguments})  # type: ignore[arg-type]


def test_places_and_targets_stay_inside_a_region() -> None:
    domain = {"x": ff.Interval(-1, 1), "y": ff.Interval(-1, 1)}
    seen = ff.Observations(x=[0.2], y=[0.3], u=[0.1], sigma=0.1)
    disk = ff.Problem(
        ff.Equation("u_xx + u_yy = -1", sigma=1.0), domain, {}, [ff.Boundary("u = 0"), seen],
        region=ff.Region("x**2 + y**2 < 0.8"),
    )  # fmt: skip
    solution = ff.solve(disk, method="tree", cells={"x": 12, "y": 12})
    found = solution.next_measurements(3, 0.05)
    assert np.all(found["x"] ** 2 + found["y"] ** 2 < 0.8) and np.isnan(found["gain"][0, 0])
    wanted = target_of(solution.posterior, "u", None)
    assert wanted.shares.sum() == pytest.approx(1.0) and np.isfinite(wanted.line(solution.posterior)[1])
    table = solution.covariance(x=[0.0, 0.99], y=[0.0, 0.99], points=True).values
    assert np.isfinite(table[0, 0]) and np.all(np.isnan(table[1]))
