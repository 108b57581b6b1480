"""Pieces of information as the user writes them: equations, initial and boundary conditions, measurements."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from numpy.typing import ArrayLike

from factorfield.problem.noise import Noise


@dataclass(frozen=True)
class Equation:
    """A differential equation as text, trusted to +- sigma (in units of the equation's left side)."""

    text: str
    sigma: float | None = None


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


@dataclass(frozen=True)
class Boundary:
    """A relation on a face of the domain, such as Boundary("u_x = 0", at={"x": 0}).

    Two places ask for equal values at both: Boundary("u", at={"x": (0, 1)}) and Boundary("u_x", at={"x": (0, 1)}) make
    a field periodic. `sigma` and `length` are those of ff.Initial, `length` along the face: {"t": 2.0} for a wall that
    drifts.
    """

    text: str
    at: Mapping[str, float | tuple[float, float]]
    sigma: float | None = None
    length: float | Mapping[str, float] | None = None


class Observations:
    """Measured values at points: Observations(x=..., t=0.0, u=values, sigma=0.02).

    Each axis is an array or one number; `sigma` one number, one per value, or None (the model's default or
    an estimate). Another quantity than a field: Observations(x=..., t=..., of="u_x", value=...).

    noise    "gaussian", "student-t" (outliers; or ff.StudentT(dof)), or "log-normal" (sigma is then relative)
    average  widths per axis, such as {"x": 0.1}: each value is the mean over a cell of that width about its point
    """

    def __init__(
        self,
        *,
        sigma: ArrayLike | None = None,
        of: str | None = None,
        noise: str | Noise = "gaussian",
        average: Mapping[str, ArrayLike] | None = None,
        **columns: ArrayLike,
    ) -> None:
        self.sigma = sigma
        self.of = of
        self.noise = noise
        self.average = dict(average or {})
        self.columns = columns

    @staticmethod
    def from_file(
        path: str | os.PathLike[str],
        *,
        sigma: ArrayLike | str | None = None,
        of: str | None = None,
        noise: str | Noise = "gaussian",
        average: Mapping[str, ArrayLike] | None = None,
        **names: str | float,
    ) -> Observations:
        """Measurements from a CSV, NetCDF or HDF5 file with named columns.

        Observations.from_file("run.csv", x="position", t=0.0, u="height", sigma=0.02): each axis and the field by
        the name of its column, or one number; without names, the file's columns are called x, t, u, ... themselves.
        `sigma` may name a column too.
        """
        from factorfield.problem.tables import read_columns

        wanted = [name for name in (*names.values(), sigma) if isinstance(name, str)]
        found = read_columns(Path(path).expanduser(), wanted if names else None)
        if isinstance(sigma, str):
            sigma = found[sigma]
        elif not names and sigma is None and "sigma" in found:
            sigma = found.pop("sigma")
        columns = {ours: found[theirs] if isinstance(theirs, str) else theirs for ours, theirs in names.items()}
        return Observations(sigma=sigma, of=of, noise=noise, average=average, **(columns or found))

    def __repr__(self) -> str:
        return f"Observations({', '.join(self.columns)}, sigma={self.sigma!r})"


Condition = Observations | Initial | Boundary
