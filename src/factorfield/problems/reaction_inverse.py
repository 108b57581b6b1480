"""Diffusion and rate of a reaction from measurements of two species: D and k unknown (an example of DeepXDE's).

a_t = 1e-3 D a_xx - k a b^2, b_t = 1e-3 D b_xx - 2 k a b^2 on x in [0, 1], t in [0, 10], from exp(-20 x), held at 1 at
the left end and 0 at the right. Truth: D = 2, k = 0.1 by default, the fields by Chebyshev collocation of degree 64 and
scipy's Radau at rtol 1e-9, accurate to about 1e-9. Priors have their starting values as means: D = 1, k = 0.05.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev

from factorfield.errors import expected
from factorfield.problem.domain import Interval
from factorfield.problem.problem import Boundary, Condition, Initial, Problem, Unknown
from factorfield.problems._gallery import Array, measured, truth_on
from factorfield.problems._initial_value import finite_number

DEGREE, HORIZON = 64, 10.0
LABELS = 400  # places and times of measurements, on an even grid
EXACT = 1e-3  # sigma of measurements without noise


@lru_cache(maxsize=8)
def polynomials(diffusion: float, rate: float, degree: int = DEGREE, rtol: float = 1e-9) -> tuple[Array, Array]:
    """Times, and the Chebyshev coefficients in x of a and b there, (2, degree + 1, times), by the method of lines."""
    from scipy.integrate import solve_ivp

    place = -np.cos(np.pi * np.arange(degree + 1) / degree)  # x = (1 + place) / 2
    features = chebyshev.chebvander(place, degree)
    bent = chebyshev.chebvander(place, degree - 2) @ chebyshev.chebder(np.eye(degree + 1), 2)  # d2/dplace2
    second = 4e-3 * diffusion * np.linalg.solve(features.T, bent.T).T[1:-1]
    inner = second[:, 1:-1]

    def slope(_: float, y: Array) -> Array:
        a, b = y.reshape(2, -1)
        eaten = rate * a * b**2
        return np.concatenate([inner @ a + second[:, 0] - eaten, inner @ b + second[:, 0] - 2.0 * eaten])

    def jacobian(_: float, y: Array) -> Array:
        a, b = y.reshape(2, -1)
        by_a, by_b = np.diag(rate * b**2), np.diag(2.0 * rate * a * b)
        return np.block([[inner - by_a, -by_b], [-2.0 * by_a, inner - 2.0 * by_b]])

    times = np.linspace(0.0, HORIZON, 101)
    first = np.tile(np.exp(-10.0 * (1.0 + place[1:-1])), 2)
    run = solve_ivp(slope, (0.0, HORIZON), first, "Radau", t_eval=times, rtol=rtol, atol=rtol, jac=jacobian)
    values = np.zeros((2, degree + 1, len(times)))
    values[:, 0], values[:, 1:-1] = 1.0, run.y.reshape(2, degree - 1, -1)
    return times, np.asarray(np.linalg.solve(features, values), float)


def fields(diffusion: float, rate: float, x: Array, degree: int = DEGREE, rtol: float = 1e-9) -> tuple[Array, Array]:
    """Times, and a and b there at places x: (2, times, places)."""
    times, coefficients = polynomials(diffusion, rate, degree, rtol)
    features = chebyshev.chebvander(2.0 * x - 1.0, coefficients.shape[1] - 1)
    return times, np.asarray((features @ coefficients).transpose(0, 2, 1))


def problem(
    D: float = 2.0, k: float = 0.1, noise: float = 0.01, labels: int = LABELS, seed: int = 0
) -> Problem:  # fmt: skip
    """`labels` measurements of each species; without noise they are taken as good to 1e-3."""
    diffusion, rate = finite_number(D, "D"), finite_number(k, "k")
    if not (diffusion > 0.0 and rate > 0.0):
        raise expected("D > 0 and k > 0", (D, k), "D=2.0, k=0.1")
    if not (np.isfinite(noise) and noise >= 0.0):
        raise expected("noise >= 0 (a standard deviation)", noise, "noise=0.01")
    side = max(2, round(np.sqrt(labels)))
    space = Interval(0.0, 1.0)
    places, instants = space.cells(side), np.unique(np.linspace(0, 100, side + 1)[1:].astype(int))
    times, seen = fields(diffusion, rate, places)
    t, x = np.meshgrid(times[instants], places, indexing="ij")
    rng = np.random.default_rng(seed)
    conditions: list[Condition] = [Initial(f"{name} = exp(-20*x)") for name in "ab"]
    conditions += [Boundary(f"{name} = {1 - end:g}", at={"x": end}) for name in "ab" for end in (0.0, 1.0)]
    for name, values in zip("ab", seen[:, instants], strict=True):
        points = {"x": x.ravel(), "t": t.ravel()}
        conditions.append(measured(points, name, values.ravel(), noise, rng, sigma=noise or EXACT))
    grid = np.linspace(0.0, 1.0, 101)
    a, b = fields(diffusion, rate, grid)[1]
    return Problem(
        ["a_t = 1e-3*D*a_xx - k*a*b**2", "b_t = 1e-3*D*b_xx - 2*k*a*b**2"],
        {"x": space, "t": Interval(0.0, HORIZON)},
        {"D": Unknown(1.0, 1.0, positive=True), "k": Unknown(0.05, 0.05, positive=True)},
        conditions, truth=truth_on({"x": grid, "t": times}, lambda _: {"a": a, "b": b}), name="reaction-inverse",
    )  # fmt: skip
