"""Forward problems from exact data, where all that is uncertain is the numerical error.

An error estimate is no posterior of something drawn, so no per cent are promised. What is asked of it in each draw: the
95 % point over places of |error| / std lies between `LEAST` and `MOST`, so that a std neither hides an error nor is
thousands of times too wide. Each draw is a problem with coefficients of its own, kinds in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from factorfield.calibration.draws import TURN, Posed, of_field, predicted
from factorfield.problem.conditions import Boundary, Condition, Initial
from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem
from factorfield.solution import Solution

Array = NDArray[np.float64]
Exact = tuple[Problem, Callable[..., Array]]  # the problem and its solution by coordinates
LEAST, MOST = 1e-3, 3.0
EXACT = 1e-10  # of the field: errors that no estimate has to know
PLACES = 64
RING = {"x": Periodic(0, 1), "t": Interval(0, 1)}
ROD = {"x": Interval(0, 1), "t": Interval(0, 1)}
LINE = {"x": Interval(0, 1)}
WALLS = [Boundary("u = 0", at={"x": end}) for end in (0, 1)]


def forward(seed: int) -> Posed:
    """Numerical error of forward problems, kinds in turn."""
    rng = np.random.default_rng(seed)
    problem, exact = KINDS[seed % len(KINDS)](rng)
    at: Mapping[str, Array] = {
        name: rng.uniform(problem.domain[name].lower, problem.domain[name].upper, PLACES)
        for name in problem.domain.names
    }
    truth = exact(**at)

    def read(solution: Solution) -> Array:
        error = predicted(solution, "u", at)["mean"].values - truth
        if np.max(np.abs(error)) <= EXACT * np.max(np.abs(truth)):
            return np.empty(0)
        return of_field(truth, of="u", **at)(solution)

    return Posed(problem, read)


def ring_heat(rng: np.random.Generator) -> Exact:
    d, a = float(np.exp(rng.uniform(np.log(1e-3), np.log(0.1)))), rng.uniform(-1.0, 1.0)
    problem = Problem("u_t = d*u_xx", RING, {"d": d}, [Initial(f"u = cos(2*pi*x) + {a!r}*sin(6*pi*x)")])
    return (
        problem,
        lambda x, t: (
            np.exp(-d * TURN**2 * t) * np.cos(TURN * x) + a * np.exp(-9 * d * TURN**2 * t) * np.sin(3 * TURN * x)
        ),
    )


def rod_heat(rng: np.random.Generator) -> Exact:
    d, k = float(np.exp(rng.uniform(np.log(1e-3), np.log(1.0)))), int(rng.integers(2, 9))
    problem = Problem("u_t = d*u_xx", ROD, {"d": d}, [Initial(f"u = sin(pi*x) + sin({k}*pi*x)"), *WALLS])
    return problem, lambda x, t: sum(np.exp(-d * (m * np.pi) ** 2 * t) * np.sin(m * np.pi * x) for m in (1, k))


def advection(rng: np.random.Generator) -> Exact:
    b, a = rng.uniform(0.1, 3.0), rng.uniform(0.5, 4.0)
    problem = Problem("u_t + b*u_x = 0", RING, {"b": b}, [Initial(f"u = exp({a!r}*cos(2*pi*x))")])
    return problem, lambda x, t: np.exp(a * np.cos(TURN * (x - b * t)))


def wave(rng: np.random.Generator) -> Exact:
    c, k = rng.uniform(0.3, 2.0), int(rng.integers(1, 6))
    known: list[Condition] = [Initial(f"u = sin({k}*pi*x)"), Initial("u_t = 0"), *WALLS]
    problem = Problem("u_tt = c**2*u_xx", ROD, {"c": c}, known)
    return problem, lambda x, t: np.cos(k * np.pi * c * t) * np.sin(k * np.pi * x)


def poisson(rng: np.random.Generator) -> Exact:
    k = rng.uniform(1.0, 20.0)
    known = [Boundary("u = 0", at={"x": 0}), Boundary(f"u = {float(np.sin(k))!r}", at={"x": 1})]
    return Problem("u_xx = -k**2*sin(k*x)", LINE, {"k": k}, known), lambda x: np.sin(k * x)


def layer(rng: np.random.Generator) -> Exact:
    e = float(np.exp(rng.uniform(np.log(2e-3), np.log(0.3))))
    problem = Problem("e*u_xx + u_x = 1", LINE, {"e": e}, WALLS)
    return problem, lambda x: x - np.expm1(-x / e) / np.expm1(-1.0 / e)


def decay(rng: np.random.Generator) -> Exact:
    k = float(np.exp(rng.uniform(np.log(0.1), np.log(100.0))))
    return Problem("u_t = -k*u", {"t": Interval(0, 1)}, {"k": k}, [Initial("u = 1")]), lambda t: np.exp(-k * t)


def logistic(rng: np.random.Generator) -> Exact:
    k, a = rng.uniform(1.0, 20.0), rng.uniform(0.01, 0.5)
    problem = Problem("u_t = k*u*(1 - u)", {"t": Interval(0, 1)}, {"k": k}, [Initial(f"u = {a!r}")])
    return problem, lambda t: 1.0 / (1.0 + (1.0 / a - 1.0) * np.exp(-k * t))


def burgers(rng: np.random.Generator) -> Exact:
    """Cole and Hopf: u = -2 nu phi_x / phi with phi = a + a wave that diffuses."""
    nu, a = rng.uniform(0.01, 0.1), rng.uniform(1.2, 3.0)

    def exact(x: Array, t: Array) -> Array:
        size = np.exp(-nu * TURN**2 * t)
        return 2.0 * nu * TURN * size * np.sin(TURN * x) / (a + size * np.cos(TURN * x))

    start = Initial(f"u = 4*pi*nu*sin(2*pi*x)/({a!r} + cos(2*pi*x))")
    return Problem("u_t + u*u_x = nu*u_xx", RING, {"nu": nu}, [start]), exact


def oscillator(rng: np.random.Generator) -> Exact:
    w = rng.uniform(1.0, 30.0)
    problem = Problem(
        ["u_t = w*v", "v_t = -w*u"], {"t": Interval(0, 1)}, {"w": w}, [Initial("u = 1"), Initial("v = 0")]
    )
    return problem, lambda t: np.cos(w * t)


def poisson_plane(rng: np.random.Generator) -> Exact:
    k = int(rng.integers(1, 5))
    square = {"x": Interval(0, 1), "y": Interval(0, 1)}
    known = [*WALLS, *(Boundary("u = 0", at={"y": end}) for end in (0, 1))]
    load = (k**2 + 1) * np.pi**2
    problem = Problem(f"u_xx + u_yy = -q*sin(pi*x)*sin({k}*pi*y)", square, {"q": float(load)}, known)
    return problem, lambda x, y: np.sin(np.pi * x) * np.sin(k * np.pi * y)


KINDS = (
    ring_heat, rod_heat, advection, wave, poisson, layer, decay, logistic, burgers, oscillator, poisson_plane,
)  # fmt: skip
