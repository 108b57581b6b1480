"""A posterior read back from a file's arrays; a new class of posterior in this room is found without an edit here."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield import posterior
from factorfield.errors import expected
from factorfield.posterior.base import Posterior, shaped
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
NUMERICAL = "weight_numerical"


def posterior_from_arrays(
    problem: Problem, form: Any, noise: Mapping[str, float], arrays: Mapping[str, Array], key: str = "representation"
) -> Posterior:
    """The posterior of the class whose marker is among the arrays; `form` is what the file says under a key."""
    known = [kind for kind in kinds() if kind.described == key]
    for kind in known:
        if kind.marker in arrays:
            found = kind.from_arrays(problem, form, noise, arrays)
            return replace(found, numerical=_numerical(arrays, found)) if NUMERICAL in arrays else found
    markers = ", ".join(kind.marker for kind in known)
    raise expected(f"a posterior with one of the arrays {markers}", ", ".join(arrays) or "none", "saving it again")


def stored_arrays(found: Posterior) -> dict[str, Array]:
    """What a file has to hold of a posterior, its numerical error included."""
    error = {} if found.numerical is None else {NUMERICAL: found.numerical}
    return {**found.arrays(), **error}


def _numerical(arrays: Mapping[str, Array], found: Posterior) -> Array:
    """The root of the numerical error: a number per weight or columns of them, in every window where there are any."""
    size = found.representation.size
    if "chain_edges" in arrays:
        return shaped(arrays, NUMERICAL, len(arrays["chain_edges"]) - 1, size, None)
    return shaped(arrays, NUMERICAL, *(size, None)[: 1 if "box_kind" in arrays else max(1, arrays[NUMERICAL].ndim)])


def kinds() -> list[type[Posterior]]:
    """All classes of posteriors: those of this room (files with a leading "_" are compiled loops) and a user's own."""
    for module in pkgutil.iter_modules(posterior.__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"{posterior.__name__}.{module.name}")
    return Posterior.__subclasses__()
