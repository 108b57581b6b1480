"""A product of two spline axes cut by a region: the same functions, those that reach into it, integrated inside only.

Walls are imposed weakly, so every function is a test function. A function of which little lies inside would make the
equations ill-conditioned; the ghost penalty ties it to the cells inside (`CutGrid.ghost`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special
from scipy.sparse import linalg as sparse_linalg

from factorfield.errors import expected
from factorfield.problem.domain import ARC, Orders, Points, normal_along
from factorfield.problem.shape import Shape, Wall
from factorfield.space.arcs import Arcs, Edges, cells_of, chopped
from factorfield.space.axes import Basis, Spline, basis_from_spec
from factorfield.space.cells import Cells, Weighting
from factorfield.space.cut import CutCells
from factorfield.space.grid import Grid

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Truth = NDArray[np.bool_]
Triplets = tuple[Indices, Indices, Array]
GHOST_OF_MASS = 1e-6  # of the ghost penalty in a projection: as little as makes it well-conditioned
INWARD = 1e-12  # of a cell: points on its sides are read so far inside, where its own functions are known


@dataclass(frozen=True)
class CutQuadrature:
    """How finely cut cells and walls are integrated. Whole cells do with fewer points than their polynomials ask for,
    because errors of neighbours cancel; cut cells and walls do not."""

    lines: int = 2  # Gauss lines in a part of a cut cell, more than the degree
    on_walls: int = 3  # Gauss points on an arc of a wall, more than the degree
    most_turn: float = 0.4  # radians by which a wall bends between two divisions


@dataclass(frozen=True, eq=False)
class CutGrid:
    """Products of splines along two axes, the first axis slowest, those that reach into a region."""

    grid: Grid
    shape: Shape
    rule: CutQuadrature = CutQuadrature()

    @staticmethod
    def of(axes: Mapping[str, Basis], shape: Shape, rule: CutQuadrature | None = None) -> CutGrid:
        if tuple(axes) != shape.axes or not all(isinstance(basis, Spline) for basis in axes.values()):
            raise expected(f"splines along the axes {', '.join(shape.axes)} of the region", ", ".join(axes) or "none",
                           "the axes of the domain in their order")  # fmt: skip
        return CutGrid(Grid(axes), shape, rule or CutQuadrature())

    @property
    def axes(self) -> Mapping[str, Basis]:
        return self.grid.axes

    @cached_property
    def _splines(self) -> tuple[Spline, Spline]:
        first, second = self.grid.axes.values()
        assert isinstance(first, Spline) and isinstance(second, Spline)
        return first, second

    @property
    def size(self) -> int:
        return len(self.functions)

    @property
    def resolution(self) -> dict[str, int]:
        return self.grid.resolution

    @property
    def places(self) -> dict[str, Array]:
        return {axis: x[self.functions] for axis, x in self.grid.places.items()}

    def spec(self) -> dict[str, Any]:
        """Of the axes; the region is a part of the problem."""
        return self.grid.spec()

    @staticmethod
    def from_spec(spec: Mapping[str, Any], shape: Shape) -> CutGrid:
        return CutGrid.of({axis: basis_from_spec(basis) for axis, basis in spec.items()}, shape)

    # -- which cells and functions

    @property
    def _degree(self) -> int:
        return max(basis.degree for basis in self._splines)

    @cached_property
    def _edges(self) -> Edges:
        first, second = self._splines
        return first.edges, second.edges

    @cached_property
    def _boundary(self) -> tuple[Arcs, Indices]:
        """The arcs of the whole boundary that do not lie on sides of cells, and their cells (arcs, 2)."""
        arcs = chopped(self.shape.boundary, self._edges, self.rule.most_turn)
        cell, on_side = cells_of(arcs, self._edges)
        crossing = np.flatnonzero(~on_side)
        return arcs.taken(crossing), cell[crossing]

    @cached_property
    def _is_cut(self) -> Truth:
        first, second = self._edges
        marks = np.zeros((len(first) - 1, len(second) - 1), bool)
        marks[tuple(self._boundary[1].T)] = True
        return marks

    @cached_property
    def _is_whole(self) -> Truth:
        middles = np.meshgrid(*(0.5 * (lines[1:] + lines[:-1]) for lines in self._edges), indexing="ij")
        inside = self._contains(np.stack([x.ravel() for x in middles], axis=1))
        return inside.reshape(self._is_cut.shape) & ~self._is_cut

    @cached_property
    def _is_active(self) -> Truth:
        return self._is_whole | self._is_cut

    def _contains(self, points: Array) -> Truth:
        return self.shape.contains(dict(zip(self.axes, points.T, strict=True)))

    @cached_property
    def functions(self) -> Indices:
        """The numbers, in the whole grid, of the functions that reach into the region."""
        return np.flatnonzero(self._marked)

    @cached_property
    def _marked(self) -> Truth:
        marked = np.zeros(self.grid.size, bool)
        marked[self._index_in_grid(np.argwhere(self._is_active))] = True
        return marked

    @cached_property
    def _number(self) -> Indices:
        """Of every function of the whole grid its number here, -1 for those outside."""
        return np.where(self._marked, np.cumsum(self._marked) - 1, -1)

    def _index_in_grid(self, cells: Indices) -> Indices:
        first, second = self._splines
        one, two = first.line.index[cells[:, 0]], second.line.index[cells[:, 1]]
        return (one[:, :, None] * second.size + two[:, None, :]).reshape(len(cells), one.shape[1] * two.shape[1])

    # -- integrals

    @cached_property
    def cells(self) -> Cells:
        """The whole inside: a row for every cell inside; cut cells take several rows of as many points."""
        lines = [basis.line for basis in self._splines]
        whole = np.argwhere(self._is_whole)
        per_row = int(np.prod([line.points.shape[1] for line in lines]))
        cell, cut, areas = self._cut_rows(per_row)
        x, y = (line.points[at] for line, at in zip(lines, whole.T, strict=True))
        u, v = (line.weights[at] for line, at in zip(lines, whole.T, strict=True))
        wide = len(whole), x.shape[1], y.shape[1]
        spread = [np.broadcast_to(x[:, :, None], wide), np.broadcast_to(y[:, None, :], wide)]
        points = {
            axis: np.concatenate([inner.reshape(len(whole), per_row), cut[:, :, number]])
            for number, (axis, inner) in enumerate(zip(self.axes, spread, strict=True))
        }
        weights = np.concatenate([(u[:, :, None] * v[:, None, :]).reshape(len(whole), per_row), areas])
        index = self._number[self._index_in_grid(np.concatenate([whole, cell]))]

        def derivatives(orders: Orders) -> Array:
            times = dict(orders)
            a, b = (
                line.table(times.get(axis, 0))[at]
                for axis, line, at in zip(self.axes, lines, whole.T, strict=True)
            )  # fmt: skip
            inner = (a[:, :, None, :, None] * b[:, None, :, None, :]).reshape(len(whole), per_row, index.shape[1])
            return np.concatenate([inner, self._table(cell, cut, orders)])

        return Cells(points, weights, index, derivatives)

    def _cut_rows(self, per_row: int) -> tuple[Indices, Array, Array]:
        """Rows of points in cut cells: the cell (rows, 2), points (rows, points, 2) and their areas."""
        arcs, at = self._boundary
        cells = np.argwhere(self._is_cut)
        numbers = np.cumsum(self._is_cut).reshape(self._is_cut.shape) - 1
        owner = numbers[tuple(at.T)]
        order = np.argsort(owner, kind="stable")
        points = max(basis.line.points.shape[1] for basis in self._splines)
        rule = CutCells(cells, arcs.taken(order), owner[order], self._edges)
        owner, where, areas = rule.quadrature(self._contains, self._degree + self.rule.lines, points)
        return _in_rows(owner, where, areas, cells, per_row)

    def wall_cells(self, wall: Wall) -> Cells:
        """A row for every arc of a wall in a cell; the points hold outward normals and the arc length too."""
        arcs = chopped(wall, self._edges, self.rule.most_turn)
        cell, _ = cells_of(arcs, self._edges)
        kept = np.flatnonzero(self._is_active[tuple(cell.T)])  # others are as short as rounding
        arcs, cell = arcs.taken(kept), cell[kept]
        places, normals, lengths, reached = arcs.gauss(self._degree + self.rule.on_walls)
        points = {axis: places[:, :, number] for number, axis in enumerate(self.axes)}
        points |= {normal_along(axis): normals[:, :, number] for number, axis in enumerate(self.axes)}
        points[ARC] = wall.walked(arcs.which[:, None], reached)
        index = self._number[self._index_in_grid(cell)]
        return Cells(points, lengths, index, lambda orders: self._table(cell, places, orders))

    def _table(self, cell: Indices, points: Array, orders: Orders) -> Array:
        """The functions of cells (rows, 2) at points (rows, points, 2) inside or on their sides."""
        times, values = dict(orders), []
        for number, (axis, basis) in enumerate(zip(self.axes, self._splines, strict=True)):
            low, high = basis.edges[cell[:, number], None], basis.edges[cell[:, number] + 1, None]
            margin = INWARD * (high - low)
            x = np.clip(points[:, :, number], low + margin, high - margin)
            _, table = basis.local(x.ravel(), times.get(axis, 0))
            values.append(table.reshape(*x.shape, basis.degree + 1))
        product = values[0][:, :, :, None] * values[1][:, :, None, :]
        return product.reshape(*product.shape[:2], product.shape[2] * product.shape[3])

    def weighting_inside(self) -> Weighting:
        """All functions: walls are imposed weakly."""
        return weighting_of(self.cells)

    def read(self, points: Points, orders: Orders) -> tuple[Indices, Array]:
        """As `Grid.read`; a function that does not reach into the region reads 0, under the index 0."""
        index, values = self.grid.read(points, orders)
        number = self._number[index]
        return np.maximum(number, 0), np.where(number < 0, 0.0, values)

    def projected(self, values: Array, onto: CutGrid) -> Array:
        """Coefficients of the nearest function of another grid of the region, in the mean square."""
        cells = onto.cells
        index, table = self.read(cells.flat, ())
        weighted = cells.table(()) * cells.weights[:, :, None]
        blocks = np.swapaxes(weighted, 1, 2) @ cells.table(())
        wanted = np.sum(table * values[index], axis=1).reshape(cells.weights.shape)
        right = np.zeros(onto.size)
        np.add.at(right, cells.index, np.einsum("cpf,cp->cf", weighted, wanted))
        rows, columns, ghost = onto.ghost()
        width = min(float(np.diff(basis.edges).min()) for basis in onto._splines)
        index = np.broadcast_to(cells.index[:, :, None], blocks.shape)
        across = np.broadcast_to(cells.index[:, None, :], blocks.shape)
        data = np.concatenate([blocks.ravel(), GHOST_OF_MASS * width**2 * ghost])
        places = np.concatenate([index.ravel(), rows]), np.concatenate([across.ravel(), columns])
        mass = sparse.csc_matrix((data, places), shape=(onto.size, onto.size))
        return np.asarray(sparse_linalg.spsolve(mass, right))

    # -- stabilisation

    def ghost(self) -> Triplets:
        """Rows, columns and values of a positive semidefinite matrix that ties cut cells to the cells inside.

        The face ghost penalty (Burman 2010): over the sides of cut cells within the region's cells, the integral of
        the squared jump of the p-th derivative across. For splines of degree p with simple knots only that derivative
        jumps, so one term is enough, and polynomials across a side that agree in it agree everywhere. The scale
        h^(2p-1) / ((p-1)!^2 (2p-1)) makes it the energy, the integral of |grad|^2 over the next cell, of the difference
        of the two polynomials. So a fraction of it, times the coefficient of diffusion, bounds the energy in a cut
        cell by that in the cells inside, however little is inside. For smooth fields the jump is of the order h, and
        the penalty of the order h^(2p+1): less than the squared error of the energy, h^(2p). Sides on repeated breaks
        are left out, because the field may have a kink there.

        A hundredth of it is enough: a sliver then has the condition number of a wall on a grid line. More of it adds
        to the error: the whole of it makes the error of quintic splines six to nine times as large.
        """
        blocks = [self._ghost_along(axis) for axis in (0, 1)]
        index = np.concatenate([index for index, _ in blocks])
        values = np.concatenate([block for _, block in blocks])
        rows = np.repeat(index, index.shape[1], axis=1).ravel()
        columns = np.tile(index, index.shape[1]).ravel()
        total = sparse.coo_matrix((values.ravel(), (rows, columns)), shape=(self.size, self.size)).tocsr().tocoo()
        return total.row.astype(np.int64), total.col.astype(np.int64), total.data

    def _ghost_along(self, axis: int) -> tuple[Indices, Array]:
        """Functions (sides, functions) and blocks (sides, functions, functions) of the sides across an axis."""
        along, other = self._splines[axis], self._splines[1 - axis]
        active, is_cut = (marks if axis == 0 else marks.T for marks in (self._is_active, self._is_cut))
        before, after, jump, index = _jumps(along)
        faces = active[before] & active[after] & (is_cut[before] | is_cut[after])
        side, cell = np.nonzero(faces)
        one, two = index[side], other.line.index[cell]
        wide = len(side), one.shape[1] * two.shape[1]
        if axis == 0:
            numbers = one[:, :, None] * other.size + two[:, None, :]
            block = np.einsum("sa,sb,sij->saibj", jump[side], jump[side], _masses(other)[cell])
        else:
            numbers = two[:, :, None] * along.size + one[:, None, :]
            block = np.einsum("sa,sb,sij->siajb", jump[side], jump[side], _masses(other)[cell])
        return self._number[numbers.reshape(wide)], block.reshape(*wide, wide[1])


def weighting_of(cells: Cells) -> Weighting:
    """All functions of cells, inside or on a wall, as test functions."""
    return Weighting(cells.index, cells.table(()))


def _jumps(basis: Spline) -> tuple[Indices, Indices, Array, Indices]:
    """At breaks that are not repeated: the cells before and after, the scaled jump of the p-th derivative as shares of
    functions (breaks, functions), and these."""
    p, edges = basis.degree, basis.edges
    cells, width = np.arange(len(edges) - 1), np.diff(edges)
    before, after = (cells, np.roll(cells, -1)) if basis.periodic else (cells[:-1], cells[1:])
    simple = np.array([np.count_nonzero(np.array(basis.breaks) == edges[cell]) == 1 for cell in after], bool)
    before, after = before[simple], after[simple]
    _, top = basis.local(0.5 * (edges[1:] + edges[:-1]), p)  # the p-th derivative is the same all over a cell
    jump = np.zeros((len(before), p + 2))
    jump[:, :-1] -= top[before]
    jump[:, 1:] += top[after]
    size = 0.5 * (width[before] + width[after])
    scale = size ** (p - 0.5) / (special.factorial(p - 1) * np.sqrt(2.0 * p - 1.0))
    index = np.concatenate([basis.line.index[before], basis.line.index[after][:, -1:]], axis=1)
    return before, after, jump * scale[:, None], index


def _masses(basis: Spline) -> Array:
    """The integrals of products of two functions over every cell, (cells, functions, functions)."""
    nodes, shares = np.polynomial.legendre.leggauss(basis.degree + 1)
    half = 0.5 * np.diff(basis.edges)[:, None]
    points = basis.edges[:-1, None] + half * (1.0 + nodes)
    _, values = basis.local(points.ravel())
    table = values.reshape(*points.shape, -1)
    return np.asarray(np.einsum("cp,cpi,cpj->cij", half * shares, table, table))


def _in_rows(owner: Indices, where: Array, areas: Array, cells: Indices, per_row: int) -> tuple[Indices, Array, Array]:
    """Points of cells, in their order, in rows of equal length: the last of a cell is filled up with its last point."""
    counts = np.bincount(owner, minlength=len(cells))
    rows = -(-counts // per_row)
    row_of_cell = np.cumsum(rows) - rows
    place = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    row, column = row_of_cell[owner] + place // per_row, place % per_row
    total = int(rows.sum())
    source = np.full((total, per_row), -1)
    source[row, column] = np.arange(len(owner))
    weights = np.where(source >= 0, areas[source], 0.0) if len(owner) else np.zeros((total, per_row))
    filled = np.maximum.accumulate(source, axis=1)
    return cells[np.repeat(np.arange(len(cells)), rows)], where[filled], weights
