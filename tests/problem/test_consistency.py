"""Descriptions that no data can mend are refused."""

from __future__ import annotations

import pytest

import factorfield as ff

ENDS = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1})]
LINE = {"x": ff.Interval(0, 1)}
STRIP = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 0.2)}


def test_conditions_that_exclude_each_other_are_refused() -> None:
    with pytest.raises(ff.ProblemError, match="can hold together"):
        ff.Problem("u_xx = 1", LINE, {}, [*ENDS, ff.Boundary("2*u = 2", at={"x": 0})])
    with pytest.raises(ff.ProblemError, match="can hold together"):
        ff.Problem("u_t = u_xx", STRIP, {}, [ff.Initial("u = x"), ff.Initial("u = x**2")])
    ff.Problem("u_xx = 1", LINE, {}, [*ENDS, ff.Boundary("u_x = 1", at={"x": 0})])  # another quantity
    near = [ff.Boundary("u = 0", at={"x": 0}, sigma=0.1), ff.Boundary("u = 0.1", at={"x": 0}, sigma=0.1)]
    ff.Problem("u_xx = 1", LINE, {}, near)


def test_every_field_needs_an_equation() -> None:
    with pytest.raises(ff.ProblemError, match="as many equations as fields"):
        ff.Problem("u_xx = v_x", LINE)
    with pytest.raises(ff.ProblemError, match="none that mentions 'v'"):
        ff.Problem("u_xx = 1", LINE, {}, [ff.Observations(x=0.5, v=1.0)])


def test_derivatives_beyond_the_polynomials_are_refused() -> None:
    problem = ff.Problem("u_xxxx = 1", LINE, {}, ENDS)
    with pytest.raises(ff.ProblemError, match="above the highest derivative"):
        ff.default_model(problem, modes={"x": 3})
    with pytest.raises(ff.ProblemError, match="along t"):
        ff.solve(ff.Problem("u_tttt = u", {"t": ff.Interval(0, 1)}, {}, [ff.Initial("u = 1")]), degree=4)


def test_a_table_that_falls_out_of_a_condition_is_no_error() -> None:
    table = ff.Table(x=[0.0, 0.5, 1.0], value=[1.0, 2.0, 1.0])
    conditions = [ff.Boundary("0*k + u = 0", at={"x": 0}), ff.Boundary("u = 0*k_x", at={"x": 0})]
    assert len(ff.Problem("k*u_xx = 0", {"x": ff.Interval(0, 1)}, {"k": table}, conditions).statements) == 3
