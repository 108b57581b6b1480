"""The shape of the code base: imports go downhill, importing is cheap, functions stay on one screen."""

from __future__ import annotations

import ast
import graphlib
import re
import subprocess
import sys
import tokenize
from pathlib import Path

import pytest

import factorfield as ff

SOURCE = Path(ff.__file__).parent
# imports go from right to left and from later lines to earlier ones; rooms of one line may read each other
ROOMS = [
    {"errors", "version", "metrics", "progress", "threads", "compiled"},
    {"messages", "problem"}, {"space"}, {"forward"}, {"inference"}, {"model"}, {"posterior"}, {"files"},
    {"solution"}, {"methods"}, {"solving"},
    {"ranking"}, {"problems", "data"}, {"show"}, {"calibration"}, {"paper"}, {"cli"}, {"__main__"},
]  # fmt: skip
# inside a room imports go from later modules to earlier ones
ORDER = {
    "space": ["axes", "cells", "arcs", "cut", "grid", "region"],
    "forward": [
        "algebra", "newton", "radau", "inputs", "relations", "landmarks", "layout", "terms", "system", "discrete",
        "paths", "map",
    ],
    "inference": [
        "matern", "latents", "measurements", "fit", "sites", "hyper", "ladder", "segments", "stored", "solve",
    ],
}  # fmt: skip


def modules() -> dict[str, Path]:
    names = {path: ("factorfield", *path.relative_to(SOURCE).with_suffix("").parts) for path in SOURCE.rglob("*.py")}
    return {".".join(parts).removesuffix(".__init__"): path for path, parts in names.items()}


def imports_of(path: Path) -> set[str]:
    """Every import of our own modules, nested and type-only ones included."""
    found, known = set(), modules()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("factorfield"):
            both = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else str(node.module) for name in both}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("factorfield")}
    return found


def test_imports_go_downhill_only() -> None:
    def level(module: str) -> int:
        return next(i for i, rooms in enumerate(ROOMS) if module.split(".")[1] in rooms)

    for module, path in modules().items():
        for imported in imports_of(path) if module != "factorfield" else ():
            assert level(imported) <= level(module), f"{module} imports {imported} uphill"


@pytest.mark.parametrize("room", ORDER)
def test_imports_go_downhill_inside_a_room(room: str) -> None:
    order = ORDER[room]
    prefix = f"factorfield.{room}."
    inside = {name.removeprefix(prefix): path for name, path in modules().items() if name.startswith(prefix)}
    assert sorted(inside) == sorted(order), f"modules of {room}/ that ORDER does not list, or lists too many"
    for module, path in inside.items():
        for imported in imports_of(path):
            if imported.startswith(prefix):
                below = order.index(imported.removeprefix(prefix)) < order.index(module)
                assert below, f"{module} imports {imported} uphill"


def test_no_modules_import_each_other() -> None:
    graph = {module: imports_of(path) - {module} for module, path in modules().items() if module != "factorfield"}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError with the cycle


def test_functions_stay_on_one_screen() -> None:
    """At most 60 lines; compiled kernels are excepted by name."""
    excepted = {"sweep"}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name not in excepted:
                assert (node.end_lineno or 0) - node.lineno < 60, f"{path.name}: {node.name}"


def words_of(path: Path) -> str:
    """All comments and docstrings of a file; other strings may name files of a user."""
    with tokenize.open(path) as lines:
        tokens = list(tokenize.generate_tokens(lines.readline))
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    documented = ast.Module, ast.ClassDef, ast.FunctionDef
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, documented)]
    return "\n".join([*comments, *(ast.get_docstring(node) or "" for node in nodes)])


def test_files_that_comments_and_docstrings_name_exist() -> None:
    """Named from the folder of the file, from the package or from the root of the repository."""
    for path in SOURCE.rglob("*.py"):
        for name in re.findall(r"[\w/]+\.py\b", words_of(path)):
            folders = (path.parent, SOURCE, Path(__file__).parents[1])
            assert any((folder / name).is_file() for folder in folders), f"{path}: there is no {name}"


def test_importing_the_package_loads_no_third_party_package() -> None:
    heavy = "('numpy', 'scipy', 'sympy', 'numba', 'xarray', 'jax')"
    code = f"import sys, factorfield; print(','.join(m for m in {heavy} if m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == ""


def test_a_linear_solve_needs_no_compiler_and_no_plotting_library() -> None:
    code = (
        "import sys, factorfield as ff; p = ff.problems.get('heat'); ff.solve(p).predict(x=[0.5], t=[0.5]);"
        "print(','.join(m for m in ('numba','matplotlib','jax') if m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == ""


def test_every_public_name_exists_and_the_verb_survives_importing_its_module() -> None:
    assert all(hasattr(ff, name) for name in ff.__all__)
    code = "import factorfield.solving, factorfield as ff; print(len(ff.solve([])))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "0"
