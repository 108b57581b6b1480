"""Hares and lynxes of the Hudson Bay, 1900-1920: the four rates of Lotka-Volterra from pelts, all unknown.

Time in years since 1900, pelts in thousands, multiplicative (log-normal) noise of 25 %: the logarithm is observed.
No truth. A well-known Bayesian analysis (Stan's case study) finds about alpha 0.55, beta 0.028, gamma 0.80,
delta 0.024, each with 10-15 % posterior sd.
"""

from __future__ import annotations

import numpy as np

from factorfield.problem.domain import Interval
from factorfield.problem.problem import Initial, Observations, Problem, Unknown
from factorfield.problems.lotka_volterra import EQUATIONS

HARE = (
    30, 47.2, 70.2, 77.4, 36.3, 20.6, 18.1, 21.4, 22, 25.4, 27.1, 40.3, 57, 76.6, 52.3, 19.5, 11.2, 7.6, 14.6, 16.2,
    24.7,
)  # fmt: skip
LYNX = (
    4, 6.1, 9.8, 35.2, 59.4, 41.7, 19, 13, 8.3, 9.1, 7.4, 8, 12.3, 19.5, 45.7, 51.1, 29.7, 15.8, 9.7, 10.1, 8.6,
)  # fmt: skip


def problem(sigma: float = 0.25) -> Problem:
    """`sigma` is that of the logarithms."""
    years = np.arange(21.0)
    rates = {
        "alpha": Unknown(1.0, 0.5, positive=True), "beta": Unknown(0.05, 0.05, positive=True),
        "gamma": Unknown(1.0, 0.5, positive=True), "delta": Unknown(0.05, 0.05, positive=True),
    }  # fmt: skip
    return Problem(
        EQUATIONS, {"t": Interval(0.0, 20.0)}, rates,
        [
            Initial("h = 30", sigma=10.0), Initial("l = 5", sigma=3.0),
            Observations(t=years, of="log(h)", value=np.log(HARE), sigma=sigma),
            Observations(t=years, of="log(l)", value=np.log(LYNX), sigma=sigma),
        ],
        name="hare-lynx",
    )  # fmt: skip
