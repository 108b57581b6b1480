"""Outlines of regions from files: GeoJSON polygons, and CSV files with a corner per line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from factorfield.errors import expected
from factorfield.problem.region import Region
from factorfield.problem.tables import read_columns

LARGEST_FILE = 1 << 24  # bytes
GEOJSON_ENDINGS = (".geojson", ".json")
EXAMPLE = '{"type": "Polygon", "coordinates": [[[0, 0], [1, 0], [1, 1], [0, 0]]]}'


def region_from_file(path: Path, axes: Sequence[str]) -> Region:
    """A polygon: of GeoJSON with its holes, of a CSV file with columns called as the axes are."""
    if not path.is_file():
        raise expected("an existing file with an outline", path.name, "checking the path")
    if path.suffix.lower() in GEOJSON_ENDINGS:
        rings = _rings(path)
        return Region.polygon(rings[0], rings[1:])
    columns = read_columns(path, list(axes), {})
    corners = np.stack([columns[axis] for axis in axes], axis=1)
    if not np.all(np.isfinite(corners)):
        row = int(np.flatnonzero(~np.all(np.isfinite(corners), axis=1))[0])
        raise expected(f"a corner in every line of {path.name}", f"none in row {row}", "dropping that line")
    return Region.polygon([(float(x), float(y)) for x, y in corners])


def _rings(path: Path) -> list[Any]:
    if path.stat().st_size > LARGEST_FILE:
        raise expected(f"at most {LARGEST_FILE >> 20} MiB in {path.name}", "more", "fewer corners")
    try:
        document = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError):
        raise expected(f"GeoJSON in {path.name}", "something else", EXAMPLE) from None
    geometry = _geometry(document, path)
    rings = geometry.get("coordinates")
    if not isinstance(rings, list) or not rings or not all(isinstance(ring, list) for ring in rings):
        raise expected(f"a list of rings under coordinates of {path.name}", type(rings).__name__, EXAMPLE)
    for number, ring in enumerate(rings):
        if len(ring) < 4 or ring[0] != ring[-1]:
            what = f"closed rings in {path.name}, whose last corner is the first"
            raise expected(what, f"ring {number}, which is open", "repeating its first corner")
        rings[number] = [corner[:2] if isinstance(corner, list) else corner for corner in ring]  # heights are left out
    return rings


def _geometry(document: Any, path: Path) -> dict[str, Any]:
    """The one polygon of a geometry, a feature or a collection of features."""
    kind = document.get("type") if isinstance(document, dict) else None
    if kind == "FeatureCollection" and isinstance(document.get("features"), list):
        if len(document["features"]) != 1:
            raise expected(f"one feature in {path.name}", len(document["features"]), "a file with the outline alone")
        return _geometry(document["features"][0], path)
    if kind == "Feature":
        return _geometry(document.get("geometry"), path)
    if kind != "Polygon":
        received = str(kind) if kind else "no type"
        raise expected(f"a GeoJSON Polygon in {path.name}", received, "one polygon with its holes")
    return dict(document)
