"""Can the interval be trusted? Problems whose answer is known, by the cause that once made them wrong.

    python benchmarks/trust.py                   all of them
    python benchmarks/trust.py marginal sizes    by cause: marginal, sizes, newton, functions (by `joint`), speed
    python benchmarks/trust.py --draws 5         noise draws of those that have noise

Each row gives the largest error of what is asked in units of its truth's size, the worst |error| / std, the share of
truths inside 90 % intervals, median CPU seconds of a solve, statuses other than "converged", and warnings. To compare
with another commit, run the same file with PYTHONPATH set to that worktree's src.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping

import numpy as np
from scipy import integrate, interpolate, sparse
from scipy.sparse import linalg

import factorfield as ff

Truth = Mapping[str, float]
Asked = Callable[[ff.Solution], list[tuple[float, float, float]]]  # (mean, std, truth) of what is asked
Case = tuple[ff.Problem, Asked]
TAU = 2 * np.pi
RING, ROD, HOUR = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}, {"x": ff.Interval(0, 1)}, {"t": ff.Interval(0, 1)}
Z90 = 1.6449


def numbers(truth: Truth) -> Asked:
    """Unknown numbers: the middle of the 90 % interval and its half width / 1.64, of the logarithm if positive."""

    def read(solution: ff.Solution) -> list[tuple[float, float, float]]:
        found = []
        for name, value in truth.items():
            ends = np.array(solution.parameters[name]["interval"])
            if solution.problem.unknowns[name].positive:
                ends, value = np.log(ends), float(np.log(value))
            found.append((float(ends.mean()), float(np.ptp(ends)) / (2 * Z90), value))
        return found

    return read


def field(of: str, truth: float, **at: float) -> Asked:
    def read(solution: ff.Solution) -> list[tuple[float, float, float]]:
        found = solution.predict(of=of, **{name: [x] for name, x in at.items()})
        return [(float(found["mean"].item()), float(found["std"].item()), truth)]

    return read


def walls(text: str, axis: str = "x", ends: tuple[float, float] = (0, 1)) -> list[ff.Boundary]:
    return [ff.Boundary(text, at={axis: end}) for end in ends]


def scattered(rng: np.random.Generator, count: int, u: Callable[..., np.ndarray], sigma: float) -> ff.Observations:
    x, t = rng.uniform(0, 1, (2, count))
    return ff.Observations(x=x, t=t, u=u(x, t) + sigma * rng.standard_normal(count), sigma=sigma)


# -- numbers from scattered sensors, the start unknown


def decaying_ring(seed: int) -> Case:
    rng, d = np.random.default_rng(seed), 0.02
    seen = scattered(rng, 50, lambda x, t: 1 + np.exp(-d * TAU**2 * t) * np.sin(TAU * x + 1), 0.1)
    return ff.Problem("u_t = D*u_xx", RING, {"D": ff.Unknown(0.05, 0.05, positive=True)}, [seen]), numbers({"D": d})


def insulated_rod(seed: int) -> Case:
    rng, d, pi = np.random.default_rng(seed), 0.05, np.pi
    seen = scattered(rng, 50, lambda x, t: 20 + 3 * np.exp(-d * pi**2 * t) * np.cos(pi * x)
                     - 2 * np.exp(-4 * d * pi**2 * t) * np.cos(2 * pi * x), 0.4)  # fmt: skip
    domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    prior = {"D": ff.Unknown(0.05, 0.05, positive=True)}
    return ff.Problem("u_t = D*u_xx", domain, prior, [*walls("u_x = 0"), seen]), numbers({"D": d})


def decay_and_spread(seed: int) -> Case:
    rng, d, k = np.random.default_rng(seed), 0.01, 0.7
    seen = scattered(rng, 80, lambda x, t: np.exp(-k * t) * (1 + np.exp(-d * TAU**2 * t) * np.cos(TAU * x)
                     + 0.6 * np.exp(-4 * d * TAU**2 * t) * np.sin(2 * TAU * x)), 0.08)  # fmt: skip
    prior = {"D": ff.Unknown(0.03, 0.03, positive=True), "k": ff.Unknown(0.5, 0.5, positive=True)}
    return ff.Problem("u_t = D*u_xx - k*u", RING, prior, [seen]), numbers({"D": d, "k": k})


def carried(seed: int) -> Case:
    rng, b = np.random.default_rng(seed), 0.8
    seen = scattered(rng, 60, lambda x, t: np.cos(TAU * (x - b * t)) + 0.4 * np.sin(2 * TAU * (x - b * t)), 0.15)
    return ff.Problem("u_t + b*u_x = 0", RING, {"b": ff.Unknown(0.5, 0.5)}, [seen]), numbers({"b": b})


def string(seed: int) -> Case:
    rng, c, pi = np.random.default_rng(seed), 1.3, np.pi
    seen = scattered(rng, 80, lambda x, t: np.cos(c * pi * t) * np.sin(pi * x)
                     + 0.5 * np.sin(2 * c * pi * t) * np.sin(2 * pi * x), 0.1)  # fmt: skip
    domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    prior = {"c": ff.Unknown(1.0, 0.5, positive=True)}
    return ff.Problem("u_tt = c**2*u_xx", domain, prior, [*walls("u = 0"), seen]), numbers({"c": c})


def sourced(seed: int) -> Case:
    rng, q, d = np.random.default_rng(seed), 1.5, 0.02
    steady = lambda x: q / (d * TAU**2) * np.cos(TAU * x)  # noqa: E731
    seen = scattered(rng, 60, lambda x, t: steady(x) + np.exp(-d * TAU**2 * t) * np.sin(TAU * x), 0.2)
    prior = {"q": ff.Unknown(1.0, 1.0), "D": ff.Unknown(0.03, 0.02, positive=True)}
    return ff.Problem("u_t = D*u_xx + q*cos(2*pi*x)", RING, prior, [seen]), numbers({"q": q, "D": d})


# -- sizes: offsets, loads, coefficients that vanish in the middle, corners


def hot_rod(seed: int) -> Case:
    rng, d, pi = np.random.default_rng(seed), 0.1, np.pi
    seen = scattered(rng, 40, lambda x, t: 1e5 + np.exp(-d * pi**2 * t) * np.sin(pi * x), 0.01)
    domain, prior = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}, {"D": ff.Unknown(0.2, 0.1, positive=True)}
    known = [ff.Initial("u = 100000 + sin(pi*x)"), *walls("u = 100000"), seen]
    return ff.Problem("u_t = D*u_xx", domain, prior, known), numbers({"D": d})


def beam_under_load(seed: int) -> Case:
    known = [*walls("u = 0"), *walls("u_x = 0")]
    return ff.Problem("u_xxxx = 1000", ROD, {}, known), field("u", 1000 / 384, x=0.5)


def plate_middle(seed: int) -> Case:
    """The middle of a plate under -Laplace u = 1: the series' value."""
    known = [*walls("u = 0"), *walls("u = 0", "y")]
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}
    return ff.Problem("u_xx + u_yy = -1", domain, {}, known), field("u", 0.0736713532815, x=0.5, y=0.5)


def turning_point(seed: int) -> Case:
    text = "0.01*u_xx + 2*x*u_x = -0.01*9*sin(3*x) + 6*x*cos(3*x)"
    known = [ff.Boundary("u = sin(-3)", at={"x": -1}), ff.Boundary("u = sin(3)", at={"x": 1})]
    return ff.Problem(text, {"x": ff.Interval(-1, 1)}, {}, known), field("u", np.sin(1.5), x=0.5)


def corner(seed: int) -> Case:
    """A start of 1 meets walls at 0: far from the corners, later, the first mode is left."""
    exact = 4 / np.pi * np.exp(-0.1 * np.pi**2) - 4 / (3 * np.pi) * np.exp(-0.9 * np.pi**2)
    domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    problem = ff.Problem("u_t = 0.1*u_xx", domain, {}, [ff.Initial("u = 1"), *walls("u = 0")])
    return problem, field("u", exact, x=0.5, t=1.0)


def cooling(seed: int) -> Case:
    rng, h = np.random.default_rng(seed), 0.8
    t = np.linspace(0.05, 3, 15)
    seen = ff.Observations(t=t, u=293 + 60 * np.exp(-h * t) + 0.5 * rng.standard_normal(15), sigma=0.5)
    prior = {"h": ff.Unknown(1.0, 0.5, positive=True)}
    problem = ff.Problem("u_t = -h*(u - 293)", {"t": ff.Interval(0, 3)}, prior, [ff.Initial("u = 353"), seen])
    return problem, numbers({"h": h})


# -- Newton's steps: functions without a slope at zero, orbits, stiff and hyperbolic systems


def emptying_tank(seed: int) -> Case:
    return ff.Problem("u_t = -0.5*sqrt(u)", HOUR, {}, [ff.Initial("u = 4")]), field("u", (2 - 0.25) ** 2, t=1.0)


def log_law(seed: int) -> Case:
    """Gompertz growth u' = u log(3 / u)."""
    exact = 3 * np.exp(np.log(0.5 / 3) * np.exp(-1.0))
    return ff.Problem("u_t = u*log(3/u)", HOUR, {}, [ff.Initial("u = 0.5")]), field("u", exact, t=1.0)


def power_law(seed: int) -> Case:
    rng, k = np.random.default_rng(seed), 1.6
    t = np.linspace(0.1, 2, 20)
    u = (1 + 0.6 * t) ** (-1 / 0.6) + 0.01 * rng.standard_normal(20)
    known = [ff.Initial("u = 1"), ff.Observations(t=t, u=u, sigma=0.01)]
    return ff.Problem("u_t = -u**k", {"t": ff.Interval(0, 2)}, {"k": ff.Unknown(1.2, 0.4)}, known), numbers({"k": k})


def orbit(seed: int) -> Case:
    texts = ["a_t = p", "b_t = q", "p_t = -a/(a**2 + b**2)**1.5", "q_t = -b/(a**2 + b**2)**1.5"]
    known = [ff.Initial(text) for text in ("a = 1", "b = 0", "p = 0", "q = 1")]
    return ff.Problem(texts, {"t": ff.Interval(0, 3)}, {}, known), field("a", np.cos(3.0), t=3.0)


def telegraph(seed: int) -> Case:
    rng, g = np.random.default_rng(seed), 0.5
    pi, t = np.pi, np.linspace(0.1, 3, 40)
    w = np.sqrt(pi**2 - (g / 2) ** 2)
    e = np.exp(-g * t / 2) * (np.cos(w * t) - g / (2 * w) * np.sin(w * t)) * np.sin(pi * 0.3)
    seen = ff.Observations(x=0.3, t=t, E=e + 0.02 * rng.standard_normal(40), sigma=0.02)
    known = [ff.Initial("E = sin(pi*x)"), ff.Initial("H = 0"), *walls("E = 0"), seen]
    domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 3)}
    prior = {"g": ff.Unknown(0.3, 0.3, positive=True)}
    return ff.Problem(["E_t = H_x - g*E", "H_t = E_x"], domain, prior, known), numbers({"g": g})


def logistic_patch(seed: int) -> Case:
    """Growth on a ring that is equal everywhere: the exact logistic curve, rate and capacity unknown."""
    rng, r, c = np.random.default_rng(seed), 2.0, 1.5
    t = np.linspace(0, 3, 25)
    u = c / (1 + (c / 0.1 - 1) * np.exp(-r * t)) + 0.02 * rng.standard_normal(25)
    prior = {"r": ff.Unknown(1.0, 1.0, positive=True), "c": ff.Unknown(1.0, 0.5, positive=True)}
    seen = ff.Observations(t=t, u=u, sigma=0.02)
    return ff.Problem("u_t = r*u*(1 - u/c)", {"t": ff.Interval(0, 3)}, prior, [seen]), numbers({"r": r, "c": c})


# -- unknown functions


Grid = tuple[np.ndarray, ...]
PLANE = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}


def smooth(rng: np.random.Generator, length: float, *axes: np.ndarray) -> np.ndarray:
    """A draw of the unit Matern 5/2 process (a product over axes) on a grid: the prior of ff.Unknown(over=...)."""
    draw = rng.standard_normal([len(axis) for axis in axes])
    for number, axis in enumerate(axes):
        gap = np.sqrt(5) * np.abs(axis[:, None] - axis) / length
        kernel = (1 + gap + gap**2 / 3) * np.exp(-gap) + 1e-10 * np.eye(len(axis))
        draw = np.moveaxis(np.tensordot(np.linalg.cholesky(kernel), draw, axes=(1, number)), 0, number)
    return draw


def positive(mean: float, std: float, draw: np.ndarray) -> np.ndarray:
    """Log-normal with these moments, from a standard normal draw."""
    spread = np.log1p((std / mean) ** 2)
    return np.asarray(mean * np.exp(np.sqrt(spread) * draw - 0.5 * spread))


def read_off(grid: Grid, values: np.ndarray, *places: np.ndarray) -> np.ndarray:
    return np.asarray(interpolate.RegularGridInterpolator(grid, values, method="cubic")(np.stack(places, -1)))


def function(of: str, truth: np.ndarray, logarithm: bool, **places: np.ndarray) -> Asked:
    """An unknown function at places; of its logarithm if it is positive."""

    def read(solution: ff.Solution) -> list[tuple[float, float, float]]:
        found = solution.predict(of=of, points=True, **places)
        mean, std = np.ravel(found["mean"]), np.ravel(found["std"])
        if logarithm:
            spread = np.sqrt(np.log1p((std / mean) ** 2))
            return list(zip(np.log(mean) - 0.5 * spread**2, spread, np.log(truth), strict=True))
        return list(zip(mean, std, truth, strict=True))

    return read


def diffused(grid: np.ndarray, k: np.ndarray, absorbed: np.ndarray, load: np.ndarray, walls: tuple[float, float]
             ) -> np.ndarray:  # fmt: skip
    """-(k u')' + absorbed u = load between walls, by finite volumes on an even grid."""
    h = grid[1] - grid[0]
    half = 0.5 * (k[1:] + k[:-1]) / h**2
    matrix = sparse.diags([-half[1:-1], half[:-1] + half[1:] + absorbed[1:-1], -half[1:-1]], [-1, 0, 1], format="csc")
    right = np.array(load[1:-1])
    right[0] += half[0] * walls[0]
    right[-1] += half[-1] * walls[1]
    return np.concatenate([[walls[0]], linalg.spsolve(matrix, right), [walls[1]]])


FINE = np.linspace(0, 1, 1001)
ASKED = np.linspace(0.1, 0.9, 9)


def absorption(seed: int) -> Case:
    """c(x) of u_xx = c u between walls at 1."""
    rng = np.random.default_rng(seed)
    c = positive(20, 10, smooth(rng, 0.3, FINE))
    u, x = diffused(FINE, np.ones(1001), c, 0 * FINE, (1, 1)), np.linspace(0.02, 0.98, 50)
    seen = ff.Observations(x=x, u=np.interp(x, FINE, u) + 0.003 * rng.standard_normal(50), sigma=0.003)
    unknown = ff.Unknown(20, 10, positive=True, over="x", length=0.3)
    problem = ff.Problem("u_xx = c*u", ROD, {"c": unknown}, [*walls("u = 1"), seen])
    return problem, function("c", np.interp(ASKED, FINE, c), True, x=ASKED)


def load_on_rod(seed: int) -> Case:
    """f(x) of -u_xx = f: linear."""
    rng = np.random.default_rng(seed)
    f = 1 + smooth(rng, 0.2, FINE)
    u, x = diffused(FINE, np.ones(1001), 0 * FINE, f, (0, 0)), rng.uniform(0.02, 0.98, 40)
    seen = ff.Observations(x=x, u=np.interp(x, FINE, u) + 0.002 * rng.standard_normal(40), sigma=0.002)
    problem = ff.Problem("u_xx = -f", ROD, {"f": ff.Unknown(1, 1, over="x", length=0.2)}, [*walls("u = 0"), seen])
    return problem, function("f", np.interp(ASKED, FINE, f), False, x=ASKED)


def plane_solution(grid: np.ndarray, k: np.ndarray, load: np.ndarray, left: float) -> np.ndarray:
    """-div(k grad u) = load; u = left at x = 0 and 0 at x = 1, no flux through y = 0 and 1: finite volumes."""
    n = len(grid)
    h, number = grid[1] - grid[0], np.arange(n * n).reshape(n, n)
    size = np.r_[0.5, np.ones(n - 2), 0.5]  # of a cell along y
    across, along = 0.5 * (k[1:] + k[:-1]) * size, 0.5 * (k[:, 1:] + k[:, :-1])
    pairs = [(number[1:].ravel(), number[:-1].ravel(), across.ravel()),
             (number[1:-1, 1:].ravel(), number[1:-1, :-1].ravel(), along[1:-1].ravel())]  # fmt: skip
    i, j, flow = (np.concatenate(each) for each in zip(*pairs, strict=True))
    matrix = sparse.coo_matrix((np.r_[-flow, -flow, flow, flow], (np.r_[i, j, i, j], np.r_[j, i, i, j]))).tocsr()
    u = np.zeros((n, n))
    u[0] = left
    inside = number[1:-1].ravel()
    right = (load * size * h**2)[1:-1].ravel() - matrix[inside][:, number[0]] @ u[0]
    u[1:-1] = linalg.spsolve(matrix[inside][:, inside].tocsc(), right).reshape(n - 2, n)
    return u


def on_plane(rng: np.random.Generator, grid: np.ndarray, u: np.ndarray, count: int, sigma: float) -> ff.Observations:
    x, y = rng.uniform(0.02, 0.98, (2, count))
    noisy = read_off((grid, grid), u, x, y) + sigma * rng.standard_normal(count)
    return ff.Observations(x=x, y=y, u=noisy, sigma=sigma)


def aquifer(seed: int) -> Case:
    """k(x, y) of a flow from left to right, 100 wells."""
    rng, grid = np.random.default_rng(seed), np.linspace(0, 1, 81)
    k = positive(1, 0.5, smooth(rng, 0.5, grid, grid))
    seen = on_plane(rng, grid, plane_solution(grid, k, 0 * k, 1.0), 100, 0.01)
    unknown = ff.Unknown(1, 0.5, positive=True, over=("x", "y"), length=0.5)
    known = [ff.Boundary("u = 1", at={"x": 0}), ff.Boundary("u = 0", at={"x": 1}), *walls("u_y = 0", "y"), seen]
    x, y = (each.ravel() for each in np.meshgrid([0.2, 0.5, 0.8], [0.2, 0.5, 0.8]))
    problem = ff.Problem("k*u_xx + k*u_yy + k_x*u_x + k_y*u_y = 0", PLANE, {"k": unknown}, known)
    return problem, function("k", read_off((grid, grid), k, x, y), True, x=x, y=y)


def load_on_plane(seed: int) -> Case:
    """f(x, y) of -Laplace u = f, 100 sensors: linear."""
    rng, grid = np.random.default_rng(seed), np.linspace(0, 1, 81)
    f = 5 + 3 * smooth(rng, 0.4, grid, grid)
    seen = on_plane(rng, grid, plane_solution(grid, np.ones_like(f), f, 0.0), 100, 0.005)
    known = [*walls("u = 0"), *walls("u_y = 0", "y"), seen]
    unknown = ff.Unknown(5, 3, over=("x", "y"), length=0.4)
    x, y = (each.ravel() for each in np.meshgrid([0.2, 0.5, 0.8], [0.2, 0.5, 0.8]))
    problem = ff.Problem("u_xx + u_yy = -f", PLANE, {"f": unknown}, known)
    return problem, function("f", read_off((grid, grid), f, x, y), False, x=x, y=y)


def heating_schedule(seed: int) -> Case:
    """q(x, t) of u_t = 0.05 u_xx + q on a ring, 150 readings: linear, over space and time."""
    rng, x, t = np.random.default_rng(seed), np.arange(120) / 120, np.linspace(0, 1, 401)
    gap = np.sqrt(5) * np.sin(np.pi * np.abs(x[:, None] - x)) / np.pi / 0.5  # as the crow flies across the ring
    root = np.linalg.cholesky((1 + gap + gap**2 / 3) * np.exp(-gap) + 1e-10 * np.eye(120))
    q = 1 + np.stack([smooth(rng, 0.5, t) for _ in x], axis=1) @ root.T
    rate = 0.05 * (TAU * np.fft.rfftfreq(120, 1 / 120)) ** 2
    waves, u = np.fft.rfft(q, axis=1), np.zeros((401, 61), complex)
    for n in range(400):  # the trapezoidal rule
        u[n + 1] = ((1 - rate / 800) * u[n] + (waves[n] + waves[n + 1]) / 800) / (1 + rate / 800)
    around, at_t, at_x = np.r_[x, 1.0], *rng.uniform(0.02, 0.98, (2, 150))
    field, q = (np.column_stack([each, each[:, 0]]) for each in (np.fft.irfft(u, 120, axis=1), q))
    noisy = read_off((t, around), field, at_t, at_x) + 0.01 * rng.standard_normal(150)
    known = [ff.Initial("u = 0"), ff.Observations(x=at_x, t=at_t, u=noisy, sigma=0.01)]
    unknown = ff.Unknown(1, 1, over=("x", "t"), length=0.5)
    place, time_of = (each.ravel() for each in np.meshgrid([0.2, 0.5, 0.8], [0.3, 0.5, 0.8]))
    problem = ff.Problem("u_t = 0.05*u_xx + q", RING, {"q": unknown}, known)
    return problem, function("q", read_off((t, around), q, time_of, place), False, x=place, t=time_of)


def conductivity(seed: int) -> Case:
    """k(x) = exp(0.5 sin 3x) from noisy temperatures of a heated rod; asked in the middle."""
    rng = np.random.default_rng(seed)
    x, fine = np.linspace(0.03, 0.97, 40), np.linspace(0, 1, 4001)
    k = np.exp(0.5 * np.sin(3 * fine))
    one, load = (integrate.cumulative_trapezoid(y, fine, initial=0) for y in (1 / k, fine / k))
    u = 10 * (load[-1] / one[-1] * one - load)
    seen = ff.Observations(x=x, u=np.interp(x, fine, u) + 0.01 * rng.standard_normal(40), sigma=0.01)
    unknown = ff.Unknown(1.0, 0.5, positive=True, over="x", length=0.5)
    problem = ff.Problem("k*u_xx + k_x*u_x = -10", ROD, {"k": unknown}, [*walls("u = 0"), seen])
    return problem, field("k", float(np.exp(0.5 * np.sin(1.2))), x=0.4)


# -- what was slow


def plane_ring(seed: int) -> Case:
    rng, d = np.random.default_rng(seed), 0.02
    x, y, t = rng.uniform(0, 1, (3, 80))
    u = np.exp(-2 * d * TAU**2 * t) * np.cos(TAU * x) * np.sin(TAU * y) + 0.05 * rng.standard_normal(80)
    known = [ff.Initial("u = cos(2*pi*x)*sin(2*pi*y)"), ff.Observations(x=x, y=y, t=t, u=u, sigma=0.05)]
    domain = {"x": ff.Periodic(0, 1), "y": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    prior = {"D": ff.Unknown(0.05, 0.05, positive=True)}
    return ff.Problem("u_t = D*(u_xx + u_yy)", domain, prior, known), numbers({"D": d})


def plane_walls(seed: int) -> Case:
    rng, d, pi = np.random.default_rng(seed), 0.05, np.pi
    x, y, t = rng.uniform(0, 1, (3, 80))
    u = np.exp(-5 * pi**2 * d * t) * np.sin(2 * pi * x) * np.sin(pi * y) + 0.02 * rng.standard_normal(80)
    known = [ff.Initial("u = sin(2*pi*x)*sin(pi*y)"), *walls("u = 0"), *walls("u = 0", "y"),
             ff.Observations(x=x, y=y, t=t, u=u, sigma=0.02)]  # fmt: skip
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    prior = {"D": ff.Unknown(0.1, 0.1, positive=True)}
    return ff.Problem("u_t = D*(u_xx + u_yy)", domain, prior, known), numbers({"D": d})


def plane_insulated(seed: int) -> Case:
    """Two unknown numbers of a plate that loses heat through its face."""
    rng, d, k, pi = np.random.default_rng(seed), 0.04, 0.5, np.pi
    x, y, t = rng.uniform(0, 1, (3, 80))
    u = np.exp(-(k + 2 * pi**2 * d) * t) * np.cos(pi * x) * np.cos(pi * y) + np.exp(-k * t)
    seen = ff.Observations(x=x, y=y, t=t, u=u + 0.02 * rng.standard_normal(80), sigma=0.02)
    known = [ff.Initial("u = 1 + cos(pi*x)*cos(pi*y)"), *walls("u_x = 0"), *walls("u_y = 0", "y"), seen]
    prior = {"D": ff.Unknown(0.08, 0.08, positive=True), "k": ff.Unknown(0.5, 0.5, positive=True)}
    return ff.Problem("u_t = D*(u_xx + u_yy) - k*u", {**PLANE, **HOUR}, prior, known), numbers({"D": d, "k": k})


def plane_carried(seed: int) -> Case:
    """A plume on a torus, speed and diffusivity unknown."""
    rng, d, b = np.random.default_rng(seed), 0.01, 0.3
    x, y, t = rng.uniform(0, 1, (3, 80))
    u = np.exp(-d * TAU**2 * t) * (np.sin(TAU * (x - b * t)) + np.cos(TAU * y)) + 0.05 * rng.standard_normal(80)
    known = [ff.Initial("u = sin(2*pi*x) + cos(2*pi*y)"), ff.Observations(x=x, y=y, t=t, u=u, sigma=0.05)]
    domain = {"x": ff.Periodic(0, 1), "y": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
    prior = {"D": ff.Unknown(0.02, 0.02, positive=True), "b": ff.Unknown(0.0, 0.5)}
    return ff.Problem("u_t + b*u_x = D*(u_xx + u_yy)", domain, prior, known), numbers({"D": d, "b": b})


def crowded_ring(seed: int) -> Case:
    """No start, 200 sensors."""
    rng, d = np.random.default_rng(seed), 0.01
    seen = scattered(rng, 200, lambda x, t: np.exp(-d * TAU**2 * t) * np.sin(TAU * x)
                     + np.exp(-9 * d * TAU**2 * t) * np.cos(3 * TAU * x), 0.1)  # fmt: skip
    return ff.Problem("u_t = D*u_xx", RING, {"D": ff.Unknown(0.03, 0.03, positive=True)}, [seen]), numbers({"D": d})


def outliers(seed: int) -> Case:
    """No start, and one reading in seven is wrong."""
    rng, d = np.random.default_rng(seed), 0.01
    x, t = rng.uniform(0, 1, (2, 60))
    u = np.exp(-d * TAU**2 * t) * np.cos(TAU * x) + 0.5 * np.exp(-4 * d * TAU**2 * t) * np.sin(2 * TAU * x)
    u = u + 0.05 * rng.standard_normal(60) + np.where(rng.uniform(size=60) < 0.15, rng.normal(0, 1.5, 60), 0.0)
    seen = ff.Observations(x=x, t=t, u=u, sigma=0.05, noise="student-t")
    return ff.Problem("u_t = D*u_xx", RING, {"D": ff.Unknown(0.03, 0.03, positive=True)}, [seen]), numbers({"D": d})


CASES: dict[str, tuple[Callable[[int], Case], ...]] = {
    "marginal": (decaying_ring, insulated_rod, decay_and_spread, carried, string, sourced),
    "sizes": (hot_rod, beam_under_load, plate_middle, turning_point, corner, cooling),
    "newton": (emptying_tank, log_law, power_law, orbit, telegraph, logistic_patch),
    "functions": (conductivity, absorption, load_on_rod, aquifer, load_on_plane, heating_schedule),
    "speed": (plane_ring, plane_walls, plane_insulated, plane_carried, crowded_ring, outliers),
}
WITHOUT_NOISE = {"beam_under_load", "plate_middle", "turning_point", "corner", "emptying_tank", "log_law", "orbit"}


def row(case: Callable[[int], Case], draws: int, method: str | None) -> str:
    """Everything measured about one problem, as a line of a table."""
    errors, z, seconds, statuses, told = [], [], [], [], 0
    for seed in range(1 if case.__name__ in WITHOUT_NOISE else draws):
        problem, asked = case(seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            begin = time.process_time()
            try:
                solution = ff.solve(problem, method=method) if method else ff.solve(problem)
            except Exception as error:  # a crash is a result here: the table shows it
                statuses.append(type(error).__name__)
                continue
            seconds.append(time.process_time() - begin)
        told += len(caught)
        if solution.status != "converged":
            statuses.append(str(solution.status))
        for mean, std, truth in asked(solution):
            errors.append(abs(mean - truth) / max(abs(truth), 1e-300))
            z.append(abs(mean - truth) / std)
    if not z:
        return f"| {case.__name__} | - | - | - | - | {', '.join(sorted(set(statuses)))} | {told} |"
    inside = f"{sum(value < Z90 for value in z)} of {len(z)}"
    said = ", ".join(f"{name} x{statuses.count(name)}" for name in sorted(set(statuses)))
    measured = f"{max(errors):.2g} | {max(z):.2g} | {inside} | {np.median(seconds):.2g}"
    return f"| {case.__name__} | {measured} | {said} | {told} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("causes", nargs="*", help="of " + ", ".join(CASES))
    parser.add_argument("--draws", type=int, default=5)
    given = parser.parse_args()
    print("| problem | largest error | worst z | inside 90 % | CPU s | not converged | warnings |")
    print("|---|---|---|---|---|---|---|")
    for cause in given.causes or CASES:
        for case in CASES[cause]:
            print(row(case, given.draws, "joint" if cause == "functions" else None), flush=True)


if __name__ == "__main__":
    main()
