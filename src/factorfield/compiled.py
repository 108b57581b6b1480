"""Functions compiled by Numba, and where the machine code is kept from one process to the next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from factorfield.errors import expected

PLANTED = ".numba_config.yaml"
Function = TypeVar("Function", bound=Callable[..., Any])


def numba() -> Any:
    """The package, but not by the settings of a file in the current folder, which may be a stranger's.

    Such a file may name a cache folder beside it, and what Numba finds in its cache it runs.
    """
    import importlib
    import sys

    if "numba" not in sys.modules and Path(PLANTED).exists():
        raise expected("a folder without settings of Numba", f"{PLANTED} in this one", "working in another folder")
    return importlib.import_module("numba")


def compiled(**options: Any) -> Callable[[Function], Function]:
    """`numba.njit(**options)` that compiles once per machine.

    Numba keeps machine code beside the source, else (an installation that cannot be written) in the user's cache
    folder; NUMBA_CACHE_DIR names another one. With no folder to write, a function compiles once per process.
    """
    njit = numba().njit

    def decorated(function: Function) -> Function:
        try:
            kept: Function = njit(cache=True, **options)(function)
        except RuntimeError:  # how Numba says that there is no such folder
            kept = njit(**options)(function)
        return kept

    return decorated
