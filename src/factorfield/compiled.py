"""Functions compiled by Numba, and where the machine code is kept from one process to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """`numba.njit(**options)` that compiles once per machine.

    Numba keeps machine code beside the source, else (an installation that cannot be written) in the user's cache
    folder; NUMBA_CACHE_DIR names another one. With no folder to write, a function compiles once per process.
    """
    from numba import njit

    def decorated(function: Function) -> Function:
        try:
            kept: Function = njit(cache=True, **options)(function)
        except RuntimeError:  # how Numba says that there is no such folder
            kept = njit(**options)(function)
        return kept

    return decorated
