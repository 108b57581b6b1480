"""One prior of the start for all candidates: where the start is not told, evidences would compare these priors else.

What is known of a start before the measurements does not depend on the equation that is tried. A model alone chooses
modes by how long the equation keeps them, and sizes by whether a constant may be added to its fields. Here all
candidates get the modes of the richest, and the sizes of the widest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from factorfield.messages.gaussian import Diagonal
from factorfield.model.basis import Departure
from factorfield.model.model import BlockModel, Model, WindowModel
from factorfield.problem.domain import TIME
from factorfield.solution import Solution

Array = NDArray[np.float64]
SAME = 1e-9  # relative difference of sizes that is none


def common_modes(found: Mapping[str, Solution]) -> dict[str, dict[str, int]]:
    """The modes of space that candidates with fewer than the richest have to be solved with again."""
    models = {name: solution.model for name, solution in found.items() if _has_modes(solution.model)}
    counts = {name: dict(model.modes) for name, model in models.items() if model is not None}
    axes = {axis for count in counts.values() for axis in count if axis != TIME}
    most = {axis: max(count.get(axis, 0) for count in counts.values()) for axis in axes}
    return {
        name: {axis: most[axis] for axis in count if axis in most}
        for name, count in counts.items() if any(count[axis] < most[axis] for axis in count if axis in most)
    }  # fmt: skip


def with_one_prior(found: Mapping[str, Solution], solved: Callable[[Model], Solution]) -> dict[str, Solution]:
    """Solved again with the prior of the start of the candidate whose fields are largest, where it is another."""
    models = {name: solution.model for name, solution in found.items() if _has_modes(solution.model)}
    if len(models) < len(found) or len({type(model) for model in models.values()}) > 1:
        return dict(found)
    widest = max((model for model in models.values() if model is not None), key=lambda model: model.scale)
    result = {}
    for name, solution in found.items():
        model = _moved(models[name], widest, solution.trace.get("searched", {}))
        result[name] = solution if model is None else solved(model)
    return result


def _has_modes(model: Model | None) -> bool:
    """Are its features waves or polynomials over the whole axis?"""
    return isinstance(model, BlockModel) or (isinstance(model, WindowModel) and not model.local)


def _moved(model: Model | None, widest: Model, searched: Mapping[str, float]) -> Model | None:
    """The model with another's prior of the start; None where it has that already, or cannot have it."""
    assert isinstance(model, BlockModel | WindowModel) and isinstance(widest, BlockModel | WindowModel)
    mean, std = np.array(model.prior.mean), np.array(model.prior.std)
    for name in model.problem.fields:
        if name not in widest.representation.forms:
            return None
        here, there = _start_of(model, name), _start_of(widest, name)
        mean[here[0]] = widest.prior.mean[there[0]]  # the first feature is the constant one
        std[here] = widest.prior.std[there] if len(here) == len(there) else widest.prior.std[there[0]]
    same = np.allclose(mean, model.prior.mean, SAME, SAME * float(std.max()))
    same = same and np.allclose(std, model.prior.std, SAME)
    changes: dict[str, Any] = {"prior": Diagonal.from_moments(mean, std**2), "start": dict(searched)}
    own, other = getattr(model, "spectrum", None), getattr(widest, "spectrum", None)
    if own is not None and other is not None:
        changes["spectrum"] = replace(other, rate=own.rate)
        same = same and changes["spectrum"] == own
    return None if same else replace(model, **changes)


def _start_of(model: BlockModel | WindowModel, name: str) -> NDArray[np.int64]:
    """The weights of a field's value at the start; of one block, all of the field's."""
    latent = model.representation.latents[model.representation.forms[name].latents[0]]
    family = latent.basis.families.get(TIME)
    count = latent.basis.size // (family.size if isinstance(family, Departure) else 1)
    return np.arange(latent.block.start, latent.block.start + count)
