"""Beliefs at the windows' starts in a file instead of memory: long horizons then cost the same memory as short ones."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, overload

from factorfield.errors import expected
from factorfield.messages.gaussian import Belief

if TYPE_CHECKING:
    import h5py


class StoredBeliefs(Sequence[Belief]):
    """A list of beliefs of one size that lives in an HDF5 file, written as windows finish and read one at a time."""

    def __init__(self, path: str | os.PathLike[str], size: int) -> None:
        import h5py

        try:
            self._file = h5py.File(path, "w")
        except OSError as problem:
            raise expected("a file to keep windows in", f"{path} ({problem})", "store='windows.h5'") from None
        self._mean = self._growing("mean", (size,))
        self._root = self._growing("root", (size, size))

    def _growing(self, name: str, shape: tuple[int, ...]) -> h5py.Dataset:
        return self._file.create_dataset(name, (0, *shape), "f8", maxshape=(None, *shape), chunks=(1, *shape))

    def close(self) -> None:
        """Let go of the file, so that another attempt may write it."""
        self._file.close()

    def append(self, belief: Belief) -> None:
        count = len(self) + 1
        for stored, value in ((self._mean, belief.mean), (self._root, belief.root)):
            stored.resize(count, axis=0)
            stored[count - 1] = value
        self._file.flush()

    def __len__(self) -> int:
        return int(self._mean.shape[0])

    @overload
    def __getitem__(self, index: int) -> Belief: ...
    @overload
    def __getitem__(self, index: slice) -> list[Belief]: ...
    def __getitem__(self, index: int | slice) -> Belief | list[Belief]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return Belief(self._mean[index % len(self)], self._root[index % len(self)])

    def __iter__(self) -> Iterator[Belief]:
        return (self[index] for index in range(len(self)))
