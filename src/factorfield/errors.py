"""The two ways the package speaks up: an error when a description is wrong, advice when it is merely weak."""

from __future__ import annotations

import difflib
import shlex
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class ProblemError(ValueError):
    """Something in a description cannot be used. One line: what was expected, what came, what to try."""


LONGEST = 400  # characters of a part of an error: names in it may come from a file
LONGEST_NAME, MOST_NAMES = 60, 500  # characters of a misspelt name, and how many it is compared with
FAILED = (ProblemError, ValueError, ArithmeticError)  # how a search ends that led nowhere; LinAlgError is a ValueError


@dataclass(frozen=True)
class Advice:
    """Something a user should know about a model or a solution: `kind` for programs, `text` for people.

    Methods return advice; only `solve` and `Solution.condition` turn it into warnings.
    """

    kind: str  # such as "contradiction", "free-directions", "modes", "corner"
    text: str
    about: str = ""  # the statement, coefficient or axis that it is about


class AdviceWarning(UserWarning):
    """Nothing is wrong, but the user should know (for instance: directions no factor settles)."""


def expected(what: str, received: object, attempt: str) -> ProblemError:
    """The one form of our errors: "expected ..., received ...; try ..."."""
    parts = shortened(what, LONGEST), shortened(received), shortened(attempt, LONGEST)
    return ProblemError(visible("expected {}, received {}; try {}".format(*parts)))


def visible(text: str) -> str:
    """Text that a terminal may show: control characters, and those that turn the direction of text, are spelt out."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def shortened(value: object, limit: int = 80) -> str:
    """A value as one short line of text, safe to print whatever a user passed."""
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 20]}... ({len(text)} characters)"


def shown_path(path: Path) -> str:
    """A path as people know it: from the current folder where it lies there."""
    here = Path.cwd()
    return visible(str(path.relative_to(here) if path.is_relative_to(here) else path))


def command(*words: str | Path) -> str:
    """A line for a shell: words from files and paths are quoted, so that nothing in them runs."""
    return shlex.join(visible(str(word)) for word in words)


def nearest(name: str, options: Iterable[str], otherwise: str = "") -> str:
    """Advice for a misspelt name: the closest option if there is one, else `otherwise`, else all of them.

    Only short names are compared, and not more than a few hundred: the time grows with the square of their length.
    """
    known = sorted(options)
    short = [option for option in known if len(option) <= LONGEST_NAME][:MOST_NAMES]
    near = short if len(name) <= LONGEST_NAME else []
    close = difflib.get_close_matches(name.lower(), near, n=1, cutoff=0.5)
    if not known:
        return "leaving it out"
    return f"{close[0]!r}" if close else otherwise or "one of " + ", ".join(known)


def needed(module: str, extra: str) -> Any:
    """An optional package, or one line on how to get it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        attempt = f"pip install 'factorfield[{extra}]'"
        raise expected(f"the package {module}", "an installation without it", attempt) from None


def warn_of(advice: Iterable[Advice], stacklevel: int) -> None:
    """Turn advice into warnings, once; `stacklevel` as in warnings.warn, counted from the caller of this function."""
    for text in dict.fromkeys(entry.text for entry in advice):
        warnings.warn(text, AdviceWarning, stacklevel=stacklevel + 1)


@contextmanager
def recorded() -> Iterator[list[str]]:
    """The texts of all advice given inside; every warning still reaches the user, when the block ends."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", AdviceWarning)
        try:
            yield texts
        finally:
            told = list(found)
    texts += [str(entry.message) for entry in told if issubclass(entry.category, AdviceWarning)]
    for entry in told:
        warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)
