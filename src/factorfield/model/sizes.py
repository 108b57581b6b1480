"""How large fields are."""

from __future__ import annotations

from factorfield.model.activation import Activation
from factorfield.model.choices import Sizes, field_offsets, field_scale
from factorfield.problem.problem import Problem


def sizes_of(problem: Problem, activation: Activation) -> Sizes:
    """Of a problem's fields."""
    offsets = field_offsets(problem) if activation.name == "identity" else {}
    return Sizes(field_scale(problem, offsets), offsets)
