"""Continuation: a parameter grows to its value in four passes, each starting where the last one ended.

A strong reaction has a spurious posterior mode at u = 0 that a cold start can fall into (paper, appendix A.6).
"""

from __future__ import annotations

from factorfield.errors import expected
from factorfield.model.model import BlockModel

SHARES = (0.25, 0.5, 0.75, 1.0)


def stages(model: BlockModel, parameter: str | None) -> list[BlockModel]:
    """The models of the passes. `parameter` None takes the model's own choice, "" none."""
    name = model.continuation if parameter is None else (parameter or None)
    if name is None:
        return [model]
    constants = model.problem.constants
    if name not in constants:
        known = ", ".join(constants) or "(none)"
        raise expected(f"continuation in one of the constants {known}", name, "continuation=''")
    return [model.with_parameters(**{name: share * constants[name]}) for share in SHARES]
