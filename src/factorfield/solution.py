"""Solution: a posterior with its status, trace, timings and settings; written and read without pickle.

The file is NetCDF: the field's mean and std on a grid at the top for any viewer, the posterior in the group
`posterior`, descriptions as JSON text. Files carry a format version from the first day.
"""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from factorfield import threads
from factorfield.errors import Advice, ProblemError, expected, recorded
from factorfield.files import metadata
from factorfield.files.atomic import complete
from factorfield.files.description import problem_from_spec, problem_spec
from factorfield.model.representation import Representation
from factorfield.posterior import windows as chain_posterior
from factorfield.posterior.base import GaussianPosterior, Posterior
from factorfield.posterior.sampled import SampledPosterior
from factorfield.problem.problem import Condition, Problem
from factorfield.version import __version__, versions

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]
FORMAT_VERSION = 2  # files of version 1 are read too
SMALLER = {"zlib": True, "shuffle": True, "complevel": 1}  # lossless
MANY = 0.75  # numbers that are not zero: above this share compression costs time and saves nothing
RESULT_ENDINGS = (".nc", ".nc4", ".cdf", ".h5", ".hdf5")
OVERHEAD = 1 << 17  # bytes of a file besides its arrays, texts included
HELP = {
    "converged": "the method met its own criterion",
    "max-iterations": "the iteration limit came first: usable, but allow more iterations if the trace still moves",
    "diverged": "nothing here can be trusted: try damping, larger sigmas, fewer modes or method='joint'",
}


class Status(str):
    """One of converged, max-iterations, diverged; `.help` says what it means and what to try."""

    help: str

    def __new__(cls, value: str, help: str = "") -> Status:
        if value not in HELP:
            raise expected("one of " + ", ".join(HELP), value, "'converged'")
        status = super().__new__(cls, value)
        status.help = help or HELP[value]
        return status


@dataclass(frozen=True, eq=False)
class Solution:
    """What every method returns."""

    posterior: Posterior
    status: Status
    trace: Mapping[str, Any] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    resume: Callable[[Problem], Solution] | None = None  # solve again with more conditions, all choices kept
    warnings: tuple[str, ...] | None = ()  # the advice given while solving; None: a file that does not say
    versions: Mapping[str, str] = field(default_factory=versions)  # of the packages that solved it
    advice: tuple[Advice, ...] = ()  # the same as typed values

    def __repr__(self) -> str:
        method, weights = self.settings.get("method", "?"), self.posterior.representation.size
        found = "".join(f"; {n} = {p['mean']:.4g} +- {p['std']:.2g}" for n, p in self.parameters.items())
        return f"Solution({self.problem!r} by {method}, {weights} weights; {self.status}: {self.status.help}{found})"

    @property
    def problem(self) -> Problem:
        return self.posterior.problem

    @property
    def correlation(self) -> xr.DataArray:
        """Posterior correlations of the unknown coefficients with each other."""
        return self.posterior.correlation()

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Posterior of each unknown coefficient: {"b": {"mean": ..., "std": ..., "interval": (low, high)}} (90 %)."""
        return self.posterior.parameters()

    def predict(
        self,
        *,
        of: str | None = None,
        noise: bool = False,
        points: bool = False,
        quantiles: Sequence[float] = (),
        **axes: ArrayLike,
    ) -> xr.Dataset:
        """Mean and std on the tensor grid of the given axes: solution.predict(x=..., t=...).

        of="u_x" or of="residual" gives other quantities, points=True takes scattered points, noise=True adds the
        observation noise to std, quantiles=[0.05, 0.95] adds quantiles.
        """
        with threads.suited_to(self.posterior.representation.size):
            return self.posterior.predict(axes, of, noise, points, quantiles)

    def sample(self, count: int, *, seed: int = 0, of: str | None = None, **axes: ArrayLike) -> xr.DataArray:
        """Joint draws of the field on the tensor grid of the given axes."""
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise expected("a whole number of draws, 1 or more", count, "solution.sample(10, ...)")
        return self.posterior.sample(count, seed=seed, of=of, **axes)

    def condition(self, more: Condition | Sequence[Condition]) -> Solution:
        """A new solution that also knows `more`, without starting over: equal to solving with everything at once."""
        if self.resume is None:
            raise expected(
                "a solution that method='chain' made in this session",
                f"one by {self.settings.get('method', 'another method')}, made elsewhere or without windows",
                "ff.solve with all conditions",
            )  # fmt: skip
        known = self.problem
        added = list(more) if isinstance(more, Sequence) else [more]
        problem = Problem(
            known.equations, known.domain, known.parameters, [*known.conditions, *added],
            truth=known.truth, stored=known.stored, name=known.name, units=known.units,
        )  # fmt: skip
        with recorded() as advice:
            solution = self.resume(problem)
        return replace(solution, warnings=tuple(advice))

    def default_grid(self) -> dict[str, Array]:
        """The truth's coordinates where they are known, else a grid fit for looking at."""
        problem = self.problem
        if problem.truth is not None:
            return {name: np.asarray(problem.truth[name], float) for name in problem.domain.names}
        count = {1: 512, 2: 128}.get(len(problem.domain.names), 49)  # quarters of 48 are round
        axes = {name: problem.domain[name] for name in problem.domain.names}
        return {name: np.linspace(axis.lower, axis.upper, count) for name, axis in axes.items()}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write to `path` (NetCDF); the file appears complete or not at all."""
        target = check_result(path)
        with complete(target) as part:
            _write(self, part)
        return target


def check_result(path: str | os.PathLike[str]) -> Path:
    """Refuse a result that cannot be written, or whose name says that it is something else: a problem file, a table."""
    target = Path(path)
    if target.suffix.lower() not in RESULT_ENDINGS and not target.is_dir():
        known = ", ".join(RESULT_ENDINGS)
        raise expected(f"a result file ending in one of {known}", target.name, f"{target.stem or 'run'}.nc")
    return check_writable(target)


def check_writable(path: str | os.PathLike[str]) -> Path:
    """Refuse an output path that cannot be written - before a solve, not after it."""
    target = Path(path).expanduser()
    parent = target.parent
    if not parent.is_dir():
        raise expected("an output path in an existing folder", str(target), f"mkdir -p {parent}")
    if target.is_dir():
        raise expected("a file to write", f"the folder {target}", f"{target / 'run.nc'}")
    try:  # permissions, read-only file systems and special folders all show in the attempt
        handle, probe = tempfile.mkstemp(dir=parent, prefix=f".{target.name}.", suffix=".part")
        os.close(handle)
        os.unlink(probe)
    except OSError as problem:
        raise expected(
            "an output path that may be written", f"{target} ({problem.strerror})", "another folder"
        ) from None
    return target


def _write(solution: Solution, path: Path) -> None:
    import xarray as xr

    posterior = solution.posterior
    forms, arrays = posterior.representation.spec()
    problem, columns = problem_spec(posterior.problem)
    field = posterior.predict(solution.default_grid())
    field.attrs |= {
        **metadata.provenance(posterior.problem, solution.settings, solution.versions),
        "format_version": FORMAT_VERSION,
        "status": str(solution.status),
        "status_help": solution.status.help,
        "problem": json.dumps(problem),
        "representation": json.dumps(forms),
        "noise": json.dumps(dict(posterior.noise)),
        "trace": _json(solution.trace),
        "timings": _json(solution.timings),
        "settings": _json(solution.settings),
        "versions": _json(solution.versions),
    }
    if solution.warnings is not None:
        field.attrs["warnings"] = json.dumps(solution.warnings)
    stored = {key: (_own_dims(key, values), values) for key, values in {**arrays, **posterior.arrays()}.items()}
    stored |= {key: (_column_dims(key, values), values) for key, values in columns.items()}
    for key, values in (("truth", posterior.problem.truth), ("stored", posterior.problem.stored)):
        if values is not None:
            field[key] = values
    field = metadata.described(metadata.with_coefficients(field, posterior), posterior.problem)
    posterior_group = xr.Dataset(stored)
    encoding = {
        key: SMALLER for key, (_, values) in stored.items() if np.count_nonzero(values) < MANY * np.size(values)
    }
    _reserve(path, field.nbytes + posterior_group.nbytes)
    try:
        field.to_netcdf(path, engine="h5netcdf", mode="w")
        posterior_group.to_netcdf(path, engine="h5netcdf", mode="a", group="posterior", encoding=encoding)
    except RuntimeError as problem:  # HDF5's word for a disk that filled up meanwhile
        raise OSError(errno.EIO, "writing failed", str(path)) from problem


def _reserve(path: Path, size: int) -> None:
    """Ask for the space first: HDF5 does not survive a disk that is full, or a limit, in the middle of a file."""
    if not hasattr(os, "posix_fallocate"):
        return
    with open(path, "wb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, size + OVERHEAD)
        except OSError as problem:
            if problem.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
                raise OSError(problem.errno, problem.strerror, path.name) from None


def _own_dims(name: str, values: Array) -> tuple[str, ...]:
    return tuple(f"{name}_{axis}" for axis in range(np.ndim(values)))


def _column_dims(name: str, values: Array) -> tuple[str, ...]:
    """Columns of the same measurements share one dimension, so that a reader may treat them as a table."""
    condition = name.partition("_")[0]
    shared = name.startswith("condition") and np.ndim(values) == 1 and np.size(values) > 1
    return (f"{condition}_point",) if shared else _own_dims(name, values)


def _json(values: Mapping[str, Any]) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            return value.tolist()
        raise TypeError(f"cannot store {type(value).__name__}")

    return json.dumps(dict(values), default=plain)


def load(path: str | os.PathLike[str]) -> Solution:
    """Read a solution back; it predicts exactly what the saved one did."""
    import xarray as xr

    source = Path(path).expanduser()
    if source.suffix.lower() == ".toml":
        attempt = f"factorfield solve {path} --out {source.with_suffix('.nc').name}"
        raise expected("a file written by solution.save", f"the problem file {source.name}", attempt)
    if not source.is_file():
        raise expected("a file written by solution.save", f"{source.name}, which does not exist", "checking the path")
    try:
        with open(source, "rb") as file:  # opened once: another process may put a new file into its place meanwhile
            # units are for readers: a time axis in "days" stays the numbers that were solved with
            with xr.open_dataset(file, engine="h5netcdf", decode_times=False) as opened:
                top = opened.load()
            with xr.open_dataset(file, engine="h5netcdf", group="posterior") as opened:
                stored = opened.load()
        version = int(top.attrs["format_version"])
    except (OSError, KeyError, ValueError) as problem:
        raise expected(
            "a file written by solution.save", f"{source.name} ({type(problem).__name__})", "saving it again"
        ) from None
    if version > FORMAT_VERSION:
        raise ProblemError(
            f"expected format version up to {FORMAT_VERSION}, received {version}; try a newer factorfield "
            f"(this is {__version__})"
        )
    arrays = {str(key): np.asarray(values) for key, values in stored.data_vars.items()}
    described = (
        problem_from_spec(json.loads(top.attrs["problem"]), arrays, top.get("truth"), top.get("stored")),
        Representation.from_spec(json.loads(top.attrs["representation"]), arrays),
        json.loads(top.attrs["noise"]),
    )
    posterior: Posterior
    if "weight_draws" in arrays:
        posterior = SampledPosterior(*described, arrays["weight_draws"])
    elif "chain_edges" in arrays:
        posterior = chain_posterior.from_arrays(*described, arrays)
    else:
        posterior = GaussianPosterior(*described, arrays["weight_mean"], arrays["weight_root"])
    status = Status(top.attrs["status"], top.attrs["status_help"])
    trace, timings, settings = (json.loads(top.attrs[key]) for key in ("trace", "timings", "settings"))
    told, made_by = (
        json.loads(top.attrs.get(key, missing)) for key, missing in (("warnings", "null"), ("versions", "{}"))
    )
    return Solution(
        posterior, status, trace, timings, settings, None, None if told is None else tuple(told), made_by
    )  # fmt: skip
