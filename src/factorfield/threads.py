"""One BLAS thread where two would only wait for each other.

NumPy and SciPy each bring a BLAS with threads of its own. On small matrices their synchronisation costs more than the
arithmetic: a solve with 200 weights takes five times as long with two threads as with one (benchmarks/joint.py).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

SMALL = 1000  # weights below which one thread is faster
_lock = threading.Lock()
_solving = 0  # how many threads of ours want one thread of BLAS
_limit: Any = None  # what the first of them set, for the last one to undo


@contextmanager
def suited_to(size: int) -> Iterator[None]:
    """Limit BLAS to one thread for problems of fewer than SMALL weights; leave the user's setting otherwise.

    The limit is the whole process's: of several threads the first sets it, and the last one undoes it.
    """
    if size >= SMALL:
        yield
        return
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _solving, _limit
    with _lock:
        if _solving == 0:
            _limit = _controller().limit(limits=1, user_api="blas")
        _solving += 1


def _leave() -> None:
    global _solving, _limit
    with _lock:
        _solving -= 1
        if _solving == 0:
            _limit.restore_original_limits()
            _limit = None


@lru_cache(maxsize=1)
def _controller() -> Any:
    import numpy as np  # both libraries must be loaded before they are looked for
    from scipy import linalg
    from threadpoolctl import ThreadpoolController

    assert np is not None and linalg is not None
    return ThreadpoolController()
