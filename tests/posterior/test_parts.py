"""Settings, files and reports tell how much of the std is data, how much numerics."""

from __future__ import annotations

import numpy as np
import pytest

import factorfield as ff
from factorfield.show.report.page import page

pytestmark = pytest.mark.filterwarnings("ignore::factorfield.AdviceWarning")


def pulse(modes: int, *further: ff.Condition) -> ff.Solution:
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    problem = ff.Problem("u_t + 0.4*u_x = 0", domain, {}, [ff.Initial("u = exp(3*(cos(2*pi*x) - 1))"), *further])
    return ff.solve(problem, modes={"x": modes})


def test_too_few_modes_are_numerics() -> None:
    solution = pulse(5)
    parts = solution.settings["std"]["u"]
    x, t = np.meshgrid((np.arange(40) + 0.5) / 40, (np.arange(40) + 0.5) / 40)
    std = solution.predict(x=x.ravel(), t=t.ravel(), points=True)["std"].values
    assert parts["numerics"] > 100.0 * parts["data"]
    assert parts["numerics"] == pytest.approx(np.sqrt(np.mean(std**2)), rel=0.3)


def test_a_noisy_start_is_data() -> None:
    x = (np.arange(32) + 0.5) / 32
    u = np.sin(2 * np.pi * x) + 0.05 * np.random.default_rng(0).standard_normal(32)
    domain = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    seen = ff.Observations(x=x, t=0.0, u=u, sigma=0.05)
    parts = ff.solve(ff.Problem("u_t + 0.4*u_x = 0", domain, {}, [seen])).settings["std"]["u"]
    assert parts["data"] > 0.005 and parts["data"] > 1e3 * parts["numerics"]


def test_what_is_conditioned_is_told_anew_and_the_report_says_it() -> None:
    """Readings do not reduce the numerical error."""
    before = pulse(5)
    after = before.condition(ff.Observations(x=0.3, t=0.5, u=0.7, sigma=0.5))
    assert after.settings["std"]["u"]["numerics"] == pytest.approx(before.settings["std"]["u"]["numerics"], rel=0.2)
    shown = page(after)
    assert "numerics: " in shown and "estimated numerical error" in shown
