"""Heat u_t = nu u_xx: every wave decays at its own rate, short ones first.

Domain x in [0, 1), t in [0, 1], periodic; labels are the field at t = 0, a random smooth field of four waves.
Truth: exact, mode k decays as exp(-nu (2 pi k)^2 t). Good values: nu from 0.001 (slow) to 0.1 (gone by t = 1).
"""

from __future__ import annotations

import numpy as np

from factorfield.data.initial import smooth_field
from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem
from factorfield.problems._initial_value import field_array, finite_number, initial_labels

CELLS = 256


def problem(
    nu: float = 0.02,
    row: int = 0,
    noise: float = 0.0,
    labels: int | None = None,
    seed: int = 0,
    sigma: float | None = None,
) -> Problem:
    """Row `row` of the random smooth fields, observed on `labels` of 256 cells."""
    nu = finite_number(nu, "nu")
    field = smooth_field(row)
    x = (np.arange(CELLS) + 0.5) / CELLS
    t = np.arange(101) / 100
    return Problem(
        equation="u_t = nu*u_xx",
        domain={"x": Periodic(0.0, 1.0), "t": Interval(0.0, 1.0)},
        parameters={"nu": nu},
        conditions=[initial_labels(x, field(x), noise, labels, seed, sigma)],
        truth=field_array(field(x, nu * (2.0 * np.pi) ** 2 * t), x, t),
        name="heat",
    )
