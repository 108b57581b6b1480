"""Regions in problem files: inequalities, polygons and outlines from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import factorfield as ff

HEAD = 'equation = "u_xx + u_yy = -1"\n[domain]\nx = [0, 2]\ny = [0, 2]\n[region]\n'
WALL = '[[boundary]]\ntext = "u = 0"\n'
CORNERS = [[0.5, 0.5], [1.5, 0.5], [1.0, 1.5]]
HOLE = [[0.9, 0.7], [1.1, 0.7], [1.0, 0.9]]
GEOJSON = (
    '{"type": "FeatureCollection", "features": [{"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", '
    f'"coordinates": [{[*CORNERS, CORNERS[0]]}, {[*HOLE, HOLE[0]]}]}}}}]}}'
)


def read(text: str, folder: Path, **files: str) -> ff.Problem:
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(content)
    (folder / "problem.toml").write_text(HEAD + text)
    return ff.read_problem(folder / "problem.toml").problem


def test_inequalities_may_name_parameters(tmp_path: Path) -> None:
    made = read('inside = "(x - 1)**2 + (y - 1)**2 < r**2"\n[parameters]\nr = 0.5\n' + WALL, tmp_path)
    assert made.shape is not None and made.shape.boundary.length == pytest.approx(np.pi)


def test_a_polygon_with_holes_is_the_same_from_corners_geojson_and_a_table(tmp_path: Path) -> None:
    written = read(f"polygon = {CORNERS}\nholes = [{HOLE}]\n{WALL}at = [0, 3]\n", tmp_path)
    stored = read('file = "part.geojson"\n' + WALL, tmp_path, part__geojson=GEOJSON)
    table = "x,y\n" + "".join(f"{x},{y}\n" for x, y in CORNERS)
    plain = read('file = "part.csv"\n' + WALL, tmp_path, part__csv=table)
    assert written.region == stored.region != plain.region
    assert plain.region == ff.Region.polygon(CORNERS)  # type: ignore[arg-type]
    assert [s.wall.length for s in written.statements if s.wall is not None] == [pytest.approx(1.2)]


def test_an_outline_outside_the_folder_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(ff.ProblemError, match="inside the problem file's folder"):
        read('file = "../part.geojson"\n' + WALL, tmp_path)


@pytest.mark.parametrize("at", [None, "x > 1", 2, [0, 1], {"y": 0.5}])
def test_where_a_wall_is_survives_saving(tmp_path: Path, at: str | int | list[int] | dict[str, float] | None) -> None:
    region = ff.Region.polygon(CORNERS, [HOLE])  # type: ignore[arg-type]
    domain = {"x": ff.Interval(0, 2), "y": ff.Interval(0, 2)}
    wall = ff.Boundary("u = 0", at=at, sigma=0.1)
    made = ff.Problem("u_xx + u_yy = -1", domain, conditions=[wall], region=region)
    with pytest.warns(ff.AdviceWarning):  # cells are few and thin parts are told
        path = ff.solve(made, cells={"x": 6, "y": 6}).save(tmp_path / "run.nc")
    loaded = ff.load(path).problem
    assert loaded.conditions == made.conditions and loaded.region == region
