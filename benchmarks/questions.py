"""Questions after the solution: which equation, where to measure next, how do places go together.

    python benchmarks/questions.py rank          # 60 data sets for each of three sets of four equations
    python benchmarks/questions.py methods       # the evidence of joint, chain and tree on one linear problem
    python benchmarks/questions.py next          # ten of 10,000 candidates; against even and random places
    python benchmarks/questions.py covariance    # against dense algebra and draws; far windows and boxes in seconds

Seconds are processor seconds of one thread. Results: benchmarks/results/questions.md.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import special

import factorfield as ff
from factorfield.model.representation import layout
from factorfield.posterior.covariance import covariance
from factorfield.posterior.measuring import target_of
from factorfield.posterior.windows import ChainPosterior

Array = NDArray[np.float64]
Field = Callable[[Mapping[str, float], Mapping[str, Array]], Array]


def seconds(action: Callable[[], Any]) -> tuple[Any, float]:
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
MODES = {"x": 6}  # the start has two
SETTINGS = {"ODE": ODE, "1-D and time": PDE, "two unknowns": TWO}


def one_draw(setting: Setting, noise: float, seed: int) -> dict[str, object]:
    """The true candidate, the best one with all coefficients known, and the probabilities found."""
    begin, rng = time.process_time(), np.random.default_rng(seed)
    equations, places = list(setting.equations.values()), setting.places(rng)
    truth, values = int(rng.integers(len(equations))), [each.draw(rng) for each in equations]
    data = equations[truth].field(values[truth], places) + noise * rng.standard_normal(setting.count)
    misses = [np.sum((each.field(own, places) - data) ** 2) for each, own in zip(equations, values, strict=True)]
    seen = ff.Observations(**places, u=data, sigma=noise)
    problems = {
        name: ff.Problem(each.text, setting.domain, dict(each.unknowns), [ff.Initial(setting.start), seen])
        for name, each in setting.equations.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ff.AdviceWarning)
        found = ff.rank(problems, **({"modes": MODES} if "x" in setting.domain else {}))
    spent = time.process_time() - begin
    told = found["probability"].values.tolist()
    return {"truth": truth, "possible": int(np.argmin(misses)), "told": told, "seconds": spent}


def run_rank(draws: int, record: Path, chosen: str) -> None:
    """Draws that are recorded are not drawn again; the tables are of all that are."""
    known = {}
    for line in record.read_text().splitlines() if record.exists() else ():
        entry = json.loads(line)
        known[entry["set"], entry["noise"], entry["seed"]] = entry
    wanted = [(t, n, seed) for t, s in SETTINGS.items() for n in s.noises for seed in range(draws)]
    for title, noise, seed in wanted:
        if chosen in ("", title) and (title, noise, seed) not in known:
            entry = {"set": title, "noise": noise, "seed": seed, **one_draw(SETTINGS[title], noise, seed)}
            known[title, noise, seed] = entry
            with record.open("a") as file:
                file.write(json.dumps(entry) + "\n")
    print("| set | noise | data sets | best possible: first | found: first | mean probability of the truth | seconds |")
    print("|---|---|---|---|---|---|---|")
    for title, setting in SETTINGS.items():
        for noise in setting.noises:
            own = [each for each in known.values() if (each["set"], each["noise"]) == (title, noise)]
            if own:
                possible = np.mean([each["truth"] == each["possible"] for each in own])
                first = np.mean([each["truth"] == int(np.argmax(each["told"])) for each in own])
                held = np.mean([each["told"][each["truth"]] for each in own])
                spent = np.mean([each["seconds"] for each in own])
                shares = f"{100 * possible:.0f} % | {100 * first:.0f} % | {held:.2f} | {spent:.2f}"
                print(f"| {title} | {noise:g} | {len(own)} | {shares} |")
    print_reliability([(p, i == each["truth"]) for each in known.values() for i, p in enumerate(each["told"])])


def print_reliability(pairs: Sequence[tuple[float, bool]]) -> None:
    print("\n| probability told | pairs | mean told | share true |\n|---|---|---|---|")
    told, true = (np.array(each, float) for each in zip(*pairs, strict=True))
    for low, high in pairwise((0.0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.01)):
        inside = (told >= low) & (told < high)
        if np.any(inside):
            row = f"{int(inside.sum())} | {told[inside].mean():.3f} | {true[inside].mean():.3f}"
            print(f"| {low:g} to {min(high, 1.0):g} | {row} |")


# -- the evidence by three methods


def run_methods() -> None:
    """A heated rod with a load of unknown strength, measured at twenty places; all else is told."""
    rng = np.random.default_rng(0)
    x, t = rng.uniform(0.05, 0.95, (2, 20))
    rate, k = 0.1 * np.pi**2, 0.7
    truth = np.sin(np.pi * x) * (np.exp(-rate * t) + k / rate * (1 - np.exp(-rate * t)))
    seen = ff.Observations(x=x, t=t, u=truth + 0.05 * rng.standard_normal(20), sigma=0.05)
    domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    walls = [ff.Boundary("u = 0", at={"x": end}) for end in (0, 1)]
    conditions = [ff.Initial("u = sin(pi*x)"), *walls, seen]
    problem = ff.Problem("u_t = 0.1*u_xx + k*sin(pi*x)", domain, {"k": ff.Unknown(0.0, 1.0)}, conditions)
    print("| method | log evidence | k | status | seconds |\n|---|---|---|---|---|")
    for method in ("joint", "chain", "tree"):
        solution, spent = seconds(lambda name=method: ff.solve(problem, method=name))
        level, number = solution.log_evidence, solution.parameters["k"]
        told = f"{number['mean']:.4f} +- {number['std']:.4f} | {solution.status} | {spent:.2f}"
        print(f"| {method} | {level:.4f} | {told} |")


# -- where to measure next

TREE = {"method": "tree", "cells": {"x": 24, "y": 24}}


def plate(count: int) -> ff.Problem:
    """A membrane under an unknown load, at rest at its rim."""
    rng = np.random.default_rng(0)
    x, y = rng.uniform(0.05, 0.95, (2, count))
    seen = ff.Observations(x=x, y=y, u=np.sin(np.pi * x) * np.sin(np.pi * y), sigma=0.02)
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}
    walls = [ff.Boundary("u = 0", at={axis: end}) for axis in domain for end in (0, 1)]
    return ff.Problem(ff.Equation("u_xx + u_yy = -20", sigma=10.0), domain, {}, [*walls, seen])


def rod() -> ff.Problem:
    """Heat in a rod of which the start is known to one degree."""
    domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}
    walls = [ff.Boundary("u_x = 0", at={"x": end}) for end in (0, 1)]
    return ff.Problem("u_t = 0.02*u_xx", domain, {}, [ff.Initial("u = 0", sigma=1.0, length=0.15), *walls])


def run_speed() -> None:
    """Medians of five, each after a first one that is not counted, solve and choice in turn."""
    print("| problem | weights | solve, s | ten of a grid of 10,000, s | of a table, s |\n|---|---|---|---|---|")
    cases = {
        "plate, joint": (plate(15), "joint", {"modes": {"x": 31, "y": 31}}, ("x", "y")),
        "plate, tree": (plate(15), "tree", {"cells": {"x": 28, "y": 28}}, ("x", "y")),
        "rod, chain": (rod(), "chain", {"modes": {"x": 48}}, ("x", "t")),
    }
    for title, (problem, method, options, axes) in cases.items():
        grid = {axis: np.linspace(0, 1, 100) for axis in axes}
        table, spent = pd.DataFrame(problem.domain.tensor(grid)), []
        for _ in range(6):
            solution, solving = seconds(lambda p=problem, m=method, o=options: ff.solve(p, method=m, **o))
            _, on_grid = seconds(lambda s=solution, g=grid: s.next_measurements(10, 0.02, candidates=g))
            _, in_table = seconds(lambda s=solution, c=table: s.next_measurements(10, 0.02, candidates=c))
            spent.append((solving, on_grid, in_table))
        solving, on_grid, in_table = np.median(spent[1:], axis=0)
        size = solution.posterior.representation.size
        print(f"| {title} | {size} | {solving:.3f} | {on_grid:.3f} | {in_table:.3f} |")


def run_promise() -> None:
    """The std that is promised after each of ten measurements, against that after conditioning on them."""
    print("\n| problem | std now | promised after ten | conditioned | largest relative gap |\n|---|---|---|---|---|")
    for title, problem, options in (("rod, chain", rod(), {}), ("plate, tree", plate(15), TREE)):
        solution = ff.solve(problem, **options)
        found, gaps = solution.next_measurements(10, 0.1), []
        for count in (1, 3, 10):
            own = {axis: found[axis].values[:count] for axis in problem.domain}
            after = solution.condition(ff.Observations(**own, u=np.zeros(count), sigma=0.1))
            left = float(np.sqrt(target_of(after.posterior, "u", None).line(after.posterior)[1]))
            gaps.append(abs(left / float(found["std"][count - 1]) - 1.0))
        promised, now = float(found["std"][-1]), float(found["std_now"])
        print(f"| {title} | {now:.4f} | {promised:.6f} | {left:.6f} | {max(gaps):.1e} |")


def run_places(draws: int) -> None:
    """Fields drawn as the problem believes them, measured at ten places: the error of what is found."""
    solution, noise, rng = ff.solve(rod()), 0.1, np.random.default_rng(1)
    x, t = np.linspace(0, 1, 41), np.linspace(0, 1, 21)
    found = solution.next_measurements(10, noise, candidates={"x": x, "t": t})
    even = np.meshgrid(np.linspace(0.1, 0.9, 5), [0.25, 0.75])
    ways = {
        "chosen": lambda: (found["x"].values, found["t"].values),
        "even in x, at the start": lambda: (np.linspace(0.05, 0.95, 10), np.zeros(10)),
        "even in x and t": lambda: (even[0].ravel(), even[1].ravel()),
        "random": lambda: (rng.uniform(0, 1, 10), rng.uniform(0, 1, 10)),
    }
    errors: dict[str, list[float]] = {way: [] for way in ways}
    for seed in range(draws):
        truth = solution.sample(1, seed=seed, x=x, t=t).isel(sample=0)
        for way, places in ways.items():
            px, pt = places()
            at = truth.interp(x=("point", px), t=("point", pt)).values
            seen = ff.Observations(x=px, t=pt, u=at + noise * rng.standard_normal(10), sigma=noise)
            mean = solution.condition(seen).predict(x=x, t=t)["mean"]
            errors[way].append(float(np.sqrt(np.mean((mean - truth) ** 2))))
    print("\n| ten places | mean RMSE | beaten by the chosen ones |\n|---|---|---|")
    chosen = np.array(errors["chosen"])
    for way, values in errors.items():
        beaten = "" if way == "chosen" else f"{int(np.sum(chosen < values))} of {draws}"
        print(f"| {way} | {np.mean(values):.4f} | {beaten} |")


def run_exhaustive() -> None:
    """Three of 24 places, repeats allowed, by the greedy choice and by trying all 2,600 triples."""
    solution, noise = ff.solve(rod()), 0.1
    grid = {"x": np.linspace(0, 1, 8), "t": np.array([0.0, 0.2, 0.6])}
    found = solution.next_measurements(3, noise, candidates=grid)
    wanted = target_of(solution.posterior, "u", None)
    nodes, places = (solution.problem.domain.tensor(each) for each in (wanted.grid, grid))
    everywhere = {axis: np.concatenate([places[axis], nodes[axis]]) for axis in places}
    whole = solution.covariance(points=True, **everywhere).values
    count = len(places["x"])
    best, now = np.inf, float(wanted.shares @ np.diag(whole)[count:])
    for triple in combinations_with_replacement(range(count), 3):
        own = whole[np.ix_(triple, triple)] + noise**2 * np.eye(3)
        cross = whole[count:][:, triple]
        taken = np.einsum("mi,ij,mj->m", cross, np.linalg.inv(own), cross)
        best = min(best, now - float(wanted.shares @ taken))
    greedy = float(found["std"][-1]) ** 2
    print(f"\nvariance now {now:.5f}, after three greedy places {greedy:.5f}, after the best three {best:.5f}:")
    print(f"greedy removes {(now - greedy) / (now - best):.4f} of what the best triple removes")


# -- how places go together


def dense_chain(posterior: ChainPosterior) -> list[Array]:
    """Roots of all windows' weights, from one Gaussian over the noises of all windows together."""
    width, links = len(posterior.starts[0].mean), posterior.links
    sizes = [width, *(len(link.offset) + width for link in links)]
    total, at, state = sum(sizes), width, np.eye(width, sum(sizes))
    state = posterior.starts[0].root @ state
    weights, told = [], []
    for index, link in enumerate(links):
        if index:
            told.append(link.message.rows @ state)
        inner, eta = np.zeros((len(link.offset), total)), np.zeros((width, total))
        inner[:, at : at + len(link.offset)] = link.interior.dense()
        eta[:, at + len(link.offset) : at + sizes[index + 1]] = np.eye(width)
        weights.append(np.vstack([state, link.slope @ state + inner + link.end_noise @ eta]))
        state, at = link.transition @ state + link.noise_root @ eta, at + sizes[index + 1]
    rows = np.vstack(told)
    root = np.linalg.inv(np.linalg.cholesky(np.eye(total) + rows.T @ rows)).T
    order = np.argsort(np.concatenate(layout(posterior.windowed)))
    return [(each @ root)[order] for each in weights]


def gap(found: Array, exact: Array) -> float:
    std = np.sqrt(np.diag(exact))
    return float(np.max(np.abs(found - exact) / np.outer(std, std)))


def run_dense() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.uniform(0, 1, (2, 12))
    print("| posterior | weights | largest gap to dense algebra, of the product of stds |\n|---|---|---|")
    joint = ff.solve(plate(15), method="joint", modes={"x": 12, "y": 12}).posterior
    rows = joint.representation.latents["u"].basis.rows({"x": a, "y": b})
    found = covariance(joint.exact, "u", {"x": a, "y": b}, True).values
    print(f"| joint | {len(joint.mean)} | {gap(found, rows @ joint.covariance @ rows.T):.1e} |")
    seen = ff.Observations(x=a, t=b, u=np.zeros(12), sigma=0.1)
    problem = rod().replace(conditions=[*rod().conditions, seen])
    chain = ff.solve(problem, modes={"x": 10}, windows=np.linspace(0, 1, 7)).posterior
    roots, at = dense_chain(chain), chain._windows_of(b)
    bare = [chain._bare(k).representation.latents["u"] for k in range(6)]
    rows = np.stack(
        [bare[k].basis.rows({"x": a[[i]], "t": b[[i]]})[0] @ roots[k][bare[k].block] for i, k in enumerate(at)]
    )
    found = covariance(chain, "u", {"x": a, "t": b}, True).values
    print(f"| chain, 6 windows | {len(roots[0])} each | {gap(found, rows @ rows.T):.1e} |")
    tree = ff.solve(plate(15), method="tree", cells={"x": 16, "y": 16}).posterior
    whole = tree.tree.solve(np.eye(len(tree.mean)))
    rows = tree.representation.latents["u"].basis.rows({"x": a, "y": b})
    found = covariance(tree.exact, "u", {"x": a, "y": b}, True).values
    print(f"| tree, {len(tree.tree.boxes)} boxes | {len(tree.mean)} | {gap(found, rows @ whole @ rows.T):.1e} |")


def run_draws() -> None:
    """Correlations of 2,000 draws, each known to (1 - r^2) / 45."""
    print("\n| posterior | largest gap to 2,000 draws, in their standard errors | pairs |\n|---|---|---|")
    seen = ff.Observations(x=[0.2, 0.6], t=[0.3, 0.8], u=[0.5, -0.2], sigma=0.1)
    problem = rod().replace(conditions=[*rod().conditions, seen])
    cases = {"chain": (ff.solve(problem), {"x": [0.1, 0.5, 0.9], "t": [0.0, 0.5, 1.0]}),
             "tree": (ff.solve(plate(15), **TREE), {"x": [0.1, 0.5, 0.9], "y": [0.2, 0.5, 0.8]})}  # fmt: skip
    for title, (solution, axes) in cases.items():
        drawn = np.corrcoef(solution.sample(2000, seed=0, **axes).values.reshape(2000, -1).T)
        told = solution.correlation(**axes).values
        off = ~np.eye(len(told), dtype=bool)
        ratio = np.abs(drawn - told)[off] / ((1 - told[off] ** 2) / np.sqrt(2000))
        print(f"| {title} | {ratio.max():.1f} | {off.sum() // 2} |")


def run_far() -> None:
    print("\n| two points | solve, s | covariance, s | correlation |\n|---|---|---|---|")
    axes = {"x": [0.1, 0.9], "t": [0.002, 0.998]}
    long, spent = seconds(lambda: ff.solve(rod(), modes={"x": 20}, windows=np.linspace(0, 1, 201)))
    long.covariance(points=True, **axes)
    found, own = seconds(lambda: long.correlation(points=True, **axes))
    print(f"| chain of 200 windows, first and last | {spent:.2f} | {own:.3f} | {float(found[0, 1]):.4f} |")
    wide, spent = seconds(lambda: ff.solve(plate(15), method="tree", cells={"x": 256, "y": 256}))
    found, own = seconds(lambda: wide.correlation(points=True, x=[0.02, 0.98], y=[0.03, 0.97]))
    size = wide.posterior.representation.size
    print(f"| tree of {size} weights, opposite corners | {spent:.2f} | {own:.3f} | {float(found[0, 1]):.4f} |")


PARTS: dict[str, Sequence[Callable[[], None]]] = {
    "methods": (run_methods,), "next": (run_speed, run_promise, lambda: run_places(50), run_exhaustive),
    "covariance": (run_dense, run_draws, run_far),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["rank", *PARTS])
    parser.add_argument("--draws", type=int, default=60, help="data sets (rank)")
    parser.add_argument("--record", type=Path, default=Path("questions-rank.jsonl"), help="draws so far (rank)")
    parser.add_argument("--set", default="", help="one set of candidates only (rank)")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ff.AdviceWarning)
    if arguments.part == "rank":
        run_rank(arguments.draws, arguments.record, arguments.set)
    for run in PARTS.get(arguments.part, ()):
        run()


if __name__ == "__main__":
    main()
