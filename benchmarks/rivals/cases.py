"""The data of every comparison, stated once: truths, seeds, noise and priors as plain numbers and arrays.

`case.problem()` states the same data as a factorfield problem. Rivals read only the arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import factorfield as ff

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Prior:
    """Mean and std of an unknown number; a positive one is log-normal with these moments."""

    mean: float
    std: float
    positive: bool = True

    @property
    def latent(self) -> tuple[float, float]:
        """Mean and std of the logarithm of a positive number, otherwise of the number itself."""
        if not self.positive:
            return self.mean, self.std
        variance = np.log1p((self.std / self.mean) ** 2)
        return float(np.log(self.mean) - variance / 2.0), float(np.sqrt(variance))

    def unknown(self) -> ff.Unknown:
        import factorfield as ff

        return ff.Unknown(self.mean, self.std, positive=self.positive)


@dataclass(frozen=True)
class Smooth:
    """A Gaussian process about a mean: Matern-5/2 with this std and length."""

    mean: float
    std: float
    length: float


def matern(gap: Array, std: float, length: float) -> Array:
    """Covariance of a Matern-5/2 process at these distances."""
    scaled = np.sqrt(5.0) * np.abs(gap) / length
    return std**2 * (1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled)


# -- a cooling rod: one unknown diffusivity


@dataclass(frozen=True)
class Rod:
    """u_t = alpha u_xx between walls at 20, from 20 + 60 sin(pi x / 50): the first example of README.md.

    `start` is the std of the start's smooth error (length: a quarter of the rod), or None for a start that holds.
    """

    length: float
    end: float
    wall: float
    rise: float
    start: float | None
    alpha: Prior
    truth: float
    x: float
    t: Array
    u: Array
    sigma: float
    places: tuple[Array, Array]  # x and t of predictions

    def problem(self) -> ff.Problem:
        import factorfield as ff

        return ff.Problem(
            "u_t = alpha*u_xx",
            {"x": ff.Interval(0, self.length), "t": ff.Interval(0, self.end)},
            {"alpha": self.alpha.unknown()},
            [
                ff.Initial(f"u = {self.wall} + {self.rise}*sin(pi*x/{self.length})", sigma=self.start),
                ff.Boundary(f"u = {self.wall}", at={"x": 0}),
                ff.Boundary(f"u = {self.wall}", at={"x": self.length}),
                ff.Observations(x=self.x, t=self.t, u=self.u, sigma=self.sigma),
            ],
            name="rod" if self.start is not None else "rod-start-known",
        )


def rod(start: float | None = 2.0, seed: int = 0) -> Rod:
    """The truth is 25: 57 exp(-alpha (pi/50)^2 t) above the walls at x = 20, read with a noise of 0.5."""
    t = np.arange(1.0, 25.0)
    u = 20.0 + 57.0 * np.exp(-0.0987 * t) + 0.5 * np.random.default_rng(seed).standard_normal(24)
    x, instants = np.meshgrid([5.0, 20.0, 40.0], [0.0, 2.0, 12.0, 36.0])
    return Rod(50.0, 36.0, 20.0, 60.0, start, Prior(15.0, 15.0), 25.0, 20.0, t, u, 0.5, (x.ravel(), instants.ravel()))


# -- Fisher-KPP on a ring: two unknown rates


@dataclass(frozen=True)
class FisherKPP:
    """u_t = nu u_xx + rho u (1 - u) on the ring [0, 1), t in [0, 1].

    `start` is the stated prior of the start; with None the start is known only from the readings at t = 0.
    """

    nu: Prior
    rho: Prior
    truth: dict[str, float]
    start: Smooth | None
    x: Array
    t: Array
    u: Array
    sigma: float
    places: tuple[Array, Array]

    def problem(self) -> ff.Problem:
        import factorfield as ff

        given = []
        if self.start is not None:
            given = [ff.Initial(f"u = {self.start.mean}", sigma=self.start.std, length=self.start.length)]
        return ff.Problem(
            "u_t = nu*u_xx + rho*u*(1-u)",
            {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)},
            {"nu": self.nu.unknown(), "rho": self.rho.unknown()},
            [*given, ff.Observations(x=self.x, t=self.t, u=self.u, sigma=self.sigma)],
            name="fisher-kpp-rates" if self.start is None else "fisher-kpp-start-stated",
        )


def fisher_kpp(stated: bool = False, seed: int = 0) -> FisherKPP:
    """The gallery's fisher-kpp-rates; `stated` adds a prior of the start, 0.5 +- 0.5 with a length of 0.15."""
    from factorfield.problems import fisher_kpp_rates

    first, later = (s for s in fisher_kpp_rates.problem(seed=seed).statements if s.points is not None)
    x, t = (np.concatenate([s.points[axis] for s in (first, later)]) for axis in "xt")
    places, instants = np.meshgrid([0.1, 0.35, 0.6, 0.85], [0.0, 0.25, 1.0])
    return FisherKPP(
        Prior(0.05, 0.05), Prior(1.0, 1.0), {"nu": 0.02, "rho": 3.0}, Smooth(0.5, 0.5, 0.15) if stated else None,
        x, t, np.concatenate([first.target, later.target]), 0.02, (places.ravel(), instants.ravel()),
    )  # fmt: skip


# -- hares and lynxes: four unknown rates


@dataclass(frozen=True)
class HareLynx:
    """h' = alpha h - beta h l, l' = -gamma l + delta h l; the logarithms of the pelts are measured."""

    rates: dict[str, Prior]
    starts: tuple[Prior, Prior]  # of h and l at t = 0
    t: Array
    log_hare: Array
    log_lynx: Array
    sigma: float
    places: Array

    def problem(self) -> ff.Problem:
        from factorfield.problems import hare_lynx

        return hare_lynx.problem(self.sigma)


def hare_lynx() -> HareLynx:
    """The pelts of the Hudson Bay, 1900-1920, with the priors of the gallery's hare-lynx."""
    from factorfield.problems.hare_lynx import HARE, LYNX

    wide, narrow = Prior(1.0, 0.5), Prior(0.05, 0.05)
    return HareLynx(
        {"alpha": wide, "beta": narrow, "gamma": wide, "delta": narrow},
        (Prior(30.0, 10.0, positive=False), Prior(5.0, 3.0, positive=False)),
        np.arange(21.0), np.log(HARE), np.log(LYNX), 0.25, np.linspace(0.0, 20.0, 9),
    )  # fmt: skip


# -- an unknown flux into a bar


@dataclass(frozen=True)
class Flux:
    """u_t = u_xx on [0, 1] from rest, flux q(t) = -u_x in at x = 0, none out at x = 1; q is a Gaussian process."""

    end: float
    flux: Smooth
    sensors: Array
    t: Array
    u: Array  # sensors by times
    sigma: float
    truth: tuple[Array, Array]  # times and q, linear between them
    places: Array  # times at which q is asked

    def problem(self) -> ff.Problem:
        import factorfield as ff

        x, t = np.meshgrid(self.sensors, self.t, indexing="ij")
        return ff.Problem(
            "u_t = u_xx",
            {"x": ff.Interval(0, 1), "t": ff.Interval(0, self.end)},
            {"q": ff.Unknown(self.flux.mean, self.flux.std, over="t", length=self.flux.length)},
            [
                ff.Initial("u = 0"),
                ff.Boundary("u_x + q = 0", at={"x": 0}),
                ff.Boundary("u_x = 0", at={"x": 1}),
                ff.Observations(x=x.ravel(), t=t.ravel(), u=self.u.ravel(), sigma=self.sigma),
            ],
            name="flux",
        )


def flux_response(x: float, t: Array, nodes: Array, terms: int = 200) -> Array:
    """u(x, t) for a flux that is linear between equidistant nodes: one column for the value at each node.

    Exact: the bar's answer to a unit step is t + x^2/2 - x + 1/3 - sum_n share_n exp(-rate_n t), a cosine series; its
    integral is the answer to a ramp, and a hat function is made of three ramps.
    """
    rate = (np.pi * np.arange(1, terms + 1)) ** 2
    share = 2.0 * np.cos(np.sqrt(rate) * x) / rate
    settled = 0.5 * x**2 - x + 1.0 / 3.0
    width = nodes[1] - nodes[0]
    since = np.maximum(np.subtract.outer(t, np.append(nodes, nodes[-1] + width)), 0.0)
    fading = np.exp(-np.multiply.outer(since, rate))
    ramp = since**2 / 2.0 + settled * since - (1.0 - fading) @ (share / rate)
    step = since[:, 0] + settled - fading[:, 0] @ share
    first = step - (ramp[:, 0] - ramp[:, 1]) / width
    others = (ramp[:, :-2] - 2.0 * ramp[:, 1:-1] + ramp[:, 2:]) / width
    return np.column_stack([first, others])


def flux(count: int = 100, seed: int = 0, sensors: tuple[float, ...] = (0.2, 1.0), sigma: float = 0.01) -> Flux:
    """The truth is drawn from the prior, 0 +- 1 with a length of 0.2; `count` readings of each sensor."""
    rng = np.random.default_rng(seed)
    prior, end = Smooth(0.0, 1.0, 0.2), 1.0
    fine = np.linspace(0.0, end, 401)
    covariance = matern(fine[:, None] - fine, prior.std, prior.length)
    q = np.linalg.cholesky(covariance + 1e-10 * np.eye(len(fine))) @ rng.standard_normal(len(fine))
    t = end * np.arange(1, count + 1) / count
    exact = np.stack([flux_response(x, t, fine) @ q for x in sensors])
    u = exact + sigma * rng.standard_normal(exact.shape)
    return Flux(end, prior, np.array(sensors), t, u, sigma, (fine, q), np.linspace(0.0, end, 11))


# -- ordinary differential equations, forward


@dataclass(frozen=True)
class Ode:
    """y' = slope(t, y) from y0 at t = 0; `texts` and `parameters` state the same for factorfield."""

    name: str
    texts: tuple[str, ...]
    parameters: dict[str, float]
    fields: tuple[str, ...]
    y0: Array
    times: Array  # at which solutions are compared; the last one is the end
    slope: Callable[[float, Array], list[float]]
    jacobian: Callable[[float, Array], list[list[float]]]
    stiff: bool = False

    def problem(self) -> ff.Problem:
        import factorfield as ff

        starts = [ff.Initial(f"{name} = {value}") for name, value in zip(self.fields, self.y0, strict=True)]
        domain = {"t": ff.Interval(0, float(self.times[-1]))}
        return ff.Problem(list(self.texts), domain, self.parameters, starts, name=self.name)


def lotka_volterra() -> Ode:
    rates = {"alpha": 0.55, "beta": 0.028, "gamma": 0.8, "delta": 0.024}
    alpha, beta, gamma, delta = rates.values()
    return Ode(
        "lotka-volterra", ("h_t = alpha*h - beta*h*l", "l_t = -gamma*l + delta*h*l"), rates, ("h", "l"),
        np.array([33.0, 6.0]), np.linspace(0.0, 20.0, 41),
        lambda t, y: [alpha * y[0] - beta * y[0] * y[1], delta * y[0] * y[1] - gamma * y[1]],
        lambda t, y: [[alpha - beta * y[1], -beta * y[0]], [delta * y[1], delta * y[0] - gamma]],
    )  # fmt: skip


def van_der_pol(mu: float = 1.0) -> Ode:
    """Two periods for small mu, about 1.2 for large mu."""
    end = 20.0 if mu <= 10.0 else 2.0 * mu
    return Ode(
        f"van-der-pol-{mu:g}", ("x_t = v", "v_t = mu*(1 - x**2)*v - x"), {"mu": mu}, ("x", "v"),
        np.array([2.0, 0.0]), np.linspace(0.0, end, 41),
        lambda t, y: [y[1], mu * (1.0 - y[0] * y[0]) * y[1] - y[0]],
        lambda t, y: [[0.0, 1.0], [-2.0 * mu * y[0] * y[1] - 1.0, mu * (1.0 - y[0] * y[0])]],
        stiff=mu > 10.0,
    )  # fmt: skip


def fitzhugh_nagumo() -> Ode:
    """v' = 3 (v - v^3/3 + r), r' = -(v - 0.2 + 0.2 r)/3, from (-1, 1): relaxation oscillations, t in [0, 20]."""
    a, b, c = 0.2, 0.2, 3.0
    return Ode(
        "fitzhugh-nagumo", ("v_t = c*(v - v**3/3 + r)", "r_t = -(v - a + b*r)/c"), {"a": a, "b": b, "c": c},
        ("v", "r"), np.array([-1.0, 1.0]), np.linspace(0.0, 20.0, 41),
        lambda t, y: [c * (y[0] - y[0] ** 3 / 3.0 + y[1]), -(y[0] - a + b * y[1]) / c],
        lambda t, y: [[c * (1.0 - y[0] ** 2), c], [-1.0 / c, -b / c]],
    )  # fmt: skip


def odes() -> list[Ode]:
    return [lotka_volterra(), van_der_pol(1.0), fitzhugh_nagumo(), van_der_pol(100.0), van_der_pol(1000.0)]


# -- Kuramoto-Sivashinsky in cycles: forecast one time unit, read every point, repeat


class Etdrk4:
    """Steps of u_t = -u u_x - u_xx - u_xxxx on a ring, for fields along the last axis.

    Exponential time differencing of fourth order (Cox and Matthews 2002), coefficients by means over circles (Kassam
    and Trefethen 2005).
    """

    def __init__(self, points: int, length: float, step: float) -> None:
        self.points, self.step = points, step
        wave = 2.0 * np.pi * np.fft.rfftfreq(points, length / points)
        linear = wave**2 - wave**4
        wave[-1] = 0.0  # the shortest wave has no slope on the points
        self.half_slope = -0.5j * wave
        z = step * linear
        near = z[:, None] + np.exp(1j * np.pi * (np.arange(32) + 0.5) / 32)
        grown = np.exp(near)
        self.whole, self.half = np.exp(z), np.exp(z / 2.0)
        self.middle = step * np.mean((np.exp(near / 2.0) - 1.0) / near, axis=1).real
        self.first = step * np.mean((-4.0 - near + grown * (4.0 - 3.0 * near + near**2)) / near**3, axis=1).real
        self.inner = 2.0 * step * np.mean((2.0 + near + grown * (near - 2.0)) / near**3, axis=1).real
        self.last = step * np.mean((-4.0 - 3.0 * near - near**2 + grown * (4.0 - near)) / near**3, axis=1).real

    def steepen(self, hat: NDArray[np.complex128]) -> NDArray[np.complex128]:
        return self.half_slope * np.fft.rfft(np.fft.irfft(hat, self.points) ** 2)

    def __call__(self, u: Array, time: float) -> Array:
        hat = np.fft.rfft(u)
        for _ in range(round(time / self.step)):
            start = self.steepen(hat)
            a = self.half * hat + self.middle * start
            at_a = self.steepen(a)
            at_b = self.steepen(self.half * hat + self.middle * at_a)
            at_c = self.steepen(self.half * a + self.middle * (2.0 * at_b - start))
            hat = self.whole * hat + self.first * start + self.inner * (at_a + at_b) + self.last * at_c
        return np.fft.irfft(hat, self.points)


@dataclass(frozen=True)
class KuramotoSivashinsky:
    """Every point of the ring is read once per time unit, t = 1, 2, ...; the start is known to +- start_sigma."""

    length: float
    x: Array
    start: Array
    start_sigma: float  # independent from point to point
    truth: Array  # cycles by points
    readings: Array
    sigma: float

    def problem(self, cycles: int) -> ff.Problem:
        """The first cycles in one problem; `observations` adds the next ones."""
        import factorfield as ff

        given = ff.Observations(x=self.x, t=0.0, u=self.start, sigma=self.start_sigma)
        return ff.Problem(
            "u_t + u*u_x + u_xx + u_xxxx = 0",
            {"x": ff.Periodic(0, self.length), "t": ff.Interval(0, float(cycles))}, {},
            [given, *(self.observations(cycle) for cycle in range(cycles))], name="kuramoto-sivashinsky-cycles",
        )  # fmt: skip

    def observations(self, cycle: int) -> ff.Observations:
        """The readings at t = cycle + 1."""
        import factorfield as ff

        return ff.Observations(x=self.x, t=cycle + 1.0, u=self.readings[cycle], sigma=self.sigma)

    def rmse(self, means: Array, first: int = 20) -> float:
        """Of analyses, one row per cycle, averaged over cycles `first` + 1 and later."""
        return float(np.mean(np.sqrt(np.mean((means - self.truth[: len(means)]) ** 2, axis=1))[first:]))


def kuramoto_sivashinsky(
    cycles: int = 100, seed: int = 0, points: int = 128, step: float = 0.05
) -> KuramotoSivashinsky:
    """A ring of 32 pi; the start's mean lies on the attractor, the true start within 0.001 (variance) of it."""
    length = 32.0 * np.pi
    x = length * np.arange(points) / points
    march = Etdrk4(points, length, step)
    mean = march(np.cos(x / 16.0) * (1.0 + np.sin(x / 16.0)), 150.0)
    rng = np.random.default_rng(seed)
    start_sigma = np.sqrt(0.001)
    u, truth = mean + start_sigma * rng.standard_normal(points), []
    for _ in range(cycles):
        u = march(u, 1.0)
        truth.append(u)
    path = np.array(truth)
    return KuramotoSivashinsky(length, x, mean, float(start_sigma), path, path + rng.standard_normal(path.shape), 1.0)
