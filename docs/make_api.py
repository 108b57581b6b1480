"""Writes docs/api.md from signatures and docstrings of the public names.  python docs/make_api.py"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import factorfield as ff

PAGE = Path(__file__).parent / "api.md"
GROUPS = {
    "Describe a problem": [
        "Problem", "Equation", "Initial", "Boundary", "Observations", "Region", "Periodic", "Interval", "Unknown",
        "Table", "StudentT", "LogNormal", "ProblemFile", "read_problem",
    ],
    "Solve it": ["solve", "Solution", "load", "plot", "rank"],
    "Choose the model": ["Model", "default_model", "paper_model", "Identity", "PiecewiseExponential"],
    "Errors and advice": ["ProblemError", "AdviceWarning"],
    "Modules": ["problems", "methods", "metrics", "plotting", "report", "data"],
}  # fmt: skip
PARTS = {
    "problems": ("names", "get"),
    "methods": ("names", "get", "Chain", "Forward", "Joint", "Tree", "Laplace", "MeanField", "HMC", "VI", "SGD"),
    "metrics": ("score", "scores", "coverage", "crps", "nll", "pit_histogram"),
    "plotting": ("plot_comparison", "plot_audit", "plot_ranking", "plot_next"),
    "report": ("write", "page"),
    "data": (),
}
HEAD = """# API reference

Written by `python docs/make_api.py` from the docstrings and signatures of `factorfield.__all__`.
Start with the [quickstart](quickstart.md) or the [tutorials](tutorials.md).
"""


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    return "\n".join([HEAD, *(line for title, names in GROUPS.items() for line in group(title, names))])


def group(title: str, names: list[str]) -> Iterator[str]:
    yield f"## {title}\n"
    for name in names:
        value = getattr(ff, name)
        if isinstance(value, ModuleType):
            yield from of_module(name, value)
        elif inspect.isclass(value):
            yield from of_class(f"ff.{name}", value)
        else:
            yield from of_function(f"ff.{name}", value, "###")


def of_module(name: str, module: ModuleType) -> Iterator[str]:
    yield f"### ff.{name}\n"
    yield text(module)
    for key in PARTS[name]:
        value = getattr(module, key)
        part = of_class if inspect.isclass(value) else of_function
        yield from part(f"ff.{name}.{key}", value, "####")


def of_class(name: str, value: type, level: str = "###") -> Iterator[str]:
    yield f"{level} {name}\n"
    if not issubclass(value, BaseException):
        yield call(name, value)
    yield text(value)
    for key, part in vars(value).items():
        if key.startswith("_"):
            continue
        if isinstance(part, property):
            kind = tidy(str(inspect.signature(part.fget).return_annotation))  # type: ignore[arg-type]
            yield f"- `.{key} -> {kind}`: {one_line(part)}".removesuffix(": ")
        elif not inspect.getdoc(part):
            continue
        elif inspect.isfunction(part) or isinstance(part, classmethod | staticmethod):
            yield f"- `.{key}{signature(getattr(value, key))}`: {one_line(part)}"
    yield ""


def of_function(name: str, value: Any, level: str) -> Iterator[str]:
    yield f"{level} {name}\n"
    yield call(name, value)
    yield text(value)


def call(name: str, value: Any) -> str:
    shown = name + signature(value)
    if len(shown) > 100:  # one argument a line
        arguments = [str(each) for each in inspect.signature(value).parameters.values() if each.name != "self"]
        shown = f"{name}(\n" + "".join(f"    {tidy(each)},\n" for each in arguments) + shown[shown.rindex(")") :]
    return f"```text\n{shown}\n```\n"


def signature(value: Any) -> str:
    found = inspect.signature(value)
    kept = [each for each in found.parameters.values() if each.name != "self"]
    return tidy(str(found.replace(parameters=kept))).removesuffix(" -> None")


def tidy(shown: str) -> str:
    """Without module prefixes, addresses and the quotes around annotations."""
    shown = re.sub(r"(: |-> )'([^']*)'", r"\1\2", shown)
    return re.sub(r" at 0x[0-9a-f]+", "", re.sub(r"\b(factorfield|collections|typing|os)(\.\w+)*\.(?=\w)", "", shown))


def text(value: Any) -> str:
    """The docstring; paragraphs in columns (name, two blanks, meaning) keep them."""
    paragraphs = (inspect.getdoc(value) or "").strip().split("\n\n")
    return "\n\n".join(f"```text\n{each}\n```" if re.search(r"\S {2,}\S", each) else each for each in paragraphs) + "\n"


def one_line(value: Any) -> str:
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())


if __name__ == "__main__":
    main()
