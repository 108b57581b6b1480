"""Windows over cells that move: each has its own, as many, and states cross from cells to cells by a linear map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from factorfield.model.basis import Family
from factorfield.model.graded import GradedSpline, coarser
from factorfield.model.model import Space, WindowModel
from factorfield.model.representation import window_representation
from factorfield.model.sizes import sizes_of
from factorfield.model.windowed import projections, with_families
from factorfield.problem.domain import TIME


def on_cells(model: WindowModel, cells: GradedSpline, degree: int | None = None) -> WindowModel:
    """The model of the same problem whose first window is on given cells; other windows are to be found."""
    return with_cells(model, dict.fromkeys(model.local, cells), degree)


def with_cells(model: WindowModel, cells: Mapping[str, GradedSpline], degree: int | None = None) -> WindowModel:
    """The same with cells of every axis."""
    ansatz = model.representation.forms[model.problem.fields[0]].activation
    families: dict[str, Family] = {**cells}
    sizes, asked = sizes_of(model.problem, ansatz), replace(model.asked, degree=degree or model.degree)
    found = with_families(model.problem, families, ansatz, sizes, {}, asked, families)
    return replace(found, asked=model.asked, start=model.start, held=model.held)


def moved_to(model: WindowModel, cells: GradedSpline) -> WindowModel:
    """The model with all that a window reads in space moved to other cells, as many."""
    horizon, families = model.problem.domain[TIME], dict[str, Family](dict.fromkeys(model.local, cells))
    points = {axis: cells.quadrature[0] for axis in families}
    return replace(
        model, representation=window_representation(model.representation, horizon.lower, horizon.upper, cells),
        space=Space(points, projections(model.problem, families, points)), cells=(),
    )  # fmt: skip


def on_fewer_cells(model: WindowModel) -> WindowModel:
    """The same windows on two thirds of their cells, with polynomials of one degree less in time."""
    if model.in_plane:
        few = {axis: coarser(own) for axis, own in model.local.items()}
        return replace(with_cells(model, few, model.degree - 1), edges=model.edges)
    fewer = tuple(coarser(cells) for cells in model.cells)
    return replace(on_cells(model, fewer[0], model.degree - 1), edges=model.edges, cells=fewer)


def cells_of_window(model: WindowModel, index: int) -> dict[str, GradedSpline]:
    """The cells of a window along its axes of space."""
    return dict.fromkeys(model.local, model.cells[index]) if model.cells else model.local
