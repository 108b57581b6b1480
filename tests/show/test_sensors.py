"""Value against time at sensors: mean, data, and what is forecast; coefficients and long formulas in titles."""

from __future__ import annotations

import numpy as np
import pytest

import factorfield as ff
from factorfield.show.sensors import sensors_of
from factorfield.show.style import wrapped


@pytest.fixture(scope="module")
def rod() -> ff.Solution:
    """Two sensors that read a decaying sine up to t = 0.6, and one lone value."""
    t = np.linspace(0.1, 0.6, 6)
    seen = {x: np.exp(-0.05 * np.pi**2 * t) * np.sin(np.pi * x) for x in (0.7, 0.2)}
    data = [ff.Observations(x=x, t=t, u=u, sigma=0.02) for x, u in seen.items()]
    walls = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1}), ff.Initial("u = sin(pi*x)")]
    lone = ff.Observations(x=0.5, t=0.3, u=[0.86], sigma=0.02)
    domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    return ff.solve(ff.Problem("u_t = nu*u_xx", domain, {"nu": ff.Unknown(0.06, 0.02)}, [*walls, *data, lone]))


def test_sensors_are_places_that_were_read_several_times(rod: ff.Solution) -> None:
    found = sensors_of(rod, "u")
    assert [dict(each.place) for each in found] == [{"x": 0.2}, {"x": 0.7}] and len(found[0].times) == 6
    assert len(sensors_of(rod, "u", most=1)) == 1


@pytest.mark.parametrize("kind", ["sensors", "summary"])
def test_the_forecast_is_shaded_from_the_last_measurement_on(rod: ff.Solution, kind: str) -> None:
    pytest.importorskip("matplotlib")
    figure = ff.plot(rod, kind=kind)
    panels = [panel for panel in figure.axes if panel.get_title() == "$x$ = 0.2"]
    assert len(panels) == 1
    (shade,) = [patch for patch in panels[0].patches if patch.get_label() == "forecast"]
    assert shade.get_extents().x0 < shade.get_extents().x1 and shade.get_x() == pytest.approx(0.6)
    mean = next(line for line in panels[0].get_lines() if line.get_label() == "mean")
    at = np.asarray(mean.get_xdata(), float)
    np.testing.assert_allclose(mean.get_ydata(), rod.predict(x=[0.2], t=at)["mean"].values.ravel())
    assert r"\nu$ = 0.0" in figure.get_suptitle() and r"$\pm$" in figure.get_suptitle()


def test_a_spike_of_the_std_does_not_take_all_the_colours() -> None:
    from factorfield.show.fields import Scale
    from factorfield.show.style import SPREAD

    values = np.full((100, 100), 0.01)
    values[0, 0] = 5.0
    assert Scale(SPREAD, usual=True).limits(values)[1] == pytest.approx(0.012)


def test_long_formulas_go_on_in_the_next_row_between_terms() -> None:
    rows = wrapped("$u_{t}=" + "+".join(f"f_{k}(x+t)" for k in range(12)) + "$", 40)
    assert len(rows) > 2 and all(row.startswith("$") and row.endswith("$") and len(row) < 60 for row in rows)
    assert all(row.count("(") == row.count(")") for row in rows) and wrapped("$u$", 40) == ["$u$"]
