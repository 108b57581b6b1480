"""Conditions as the user writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import factorfield as ff


def test_a_files_own_sigma_is_used_unless_another_is_given(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("x,t,u,sigma\n0.1,0,1.5,0.3\n0.2,0,1.7,0.4\n")
    assert np.array_equal(ff.Observations.from_file(path).sigma, [0.3, 0.4])  # type: ignore[arg-type]
    named = {"x": "x", "t": 0.0, "u": "u"}
    assert ff.Observations.from_file(path, sigma=0.1, **named).sigma == 0.1  # type: ignore[arg-type]
    assert ff.Observations.from_file(path, **named).sigma is None  # type: ignore[arg-type]


def test_measurements_are_shown_by_their_columns() -> None:
    assert repr(ff.Observations(x=[0.1], t=0.0, u=[1.0], sigma=0.1)) == "Observations(x, t, u, sigma=0.1)"
