"""Texts from anywhere: equations and problem files are refused in one line or read, quickly, and nothing is ever run.

FACTORFIELD_FUZZ=20000 asks for that many examples of each kind; the counts are printed at the end with -s.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import factorfield
from factorfield.errors import ProblemError
from factorfield.files.problem_file import ProblemFile, parse_problem
from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem

EXAMPLES = int(os.environ.get("FACTORFIELD_FUZZ", "300"))
SECONDS = 1.0  # of this process's own time: other processes must not make a test fail
FOLDER = Path(factorfield.__file__).parent / "cli" / "templates"
TEMPLATES = {path.stem: path.read_text() for path in sorted(FOLDER.glob("*.toml"))}
SPOON = "fuzz-was-here"  # a file that would appear if a text were evaluated
COUNTS: Counter[str] = Counter()

fuzz = settings(
    max_examples=EXAMPLES, deadline=None, database=None, derandomize=EXAMPLES <= 1000,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip

# -- equations

ATOMS = st.sampled_from(
    [
        "u",
        "u_t",
        "u_x",
        "u_xx",
        "u_xt",
        "v",
        "v_x",
        "nu",
        "k",
        "x",
        "t",
        "pi",
        "0",
        "1",
        "2",
        "0.5",
        "1e-3",
        "1e300",
        "10**20",
    ]
)
FUNCTIONS = st.sampled_from(["sin", "cos", "tan", "exp", "log", "sqrt", "sinh", "tanh", "atan", "erf", "abs", "open"])
OPERATORS = st.sampled_from([" + ", " - ", "*", "/", "**"])


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, OPERATORS, inner).map("".join),
        inner.map("({})".format),
        inner.map("-{}".format),
        st.tuples(FUNCTIONS, inner).map(lambda parts: f"{parts[0]}({parts[1]})"),
    )


EXPRESSIONS = st.recursive(ATOMS, combined, max_leaves=16)
HOSTILE = st.sampled_from(
    [
        f"__import__('pathlib').Path('{SPOON}').touch()",
        f"open('{SPOON}', 'w')",
        f"eval(\"open('{SPOON}','w')\")",
        f"[open('{SPOON}','w') for _ in (1,)]",
        f"(lambda: open('{SPOON}','w'))()",
        f"u.__class__.__base__.__subclasses__()[0]('{SPOON}')",
        "f'{u}'",
        "9**9**9**9",
        "u**(10**10)",
        "factorial(10**6)",
        "(" * 500 + "u" + ")" * 500,
        "u" + "+u" * 700,
        "-" * 1500 + "u",
        "((((((u**20)**20)**20)**20)**20)**20)",
        "(1+u)**20*(1+u_x)**20*(1+u_xx)**20",
    ]
)
TEXTS = st.one_of(
    EXPRESSIONS,
    st.tuples(EXPRESSIONS, EXPRESSIONS).map(" = ".join),
    st.text(max_size=60),
    st.text(alphabet="uvxt_=+-*/().,^ 0123456789eE'\"[]{}\\\n", max_size=60),
    st.tuples(EXPRESSIONS, OPERATORS, HOSTILE).map("".join),
)


def posed(text: str) -> Problem:
    return Problem(
        ["u_t = " + text if "=" not in text and len(text) % 2 else text, "v_t = v_xx"],
        {"x": Periodic(0, 1), "t": Interval(0, 1)},
        {"nu": 0.1, "k": 2.0},
    )


@fuzz
@given(TEXTS)
def test_an_equation_is_read_or_refused(text: str) -> None:
    tried("equation", lambda: posed(text), text)


# -- problem files

SCRAPS = st.one_of(
    st.sampled_from(
        [
            "nan", "-inf", "1e999", "true", "''", '"x"', "[]", "[[]]", "{}", "[1, 2]", "{ mean = 1, std = 1 }", "0x10",
            "1979-05-27", '"/etc/passwd"', '"../a.csv"', '"u_t = u"', f"\"open('{SPOON}', 'w')\"", "9" * 500, "-1", "0",
            '"student-t"', "{ student-t = 3 }", '{ file = "measurements.csv", x = "position", value = "height" }',
        ]
    ),
    st.text(max_size=20),
    st.floats().map(repr),
    st.integers().map(str),
)  # fmt: skip
KEYS = st.sampled_from(
    ["equation", "domain", "x", "t", "u", "y", "text", "sigma", "at", "of", "noise", "average", "file", "method",
     "name", "modes", "model", "output", "solution", "parameters", "nu", "initial", "boundary", "observations", "value"]
)  # fmt: skip


@st.composite
def changed_templates(draw: st.DrawFn) -> str:
    """A template with some lines left out, repeated, moved, or given other values."""
    lines = TEMPLATES[draw(st.sampled_from(sorted(TEMPLATES)))].splitlines()
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1))
        kind = draw(st.sampled_from(["drop", "repeat", "swap", "value", "key", "insert", "cut"]))
        key, sign, value = lines[at].partition("=")
        if kind == "drop" and len(lines) > 1:
            del lines[at]
        elif kind == "repeat":
            lines.insert(at, lines[at])
        elif kind == "swap":
            other = draw(st.integers(0, len(lines) - 1))
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == "value" and sign:
            lines[at] = f"{key}= {draw(SCRAPS)}"
        elif kind == "key" and sign:
            lines[at] = f"{draw(KEYS)} ={value}"
        elif kind == "insert":
            lines.insert(at, f"{draw(KEYS)} = {draw(SCRAPS)}")
        else:
            lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
    return "\n".join(lines)


@st.composite
def random_files(draw: st.DrawFn) -> str:
    """Headers and keys in any order."""
    header = st.tuples(st.sampled_from(["[{}]", "[[{}]]"]), KEYS).map(lambda parts: parts[0].format(parts[1]))
    entry = st.tuples(KEYS, SCRAPS).map(" = ".join)
    return "\n".join(draw(st.lists(st.one_of(header, entry), max_size=12)))


@fuzz
@given(st.one_of(changed_templates(), random_files(), st.text(max_size=200)), st.booleans())
def test_a_problem_file_is_read_or_refused(text: str, with_equation: bool) -> None:
    start = 'equation = "u_t = u_xx"\ndomain = { x = [0, 1], t = [0, 1] }\n' if with_equation else ""
    tried("problem file", lambda: parse_problem(start + text, FOLDER / "fuzzed.toml"), text)


def tried(kind: str, read: Callable[[], Problem | ProblemFile], text: str) -> None:
    """Read it: a result or a ProblemError of one line, in time, and no file made."""
    ended, spent = once(read, text)
    COUNTS[f"{kind}: {ended}"] += 1
    if spent > SECONDS:  # after thousands of texts Python stops for a second to collect garbage, at any of them
        spent = once(read, text)[1]
    assert spent < SECONDS, (spent, text)
    assert not Path(SPOON).exists(), text


def once(read: Callable[[], Problem | ProblemFile], text: str) -> tuple[str, float]:
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            read()
            ended = "read"
        except ProblemError as problem:
            assert "\n" not in str(problem) and "expected" in str(problem), text
            ended = "refused"
    return ended, time.process_time() - begin


@pytest.fixture(scope="module", autouse=True)
def counts() -> object:
    yield
    print(dict(COUNTS))
    # a fuzzer whose texts are all refused at the door, or all read, tests little
    for kind in ("equation", "problem file"):
        assert COUNTS[f"{kind}: read"] > 0 and COUNTS[f"{kind}: refused"] > 0
