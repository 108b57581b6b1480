"""Wave u_tt = c^2 u_xx between fixed ends: two standing waves.

Domain x in [0, 1], t in [0, 1]. Truth: exact, sin(pi x) cos(c pi t) + 0.5 sin(3 pi x) cos(3 c pi t). c around 1.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorfield.problem.domain import Interval
from factorfield.problem.problem import Problem
from factorfield.problems._gallery import Array, Fields, start, truth_on, walls
from factorfield.problems._initial_value import finite_number


def problem(c: float = 1.0, noise: float = 0.0, labels: int | None = None, seed: int = 0) -> Problem:
    speed = finite_number(c, "c")

    def exact(p: Mapping[str, Array]) -> Fields:
        one = np.sin(np.pi * p["x"]) * np.cos(speed * np.pi * p["t"])
        return {"u": one + 0.5 * np.sin(3 * np.pi * p["x"]) * np.cos(3 * speed * np.pi * p["t"])}

    space = {"x": Interval(0.0, 1.0)}
    texts = ["u = sin(pi*x) + 0.5*sin(3*pi*x)", "u_t = 0"]
    return Problem(
        "u_tt = c**2*u_xx", {**space, "t": Interval(0.0, 1.0)}, {"c": speed},
        [*start(texts, exact, space, noise, labels, seed), *walls("u = 0", x=(0.0, 1.0))],
        truth=truth_on({"x": np.linspace(0, 1, 101), "t": np.linspace(0, 1, 101)}, exact), name="wave",
    )  # fmt: skip
