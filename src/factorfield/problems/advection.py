"""Advection u_t + b u_x = 0: a wave carried along a periodic axis at speed b without changing its shape.

Domain x in [0, 1), t in [0, 2]; labels are the field at t = 0. Truth: the exact translate of the initial cells.
Good values: b = 0.1, 0.4, 1, 2, 7 (the paper's).
"""

from __future__ import annotations

import os

import numpy as np

from factorfield.data.initial import pdebench_wave
from factorfield.data.pdebench import Row, read_row
from factorfield.data.reference import translate
from factorfield.errors import expected
from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem
from factorfield.problems._initial_value import field_array, from_file_or, initial_labels

CELLS = 1024


def problem(
    b: float | None = None,
    row: int = 0,
    file: str | os.PathLike[str] | None = None,
    noise: float = 0.0,
    labels: int | None = None,
    seed: int = 0,
    sigma: float | None = None,
) -> Problem:
    """Generated initial conditions (row = their number), or a row of a PDEBench file, whose speed is then used."""
    if file is None:
        x = (np.arange(CELLS) + 0.5) / CELLS
        data = Row(pdebench_wave(row)(x), None, x, np.arange(201) / 100, {})
    else:
        data = read_row(file, row)
        if data.field is not None and "b" not in data.physics:
            raise expected("an advection file (attribute beta)", f"attributes {sorted(data.physics)}", "fisher-kpp")
    speed = from_file_or(b, data.physics, "b", 0.4)
    t = data.t if len(data.t) > 1 else np.arange(201) / 100
    return Problem(
        equation="u_t + b*u_x",
        domain={"x": Periodic(0.0, 1.0), "t": Interval(0.0, float(t[-1]))},
        parameters={"b": speed},
        conditions=[initial_labels(data.x, data.initial, noise, labels, seed, sigma)],
        truth=field_array(translate(data.initial, speed * t), data.x, t),
        stored=None if data.field is None else field_array(data.field, data.x, t),
        name="advection",
    )
