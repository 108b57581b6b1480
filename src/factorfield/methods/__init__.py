"""Inference methods: one file each. A method is an object with `name` and `run(model, progress) -> Solution`."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import numbers
from collections.abc import Mapping
from typing import Any, Protocol

from factorfield.errors import expected, nearest, needed
from factorfield.model.model import Model
from factorfield.progress import Progress
from factorfield.solution import Solution

# name -> (module, class); imported when asked for, so that no method pays for another's dependencies
_METHODS = {
    "chain": ("factorfield.methods.chain.chain", "Chain"),
    "joint": ("factorfield.methods.joint.joint", "Joint"),
    "laplace": ("factorfield.methods.joint.joint", "Laplace"),
    "mean-field": ("factorfield.methods.mean_field.mean_field", "MeanField"),
    "sgd": ("factorfield.methods.baselines.sgd", "SGD"),
    "vi": ("factorfield.methods.baselines.vi", "VI"),
    "hmc": ("factorfield.methods.baselines.hmc", "HMC"),
}
EXTRA = "baselines"
# packages of that extra, looked for when a method is named: before other work, not after it
_PACKAGES = {"sgd": ("jax", "optax"), "vi": ("jax", "optax"), "hmc": ("jax", "blackjax", "arviz")}


class Method(Protocol):
    @property
    def name(self) -> str: ...

    def run(self, model: Model, progress: Progress | None = None) -> Solution: ...


def names() -> list[str]:
    return list(_METHODS)


def missing_packages(name: str) -> list[str]:
    """What a method needs and this installation does not have."""
    return [package for package in _PACKAGES.get(name, ()) if importlib.util.find_spec(package) is None]


def get(name: str, **options: Any) -> Method:
    """A method by name, with its options."""
    if name not in _METHODS:
        raise expected(f"a method among {', '.join(_METHODS)}", name, nearest(name, _METHODS, "'joint'"))
    for package in missing_packages(name):
        needed(package, EXTRA)
    module, attribute = _METHODS[name]
    method = getattr(importlib.import_module(module), attribute)
    _check_options(name, method, options)
    return method(**options)


def _check_options(name: str, method: Any, options: Mapping[str, Any]) -> None:
    """Misspelt options, and values of another kind than the default's."""
    plain_method = method()
    known = {field.name: getattr(plain_method, field.name) for field in dataclasses.fields(plain_method)}
    for key, value in options.items():
        if key not in known:
            raise expected(f"options of {name} among {', '.join(known)}", key, nearest(key, known, "leaving it out"))
        usual = known[key]
        kind: Any = numbers.Integral if isinstance(usual, int) else numbers.Real if isinstance(usual, float) else None
        plain = isinstance(value, str | bool | numbers.Real)
        strange = plain and usual is not None and not isinstance(value, type(usual))
        if isinstance(value, bool) or (strange if kind is None else not isinstance(value, kind)):
            raise expected(f"{key} such as {usual!r} for {name}", value, f"{key}={usual!r}")


def __getattr__(attribute: str) -> Any:
    for module, cls in _METHODS.values():
        if cls == attribute:
            return getattr(importlib.import_module(module), cls)
    raise AttributeError(attribute)
