"""Twelve forward and eight inverse problems on which the estimate of the numerical error is checked.

Truths of forward problems: a formula, or a solver that shares nothing with ours. Inverse problems have none but the
posterior mean of the same problem solved much finer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rivals import cases
from scipy import integrate, linalg

import factorfield as ff

Array = NDArray[np.float64]
Interval, Periodic, Initial = ff.Interval, ff.Periodic, ff.Initial


@dataclass(frozen=True)
class Known:
    """`truth` maps a field and the points, flat, to its values; None: our own answer, much finer."""

    problem: ff.Problem
    grid: Mapping[str, Array]
    truth: Callable[[str, dict[str, Array]], Array] | None = None
    source: str = "ourselves at 1e-10"

    @property
    def points(self) -> dict[str, Array]:
        table = np.meshgrid(*self.grid.values(), indexing="ij")
        return {axis: x.ravel() for axis, x in zip(self.grid, table, strict=True)}


def wall(text: str, **face: float) -> ff.Boundary:
    return ff.Boundary(text, at=face)


def line(low: float, high: float, end: float) -> dict[str, ff.Interval]:
    return {"x": Interval(low, high), "t": Interval(0, end)}


# -- forward


def heat() -> Known:
    def truth(field: str, at: dict[str, Array]) -> Array:
        waves = ((1.0, 1.0), (3.0, 0.5))
        return sum(
            size * np.sin(n * np.pi * at["x"]) * np.exp(-0.1 * (n * np.pi) ** 2 * at["t"]) for n, size in waves
        )  # fmt: skip

    start = Initial("u = sin(pi*x) + 0.5*sin(3*pi*x)")
    problem = ff.Problem("u_t = 0.1*u_xx", line(0, 1, 1), {}, [start, wall("u = 0", x=0), wall("u = 0", x=1)])
    return Known(problem, {"x": np.linspace(0, 1, 41), "t": np.linspace(0, 1, 21)}, truth, "formula")


def burgers(viscosity: float, points: int = 81) -> Known:
    return Known(
        burgers_problem(viscosity), {"x": np.linspace(-1, 1, points), "t": np.linspace(0, 1, 6)},
        lambda field, at: cole_hopf(viscosity, at["x"], at["t"]), "Cole and Hopf's formula",
    )  # fmt: skip


def burgers_problem(viscosity: object, *more: ff.Observations) -> ff.Problem:
    given = [Initial("u = -sin(pi*x)"), wall("u = 0", x=-1), wall("u = 0", x=1), *more]
    return ff.Problem("u_t + u*u_x = nu*u_xx", line(-1, 1, 1), {"nu": viscosity}, given)


def cole_hopf(viscosity: float, x: Array, t: Array, count: int = 6001) -> Array:
    """Of -sin(pi x): the ratio of two integrals over a Gaussian, by the trapezoidal rule."""
    nodes = np.linspace(-16.0, 16.0, count)
    y = x[:, None] - 2.0 * np.sqrt(viscosity * t)[:, None] * nodes
    logs = -(nodes**2) - np.cos(np.pi * y) / (2.0 * np.pi * viscosity)
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return -np.sum(shares * np.sin(np.pi * y), axis=1) / np.sum(shares, axis=1)


def drift() -> Known:
    """Every wave of the start travels and fades by itself."""
    start = np.exp(np.sin(2.0 * np.pi * np.arange(128) / 128))
    hat, wave = np.fft.rfft(start) / 128, 2.0 * np.pi * np.arange(65)

    def truth(field: str, at: dict[str, Array]) -> Array:
        moved = np.exp(1j * np.outer(at["x"] - at["t"], wave) - 0.01 * np.outer(at["t"], wave**2))
        return (moved[:, 0] * hat[0]).real + 2.0 * (moved[:, 1:] @ hat[1:]).real

    domain = {"x": Periodic(0, 1), "t": Interval(0, 1)}
    problem = ff.Problem("u_t + u_x = 0.01*u_xx", domain, {}, [Initial("u = exp(sin(2*pi*x))")])
    return Known(problem, {"x": np.linspace(0, 1, 41), "t": np.linspace(0, 1, 11)}, truth, "Fourier series")


def soliton() -> Known:
    domain = {"x": Periodic(-20, 20), "t": Interval(0, 1)}
    problem = ff.Problem("u_t + 6*u*u_x + u_xxx = 0", domain, {}, [Initial("u = 2/cosh(x + 2)**2")])
    return Known(
        problem, {"x": np.linspace(-10, 10, 81), "t": np.linspace(0, 1, 6)},
        lambda field, at: 2.0 / np.cosh(at["x"] + 2.0 - 4.0 * at["t"]) ** 2, "formula",
    )  # fmt: skip


def logistic() -> Known:
    problem = ff.Problem("u_t = u*(1 - u)", {"t": Interval(0, 8)}, {}, [Initial("u = 0.1")])
    return Known(problem, {"t": np.linspace(0, 8, 81)}, lambda f, at: 1.0 / (1.0 + 9.0 * np.exp(-at["t"])), "formula")


def stiff_pair() -> Known:
    matrix = np.array([[-100.0, 1.0], [1.0, -1.0]])

    def truth(field: str, at: dict[str, Array]) -> Array:
        return np.array([linalg.expm(t * matrix)["ab".index(field), 0] for t in at["t"]])

    starts = [Initial("a = 1"), Initial("b = 0")]
    problem = ff.Problem(["a_t = -100*a + b", "b_t = a - b"], {"t": Interval(0, 4)}, {}, starts)
    return Known(problem, {"t": np.linspace(0, 4, 81)}, truth, "exponential of the matrix")


def layer() -> Known:
    problem = ff.Problem("0.01*u_xx + u_x = 1", {"x": Interval(0, 1)}, {}, [wall("u = 0", x=0), wall("u = 0", x=1)])
    return Known(
        problem, {"x": np.linspace(0, 1, 201)},
        lambda field, at: at["x"] - np.expm1(-100.0 * at["x"]) / np.expm1(-100.0), "formula",
    )  # fmt: skip


def squared() -> Known:
    problem = ff.Problem("u_xx = 1.5*u**2", {"x": Interval(0, 1)}, {}, [wall("u = 4", x=0), wall("u = 1", x=1)])
    return Known(problem, {"x": np.linspace(0, 1, 41)}, lambda field, at: 4.0 / (1.0 + at["x"]) ** 2, "formula")


def cubic_plane() -> Known:
    wave = "sin(pi*x)*sin(pi*y)"
    around = [wall("u = 0", **{axis: end}) for axis in "xy" for end in (0, 1)]
    problem = ff.Problem(
        f"-u_xx - u_yy + u**3 = 2*pi**2*{wave} + ({wave})**3", {"x": Interval(0, 1), "y": Interval(0, 1)}, {}, around
    )
    places = np.linspace(0, 1, 21)
    return Known(
        problem, {"x": places, "y": places}, lambda f, at: np.sin(np.pi * at["x"]) * np.sin(np.pi * at["y"]), "formula"
    )


def disk() -> Known:
    box = {"x": Interval(-1.1, 1.1), "y": Interval(-1.1, 1.1)}
    problem = ff.Problem(
        "-u_xx - u_yy = -2", box, {}, [ff.Boundary("u = exp(x)*sin(y) + x**2")], region=ff.Region("x**2 + y**2 < 1")
    )
    places = np.linspace(-0.7, 0.7, 21)
    return Known(
        problem, {"x": places, "y": places}, lambda f, at: np.exp(at["x"]) * np.sin(at["y"]) + at["x"] ** 2, "formula"
    )


def gray_scott() -> Known:
    """The method of lines on 128 waves, DOP853 at 1e-11."""
    domain, bump = {"x": Periodic(0, 1), "t": Interval(0, 5)}, "exp(0.8*cos(2*pi*(x - 0.5)) - 0.8)"
    problem = ff.Problem(
        ["u_t = 0.01*u_xx - u*v**2 + 0.04*(1 - u)", "v_t = 0.005*v_xx + u*v**2 - 0.1*v"], domain, {},
        [Initial(f"u = 1 - 0.5*{bump}"), Initial(f"v = 0.9*{bump}")],
    )  # fmt: skip
    count, grid = 128, {"x": np.arange(40) / 40.0, "t": np.linspace(0, 5, 6)}

    def truth(field: str, at: dict[str, Array]) -> Array:
        x = np.arange(count) / count
        laplace = -((2.0 * np.pi * np.fft.rfftfreq(count, 1.0 / count)) ** 2)

        def slope(t: float, y: Array) -> Array:
            u, v = y.reshape(2, count)
            bent = [np.fft.irfft(laplace * np.fft.rfft(one), count) for one in (u, v)]
            eaten = u * v**2
            return np.concatenate([0.01 * bent[0] - eaten + 0.04 * (1.0 - u), 0.005 * bent[1] + eaten - 0.1 * v])

        start = np.exp(0.8 * np.cos(2.0 * np.pi * (x - 0.5)) - 0.8)
        begin = np.concatenate([1.0 - 0.5 * start, 0.9 * start])
        run = integrate.solve_ivp(slope, (0, 5), begin, "DOP853", grid["t"], rtol=1e-11, atol=1e-13)
        rows = run.y.reshape(2, count, -1)["uv".index(field)]
        hat = np.fft.rfft(rows, axis=0) / count
        wave = np.exp(2j * np.pi * np.outer(grid["x"], np.arange(len(hat))))
        return ((wave[:, :1] * hat[0]).real + 2.0 * (wave[:, 1:] @ hat[1:]).real).ravel()

    return Known(problem, grid, truth, "SciPy, method of lines at 1e-11")


def forward_problems() -> dict[str, Known]:
    return {
        "heat": heat(), "Burgers, 0.05": burgers(0.05), "Burgers, 0.01/pi": burgers(0.01 / np.pi),
        "drift on a ring": drift(), "Korteweg-de Vries": soliton(), "logistic": logistic(), "stiff pair": stiff_pair(),
        "boundary layer": layer(), "u'' = 1.5 u^2": squared(), "plane with u^3": cubic_plane(), "disk": disk(),
        "Gray-Scott": gray_scott(),
    }  # fmt: skip


# -- inverse


def known_start() -> ff.Problem:
    """Heat on a line: the start is unknown, read by three sensors."""
    rng = np.random.default_rng(0)
    x, t = (axis.ravel() for axis in np.meshgrid([0.2, 0.5, 0.8], np.linspace(0.02, 0.3, 12)))
    u = sum(s * np.sin(n * np.pi * x) * np.exp(-0.2 * (n * np.pi) ** 2 * t) for n, s in ((1, 1.0), (2, -0.6), (3, 0.4)))
    readings = ff.Observations(x=x, t=t, u=u + 0.02 * rng.standard_normal(len(x)), sigma=0.02)
    start = Initial("u = 0", sigma=1.0, length=0.25)
    return ff.Problem(
        "u_t = 0.2*u_xx", line(0, 1, 0.3), {}, [start, wall("u = 0", x=0), wall("u = 0", x=1), readings]
    )  # fmt: skip


def known_conductivity() -> ff.Problem:
    """(k u')' = -10 on a rod between walls at 0, k = exp(0.6 sin(4 x)): one integral by the trapezoidal rule."""
    fine, x = np.linspace(0.0, 1.0, 20_001), np.linspace(0.05, 0.95, 19)
    resistance = np.exp(-0.6 * np.sin(4.0 * fine))
    whole, first = (integrate.cumulative_trapezoid(r, fine, initial=0.0) for r in (resistance, fine * resistance))
    u = np.interp(x, fine, 10.0 * (first[-1] / whole[-1] * whole - first))
    noisy = u + 0.01 * np.random.default_rng(0).standard_normal(len(x))
    return ff.Problem(
        "k*u_xx + k_x*u_x = -10", {"x": Interval(0, 1)},
        {"k": ff.Unknown(1.0, 0.7, positive=True, over="x", length=0.3)},
        [wall("u = 0", x=0), wall("u = 0", x=1), ff.Observations(x=x, u=noisy, sigma=0.01)],
    )  # fmt: skip


def known_viscosity() -> ff.Problem:
    x, t = (axis.ravel() for axis in np.meshgrid([-0.5, -0.1, 0.3], np.linspace(0.1, 1.0, 10)))
    u = cole_hopf(0.05, x, t) + 0.02 * np.random.default_rng(0).standard_normal(len(x))
    return burgers_problem(ff.Unknown(0.1, 0.1, positive=True), ff.Observations(x=x, t=t, u=u, sigma=0.02))


def inverse_problems() -> dict[str, Known]:
    places = {"x": np.linspace(0, 1, 21), "t": np.linspace(0, 1, 11)[1:]}
    rod = {"x": np.linspace(0, 50, 21), "t": np.linspace(0, 36, 13)[1:]}
    return {
        "rod, start +- 2": Known(cases.rod().problem(), rod),
        "rod, start known": Known(cases.rod(None).problem(), rod),
        "Fisher-KPP": Known(cases.fisher_kpp(stated=True).problem(), places),
        "hare and lynx": Known(cases.hare_lynx().problem(), {"t": np.linspace(0, 20, 41)}),
        "flux q(t)": Known(cases.flux().problem(), places),
        "unknown start": Known(known_start(), {**places, "t": np.linspace(0, 0.3, 11)[1:]}),
        "k(x) of a rod": Known(known_conductivity(), {"x": np.linspace(0, 1, 41)}),
        "Burgers, viscosity": Known(known_viscosity(), {"x": np.linspace(-1, 1, 41), "t": np.linspace(0, 1, 6)[1:]}),
    }
