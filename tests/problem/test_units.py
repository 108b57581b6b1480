"""Units: text by the name of an axis, field or coefficient."""

from __future__ import annotations

import pytest
import xarray as xr

import factorfield as ff
from factorfield.problem.units import checked_units, in_units, units_of_truth


@pytest.mark.parametrize("units", ["m", {"y": "m"}, {"x": ""}, {"x": "m\n"}, {"x": 3}, {"x": "m" * 31}])
def test_bad_units_are_refused(units: object) -> None:
    with pytest.raises(ff.ProblemError, match="units"):
        checked_units(units, ["x", "u"])


def test_a_known_solution_may_carry_units() -> None:
    truth = xr.DataArray([1.0, 2.0], dims="x", coords={"x": ("x", [0.0, 1.0], {"units": "1"})}, attrs={"units": "K"})
    assert units_of_truth(truth, ["x"], ["u"]) == {"u": "K"} and units_of_truth(None, ["x"], ["u"]) == {}


def test_labels_name_units_that_say_something() -> None:
    assert (in_units("x", "m"), in_units("x", "1"), in_units("x", "")) == ("x (m)", "x", "x")
