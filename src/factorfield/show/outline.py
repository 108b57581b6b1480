"""The outline of a region in pictures: every part of its boundary in the colour of the condition that holds there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from factorfield.errors import shortened
from factorfield.problem.problem import Problem
from factorfield.problem.shape import Wall
from factorfield.show.style import BLACK, BLUE, GREEN, ORANGE, PINK

Array = NDArray[np.float64]
PARTS = 96  # chords of a stretch: a circle looks round
COLOURS = (ORANGE, BLUE, PINK, GREEN)  # in turn


@dataclass(frozen=True, eq=False)
class Outline:
    """Lines (n, 2) of one condition, or of the boundary that has none."""

    label: str
    colour: str
    lines: tuple[Array, ...]


def outlines(problem: Problem) -> list[Outline]:
    """All of a region's boundary in black, with every condition's part over it."""
    if problem.shape is None:
        return []
    found = [Outline("boundary without a condition", BLACK, _lines(problem.shape.boundary))]
    for index, statement in enumerate(s for s in problem.statements if s.wall is not None):
        assert statement.wall is not None
        label = shortened(statement.name.removeprefix("boundary").lstrip(": "), 36)
        found.append(Outline(label, COLOURS[index % len(COLOURS)], _lines(statement.wall)))
    covered = sum(s.wall.length for s in problem.statements if s.wall is not None)
    return found[1:] if covered > (1.0 - 1e-9) * problem.shape.boundary.length else found


def _lines(wall: Wall) -> tuple[Array, ...]:
    return tuple(s.piece.at(np.linspace(s.low, s.high, PARTS + 1))[0] for s in wall.stretches)
