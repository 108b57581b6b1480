"""Regions: the part of a plane where equations hold, told by inequalities or by a polygon.

A Region is a description; where it lies in its domain, and what its boundary is, a `Shape` knows (shape.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from factorfield.errors import expected
from factorfield.problem.parsing import parse_condition
from factorfield.problem.polygon import Corner, Polygon


@dataclass(frozen=True, init=False)
class Region:
    """Part of the plane of a problem's two space axes: ff.Region("x**2 + y**2 < 1 and (x - 0.3)**2 + y**2 > 0.1").

    Comparisons joined by and, or, not, in the space axes and parameters that are known numbers; parsed like equations,
    never run. The box of the domain cuts it. `Region.polygon` keeps corners sharp.
    """

    text: str = ""
    outline: Polygon | None = field(default=None)

    def __init__(self, inside: str) -> None:
        parse_condition(inside)
        object.__setattr__(self, "text", inside)
        object.__setattr__(self, "outline", None)

    @staticmethod
    def polygon(points: Sequence[Corner], holes: Sequence[Sequence[Corner]] = ()) -> Region:
        """Inside a polygon and outside its holes, each a list of corners (x, y) in the order of a walk around it.

        Edge i leads from corner i to the next; edges of holes are counted on from there.
        """
        if isinstance(points, str):
            raise expected("corners [(x, y), ...]", points, "ff.Region(text) for inequalities")
        found = object.__new__(Region)
        object.__setattr__(found, "text", "")
        object.__setattr__(found, "outline", Polygon.of(points, holes))
        return found

    def __repr__(self) -> str:
        if self.outline is None:
            return f"Region({self.text!r})"
        rings = self.outline.rings
        return f"Region.polygon({len(rings[0])} corners, {len(rings) - 1} holes)"
