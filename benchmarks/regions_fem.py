"""The plate with two holes by P2 triangles: scikit-fem (in an environment of its own) and its own mesh functions.

    python benchmarks/regions_fem.py

Its mesher makes squares; the holes are cut by moving the nodes next to a circle onto it, as its documentation does for
level sets; triangles have straight sides, so that the boundary is met to second order.
"""

from __future__ import annotations

import time

import numpy as np
from skfem import Basis, BilinearForm, ElementTriP2, FacetBasis, LinearForm, MeshTri, asm, condense, solve
from skfem.helpers import dot, grad

HOLES = (((0.6, 0.5), 0.2), ((1.4, 0.4), 0.15))


def field(x, y):
    first, second = (x - 0.6) ** 2 + (y - 0.5) ** 2, (x - 1.4) ** 2 + (y - 0.4) ** 2
    return x + 0.1 * np.log(first) - 0.05 * np.log(second)


def slopes(x, y):
    first, second = (x - 0.6) ** 2 + (y - 0.5) ** 2, (x - 1.4) ** 2 + (y - 0.4) ** 2
    return (1 + 0.2 * (x - 0.6) / first - 0.1 * (x - 1.4) / second, 0.2 * (y - 0.5) / first - 0.1 * (y - 0.4) / second)


def plate(count: int) -> MeshTri:
    """Triangles outside both circles, nodes within half a cell of a circle moved onto it."""
    mesh = MeshTri.init_tensor(np.linspace(0, 2, 2 * count + 1), np.linspace(0, 1, count + 1))
    nodes, h = mesh.p.copy(), 1.0 / count
    for (cx, cy), radius in HOLES:
        away = np.hypot(nodes[0] - cx, nodes[1] - cy)
        near = np.abs(away - radius) < 0.5 * h
        for axis, centre in enumerate((cx, cy)):
            nodes[axis, near] = centre + (nodes[axis, near] - centre) * radius / away[near]
    middle = nodes[:, mesh.t].mean(axis=1)
    inside = [np.hypot(middle[0] - cx, middle[1] - cy) < radius for (cx, cy), radius in HOLES]
    return MeshTri(nodes, mesh.t).remove_elements(np.flatnonzero(inside[0] | inside[1]))


@BilinearForm
def stiffness(u, v, w):
    return dot(grad(u), grad(v))


@LinearForm
def flux(v, w):
    along_x, along_y = slopes(w.x[0], w.x[1])
    return (along_x * w.n[0] + along_y * w.n[1]) * v


def run(count: int) -> None:
    begin = time.process_time()
    mesh = plate(count)
    basis = Basis(mesh, ElementTriP2())
    told = mesh.facets_satisfying(
        lambda x: (x[1] > 1 - 1e-9) | (np.hypot(x[0] - 1.4, x[1] - 0.4) < 0.15 + 0.3 / count), boundaries_only=True
    )
    held = np.setdiff1d(mesh.boundary_facets(), told)
    matrix, load = asm(stiffness, basis), asm(flux, FacetBasis(mesh, ElementTriP2(), facets=told))
    u = np.zeros(basis.N)
    fixed = basis.get_dofs(held).all()
    u[fixed] = field(*basis.doflocs[:, fixed])
    u = solve(*condense(matrix, load, x=u, D=fixed))
    spent = time.process_time() - begin
    values, x = basis.interpolate(u), basis.global_coordinates()
    error = np.sqrt(np.sum((values - field(x[0], x[1])) ** 2 * basis.dx) / np.sum(field(x[0], x[1]) ** 2 * basis.dx))
    print(f"{2 * count} x {count} squares: relative L2 {error:.1e}, {basis.N} unknowns, {spent:.2f} s", flush=True)


if __name__ == "__main__":
    for count in (20, 40, 80, 160):
        run(count)
