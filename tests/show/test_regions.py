"""Pictures and reports of regions: the outline in the colours of its conditions, and nothing drawn outside."""

from __future__ import annotations

import numpy as np
import pytest

import factorfield as ff
from factorfield.show.outline import outlines
from factorfield.show.report.page import page

pytestmark = pytest.mark.filterwarnings("ignore::factorfield.errors.AdviceWarning")  # few cells: meant


def half_held() -> ff.Problem:
    domain = {"x": ff.Interval(-1, 1), "y": ff.Interval(-1, 1)}
    walls = [ff.Boundary("u = 0", at="x < 0"), ff.Boundary("u_n = 0", at="x > 0.5")]
    return ff.Problem("u_xx + u_yy = -1", domain, conditions=walls, region=ff.Region("x**2 + y**2 < 1"), name="half")


def test_every_condition_has_its_part_of_the_outline_and_the_rest_is_black() -> None:
    rest, held, flux = outlines(half_held())
    assert (rest.label, held.label, flux.label) == ("boundary without a condition", "x < 0: u = 0", "x > 0.5: u_n = 0")
    assert len({rest.colour, held.colour, flux.colour}) == 3
    for line in (*held.lines, *flux.lines):
        np.testing.assert_allclose(np.hypot(*line.T), 1.0, rtol=1e-9)
    assert all(np.all(line[:, 0] < 1e-6) for line in held.lines)


def test_a_picture_and_a_report_show_the_outline_and_the_mask() -> None:
    solution = ff.solve(half_held(), cells={"x": 8, "y": 8})
    figure = ff.plot(solution)
    drawn = {line.get_label() for line in figure.axes[0].get_lines()}
    assert {"x < 0: u = 0", "x > 0.5: u_n = 0"} <= drawn
    mesh = figure.axes[0].collections[0].get_array()
    assert (
        mesh is not None and 0.15 < np.mean(np.ma.getmaskarray(np.ma.masked_invalid(mesh))) < 0.28
    )  # 1 - pi/4 is 0.21
    text = page(solution)
    assert '"walls"' in text and "only where x**2 + y**2" in text.replace("&lt;", "<")
