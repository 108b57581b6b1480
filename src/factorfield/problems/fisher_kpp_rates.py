"""Diffusion and growth rate of Fisher-KPP from scattered noisy measurements: nu and rho unknown.

Domain x in [0, 1), t in [0, 1], periodic; 128 labels at t = 0 and `labels` anywhere later. Truth: nu = 0.02, rho = 3
by default, the field by Strang splitting.
"""

from __future__ import annotations

import numpy as np

from factorfield.problem.problem import Observations, Problem, Unknown
from factorfield.problems import fisher_kpp


def problem(
    nu: float = 0.02, rho: float = 3.0, row: int = 0, noise: float = 0.02, labels: int = 200, seed: int = 0
) -> Problem:
    base = fisher_kpp.problem(nu=nu, rho=rho, row=row)
    truth = base.truth
    x, t, u = (np.asarray(a, float) for a in (truth.x, truth.t, truth))
    rng = np.random.default_rng(seed)
    place, when = rng.integers(0, len(x), labels), rng.integers(1, len(t), labels)
    first = u[0, ::8] + noise * rng.standard_normal(len(x[::8]))
    later = u[when, place] + noise * rng.standard_normal(labels)
    return Problem(
        "u_t = nu*u_xx + rho*u*(1-u)", base.domain,
        {"nu": Unknown(0.05, 0.05, positive=True), "rho": Unknown(1.0, 1.0, positive=True)},
        [
            Observations(x=x[::8], t=0.0, u=first, sigma=noise),
            Observations(x=x[place], t=t[when], u=later, sigma=noise),
        ],
        truth=truth, name="fisher-kpp-rates",
    )  # fmt: skip
