"""Fisher-KPP u_t = nu u_xx + rho u (1 - u): spreading by diffusion, logistic growth to saturation at 1.

Domain x in [0, 1) and t in [0, 1], periodic; labels are the field at t = 0. Truth: Strang splitting in float64 from the
initial cells (PDEBench's own float32 fields freeze). initial="bump" is the paper's Gaussian bump on [0, 2 pi).
Good values: nu in {0.5, 1, 2, 5}, rho in {1, 2, 5, 10} (the paper's).
"""

from __future__ import annotations

import os
from typing import Literal

import numpy as np

from factorfield.data.initial import bump, normalised, pdebench_wave
from factorfield.data.pdebench import Row, read_row
from factorfield.data.reference import fisher_kpp
from factorfield.errors import expected, nearest
from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem
from factorfield.problems._initial_value import field_array, from_file_or, initial_labels

CELLS = 1024


def problem(  # noqa: PLR0913
    nu: float | None = None,
    rho: float | None = None,
    row: int = 0,
    file: str | os.PathLike[str] | None = None,
    initial: Literal["pdebench", "bump"] = "pdebench",
    noise: float = 0.0,
    labels: int | None = None,
    seed: int = 0,
    sigma: float | None = None,
) -> Problem:
    """Generated initial conditions, a row of a PDEBench file (its nu and rho are then used), or the bump."""
    period = 2.0 * np.pi if initial == "bump" else 1.0
    if initial not in ("pdebench", "bump"):
        raise expected("initial='pdebench' or 'bump'", initial, nearest(str(initial), ["pdebench", "bump"], "'bump'"))
    if file is None:
        x = Periodic(0.0, period).cells(CELLS)
        start = bump(x) if initial == "bump" else normalised(pdebench_wave(row)(x))
        data = Row(start, None, x, np.zeros(1), {})
    else:
        data = read_row(file, row)
        if data.field is not None and not {"nu", "rho"} <= set(data.physics):
            raise expected("a reaction-diffusion file (attributes Nu, rho)", f"{sorted(data.physics)}", "advection")
    physics = {"nu": from_file_or(nu, data.physics, "nu", 0.5), "rho": from_file_or(rho, data.physics, "rho", 1.0)}
    t = data.t if len(data.t) > 1 else np.arange(101) / 100
    return Problem(
        equation="u_t = nu*u_xx + rho*u*(1-u)",
        domain={"x": Periodic(0.0, period), "t": Interval(0.0, float(t[-1]))},
        parameters=physics,
        conditions=[initial_labels(data.x, data.initial, noise, labels, seed, sigma)],
        truth=field_array(fisher_kpp(data.initial, physics["nu"], physics["rho"], t, period), data.x, t),
        stored=None if data.field is None else field_array(data.field, data.x, t),
        name="fisher-kpp",
    )
