"""Which kinds of model a method takes: a model that it cannot take is refused, never replaced."""

from __future__ import annotations

from typing import TypeVar

from factorfield.errors import expected
from factorfield.model.model import BlockModel, Model
from factorfield.model.windowed import WindowModel
from factorfield.solution import Solution

Kind = TypeVar("Kind", bound=Model)
WORDS: dict[type[Model], tuple[str, str]] = {
    BlockModel: ("a model of one block", "joint"),
    WindowModel: ("a model of time windows", "chain"),
}


def taken(model: Model | None, kind: type[Kind], method: str) -> Kind:
    """The model, if it is of the kind that a method solves."""
    if isinstance(model, kind):
        return model
    wanted, builder = WORDS[kind]
    received = next((words for other, (words, _) in WORDS.items() if isinstance(model, other)), type(model).__name__)
    raise expected(f"{wanted} for method={method!r}", received, f"ff.default_model(problem, method={builder!r})")


def as_it_is(model: Model, solution: Solution) -> None:
    """`refine` of methods that solve the model they are given and no other."""
