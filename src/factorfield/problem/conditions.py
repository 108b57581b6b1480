"""Pieces of information as the user writes them: equations, initial and boundary conditions, measurements."""

from __future__ import annotations

import copy
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from factorfield.errors import AdviceWarning
from factorfield.problem.noise import Noise

if TYPE_CHECKING:
    from factorfield.problem.sources import Source


@dataclass(frozen=True)
class Equation:
    """A differential equation as text, trusted to +- sigma (in units of the equation's left side).

    length  the distance over which it is off together, a number or one per axis; None: a quarter of each axis. It is read
            by method="forward" alone
    """

    text: str
    sigma: float | None = None
    length: float | Mapping[str, float] | None = None


@dataclass(frozen=True)
class Initial:
    """A relation at the start of time, such as "u = cos(pi*x)" or "u_t = 0".

    sigma   how far it may be off at any point; None: it holds as well as the method can make it
    length  the distance over which it is off together: a number, or one per axis, {"x": 0.2}; None: a quarter of each
            axis
    """

    text: str
    sigma: float | None = None
    length: float | Mapping[str, float] | None = None


Place = Mapping[str, float | tuple[float, float]] | str | int | Sequence[int] | None


@dataclass(frozen=True)
class Boundary:
    """A relation on a face of the domain, such as Boundary("u_x = 0", at={"x": 0}), or on the boundary of a region.

    With a region: Boundary("u = 0") on all of its boundary, at="x > 0.9" where that holds, at={"x": 0} on that side of
    the box, at=2 or at=[0, 3] on these edges of a polygon. u_n is the derivative along the outward normal:
    Boundary("u_n + h*(u - 20) = 0").

    Two places ask for equal values at both: Boundary("u", at={"x": (0, 1)}) and Boundary("u_x", at={"x": (0, 1)}) make
    a field periodic. `sigma` and `length` are those of ff.Initial, `length` along the face: {"t": 2.0} for a wall that
    drifts. `inside=True` allows places between the faces: Boundary("u = 0", at={"x": 0.5}, inside=True).
    """

    text: str
    at: Place = None
    sigma: float | None = None
    length: float | Mapping[str, float] | None = None
    inside: bool = False

    @property
    def where(self) -> str:
        """The place in words; empty for all of a region's boundary."""
        if isinstance(self.at, Mapping):
            return ", ".join(f"{axis} = {value}" for axis, value in self.at.items())
        if self.at is None or isinstance(self.at, str):
            return self.at or ""
        return f"edges {', '.join(map(str, self.at))}" if isinstance(self.at, Iterable) else f"edge {self.at}"


class Observations:
    """Measured values at points: Observations(x=..., t=0.0, u=values, sigma=0.02).

    Each axis is an array or one number; `sigma` one number, one per value, or None (the model's default or
    an estimate). Another quantity than a field: Observations(x=..., t=..., of="u_x", value=...).

    data     a pandas DataFrame or an xarray object with these columns by name, as Observations.from_file reads files:
             Observations(frame, x="position", sigma=0.02)
    noise    "gaussian", "student-t" (outliers; or ff.StudentT(dof)), or "log-normal" (sigma is then relative)
    average  widths per axis, such as {"x": 0.1}: each value is the mean over a cell of that width about its point
    """

    def __init__(
        self,
        data: object = None,
        /,
        *,
        sigma: ArrayLike | str | None = None,
        of: str | None = None,
        noise: str | Noise = "gaussian",
        average: Mapping[str, ArrayLike] | None = None,
        **columns: Any,
    ) -> None:
        self.of = of
        self.noise = noise
        self.average = dict(average or {})
        self.columns: Mapping[str, ArrayLike] = columns
        self.sigma: ArrayLike | None = sigma
        self.units: Mapping[str, str] = {}  # of axes that were timestamps
        self._given: tuple[Mapping[str, Any], ArrayLike | str | None] = (columns, sigma)
        self._notes: tuple[str, ...] = ()
        self._source = None if data is None else _as_source(data)
        if self._source is not None:
            every = {} if columns else {name: name for name in self._source.read(None, {})}
            if sigma is None:
                sigma = every.pop("sigma", None)
            self._read(columns or every, sigma)

    def _read(self, mapping: Mapping[str, Any], sigma: ArrayLike | str | None) -> None:
        from factorfield.problem.sources import assembled

        assert self._source is not None
        self.columns, self.sigma, self.units, notes = assembled(self._source, mapping, sigma)
        for text in [text for text in notes if text not in self._notes]:
            warnings.warn(text, AdviceWarning, stacklevel=3)
        self._notes = notes

    @staticmethod
    def from_file(
        path: str | os.PathLike[str],
        *,
        sigma: ArrayLike | str | None = None,
        of: str | None = None,
        noise: str | Noise = "gaussian",
        average: Mapping[str, ArrayLike] | None = None,
        **names: str | float | Mapping[str, Any],
    ) -> Observations:
        """Measurements from a CSV, NetCDF or HDF5 file with named columns.

        Observations.from_file("run.csv", x="position", t=0.0, u="height", sigma=0.02): each axis and the field by
        the name of its column, or one number; what is left out are columns called x, t, u, ... themselves.
        Timestamps: t={"column": "time", "unit": "h", "origin": "2024-05-01"}. A column per sensor:
        u={"T1": {"x": 5.0}, "T2": {"x": 50.0}}. `sigma` may name a column too.
        """
        return Observations(Path(path).expanduser(), sigma=sigma, of=of, noise=noise, average=average, **names)

    @property
    def there(self) -> list[str]:
        """What the data call their columns; nothing where columns were given one by one."""
        return [] if self._source is None else self._source.names()

    def on(self, axes: Sequence[str], fields: Sequence[str]) -> Observations:
        """With what the mapping left out: columns of the data that are called like an axis, or like the field."""
        if self._source is None:
            return self
        there, (given, sigma) = self.there, self._given
        have = self.columns if given else ()
        more = [axis for axis in axes if axis in there and axis not in have]
        if all(name in axes for name in given):  # the field is not named
            own = ["value"] if self.of is not None else fields
            values = [name for name in own if name in there] if len(own) == 1 else []
            if not values and not given:
                return self
            more += values
        if not more or (not given and len(more) == len(self.columns)):
            return self
        whole = copy.copy(self)
        sigma = "sigma" if not given and sigma is None and "sigma" in there else sigma
        whole._read({**given, **{name: name for name in more}}, sigma)
        return whole

    def __repr__(self) -> str:
        return f"Observations({', '.join(self.columns)}, sigma={self.sigma!r})"


def _as_source(data: object) -> Source:
    from factorfield.problem.sources import FileSource, FrameSource

    if isinstance(data, Path):
        return FileSource(data)
    return data if isinstance(data, FileSource | FrameSource) else FrameSource.of(data)


Condition = Observations | Initial | Boundary
