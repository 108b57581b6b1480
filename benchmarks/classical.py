"""Unknown coefficients: are our intervals as narrow as those of a classical fit, and do both hold the truth?

python benchmarks/classical.py [NAME ...] [--draws 20] [--frequencies 24]     # a markdown table

The rival knows what we know: the same measurements with the same sigmas, and the same priors of the coefficients as
further residuals (a positive coefficient is fitted by its logarithm). It takes equation, walls and given starts as
exact, solves by a spectral or Runge-Kutta method, and fits by scipy.optimize.least_squares with central differences,
from the prior's centre and, while the misfit is implausible, from draws of the prior. Its 90 % intervals are those of
the Gauss-Newton covariance. A start that is only measured is fitted too: `--frequencies` of a Fourier series without a
prior (fisher-kpp-rates), or two populations with the problem's own priors (hare-lynx).

hare-lynx has one real data set; its draws are simulated at the known rates of problems/lotka_volterra.py. The draws of
the other problems differ by `seed`.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from gallery import DRAWN
from numpy.typing import NDArray
from rows import header, line
from scipy import integrate, linalg, optimize, special

import factorfield as ff
from factorfield.problem.problem import Statement
from factorfield.problems import hare_lynx, lotka_volterra, reaction_inverse

Array = NDArray[np.float64]
Simulate = Callable[[Array], Array]  # many parameter vectors (n, p) -> their whitened residuals (n, rows)

QUANTILE = float(special.ndtri(0.95))
DIFFERENCE = 1e-5  # half step of central differences, in units of the parameters (logarithms and values of size 1)
STARTS = 20
TRUTHS = {
    "reaction-coefficient": {"k": 2.0},
    "wave-speed": {"c": 1.3},
    "fisher-kpp-rates": {"nu": 0.02, "rho": 3.0},
    "reaction-inverse": {"D": 2.0, "k": 0.1},
    "hare-lynx": lotka_volterra.RATES,
}


@dataclass(frozen=True)
class Rival:
    """Whitened residuals of all information, as a function of the coefficients' latents and then the start."""

    simulate: Simulate
    start: Array  # of the parameters behind the coefficients


# -- the classical solvers, each for many parameter vectors at once


def measured(problem: ff.Problem) -> list[Statement]:
    return [s for s in problem.statements if s.points is not None]


def misfit(statement: Statement, values: Array) -> Array:
    return (values - statement.target) / np.asarray(statement.sigma)


def reaction(problem: ff.Problem) -> Rival:
    """-u_xx + k u = (pi^2 + 2) sin(pi x), zero at both ends: Chebyshev collocation."""
    (data,) = measured(problem)
    assert data.points is not None
    degree = 24
    series = np.polynomial.chebyshev
    x = 0.5 - 0.5 * np.cos(np.pi * np.arange(degree + 1) / degree)
    values = series.chebvander(2.0 * x - 1.0, degree)
    second = np.stack(
        [4.0 * series.chebval(2.0 * x - 1.0, series.chebder(row, 2)) for row in np.eye(degree + 1)], axis=1
    )
    force = (np.pi**2 + 2.0) * np.sin(np.pi * x)
    force[[0, -1]] = 0.0
    seen = series.chebvander(2.0 * data.points["x"] - 1.0, degree)

    def simulate(many: Array) -> Array:
        matrix = many[:, :1, None] * values - second
        matrix[:, [0, -1]] = values[[0, -1]]
        found = np.linalg.solve(matrix, np.broadcast_to(force[:, None], (len(many), degree + 1, 1)))[..., 0]
        return misfit(data, found @ seen.T)

    return Rival(simulate, np.zeros(0))


def wave(problem: ff.Problem) -> Rival:
    """u_tt = c^2 u_xx between fixed ends from sin(pi x) at rest: sine series in space, each wave exact in time."""
    (data,) = measured(problem)
    assert data.points is not None
    cells = 64
    x = np.arange(1, cells) / cells
    number = np.arange(1, cells)
    waves = np.sin(np.pi * np.outer(x, number))
    strength = np.linalg.solve(waves, np.sin(np.pi * x))
    shape = np.sin(np.pi * np.outer(data.points["x"], number)) * strength
    phase = np.pi * np.outer(data.points["t"], number)

    def simulate(many: Array) -> Array:
        speed = np.exp(many[:, 0])[:, None, None]
        return misfit(data, np.sum(shape * np.cos(speed * phase), axis=-1))

    return Rival(simulate, np.zeros(0))


def fisher(problem: ff.Problem, frequencies: int, cells: int = 64, step: float = 0.01) -> Rival:
    """u_t = nu u_xx + rho u (1-u), periodic: Strang splitting, fourth order by extrapolation, as the reference solver
    does; the start is a Fourier series."""
    first, later = measured(problem)
    assert first.points is not None and later.points is not None
    length = problem.domain["x"].length

    def features(x: Array, count: int) -> Array:
        angle = 2.0 * np.pi * np.outer(x, np.arange(1, count + 1)) / length
        return np.concatenate([np.ones((len(x), 1)), np.cos(angle), np.sin(angle)], axis=1)

    at_start = features(first.points["x"], frequencies)
    grid = length * np.arange(cells) / cells
    to_grid = features(grid, frequencies)
    most = cells // 2 - 1
    held = np.linalg.pinv(features(grid, most))  # values on the grid -> the series through them
    seen = features(later.points["x"], most) @ held
    times, when = np.unique(np.concatenate([[0.0], later.points["t"]]), return_inverse=True)
    when = when[1:]
    symbol = -((2.0 * np.pi * np.fft.rfftfreq(cells, 1.0 / cells) / length) ** 2)

    def march(u: Array, nu: Array, rho: Array, step: float) -> Array:
        rows = [u]
        for gap in np.diff(times):
            count = max(1, int(np.ceil(gap / step - 1e-9)))
            spread = np.exp(nu[:, None] * symbol * gap / count)
            whole = np.exp(-rho[:, None] * gap / count)
            half = np.sqrt(whole)
            u = u / (u + (1.0 - u) * half)
            for index in range(count):  # neighbouring half steps of the reaction are one whole step
                u = np.fft.irfft(spread * np.fft.rfft(u), cells)
                u = u / (u + (1.0 - u) * (half if index == count - 1 else whole))
            rows.append(u)
        return np.stack(rows, axis=1)

    def simulate(many: Array) -> Array:
        nu, rho, series = np.exp(many[:, 0]), np.exp(many[:, 1]), many[:, 2:]
        u = series @ to_grid.T
        field = (4.0 * march(u, nu, rho, 0.5 * step) - march(u, nu, rho, step)) / 3.0
        there = np.einsum("njc,jc->nj", field[:, when], seen)
        return np.concatenate([misfit(first, series @ at_start.T), misfit(later, there)], axis=1)

    return Rival(simulate, np.linalg.lstsq(at_start, first.target, rcond=None)[0])


def species(problem: ff.Problem) -> Rival:
    """Two reacting species between walls: Chebyshev collocation and Radau, coarser than the reference solution but to
    a hundredth of the measurements' sigma (1e-4)."""
    seen = measured(problem)
    assert seen[0].points is not None
    places, where = np.unique(seen[0].points["x"], return_inverse=True)
    instants = seen[0].points["t"]

    def one(diffusion: float, rate: float) -> Array:
        times, fields = reaction_inverse.fields(diffusion, rate, places, degree=32, rtol=1e-7)
        when = np.searchsorted(times, instants - 1e-9)
        return np.concatenate([misfit(s, field[when, where]) for s, field in zip(seen, fields, strict=True)])

    def simulate(many: Array) -> Array:
        return np.stack([one(float(diffusion), float(rate)) for diffusion, rate in np.exp(many)])

    return Rival(simulate, np.zeros(0))


def populations(problem: ff.Problem) -> Rival:
    """Lotka-Volterra in logarithms by DOP853; the start has the problem's own priors."""
    hares, lynxes = measured(problem)
    assert hares.points is not None
    times = hares.points["t"]
    starts = [s for s in problem.statements if s.face is not None]
    means = np.array([problem_start(s) for s in starts])
    sigmas = np.array([float(np.asarray(s.sigma)) for s in starts])

    def simulate(many: Array) -> Array:
        alpha, beta, gamma, delta = np.exp(many[:, :4]).T
        begin = many[:, 4:].T

        def slope(_: float, y: Array) -> Array:
            h, l = np.exp(y.reshape(2, -1))  # noqa: E741 - the equation's own name
            return np.concatenate([alpha - beta * l, delta * h - gamma])

        run = integrate.solve_ivp(
            slope, (times[0], times[-1]), begin.ravel(), "DOP853", t_eval=times, rtol=1e-10, atol=1e-10
        )
        if not run.success:  # the fit takes a shorter step
            return np.full((len(many), len(means) + 2 * len(times)), np.nan)
        h, l = run.y.reshape(2, len(many), len(times))  # noqa: E741
        prior = (np.exp(begin.T) - means) / sigmas
        return np.concatenate([prior, misfit(hares, h), misfit(lynxes, l)], axis=1)

    return Rival(simulate, np.log(means))


def problem_start(statement: Statement) -> float:
    """The value that a statement "h = 30" gives."""
    (symbol,) = statement.relation.jets
    return float(-statement.relation.expression.subs(symbol, 0))


# -- the fit


def fitted(problem: ff.Problem, rival: Rival, seed: int) -> dict[str, tuple[float, float]]:
    """90 % intervals of the coefficients by nonlinear least squares."""
    prior = np.array([unknown.latent_moments for unknown in problem.unknowns.values()])
    mean, std = prior[:, 0], np.sqrt(prior[:, 1])
    count = len(mean)

    def residuals(many: Array) -> Array:
        with np.errstate(all="ignore"):  # steps that leave are judged by the fit
            return np.concatenate([(many[:, :count] - mean) / std, rival.simulate(many)], axis=1)

    def slopes(point: Array) -> Array:
        steps = DIFFERENCE * np.eye(len(point))
        both = residuals(np.concatenate([point + steps, point - steps]))
        return ((both[: len(point)] - both[len(point) :]) / (2.0 * DIFFERENCE)).T

    rng = np.random.default_rng(seed)
    best = None
    for number in range(STARTS):
        begin = np.concatenate([mean if number == 0 else rng.normal(mean, std), rival.start])
        if not np.all(np.isfinite(residuals(begin[None]))):
            continue
        found = optimize.least_squares(
            lambda point: residuals(point[None])[0], begin, slopes, x_scale="jac", xtol=1e-10, ftol=1e-10, gtol=1e-10
        )
        if best is None or found.cost < best.cost:
            best = found
        free = len(found.fun) - len(begin)  # 2 cost is chi-square with this many degrees of freedom
        if found.success and 2.0 * best.cost < free + 5.0 * np.sqrt(2.0 * free):
            break
    assert best is not None and best.success
    _, upper = linalg.qr(best.jac, mode="economic")
    sd = np.sqrt(np.sum(np.linalg.inv(upper) ** 2, axis=1))
    result = {}
    for index, (name, unknown) in enumerate(problem.unknowns.items()):
        ends = best.x[index] - QUANTILE * sd[index], best.x[index] + QUANTILE * sd[index]
        low, high = np.exp(ends) if unknown.positive else ends
        result[name] = float(low), float(high)
    return result


def simulated_hare_lynx(seed: int, sigma: float = 0.25) -> ff.Problem:
    """The problem as it is, with measurements drawn at known rates."""
    real = hare_lynx.problem(sigma)
    rng, years = np.random.default_rng(seed), np.arange(21.0)
    logs = np.log(lotka_volterra.populations(years)) + sigma * rng.standard_normal((2, len(years)))
    seen = [
        ff.Observations(t=years, of=f"log({name})", value=one, sigma=sigma)
        for name, one in zip("hl", logs, strict=True)
    ]
    given = [c for c in real.conditions if not isinstance(c, ff.Observations)]
    return ff.Problem(real.equations, real.domain, real.parameters, [*given, *seen], name=real.name)


def rival_of(problem: ff.Problem, frequencies: int) -> Rival:
    if problem.name == "fisher-kpp-rates":
        return fisher(problem, frequencies)
    rivals = {
        "reaction-coefficient": reaction, "wave-speed": wave, "reaction-inverse": species, "hare-lynx": populations
    }  # fmt: skip
    return rivals[problem.name](problem)


@dataclass(frozen=True)
class Draw:
    ours: dict[str, tuple[float, float]]
    theirs: dict[str, tuple[float, float]]
    our_seconds: float
    their_seconds: float


def draw(problem: ff.Problem, frequencies: int, seed: int) -> Draw:
    begin = time.perf_counter()
    solution = ff.solve(problem, **DRAWN.get(problem.name, {}))
    solved = time.perf_counter()
    theirs = fitted(problem, rival_of(problem, frequencies), seed)
    ended = time.perf_counter()
    ours = {name: value["interval"] for name, value in solution.parameters.items()}
    return Draw(ours, theirs, solved - begin, ended - solved)


def lines(label: str, draws: list[Draw], truths: dict[str, float] | None) -> None:
    ours = statistics.median(d.our_seconds for d in draws)
    theirs = statistics.median(d.their_seconds for d in draws)
    for name in draws[0].ours:
        pairs = np.array([[d.ours[name], d.theirs[name]] for d in draws])  # draws, method, ends
        width = np.mean(pairs[..., 1] - pairs[..., 0], axis=0)
        centre = np.mean(pairs, axis=-1)
        apart = np.mean(np.abs(centre[:, 0] - centre[:, 1])) / (width[1] / (2.0 * QUANTILE))
        covers = ["-", "-"]
        if truths is not None:
            inside = np.mean((pairs[..., 0] <= truths[name]) & (truths[name] <= pairs[..., 1]), axis=0)
            covers = [f"{100 * share:.0f} %" for share in inside]
        line(
            label, name, len(draws), f"{width[1]:.4g}", f"{width[0] / width[1]:.3f}", f"{apart:.2f}", *covers,
            f"{ours:.2f}", f"{theirs:.2f}",
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(TRUTHS))
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--frequencies", type=int, default=24)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    header(
        "problem", "coefficient", "draws", "mean 90 % width, least squares", "ours / least squares",
        "midpoints apart, in sd", "ours cover", "least squares cover", "seconds, ours", "seconds, least squares",
    )  # fmt: skip
    for name in arguments.names:
        make = simulated_hare_lynx if name == "hare-lynx" else lambda seed, name=name: ff.problems.get(name, seed=seed)
        found = [draw(make(seed), arguments.frequencies, seed) for seed in range(arguments.draws)]
        label = "hare-lynx, simulated" if name == "hare-lynx" else name
        lines(label, found, TRUTHS[name])
        if name == "hare-lynx":
            real = [draw(hare_lynx.problem(), arguments.frequencies, 0)]
            lines("hare-lynx, the data", real, None)


if __name__ == "__main__":
    main()
