"""HDF5 and NetCDF files from strangers: looked over by their headers before a number is read.

Such a file may point to other files (external storage, links, virtual datasets), declare terabytes that it does not
hold, unpack without end, or hold what is no number; all of that is refused in one line, as is a damaged file.
"""

from __future__ import annotations

import math
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import ProblemError, expected, shortened

if TYPE_CHECKING:
    import h5py
    import xarray as xr

Array = NDArray[np.float64]
MOST_OBJECTS = 10_000  # groups and datasets
MOST_VARIABLES = 2_000  # of a NetCDF file: xarray looks at every one of them
MOST_ATTRIBUTES = 50_000
MOST_TEXT = 1 << 26  # bytes of all attributes together, as they are in memory
FEW = 16  # texts of one attribute that may each be as long as the file
LONGEST_NAME = 200  # characters of a text in an array of names
OF_DIMENSIONS = ("DIMENSION_LIST", "REFERENCE_LIST")  # NetCDF's own references, from a variable to its dimensions
DEFLATE, KNOWN_FILTERS = 1, (1, 2, 3, 5, 6, 32000)  # deflate, shuffle, checksum, n-bit, scale-offset, LZF
LARGEST_RATIO = 1032  # of deflate: what is unpacked, over what is stored


class Opened(NamedTuple):
    file: BinaryIO
    stored: h5py.File
    datasets: dict[str, h5py.Dataset]  # by their paths, such as "posterior/weight_mean"


@contextmanager
def opened(
    source: Path, what: str, attempt: str, first: Callable[[BinaryIO], object] | None = None
) -> Iterator[Opened]:
    """An HDF5 file and its datasets by name, all of them inside it; whatever fails while it is read is one line.

    Opened once, also for what `first` looks at: another process may put a new file into its place meanwhile.
    """
    import h5py

    try:
        with open(source, "rb") as file:
            if first is not None:
                first(file)
            with h5py.File(file, "r") as stored:
                yield Opened(file, stored, _datasets(stored))
    except (ProblemError, MemoryError):
        raise
    except Exception as problem:  # readers raise anything when a file is damaged: KeyError, RuntimeError, TypeError
        reason = shortened(f"{type(problem).__name__}: {problem}", 80)
        raise expected(what, f"{source.name} ({reason})", attempt) from problem


def _datasets(stored: h5py.File) -> dict[str, h5py.Dataset]:
    import h5py

    found: dict[str, h5py.Dataset] = {}
    waiting, seen, attributes = [("", stored)], 0, _Attributes(stored.id.get_filesize())
    while waiting:
        prefix, group = waiting.pop()
        attributes.look_at(prefix, group)
        for name in group:
            seen += 1
            if seen > MOST_OBJECTS:
                raise expected(f"a file of at most {MOST_OBJECTS} variables", "more", "only those that are needed")
            path = f"{prefix}{name}"
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise _elsewhere(path, "a link")
            item = group[name]
            if isinstance(item, h5py.Group):
                if path.count("/") > 8:
                    raise expected("groups in at most 8 levels", path, "a flatter file")
                waiting.append((f"{path}/", item))
            elif isinstance(item, h5py.Dataset):
                _check_storage(path, item)
                attributes.look_at(path, item)
                found[path] = item
    return found


class _Attributes:
    """Counts what the attributes of a file take in memory, one after the other: xarray reads them all at once.

    Texts lie in a heap, and any number of them may share one entry of it: their sizes show only as they are read.
    """

    def __init__(self, file_size: int) -> None:
        self._file_size, self._count, self._room = file_size, 0, MOST_TEXT

    def look_at(self, path: str, item: h5py.Group | h5py.Dataset) -> None:
        import h5py

        for name in item.attrs:
            stored = item.attrs.get_id(name)
            kind, count = stored.dtype, math.prod(stored.shape or ())
            held = h5py.check_vlen_dtype(kind)
            if h5py.check_ref_dtype(held or kind) is not None and name not in OF_DIMENSIONS:
                raise _elsewhere(path, "an object reference")
            varies = _varies(kind)
            if varies and count > FEW and count * self._file_size > MOST_TEXT:
                raise expected(f"at most {FEW} texts in an attribute of {path or 'the file'}", str(count), "fewer")
            self._take(_length(item.attrs[name]) if varies else count * kind.itemsize)

    def _take(self, size: int) -> None:
        self._count, self._room = self._count + 1, self._room - size
        if self._room < 0 or self._count > MOST_ATTRIBUTES:
            most = f"at most {MOST_ATTRIBUTES} attributes of {MOST_TEXT >> 20} MiB in all"
            raise expected(most, "more", "a file without them")


def _varies(kind: np.dtype) -> bool:
    """Is a value of this kind, or a part of it, as long as it likes?"""
    import h5py

    if kind.subdtype is not None:
        return _varies(kind.subdtype[0])
    if kind.names is not None:
        return any(_varies(kind[name]) for name in kind.names)
    text = h5py.check_string_dtype(kind)
    return h5py.check_vlen_dtype(kind) is not None or (text is not None and text.length is None)


def _length(value: object) -> int:
    """Bytes that an attribute of texts or lists takes, roughly."""
    entries: list[Any] = list(value.ravel()) if isinstance(value, np.ndarray) else [value]
    return sum(len(entry) if isinstance(entry, str | bytes) else 8 * int(np.size(entry)) for entry in entries)


def check_names(path: str, dataset: h5py.Dataset, most: int) -> None:
    """A list of at most so many short texts, looked at one by one."""
    count = math.prod(dataset.shape) if dataset.shape is not None and len(dataset.shape) == 1 else -1
    if not 0 <= count <= most or dataset.dtype.kind not in "OSU" or dataset.dtype.itemsize > LONGEST_NAME:
        raise expected(f"at most {most} names in {path!r}", f"{dataset.shape} of {dataset.dtype}", "saving it again")
    for index in range(count):
        if not isinstance(dataset[index], str | bytes) or len(dataset[index]) > LONGEST_NAME:
            raise expected(f"names of at most {LONGEST_NAME} characters in {path!r}", "longer ones", "saving it again")


def _check_storage(path: str, dataset: h5py.Dataset) -> None:
    if dataset.is_virtual:
        raise _elsewhere(path, "a virtual dataset")
    if dataset.id.get_create_plist().get_external_count():
        raise _elsewhere(path, "external storage")


def is_variable(dataset: h5py.Dataset) -> bool:
    """NetCDF writes a dimension without a coordinate as a dataset of nothing, and says so in its NAME."""
    name = dataset.attrs.get("NAME", b"")
    return not (isinstance(name, bytes) and name.startswith(b"This is a netCDF dimension but not a netCDF variable"))


def _elsewhere(path: str, what: str) -> ProblemError:
    return expected("numbers inside the file itself", f"{what} at {path!r}", "copying the numbers into one file")


def check_numbers(datasets: Mapping[str, h5py.Dataset], limit: int) -> None:
    """Real numbers, of no more bytes in all than the limit, whether stored or only declared."""
    total = 0
    for path, dataset in datasets.items():
        if dataset.shape is None or dataset.dtype.kind not in "iuf":
            kind = "nothing" if dataset.shape is None else shortened(str(dataset.dtype), 40)
            raise expected(f"real numbers in {path!r}", kind, "another variable")
        total += 8 * max(math.prod(dataset.shape), math.prod(dataset.chunks or (0,)))
        if total > limit:
            received = f"{total / 2**20:.0f} MiB up to {path!r}"
            raise expected(f"at most {limit / 2**20:.0f} MiB of numbers", received, "a part of it")
        _check_filters(path, dataset, limit)


def _check_filters(path: str, dataset: h5py.Dataset, limit: int) -> None:
    """A compressed chunk that unpacks to more than a chunk is a bomb: HDF5 would follow it to its end."""
    pipeline = dataset.id.get_create_plist()
    filters = [pipeline.get_filter(i)[0] for i in range(pipeline.get_nfilters())]
    if any(code not in KNOWN_FILTERS for code in filters) or filters.count(DEFLATE) > 1:
        raise expected(f"{path!r} plain or compressed by deflate", f"filters {filters}", "writing it again")
    if DEFLATE not in filters:
        return
    size = math.prod(dataset.chunks) * dataset.dtype.itemsize
    large: list[tuple[int, tuple[int, ...]]] = []

    def look(chunk: h5py.h5d.StoreInfo) -> None:
        if chunk.size * LARGEST_RATIO > limit:
            large.append((chunk.size, chunk.chunk_offset))

    dataset.id.chunk_iter(look)  # one walk: asked for by its number, each chunk is searched from the first
    packed_most = dataset.file.id.get_filesize()
    if any(stored > packed_most for stored, _ in large):
        raise expected(f"chunks of {path!r} inside the file", "one that is larger", "writing it again")
    for _, offset in large:
        _, packed = dataset.id.read_direct_chunk(offset)
        if len(zlib.decompressobj().decompress(packed, size + 5)) > size + 4:  # a checksum may follow
            raise expected(f"chunks of {size} bytes in {path!r}", "one that unpacks to more", "writing it again")


@contextmanager
def netcdf(file: BinaryIO, wanted: Collection[str], datasets: Mapping[str, h5py.Dataset]) -> Iterator[xr.Dataset]:
    """The wanted variables of an open file as xarray knows them; what it thinks of odd attributes is not told.

    Units are for readers: a time axis in "days" stays the numbers that were measured at, or solved with.
    """
    import xarray as xr

    others = [name for name in datasets if "/" not in name and name not in wanted]
    if len(others) > MOST_VARIABLES:
        received = f"{len(others) + len(wanted)}"
        raise expected(f"a NetCDF file of at most {MOST_VARIABLES} variables", received, "those that are needed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with xr.open_dataset(
            file, engine="h5netcdf", decode_times=False, drop_variables=others, phony_dims="access"
        ) as lazy:
            yield lazy
