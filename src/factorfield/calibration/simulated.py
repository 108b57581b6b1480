"""Cells whose truth is drawn from the priors that the problem states: simulation-based calibration.

Starts, walls, coefficients and noise come from what the problem says about them, solutions from closed forms or other
solvers. The PIT of any scalar is then uniform over draws if the posterior is right.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import integrate, linalg

from factorfield.calibration.draws import (
    TURN,
    Posed,
    Ring,
    log_normal,
    matern,
    of_field,
    of_number,
    process,
    ring_spectrum,
)
from factorfield.problem.coefficients import Unknown
from factorfield.problem.conditions import Boundary, Condition, Initial, Observations
from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
RING = {"x": Periodic(0, 1), "t": Interval(0, 1)}
ROD = {"x": Interval(0, 1), "t": Interval(0, 1)}
WALLS = [Boundary("u = 0", at={"x": 0}), Boundary("u = 0", at={"x": 1})]


# -- ordinary equations


def decay_rate(seed: int) -> Posed:
    """u_t = -k u: the rate, where the start is uncertain too."""
    rng, t = np.random.default_rng(seed), np.linspace(0.2, 2.0, 10)
    k, start = log_normal(rng, 1.0, 0.4), 1.0 + 0.1 * rng.standard_normal()
    seen = Observations(t=t, u=start * np.exp(-k * t) + 0.05 * rng.standard_normal(10), sigma=0.05)
    return Posed(_decay(seen), of_number("k", k))


def log_normal_noise(seed: int) -> Posed:
    """The same rate from readings that are off by a factor."""
    rng, t = np.random.default_rng(seed), np.linspace(0.2, 2.0, 10)
    k, start = log_normal(rng, 1.0, 0.4), 1.0 + 0.1 * rng.standard_normal()
    read = start * np.exp(-k * t + 0.2 * rng.standard_normal(10))
    return Posed(_decay(Observations(t=t, u=read, sigma=0.2, noise="log-normal")), of_number("k", k))


def _decay(seen: Observations) -> Problem:
    unknown = {"k": Unknown(1.0, 0.4, positive=True)}
    return Problem("u_t = -k*u", {"t": Interval(0, 2)}, unknown, [Initial("u = 1", sigma=0.1), seen])


def logistic_rate(seed: int) -> Posed:
    """u_t = k u (1 - u): the rate of a nonlinear equation."""
    rng, t = np.random.default_rng(seed), np.linspace(0.4, 4.0, 10)
    k, start = log_normal(rng, 1.5, 0.5), 0.1 + 0.02 * rng.standard_normal()
    u = 1.0 / (1.0 + (1.0 / start - 1.0) * np.exp(-k * t))
    known: list[Condition] = [
        Initial("u = 0.1", sigma=0.02),
        Observations(t=t, u=u + 0.05 * rng.standard_normal(10), sigma=0.05),
    ]
    unknown = {"k": Unknown(1.5, 0.5, positive=True)}
    return Posed(Problem("u_t = k*u*(1 - u)", {"t": Interval(0, 4)}, unknown, known), of_number("k", k))


def oscillator_forecast(seed: int) -> Posed:
    """A linear system, u read until t = 3 and forecast at a time until t = 6."""
    rng, t = np.random.default_rng(seed), np.linspace(0.2, 3.0, 10)
    start = np.array([1.0 + 0.3 * rng.standard_normal(), 0.5 * rng.standard_normal()])
    rates = np.array([[0.0, 1.0], [-4.0, -0.3]])
    later = rng.uniform(3.0, 6.0)
    u = np.array([(linalg.expm(rates * at) @ start)[0] for at in (*t, later)])
    known: list[Condition] = [
        Initial("u = 1", sigma=0.3), Initial("v = 0", sigma=0.5),
        Observations(t=t, u=u[:-1] + 0.1 * rng.standard_normal(10), sigma=0.1),
    ]  # fmt: skip
    problem = Problem(["u_t = v", "v_t = -4*u - 0.3*v"], {"t": Interval(0, 6)}, {}, known)
    return Posed(problem, of_field(u[-1], of="u", t=later))


# -- a ring


def ring_start(seed: int) -> Posed:
    """Heat on a ring: a start from its stated process, 20 sensors, the field anywhere."""
    return _ring(seed, lambda rng: rng.standard_normal(20))


def outliers(seed: int) -> Posed:
    """The same with Student's noise, four degrees of freedom."""
    return _ring(seed, lambda rng: rng.standard_t(4.0, 20), "student-t")


def averages(seed: int) -> Posed:
    """The same with sensors that read averages over a tenth of the ring."""
    return _ring(seed, lambda rng: rng.standard_normal(20), width=0.1)


def _ring(
    seed: int, errors: Callable[[np.random.Generator], Array], kind: str = "gaussian", width: float = 0.0
) -> Posed:
    rng, diffusion, sigma = np.random.default_rng(seed), 0.01, 0.1
    field = Ring.drawn(rng, 0.25)
    x, t = rng.uniform(0.0, 1.0, (2, 20))
    values = field.heat(x, t, diffusion, width) + sigma * errors(rng)
    average = {"x": width} if width else None
    seen = Observations(x=x, t=t, u=values, sigma=sigma, noise=kind, average=average)
    problem = Problem("u_t = 0.01*u_xx", RING, {}, [Initial("u = 0", sigma=1.0, length=0.25), seen])
    x, t = rng.uniform(0.0, 1.0, (2, 1))
    return Posed(problem, of_field(field.heat(x, t, diffusion), x=x, t=t))


def advection_speed(seed: int) -> Posed:
    """The speed at which a known start is carried around."""
    rng = np.random.default_rng(seed)
    b = 0.5 + 0.2 * rng.standard_normal()
    x, t = rng.uniform(0.0, 1.0, (2, 20))
    seen = Observations(x=x, t=t, u=np.sin(TURN * (x - b * t)) + 0.1 * rng.standard_normal(20), sigma=0.1)
    unknown = {"b": Unknown(0.5, 0.2)}
    return Posed(Problem("u_t + b*u_x = 0", RING, unknown, [Initial("u = sin(2*pi*x)"), seen]), of_number("b", b))


def fisher_rate(seed: int) -> Posed:
    """The rate of growth of a population that also spreads: a nonlinear field over space."""
    rng, cells = np.random.default_rng(seed), 64
    k, places, wave = log_normal(rng, 2.0, 0.6), np.arange(cells) / cells, TURN * np.fft.rfftfreq(cells, 1.0 / cells)

    def rate(_: float, u: Array) -> Array:
        return np.fft.irfft(-0.01 * wave**2 * np.fft.rfft(u), cells) + k * u * (1.0 - u)

    x, t = rng.integers(0, cells, 20), np.sort(rng.uniform(0.0, 1.0, 20))
    start = 0.3 + 0.2 * np.cos(TURN * places)
    path = integrate.solve_ivp(rate, (0, 1), start, method="LSODA", rtol=1e-9, atol=1e-11, t_eval=t)
    seen = Observations(x=places[x], t=t, u=path.y[x, np.arange(20)] + 0.03 * rng.standard_normal(20), sigma=0.03)
    known: list[Condition] = [Initial("u = 0.3 + 0.2*cos(2*pi*x)"), seen]
    unknown = {"k": Unknown(2.0, 0.6, positive=True)}
    return Posed(Problem("u_t = 0.01*u_xx + k*u*(1 - u)", RING, unknown, known), of_number("k", k))


def plane_start(seed: int) -> Posed:
    """Heat on a torus: a start from its stated process over two axes, 40 sensors, the field anywhere."""
    rng, diffusion, length, waves = np.random.default_rng(seed), 0.01, 0.4, 12
    number = np.concatenate([np.arange(waves), np.arange(1, waves)])  # cosines, then sines
    strength = ring_spectrum(length, 64)[number] * np.where(number == 0, 1.0, 2.0)
    weights = np.sqrt(np.outer(strength, strength)) * rng.standard_normal((len(number), len(number)))

    def features(x: Array) -> Array:
        phase = TURN * np.outer(x, np.arange(waves))
        return np.concatenate([np.cos(phase), np.sin(phase[:, 1:])], axis=1)

    def field(x: Array, y: Array, t: Array) -> Array:
        decay = np.exp(-diffusion * np.outer(t, (TURN * number) ** 2))
        return np.einsum("ni,ij,nj->n", features(x) * decay, weights, features(y) * decay)

    x, y, t = rng.uniform(0.0, 1.0, (3, 40))
    seen = Observations(x=x, y=y, t=t, u=field(x, y, t) + 0.1 * rng.standard_normal(40), sigma=0.1)
    torus = {"x": Periodic(0, 1), "y": Periodic(0, 1), "t": Interval(0, 1)}
    problem = Problem("u_t = 0.01*(u_xx + u_yy)", torus, {}, [Initial("u = 0", sigma=1.0, length=length), seen])
    x, y, t = rng.uniform(0.0, 1.0, (3, 1))
    return Posed(problem, of_field(field(x, y, t), x=x, y=y, t=t))


# -- between walls


def source_strength(seed: int) -> Posed:
    """How strong a source is, from 8 sensors of the stationary field."""
    rng, x = np.random.default_rng(seed), np.linspace(0.1, 0.9, 8)
    q = 2.0 + rng.standard_normal()
    seen = Observations(x=x, u=q * np.sin(np.pi * x) / np.pi**2 + 0.05 * rng.standard_normal(8), sigma=0.05)
    problem = Problem("u_xx + q*sin(pi*x) = 0", {"x": Interval(0, 1)}, {"q": Unknown(2.0, 1.0)}, [*WALLS, seen])
    return Posed(problem, of_number("q", q))


def unknown_source(seed: int) -> Posed:
    """A source f(x) from its stated process, seen through the stationary field that it makes."""
    rng, grid = np.random.default_rng(seed), np.linspace(0.0, 1.0, 401)
    f = 5.0 * process(rng, grid, 0.3)
    bands = np.array([[1.0], [-2.0], [1.0]]) * np.ones(399)
    u = np.zeros(401)
    u[1:-1] = linalg.solve_banded((1, 1), bands, -f[1:-1] * grid[1] ** 2)
    x, asked = rng.uniform(0.05, 0.95, 15), rng.uniform(0.0, 1.0)
    seen = Observations(x=x, u=np.interp(x, grid, u) + 0.02 * rng.standard_normal(15), sigma=0.02)
    unknown = {"f": Unknown(0.0, 5.0, over="x", length=0.3)}
    problem = Problem("u_xx + f = 0", {"x": Interval(0, 1)}, unknown, [*WALLS, seen])
    return Posed(problem, of_field(np.interp(asked, grid, f), of="f", x=asked))


def conductivity(seed: int) -> Posed:
    """log D of a conductivity D(x) from its stated process, in heat that spreads between closed ends."""
    rng, cells, length, sigma = np.random.default_rng(seed), 200, 0.3, 0.02
    centres, faces = (np.arange(cells) + 0.5) / cells, np.arange(cells + 1) / cells
    variance = np.log1p(0.25)
    d = 0.1 * np.exp(np.sqrt(variance) * process(rng, faces, length) - variance / 2.0)

    def rate(_: float, u: Array) -> Array:
        flux = np.concatenate([[0.0], -d[1:-1] * np.diff(u) * cells, [0.0]])
        return -np.diff(flux) * cells

    start = np.cos(np.pi * centres)
    path = integrate.solve_ivp(rate, (0, 1), start, method="BDF", rtol=1e-7, atol=1e-9, dense_output=True)
    x, t = rng.uniform(0.02, 0.98, 60), rng.uniform(0.02, 1.0, 60)
    u = np.array([np.interp(a, centres, path.sol(b)) for a, b in zip(x, t, strict=True)])
    seen = Observations(x=x, t=t, u=u + sigma * rng.standard_normal(60), sigma=sigma)
    known: list[Condition] = [Initial("u = cos(pi*x)"), *(Boundary("u_x = 0", at={"x": end}) for end in (0, 1)), seen]
    unknown = {"D": Unknown(0.1, 0.05, positive=True, over="x", length=length)}
    asked = rng.uniform(0.0, 1.0)
    problem = Problem("u_t = D*u_xx + D_x*u_x", ROD, unknown, known)
    return Posed(problem, of_field(np.log(np.interp(asked, faces, d)), of="log(D)", x=asked))


def drifting_wall(seed: int) -> Posed:
    """A wall that is off by its stated process in time, and what arrives inside.

    Modes sin(k pi x) of what is left of u - wall (1 - x) answer the wall's slope, constant between grid points.
    """
    rng, diffusion, k = np.random.default_rng(seed), 0.1, np.arange(1, 200)
    grid = np.linspace(0.0, 1.0, 401)
    wall = 0.5 * process(rng, grid, 0.3)
    wall -= matern(grid, 0.3) * wall[0]  # wall and start are both believed where they meet
    rate = diffusion * (np.pi * k) ** 2
    share, damped = 2.0 / (np.pi * k), np.exp(-rate * grid[1])
    modes = [0.0 * share]
    for slope in np.diff(wall) / grid[1]:
        modes.append(modes[-1] * damped - share * slope * (1.0 - damped) / rate)

    def field(x: Array, t: NDArray[np.int64]) -> Array:
        waves = np.sum(np.array(modes)[t] * np.sin(np.pi * np.outer(x, k)), axis=1)
        return np.asarray(wall[t] * (1.0 - x) + waves, float)

    x, t = rng.uniform(0.0, 1.0, 10), rng.integers(40, 401, 10)
    seen = Observations(x=x, t=grid[t], u=field(x, t) + 0.05 * rng.standard_normal(10), sigma=0.05)
    drifting = Boundary("u = 0", at={"x": 0}, sigma=0.5, length={"t": 0.3})
    problem = Problem("u_t = 0.1*u_xx", ROD, {}, [Initial("u = 0"), drifting, WALLS[1], seen])
    x, t = rng.uniform(0.0, 1.0, 1), rng.integers(40, 401, 1)
    return Posed(problem, of_field(field(x, t), x=x, t=grid[t]))
