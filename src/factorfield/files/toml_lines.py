"""On which line of a TOML text a key stands: the standard library's reader does not say."""

from __future__ import annotations

import re
from collections.abc import Iterator

Path = tuple[str | int, ...]
PART = re.compile(r"""\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)'|([A-Za-z0-9_-]+))\s*(\.?)""")
TOKEN = re.compile(r'"{3}|\'{3}|"(?:[^"\\]|\\.)*"|\'[^\']*\'|#.*|[\[{]|[\]}]')


def line_of(text: str, path: Path) -> int:
    """The line (from 1) of the longest stretch of `path` that the text spells out; 1 if there is none."""
    best, line = 0, 1
    for number, found in _keys(text):
        shared = 0
        while shared < min(len(found), len(path)) and found[shared] == path[shared]:
            shared += 1
        if shared in (len(found), len(path)) and shared > best:
            best, line = shared, number
    return line


def _keys(text: str) -> Iterator[tuple[int, Path]]:
    """Every table and key of a text with its line, in order; entries of arrays of tables are counted."""
    table: Path = ()
    counts: dict[Path, int] = {}
    depth, closing = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        if depth == 0 and not closing:
            start = line.lstrip()
            if start.startswith("["):
                table = _table(start, counts)
                yield number, table
                continue
            key = _parts(start)
            if key:
                yield number, (*table, *key)
        depth, closing = _inside(line, depth, closing)


def _table(line: str, counts: dict[Path, int]) -> Path:
    repeated = line.startswith("[[")
    plain = _parts(line.lstrip("["))
    path: list[str | int] = []
    for position, part in enumerate(plain):
        path.append(part)
        inner = tuple(path)
        if repeated and position == len(plain) - 1:
            counts[inner] = counts.get(inner, -1) + 1
        if inner in counts:
            path.append(counts[inner])
    return tuple(path)


def _parts(text: str) -> tuple[str, ...]:
    """The parts of a dotted key at the start of a line."""
    parts, position = [], 0
    while found := PART.match(text, position):
        parts.append(next(group for group in found.groups()[:3] if group is not None))
        position = found.end()
        if not found[4]:
            break
    return tuple(parts)


def _inside(line: str, depth: int, closing: str) -> tuple[int, str]:
    """How many brackets are open after a line, and the quotes that close a text of several lines."""
    position = 0
    while position < len(line):
        if closing:
            end = line.find(closing, position)
            if end < 0:
                return depth, closing
            position, closing = end + 3, ""
            continue
        token = TOKEN.search(line, position)
        if token is None:
            break
        position = token.end()
        if token[0] in ('"""', "'''"):
            closing = token[0]
        elif token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
    return depth, closing
