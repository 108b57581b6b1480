"""Groundwater between a river and tight rock: the transmissivity from twelve heads around three wells.

T (h_xx + h_yy) + rain = pumping in a polygon with four edges (km, m, thousands of m^2 a year): the head of the river is
known on one edge, no water crosses the others, and each well takes its rate Q from a disk of some 300 m (a Gaussian).
T = 1.4 is unknown. Truth: control volumes on a triangulated polygon, 64 and 128 along each side, extrapolated; within
2e-5 m of the same with twice as many.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import interpolate, sparse
from scipy.sparse import linalg

from factorfield.problem.coefficients import Unknown
from factorfield.problem.domain import Interval
from factorfield.problem.problem import Boundary, Observations, Problem
from factorfield.problem.region import Region
from factorfield.problems._gallery import Array

CORNERS = np.array([(0.0, 0.0), (4.0, 0.0), (3.4, 2.4), (0.0, 2.4)])  # edge 3, the last one, is the river
WELLS = np.array([(1.2, 1.3), (2.4, 0.9), (2.7, 1.8)])
RATES, WIDTH, RAIN, HEAD = np.array([0.5, 0.8, 0.4]), 0.3, 0.25, 20.0
TRANSMISSIVITY, CELLS = 1.4, 64
PLACES = np.array([
    (0.5, 0.5), (0.5, 2.0), (1.0, 0.7), (1.1, 1.8), (1.7, 0.4), (1.8, 1.4), (1.9, 2.3), (2.5, 1.6), (2.9, 0.5),
    (3.3, 1.3), (3.5, 0.4), (3.1, 2.2),
])  # fmt: skip


def plane(first: Array, second: Array) -> Array:
    """From the unit square to the polygon: bilinear."""
    a, b, c, d = CORNERS
    s, t = first[..., None], second[..., None]
    return (1 - s) * (1 - t) * a + s * (1 - t) * b + s * t * c + (1 - s) * t * d


def balance(points: Array) -> Array:
    """Rain less pumping, per area."""
    taken = [
        rate / (2 * np.pi * WIDTH**2) * np.exp(-np.sum((points - well) ** 2, axis=-1) / (2 * WIDTH**2))
        for rate, well in zip(RATES, WELLS, strict=True)
    ]
    return RAIN - np.sum(taken, axis=0)


@lru_cache(maxsize=8)
def heads(cells: int, transmissivity: float = TRANSMISSIVITY) -> Array:
    """At the corners of a grid of cells: control volumes about the corners of triangles, two to a cell."""
    line = np.linspace(0.0, 1.0, cells + 1)
    corners = plane(*np.meshgrid(line, line, indexing="ij")).reshape(-1, 2)
    number = np.arange((cells + 1) ** 2).reshape(cells + 1, cells + 1)
    low, right, up, far = number[:-1, :-1], number[1:, :-1], number[:-1, 1:], number[1:, 1:]
    triangles = np.concatenate(
        [np.stack([low, right, far], -1).reshape(-1, 3), np.stack([low, far, up], -1).reshape(-1, 3)]
    )
    places = corners[triangles]
    opposite = np.roll(places, -2, axis=1) - np.roll(places, -1, axis=1)
    area = 0.5 * np.abs(opposite[:, 0, 0] * opposite[:, 1, 1] - opposite[:, 0, 1] * opposite[:, 1, 0])
    flows = transmissivity * np.einsum("kid,kjd->kij", opposite, opposite) / (4.0 * area[:, None, None])
    rows, columns = np.repeat(triangles, 3, axis=1).ravel(), np.tile(triangles, (1, 3)).ravel()
    matrix = sparse.csr_matrix((flows.ravel(), (rows, columns)))
    middles = 0.5 * (places + np.roll(places, -1, axis=1))  # of edges: exact for squares
    share = (balance(middles) + balance(np.roll(middles, 1, axis=1))) * area[:, None] / 6.0
    gained = np.bincount(triangles.ravel(), share.ravel(), len(corners))
    found = np.full(len(corners), HEAD)
    free = number[1:].ravel()  # the river is where the first coordinate is 0
    held = number[0]
    found[free] = linalg.spsolve(matrix[free][:, free].tocsc(), gained[free] - matrix[free][:, held] @ found[held])
    return found.reshape(cells + 1, cells + 1)


def extrapolated(cells: int = CELLS) -> interpolate.RectBivariateSpline:
    """Of second order, so that two grids tell the limit; over the unit square."""
    fine, line = heads(2 * cells), np.linspace(0.0, 1.0, cells + 1)
    return interpolate.RectBivariateSpline(line, line, fine[::2, ::2] + (fine[::2, ::2] - heads(cells)) / 3.0)


def unit_square(points: Array) -> Array:
    """The inverse of `plane`, by Newton's method."""
    found = np.full(points.shape, 0.5)
    a, b, c, d = CORNERS
    for _ in range(20):
        s, t = found[..., :1], found[..., 1:]
        along_s, along_t = (1 - t) * (b - a) + t * (c - d), (1 - s) * (d - a) + s * (c - b)
        left = plane(found[..., 0], found[..., 1]) - points
        determinant = along_s[..., 0] * along_t[..., 1] - along_s[..., 1] * along_t[..., 0]
        step_s = (left[..., 0] * along_t[..., 1] - left[..., 1] * along_t[..., 0]) / determinant
        step_t = (along_s[..., 0] * left[..., 1] - along_s[..., 1] * left[..., 0]) / determinant
        found = found - np.stack([step_s, step_t], axis=-1)
    return found


def exact(points: Array) -> Array:
    """Heads at points (n, 2); NaN outside the polygon."""
    at = unit_square(points)
    inside = np.all((at > -1e-9) & (at < 1.0 + 1e-9), axis=-1)
    values = extrapolated()(*np.clip(at, 0.0, 1.0).reshape(-1, 2).T, grid=False).reshape(inside.shape)
    return np.where(inside, values, np.nan)


def problem(noise: float = 0.02, seed: int = 0) -> Problem:
    import xarray as xr

    rng = np.random.default_rng(seed)
    values = exact(PLACES) + noise * rng.standard_normal(len(PLACES))
    seen = Observations(x=PLACES[:, 0], y=PLACES[:, 1], h=values, sigma=noise)
    pumping = " + ".join(
        f"{rate / (2 * np.pi * WIDTH**2)!r}*exp(-((x - {x})**2 + (y - {y})**2)/{2 * WIDTH**2!r})"
        for rate, (x, y) in zip(RATES.tolist(), WELLS.tolist(), strict=True)
    )
    axes = {"x": np.linspace(0.0, 4.0, 61), "y": np.linspace(0.0, 2.5, 41)}
    field = exact(np.stack(np.meshgrid(*axes.values(), indexing="ij"), axis=-1))
    return Problem(
        f"T*(h_xx + h_yy) + {RAIN} = {pumping}", {"x": Interval(0.0, 4.0), "y": Interval(0.0, 2.5)},
        {"T": Unknown(1.0, 1.0, positive=True)},
        [Boundary(f"h = {HEAD}", at=3), Boundary("h_n = 0", at=[0, 1, 2]), seen],
        truth=xr.DataArray(field, dims=("x", "y"), coords=axes, name="h"), name="groundwater",
        region=Region.polygon([(float(x), float(y)) for x, y in CORNERS]), units={"x": "km", "y": "km", "h": "m"},
    )  # fmt: skip
