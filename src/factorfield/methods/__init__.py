"""Inference methods: one file each. A method is an object with `name` and `run(model, report) -> Solution`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Protocol

from factorfield.errors import expected, nearest
from factorfield.model import Model
from factorfield.solution import Solution

Report = Callable[[str, float], None]  # what is going on, and how far (0..1)

# name -> (module, class); imported when asked for, so that no method pays for another's dependencies
_METHODS = {
    "joint": ("factorfield.methods.joint", "Joint"),
    "laplace": ("factorfield.methods.joint", "Laplace"),
    "mean-field": ("factorfield.methods.mean_field", "MeanField"),
}


class Method(Protocol):
    @property
    def name(self) -> str: ...

    def run(self, model: Model, report: Report | None = None) -> Solution: ...


def names() -> list[str]:
    return list(_METHODS)


def get(name: str, **options: Any) -> Method:
    """A method by name, with its options."""
    if name not in _METHODS:
        raise expected(f"a method among {', '.join(_METHODS)}", name, nearest(name, _METHODS))
    module, attribute = _METHODS[name]
    return getattr(importlib.import_module(module), attribute)(**options)


def __getattr__(attribute: str) -> Any:
    for module, cls in _METHODS.values():
        if cls == attribute:
            return getattr(importlib.import_module(module), cls)
    raise AttributeError(attribute)
