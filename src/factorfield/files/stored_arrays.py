"""What a result file holds besides text: arrays that are read when they are asked for, and whether they fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from factorfield import threads
from factorfield.errors import expected
from factorfield.files import metadata
from factorfield.model.representation import Representation
from factorfield.model.splines import DEGREES
from factorfield.posterior.base import Posterior
from factorfield.problem.hdf5 import check_numbers, is_variable
from factorfield.problem.problem import Problem

if TYPE_CHECKING:
    import h5py

Array = NDArray[np.float64]
MOST_COMPARED = 1 << 18  # places at which the posterior is compared with what is stored beside it
SHOWN, ROUNDING = 1e-4, 1e-6  # by how much both may differ: in units of the std, and of the largest number


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


def check_shown(posterior: Posterior, datasets: Mapping[str, h5py.Dataset], arrays: StoredArrays) -> None:
    """What other programs see, the field and the coefficients at the top of the file, is what the posterior says.

    Compared at all places of the stored grid, or at every second, third ... along its axes where these are many.
    """
    names = posterior.problem.domain.names
    axes = {name: datasets[name] for name in names if name in datasets}
    arrays.take(axes)
    if "mean" not in datasets or len(axes) < len(names) or any(axis.ndim != 1 for axis in axes.values()):
        raise expected("a field over the axes of the problem at the top of the file", "none", "saving it again")
    step = 1
    while math.prod(-(-axis.size // step) for axis in axes.values()) > MOST_COMPARED:
        step += 1
    grid = {name: np.asarray(axis[::step], float) for name, axis in axes.items()}
    with threads.suited_to(posterior.representation.size):
        said = metadata.with_coefficients(posterior.predict(grid), posterior)
    for name, values in said.data_vars.items():
        stored = datasets.get(str(name))
        if stored is None or values.dtype.kind != "f":
            continue
        arrays.take({str(name): stored})
        steps = tuple(slice(None, None, step if dim in names else 1) for dim in values.dims)
        there = np.asarray(stored[steps] if stored.ndim == values.ndim else np.nan, float)
        spread = said[f"{str(name).removesuffix(str(name).rpartition('_')[2])}std"]
        _check_equal(str(name), there, values.values, SHOWN * np.abs(spread.values))


def _check_equal(name: str, stored: Array, said: Array, allowed: Array) -> None:
    """Up to rounding on another machine, which is relative to the whole array, and what is allowed beside."""
    differs = True
    if stored.shape == said.shape:
        finite = np.isfinite(said)
        rounding = ROUNDING * np.max(np.abs(said), where=finite, initial=0.0)
        far = np.abs(np.where(finite, stored - said, 0.0)) > np.where(finite, allowed, 0.0) + rounding
        differs = bool(np.any(far | (np.isfinite(stored) != finite)))
    if differs:
        received = "other numbers in one: changed, or written by another factorfield"
        raise expected(f"a posterior and {name!r} beside it that agree", received, "solving it again")


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
