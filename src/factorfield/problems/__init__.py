"""Worked problems, one file each: `problem(**physics) -> Problem` with its truth.

A new file in this folder is a new problem: its name is the file's, with hyphens.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import Any

from factorfield.errors import expected, nearest
from factorfield.problem import Problem


def names() -> list[str]:
    found = [module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")]
    return sorted(name.replace("_", "-") for name in found)


def get(name: str, **options: Any) -> Problem:
    """A problem by name; options are its physics (b=0.4) and its data (row=, file=, noise=, labels=, seed=, sigma=)."""
    module = _module(name)
    allowed = inspect.signature(module.problem).parameters
    for option in options:
        if option not in allowed:
            raise expected(f"options of {name} among {', '.join(allowed)}", option, nearest(option, allowed))
    return module.problem(**options)


def summary(name: str) -> str:
    """The first line of a problem's description."""
    return (_module(name).__doc__ or "").strip().splitlines()[0]


def _module(name: str) -> Any:
    known = names()
    if name not in known:
        raise expected(f"a problem among {', '.join(known)}", name, nearest(name, known))
    return importlib.import_module(f"{__name__}.{name.replace('-', '_')}")
