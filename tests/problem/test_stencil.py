"""Linear functionals of more than one point: averages over cells, differences of two faces."""

from __future__ import annotations

import pytest

import factorfield as ff

LINE = {"x": ff.Interval(0, 1)}


@pytest.mark.parametrize(
    ("average", "words"),
    [
        ({"x": 2.0}, "cells inside"),
        ({"x": -1.0}, "one width > 0"),
        ({"z": 0.1}, "average along"),
        ({"x": "a"}, "width"),
    ],
)
def test_bad_cells_are_refused(average: dict[str, object], words: str) -> None:
    with pytest.raises(ff.ProblemError, match=words):
        ff.Problem("u_xx = 1", LINE, {}, [ff.Observations(x=0.5, u=1.0, average=average)])  # type: ignore[arg-type]


@pytest.mark.parametrize("at", [{"x": (0, 0)}, {"x": (0, 1, 2)}, {"x": (0, 3)}])
def test_bad_pairs_of_faces_are_refused(at: dict[str, tuple[float, ...]]) -> None:
    with pytest.raises(ff.ProblemError):
        ff.Problem("u_xx = 1", LINE, {}, [ff.Boundary("u", at=at)])  # type: ignore[arg-type]
    with pytest.raises(ff.ProblemError, match="without '='"):
        ff.Problem("u_xx = 1", LINE, {}, [ff.Boundary("u = 0", at={"x": (0, 1)})])
