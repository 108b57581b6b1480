"""Coefficients that are no plain number: unknowns with priors, tables of values."""

from __future__ import annotations

import numpy as np
import pytest

import factorfield as ff
from factorfield.problem.domain import Domain

ENDS = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
LINE = {"x": ff.Interval(0, 1)}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"x": [0, 1], "value": [1.0, 2.0, 3.0]}, "one value per point"),
        ({"x": [0.2, 1], "value": [1.0, 2.0]}, "covers x from 0 to 1"),
        ({"x": [1, 0], "value": [1.0, 2.0]}, "increasing x"),
        ({"x": [0, 1], "value": [1.0, np.nan]}, "finite"),
        ({"y": [0, 1], "value": [1.0, 2.0]}, "some of the axes x"),
        ({"x": [0, 1], "value": ["a", "b"]}, "numbers in a table"),
    ],
)
def test_bad_tables_are_refused(columns: dict[str, list[float]], words: str) -> None:
    with pytest.raises(ff.ProblemError, match=words):
        ff.Problem("u_xx + f = 0", LINE, {"f": ff.Table(**columns)}, ENDS)  # type: ignore[arg-type]


def test_a_positive_table_whose_curve_is_negative_is_refused() -> None:
    table = ff.Table(x=[0, 0.25, 0.5, 0.75, 1], value=[0.1, 0.1, 0.5, 0.5, 0.5])
    with pytest.raises(ff.ProblemError, match=r"a curve that falls to -0\.0\d+ at x = 0\.1.*more values"):
        ff.Problem("D*u_xx + D_x*u_x = 1", LINE, {"D": table}, ENDS)


@pytest.mark.parametrize("arguments", [(1.0, 0.0), (np.nan, 1.0), (-1.0, 0.5, True)])
def test_malformed_unknowns_are_refused(arguments: tuple[float, ...]) -> None:
    with pytest.raises(ff.ProblemError):
        ff.Unknown(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("along", ["", "x", "xy"])
def test_a_table_is_the_same_on_a_grid_and_at_scattered_points(along: str) -> None:
    """Points of a grid are evaluated axis by axis, which takes far less memory."""
    rng = np.random.default_rng(0)
    table = ff.Table(x=np.linspace(0, 1, 7), y=np.linspace(0, 2, 9), value=rng.standard_normal((7, 9)))
    x, y = (part.ravel() for part in np.meshgrid(np.linspace(0, 1, 5), np.linspace(0, 2, 6), indexing="ij"))
    scattered = {"x": np.append(x, rng.random(40)), "y": np.append(y, rng.random(40))}
    assert np.allclose(table({"x": x, "y": y}, along), table(scattered, along)[:30], atol=1e-12)


def test_a_table_of_thousands_of_values_costs_no_more_than_its_size() -> None:
    import resource

    x = np.linspace(0, 1, 20_000)  # dense splines through each of its points alone would take 3 GB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    table = ff.Table(x=x, value=2.0 + np.sin(5 * x)).check("k", Domain(LINE))
    places = np.linspace(0, 1, 333)
    np.testing.assert_allclose(table({"x": places}), 2.0 + np.sin(5 * places), rtol=1e-12)
    np.testing.assert_allclose(table({"x": places}, "x"), 5 * np.cos(5 * places), atol=1e-9)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kilobytes


def test_a_table_over_a_plane_is_the_tensor_product_of_splines() -> None:
    from scipy.interpolate import make_interp_spline

    rng = np.random.default_rng(0)
    x, y, value = np.sort(rng.uniform(0, 1, 9)), np.linspace(0, 2, 7), rng.standard_normal((9, 7))
    points = {"x": rng.uniform(x[0], x[-1], 40), "y": rng.uniform(0, 2, 40)}
    table, along_x, along_y = (
        ff.Table(x=x, y=y, value=value),
        make_interp_spline(x, np.eye(9)),
        make_interp_spline(y, np.eye(7)),
    )
    for along in ("", "x", "xy", "yy", "xxx"):
        shares = along_x(points["x"], nu=along.count("x")), along_y(points["y"], nu=along.count("y"))
        whole = np.einsum("ni,nj,ij->n", *shares, value)
        np.testing.assert_allclose(table(points, along), whole, atol=1e-12 * np.abs(whole).max())
    assert not table(points, "xxxx").any()
