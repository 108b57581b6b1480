"""Equations in space only, and the components into which their rows fall."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.model.factors import whitened_rows
from factorfield.model.model import is_standing
from factorfield.model.semidiscrete import semidiscrete
from factorfield.model.window_factors import WindowFactors
from factorfield.model.windowed import window_model

RING = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
TORUS = {"x": ff.Periodic(0, 1), "y": ff.Periodic(0, 2), "t": ff.Interval(0, 1)}
ROD = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
ENDS = [ff.Boundary("u = 1", at={"x": 0}), ff.Boundary("u = 1", at={"x": 1})]
LENGTH = 0.5


def factors(equation: object, domain: dict[str, ff.Interval], walls: list[ff.Boundary]) -> WindowFactors:
    start = [ff.Initial("u = 1")] + ([ff.Initial("v = 0")] if isinstance(equation, list) else [])
    problem = ff.Problem(equation, domain, {}, [*start, *walls])  # type: ignore[arg-type]
    counts = {name: 4 if name == "x" and walls else 2 for name in domain if name != "t"}
    return WindowFactors(window_model(problem, modes=counts, degree=6))


@pytest.mark.parametrize(
    ("equation", "domain", "walls", "components"),
    [
        ("u_t + 0.3*u_x = 0.01*u_xx + 0.7", RING, [], 3),
        ("u_tt = 4*u_xx - u_t", RING, [], 5),
        ("u_t + u_x + 2*u_y = 0.1*u_xx + 0.1*u_yy", TORUS, [], 9),
        (["u_t = v_x", "v_t = u_x - v + 1"], RING, [], 6),
        ("u_t = 0.1*u_xx", ROD, ENDS, 2),
        ("u_t = 0.1*u_xx + 0.2*u_x", ROD, ENDS, 1),
    ],
    ids=["one field", "second order", "two axes", "a system", "even and odd", "carried between walls"],
)
def test_components_together_say_what_the_standing_factors_say(
    equation: object, domain: dict[str, ff.Interval], walls: list[ff.Boundary], components: int
) -> None:
    """Rows are turned, so that information is compared: rows' rows and rows' target, summed over components."""
    made = factors(equation, domain, walls)
    found = semidiscrete(made.model, made)
    assert found is not None and len(found.components) == components
    standing = next(s for s in made.model.problem.statements if is_standing(s))
    size = made.model.size
    information, shift = np.zeros((size, size)), np.zeros(size)
    for weights, rows, target in found.parts(LENGTH, made.instants(standing, 0.0, LENGTH)):
        information[np.ix_(weights, weights)] += rows.T @ rows
        shift[weights] += rows.T @ target
    rows, target = whitened_rows(made.standing(0.0, LENGTH), np.zeros(size))
    scale = np.abs(rows.T @ rows).max()
    assert_allclose(information, rows.T @ rows, atol=1e-9 * scale)
    assert_allclose(shift, rows.T @ target, atol=1e-9 * max(float(np.abs(rows.T @ target).max()), np.sqrt(scale)))


def test_an_equation_that_depends_on_time_is_none() -> None:
    made = factors("u_t = 0.1*t*u_xx", RING, [])
    assert semidiscrete(made.model, made) is None


def test_walls_that_say_the_same_and_disagree_are_none() -> None:
    twice = [*ENDS, ff.Boundary("2*u = 2", at={"x": 1}), ff.Boundary("u = 1.1", at={"x": 1}, sigma=0.1)]
    made = factors("u_t = 0.1*u_xx", ROD, twice)
    assert semidiscrete(made.model, made) is None
