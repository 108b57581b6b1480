"""Inference methods: one file or folder each.

A method is an object with `name`, `model_for(problem, **options) -> Model` (the first model it would solve),
`run(model, progress) -> Solution`, and `refine(model, solution) -> Model | None` (the next one, from what was found).

The other files are helpers of several methods: advice.py (what to tell a user), starts.py (several starts of a search),
continuation.py (a parameter that grows to its value); sites.py and compare.py run any method, for noise that is not
Gaussian and for comparisons.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import inspect
import numbers
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from factorfield.errors import expected, nearest, needed
from factorfield.model.choices import affordable_modes, modes_of_functions
from factorfield.model.model import BlockModel, Model, WindowModel
from factorfield.model.tree import TreeModel
from factorfield.model.windowed import suits_region
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Problem
from factorfield.progress import Progress
from factorfield.solution import Solution

# name -> (module, class); imported when asked for, so that no method pays for another's dependencies
_METHODS = {
    "chain": ("factorfield.methods.chain.chain", "Chain"),
    "forward": ("factorfield.methods.forward", "Forward"),
    "joint": ("factorfield.methods.joint.joint", "Joint"),
    "tree": ("factorfield.methods.tree.tree", "Tree"),
    "laplace": ("factorfield.methods.joint.joint", "Laplace"),
    "mean-field": ("factorfield.methods.mean_field.mean_field", "MeanField"),
    "sgd": ("factorfield.methods.baselines.sgd", "SGD"),
    "vi": ("factorfield.methods.baselines.vi", "VI"),
    "hmc": ("factorfield.methods.baselines.hmc", "HMC"),
}
ModelKind = TypeVar("ModelKind", bound=Model)
KINDS: dict[type[Model], tuple[str, str]] = {
    BlockModel: ("a model of one block", "joint"),
    WindowModel: ("a model of time windows", "chain"),
    TreeModel: ("a model of nested boxes", "tree"),
}
EXTRA = "baselines"
# packages of that extra, looked for when a method is named: before other work, not after it
_PACKAGES = {"sgd": ("jax", "optax"), "vi": ("jax", "optax"), "hmc": ("jax", "blackjax", "arviz")}


class Method(Protocol):
    """A method reads the model and never changes or replaces it; only `refine` proposes another. It raises no warnings:
    it returns advice.

    Two attributes are optional. `refine` is called only if the method has `adapt` (bool) and it is true. A method with
    `run_all(models, progress) -> list[Solution]` advances several models at once.
    """

    @property
    def name(self) -> str: ...

    @property
    def model_for(self) -> Callable[..., Model]: ...

    def run(self, model: Model, progress: Progress | None = None) -> Solution: ...

    @property
    def refine(self) -> Callable[[Model, Solution], Model | None]: ...


def names() -> list[str]:
    return list(_METHODS)


def default_method(item: Problem | Model) -> str:
    """What suits a problem: boxes in three axes of space and in regions, unless windows suit those; else windows where
    there is time, else one block unless its sources need more modes than that may have; what suits a model: the method
    that takes it."""
    if isinstance(item, Model):
        return next((method for kind, (_, method) in KINDS.items() if isinstance(item, kind)), "joint")
    if len(item.domain.space) > 2 or (item.shape is not None and not suits_region(item)):
        return "tree"
    if TIME in item.domain:
        return "chain"
    axes = item.domain.names
    wanted = {name: modes_of_functions(item, name) + 2 for name in axes}  # as joint would choose them
    return "joint" if affordable_modes(item, wanted, axes) == wanted else "tree"


def taken(model: Model | None, kind: type[ModelKind], method: str) -> ModelKind:
    """The model, if it is of the kind that a method solves: one that it cannot take is refused, never replaced."""
    if isinstance(model, kind):
        return model
    wanted, builder = KINDS[kind]
    received = next((words for other, (words, _) in KINDS.items() if isinstance(model, other)), type(model).__name__)
    raise expected(f"{wanted} for method={method!r}", received, f"ff.default_model(problem, method={builder!r})")


def never_refine(model: Model, solution: Solution) -> None:
    """`refine` of methods that solve the model they are given and no other."""


def missing_packages(name: str) -> list[str]:
    """What a method needs and this installation does not have."""
    return [package for package in _PACKAGES.get(name, ()) if importlib.util.find_spec(package) is None]


def get(name: str, **options: Any) -> Method:
    """A method by name, with its own options."""
    method = _class(name)
    _check_options(name, _fields(method()), options)
    return method(**options)


def configured(name: str, options: Mapping[str, Any]) -> tuple[Method, dict[str, Any]]:
    """A method by name with those of the options that are its own, and the others, which are its model's."""
    make = _class(name)
    method = make()
    own, models = _fields(method), dict.fromkeys(model_options(method))
    _check_options(name, {**own, **models}, options)
    of_method = {key: value for key, value in options.items() if key in own}
    of_model = {key: value for key, value in options.items() if key in models}
    return make(**of_method) if of_method else method, of_model


def model_options(method: Method) -> list[str]:
    """Options of the model that a method makes of a problem."""
    if not hasattr(method, "model_for"):  # it solves problems, and makes no model
        return []
    return [name for name in inspect.signature(method.model_for).parameters if name != "problem"]


def _class(name: str) -> Callable[..., Method]:
    if name not in _METHODS:
        raise expected(f"a method among {', '.join(_METHODS)}", name, nearest(name, _METHODS, "'joint'"))
    for package in missing_packages(name):
        needed(package, EXTRA)
    module, attribute = _METHODS[name]
    found: Callable[..., Method] = getattr(importlib.import_module(module), attribute)
    return found


def _fields(method: Any) -> dict[str, Any]:
    return {field.name: getattr(method, field.name) for field in dataclasses.fields(method)}


def _check_options(name: str, known: Mapping[str, Any], options: Mapping[str, Any]) -> None:
    """Misspelt options, and values of another kind than the default's."""
    for key, value in options.items():
        if key not in known:
            raise expected(f"options of {name} among {', '.join(known)}", key, nearest(key, known, "leaving it out"))
        usual = known[key]
        kind: Any = numbers.Integral if isinstance(usual, int) else numbers.Real if isinstance(usual, float) else None
        plain = isinstance(value, str | bool | numbers.Real)
        strange = plain and usual is not None and not isinstance(value, type(usual))
        if isinstance(usual, bool) or isinstance(value, bool):
            strange = isinstance(value, bool) != isinstance(usual, bool)
        elif kind is not None:
            strange = not isinstance(value, kind)
        if strange:
            raise expected(f"{key} such as {usual!r} for {name}", value, f"{key}={usual!r}")


def __getattr__(attribute: str) -> Any:
    for module, cls in _METHODS.values():
        if cls == attribute:
            return getattr(importlib.import_module(module), cls)
    raise AttributeError(attribute)
