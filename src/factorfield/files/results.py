"""Result files: written and read without pickle.

The file is NetCDF: the field's mean and std on a grid at the top for any viewer, the posterior in the group
`posterior`, descriptions as JSON text (result_file.schema.json). Files carry a format version from the first day, and
a checksum from format 3 on. A file may come from a stranger: everything in it is checked before it is used.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import Advice, AdviceWarning, command, expected, shown_path
from factorfield.files import metadata
from factorfield.files import schema as schemas
from factorfield.files.atomic import check_folder, check_replaceable, complete, room_for_hdf5, try_part
from factorfield.files.description import problem_from_spec, problem_spec
from factorfield.files.seal import check_seal, seal
from factorfield.files.stored_arrays import StoredArrays, check_fields, check_shown, checked_representation
from factorfield.posterior.base import Posterior
from factorfield.posterior.reading import posterior_from_arrays, stored_arrays
from factorfield.problem.hdf5 import check_names, is_variable, netcdf, opened
from factorfield.problem.problem import LARGEST_VALUE, MOST_EQUATIONS
from factorfield.version import __version__

if TYPE_CHECKING:
    import h5py
    import xarray as xr

Array = NDArray[np.float64]
FORMAT_VERSION = 3  # older files are read too
SEALED_VERSION = 3  # files have a checksum from here on
LEAST_ROOM = 1 << 26  # bytes that any file may ask for, however small it is
LARGEST_RATIO = 256  # bytes that a file may ask for, over its size: arrays of zeros compress that well
COMPRESSED = {"zlib": True, "shuffle": True, "complevel": 1}  # lossless
DENSE = 0.75  # share of numbers that are not zero above which compression costs time and saves nothing
RESULT_ENDINGS = (".nc", ".nc4", ".cdf", ".h5", ".hdf5")
MOST_LEVELS = 30  # of JSON in JSON


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
    check_folder(target)
    if target.is_dir():
        raise expected("a file to write", f"the folder {shown_path(target)}", shown_path(target / "run.nc"))
    check_replaceable(target)
    try:  # permissions, read-only file systems and special folders all show in the attempt
        try_part(target)
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
        seal(part)
    return target


def _write(result: Result, grid: Mapping[str, Array], path: Path) -> None:
    import xarray as xr

    posterior, problem = result.posterior, result.posterior.problem
    form, arrays = posterior.form()
    description, columns = problem_spec(problem)
    top = posterior.predict(grid)
    top.attrs |= {
        **metadata.provenance(problem, result.settings, result.versions),
        "format_version": FORMAT_VERSION,
        "status": result.status,
        "status_help": result.status_help,
        "problem": json.dumps(description),
        posterior.described: json.dumps(form),
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
    stored = {key: (_own_dims(key, values), values) for key, values in {**arrays, **stored_arrays(posterior)}.items()}
    stored |= {key: (_column_dims(key, values), values) for key, values in columns.items()}
    group = xr.Dataset(stored)
    sparse = [key for key, (_, values) in stored.items() if np.count_nonzero(values) < DENSE * np.size(values)]
    with room_for_hdf5(path, top.nbytes + group.nbytes):
        top.to_netcdf(path, engine="h5netcdf", mode="w")
        encoding = dict.fromkeys(sparse, COMPRESSED)
        group.to_netcdf(path, engine="h5netcdf", mode="a", group="posterior", encoding=encoding)


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
        attempt = command("factorfield", "solve", str(path), "--out", source.with_suffix(".nc").name)
        raise expected("a file written by solution.save", f"the problem file {source.name}", attempt)
    if not source.is_file():
        raise expected("a file written by solution.save", f"{source.name}, which does not exist", "checking the path")
    sealed: list[bool] = []
    with opened(
        source, "a file written by solution.save", "saving it again",
        lambda file: sealed.append(check_seal(file, source.name)),
    ) as (file, stored, datasets):  # fmt: skip
        version = _checked_version(stored.attrs.get("format_version"), sealed[0], source.name)
        told = _told(stored)
        arrays = StoredArrays(datasets, "posterior/", max(LEAST_ROOM, LARGEST_RATIO * source.stat().st_size))
        truth, kept = (_field(file, datasets, key, arrays) for key in ("truth", "stored"))
        problem = problem_from_spec(told["problem"], arrays, truth, kept)
        check_fields(problem)
        key = "discretisation" if "discretisation" in told else "representation"
        form = told.get(key, {})
        form = checked_representation(form, problem, arrays) if key == "representation" else form
        posterior = posterior_from_arrays(problem, form, told["noise"], arrays, key)
        if version >= SEALED_VERSION:
            check_shown(posterior, datasets, arrays)
        found = Result(
            posterior, told["status"], told["status_help"],
            told["trace"], told["timings"], told["settings"], told.get("versions", {}), _advice(told),
        )  # fmt: skip
    if version < SEALED_VERSION:
        note = f"{source.name} is of format {version}, which has no checksum: a damaged number would not show"
        warnings.warn(f"{note}; saving it again adds one", AdviceWarning, stacklevel=3)
    return found


def _checked_version(stored: object, sealed: bool, name: str) -> int:
    number = np.asarray(stored).ravel()
    if number.size != 1 or number.dtype.kind not in "iu" or number[0] < 1:
        raise expected("a file written by solution.save", f"{name} of format {stored}", "saving it again")
    version = int(number[0])
    if version > FORMAT_VERSION:
        attempt = f"a newer factorfield (this is {__version__})"
        raise expected(f"format version up to {FORMAT_VERSION}", str(version), attempt)
    if version >= SEALED_VERSION and not sealed:
        raise expected(f"{name} with its checksum", "none: it was cut or changed", "solving it again")
    return version


def _told(stored: h5py.File) -> dict[str, Any]:
    """The descriptions, which are JSON in attributes, checked against the schema of result files."""
    schema = json.loads(Path(__file__).with_name("result_file.schema.json").read_text(encoding="utf-8"))
    told: dict[str, Any] = {}
    for key in schema["properties"]:
        if key in stored.attrs:
            text = stored.attrs[key]
            told[key] = text if key in ("status", "status_help") else json.loads(text)
    try:
        _check_plain(told, MOST_LEVELS)
        schemas.check(told, schema)
        json.dumps(told, ensure_ascii=False).encode()
    except schemas.Misfit as fault:
        raise fault.error from None
    except UnicodeEncodeError:  # HDF5 hands bytes on that are no text, and JSON can spell them
        raise expected("a file whose descriptions are text in UTF-8", "other bytes", "saving it again") from None
    return told


def _check_plain(value: object, levels: int) -> None:
    """No lists in lists in lists, which what shows them would follow to the end of Python's stack, and no whole number
    beyond those that are floats too."""
    if levels == 0:
        raise expected(f"descriptions in at most {MOST_LEVELS} levels", "more", "saving it again")
    if isinstance(value, int) and abs(value) > LARGEST_VALUE:
        raise expected(f"numbers up to {LARGEST_VALUE:g} in the descriptions", "a larger one", "saving it again")
    for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_plain(entry, levels - 1)


def _advice(told: Mapping[str, Any]) -> tuple[Advice, ...] | None:
    """Advice as values; older files have its texts only, or do not say."""
    if "advice" in told:
        return tuple(Advice(*entry) for entry in told["advice"])
    return None if "warnings" not in told else tuple(Advice("", text) for text in told["warnings"])


def _field(
    file: BinaryIO, datasets: Mapping[str, h5py.Dataset], name: str, arrays: StoredArrays
) -> xr.DataArray | None:
    """A field at the top of the file with its coordinates; None if there is none."""
    if name not in datasets:
        return None
    wanted = [key for key in datasets if key in (name, "field") or len(key) == 1]  # axes are letters
    kept = {key: item for key, item in datasets.items() if key == name or (len(key) == 1 and is_variable(item))}
    arrays.take(kept)
    if "field" in datasets:
        check_names("field", datasets["field"], MOST_EQUATIONS)
    with netcdf(file, wanted, datasets) as lazy:
        return lazy[name].load()
