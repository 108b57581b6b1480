"""Compiled functions: kept on disk where that is possible, and usable where it is not."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba import njit

import factorfield as ff
from factorfield.compiled import compiled
from factorfield.methods.mean_field import kernel
from factorfield.methods.mean_field.layout import lay_out

SMALL = {"modes": {"x": 2, "t": 2}, "labels": 64}


def test_a_function_compiles_where_no_folder_can_keep_it() -> None:
    names: dict[str, object] = {}
    exec(compile("def double(x):\n    return 2.0 * x\n", "<no file>", "exec"), names)
    with pytest.raises(RuntimeError, match="no locator"):
        njit(cache=True)(names["double"])
    assert compiled()(names["double"])(1.5) == 3.0  # type: ignore[type-var]


def test_the_papers_kernel_is_kept_in_the_named_folder_and_read_from_it(tmp_path: Path) -> None:
    code = (
        "import factorfield as ff\n"
        "from factorfield.methods.mean_field.kernel import sweep\n"
        f"model = ff.paper_model(ff.problems.get('advection', b=0.1), **{SMALL})\n"
        "ff.solve(model, method='mean-field', epochs=1)\n"
        "print(sum(sweep.stats.cache_hits.values()), sum(sweep.stats.cache_misses.values()))"
    )
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    found = [
        subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True).stdout
        for _ in range(2)
    ]
    assert [text.split() for text in found] == [["0", "1"], ["1", "0"]]
    assert list(tmp_path.rglob("kernel.sweep*.nbi"))


def test_the_papers_models_compile_no_relation_of_their_own() -> None:
    model = ff.paper_model(ff.problems.get("fisher-kpp", nu=0.5, rho=1.0), **SMALL)
    assert lay_out(model, True, 0.0).relation is None


def test_the_kernel_assigns_to_no_slice() -> None:
    """Numba compiles the error message of a slice assignment, text handling included: a third of the whole."""
    tree = ast.parse(inspect.getsource(kernel))
    targets = [target for node in ast.walk(tree) if isinstance(node, ast.Assign) for target in node.targets]
    assert targets and not any(isinstance(t, ast.Subscript) and isinstance(t.slice, ast.Slice) for t in targets)
