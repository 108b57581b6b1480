"""The line of a key in a TOML text."""

from __future__ import annotations

import pytest

from factorfield.files import schema
from factorfield.files.toml_lines import line_of


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("name",), 1),
        (("a", "b", "c"), 4),
        (("a", "d", 1), 5),
        (("a", "after"), 9),
        (("list", 0, "x"), 11),
        (("list", 1, "x"), 14),
        (("list", 1, "deep", "y"), 16),
        (("list", 1, "text"), 13),  # what looks like a key inside a text is none: the block is what can be named
        (("list", 1, "missing"), 13),
        (("quoted key",), 2),
        (("list",), 10),
    ],
)
def test_the_line_of_a_key(path: schema.Path, line: int) -> None:
    text = '''name = "[x] # no comment"
"quoted key" = 1
[a]   # comment ]
b.c = { d = 1 }
d = [
  "not = a key",  # [
  2,
]
after = 1
[[list]]
x = 1

[[list]]
x = 2
[list.deep]
y = """
text = 3
"""'''
    assert line_of(text, path) == line
