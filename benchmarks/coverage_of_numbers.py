"""Do intervals of unknown coefficients hold them? Many draws of noise, and of D(x), where no start is given.

    python benchmarks/coverage_of_numbers.py ring --draws 100        heat on a ring, 60 sensors, no start
    python benchmarks/coverage_of_numbers.py walls --draws 100       the same between walls
    python benchmarks/coverage_of_numbers.py carried --draws 100     advection and diffusion, both unknown
    python benchmarks/coverage_of_numbers.py function --draws 60     D(x) drawn from its prior, start given

Every tenth draw prints the share of truths inside 90 % intervals, the root mean square and the largest |z| (of the
logarithm of positive ones), median CPU seconds, and how many solves did not converge or warned of misses.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from scipy import integrate

import factorfield as ff

Z90, TAU = 1.6449, 2 * np.pi
Asked = Callable[[ff.Solution], dict[str, np.ndarray]]  # z by name
RING = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
ROD = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}


def of_numbers(**truth: float) -> Asked:
    def read(solution: ff.Solution) -> dict[str, np.ndarray]:
        found = {}
        for name, value in truth.items():
            ends, at = np.array(solution.parameters[name]["interval"]), value
            if solution.problem.unknowns[name].positive:
                ends, at = np.log(ends), float(np.log(value))
            found[name] = np.array([(ends.mean() - at) / (np.ptp(ends) / (2 * Z90))])
        return found

    return read


def sensors(rng: np.random.Generator, u: Callable[..., np.ndarray]) -> ff.Observations:
    x, t = rng.uniform(0, 1, 60), rng.uniform(0, 1, 60)
    return ff.Observations(x=x, t=t, u=u(x, t) + 0.1 * rng.standard_normal(60), sigma=0.1)


def ring(seed: int) -> tuple[ff.Problem, Asked]:
    rng, d = np.random.default_rng(seed), 0.01
    seen = sensors(rng, lambda x, t: np.exp(-d * TAU**2 * t) * np.cos(TAU * x)
                   + 0.5 * np.exp(-4 * d * TAU**2 * t) * np.sin(2 * TAU * x))  # fmt: skip
    return ff.Problem("u_t = D*u_xx", RING, {"D": ff.Unknown(0.03, 0.03, positive=True)}, [seen]), of_numbers(D=d)


def walls(seed: int) -> tuple[ff.Problem, Asked]:
    rng, d, pi = np.random.default_rng(seed), 0.03, np.pi
    seen = sensors(rng, lambda x, t: sum(a * np.exp(-d * (k * pi) ** 2 * t) * np.sin(k * pi * x)
                                         for k, a in ((1, 1.0), (2, 0.5), (3, -0.3))))  # fmt: skip
    known = [*(ff.Boundary("u = 0", at={"x": end}) for end in (0, 1)), seen]
    return ff.Problem("u_t = D*u_xx", ROD, {"D": ff.Unknown(0.05, 0.05, positive=True)}, known), of_numbers(D=d)


def carried(seed: int) -> tuple[ff.Problem, Asked]:
    rng, b, d = np.random.default_rng(seed), 0.3, 0.01
    seen = sensors(rng, lambda x, t: np.exp(-d * TAU**2 * t) * np.cos(TAU * (x - b * t))
                   + 0.5 * np.exp(-4 * d * TAU**2 * t) * np.sin(2 * TAU * (x - b * t)))  # fmt: skip
    prior = {"D": ff.Unknown(0.03, 0.03, positive=True), "b": ff.Unknown(0.0, 0.5)}
    return ff.Problem("u_t + b*u_x = D*u_xx", RING, prior, [seen]), of_numbers(D=d, b=b)


def function(seed: int) -> tuple[ff.Problem, Asked]:
    """log D is drawn from its prior, the field made by finite volumes."""
    rng, cells, length, sigma = np.random.default_rng(seed), 200, 0.3, 0.02
    centres, faces = (np.arange(cells) + 0.5) / cells, np.arange(cells + 1) / cells
    gap = np.sqrt(5) * np.abs(faces[:, None] - faces) / length
    kernel = (1 + gap + gap**2 / 3) * np.exp(-gap) + 1e-10 * np.eye(cells + 1)
    variance = np.log1p(0.25)
    drawn = np.sqrt(variance) * np.linalg.cholesky(kernel) @ rng.standard_normal(cells + 1)
    d = 0.1 * np.exp(drawn - variance / 2)

    def rate(_: float, u: np.ndarray) -> np.ndarray:
        flux = np.concatenate([[0.0], -d[1:-1] * np.diff(u) * cells, [0.0]])
        return -np.diff(flux) * cells

    path = integrate.solve_ivp(
        rate, (0, 1), np.cos(np.pi * centres), method="BDF", rtol=1e-7, atol=1e-9, dense_output=True
    )
    x, t = rng.uniform(0.02, 0.98, 60), rng.uniform(0.02, 1, 60)
    u = np.array([np.interp(a, centres, path.sol(b)) for a, b in zip(x, t, strict=True)])
    seen = ff.Observations(x=x, t=t, u=u + sigma * rng.standard_normal(60), sigma=sigma)
    known = [ff.Initial("u = cos(pi*x)"), *(ff.Boundary("u_x = 0", at={"x": end}) for end in (0, 1)), seen]
    unknown = ff.Unknown(0.1, 0.05, positive=True, over="x", length=length)
    problem = ff.Problem("u_t = D*u_xx + D_x*u_x", ROD, {"D": unknown}, known)
    places = np.linspace(0.05, 0.95, 19)

    def read(solution: ff.Solution) -> dict[str, np.ndarray]:
        found = solution.predict(x=places, of="log(D)")
        return {"D(x)": (found["mean"].values - np.log(np.interp(places, faces, d))) / found["std"].values}

    return problem, read


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("study", choices=["ring", "walls", "carried", "function"])
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--first", type=int, default=2000, help="seed of the first draw")
    given = parser.parse_args()
    case = {"ring": ring, "walls": walls, "carried": carried, "function": function}[given.study]
    z: dict[str, list[np.ndarray]] = {}
    seconds, failed, missed = [], 0, 0
    for draw in range(given.draws):
        problem, asked = case(given.first + draw)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            begin = time.process_time()
            solution = ff.solve(problem)
        seconds.append(time.process_time() - begin)
        failed += solution.status != "converged"
        missed += any("miss" in text for text in solution.warnings or ())
        for name, values in asked(solution).items():
            z.setdefault(name, []).append(values)
        if draw % 10 == 9 or draw == given.draws - 1:
            for name, all_z in z.items():
                inside = np.mean([np.mean(np.abs(own) < Z90) for own in all_z])
                spread, worst = np.sqrt(np.mean(np.square(all_z))), np.max(np.abs(all_z))
                print(f"{draw + 1} draws, {name}: {inside:.1%} inside, rms z {spread:.2f}, worst {worst:.2f}, "
                      f"{np.median(seconds):.1f} s, not converged {failed}, misses {missed}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
