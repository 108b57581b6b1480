"""Files of one's own in the published layout."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import factorfield as ff
from factorfield.data.audit import audit
from factorfield.data.generate import generate


@pytest.mark.parametrize(("equation", "physics"), [("advection", {"b": 0.4}), ("fisher-kpp", {"nu": 1.0, "rho": 10.0})])
def test_a_generated_file_has_the_published_layout_and_passes_the_audit(
    equation: str, physics: dict[str, float], tmp_path: Path
) -> None:
    path = generate(equation, tmp_path / "own.hdf5", 3, physics)
    with h5py.File(path) as stored:
        frames = 201 if equation == "advection" else 101
        assert stored["tensor"].shape == (3, frames, 1024) and stored["tensor"].dtype == np.float32
        assert stored["t-coordinate"].shape == (frames + 1,) and stored["x-coordinate"].shape == (1024,)
    result = audit(path)
    assert result.defects == [] and result.physics == physics
    assert max(row.error for row in result.rows) < 1e-5
    problem = ff.problems.get(equation, file=path, row=1)
    assert problem.constants == physics and problem.stored.shape == (frames, 1024)


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        generate("advection", tmp_path / "own.hdf5", 3, {"b": 1.0}, report=interrupt)
    assert list(tmp_path.iterdir()) == []
