"""Windows over cells of a plane, and of a region in it: fronts by default, with data, from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import factorfield as ff
from factorfield.methods.chain.following import on_cells_instead, starts_steep
from factorfield.methods.chain.plane import PlaneSolver
from factorfield.model.windowed import window_model
from factorfield.solution import Solution

D, RATE, WIDTH, END = 0.02, 12.0, 0.1, 0.1
SPEED, ALONG, ACROSS = 5 * float(np.sqrt(RATE * D / 6)), float(np.cos(0.6)), float(np.sin(0.6))
CELLS = {"x": 12, "y": 12}
X, T = np.linspace(0, 1, 11), np.linspace(0, 0.05, 3)
WINDOWS = [0.0, 0.025, 0.05]  # of problems with data
INNER = {"x": X[1:-1], "y": X[1:-1], "t": T}


def exact(x: np.ndarray, y: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Fisher's equation has a wave of known speed; here it crosses the plane at an angle."""
    return np.asarray((1 + np.exp((ALONG * x + ACROSS * y - SPEED * t - 0.3) / WIDTH)) ** -2.0, float)


def text(t: str, width: float = WIDTH) -> str:
    return f"u = (1 + exp(({ALONG!r}*x + {ACROSS!r}*y - {SPEED!r}*{t} - 0.3)/{width}))**(-2)"


def front(*known: ff.Condition, width: float = WIDTH, end: float = END) -> ff.Problem:
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1), "t": ff.Interval(0, end)}
    walls = [ff.Boundary(text("t", width), at={axis: end}) for axis in "xy" for end in (0, 1)]
    start = known or (ff.Initial(text("0.0", width)),)
    return ff.Problem("u_t = D*(u_xx + u_yy) + r*u*(1 - u)", domain, {"D": D, "r": RATE}, [*start, *walls])


def scattered(count: int = 20, seed: int = 1) -> ff.Observations:
    rng = np.random.default_rng(seed)
    x, y, t = rng.uniform(0.1, 0.9, count), rng.uniform(0.1, 0.9, count), rng.uniform(0.02, 0.05, count)
    return ff.Observations(x=x, y=y, t=t, u=exact(x, y, t) + 0.02 * rng.standard_normal(count), sigma=0.02)


def labels(seed: int = 0) -> ff.Observations:
    rng = np.random.default_rng(seed)
    x, y = (each.ravel() for each in np.meshgrid(np.linspace(0, 1, 12), np.linspace(0, 1, 12)))
    noisy = exact(x, y, np.zeros(144)) + 0.02 * rng.standard_normal(144)
    return ff.Observations(x=x, y=y, t=0.0, u=noisy, sigma=0.02)


def standardised(solution: Solution) -> tuple[np.ndarray, np.ndarray]:
    """Errors at places inside, and the same in standard deviations."""
    field = solution.predict(**INNER).transpose("t", "x", "y")
    t, x, y = np.meshgrid(T, X[1:-1], X[1:-1], indexing="ij")
    error = field["mean"].values - exact(x, y, t)
    return error, error / field["std"].values


@pytest.fixture(scope="module")
def told() -> Solution:
    return ff.solve(front(), cells=CELLS, tolerance=1e-3)


@pytest.fixture(scope="module")
def labelled() -> Solution:
    return ff.solve(front(labels(), end=0.05), cells=CELLS, windows=WINDOWS)


def test_a_front_across_a_plane_is_met_and_its_error_covered(told: Solution) -> None:
    """The mean error is 5e-6, a thousandth of the tolerance that is asked."""
    assert told.status == "converged" and told.settings["cells"] == CELLS
    error, z = standardised(told)
    assert np.sqrt(np.mean(error**2)) < 2e-5
    assert np.mean(np.abs(z) < 1.645) > 0.85
    assert np.sqrt(np.mean(z**2)) > 0.02  # the std is at most fifty times the error
    assert told.log_evidence == 0.0  # nothing is measured


def test_a_told_plane_solves_again_saves_and_loads_to_the_same_bits(told: Solution, tmp_path: Path) -> None:
    for again in (ff.solve(told.model, adapt=False), ff.load(told.save(tmp_path / "run.nc"))):
        for of in ("u", "u_x"):
            one, other = told.predict(**INNER, of=of), again.predict(**INNER, of=of)
            assert_array_equal(one["mean"], other["mean"])
            assert_array_equal(one["std"], other["std"])


def test_draws_of_a_told_plane_differ_by_its_numerical_error_alone(told: Solution) -> None:
    draws, field = told.posterior.sample(200, **INNER, seed=0), told.predict(**INNER)
    assert_allclose(draws.std("sample"), field["std"].transpose(*draws.dims[1:]), rtol=0.35)


def test_steep_fronts_of_a_plane_take_cells_by_themselves() -> None:
    """Width 0.05, of which polynomials over the whole plane would need too many; up to an early end, for time."""
    model = window_model(front(width=0.05, end=0.002))
    assert starts_steep(model) and not starts_steep(window_model(front()))
    found = on_cells_instead(model, 30)
    assert found is not None and found.in_plane and min(found.modes.values()) >= 24
    assert str(found.settings["features"]).startswith("cells: modes along x and y")


def test_a_window_of_a_plane_follows_its_state_and_the_error_of_its_equation() -> None:
    """The linear map of a window is the derivative of its nonlinear solution: by differences of the state; and a source
    that adds one function of space to the equation moves its end as noise does."""
    model = window_model(front(), cells=CELLS)
    solver = PlaneSolver(model, 30)
    state = solver.at_walls(np.asarray(solver.state_at_start(0.0, END), float), 0.0)
    weights = solver.forward(state, 0.0, 0.02)
    link = solver.stages.segment(weights, 0.0, 0.02)
    assert_allclose(link.offset + link.slope @ state, weights[solver.inner], atol=1e-8)
    rng = np.random.default_rng(0)
    places = model.local["x"].places
    bump = np.outer(np.sin(np.pi * places) ** 2, np.sin(np.pi * places) ** 2).ravel()  # as walls allow
    ahead, behind = (solver.forward(state + step * bump, 0.0, 0.02) for step in (1e-4, -1e-4))
    slope = (ahead - behind) / 2e-4
    assert_allclose(link.slope @ bump, slope[solver.inner], atol=1e-3 * np.abs(slope).max())
    end = solver.end(weights, 0.0, 0.02)
    assert_allclose(link.transition @ state + link.shift, end, atol=1e-8)
    noise = rng.standard_normal(link.noise_root.shape[1])
    pushed = solver.stages.equations.noise @ noise[: solver.stages.equations.noise.shape[1]]
    share = float(np.sqrt(np.sum(solver.stages.rule.weights**2)))  # of noise at every instant, at the end
    usual = solver.stages.residual
    solver.stages.residual = lambda *at: usual(*at) - 1e4 * share * pushed  # type: ignore[method-assign]
    moved = (solver.end(solver.forward(state, 0.0, 0.02), 0.0, 0.02) - end) / 1e4
    assert_allclose(link.noise_root @ noise, moved, atol=0.02 * np.abs(moved).max())


def test_noisy_labels_of_a_plane_leave_what_they_leave_open(labelled: Solution) -> None:
    """One draw of some thirty directions that labels leave open."""
    error, z = standardised(labelled)
    assert labelled.status == "converged"  # the numerical error is small beside the labels' own
    assert np.sqrt(np.mean(error**2)) < 0.06
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.7


def test_data_within_windows_of_a_plane_give_what_conditioning_gives(labelled: Solution, tmp_path: Path) -> None:
    """The same windows, cells and sigmas; what is left differs by where the search ends, some 1e-5 of a std."""
    at_once = ff.solve(front(labels(), scattered(), end=0.05), cells=CELLS, windows=WINDOWS)
    step = labelled.condition(scattered())
    one, other = (each.predict(**INNER, numerical=False) for each in (step, at_once))
    assert float((np.abs(one["mean"] - other["mean"]) / other["std"]).max()) < 1e-3
    assert_allclose(one["std"], other["std"], rtol=1e-3)
    assert step.log_evidence == pytest.approx(at_once.log_evidence, abs=0.01)
    again = ff.load(at_once.save(tmp_path / "run.nc"))
    assert_array_equal(again.predict(**INNER)["std"], at_once.predict(**INNER)["std"])
    before = labelled.predict(**INNER, numerical=False)["std"]
    assert float((one["std"] / before).mean()) < 0.99 and float((one["std"] / before).max()) < 1.01


def disk(*known: ff.Condition) -> ff.Problem:
    """u = exp(-t) cos(2 x) in a disk with a hole, from outside by Robin's condition, from inside by a flux."""
    source = "3.1*exp(-t)*cos(2*x)"  # u_t - 0.3 Laplace u = (-1 + 1.2) u; the rest is the source
    return ff.Problem(
        f"u_t = 0.3*(u_xx + u_yy) + {source} - 2.9*exp(-t)*cos(2*x)",
        {"x": ff.Interval(-1, 1), "y": ff.Interval(-1, 1), "t": ff.Interval(0, 0.5)},
        {},
        [
            *(known or (ff.Initial("u = cos(2*x)"),)),
            ff.Boundary(
                "u_n + 2*u = exp(-t)*(2*cos(2*x) - 2*x*sin(2*x)/sqrt(x**2 + y**2))", at="x**2 + y**2 > 0.9"
            ),
            ff.Boundary("u_n = 2*exp(-t)*sin(2*x)*(x - 0.3)/sqrt((x - 0.3)**2 + y**2)", at="x**2 + y**2 < 0.9"),
        ],
        region=ff.Region("x**2 + y**2 < 1 and (x - 0.3)**2 + y**2 > 0.1"),
    )


def test_a_region_with_time_takes_windows_by_itself() -> None:
    found = ff.solve(disk())
    assert found.status == "converged" and found.settings["method"] == "chain"
    grid = np.linspace(-1, 1, 21)
    field = found.predict(x=grid, y=grid, t=[0.0, 0.25, 0.5]).transpose("t", "x", "y")
    wanted = np.exp(-np.array([0.0, 0.25, 0.5]))[:, None, None] * np.cos(2 * grid)[None, :, None]
    error = field["mean"].values - wanted
    inside = np.isfinite(error)
    assert 0.4 < inside.mean() < 0.75  # the box has corners and the disk a hole
    assert np.abs(error[inside]).max() < 1e-5
    assert np.mean(np.abs(error[inside]) < 1.645 * field["std"].values[inside]) > 0.85


def test_readings_in_a_region_tell_of_a_start_that_is_unsure() -> None:
    """Its prior is a smooth function of size 0.5; twelve readings at three instants."""
    rng = np.random.default_rng(2)
    x, y = rng.uniform(-0.6, 0.0, 12), rng.uniform(-0.6, 0.6, 12)
    t = np.repeat([0.1, 0.2, 0.4], 4)
    seen = ff.Observations(x=x, y=y, t=t, u=np.exp(-t) * np.cos(2 * x) + 0.01 * rng.standard_normal(12), sigma=0.01)
    unsure = disk(ff.Initial("u = 0.7", sigma=0.5, length=0.8), seen)
    found = ff.solve(unsure, "chain", cells=CELLS, windows=[0.0, 0.1, 0.2, 0.3, 0.4, 0.5])
    field = found.predict(x=[-0.4, -0.2], y=[-0.3, 0.2], t=[0.0, 0.3]).transpose("t", "x", "y")
    wanted = np.exp(-np.array([0.0, 0.3]))[:, None, None] * np.cos(2 * np.array([-0.4, -0.2]))[None, :, None]
    z = (field["mean"].values - wanted) / field["std"].values
    assert np.abs(z).max() < 3.5 and np.sqrt(np.mean(z**2)) > 0.05
    assert field["std"].values[1].max() < 0.1 < 0.5


REFUSED = {
    "an unknown rate": (lambda: front().replace(parameters={"D": ff.Unknown(0.02, 0.01), "r": RATE}), CELLS, "known"),
    "one axis only": (front, {"x": 12}, "cells along x and y"),
    "too few": (front, {"x": 4, "y": 12}, "from 12 to 64"),
    "too many": (front, {"x": 12, "y": 500}, "from 12 to 64"),
    "an uncertain wall": (
        lambda: front().replace(
            conditions=[*front().conditions[:-1], ff.Boundary(text("t"), at={"y": 1}, sigma=0.1)]
        ),
        CELLS,
        "walls that hold",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cells_of_a_plane_cannot_do_is_one_line(name: str) -> None:
    make, cells, match = REFUSED[name]
    with pytest.raises(ff.ProblemError, match=match) as error:
        ff.solve(make(), "chain", cells=cells)
    assert "\n" not in str(error.value)
