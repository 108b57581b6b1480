"""An equation on a grid of instants and places: the same numbers as point by point, seen through modes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import factorfield as ff
from factorfield.model.factors import build_group
from factorfield.model.grid import GridGroup, grid_group
from factorfield.model.windowed import window_model
from reference import finite_difference

PERIODIC, LINE, TIME = ff.Periodic(0, 1), ff.Interval(0, 1), ff.Interval(0, 1)
PROBLEMS = {
    "linear": ff.Problem("u_t + 0.5*u_x = 0.1*u_xx + sin(2*pi*x)", {"x": PERIODIC, "t": TIME}),
    "varying coefficient": ff.Problem("u_t + (2 + x)*u_x = t*u", {"x": PERIODIC, "t": TIME}),
    "nonlinear": ff.Problem("u_t + u*u_x = 0.1*u_xx - u**3", {"x": LINE, "t": TIME}),
    "number that is held": ff.Problem("u_t = k*u_xx", {"x": LINE, "t": TIME}, {"k": ff.Unknown(0.5, 0.1)}),
    "number that is a weight": ff.Problem(
        "u_t + u*u_x = k*u_xx",
        {"x": LINE, "t": TIME},
        {"k": ff.Unknown(0.5, 0.1, positive=True)},
        [ff.Initial("u = x")],
    ),
    "unknown function": ff.Problem("u_t = k*u_xx", {"x": LINE, "t": TIME}, {"k": ff.Unknown(0.5, 0.1, over="x")}),
    "two axes": ff.Problem("u_t + u*u_x = 0.1*u_yy", {"x": PERIODIC, "y": LINE, "t": TIME}),
    "system": ff.Problem(["u_t = u*v", "v_t = -u*v + v_xx"], {"x": PERIODIC, "t": TIME}),
}


def both(problem: ff.Problem, number: int = 0) -> tuple[GridGroup, np.ndarray, np.ndarray, np.ndarray]:
    """The group on a grid; and point by point at random weights: the misfit and its derivative, seen through modes."""
    modes = {name: 2 if isinstance(problem.domain[name], ff.Periodic) else 4 for name in problem.domain.space}
    model = window_model(problem, modes=modes, degree=5)
    grid = {"t": np.array([0.2, 0.5, 0.9]), **model.space.points}
    where, statement = problem.domain.tensor(grid), problem.statements[number]
    through = model.space.projections[statement.name]
    group = grid_group(statement, model.representation, grid, where, 0.3, model.constants, through)
    plain = build_group(statement, model.representation, where, 0.3, model.constants)
    weights = 0.3 * np.random.default_rng(0).standard_normal(model.size)
    misfit, rows = plain.linear_misfit(weights)
    seen = misfit.reshape(3, -1) @ through.T
    seen_rows = np.einsum("mp,ipw->imw", through, rows.reshape(3, -1, model.size))
    return group, weights, seen.ravel(), seen_rows.reshape(-1, model.size)


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_grid_gives_what_points_give_seen_through_modes(name: str) -> None:
    group, weights, misfit, rows = both(PROBLEMS[name])
    own_misfit, own_rows = group.linear_misfit(weights)
    assert_allclose(own_misfit, misfit, atol=1e-11 * np.abs(misfit).max())
    assert_allclose(group.misfit(weights), misfit, atol=1e-11 * np.abs(misfit).max())
    assert_allclose(own_rows, rows, atol=1e-11 * np.abs(rows).max())


def test_the_second_equation_of_a_system_has_its_own_rows() -> None:
    group, weights, misfit, rows = both(PROBLEMS["system"], 1)
    assert group.statement.name != PROBLEMS["system"].statements[0].name
    own_misfit, own_rows = group.linear_misfit(weights)
    assert_allclose(own_misfit, misfit, atol=1e-11 * np.abs(misfit).max())
    assert_allclose(own_rows, rows, atol=1e-11 * np.abs(rows).max())


def test_rows_are_the_derivative_of_the_misfit() -> None:
    group, weights, *_ = both(PROBLEMS["nonlinear"])
    _, rows = group.linear_misfit(weights)
    for entry in (0, len(rows) // 2, -1):
        slope = finite_difference(lambda w, at=entry: float(group.misfit(w)[at]), weights, 1e-6)
        assert_allclose(rows[entry], slope, atol=1e-6 * np.abs(rows).max())


def test_an_unknown_function_of_space_and_time_is_refused() -> None:
    problem = ff.Problem("u_t = k*u_xx", {"x": LINE, "t": TIME}, {"k": ff.Unknown(0.5, 0.1, over=("x", "t"))})
    with pytest.raises(ff.ProblemError, match="unknown functions of space, or of time, for method='chain'"):
        both(problem)
