"""Regions: what is inside, and a boundary whose points, normals and lengths are those of the exact curves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import factorfield as ff
from factorfield.problem.domain import Domain, normal_along
from factorfield.problem.shape import Shape

BOX = {"x": ff.Interval(-1.2, 1.2), "y": ff.Interval(-1.1, 1.3)}
L_SHAPE = [(0.0, 0.0), (2.0, 0.0), (2.0, 1.0), (1.0, 1.0), (1.0, 2.0), (0.0, 2.0)]


def shape_of(region: ff.Region | str, box: dict[str, Any] | None = None, **parameters: float) -> Shape:
    made = ff.Region(region) if isinstance(region, str) else region
    return Shape.of(made, Domain(box or BOX), parameters)


CURVES = {  # text: (length, area) by hand
    "x**2 + y**2 < 1": (2.0 * np.pi, np.pi),
    "x**2 + y**2 < 1 and (x - 0.3)**2 + (y - 0.1)**2 > 0.09": (2.6 * np.pi, 0.91 * np.pi),
    "abs(x) + abs(y) < 1": (4.0 * np.sqrt(2.0), 2.0),
    "x**2 + y**2 < 1 and x > 0.2": (
        2.0 * np.arccos(0.2) + 2.0 * np.sqrt(0.96), np.arccos(0.2) - 0.2 * np.sqrt(0.96)
    ),
    "not x < 0.2": (2.0 * 1.0 + 2.0 * 2.4, 2.4),
    "(x - 0.5)**2 + y**2 < 0.1 or (x + 0.5)**2 + y**2 < 0.1": (4.0 * np.pi * np.sqrt(0.1), 0.2 * np.pi),
    "-0.5 < x < 0.5 and -0.5 < y < 0.5": (4.0, 1.0),
}  # fmt: skip


@pytest.mark.parametrize("text", CURVES)
def test_length_and_area_of_a_boundary_are_those_of_its_curves(text: str) -> None:
    """The area is half the flux of (x, y) through the boundary: it needs points, normals and lengths."""
    length, area = CURVES[text]
    points, lengths = shape_of(text).boundary.points(0.05)
    flux = points["x"] * points[normal_along("x")] + points["y"] * points[normal_along("y")]
    assert np.sum(lengths) == pytest.approx(length, rel=1e-8)  # pieces end within 1e-9 of the box before corners
    assert 0.5 * np.sum(lengths * flux) == pytest.approx(area, rel=1e-7)


@pytest.mark.parametrize("text", CURVES)
def test_one_step_along_the_normal_leaves_the_region_and_one_against_it_enters(text: str) -> None:
    shape = shape_of(text)
    points, _ = shape.boundary.points(0.1)
    for step, inside in ((1e-6, False), (-1e-6, True)):
        moved = {axis: points[axis] + step * points[normal_along(axis)] for axis in shape.axes}
        assert np.all(shape.contains(moved) == inside)


def test_points_on_the_wall_count_as_inside_up_to_rounding() -> None:
    angle = np.linspace(0.0, 2.0 * np.pi, 101)
    on_wall = {"x": np.cos(angle), "y": np.sin(angle)}
    assert np.all(shape_of("x**2 + y**2 < 1").contains(on_wall))
    assert not np.any(shape_of("x**2 + y**2 < 1").contains({n: 1.000001 * x for n, x in on_wall.items()}))


def test_a_polygon_keeps_its_edges_whichever_way_around_its_corners_go() -> None:
    box = {"x": ff.Interval(0, 2), "y": ff.Interval(0, 2)}
    hole = [(0.2, 0.2), (0.4, 0.2), (0.3, 0.5)]
    for corners in (L_SHAPE, L_SHAPE[::-1]):
        shape = shape_of(ff.Region.polygon(corners, [hole]), box)
        points, lengths = shape.boundary.points(0.1)
        flux = points["x"] * points[normal_along("x")] + points["y"] * points[normal_along("y")]
        assert 0.5 * np.sum(lengths * flux) == pytest.approx(3.0 - 0.03, rel=1e-12)
        first = shape.wall(0, {})
        assert first.length == pytest.approx(np.hypot(*np.subtract(corners[1], corners[0])))
        assert np.all(shape.wall([6, 7, 8], {}).points(0.1)[0]["x"] < 0.5)  # the hole's, counted on
    assert [tuple(place) for place in shape.reentrant_corners] == [(1.0, 1.0), *sorted(hole, key=hole.index)]


def test_inside_a_polygon_is_what_a_triangulation_by_hand_says() -> None:
    shape = shape_of(ff.Region.polygon(L_SHAPE), {"x": ff.Interval(0, 2), "y": ff.Interval(0, 2)})
    x, y = np.random.default_rng(0).uniform(0.0, 2.0, (2, 2000))
    assert np.array_equal(shape.contains({"x": x, "y": y}), (x < 1.0) | (y < 1.0))


def test_a_part_of_a_boundary_is_named_by_a_condition_and_ends_where_that_does() -> None:
    shape = shape_of("x**2 + y**2 < 1")
    assert shape.wall("x > 0.5", {}).length == pytest.approx(2.0 * np.pi / 3.0, rel=1e-9)
    assert shape.wall("y > a", {"a": 0.0}).length == pytest.approx(np.pi, rel=1e-9)
    half = shape_of("x > 0.2")
    assert half.wall({"x": 1.2}, {}).length == pytest.approx(2.4, rel=1e-8)  # a side of the box
    shared = shape.wall("x > 0.5", {}).shared(shape.wall("y > 0", {}))
    assert shared is not None and shared.length == pytest.approx(np.pi / 3.0, rel=1e-9)


def test_parts_that_do_not_touch_are_told_apart_and_a_ring_joins_its_ends() -> None:
    assert len(shape_of("(x - 0.5)**2 + y**2 < 0.1 or (x + 0.5)**2 + y**2 < 0.1").parts) == 2
    stripes = "cos(x) > 0.5 and y < 1"
    interval = {"x": ff.Interval(0, 2 * np.pi), "y": ff.Interval(-1, 2)}
    ring = {"x": ff.Periodic(0, 2 * np.pi), "y": ff.Interval(-1, 2)}
    assert len(shape_of(stripes, interval).parts) == 2
    joined = shape_of(stripes, ring)
    assert len(joined.parts) == 1 and joined.contains({"x": np.array([2 * np.pi + 0.1]), "y": np.zeros(1)})[0]


def problem(*conditions: Any, region: Any = None, **more: Any) -> ff.Problem:
    domain = {"x": ff.Interval(-1, 1), "y": ff.Interval(-1, 1)}
    disk = ff.Region("x**2 + y**2 < 1")
    return ff.Problem("u_xx + u_yy = 0", domain, conditions=conditions, region=region or disk, **more)


def test_a_normal_derivative_is_the_gradient_along_the_normal() -> None:
    made = problem(ff.Boundary("u_n + 2*u = x"), ff.Boundary("u_nn = 0", at="x > 0"))
    first, second = [statement.relation for statement in made.statements[1:]]
    assert {str(symbol) for symbol in first.jets} == {"u", "u_x", "u_y"}
    assert str(first.expression.coeff(next(s for s in first.jets if str(s) == "u_x"))) == normal_along("x")
    assert {str(symbol) for symbol in second.jets} == {"u_xx", "u_xy", "u_yy"}


BAD: dict[str, Callable[[], object]] = {
    "which is empty": lambda: problem(region=ff.Region("x > 2")),
    "which fills it": lambda: problem(region=ff.Region("x < 2")),
    "an ff.Region": lambda: problem(region="x < 0"),
    "first row 1 (x = 0.9, y = 0.9)": lambda: problem(ff.Observations(x=[0, 0.9], y=[0, 0.9], u=[1, 2], sigma=0.1)),
    "averages included": lambda: problem(ff.Observations(x=0.6, y=0.7, u=1, sigma=0.1, average={"x": 0.4})),
    "can hold together": lambda: problem(ff.Boundary("u = 0"), ff.Boundary("u = 1", at="x > 0.5")),
    "'boundary: u_n = 0' and": lambda: problem(ff.Boundary("u_n = 0"), ff.Boundary("2*u_n = 1", at="x > 0.5")),
    "a part of the boundary at 'x > 5'": lambda: problem(ff.Boundary("u = 0", at="x > 5")),
    "a polygon where edges are named": lambda: problem(ff.Boundary("u = 0", at=0)),
    "on the boundary of a region": lambda: problem().relation("u_n"),
    "at an angle where they are equal": lambda: problem(region=ff.Region("(x**2 + y**2 - 0.5)**3 < 0")),
    "two space axes": lambda: ff.Problem("u_xx = 0", {"x": ff.Interval(0, 1)}, region=ff.Region("x < 0.5")),
    "do not cross": lambda: ff.Region.polygon([(0, 0), (1, 1), (1, 0), (0, 1)]),
    "hole 0 inside": lambda: ff.Region.polygon([(0, 0), (1, 0), (0, 1)], [[(2, 2), (3, 2), (2, 3)]]),
    "(1, 0) twice": lambda: ff.Region.polygon([(0, 0), (1, 0), (1, 0), (0, 1)]),
    "method='tree'": lambda: ff.solve(problem(ff.Boundary("u = 0")), method="joint"),
}


@pytest.mark.parametrize("said", BAD)
def test_what_cannot_be_a_region_is_refused_in_one_line(said: str) -> None:
    with pytest.raises(ff.ProblemError) as error:
        BAD[said]()
    assert said in str(error.value) and "\n" not in str(error.value)


def test_conditions_that_agree_where_they_overlap_are_taken() -> None:
    made = problem(ff.Boundary("u = x"), ff.Boundary("2*u = 2*x", at="x > 0.5"), ff.Boundary("u_n = 0", at="x < 0"))
    assert len(made.statements) == 4
