"""Signals: SIGTERM ends a command as Ctrl-C does, with one line, whole files and no workers left behind.

While a command runs, a signal is an exception that unwinds it. Where an exception would be lost or printed by others
(while modules are imported, in a finaliser, before and after the command) the process ends on the spot.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

LINE = "interrupted; files are whole: as before, or finished"
SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Ended(SystemExit):
    """By a signal. Not KeyboardInterrupt: Python ends itself by SIGINT if code that it compiles on the way saw one."""


def end_at_once(number: int, _: object = None) -> None:
    """A handler: say so and leave, without unwinding."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)  # a second one has nothing to add
    atomic = sys.modules.get("factorfield.files.atomic")
    getattr(atomic, "remove_unfinished", lambda: None)()  # not there if it is just being imported
    with suppress(OSError):
        os.write(2, f"{LINE}\n".encode())
    os._exit(128 + number)


class Unwinding:
    """The handlers of a command that runs: the first signal raises `Ended`, a second one ends at once."""

    def __init__(self) -> None:
        self.received: int | None = None
        self.running = False
        self.ending = False  # the line is on its way: nothing more is heard

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.ending:
            return
        if not self.running or _is_importing(frame):
            end_at_once(number)
        self.received, self.running = number, False
        raise Ended(128 + number)

    def unraisable(self, lost: Any) -> None:
        """A hook for exceptions where nothing can catch them, such as in a finaliser."""
        if isinstance(lost.exc_value, Ended):
            end_at_once(int(lost.exc_value.code or 128) - 128)
        sys.__unraisablehook__(lost)


def _is_importing(frame: FrameType | None) -> bool:
    """Extension modules that are being loaded print an exception that they do not expect, or turn it into another."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


@contextmanager
def unwinding() -> Iterator[Unwinding]:
    handler = Unwinding()
    if threading.current_thread() is not threading.main_thread():  # only there may signals be handled
        yield handler
        return
    hook, sys.unraisablehook = sys.unraisablehook, handler.unraisable
    before = {number: signal.signal(number, handler) for number in SIGNALS}
    try:
        yield handler
    finally:
        for number, former in before.items():
            signal.signal(number, signal.SIG_IGN if handler.ending else former)
        sys.unraisablehook = hook
