"""Cells with fixed truths, where sizes, spectra or noise levels are read from the data: only the noise is drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from factorfield.calibration.draws import TURN, Posed, of_field, of_number
from factorfield.problem.coefficients import Unknown
from factorfield.problem.conditions import Boundary, Condition, Observations
from factorfield.problem.domain import Interval, Periodic
from factorfield.problem.problem import Problem

Array = NDArray[np.float64]
Field = Callable[[Array, Array], Array]
RING = {"x": Periodic(0, 1), "t": Interval(0, 1)}
ROD = {"x": Interval(0, 1), "t": Interval(0, 1)}
SENSORS, SIGMA = 60, 0.1


def sensors_ring(seed: int) -> Posed:
    """The diffusion of heat on a ring, scattered sensors and no start."""
    return Posed(_heat(_seen(seed, _two_waves(0.01))), of_number("D", 0.01))


def sensors_walls(seed: int) -> Posed:
    """The same between walls."""
    d = 0.03

    def field(x: Array, t: Array) -> Array:
        modes = ((1, 1.0), (2, 0.5), (3, -0.3))
        return np.sum([a * np.exp(-d * (k * np.pi) ** 2 * t) * np.sin(k * np.pi * x) for k, a in modes], axis=0)

    known: list[Condition] = [*(Boundary("u = 0", at={"x": end}) for end in (0, 1)), _seen(seed, field)]
    problem = Problem("u_t = D*u_xx", ROD, {"D": Unknown(0.05, 0.05, positive=True)}, known)
    return Posed(problem, of_number("D", d))


def sensors_carried(seed: int) -> Posed:
    """A speed beside an unknown diffusion; even draws are judged by the one, odd ones by the other."""
    b, d = 0.3, 0.01
    unknown = {"D": Unknown(0.03, 0.03, positive=True), "b": Unknown(0.0, 0.5)}
    problem = Problem("u_t + b*u_x = D*u_xx", RING, unknown, [_seen(seed, _two_waves(d, b))])
    return Posed(problem, of_number("b", b) if seed % 2 else of_number("D", d))


def sensors_field(seed: int) -> Posed:
    """The field itself anywhere, scattered sensors and no start."""
    return _anywhere(seed, _seen(seed, _two_waves(0.01)))


def estimated_noise(seed: int) -> Posed:
    """The same with sensors whose noise is not told."""
    return _anywhere(seed, _seen(seed, _two_waves(0.01), told=False))


def _anywhere(seed: int, seen: Observations) -> Posed:
    x, t = np.random.default_rng([seed, 1]).uniform(0.0, 1.0, (2, 16))
    problem = Problem("u_t = 0.01*u_xx", RING, {}, [seen])
    return Posed(problem, of_field(_two_waves(0.01)(x, t), x=x, t=t))


def _heat(seen: Observations) -> Problem:
    return Problem("u_t = D*u_xx", RING, {"D": Unknown(0.03, 0.03, positive=True)}, [seen])


def _two_waves(d: float, b: float = 0.0) -> Field:
    """Two waves that diffuse and are carried."""

    def field(x: Array, t: Array) -> Array:
        turn = TURN * (x - b * t)
        return np.exp(-d * TURN**2 * t) * np.cos(turn) + 0.5 * np.exp(-4.0 * d * TURN**2 * t) * np.sin(2.0 * turn)

    return field


def _seen(seed: int, field: Field, told: bool = True) -> Observations:
    rng = np.random.default_rng(seed)
    x, t = rng.uniform(0.0, 1.0, SENSORS), rng.uniform(0.0, 1.0, SENSORS)
    values = field(x, t) + SIGMA * rng.standard_normal(SENSORS)
    return Observations(x=x, t=t, u=values, sigma=SIGMA if told else None)
