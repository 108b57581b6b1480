"""Starts and walls with a sigma: it is what they are off by at any point, whatever modes and points a method has."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from tests.reference import harmonic_std, heated_std, struck_std

import factorfield as ff

ROD = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
RING = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
SQUARE = {"x": ff.Interval(0, 1), "y": ff.Periodic(0, 1)}
WALLS = [ff.Boundary("u = 0", at={"x": at}, sigma=0.05) for at in (0, 1)]


def std(problem: ff.Problem, method: str, modes: dict[str, int], **where: object) -> NDArray[np.float64]:
    """Of the belief alone: polynomials over all time leave more than the tolerance to the numerical error."""
    solution = ff.solve(problem, method=method, modes=modes, tolerance=0.1)
    assert solution.status == "converged"
    return np.asarray(solution.predict(numerical=False, **where)["std"], float).squeeze()  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["chain", "joint"])
@pytest.mark.parametrize("modes", [8, 16])
def test_the_std_at_the_start_is_its_sigma_however_many_modes(method: str, modes: int) -> None:
    ring = ff.Problem("u_t = 0.02*u_xx", RING, {}, [ff.Initial("u = sin(2*pi*x)", sigma=0.1)])
    asked = {"x": modes, **({"t": 12} if method == "joint" else {})}
    assert_allclose(std(ring, method, asked, x=np.linspace(0, 1, 7), t=0.0), 0.1, rtol=0.02)


def test_nor_do_many_more_modes_and_points_average_it_out() -> None:
    ring = ff.Problem("u_t = 0.02*u_xx", RING, {}, [ff.Initial("u = sin(2*pi*x)", sigma=0.1)])
    assert_allclose(std(ring, "chain", {"x": 32}, x=np.linspace(0, 1, 7), t=0.0), 0.1, rtol=0.02)
    for points in (40, 80):
        solution = ff.solve(ring, method="joint", modes={"x": 8, "t": 12}, collocation={"x": points, "t": 26})
        assert_allclose(solution.predict(x=[0.3], t=0.0)["std"], 0.1, rtol=0.02)


@pytest.mark.parametrize("method", ["chain", "joint"])
def test_the_std_at_a_wall_is_its_sigma_however_many_modes(method: str) -> None:
    """Soon after a start that is known, which tells the wall's error there too; in mid-rod what both leave."""
    rod = ff.Problem("u_t = 0.1*u_xx", ROD, {}, [ff.Initial("u = sin(pi*x)"), *WALLS])
    where = {"x": np.array([0.0, 0.1, 0.5, 1.0]), "t": np.array([0.6, 1.0])}
    few, many = (
        std(rod, method, {"x": modes, **({"t": 16} if method == "joint" else {})}, **where) for modes in (8, 16)
    )
    assert_allclose(few[:, [0, -1]], 0.05, rtol=0.02)
    assert_allclose(few, many, rtol=0.02)


@pytest.mark.parametrize(
    "conditions",
    [
        [ff.Initial("u = sin(pi*x)", sigma=0.1), *WALLS],
        [ff.Initial("u = sin(pi*x)", sigma=1e-3), WALLS[0],  # what a start is believed to by default differs
         ff.Boundary("0.1*u_x = -0.3*(u + pi/3)", at={"x": 1}, sigma=0.02)],
        [ff.Initial("u = cos(2*pi*x)"), ff.Boundary("u", at={"x": (0, 1)}, sigma=0.05),
         ff.Boundary("u_x", at={"x": (0, 1)})],
        [ff.Initial("u = sin(pi*x)", sigma=0.1, length=0.5), *WALLS,
         ff.Observations(x=[0.3, 0.6], t=[0.4, 0.8], u=[0.6, 0.4], sigma=0.02)],
    ],
    ids=["walls that meet a start", "a Robin wall", "a difference of two places", "with sensors"],
)  # fmt: skip
def test_windows_and_one_block_agree_about_noisy_walls(conditions: list[ff.problem.conditions.Condition]) -> None:
    rod = ff.Problem("u_t = 0.1*u_xx", ROD, {}, conditions)
    where = {"x": np.array([0.0, 0.1, 0.3, 0.5, 0.8, 1.0]), "t": np.array([0.05, 0.4, 1.0])}
    chain = ff.solve(rod, method="chain", modes={"x": 16}).predict(**where)
    joint = ff.solve(rod, method="joint", modes={"x": 16, "t": 24}).predict(**where)
    assert_allclose(chain["std"], joint["std"], rtol=0.03, atol=3e-4)
    assert_allclose(chain["mean"], joint["mean"], atol=6e-3)  # a block's weights have a prior of the field's size


def test_where_a_noisy_wall_meets_a_noisy_start_both_are_believed() -> None:
    rod = ff.Problem("u_t = 0.1*u_xx", ROD, {}, [ff.Initial("u = sin(pi*x)", sigma=0.1), *WALLS])
    both = (0.1**-2 + 0.05**-2) ** -0.5
    assert_allclose(std(rod, "chain", {"x": 12}, x=[0.0], t=0.0), both, rtol=0.02)
    assert_allclose(std(rod, "joint", {"x": 12, "t": 16}, x=[0.0], t=0.0), both, rtol=0.02)


@pytest.mark.parametrize("length", [0.15, 0.4])
def test_a_steady_field_behind_a_noisy_wall_is_that_of_the_gaussian_process(length: float) -> None:
    conditions = [ff.Boundary("u = 1", at={"x": 0}, sigma=0.1, length=length), ff.Boundary("u = 0", at={"x": 1})]
    plate = ff.Problem("u_xx + u_yy = 0", SQUARE, {}, conditions)
    x = np.array([0.0, 0.1, 0.3, 0.6])
    assert_allclose(std(plate, "joint", {"x": 16, "y": 8}, x=x, y=0.2), harmonic_std(x, 0.1, length), rtol=0.02)


def test_heat_behind_a_drifting_wall_is_that_of_the_gaussian_process() -> None:
    wall = ff.Boundary("u = 0", at={"x": 0}, sigma=0.1, length={"t": 0.4})
    rod = ff.Problem("u_t = 0.3*u_xx", ROD, {}, [ff.Initial("u = 0"), wall, ff.Boundary("u = 0", at={"x": 1})])
    times = np.array([0.1, 0.3, 0.6, 1.0])
    wanted = heated_std(0.25, times, 0.3, 0.1, 0.4)
    assert_allclose(std(rod, "chain", {"x": 12}, x=[0.25], t=times), wanted, rtol=0.01, atol=0.004 * 0.1)


@pytest.mark.parametrize("modes", [16, 32])
def test_a_string_between_noisy_walls_is_that_of_the_gaussian_process(modes: int) -> None:
    """Waves that leave the walls are no data about them: equations that they are not followed in stay silent.

    The errors' principal components leave out 3e-4 of their variance, 0.017 of sigma."""
    starts = [ff.Initial("u = sin(pi*x)"), ff.Initial("u_t = 0")]
    string = ff.Problem("u_tt = u_xx", {"x": ff.Interval(0, 1), "t": ff.Interval(0, 2)}, {}, [*starts, *WALLS])
    times = np.array([0.1, 0.3, 0.6, 1.0, 1.5, 2.0])
    found = std(string, "chain", {"x": modes}, x=[0.0, 0.1, 0.5], t=times)
    wanted = np.stack([struck_std(x, times, 0.05, 0.5) for x in (0.0, 0.1, 0.5)], axis=found.shape.index(3))
    assert_allclose(found, wanted, rtol=0.01, atol=0.03 * 0.05)


def test_a_nonlinear_string_is_as_sure_of_noisy_walls_however_many_modes() -> None:
    starts = [ff.Initial("u = sin(pi*x)"), ff.Initial("u_t = 0")]
    string = ff.Problem("u_tt = u_xx - u**3", {"x": ff.Interval(0, 1), "t": ff.Interval(0, 2)}, {}, [*starts, *WALLS])
    where = {"x": np.array([0.0, 0.2, 0.5]), "t": np.array([0.3, 0.6, 1.0, 2.0])}
    few, many = (std(string, "chain", {"x": modes}, **where) for modes in (16, 32))
    assert_allclose(few, many, rtol=0.03, atol=0.01 * 0.05)
    wall = struck_std(0.0, where["t"][:3], 0.05, 0.5)  # until waves from the other wall arrive, any wave equation's
    assert_allclose(many[tuple(slice(3) if n == 4 else 0 for n in many.shape)], wall, rtol=0.01, atol=0.03 * 0.05)


def test_a_nonlinear_field_behind_noisy_walls_is_the_same_in_windows_and_one_block() -> None:
    conditions = [ff.Initial("u = 0.5*sin(pi*x)", sigma=0.05), *WALLS]
    rod = ff.Problem("u_t + u*u_x = 0.2*u_xx", ROD, {}, conditions)
    where = {"x": np.array([0.0, 0.2, 0.5, 0.8, 1.0]), "t": np.array([0.0, 0.3, 1.0])}
    chain = std(rod, "chain", {"x": 12}, **where)
    assert_allclose(chain, std(rod, "laplace", {"x": 12, "t": 14}, **where), rtol=0.05)
    assert_allclose(chain[-1, [0, -1]], 0.05, rtol=0.02)


def test_errors_of_walls_are_hidden_and_saved(tmp_path: object) -> None:
    rod = ff.Problem("u_t = 0.1*u_xx", ROD, {}, [ff.Initial("u = sin(pi*x)", sigma=0.1), *WALLS])
    solution = ff.solve(rod, modes={"x": 8})
    assert solution.parameters == {} and solution.model is not None
    assert dict(solution.settings["sigma"])[rod.statements[2].name] == pytest.approx(0.05)  # type: ignore[call-overload]
    solution.save(f"{tmp_path}/run.nc")
    again = ff.load(f"{tmp_path}/run.nc")
    assert_allclose(again.predict(x=[0.0, 0.4], t=0.5)["std"], solution.predict(x=[0.0, 0.4], t=0.5)["std"])
    told = solution.condition(ff.Observations(x=[0.0], t=[0.5], u=[0.08], sigma=0.001))
    assert_allclose(told.predict(x=[0.0], t=0.52)["mean"], 0.08, rtol=0.05)  # the wall's error goes on


def test_sensors_beyond_what_a_wall_may_be_off_contradict_it() -> None:
    far = ff.Observations(x=[0.0, 0.0], t=[0.5, 0.9], u=[1.0, -1.0], sigma=0.01)
    rod = ff.Problem("u_t = 0.1*u_xx", ROD, {}, [ff.Initial("u = sin(pi*x)"), *WALLS, far])
    for method in ("chain", "joint"):
        with pytest.warns(ff.AdviceWarning, match="missed by more than chance: boundary x = 0: u = 0 by"):
            ff.solve(rod, method=method, modes={"x": 16, **({"t": 16} if method == "joint" else {})})


def test_evidence_of_sensors_behind_noisy_walls_is_one_number() -> None:
    sensors = ff.Observations(x=[0.1, 0.5, 0.9], t=[0.3, 0.5, 0.8], u=[0.3, 0.62, 0.2], sigma=0.03)
    rod = ff.Problem("u_t = 0.1*u_xx", ROD, {}, [ff.Initial("u = sin(pi*x)", sigma=0.1), *WALLS, sensors])
    chain = ff.solve(rod, method="chain", modes={"x": 16})
    joint = ff.solve(rod, method="joint", modes={"x": 16, "t": 24})
    assert chain.log_evidence == pytest.approx(joint.log_evidence, abs=0.02)


def test_evidence_of_one_sensor_is_the_density_of_its_prediction() -> None:
    told = [ff.Initial("u = sin(pi*x)", sigma=0.1), *WALLS]
    before = ff.solve(ff.Problem("u_t = 0.1*u_xx", ROD, {}, told), method="chain", modes={"x": 12})
    field = before.predict(x=[0.1], t=0.5)
    sensor = ff.Observations(x=[0.1], t=[0.5], u=[0.35], sigma=0.03)
    after = ff.solve(ff.Problem("u_t = 0.1*u_xx", ROD, {}, [*told, sensor]), method="chain", modes={"x": 12})
    spread = np.hypot(float(field["std"].squeeze()), 0.03)
    gap = (0.35 - float(field["mean"].squeeze())) / spread
    assert after.log_evidence == pytest.approx(-0.5 * gap**2 - np.log(spread * np.sqrt(2 * np.pi)), abs=1e-4)
