"""Descriptions that would take for ever are refused in a line, by counting; the others are read in no time."""

from __future__ import annotations

import time

import numpy as np
import pytest

import factorfield as ff
from factorfield.problem.coefficients import Unknown
from factorfield.problem.problem import MOST_CONDITIONS, MOST_EQUATIONS

ROD = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
SECONDS = 10.0  # of this process's own time; each of these took a minute or more


def in_time(begin: float) -> bool:
    return time.process_time() - begin < SECONDS


@pytest.mark.parametrize(
    ("equation", "said"),
    [
        ("u_t = ((u**20)**20)**20", "powers of powers, received 8000"), ("u_t = " + "u*" * 30 + "u_x", "received 30"),
        ("u_t = " + "sin(" * 30 + "u" + ")" * 30, "at most 24 levels"),
        ([f"a{k}_t = a{k}" for k in range(20_000)], f"at most {MOST_EQUATIONS} equations, received 20000"),
        (["u_t = " + "+".join(["u*x"] * 120)] * 20, "at most 5000 in all texts together"),
    ],
)  # fmt: skip
def test_formulas_beyond_the_limits_are_refused(equation: str | list[str], said: str) -> None:
    begin = time.process_time()
    with pytest.raises(ff.ProblemError, match=said):
        ff.Problem(equation, ROD)
    assert in_time(begin)


def test_conditions_are_compared_in_numbers_and_counted() -> None:
    begin = time.process_time()
    walls = [ff.Boundary(f"u = {k}*sin(t)", at={"x": k / 300}, inside=True) for k in range(300)]
    with pytest.raises(ff.ProblemError, match=f"at most {MOST_CONDITIONS} conditions, received 300"):
        ff.Problem("u_t = u_xx", ROD, {}, walls)
    ff.Problem("u_t = u_xx", ROD, {}, walls[:150])
    hard = "u*(1 + sin(x) + exp(sin(x)))*(1 + sin(3*x)) = tan(x)*sin(x)**4*exp(cos(x)) + "
    two = [ff.Initial(hard + number, sigma=1e-3) for number in ("0", "1")]
    with pytest.raises(ff.ProblemError, match="can hold together, received 'initial: u"):
        ff.Problem("u_t = u_xx", ROD, {}, two)
    assert in_time(begin)


def test_the_same_quantity_is_known_by_its_coefficients() -> None:
    """2 u + u_x = 2 x and u + u_x/2 = x are one condition; with other ratios they are two, and may differ."""
    ff.Problem("u_t = u_xx", ROD, {}, [ff.Initial("2*u + u_x = 2*x"), ff.Initial("u + u_x/2 = x")])
    ff.Problem("u_t = u_xx", ROD, {}, [ff.Initial("2*u + u_x = 2*x"), ff.Initial("u + u_x = 7")])
    with pytest.raises(ff.ProblemError, match="differ by 3"):
        ff.Problem("u_t = u_xx", ROD, {}, [ff.Initial("2*u + u_x = 2*x"), ff.Initial("u + u_x/2 = x + 3")])


def test_a_product_of_many_sums_is_not_multiplied_out() -> None:
    begin = time.process_time()
    text = "u_t = " + "*".join(f"({k} + u + {k}*u_x + u_xx)" for k in range(1, 14))
    model = ff.default_model(ff.Problem(text, ROD, {}, [ff.Initial("u = 0.1")]), method="chain")
    assert model.size > 0 and in_time(begin)


def test_a_tower_of_exponentials_is_a_number_or_none() -> None:
    begin = time.process_time()
    text = "u_t = " + "exp(" * 8 + "u" + ")" * 8
    problem = ff.Problem(text, {"t": ff.Interval(0, 1)}, {}, [ff.Initial("u = 1")])
    assert ff.default_model(problem, method="chain").size > 0
    assert in_time(begin)


def test_unknown_functions_are_counted_before_they_are_made() -> None:
    space = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    problem = ff.Problem("u_t = k*u_xx", space, {"k": Unknown(1.0, 0.1, over=("x", "y", "t"), length=1e-9)})
    with pytest.raises(ff.ProblemError, match="at most 2500 features, received 117649"):
        ff.default_model(problem, method="chain")


@pytest.mark.parametrize("ends", [(0, 1e308), (-1e308, 1e308), (0, 1e-320), (1e300, 1.1e300), (1.0, 1.0 + 1e-12)])
def test_axes_beyond_numbers_are_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(ff.ProblemError, match=r"an axis from 1e-30 to 1e\+30 long|lower < upper"):
        ff.Interval(*ends)


def test_values_whose_squares_are_no_numbers_are_refused() -> None:
    seen = {"x": [0.5], "t": [0.5], "u": [1e308]}
    with pytest.raises(ff.ProblemError, match=r"numbers up to 1e\+150 for u of observations"):
        ff.Problem("u_t = u_xx", ROD, {}, [ff.Observations(**seen, sigma=0.1)])
    with pytest.raises(ff.ProblemError, match="sigma > 0"):
        ff.Problem("u_t = u_xx", ROD, {}, [ff.Initial("u = 0", sigma=1e-300)])


@pytest.mark.parametrize("length", [1e-28, 1e28])
def test_axes_within_them_are_solved(length: float) -> None:
    walls = [ff.Boundary("u = 0", at={"x": 0}), ff.Boundary("u = 1", at={"x": length})]
    solution = ff.solve(ff.Problem("u_xx = 0", {"x": ff.Interval(0, length)}, {}, walls))
    assert abs(float(solution.predict(x=[0.25 * length])["mean"][0]) - 0.25) < 1e-3


def test_more_axes_than_space_and_time_are_refused() -> None:
    with pytest.raises(ff.ProblemError, match="at most 4 axes, received 9"):
        ff.Problem("u_a = 0", {name: ff.Interval(0, 1) for name in "abcdefghi"})
    assert np.prod([9] * 4) < 10_000  # points of `places`
