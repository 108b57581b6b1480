"""The shape of the code base: imports go downhill, importing is cheap, files stay readable."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import factorfield as ff

SOURCE = Path(ff.__file__).parent
LEVELS = [
    {"version", "errors", "threads", "files", "toml_lines", "units"},
    {"gaussian", "activation", "domain", "metrics", "parsing", "sampled_kernel", "links", "schema"},
    {"chain_store"},
    {"basis", "noise", "stencil", "coefficients"},
    {"equation", "spectrum", "conditions"},
    {"consistency"},
    {"latent"},
    {"problem"},
    {"representation", "symbol", "metadata", "problem_text"},
    {"factors", "functions", "scales", "resolution", "data"},
    {"model", "problems", "problem_file"},
    {"paper", "posterior"},
    {"sampled", "chain_posterior", "continuation"},
    {"solution"},
    {"methods"},
    {"progress", "stand_ins"},
    {"solve", "compare", "estimate"},
    {"formula", "views"},
    {
        "plotting",
        "plotting_style",
        "plotting_fields",
        "plotting_checks",
        "plotting_graph",
        "report",
        "report_data",
        "report_conditions",
    },
    {"experiments"},
    {"cli_output"},
    {"cli_problems"},
    {"cli_data", "cli_files", "cli_reproduce", "cli_pictures", "cli_compare"},
    {"cli"},
    {"__main__"},
]


def level(module: str) -> int:
    return next(i for i, names in enumerate(LEVELS) if module in names)


def package_imports(path: Path) -> set[str]:
    """First component below factorfield of every import that runs with the module (not inside functions)."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("factorfield"):
            parts = node.module.split(".")
            found |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return found


def test_imports_go_downhill_only() -> None:
    for path in SOURCE.rglob("*.py"):
        module = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if module == "__init__":
            continue
        for imported in package_imports(path):
            assert imported == module or level(imported) <= level(module), f"{module} imports {imported} uphill"


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


def test_no_library_file_is_longer_than_400_lines() -> None:
    for path in SOURCE.rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, path
