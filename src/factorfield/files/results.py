"""Result files: written and read without pickle.

The file is NetCDF: the field's mean and std on a grid at the top for any viewer, the posterior in the group
`posterior`, descriptions as JSON text. Files carry a format version from the first day.
"""

from __future__ import annotations

import errno
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import Advice, ProblemError, expected, shown_path
from factorfield.files import metadata
from factorfield.files.atomic import complete
from factorfield.files.description import problem_from_spec, problem_spec
from factorfield.model.representation import Representation
from factorfield.posterior.base import Posterior
from factorfield.posterior.reading import posterior_from_arrays
from factorfield.version import __version__

if TYPE_CHECKING:
    import xarray as xr

Array = NDArray[np.float64]
FORMAT_VERSION = 2  # files of version 1 are read too
COMPRESSED = {"zlib": True, "shuffle": True, "complevel": 1}  # lossless
DENSE = 0.75  # share of numbers that are not zero above which compression costs time and saves nothing
RESULT_ENDINGS = (".nc", ".nc4", ".cdf", ".h5", ".hdf5")
OVERHEAD = 1 << 17  # bytes of a file besides its arrays, texts included


@dataclass(frozen=True, eq=False)
class Result:
    """What a file holds of a solution."""

    posterior: Posterior
    status: str
    status_help: str
    trace: Mapping[str, object] = field(default_factory=dict)
    timings: Mapping[str, float] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)  # of the packages that solved it
    advice: tuple[Advice, ...] | None = ()  # None: an older file, which does not say


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
        raise expected("an output path in an existing folder", shown_path(target), f"mkdir -p {shown_path(parent)}")
    if target.is_dir():
        raise expected("a file to write", f"the folder {shown_path(target)}", shown_path(target / "run.nc"))
    try:  # permissions, read-only file systems and special folders all show in the attempt
        handle, probe = tempfile.mkstemp(dir=parent, prefix=f".{target.name}.", suffix=".part")
        os.close(handle)
        os.unlink(probe)
    except OSError as problem:
        raise expected(
            "an output path that may be written", f"{shown_path(target)} ({problem.strerror})", "another folder"
        ) from None
    return target


def write(result: Result, grid: Mapping[str, Array], path: str | os.PathLike[str]) -> Path:
    """Write a result, with its field on `grid`; the file appears complete or not at all."""
    target = check_result(path)
    with complete(target) as part:
        _write(result, grid, part)
    return target


def _write(result: Result, grid: Mapping[str, Array], path: Path) -> None:
    import xarray as xr

    posterior, problem = result.posterior, result.posterior.problem
    forms, arrays = posterior.representation.spec()
    description, columns = problem_spec(problem)
    top = posterior.predict(grid)
    top.attrs |= {
        **metadata.provenance(problem, result.settings, result.versions),
        "format_version": FORMAT_VERSION,
        "status": result.status,
        "status_help": result.status_help,
        "problem": json.dumps(description),
        "representation": json.dumps(forms),
        "noise": json.dumps(dict(posterior.noise)),
        "trace": _json(result.trace),
        "timings": _json(result.timings),
        "settings": _json(result.settings),
        "versions": _json(result.versions),
    }
    if result.advice is not None:
        top.attrs["warnings"] = json.dumps(list(dict.fromkeys(advice.text for advice in result.advice)))
        top.attrs["advice"] = json.dumps([(advice.kind, advice.text, advice.about) for advice in result.advice])
    for key, values in (("truth", problem.truth), ("stored", problem.stored)):
        if values is not None:
            top[key] = values
    top = metadata.with_names(metadata.with_coefficients(top, posterior), problem)
    stored = {key: (_own_dims(key, values), values) for key, values in {**arrays, **posterior.arrays()}.items()}
    stored |= {key: (_column_dims(key, values), values) for key, values in columns.items()}
    group = xr.Dataset(stored)
    sparse = [key for key, (_, values) in stored.items() if np.count_nonzero(values) < DENSE * np.size(values)]
    _reserve(path, top.nbytes + group.nbytes)
    try:
        top.to_netcdf(path, engine="h5netcdf", mode="w")
        encoding = dict.fromkeys(sparse, COMPRESSED)
        group.to_netcdf(path, engine="h5netcdf", mode="a", group="posterior", encoding=encoding)
    except RuntimeError as full:  # what HDF5 raises when the disk filled up meanwhile
        raise OSError(errno.EIO, "writing failed", str(path)) from full


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


def _json(values: Mapping[str, object]) -> str:
    def plain(value: object) -> object:
        if isinstance(value, np.ndarray | np.generic):
            return value.tolist()
        raise TypeError(f"cannot store {type(value).__name__}")

    return json.dumps(dict(values), default=plain)


def read(path: str | os.PathLike[str]) -> Result:
    """What a file written by `write` holds; its posterior predicts exactly what the saved one did."""
    source = Path(path).expanduser()
    if source.suffix.lower() == ".toml":
        attempt = f"factorfield solve {path} --out {source.with_suffix('.nc').name}"
        raise expected("a file written by solution.save", f"the problem file {source.name}", attempt)
    if not source.is_file():
        raise expected("a file written by solution.save", f"{source.name}, which does not exist", "checking the path")
    top, group = _opened(source)
    attributes = {str(key): value for key, value in top.attrs.items()}
    if int(attributes["format_version"]) > FORMAT_VERSION:
        raise ProblemError(
            f"expected format version up to {FORMAT_VERSION}, received {attributes['format_version']}; "
            f"try a newer factorfield (this is {__version__})"
        )
    arrays = {str(key): np.asarray(values) for key, values in group.data_vars.items()}
    problem = problem_from_spec(json.loads(attributes["problem"]), arrays, top.get("truth"), top.get("stored"))
    representation = Representation.from_spec(json.loads(attributes["representation"]), arrays)
    return Result(
        posterior_from_arrays(problem, representation, json.loads(attributes["noise"]), arrays),
        attributes["status"],
        attributes["status_help"],
        trace=json.loads(attributes["trace"]),
        timings=json.loads(attributes["timings"]),
        settings=json.loads(attributes["settings"]),
        versions=json.loads(attributes.get("versions", "{}")),
        advice=_advice(attributes),
    )


def _advice(attributes: Mapping[str, str]) -> tuple[Advice, ...] | None:
    """Advice as values; older files have its texts only, or do not say."""
    if "advice" in attributes:
        return tuple(Advice(*entry) for entry in json.loads(attributes["advice"]))
    texts = json.loads(attributes.get("warnings", "null"))
    return None if texts is None else tuple(Advice("", text) for text in texts)


def _opened(source: Path) -> tuple[xr.Dataset, xr.Dataset]:
    """The fields and attributes at the top of a file, and the group with the posterior's arrays."""
    import xarray as xr

    try:
        with open(source, "rb") as file:  # opened once: another process may put a new file into its place meanwhile
            # units are for readers: a time axis in "days" stays the numbers that were solved with
            with xr.open_dataset(file, engine="h5netcdf", decode_times=False) as opened:
                top = opened.load()
            with xr.open_dataset(file, engine="h5netcdf", group="posterior") as opened:
                group = opened.load()
        int(top.attrs["format_version"])
    except (OSError, KeyError, ValueError) as problem:
        raise expected(
            "a file written by solution.save", f"{source.name} ({type(problem).__name__})", "saving it again"
        ) from None
    return top, group
