"""What shape is the code in? Sizes, the way of a default solve through the files, long functions, loose types, cycles.

    python benchmarks/house.py                    this checkout
    python benchmarks/house.py /tmp/before .      two checkouts side by side, as a Markdown table

The way is that of `ff.solve(ff.problems.get("heat"))` in a process of its own: package files and functions entered,
and hops, calls that go from one file of the package to another. Comprehensions count as functions before Python 3.12;
compare numbers of one Python only. Complexity is McCabe's, counted by ruff.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from rows import header, line

LINES, COMPLEXITY = 60, 12  # what functions should stay under, and at
KERNELS = re.compile("njit|jit|vectorize")  # decorators of compiled functions, which are counted apart
WAY = """
import json, sys, warnings
from pathlib import Path
import factorfield as ff
warnings.simplefilter("ignore")
root = str(Path(ff.__file__).parent)
functions, hops = set(), 0
def note(frame, event, argument):
    global hops
    if event == "call" and frame.f_code.co_filename.startswith(root):
        functions.add((frame.f_code.co_filename, frame.f_code.co_qualname))
        caller = frame.f_back.f_code.co_filename if frame.f_back else ""
        hops += caller.startswith(root) and caller != frame.f_code.co_filename
problem = ff.problems.get("heat")
ff.solve(problem)  # imports and caches are no part of the way
sys.setprofile(note)
ff.solve(problem)
sys.setprofile(None)
print(json.dumps({"files": len({file for file, _ in functions}), "functions": len(functions), "hops": hops}))
"""


def way(tree: Path) -> dict[str, int]:
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", WAY], env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def cycles(root: Path) -> int:
    """Groups of modules that import each other, nested and type-only imports included; the root only lists names."""
    names = {path: ".".join(("factorfield", *path.relative_to(root).with_suffix("").parts)) for path in sources(root)}
    known = {name.removesuffix(".__init__") for name in names.values()} - {"factorfield"}
    graph: dict[str, set[str]] = {}
    for path, name in names.items():
        found = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("factorfield"):
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                found |= (inner & known) | ({str(node.module)} if inner - known else set())
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
        module = name.removesuffix(".__init__")
        graph[module] = found & known - {module}
    reach = {name: reached(graph, name) for name in known}
    return len({frozenset(m for m in reach[name] if name in reach[m]) for name in known if name in reach[name]})


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        new = graph[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def sources(root: Path) -> list[Path]:
    return sorted(root.rglob("*.py"))


def long_functions(root: Path) -> tuple[int, int]:
    """Functions over `LINES` lines, and those of them that are compiled."""
    found = []
    for path in sources(root):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and (node.end_lineno or 0) - node.lineno + 1 > LINES:
                found.append(any(KERNELS.search(ast.unparse(mark)) for mark in node.decorator_list))
    return len(found), sum(found)


def complex_functions(root: Path) -> int:
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "C901", "--ignore-noqa"]
    options = ["--config", f"lint.mccabe.max-complexity={COMPLEXITY}", "--output-format", "json", "--exit-zero"]
    return len(json.loads(subprocess.run([*ruff, *options, str(root)], capture_output=True, check=True).stdout))


def shape(tree: Path) -> dict[str, str]:
    root = tree / "src" / "factorfield"
    text = [path.read_text() for path in sources(root)]
    steps, (long, compiled) = way(tree), long_functions(root)
    loose, looser = (len(re.findall(word, "".join(text))) for word in (r"\bAny\b", r"\b(?:Mapping|dict)\[str, Any\]"))
    numbers: dict[str, object] = {
        "modules at the package root": len(list(root.glob("*.py"))), "modules": len(text),
        "lines of src": sum(part.count("\n") for part in text),
        "files of the default heat solve": steps["files"], "its functions": steps["functions"],
        "its hops from file to file": steps["hops"],
        f"functions over {LINES} lines (compiled)": f"{long} ({compiled})",
        f"functions over complexity {COMPLEXITY}": complex_functions(root),
        "`Any`": loose, "`Mapping[str, Any]` and `dict[str, Any]`": looser,
        "import cycles, type-only ones too": cycles(root),
    }  # fmt: skip
    return {name: f"{value:,}" if isinstance(value, int) else str(value) for name, value in numbers.items()}


def commit(tree: Path) -> str:
    describe = ["git", "-C", str(tree), "describe", "--always", "--dirty", "--exclude", "*"]
    return subprocess.run(describe, capture_output=True, text=True).stdout.strip() or tree.name


def main() -> None:
    here = Path(__file__).parents[1]
    trees = [Path(name).resolve() for name in sys.argv[1:]] or [here]
    shapes = {commit(tree): shape(tree) for tree in trees}
    header("", *shapes)
    for name in next(iter(shapes.values())):
        line(name, *(numbers[name] for numbers in shapes.values()))


if __name__ == "__main__":
    main()
