"""What a result file says about itself: names and units by the CF conventions, and where the numbers come from.

See https://cfconventions.org: xarray, ncview and Panoply label axes by them, and a reader without factorfield learns
what was solved, how, by what and when.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from factorfield.problem.coefficients import Table
from factorfield.problem.domain import TIME
from factorfield.problem.problem import Condition, Equation, Initial, Observations, Problem, Unknown
from factorfield.version import __version__

if TYPE_CHECKING:
    import xarray as xr

    from factorfield.posterior.base import Posterior

CONVENTIONS = "CF-1.11"
AXES = {TIME: "T", "x": "X", "y": "Y", "z": "Z"}


def with_names(field: xr.Dataset, problem: Problem) -> xr.Dataset:
    """The field with CF names and axes, and units where they are known; numbers and coordinates stay as they are."""
    found = field.copy()
    several = len(problem.fields) > 1
    of = "" if several else f" of {problem.fields[0]}"
    units = _units(problem, problem.fields)
    found["mean"].attrs = {"long_name": f"posterior mean{of}", **units}
    found["std"].attrs = {"long_name": f"posterior standard deviation{of}", **units}
    found["mean"].attrs["ancillary_variables"] = "std"  # CF's word for: that one is the uncertainty of this one
    if several:
        found["field"].attrs = {"long_name": "name of the field"}
    for key, text in (("truth", "exact or reference solution"), ("stored", "field stored in the data file")):
        if key in found:
            found[key].attrs = {"long_name": f"{text}, {', '.join(problem.fields)}", **units, **found[key].attrs}
    for name in problem.domain.names:
        letter = {"axis": AXES[name]} if name in AXES else {}
        label = "time" if name == TIME else f"{name} coordinate"
        found[name].attrs = {"long_name": label, **letter, **found[name].attrs, **_units(problem, [name])}
        found[name].encoding["_FillValue"] = None  # CF: coordinates have no missing values
    return found


def with_coefficients(field: xr.Dataset, posterior: Posterior) -> xr.Dataset:
    """The posterior of unknown coefficients beside the field's, for readers without factorfield."""
    problem, found = posterior.problem, field.copy()
    for name, prior in problem.functions.items():
        function = posterior.predict({axis: np.asarray(field[axis]) for axis in prior.over}, of=name)
        for key, text in (("mean", "mean"), ("std", "standard deviation")):
            attributes = {"long_name": f"posterior {text} of {name}", **_units(problem, [name])}
            found[f"{name}_{key}"] = (function[key].dims, np.asarray(function[key]), attributes)
    values = posterior.parameters()
    if not values:
        return found
    found = found.assign_coords(coefficient=("coefficient", list(values), {"long_name": "name of the coefficient"}))
    summaries = {
        "mean": ("posterior mean", [v["mean"] for v in values.values()]),
        "std": ("posterior standard deviation", [v["std"] for v in values.values()]),
        "lower": ("lower end of the 90 % interval", [v["interval"][0] for v in values.values()]),
        "upper": ("upper end of the 90 % interval", [v["interval"][1] for v in values.values()]),
    }
    for key, (text, numbers) in summaries.items():
        attributes = {"long_name": f"{text} of the coefficient", **_units(problem, list(values))}
        found[f"coefficient_{key}"] = ("coefficient", numbers, attributes)
    units = [problem.units.get(name, "") for name in values]
    if any(units):
        found["coefficient_units"] = ("coefficient", units, {"long_name": "units of the coefficient"})
    return found


def _units(problem: Problem, names: Sequence[str]) -> dict[str, str]:
    """The units that all these names share, as an attribute; nothing where that is not known."""
    shared = {problem.units.get(name, "") for name in names}
    unit = shared.pop() if len(shared) == 1 else ""
    return {"units": unit} if unit else {}


def provenance(problem: Problem, settings: Mapping[str, object], versions: Mapping[str, str]) -> dict[str, str]:
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
        "equations": "\n".join(f"{e.text}{_sigma_text(e)}" for e in problem.equations),
        "conditions": "\n".join(_condition_text(condition, problem) for condition in problem.conditions) or "none",
        **({} if problem.region is None else {"region": repr(problem.region)}),
        "constants": "\n".join(f"{n} = {_value(value)}" for n, value in problem.constants.items()) or "none",
        "prior": "\n".join(_prior(n, u) for n, u in {**problem.unknowns, **problem.functions}.items()) or "none",
        "method": method,
    }
    # of the model's points, and of the method's own draws; both are options that the settings tell in full
    found |= {key: str(settings[key]) for key in ("seed", "method_seed") if key in settings}
    commit = git_commit(Path(__file__).resolve().parents[3])
    if commit:
        found["git_commit"] = commit
        found["history"] += f" at commit {commit}"
    return found


def _condition_text(condition: Condition, problem: Problem) -> str:
    sigma = _sigma_text(condition)
    if isinstance(condition, Observations):
        what = condition.of or ", ".join(name for name in condition.columns if name not in problem.domain.names)
        return f"{max(np.size(values) for values in condition.columns.values())} observations of {what}{sigma}"
    if isinstance(condition, Initial):
        return f"initially {condition.text}{sigma}"
    return f"{condition.text} {f'at {condition.where}' if condition.where else 'all around'}{sigma}"


def _prior(name: str, unknown: Unknown) -> str:
    """What was believed of a coefficient before anything was measured; the result is in coefficient_mean."""
    over = f"({', '.join(unknown.over)})" if unknown.over else ""
    return f"{name}{over} = {unknown.text}{', positive' if unknown.positive else ''}"


def _value(value: float | Table) -> str:
    return f"a table over {', '.join(value.axes)}" if isinstance(value, Table) else str(value)


def _sigma_text(item: Equation | Condition) -> str:
    if item.sigma is None:
        return ""  # chosen or estimated while solving: the settings tell
    return f" +- {float(np.ravel(item.sigma)[0]):g}" if np.size(item.sigma) == 1 else " +- a sigma for each"


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
