"""Worked problems, one file each: `problem(**physics) -> Problem` with its truth.

A new file in this folder is a new problem: its name is the file's, with hyphens.
"""

from __future__ import annotations

import importlib
import inspect
import numbers
import os
import pkgutil
from typing import Any

from factorfield.errors import expected, nearest
from factorfield.problem.problem import Problem

LARGEST = 1e100  # no physics needs more, and squares of it are still numbers


def names() -> list[str]:
    found = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    return sorted(name.replace("_", "-") for name in found)


def get(name: str, **options: Any) -> Problem:
    """A problem by name; options are its physics (b=0.4) and its data (row=, file=, noise=, labels=, seed=, sigma=)."""
    module = _module(name)
    allowed = inspect.signature(module.problem).parameters
    for option in options:
        if option not in allowed:
            raise expected(
                f"options of {name} among {', '.join(allowed)}",
                option,
                nearest(option, allowed, f"factorfield list {name}"),
            )
        _check_kind(option, options[option], allowed[option])
    return module.problem(**options)


def _check_kind(name: str, value: Any, parameter: inspect.Parameter) -> None:
    """Does a value suit the option's annotation? Options are whole numbers, numbers or texts."""
    kinds = str(parameter.annotation).split(" | ")
    if value is None and "None" in kinds:
        return
    number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if "float" in kinds and not (number and abs(value) <= LARGEST):
        raise expected(f"a number for {name}, finite and no larger than {LARGEST:g}", value, f"{name}=1.0")
    if kinds[0] == "int" and not (number and isinstance(value, numbers.Integral) and 0 <= int(value) < 2**63):
        raise expected(f"a whole number for {name}, 0 or more", value, f"{name}=1")
    if "str" in kinds and not isinstance(value, str | os.PathLike):
        raise expected(f"text for {name}", value, f"{name}=...")


def options(name: str) -> dict[str, Any]:
    """The options of a problem and their defaults."""
    return {key: option.default for key, option in inspect.signature(_module(name).problem).parameters.items()}


def summary(name: str) -> str:
    """The first line of a problem's description."""
    return (_module(name).__doc__ or "").strip().splitlines()[0]


def _module(name: str) -> Any:
    known = names()
    if name not in known:
        raise expected(f"a problem among {', '.join(known)}", name, nearest(name, known, "factorfield list"))
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
