"""One BLAS thread where two would only wait for each other.

NumPy and SciPy each bring a BLAS with threads of its own. On small matrices their synchronisation costs more than the
arithmetic: a solve with 200 weights takes five times as long with two threads as with one (benchmarks/joint.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

SMALL = 1000  # weights below which one thread is faster


@contextmanager
def suited_to(size: int) -> Iterator[None]:
    """Limit BLAS to one thread for problems of fewer than SMALL weights; leave the user's setting otherwise."""
    if size >= SMALL:
        yield
    else:
        with _controller().limit(limits=1, user_api="blas"):
            yield


@lru_cache(maxsize=1)
def _controller() -> Any:
    import numpy as np  # both libraries must be loaded before they are looked for
    from scipy import linalg
    from threadpoolctl import ThreadpoolController

    assert np is not None and linalg is not None
    return ThreadpoolController()
