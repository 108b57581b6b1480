"""What a result file holds besides text: arrays that are read when they are asked for, and whether they fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import expected
from factorfield.model.representation import Representation
from factorfield.model.splines import DEGREES
from factorfield.problem.hdf5 import check_numbers, is_variable
from factorfield.problem.problem import Problem

if TYPE_CHECKING:
    import h5py

Array = NDArray[np.float64]


class StoredArrays(Mapping[str, Array]):
    """The arrays of one group by name. Each is read once, and together they may ask for `room` bytes."""

    def __init__(self, datasets: Mapping[str, h5py.Dataset], group: str, room: int) -> None:
        self._datasets = {
            path.removeprefix(group): item
            for path, item in datasets.items()
            if path.startswith(group) and is_variable(item)
        }
        self._room = room
        self._read: dict[str, Array] = {}

    def take(self, datasets: Mapping[str, h5py.Dataset]) -> None:
        """Count these towards the room; refused where they are no numbers, or too many."""
        check_numbers(datasets, self._room)
        self._room -= sum(8 * item.size for item in datasets.values())

    def __getitem__(self, name: str) -> Array:
        if name not in self._read:
            dataset = self._datasets[name]
            self.take({name: dataset})
            self._read[name] = np.asarray(dataset[()], float)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._datasets)

    def __len__(self) -> int:
        return len(self._datasets)

    @property
    def declared(self) -> int:
        """How many numbers the group says that it holds."""
        return sum(item.size or 0 for item in self._datasets.values())


def check_fields(problem: Problem) -> None:
    """The truth and the stored field lie on grids over the problem's axes."""
    axes = set(problem.domain.names)
    for field in (problem.truth, problem.stored):
        if field is None:
            continue
        fits = axes <= {str(dim) for dim in field.dims} <= axes | {"field"} and axes <= set(field.coords)
        if not fits or not all(field[name].ndim == 1 and field[name].dtype.kind in "iuf" for name in axes):
            raise expected(f"a field over {', '.join(problem.domain.names)}", str(field.dims), "saving it again")


def checked_representation(forms: Mapping[str, Any], problem: Problem, arrays: StoredArrays) -> Representation:
    """The representation that a file describes, if it is one of this problem and its weights are in the file."""
    written = {*problem.fields, *problem.unknowns, *problem.functions}
    errors = {statement.error.name for statement in problem.statements if statement.error is not None}
    if not written <= set(forms) <= written | errors:
        raise expected(f"a form of each of {', '.join(sorted(written))}", ", ".join(forms) or "none", "saving it again")
    latents = [latent for form in forms.values() for latent in form["latents"]]
    for name, form in forms.items():
        axes, count = form["axes"], len(form["readout"])
        fits = len(form["latents"]) == count and axes == list(form["basis"]) and set(axes) <= set(problem.domain)
        if not fits or len(set(latents)) != len(latents):
            received = f"{form['latents']} over {axes}"
            raise expected(f"{count} units of {name} over its axes", received, "saving it again")
    representation = Representation.from_spec(forms, arrays)
    for name, latent in representation.latents.items():
        basis, rotation = latent.basis, latent.basis.rotation
        raw = math.prod(basis.shape)  # as Python's integers: NumPy's would overflow
        if raw > arrays.declared or (rotation is not None and (rotation.ndim != 2 or len(rotation) != raw)):
            raise expected(f"the {raw} weights of {name} in the file", f"{arrays.declared} numbers", "saving it again")
        _check_families(name, basis.families)
    if representation.size > arrays.declared:
        received = f"{arrays.declared} numbers"
        raise expected(f"{representation.size} weights in the file", received, "saving it again")
    return representation


def _check_families(name: str, families: Mapping[str, Any]) -> None:
    """Intervals are in order, a window's state is not more than its polynomials, splines are of a known degree."""
    for axis, family in families.items():
        spec = family.spec()
        odd = spec["family"] == "spline" and spec["degree"] not in DEGREES
        if odd or spec.get("upper", math.inf) <= spec.get("lower", -math.inf) or spec.get("states", 0) > family.size:
            raise expected(f"features of {name} along {axis} on an interval", str(spec), "saving it again")
