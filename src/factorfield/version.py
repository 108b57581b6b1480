"""The version, alone in its file so that building a wheel needs no imports."""

from __future__ import annotations

from functools import cache

__version__ = "0.1.0"


def versions() -> dict[str, str]:
    """Python, this package and those its numbers come from."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    found = {"factorfield": __version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "sympy", "numba"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
