"""How much of a std is what data leave open, how much is the numerical error."""

from __future__ import annotations

import numpy as np

from factorfield.posterior.base import Posterior

PLACES = {1: 12, 2: 5, 3: 3}  # per axis, by the number of axes


def std_parts(posterior: Posterior) -> dict[str, dict[str, float]]:
    """By field, root mean squares over its domain of the std without the numerical error (`data`), and of that
    (`numerics`)."""
    domain = posterior.problem.domain
    count = PLACES.get(len(domain.names), 2)
    grid = {name: domain[name].lower + (np.arange(count) + 0.5) / count * domain[name].length for name in domain.names}
    found = {}
    for name in posterior.problem.fields:
        whole, data = (
            float(np.nanmean(posterior.predict(grid, name, numerical=numerical)["std"].values ** 2))
            for numerical in (True, False)
        )
        found[name] = {"data": float(np.sqrt(data)), "numerics": float(np.sqrt(max(whole - data, 0.0)))}
    return found
