"""Can the interval be trusted? Problems whose answer is known, by the cause that once made them wrong.

    python benchmarks/trust.py                   all of them
    python benchmarks/trust.py marginal sizes    by cause: marginal, sizes, newton, functions, speed
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
from scipy import integrate

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


# -- unknown functions, and what was slow


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


CASES: dict[str, tuple[Callable[[int], Case], ...]] = {
    "marginal": (decaying_ring, insulated_rod, decay_and_spread, carried, string, sourced),
    "sizes": (hot_rod, beam_under_load, plate_middle, turning_point, corner, cooling),
    "newton": (emptying_tank, log_law, power_law, orbit, telegraph, logistic_patch),
    "functions": (conductivity,),
    "speed": (plane_ring, plane_walls),
}
WITHOUT_NOISE = {"beam_under_load", "plate_middle", "turning_point", "corner", "emptying_tank", "log_law", "orbit"}


def row(case: Callable[[int], Case], draws: int) -> str:
    """Everything measured about one problem, as a line of a table."""
    errors, z, seconds, statuses, told = [], [], [], [], 0
    for seed in range(1 if case.__name__ in WITHOUT_NOISE else draws):
        problem, asked = case(seed)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            begin = time.process_time()
            try:
                solution = ff.solve(problem)
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
            print(row(case, given.draws), flush=True)


if __name__ == "__main__":
    main()
