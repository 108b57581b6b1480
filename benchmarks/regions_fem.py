"""Regions without a mesh beside finite elements: the plate with two holes, at errors of 1e-5 and of 1e-7.

python benchmarks/regions_fem.py     # needs scikit-fem 12 (pip install scikit-fem, in an environment of its own)

Both are tuned to about the error asked for, run in turn, and timed in processor seconds. The functions `splines` and
`elements` are what a user would write: their lines are counted. scikit-fem's meshers know no plate with holes, so that
four fans around each hole are made of its tensor meshes, with curved triangles at the holes.
"""

from __future__ import annotations

import inspect
import logging
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import factorfield as ff

Array = NDArray[np.float64]
ROUNDS = 9
TUNED = {"1e-5": (18, 10), "1e-7": (26, 46)}  # cells along y, triangles along each side of a fan: what errors take
HOLES = ((0.6, 0.5, 0.2, 0.0), (1.4, 0.4, 0.15, 1.0))  # centre, radius, lower left corner of the square around it


def field(x: Array, y: Array) -> Array:
    first, second = (x - 0.6) ** 2 + (y - 0.5) ** 2, (x - 1.4) ** 2 + (y - 0.4) ** 2
    return np.asarray(x + 0.1 * np.log(first) - 0.05 * np.log(second))


def slopes(x: Array, y: Array) -> tuple[Array, Array]:
    first, second = (x - 0.6) ** 2 + (y - 0.5) ** 2, (x - 1.4) ** 2 + (y - 0.4) ** 2
    along_x = 1.0 + 0.2 * (x - 0.6) / first - 0.1 * (x - 1.4) / second
    return along_x, 0.2 * (y - 0.5) / first - 0.1 * (y - 0.4) / second


# -- what a user writes


def splines(cells: int) -> ff.Solution:
    first, second = "((x - 0.6)**2 + (y - 0.5)**2)", "((x - 1.4)**2 + (y - 0.4)**2)"
    value = f"x + 0.1*log({first}) - 0.05*log({second})"
    along_x = f"(1 + 0.2*(x - 0.6)/{first} - 0.1*(x - 1.4)/{second})"
    along_y = f"(0.2*(y - 0.5)/{first} - 0.1*(y - 0.4)/{second})"
    walls = [
        ff.Boundary(f"u = {value}", at=f"y < 0.999 and {second} > 0.03"),
        ff.Boundary(f"u_n = {along_y}", at={"y": 1}),
        ff.Boundary(f"u_n = -({along_x}*(x - 1.4) + {along_y}*(y - 0.4))/0.15", at=f"{second} < 0.03"),
    ]
    domain = {"x": ff.Interval(0, 2), "y": ff.Interval(0, 1)}
    region = ff.Region(f"{first} > 0.04 and {second} > 0.0225")
    problem = ff.Problem("u_xx + u_yy = 0", domain, {}, walls, region=region)
    return ff.solve(problem, cells={"x": 2 * cells, "y": cells})


def elements(along: int) -> tuple[Any, Array]:
    from skfem import Basis, ElementTriP2, FacetBasis, LinearForm, MeshTri, MeshTri2, condense, solve
    from skfem.models.poisson import laplace

    plate = None
    for x, y, radius, left in HOLES:
        corners = np.array([(left, 0.0), (left + 1, 0.0), (left + 1, 1.0), (left, 1.0)])
        for a, b in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            square = MeshTri.init_tensor(np.linspace(0, 1, along + 1), np.linspace(0, 1, along + 1))
            share, out = square.p
            begin, end = (np.arctan2(p[1] - y, p[0] - x) for p in (a, b))
            angle = begin + share * ((end - begin) % (2 * np.pi))
            rim = np.array([[x], [y]]) + radius * np.stack([np.cos(angle), np.sin(angle)])
            fan = MeshTri((1 - out) * rim + out * (a[:, None] + share * (b - a)[:, None]), square.t)
            plate = fan if plate is None else plate + fan
    near = [lambda p, h=h: np.abs(np.hypot(p[0] - h[0], p[1] - h[1]) - h[2]) < 0.2 * h[2] for h in HOLES]
    curved = MeshTri2.from_mesh(plate)
    nodes = curved.doflocs.copy()
    for (x, y, radius, _), on_rim in zip(HOLES, near, strict=True):
        middle = plate.p.shape[1] + plate.facets_satisfying(on_rim, boundaries_only=True)
        away = nodes[:, middle] - np.array([[x], [y]])
        nodes[:, middle] = np.array([[x], [y]]) + radius * away / np.hypot(*away)
    mesh = MeshTri2(nodes, curved.t).with_boundaries({
        "flux": lambda p: np.isclose(p[1], 1.0) | near[1](p), "value": lambda p: ~(np.isclose(p[1], 1.0) | near[1](p)),
    })  # fmt: skip
    basis, walls = Basis(mesh, ElementTriP2()), FacetBasis(mesh, ElementTriP2(), facets="flux")
    load = LinearForm(lambda v, w: sum(s * n for s, n in zip(slopes(*w.x), w.n, strict=True)) * v).assemble(walls)
    found, held = np.zeros(basis.N), basis.get_dofs("value").all()
    found[held] = field(*basis.doflocs[:, held])
    return basis, solve(*condense(laplace.assemble(basis), load, x=found, D=held))


# -- what is measured


def error_of_splines(solution: ff.Solution) -> float:
    x, y = np.linspace(0.0, 2.0, 161), np.linspace(0.0, 1.0, 81)
    found = solution.predict(x=x, y=y)["mean"].values
    truth, inside = field(*np.meshgrid(x, y, indexing="ij")), np.isfinite(found)
    return float(np.linalg.norm(found[inside] - truth[inside]) / np.linalg.norm(truth[inside]))


def error_of_elements(found: tuple[Any, Array]) -> float:
    """By quadrature on the triangles: scikit-fem finds no points in curved ones."""
    from skfem import Basis

    basis = Basis(found[0].mesh, found[0].elem, intorder=6)
    truth, shares = field(*basis.mapping.F(basis.X)), basis.dx
    missed = np.asarray(basis.interpolate(found[1])) - truth
    return float(np.sqrt(np.sum(shares * missed**2) / np.sum(shares * truth**2)))


def lines_of(function: Callable[..., object]) -> int:
    return sum(bool(line.strip()) for line in inspect.getsource(function).splitlines()[1:])


def compared(cells: int, along: int) -> None:
    runs: dict[str, Callable[[], Any]] = {"splines": lambda: splines(cells), "elements": lambda: elements(along)}
    spent: dict[str, list[float]] = {name: [] for name in runs}
    found = {name: run() for name, run in runs.items()}  # compiles and imports
    for _ in range(ROUNDS):
        for name, run in runs.items():
            begin = time.process_time()
            run()
            spent[name].append(time.process_time() - begin)
    seconds = {name: statistics.median(times) for name, times in spent.items()}
    ours, rival = found["splines"], found["elements"]
    size, other_size = ours.posterior.representation.size, rival[0].N
    print(f"| quintic splines, {2 * cells} x {cells} cells; std and error estimate included | {size} | "
          f"{error_of_splines(ours):.1e} | {seconds['splines']:.2f} | {lines_of(splines)} |")  # fmt: skip
    print(f"| P2 triangles, {along} along a side of each fan; mean only | {other_size} | "
          f"{error_of_elements(rival):.1e} | {seconds['elements']:.2f} | {lines_of(elements)} |")  # fmt: skip


def main() -> None:
    try:
        import skfem
    except ImportError:
        print("skipped: scikit-fem is not installed (pip install scikit-fem)")
        return
    logging.getLogger("skfem").setLevel(logging.ERROR)
    warnings.simplefilter("ignore", ff.AdviceWarning)
    print(f"scikit-fem {skfem.__version__}, medians of {ROUNDS} runs in turn\n")
    print("| | weights | relative L2 | processor seconds | lines |\n|---|---|---|---|---|")
    for cells, along in TUNED.values():
        compared(cells, along)


if __name__ == "__main__":
    main()
