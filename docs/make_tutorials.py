"""Writes docs/tutorials.md: every script of examples/ with what it printed.

python docs/make_tutorials.py
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "tutorials.md"
TUTORIALS = {
    "heat_from_noisy_data": "Heat from noisy data",
    "forecast": "A forecast, and the next readings",
    "damped_wave": "A damped wave, its damping unknown",
    "unknown_speed": "The speed of a wave",
    "clamped_beam": "A clamped beam with a table of stiffness",
    "epidemic": "An epidemic with outliers",
    "unknown_source": "An unknown source f(x)",
    "scattered_poisson": "A membrane from scattered heights",
    "river_decay": "First or second order: decay in a river",
}
NOTES = {
    "heat_from_noisy_data": "The std falls with time because the equation damps what the labels could not settle.",
    "forecast": "`extend` moves the end of time; `condition` adds readings. Both keep windows, modes and noise levels, "
    "and begin at the coefficients that were found, also on a solution that `ff.load` read. To ask beyond the data "
    "from the start, let the domain of t end later than they do: what is solved there is the forecast.",
    "damped_wave": "`ff.Unknown` in place of a number is all that makes a coefficient unknown. "
    "Leave out `ff.Initial(...)` if the start was not known.",
    "unknown_speed": "Here the model is chosen by hand: two frequencies along x, polynomials of degree 24 in time, "
    "and one joint Gaussian over all weights.",
    "clamped_beam": "A table is a cubic spline: its derivatives `S_x` and `S_xx` may stand in the equation. The std "
    "of the tip says how far equation and conditions are trusted "
    "([sigmas](your-own-pde.md#sigmas-that-you-leave-out)), not how well the equation was solved. "
    "Give `sigma=` if you know better.",
    "epidemic": 'A system is a list of equations. With `noise="student-t"` values that are far off hardly count.',
    "unknown_source": "A second derivative of noisy data is hard to find. Where the data cannot tell, the prior's "
    "smoothness does, and the std at the ends is wide.",
    "scattered_poisson": "The same text serves Helmholtz (`u_xx + u_yy + k**2*u`). The std grows towards the two sides "
    "that nothing holds.",
    "river_decay": "Both equations get their own k, with its prior; what counts is how probable each makes the "
    "samples, all k considered ([which equation](after-the-solution.md#which-equation)).",
}
HEAD = """# Tutorials

These are the scripts of `examples/`, none much longer than forty lines. Each makes its own data from a known truth and
solves. An assertion, in the script or in a test, checks that it finds the truth again. `python docs/make_tutorials.py`
writes this page with the lines that the scripts print.
"""


def main() -> None:
    PAGE.write_text("\n".join([HEAD, *(section(name) for name in TUTORIALS)]), encoding="utf-8")


def section(name: str) -> str:
    script = ROOT / "examples" / f"{name}.py"
    about = (ast.get_docstring(ast.parse(script.read_text())) or "").splitlines()[0]
    return f"## {TUTORIALS[name]}\n\n{about}\n\n{block(script)}\n```text\n{printed(script)}```\n\n{NOTES[name]}\n"


def block(script: Path) -> str:
    """`py`, not `python`: the tests run the script itself, not the page."""
    code = script.read_text(encoding="utf-8").split('"""')[2].lstrip()
    return f"    python examples/{script.name}\n\n```py\n{code}```\n"


def printed(script: Path) -> str:
    one = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True, env=one).stdout


if __name__ == "__main__":
    main()
