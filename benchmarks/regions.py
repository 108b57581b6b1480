"""How good are regions without a mesh? One question per word:

python benchmarks/regions.py cells          # error on 12 to 96 cells along a disk with a hole, of values and of u_n
python benchmarks/regions.py placements     # the same shifted and turned at random, 40 times each on 12, 16, 24 cells
python benchmarks/regions.py groundwater    # does the interval of the transmissivity hold it, over 40 draws?
python benchmarks/regions.py corners        # values and fluxes past corners on 16 to 96 cells: error and coverage
python benchmarks/regions.py walls          # a wall that is off: its std, and that inside, on 12 to 48 cells
python benchmarks/regions.py drum           # the noisy wave-disk: error and coverage, three draws
python benchmarks/regions.py plate          # error, weights and seconds on the plate with two holes
python benchmarks/regions.py start          # what was there at the start, from 80 sensors x 16 times around two holes?
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

import factorfield as ff
from factorfield.problem.domain import normal_along

Array = NDArray[np.float64]
BOX = {"x": ff.Interval(-1.2, 1.2), "y": ff.Interval(-1.2, 1.2)}
FIELD = "exp(0.7*(x - a))*sin(1.3*(y - b)) + 0.5*(x - a)**2"
ALONG_X, ALONG_Y = "(0.7*exp(0.7*(x - a))*sin(1.3*(y - b)) + x - a)", "1.3*exp(0.7*(x - a))*cos(1.3*(y - b))"
OUTSIDE, INSIDE = "(x - a)**2 + (y - b)**2 > 0.8", "(x - a)**2 + (y - b)**2 < 0.8"


def disk_with_hole(walls: str, a: float = 0.0, b: float = 0.0, angle: float = 0.3) -> ff.Problem:
    """Of radius 1, with a hole of radius 0.3 at 0.22 from its centre, and a known smooth field."""
    parameters = {"a": a, "b": b, "c": a + 0.22 * np.cos(angle), "d": b + 0.22 * np.sin(angle)}
    if walls == "Dirichlet":
        conditions = [ff.Boundary(f"u = {FIELD}")]
    else:
        flux = f"{ALONG_X}*(x - a) + {ALONG_Y}*(y - b)"
        conditions = [
            ff.Boundary(f"u_n + 2*u = {flux} + 2*({FIELD})", at=OUTSIDE),
            ff.Boundary(f"u_n = -({ALONG_X}*(x - c) + {ALONG_Y}*(y - d))/0.3", at=INSIDE),
        ]
    region = ff.Region("(x - a)**2 + (y - b)**2 < 1 and (x - c)**2 + (y - d)**2 > 0.09")
    source = "-1.2*exp(0.7*(x - a))*sin(1.3*(y - b)) + 1"
    return ff.Problem(f"u_xx + u_yy = {source}", BOX, parameters, conditions, region=region)


def exact(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """The field about the centre of the disk, and its slopes."""
    wave = np.exp(0.7 * x) * np.sin(1.3 * y)
    return wave + 0.5 * x**2, 0.7 * wave + x, 1.3 * np.exp(0.7 * x) * np.cos(1.3 * y)


def errors(problem: ff.Problem, cells: int) -> tuple[float, float, ff.Solution]:
    """Relative L2 of the field inside, and of its normal derivative along the walls."""
    solution = ff.solve(problem, cells={"x": cells, "y": cells})
    grid, a, b = np.linspace(-1.2, 1.2, 121), problem.constants["a"], problem.constants["b"]
    found = solution.predict(x=grid, y=grid)["mean"].values
    truth = exact(*np.meshgrid(grid - a, grid - b, indexing="ij"))[0]
    inside = np.isfinite(found)
    assert problem.shape is not None
    points, _ = problem.shape.boundary.points(0.02)
    at = {axis: points[axis] for axis in "xy"}
    slopes = [solution.predict(**at, of=of, points=True)["mean"].values for of in ("u_x", "u_y")]
    normal = [points[normal_along(axis)] for axis in "xy"]
    flux = slopes[0] * normal[0] + slopes[1] * normal[1]
    _, along_x, along_y = exact(points["x"] - a, points["y"] - b)
    true_flux = along_x * normal[0] + along_y * normal[1]
    return _relative(found[inside], truth[inside]), _relative(flux, true_flux), solution


def _relative(found: Array, truth: Array) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))


def cells() -> None:
    print("| walls | cells | weights | relative L2 of u | order | of u_n | order | estimated | processor seconds |")
    print("|---|---|---|---|---|---|---|---|---|")
    for walls in ("Dirichlet", "Robin and Neumann"):
        before: tuple[float, float] | None = None
        for count in (12, 24, 48, 96):
            begin = time.process_time()
            value, flux, solution = errors(disk_with_hole(walls), count)
            spent = time.process_time() - begin
            orders = (
                ["-", "-"]
                if before is None
                else [f"{np.log2(b / n):.1f}" for b, n in zip(before, (value, flux), strict=True)]
            )
            weights, estimated = solution.posterior.representation.size, solution.trace["numerical_error"]
            print(f"| {walls} | {count} x {count} | {weights} | {value:.1e} | {orders[0]} | {flux:.1e} | {orders[1]} | "
                  f"{estimated:.0e} | {spent:.1f} |", flush=True)  # fmt: skip
            before = value, flux


def placements(draws: int = 40) -> None:
    print("| walls | cells | draws | least error | median | largest | largest over median |")
    print("|---|---|---|---|---|---|---|")
    for walls in ("Dirichlet", "Robin and Neumann"):
        for count in (12, 16, 24):
            rng = np.random.default_rng(0)
            found = []
            for _ in range(draws):
                a, b = rng.uniform(-0.1, 0.1, 2)
                found.append(errors(disk_with_hole(walls, a, b, rng.uniform(0.0, 2.0 * np.pi)), count)[0])
            low, middle, high = np.min(found), np.median(found), np.max(found)
            print(f"| {walls} | {count} x {count} | {draws} | {low:.1e} | {middle:.1e} | {high:.1e} | "
                  f"{high / middle:.1f} |", flush=True)  # fmt: skip


def groundwater(draws: int = 40, count: int = 24) -> None:
    from factorfield.problems.groundwater import TRANSMISSIVITY

    held, scores, begin = 0, [], time.process_time()
    for seed in range(draws):
        after = ff.solve(ff.problems.get("groundwater", seed=seed), cells={"x": count, "y": count}).parameters["T"]
        held += after["interval"][0] < TRANSMISSIVITY < after["interval"][1]
        scores.append((np.log(after["mean"]) - np.log(TRANSMISSIVITY)) / (after["std"] / after["mean"]))
    spent = (time.process_time() - begin) / draws
    print(f"90 % intervals hold T in {held} of {draws} draws, rms of z {np.sqrt(np.mean(np.square(scores))):.2f}, "
          f"mean z {np.mean(scores):.2f}, {spent:.1f} processor seconds each")  # fmt: skip


def plate() -> None:
    """Errors, weights and seconds on the plate with two holes."""
    problem = ff.problems.get("plate-with-holes")
    for count in (24, 32, 48, 64):
        begin = time.process_time()
        solution = ff.solve(problem, cells={"x": count, "y": count})
        spent = time.process_time() - begin
        field = solution.predict(**{axis: problem.truth[axis] for axis in "xy"})
        score, weights = ff.metrics.score(field, problem.truth), solution.posterior.representation.size
        print(f"{count} x {count} cells: relative L2 {score['relative_l2']:.1e}, {weights} weights, {spent:.2f} s, std "
              f"and estimate {solution.trace['numerical_error']:.0e} included")  # fmt: skip


# -- corners

ARMS = [(0.0, 0.0), (3.0, 0.0), (3.0, 1.0), (1.0, 1.0), (1.0, 3.0), (0.0, 3.0)]


def arms(end: str) -> ff.Problem:
    """An L of arms of width 1; no flux through its walls, one end at zero, `end` at the other."""
    walls = [
        ff.Boundary(end, at={"x": 3.0}), ff.Boundary("u = 0", at={"y": 3.0}),
        ff.Boundary("u_n = 0", at="x < 2.999 and y < 2.999"),
    ]  # fmt: skip
    box = {"x": ff.Interval(0, 3), "y": ff.Interval(0, 3)}
    return ff.Problem("u_xx + u_yy = 0", box, {}, walls, region=ff.Region.polygon(ARMS))


def arms_by_differences(count: int) -> tuple[Array, Array, Array]:
    """Places and values with u = 1 at the end, by finite volumes of width 1 / count."""
    from scipy import sparse
    from scipy.sparse import linalg

    line = (np.arange(3 * count) + 0.5) / count
    x, y = np.meshgrid(line, line, indexing="ij")
    inside = (x < 1.0) | (y < 1.0)
    number = np.full(x.shape, -1)
    number[inside] = np.arange(np.count_nonzero(inside))
    first = np.concatenate([number[:-1].ravel(), number[:, :-1].ravel()])
    second = np.concatenate([number[1:].ravel(), number[:, 1:].ravel()])
    both = (first >= 0) & (second >= 0)
    first, second = first[both], second[both]
    own, gained = np.zeros(number.max() + 1), np.zeros(number.max() + 1)
    np.add.at(own, np.concatenate([first, second]), 1.0)
    hot, cold = number[-1][number[-1] >= 0], number[:, -1][number[:, -1] >= 0]
    own[hot] += 2.0
    own[cold] += 2.0
    gained[hot] = 2.0
    ones, every = -np.ones(len(first)), np.arange(len(own))
    rows, columns = np.concatenate([first, second, every]), np.concatenate([second, first, every])
    matrix = sparse.csc_matrix((np.concatenate([ones, ones, own]), (rows, columns)))
    return x[inside], y[inside], linalg.spsolve(matrix, gained)


def corners() -> None:
    """The L shape's r^(2/3); an L with values at its ends; one with a flux; and r^(1/2) where a value meets a flux."""
    from factorfield.problems.l_shape import exact as of_l_shape

    x, y, u = arms_by_differences(80)
    flux = float(2.0 * 80 * np.mean(u[(y > 3.0 - 1.0 / 80) & (x < 1.0)]))  # through the cold end
    line = np.linspace(-0.99, 0.99, 41)
    p, q = (g.ravel() for g in np.meshgrid(line, line))
    kept, half = (p < 0.0) | (q < 0.0), (q > 0.0) & (p**2 + q**2 < 0.89)
    root = "sqrt(0.5*(sqrt(x**2 + y**2) - x))"
    walls = [
        ff.Boundary("u = 0", at="y < 0.0001 and x > 0"), ff.Boundary("u_n = 0", at="y < 0.0001 and x < 0"),
        ff.Boundary(f"u = {root}", at="y > 0.0001"),
    ]  # fmt: skip
    box = {"x": ff.Interval(-1, 1), "y": ff.Interval(0, 1.2)}
    disk = ff.Problem("u_xx + u_yy = 0", box, {}, walls, region=ff.Region("x**2 + y**2 < 0.9"))
    cases = {
        "l-shape": (ff.problems.get("l-shape"), p[kept], q[kept], of_l_shape({"x": p[kept], "y": q[kept]})["u"]),
        "values at both ends": (arms("u = 1"), x, y, u),
        "flux at one end": (arms("u_n = 1"), x, y, u / flux),
        "value meets flux": (disk, p[half], q[half], np.sqrt(0.5 * (np.hypot(p[half], q[half]) - p[half]))),
    }
    print("| case | cells | relative L2 | estimated | within 90 % intervals |\n|---|---|---|---|---|")
    for name, (problem, along_x, along_y, truth) in cases.items():
        for count in (16, 24, 32, 48, 64, 96):
            solution = ff.solve(problem, cells={"x": count, "y": count})
            found = solution.predict(x=along_x, y=along_y, points=True)
            inside = np.abs(found["mean"].values - truth) < 1.645 * found["std"].values
            print(f"| {name} | {count} x {count} | {_relative(found['mean'].values, truth):.1e} | "
                  f"{solution.trace['numerical_error']:.0e} | {100 * np.mean(inside):.0f} % |", flush=True)  # fmt: skip


def walls() -> None:
    """Part of a disk's rim is off by 0.1; what Poisson's formula makes of that inside."""
    angle = np.linspace(-np.arccos(0.2), np.arccos(0.2), 2001)
    x, y = np.array([0.5, 0.0, 0.3, -0.5]), np.array([0.0, 0.0, 0.6, 0.0])
    away = (x[:, None] - np.cos(angle)) ** 2 + (y[:, None] - np.sin(angle)) ** 2
    shares = (1.0 - x**2 - y**2)[:, None] / (2.0 * np.pi * away) * (angle[1] - angle[0])
    scaled = np.sqrt(5.0) * np.abs(angle[:, None] - angle) / 0.5
    kernel = 0.01 * (1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled)
    exact_std = np.sqrt(np.einsum("ni,ij,nj->n", shares, kernel, shares))
    print("| cells | std on the wall, least and largest | inside, at four places |\n|---|---|---|")
    print(f"| exact | 0.1 | {', '.join(f'{s:.4f}' for s in exact_std)} |")
    on = np.linspace(-1.2, 1.2, 25)
    for count in (12, 24, 48):
        off = ff.Boundary("u = 1 + x", at="x > 0.2", sigma=0.1, length=0.5)
        conditions = [off, ff.Boundary("u = 1 + x", at="x < 0.2")]
        disk = ff.Problem("u_xx + u_yy = 0", BOX, {}, conditions, region=ff.Region("x**2 + y**2 < 1"))
        solution = ff.solve(disk, cells={"x": count, "y": count})
        wall = solution.predict(x=np.cos(on), y=np.sin(on), points=True)["std"].values
        inside = solution.predict(x=x, y=y, points=True)["std"].values
        print(f"| {count} x {count} | {wall.min():.4f}, {wall.max():.4f} | {', '.join(f'{s:.4f}' for s in inside)} |")


def drum(draws: int = 3) -> None:
    for seed in range(draws):
        problem, begin = ff.problems.get("wave-disk", noise=0.02, seed=seed), time.process_time()
        solution = ff.solve(problem)
        spent = time.process_time() - begin
        field = solution.predict(**{axis: problem.truth[axis] for axis in "txy"})
        score = ff.metrics.score(field, problem.truth)
        print(f"seed {seed}: rmse {score['rmse']:.4f}, 90 % intervals cover {100 * score['coverage90']:.0f} %, mean "
              f"std {score['mean_std']:.4f}, {solution.status}, {spent:.0f} processor seconds", flush=True)  # fmt: skip


# -- the start of a substance that is carried around two holes, as in hIPPYlib's tutorial of advection and diffusion

HOLES = (((0.25, 0.5), (0.15, 0.4)), ((0.6, 0.75), (0.6, 0.85)))
SPREADING, LASTS, MEAN, SIZE, LENGTH = 1e-3, 4.0, 0.25, 0.1, 0.35  # 1 / sqrt(4 pi 8), sqrt(1 / 8) of their prior
SENSORS, TIMES, SIDE, STEP = 80, np.arange(1.0, 4.01, 0.2), 100, 0.02


def stream(x: Array, y: Array) -> Array:
    """Zero on all walls: what flows along its lines respects them. The fastest flow is about 0.3."""
    found = 5.0 * x * (1.0 - x) * y * (1.0 - y)
    for (left, right), (low, high) in HOLES:
        p, q = (x - left) * (x - right), (y - low) * (y - high)
        found = found * (p + q + np.hypot(p, q))
    return np.asarray(found, float)


def is_water(x: Array, y: Array) -> Array:
    inside = [(x > left) & (x < right) & (y > low) & (y < high) for (left, right), (low, high) in HOLES]
    return ~(inside[0] | inside[1])


def carried(starts: Array, at: Array) -> Array:
    """Readings (times, places, draws) of starts (cells, draws): finite volumes, Crank and Nicolson's steps."""
    from scipy import sparse
    from scipy.interpolate import RegularGridInterpolator
    from scipy.sparse import linalg

    edges, h = np.linspace(0.0, 1.0, SIDE + 1), 1.0 / SIDE
    middle = 0.5 * (edges[1:] + edges[:-1])
    water = is_water(*np.meshgrid(middle, middle, indexing="ij"))
    psi = stream(*np.meshgrid(edges, edges, indexing="ij"))
    number, rate = np.arange(SIDE**2).reshape(SIDE, SIDE), sparse.lil_matrix((SIDE**2, SIDE**2))
    for here, there, flow in (
        (np.s_[:-1, :], np.s_[1:, :], psi[1:-1, 1:] - psi[1:-1, :-1]),
        (np.s_[:, :-1], np.s_[:, 1:], -(psi[1:, 1:-1] - psi[:-1, 1:-1])),
    ):
        for a, b, f in zip(number[here].ravel(), number[there].ravel(), flow.ravel(), strict=True):
            if water.ravel()[a] and water.ravel()[b]:
                for cell, sign in ((a, -1.0), (b, 1.0)):
                    rate[cell, a] += sign * (0.5 * f + SPREADING) / h**2
                    rate[cell, b] += sign * (0.5 * f - SPREADING) / h**2
    identity = sparse.identity(SIDE**2)
    ahead, behind = linalg.splu((identity - 0.5 * STEP * rate).tocsc()), (identity + 0.5 * STEP * rate).tocsr()
    state, found = starts, []
    for step in range(1, round(LASTS / STEP) + 1):
        state = ahead.solve(behind @ state)
        if np.any(np.abs(TIMES - step * STEP) < 1e-9):
            table = state.reshape(SIDE, SIDE, -1)
            found.append(RegularGridInterpolator((middle, middle), table, bounds_error=False, fill_value=None)(at))
    return np.array(found)


def around_holes(values: Array, at: Array) -> ff.Problem:
    """The problem, with readings (times, places)."""
    grid = np.linspace(0.0, 1.0, 161)
    x, y = np.meshgrid(grid, grid, indexing="ij")
    tiny = 1e-6
    along_x = (stream(x, y + tiny) - stream(x, y - tiny)) / (2.0 * tiny)
    along_y = -(stream(x + tiny, y) - stream(x - tiny, y)) / (2.0 * tiny)
    seen = ff.Observations(
        x=np.tile(at[:, 0], len(TIMES)), y=np.tile(at[:, 1], len(TIMES)), t=np.repeat(TIMES, len(at)),
        u=values.ravel(), sigma=0.01 * float(np.abs(values).max()),
    )  # fmt: skip
    corners = [[(a, c), (b, c), (b, d), (a, d)] for (a, b), (c, d) in HOLES]
    return ff.Problem(
        f"u_t + v*u_x + w*u_y = {SPREADING}*(u_xx + u_yy)",
        {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1), "t": ff.Interval(0, LASTS)},
        {name: ff.Table(x=grid, y=grid, value=table) for name, table in (("v", along_x), ("w", along_y))},
        [ff.Initial(f"u = {MEAN}", sigma=SIZE, length=LENGTH), ff.Boundary("u_n = 0"), seen],
        region=ff.Region.polygon([(0, 0), (1, 0), (1, 1), (0, 1)], holes=corners),
    )  # fmt: skip


def start(draws: int = 40, count: int = 16) -> None:
    """Of draws from the prior, the share inside 90 % intervals; of the tutorial's own truth, error and misfit."""
    rng, middle = np.random.default_rng(0), (np.arange(SIDE) + 0.5) / SIDE
    places = rng.uniform(0.03, 0.97, (4 * SENSORS, 2))
    at = places[[all(is_water(*(place + d)) for d in (-0.02, 0.02)) for place in places]][:SENSORS]
    gap = np.sqrt(5.0) * np.abs(middle[:, None] - middle) / LENGTH
    root = np.linalg.cholesky((1.0 + gap + gap**2 / 3.0) * np.exp(-gap) + 1e-9 * np.eye(SIDE))
    x, y = np.meshgrid(middle, middle, indexing="ij")
    bump = np.minimum(0.5, np.exp(-100.0 * ((x - 0.35) ** 2 + (y - 0.7) ** 2)))
    starts = np.stack([bump] + [MEAN + SIZE * root @ rng.standard_normal((SIDE, SIDE)) @ root.T for _ in range(draws)])
    readings = carried(starts.reshape(len(starts), -1).T, at)
    water, inside = is_water(x, y)[2::5, 2::5], []
    for draw, field in enumerate(starts):
        values, begin = readings[:, :, draw], time.process_time()
        values = values + 0.01 * float(np.abs(values).max()) * rng.standard_normal(values.shape)
        solution = ff.solve(around_holes(values, at), "chain", cells={"x": count, "y": count})
        found = solution.predict(t=[0.0], x=middle[2::5], y=middle[2::5]).isel(t=0)
        off = (found["mean"].values - field[2::5, 2::5])[water]
        std = found["std"].values[water]
        z, spent = off / std, time.process_time() - begin
        inside.append(np.abs(z) < 1.6449)
        name = f"draw {draw}" if draw else "the truth of the tutorial"
        estimate = solution.trace.get("numerical_error", np.nan)
        missed = any(advice.kind == "contradiction" for advice in solution.advice or ())
        error, share = np.sqrt(np.mean(off**2)), 100 * np.mean(inside[-1])
        print(f"{name}: error {error:.4f}, std {np.mean(std):.4f}, {share:.0f} % inside, rms z "
              f"{np.sqrt(np.mean(z**2)):.2f}, readings missed: {missed}, {solution.status} ({estimate:.1g}), "
              f"{spent:.0f} s; so far {100 * np.mean(inside[1:] or [0]):.1f} %", flush=True)  # fmt: skip


WORDS: dict[str, Callable[[], None]] = {
    "cells": cells, "placements": placements, "groundwater": groundwater, "plate": plate, "corners": corners,
    "walls": walls, "drum": drum, "start": start,
}  # fmt: skip

if __name__ == "__main__":
    warnings.simplefilter("ignore", ff.AdviceWarning)
    for word in sys.argv[1:] or WORDS:
        WORDS[word]()
