"""What a result file says about itself: names and units by the CF conventions, and where the numbers come from.

See https://cfconventions.org: xarray, ncview and Panoply label axes by them, and a reader without factorfield learns
what was solved, how, by what and when.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from factorfield.coefficients import Table
from factorfield.domain import TIME
from factorfield.problem import Condition, Equation, Initial, Observations, Problem
from factorfield.version import __version__

if TYPE_CHECKING:
    import xarray as xr

CONVENTIONS = "CF-1.11"
AXES = {TIME: "T", "x": "X", "y": "Y", "z": "Z"}


def described(field: xr.Dataset, problem: Problem) -> xr.Dataset:
    """The field with CF names, units and axes; numbers and coordinates stay as they are."""
    found = field.copy()
    of = ", ".join(problem.fields)
    found["mean"].attrs = {"long_name": f"posterior mean of {of}", "units": _units(problem)}
    found["std"].attrs = {"long_name": f"posterior standard deviation of {of}", "units": _units(problem)}
    found["mean"].attrs["ancillary_variables"] = "std"  # CF's word for: that one is the uncertainty of this one
    for key, text in (("truth", "exact or reference solution"), ("stored", "field stored in the data file")):
        if key in found:
            found[key].attrs = {"long_name": f"{text}, {of}", "units": _units(problem), **found[key].attrs}
    for name in problem.domain.names:
        letter = {"axis": AXES[name]} if name in AXES else {}
        label = "time" if name == TIME else f"{name} coordinate"
        found[name].attrs = {"long_name": label, "units": _units(problem, name), **letter, **found[name].attrs}
        found[name].encoding["_FillValue"] = None  # CF: coordinates have no missing values
    return found


def _units(problem: Problem, axis: str | None = None) -> str:
    """The units that the truth carries, of itself or of an axis; else numbers are numbers."""
    if problem.truth is None:
        return "1"
    told = problem.truth.attrs if axis is None else problem.truth[axis].attrs
    return str(told.get("units", "1"))


def provenance(problem: Problem, settings: Mapping[str, Any], versions: Mapping[str, str]) -> dict[str, str]:
    """Attributes that people read: the problem as text, the method, who wrote the file and when."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    solved_by = f"factorfield {versions.get('factorfield', __version__)}"
    method = str(settings.get("method", "an unnamed method"))
    found = {
        "Conventions": CONVENTIONS,
        "title": problem.name or problem.equations[0].text,
        "source": solved_by,
        "date_created": now,
        "history": f"{now}: solved with {solved_by} by {method}, written by factorfield {__version__}",
        "equations": "\n".join(f"{e.text}{_trust(e)}" for e in problem.equations),
        "conditions": "\n".join(_text(condition, problem) for condition in problem.conditions) or "none",
        "coefficients": "\n".join(f"{n} = {_value(value)}" for n, value in problem.parameters.items()) or "none",
        "method": method,
    }
    # of the model's points, and of the method's own draws; both are options that the settings tell in full
    found |= {key: str(settings[key]) for key in ("seed", "method_seed") if key in settings}
    commit = git_commit(Path(__file__).resolve().parents[2])
    if commit:
        found["git_commit"] = commit
        found["history"] += f" at commit {commit}"
    return found


def _text(said: Condition, problem: Problem) -> str:
    if isinstance(said, Observations):
        what = said.of or ", ".join(name for name in said.columns if name not in problem.domain.names)
        count = max(np.size(values) for values in said.columns.values())
        return f"{count} observations of {what}{_trust(said)}"
    if isinstance(said, Initial):
        return f"initially {said.text}{_trust(said)}"
    return f"{said.text} at {', '.join(f'{axis} = {value}' for axis, value in said.at.items())}{_trust(said)}"


def _value(value: Any) -> str:
    return f"a table over {', '.join(value.axes)}" if isinstance(value, Table) else str(value)


def _trust(said: Equation | Condition) -> str:
    if said.sigma is None:
        return ""  # chosen or estimated while solving: the settings tell
    return f" +- {float(np.ravel(said.sigma)[0]):g}" if np.size(said.sigma) == 1 else " +- a sigma for each"


@cache
def git_commit(root: Path) -> str:
    """The commit of a checkout, "-dirty" if files differ from it; empty for an installed package, or without git."""
    if not (root / ".git").exists():
        return ""
    # no optional locks: writing a result must not touch the index of the user's checkout
    command = ["git", "--no-optional-locks", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        done = subprocess.run([*command, "--exclude=*"], capture_output=True, text=True, timeout=5, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
