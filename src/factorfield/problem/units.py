"""Units as text: they label pictures and files, and change no number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from factorfield.errors import expected, nearest

if TYPE_CHECKING:
    import xarray as xr

LONGEST = 30
PLAIN_NUMBER = "1"  # CF's word for a quantity without a dimension


def checked_units(units: object, names: Sequence[str]) -> dict[str, str]:
    """Units by the name of an axis, field or coefficient, all of them known."""
    if not isinstance(units, Mapping):
        raise expected("units by name", units, "units={'x': 'm', 't': 's'}")
    for name, unit in units.items():
        if name not in names:
            raise expected(f"units of some of {', '.join(names)}", name, nearest(str(name), names))
        if not isinstance(unit, str) or not unit.strip() or not unit.isprintable() or len(unit) > LONGEST:
            raise expected(f"the units of {name} as a short text", repr(unit), "'m', 'degC' or 'kg m-3'")
    return {name: unit.strip() for name, unit in units.items()}


def units_of_truth(truth: xr.DataArray | None, axes: Sequence[str], fields: Sequence[str]) -> dict[str, str]:
    """The units that a known solution carries in its attributes, as files from elsewhere do."""
    if truth is None or not hasattr(truth, "attrs"):
        return {}
    units = {name: truth[name].attrs.get("units") for name in axes if name in truth.coords}
    units |= dict.fromkeys(fields, truth.attrs.get("units"))
    told = {name: unit for name, unit in units.items() if isinstance(unit, str) and unit not in ("", PLAIN_NUMBER)}
    return {name: unit for name, unit in told.items() if unit.isprintable() and len(unit) <= LONGEST}


def in_units(label: str, unit: str) -> str:
    """A label with its units, "x (m)", where they are known and say something."""
    return label if unit in ("", PLAIN_NUMBER) else f"{label} ({unit})"
