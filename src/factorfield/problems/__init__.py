"""Worked problems, one file each: `problem(**physics) -> Problem` with its truth.

A new file in this folder is a new problem: its name is the file's, with hyphens.
"""

from __future__ import annotations

import importlib
import inspect
import math
import numbers
import os
import pkgutil
from collections.abc import Callable
from typing import Protocol, cast

from factorfield.errors import command, expected, nearest
from factorfield.problem.problem import Problem

LARGEST_NUMBER = 1e100  # no physics needs more, and squares of it are still numbers
Option = float | str | os.PathLike[str] | None


class Module(Protocol):
    """A file of this folder."""

    __doc__: str | None
    problem: Callable[..., Problem]


def names() -> list[str]:
    found = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    return sorted(name.replace("_", "-") for name in found)


def get(name: str, **options: Option) -> Problem:
    """A problem by name; options are its physics (b=0.4) and its data (row=, file=, noise=, labels=, seed=, sigma=)."""
    module = _module(name)
    allowed = inspect.signature(module.problem).parameters
    for option in options:
        if option not in allowed:
            raise expected(
                f"options of {name} among {', '.join(allowed)}",
                option,
                nearest(option, allowed, command("factorfield", "list", name)),
            )
        _check_kind(option, options[option], allowed[option])
    return module.problem(**options)


def _check_kind(name: str, value: Option, parameter: inspect.Parameter) -> None:
    """Does a value suit the option's annotation? Options are whole numbers, numbers or texts."""
    kinds = str(parameter.annotation).split(" | ")
    if value is None and "None" in kinds:
        return
    number = value if isinstance(value, numbers.Real) and not isinstance(value, bool) else math.nan
    if "float" in kinds and not abs(number) <= LARGEST_NUMBER:
        raise expected(f"a number for {name}, finite and no larger than {LARGEST_NUMBER:g}", value, f"{name}=1.0")
    if kinds[0] == "int" and not (isinstance(number, numbers.Integral) and 0 <= int(number) < 2**63):
        raise expected(f"a whole number for {name}, 0 or more", value, f"{name}=1")
    if "str" in kinds and not isinstance(value, str | os.PathLike):
        raise expected(f"text for {name}", value, f"{name}=...")


def options(name: str) -> dict[str, Option]:
    """The options of a problem and their defaults."""
    return {key: option.default for key, option in inspect.signature(_module(name).problem).parameters.items()}


def summary(name: str) -> str:
    """The first line of a problem's description."""
    return (_module(name).__doc__ or "").strip().splitlines()[0]


def _module(name: str) -> Module:
    known = names()
    if name not in known:
        raise expected(f"a problem among {', '.join(known)}", name, nearest(name, known, "factorfield list"))
    return cast(Module, importlib.import_module(f"{__name__}.{name.replace('-', '_')}"))
