"""Questions after the solution: which equation, where to measure next, how do places go together.

    python benchmarks/questions.py rank          # 60 data sets for each of three sets of four equations
    python benchmarks/questions.py methods       # the evidence of joint, chain and tree on one linear problem
    python benchmarks/questions.py next          # ten of 10,000 candidates; against even and random places
    python benchmarks/questions.py covariance    # against dense algebra and draws; far windows and boxes in seconds

Seconds are processor seconds of one thread. Results: benchmarks/results/questions.md.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import special

import factorfield as ff
from factorfield.posterior.measuring import target_of

Array = NDArray[np.float64]
Field = Callable[[Mapping[str, float], Mapping[str, Array]], Array]


def seconds(action: Callable[[], object]) -> tuple[object, float]:
    begin = time.process_time()
    found = action()
    return found, time.process_time() - begin


# -- which equation


@dataclass(frozen=True)
class Equation:
    """A candidate: its text, its unknown coefficients, and its exact solution."""

    text: str
    unknowns: Mapping[str, ff.Unknown]
    field: Field

    def draw(self, rng: np.random.Generator) -> dict[str, float]:
        found = {}
        for name, unknown in self.unknowns.items():
            mean, variance = unknown.latent_moments
            value = mean + np.sqrt(variance) * rng.standard_normal()
            found[name] = float(np.exp(value)) if unknown.positive else float(value)
        return found


@dataclass(frozen=True)
class Setting:
    """Candidates with one start, measured at random places."""

    domain: Mapping[str, ff.Interval | ff.Periodic]
    start: str
    count: int
    equations: Mapping[str, Equation]
    noises: tuple[float, float]  # one that shows the equation, one that hides it

    def places(self, rng: np.random.Generator) -> dict[str, Array]:
        return {name: rng.uniform(axis.lower, axis.upper, self.count) for name, axis in self.domain.items()}


K = ff.Unknown(0.6, 0.15, positive=True)
ODE = Setting(
    {"t": ff.Interval(0, 4)}, "u = 2", 20,
    {
        "zero order": Equation("u_t = -k", {"k": K}, lambda c, p: 2 - c["k"] * p["t"]),
        "first order": Equation("u_t = -k*u", {"k": K}, lambda c, p: 2 * np.exp(-c["k"] * p["t"])),
        "second order": Equation("u_t = -k*u**2", {"k": K}, lambda c, p: 2 / (1 + 2 * c["k"] * p["t"])),
        "saturated": Equation(
            "u_t = -k*u/(1 + u)", {"k": K}, lambda c, p: special.lambertw(2 * np.exp(2 - c["k"] * p["t"])).real
        ),
    },
    (0.02, 0.5),
)  # fmt: skip


def wave(x: Array) -> Array:
    return 1.0 + 0.5 * np.sin(2 * np.pi * x) + 0.2 * np.cos(4 * np.pi * x)


def spread(d: float, x: Array, t: Array) -> Array:
    """The wave after diffusion."""
    first, second = np.exp(-d * (2 * np.pi) ** 2 * t), np.exp(-d * (4 * np.pi) ** 2 * t)
    return 1.0 + 0.5 * first * np.sin(2 * np.pi * x) + 0.2 * second * np.cos(4 * np.pi * x)


RING = {"x": ff.Periodic(0, 1), "t": ff.Interval(0, 1)}
START = "u = 1 + 0.5*sin(2*pi*x) + 0.2*cos(4*pi*x)"
D, C, R = ff.Unknown(0.02, 0.006, positive=True), ff.Unknown(0.3, 0.1), ff.Unknown(0.6, 0.15, positive=True)
PDE = Setting(
    RING, START, 30,
    {
        "diffusion": Equation("u_t = d*u_xx", {"d": D}, lambda c, p: spread(c["d"], p["x"], p["t"])),
        "advection": Equation("u_t = -c*u_x", {"c": C}, lambda c, p: wave(p["x"] - c["c"] * p["t"])),
        "decay": Equation("u_t = -k*u", {"k": R}, lambda c, p: wave(p["x"]) * np.exp(-c["k"] * p["t"])),
        "second-order decay": Equation(
            "u_t = -k*u**2", {"k": R}, lambda c, p: wave(p["x"]) / (1 + wave(p["x"]) * c["k"] * p["t"])
        ),
    },
    (0.02, 0.5),
)  # fmt: skip
TWO = Setting(
    RING, START, 40,
    {
        "carried, spread": Equation(
            "u_t = -c*u_x + d*u_xx", {"c": C, "d": D}, lambda c, p: spread(c["d"], p["x"] - c["c"] * p["t"], p["t"])
        ),
        "carried, decaying": Equation(
            "u_t = -c*u_x - k*u", {"c": C, "k": R},
            lambda c, p: wave(p["x"] - c["c"] * p["t"]) * np.exp(-c["k"] * p["t"]),
        ),
        "carried, decaying by pairs": Equation(
            "u_t = -c*u_x - k*u**2", {"c": C, "k": R},
            lambda c, p: 1 / (1 / wave(p["x"] - c["c"] * p["t"]) + c["k"] * p["t"]),
        ),
        "spread, decaying": Equation(
            "u_t = d*u_xx - k*u", {"d": D, "k": R},
            lambda c, p: spread(c["d"], p["x"], p["t"]) * np.exp(-c["k"] * p["t"]),
        ),
    },
    (0.02, 0.5),
)  # fmt: skip
SETTINGS = {"ODE": ODE, "1-D and time": PDE, "two unknowns": TWO}


def one_draw(setting: Setting, noise: float, seed: int) -> tuple[int, int, Array]:
    """The number of the true candidate, that of the best with all coefficients known, and the probabilities found."""
    rng = np.random.default_rng(seed)
    equations = list(setting.equations.values())
    truth, values, places = (
        int(rng.integers(len(equations))),
        [each.draw(rng) for each in equations],
        setting.places(rng),
    )
    data = equations[truth].field(values[truth], places) + noise * rng.standard_normal(setting.count)
    misses = [np.sum((each.field(own, places) - data) ** 2) for each, own in zip(equations, values, strict=True)]
    seen = ff.Observations(**places, u=data, sigma=noise)
    problems = {
        name: ff.Problem(each.text, setting.domain, dict(each.unknowns), [ff.Initial(setting.start), seen])
        for name, each in setting.equations.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ff.AdviceWarning)
        found = ff.rank(problems)
    return truth, int(np.argmin(misses)), found["probability"].values


def run_rank(draws: int) -> None:
    print("| set | noise | best possible: first | found: first | mean probability of the truth | seconds a ranking |")
    print("|---|---|---|---|---|---|")
    pairs: list[tuple[float, bool]] = []
    for title, setting in SETTINGS.items():
        for noise in setting.noises:
            begin, results = time.process_time(), [one_draw(setting, noise, seed) for seed in range(draws)]
            spent = (time.process_time() - begin) / draws
            possible = np.mean([truth == best for truth, best, _ in results])
            first = np.mean([truth == int(np.argmax(p)) for truth, _, p in results])
            held = np.mean([p[truth] for truth, _, p in results])
            pairs += [(float(p[i]), i == truth) for truth, _, p in results for i in range(len(p))]
            print(f"| {title} | {noise:g} | {100 * possible:.0f} % | {100 * first:.0f} % | {held:.2f} | {spent:.2f} |")
            sys.stdout.flush()
    print("\n| probability told | pairs | mean told | share true |\n|---|---|---|---|")
    told, true = (np.array(each, float) for each in zip(*pairs, strict=True))
    for low, high in (
        (0.0, 0.02),
        (0.02, 0.1),
        (0.1, 0.3),
        (0.3, 0.5),
        (0.5, 0.7),
        (0.7, 0.9),
        (0.9, 0.98),
        (0.98, 1.01),
    ):
        inside = (told >= low) & (told < high)
        if np.any(inside):
            row = f"{int(inside.sum())} | {told[inside].mean():.3f} | {true[inside].mean():.3f}"
            print(f"| {low:g} to {min(high, 1.0):g} | {row} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["rank"])
    parser.add_argument("--draws", type=int, default=60)
    arguments = parser.parse_args()
    run_rank(arguments.draws)


if __name__ == "__main__":
    main()
