"""`ff.solve(problem, method="forward")` against exact answers, rivals and its own bars, into results/map.md.

    python benchmarks/forward.py all
    python benchmarks/forward.py exact derivatives speed odes conductivity hyper cycles errors     # one or some
    FACTORFIELD_PROBDIFFEQ=DIR/bin/python python benchmarks/forward.py odes       # see rivals/environment.txt

Every section writes its part of the page and leaves the others. Times are processor time with one BLAS thread; imports
and one warm-up are left out, contenders alternate. `--draws N`, `--cycles N` and `--seeds N` make it shorter, and
`--page FILE` writes to another file.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"  # before NumPy starts its threads

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from scipy import linalg, stats  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "forward")]

from forward_problems import Known, forward_problems, inverse_problems  # noqa: E402
from rivals import cases, filters, fisher_kpp, flux, hare_lynx, odes, rod  # noqa: E402
from test_map import PROBLEMS, frozen, likely  # noqa: E402

import factorfield as ff  # noqa: E402
from exact_gaussian import HeatLine, Process, Readings, Targets  # noqa: E402
from factorfield.forward.algebra import Singular  # noqa: E402
from factorfield.forward.layout import Layout  # noqa: E402
from factorfield.forward.map import ForwardMap  # noqa: E402
from factorfield.forward.newton import NotConverged  # noqa: E402
from factorfield.forward.paths import values_at  # noqa: E402
from factorfield.inference.ladder import RUNGS, Ladder  # noqa: E402
from factorfield.inference.latents import Latents, latents_of  # noqa: E402
from factorfield.inference.solve import Search, infer  # noqa: E402
from factorfield.methods.forward import Forward  # noqa: E402

Array = NDArray[np.float64]
PAGE = ROOT / "benchmarks" / "results" / "map.md"
HEAD = """# The equation as a map: what it promised and what was measured

`python benchmarks/forward.py all` writes this page; every section stands beside its command. Times are processor time
with one BLAS thread on a machine of two processors that other studies share: they vary, ratios less. "sd" is the
posterior standard deviation. Bars are those of the issue that built this method.
"""


def solve(problem: ff.Problem, tolerance: float = 1e-5) -> ff.Solution:
    return ff.solve(problem, method="forward", tolerance=tolerance)


# -- the page


@dataclass
class Section:
    """Lines of markdown; bars that were met and missed."""

    name: str
    lines: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    bars: int = 0

    def say(self, *lines: str) -> None:
        self.lines += [*lines, ""]
        print("\n".join(lines), flush=True)

    def header(self, *cells: str) -> None:
        if self.lines and self.lines[-1]:
            self.lines.append("")
        self.row(*cells)
        self.lines.append("|---" * len(cells) + "|")

    def row(self, *cells: object) -> None:
        self.lines.append(f"| {' | '.join(map(str, cells))} |")
        print(self.lines[-1], flush=True)

    def bar(self, what: str, measured: object, bar: str, is_met: bool) -> None:
        self.bars += 1
        self.row(what, measured, bar, "met" if is_met else "**missed**")
        if not is_met:
            self.missed.append(what)


def write(section: Section, title: str, page: Path) -> None:
    """Puts a section in its place; the others stay as they are."""
    text = page.read_text(encoding="utf-8") if page.exists() else HEAD
    parts = {part.split(":", 1)[0]: part.strip() for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]}
    if section.missed:
        verdict = f"{len(section.missed)} of {section.bars} bars missed: {'; '.join(section.missed)}."
    else:
        verdict = f"All {section.bars} bars met."
    body = re.sub(r"\n{3,}", "\n\n", "\n".join(section.lines)).strip()
    command = f"    python benchmarks/forward.py {section.name}     # at commit {commit()}"
    parts[section.name] = f"{section.name}: {title}\n\n{command}\n\n{verdict}\n\n{body}"
    ordered = [parts[name] for name in SECTIONS if name in parts]
    temporary = page.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text("\n\n".join([HEAD.strip(), *(f"## {part}" for part in ordered)]) + "\n", encoding="utf-8")
    temporary.replace(page)


def commit() -> str:
    describe = ["git", "-C", str(ROOT), "describe", "--always", "--exclude", "*"]
    return subprocess.run(describe, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def clock(work: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.process_time()
    result = work()
    return result, time.process_time() - begin


def in_turn(contenders: Sequence[Callable[[], Any]], repeats: int) -> tuple[list[Any], list[float]]:
    """The last answer of each, and the median of its times; the first round is a warm-up."""
    seconds: list[list[float]] = [[] for _ in contenders]
    answers: list[Any] = [work() for work in contenders]
    for _ in range(repeats):
        for number, work in enumerate(contenders):
            answers[number], used = clock(work)
            seconds[number].append(used)
    return answers, [float(np.median(s)) for s in seconds]


def short(value: float) -> str:
    return f"{value:.2g}" if abs(value) < 100.0 else f"{value:.0f}"


# -- exact where it should be

BAR = HeatLine(
    diffusion=0.05, length=1.0, walls=("flux", "value"), start=Process(lambda x: 1.0 - x**2, 0.5, 0.25),
    flux=Process(1.0, 0.5, 0.2), end=1.0,
)  # fmt: skip


def bar_readings() -> Readings:
    """Sixty, of one draw of the start and the flux."""
    rng = np.random.default_rng(1)
    x, t = rng.uniform(0.0, 1.0, 60), np.sort(rng.uniform(0.02, 1.0, 60))
    mean, covariance = BAR.joint(Targets(x, t))
    root = np.linalg.cholesky(covariance + 0.05**2 * np.eye(60))
    return Readings(x, t, mean + root @ rng.standard_normal(60), 0.05)


def bar_problem(end: float, *parts: ff.Observations) -> ff.Problem:
    return ff.Problem(
        "u_t = 0.05*u_xx", {"x": ff.Interval(0, 1), "t": ff.Interval(0, end)},
        {"q": ff.Unknown(1.0, 0.5, over="t", length=0.2)},
        [
            ff.Initial("u = 1 - x**2", sigma=0.5, length=0.25), ff.Boundary("-u_x = q", at={"x": 0}),
            ff.Boundary("u = 0", at={"x": 1}), *parts,
        ],
    )  # fmt: skip


def observed(readings: Readings, chosen: Any = slice(None)) -> ff.Observations:
    x, t, u = (np.asarray(v)[chosen] for v in (readings.x, readings.t, readings.u))
    return ff.Observations(x=x, t=t, u=u, sigma=float(np.asarray(readings.sigma)))


def exact(page: Section, options: argparse.Namespace) -> None:
    page.say(
        "Heat on a line, u_t = 0.05 u_xx: the start 1 - x^2 +- 0.5 (length 0.25), the flux q(t) = 1 +- 0.5 (length 0.2)"
        " at x = 0, the value held at x = 1; 60 readings +- 0.05. Beside it a dense Gaussian process with the same"
        " kernels and an exact solution operator (tests/exact_gaussian.py). Tolerance 1e-7."
    )
    readings = bar_readings()
    x, t = (axis.ravel() for axis in np.meshgrid(np.linspace(0.05, 0.95, 10), np.linspace(0.05, 1.0, 7)))
    times = np.linspace(0.0, 1.0, 9)
    true = BAR.posterior(readings, Targets(x, t, times))
    solution, seconds = clock(lambda: solve(bar_problem(1.0, observed(readings)), 1e-7))
    seen = [
        solution.predict(x=x, t=t, points=True, numerical=False), solution.predict(of="q", t=times, numerical=False)
    ]
    mean, std = (np.concatenate([part[key].values for part in seen]) for key in ("mean", "std"))
    page.header("what", "largest deviation", "bar", "")
    off = float(np.max(np.abs(mean - true.mean) / true.std))
    page.bar("mean of u at 70 points and of q at 9 times, in sd", short(off), "1e-3", off <= 1e-3)
    off = float(np.max(np.abs(std / true.std - 1.0)))
    page.bar("their std, relative", short(off), "1e-3", off <= 1e-3)
    rows = slice(0, len(x))
    both = solution.covariance(of="u", x=x, t=t, points=True, numerical=False).values
    scaled = np.abs(both - true.covariance[rows, rows]) / np.outer(true.std[rows], true.std[rows])
    far = np.abs(x[:, None] - x) + np.abs(t[:, None] - t) > 0.8
    off = float(np.max(scaled[far]))
    page.bar(f"covariance of {far.sum() // 2} far pairs, over both std", short(off), "1e-3", off <= 1e-3)
    off = abs(float(solution.log_evidence) - true.log_evidence)
    page.bar("log evidence, nats", short(off), "1e-3", off <= 1e-3)
    draws(page, solution, readings)
    at_start(page, solution, readings)
    page.say("", f"Solved in {seconds:.2f} s: {solution.status}, {solution.settings['modes']} functions.")
    in_parts(page, readings)
    stated_start(page)


def draws(page: Section, solution: ff.Solution, readings: Readings, count: int = 2000) -> None:
    axes = {"x": np.array([0.05, 0.4, 0.8]), "t": np.array([0.05, 0.2, 0.5, 1.0])}  # closer ones: rounding decides
    x, t = (axis.ravel() for axis in np.meshgrid(axes["x"], axes["t"], indexing="ij"))
    true = BAR.posterior(readings, Targets(x, t))
    table = solution.sample(count, seed=0, **axes).transpose("sample", "x", "t").values.reshape(count, -1)
    white = linalg.solve_triangular(np.linalg.cholesky(true.covariance), (table - true.mean).T, lower=True)
    squares = np.sum(white**2, axis=0)
    law = stats.chi2(len(x))
    p, total = stats.kstest(squares, law.cdf).pvalue, stats.chi2(white.size).cdf(squares.sum())
    total = 2.0 * min(total, 1.0 - total)
    page.bar(
        f"{count} draws at {len(x)} points, whitened by the exact covariance: chi-squared of the sum, of single draws",
        f"p = {total:.2g}, {p:.2g}", "p >= 0.01", min(p, total) >= 0.01,
    )  # fmt: skip


def at_start(page: Section, solution: ff.Solution, readings: Readings) -> None:
    x = np.linspace(0.2, 0.6, 9)
    true = BAR.posterior(readings, Targets(x, np.zeros(9)))
    seen = solution.predict(x=x, t=[0.0], numerical=False)
    off = np.max(np.abs(seen["mean"].values.ravel() - true.mean) / true.std)
    ratio = np.max(np.abs(seen["std"].values.ravel() / true.std - 1.0))
    page.row("at t = 0 in the middle: mean in sd, std relative", f"{short(off)}, {short(ratio)}", "no bar", "")


def in_parts(page: Section, readings: Readings) -> None:
    """The same readings in two parts, four ways."""
    late = np.asarray(readings.t) >= 0.5
    first, second = observed(readings, ~late), observed(readings, late)
    whole, half, tolerance = bar_problem(1.0, first, second), bar_problem(0.5, first), 1e-9

    def seen(solution: ff.Solution) -> tuple[Array, Array]:
        """At the start first."""
        parts = [solution.predict(x=[0.1, 0.5, 0.9], t=[t], numerical=False) for t in (0.0, 0.2, 0.5, 0.7, 1.0)]
        parts.append(solution.predict(of="q", t=[0, 0.3, 0.5, 0.8, 1.0], numerical=False))
        mean, std = (np.concatenate([part[key].values.ravel() for part in parts]) for key in ("mean", "std"))
        return mean, std

    mean, std = seen(solve(whole, tolerance))
    begun = solve(half, tolerance)
    ways = {
        "condition": lambda: solve(bar_problem(1.0, first), tolerance).condition(second),
        "extend, then condition": lambda: begun.extend(1.0).condition(second),
        "update": lambda: begun.update(second, until=1.0),
    }
    page.say(
        "", "The readings in two parts, before and after t = 0.5, against all at once (tolerance 1e-9): the larger of"
        " the mean's deviation in sd and the std's relative one. Places at t = 0 stand apart: a start that does not fit"
        " the wall rings there, otherwise on every grid, and the grid of the first half is another one.",
    )  # fmt: skip
    page.header("way", "deviation", "bar", "")
    for name, way in ways.items():
        other, width = seen(way())
        off = np.maximum(np.abs(other - mean) / std, np.abs(width / std - 1.0))
        page.bar(f"{name}, t >= 0.2 and q", short(off[3:].max()), "1e-6", off[3:].max() <= 1e-6)
        page.bar(f"{name}, t = 0", short(off[:3].max()), "1e-6", off[:3].max() <= 1e-6)


def stated_start(page: Section) -> None:
    walls = [ff.Boundary("u = 20", at={"x": end}) for end in (0, 1)]
    start = ff.Initial("u = 20", sigma=2, length=0.25)
    useless = ff.Observations(x=0.5, t=1.0, u=20.001, sigma=0.5)
    stds = []
    for more in ([], [useless]):
        problem = ff.Problem(
            "u_t = u_xx", {"x": ff.Interval(0, 1), "t": ff.Interval(0, 1)}, {}, [start, *walls, *more]
        )
        stds.append(float(solve(problem).predict(x=[0.5], t=[0.0])["std"].values.item()))
    free = HeatLine(1.0, 1.0, level=20.0, start=Process(20.0, 2.0, 0.25)).joint(Targets([0.5], [0.0]))[1]
    page.say(
        "", "The start of FINDINGS, 20 +- 2 between walls at 20, without and with a useless reading. 1.96 is the std of"
        f" a start that knows the walls; of one that does not it is {np.sqrt(free.item()):.2f}, of which a projection"
        " onto functions that hold the walls leaves nearly all.",
    )  # fmt: skip
    page.header("std of the start in the middle", "without, with", "bar", "")
    page.bar("value", f"{stds[0]:.4f}, {stds[1]:.4f}", "1.96 +- 0.01", all(abs(std - 1.96) <= 0.01 for std in stds))
    page.bar("not changed by the reading, relative", short(abs(stds[1] / stds[0] - 1.0)), "1e-3",
             abs(stds[1] / stds[0] - 1.0) <= 1e-3)  # fmt: skip


# -- derivatives


def derivatives(page: Section, options: argparse.Namespace) -> None:
    page.say(
        "The maps of tests/forward/test_map.py at latents drawn around the mean; the largest deviation over the largest"
        " value. Tangents along four random directions against central differences (step 1e-4); adjoints of steady maps"
        " against tangents, and against the same differences."
    )
    page.header("map", "latents", "tangent - differences", "adjoint - tangent", "adjoint - differences", "bar", "")
    for name, problem in PROBLEMS.items():
        forward, latents = frozen(problem)
        e = likely(latents)
        path = forward.run(latents.coefficients(e))
        along = np.random.default_rng(1).standard_normal((latents.size, 4))
        tangent = forward.tangent(path, latents.directions(along))
        ends = [
            np.stack([forward.run(latents.coefficients(e + s * 1e-4 * v)).values for v in along.T], axis=-1)
            for s in (1.0, -1.0)
        ]
        differences = (ends[0] - ends[1]) / 2e-4
        worst = np.max(np.abs(tangent - differences)) / np.max(np.abs(differences))
        shown, is_met = ["-", "-"], worst <= 1e-6
        if path.is_steady:
            rng = np.random.default_rng(2)
            points = {
                axis: problem.domain[axis].lower + problem.domain[axis].length * rng.uniform(0.25, 0.75, 6)
                for axis in problem.domain.names
            }
            rows = np.vstack([path.rows(0, orders, points).toarray() for orders in ({}, {"x": 1})])
            by_adjoint = latents.gathered(forward.adjoint(path, rows), len(rows)).T @ along
            by_tangent, by_differences = rows @ tangent[0, 0], rows @ differences[0, 0]
            offs = [
                np.max(np.abs(by_adjoint - other)) / np.max(np.abs(other)) for other in (by_tangent, by_differences)
            ]  # fmt: skip
            shown, is_met = [short(off) for off in offs], is_met and offs[0] <= 1e-10 and offs[1] <= 1e-6
        page.bars += 1
        page.row(name, latents.size, short(worst), *shown, "1e-6, 1e-10, 1e-6", "met" if is_met else "**missed**")
        if not is_met:
            page.missed.append(name)


# -- speed against least squares by hand


@dataclass(frozen=True)
class Match:
    """A problem, its rival, and how their answers compare: largest shift in sd, ratios of std, evidence."""

    name: str
    problem: ff.Problem
    rival: Callable[[], Any]
    compare: Callable[[ff.Solution, Any], tuple[float, float, float]]


def of_rates(names: Sequence[str], rates: Callable[[Any], Sequence[Mapping[str, float]]]) -> Callable[..., Any]:
    def compare(solution: ff.Solution, answer: Any) -> tuple[float, float, float]:
        ours, theirs = [solution.parameters[name] for name in names], rates(answer)
        pairs = list(zip(ours, theirs, strict=True))
        shift = max(abs(one["mean"] - two["mean"]) / two["std"] for one, two in pairs)
        ratio = max((one["std"] / two["std"] for one, two in pairs), key=lambda r: abs(np.log(r)))
        return shift, ratio, float(solution.log_evidence) - answer.log_evidence

    return compare


def of_flux(case: cases.Flux) -> Callable[..., Any]:
    true = flux.exact(case)

    def compare(solution: ff.Solution, answer: Any) -> tuple[float, float, float]:
        seen = solution.predict(of="q", t=case.places)
        shift = float(np.max(np.abs(seen["mean"].values - true.mean) / true.std))
        ratio = max(seen["std"].values / true.std, key=lambda r: abs(np.log(r)))
        return shift, float(ratio), float(solution.log_evidence) - true.log_evidence

    return compare


def matches() -> list[Match]:
    hot, ring, animals, heated = cases.rod(), cases.fisher_kpp(stated=True), cases.hare_lynx(), cases.flux()
    rates = ("alpha", "beta", "gamma", "delta")
    by_rates = of_rates(rates, lambda answer: [answer.rates[name] for name in rates])
    return [
        Match("rod, alpha", hot.problem(), lambda: rod.fit(hot), of_rates(("alpha",), lambda a: [a.alpha])),
        Match("Fisher-KPP, two rates", ring.problem(), lambda: fisher_kpp.fit(ring),
              of_rates(("nu", "rho"), lambda a: [a.nu, a.rho])),
        Match("hare-lynx, rival from the published rates", animals.problem(),
              lambda: hare_lynx.fit(animals, "good"), by_rates),
        Match("hare-lynx, rival from the prior", animals.problem(), lambda: hare_lynx.fit(animals, "prior"), by_rates),
        Match("flux q(t), rival on 41 nodes", heated.problem(), lambda: flux.fit(heated), of_flux(heated)),
        Match("flux q(t), rival on 161 nodes", heated.problem(), lambda: flux.fit(heated, 161), of_flux(heated)),
    ]  # fmt: skip


def speed(page: Section, options: argparse.Namespace) -> None:
    page.say(
        "Against SciPy written by hand (benchmarks/rivals) with the same priors and sigmas, at the default tolerance,"
        " 1e-5. Medians of seven runs in turn. We always begin at the prior mean. The agreement is of rates with the"
        " rival's; of q(t) with the exact one. The rival's q is 0.2 sd off on 41 nodes, 0.01 sd on 161."
    )
    page.header(
        "problem", "ours, s", "rival, s", "ratio", "means differ, sd", "std ratio", "evidence, nats", "bar", ""
    )
    for match in matches():
        answers, seconds = in_turn([lambda m=match: solve(m.problem), match.rival], 7)
        ratio = seconds[0] / seconds[1]
        shift, width, evidence = match.compare(*answers)
        is_met = ratio <= 3.0 or seconds[0] <= 0.3
        page.bars += 1
        page.row(
            match.name, f"{seconds[0]:.3f}", f"{seconds[1]:.4f}", short(ratio), short(shift), f"{width:.3f}",
            f"{evidence:+.2g}", "3x or 0.3 s", "met" if is_met else "**missed**",
        )  # fmt: skip
        if not is_met:
            page.missed.append(match.name)


# -- ordinary differential equations


def scipy_runs(case: cases.Ode) -> list[odes.Run]:
    runs = []
    for method in ("Radau", "LSODA", "BDF") if case.stiff else ("DOP853", "RK45", "LSODA"):
        for power in range(3, 13):
            try:
                runs.append(odes.by_scipy(case, method, 10.0**-power, 1))
            except ArithmeticError:  # a tolerance that the method cannot reach
                continue
    return runs


def fastest(runs: Sequence[odes.Run], error: float) -> odes.Run | None:
    good = [run for run in runs if run.error <= error]
    return min(good, key=lambda run: run.seconds) if good else None


def solved_at(case: cases.Ode, problem: ff.Problem, tolerance: float) -> tuple[ff.Solution, Array]:
    solution = solve(problem, tolerance)
    means = [solution.predict(of=name, t=case.times)["mean"].values for name in case.fields]
    return solution, np.stack(means)


def against_scipy(case: cases.Ode, run: odes.Run, ours: Callable[[], Any]) -> tuple[float, str, float, float]:
    """Our time, the rival's name and time, and the ratio, from runs in turn."""
    _, seconds = in_turn([ours, lambda: odes.solved(case, run.method, run.rtol)], 5)
    return seconds[0], f"{run.method} {run.rtol:.0e}", seconds[1], seconds[0] / seconds[1]


def ode_seconds(page: Section, options: argparse.Namespace) -> None:
    page.say(
        "Solving and predicting at 41 times, against the fastest run that errs no more. SciPy: DOP853, RK45,"
        " LSODA, or Radau, LSODA, BDF with the Jacobian where it is stiff, tolerances 1e-3 to 1e-12, in turn with ours."
        " probdiffeq (a filter, compiled beforehand): tolerances 1e-3, 1e-5, 1e-7, 1e-9. Errors are the largest at"
        " those times over the field's largest value. 3 std: share of these points where the error is no more."
    )
    page.header(
        "problem", "tolerance", "error", "3 std", "ours, s", "best SciPy", "s", "ratio", "best probdiffeq", "s",
        "ratio", "bar", "",
    )  # fmt: skip
    for case in cases.odes():
        runs = scipy_runs(case)
        probed = [odes.by_probdiffeq(case, rtol) for rtol in (1e-3, 1e-5, 1e-7, 1e-9)]
        probable = [run for run in probed if isinstance(run, odes.Run) and np.isfinite(run.error)]
        for tolerance in (1e-3, 1e-5, 1e-8):
            page.bars += 1
            try:
                cells, is_met = ode_row(case, tolerance, runs, probable)
            except (NotConverged, Singular) as reason:
                cells, is_met = [f"no answer: {reason}", *["-"] * 8], False
            page.row(
                case.name, f"{tolerance:.0e}", *cells, "5x or 0.2 s", "met" if is_met else "**missed**",
            )  # fmt: skip
            if not is_met:
                page.missed.append(f"{case.name} at {tolerance:.0e}")
    skipped = [run for run in probed if isinstance(run, str)]
    if skipped:
        page.say("", skipped[0] + ".")


def ode_row(
    case: cases.Ode, tolerance: float, runs: Sequence[odes.Run], probable: Sequence[odes.Run]
) -> tuple[list[str], bool]:
    """Cells of the table, and is the bar met?"""
    problem, truth = case.problem(), odes.reference(case.name)
    solution, means = solved_at(case, problem, tolerance)
    stds = np.stack([solution.predict(of=name, t=case.times)["std"].values for name in case.fields])
    missed = np.abs(means - truth)
    error, held = float(np.max(missed / odes.scale(truth))), np.mean(missed <= 3.0 * stds + 1e-12)
    run, other = fastest(runs, error), fastest(probable, error)
    work = lambda: solved_at(case, problem, tolerance)  # noqa: E731
    cells, ratios = [short(error), f"{held:.2f}"], []
    if run is None:
        seconds = in_turn([work], 5)[1][0]
        cells += [f"{seconds:.3f}", "none so exact", "-", "-"]
    else:
        seconds, name, theirs, ratio = against_scipy(case, run, work)
        cells += [f"{seconds:.3f}", name, f"{theirs:.4f}", short(ratio)]
        ratios.append(ratio)
    if other is None:
        cells += ["none so exact" if probable else "not run", "-", "-"]
    else:
        ratios.append(seconds / other.seconds)
        cells += [f"{other.rtol:.0e}", f"{other.seconds:.4f}", short(ratios[-1])]
    return cells, seconds <= 0.2 or not ratios or max(ratios) <= 5.0


# -- conductivity of a plane, and its size and length

WALLS = {
    "square": [
        ff.Boundary("u_x = 0", at={"x": 0}), ff.Boundary("u_x = 0", at={"x": 1}), ff.Boundary("u = 0", at={"y": 0}),
        ff.Boundary("u = 1", at={"y": 1}),
    ],
    "cut disk": [ff.Boundary("u = y")],
}  # fmt: skip
REGIONS = {"square": None, "cut disk": ff.Region("(x - 0.5)**2 + (y - 0.5)**2 < 0.23")}
EQUATIONS = {"m": "u_xx + u_yy + m_x*u_x + m_y*u_y = 0", "k": "k*(u_xx + u_yy) + k_x*u_x + k_y*u_y = 0"}


def conduction(place: str, unknown: Mapping[str, ff.Unknown], *more: ff.Observations) -> ff.Problem:
    (name,) = unknown
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}
    return ff.Problem(EQUATIONS[name], domain, dict(unknown), [*WALLS[place], *more], region=REGIONS[place])


@dataclass(frozen=True)
class Drawn:
    """A truth of the prior with its readings."""

    problem: ff.Problem
    e: Array
    latents: Latents


def drawn(place: str, unknown: Mapping[str, ff.Unknown], latents: Latents, seed: int, count: int = 50) -> Drawn:
    """Latents from the prior; the field on a finer grid than is solved on; 50 sensors with 1 % noise."""
    problem = conduction(place, unknown)
    rng = np.random.default_rng(seed)
    e = rng.standard_normal(latents.size)
    ladder = Ladder(Layout.of(problem), latents, 1e-4)
    path = ForwardMap(ladder.discrete(4), np.empty(0)).run(latents.coefficients(e))
    points = {"x": rng.uniform(0.1, 0.9, 10 * count), "y": rng.uniform(0.1, 0.5, 10 * count)}
    inside = np.ones(10 * count, bool) if problem.shape is None else problem.shape.contains(points)
    points = {axis: x[inside][:count] for axis, x in points.items()}
    u = values_at(ladder.values[0], path, points, latents.inputs)
    sigma = 0.01 * float(np.max(np.abs(u)))
    readings = ff.Observations(**points, u=u + sigma * rng.standard_normal(count), sigma=sigma)
    return Drawn(conduction(place, unknown, readings), e, latents)


def whitened(solution: ff.Solution, e: Array) -> tuple[float, float]:
    """Chi-squared p-values of L^-1 (e - mean): of all latents, and of the directions that readings inform."""
    belief = solution.posterior.segments[-1].fit.belief
    off = e - belief.mean
    along = belief.vectors.T @ off
    informed = along / (1.0 - belief.shares)
    squares = off @ off - along @ along + informed @ informed
    return float(stats.chi2.sf(squares, len(e))), float(stats.chi2.sf(informed @ informed, len(informed)))


def seen_at(truth: Drawn, axis: Array) -> tuple[dict[str, Array], Array]:
    """Places of a grid inside, and the true m there."""
    x, y = (table.ravel() for table in np.meshgrid(axis, axis, indexing="ij"))
    inside = np.ones(len(x), bool) if truth.problem.shape is None else truth.problem.shape.contains({"x": x, "y": y})
    points = {"x": x[inside], "y": y[inside]}
    coefficients = truth.latents.coefficients(truth.e)["m"]
    return points, truth.latents.inputs["m"].values(coefficients, points, np.zeros(1), ()).ravel()


def covered(solution: ff.Solution, truth: Drawn) -> float:
    """Share of a grid where the 90 % interval of m holds it."""
    points, m = seen_at(truth, np.linspace(0.03, 0.97, 15))
    seen = solution.predict(of="m", points=True, **points)
    return float(np.mean(np.abs(seen["mean"].values - m) <= 1.645 * seen["std"].values))


def whitened_field(solution: ff.Solution, truth: Drawn) -> float:
    """Chi-squared p-value of m at nine points together."""
    points, m = seen_at(truth, np.array([0.25, 0.5, 0.75]))
    root = np.linalg.cholesky(solution.covariance(of="m", points=True, **points).values)
    mean = solution.predict(of="m", points=True, **points)["mean"].values
    return float(stats.chi2.sf(np.sum(linalg.solve_triangular(root, m - mean, lower=True) ** 2), len(m)))


def bent(solution: ff.Solution, e: Array) -> tuple[float, float]:
    """From the mode to the truth, in units of sigma: how far readings move as the tangent says, and in truth."""
    fitted = solution.posterior.segments[-1].fit
    moved = fitted.task.at(e).residual - fitted.point.residual
    return float(np.linalg.norm(fitted.slopes @ (e - fitted.point.e))), float(np.linalg.norm(moved))


def conductivity(page: Section, options: argparse.Namespace) -> None:
    page.say(
        "div(exp(m) grad u) = 0, written u_xx + u_yy + m_x u_x + m_y u_y = 0; m is 0 +- 1 with a length of 0.25. Unit"
        " square: u_x = 0 at the sides, u = 0 and 1 at bottom and top. Disk cut from the same grid: u = y at the wall."
        " 50 sensors in [0.1, 0.9] x [0.1, 0.5], noise 1 % of the largest value. Truths are draws of the prior,"
        " the readings from a finer grid; tolerance 1e-4. p is that of a chi-squared test of whitened errors; KS tests"
        " whether the p of all draws are uniform."
    )
    for place, size in (("square", 1.0), ("cut disk", 1.0), ("square", 0.1)):
        unknown = {"m": ff.Unknown(0.0, size, over=("x", "y"), length=0.25)}
        latents = Latents(latents_of(Layout.of(conduction(place, unknown))))
        rows = []
        solve(drawn(place, unknown, latents, 1000).problem, 1e-4)  # a warm-up
        for seed in range(options.draws):
            truth = drawn(place, unknown, latents, seed)
            solution, seconds = clock(lambda t=truth: solve(t.problem, 1e-4))
            trace = solution.trace
            rows.append((
                solution.status == "converged", seconds, *whitened(solution, truth.e), whitened_field(solution, truth),
                covered(solution, truth), trace["forward runs"], trace["steps"], trace["adjoint solves"],
                *bent(solution, truth.e),
            ))  # fmt: skip
            print(place, seed, solution.status, solution.settings["modes"], *(short(v) for v in rows[-1]), flush=True)
        name = f"{place}, {latents.size} latents" + (f", m is 0 +- {size:g} (a control)" if size != 1.0 else "")
        summary(page, name, np.array(rows, float), solution)
    page.say(
        "", "Where KS fails, the posterior at the mode is Gaussian and the true one is not: the tangent says that"
        " readings move much further from the mode to the truth than they do. The control is nearly linear.",
    )  # fmt: skip


def summary(page: Section, name: str, rows: Array, solution: ff.Solution) -> None:
    done, seconds, p, informed, at_points, coverage, runs, steps, adjoints, straight, true = rows.T
    count = len(rows)
    shown = " x ".join(map(str, solution.settings["modes"].values()))
    page.header(f"**{name}**; {shown} functions in the last draw", "measured", "bar", "")
    page.bar(f"{name}: converged", f"{int(done.sum())} of {count}", "all", bool(done.all()))
    page.bar(f"{name}: seconds a draw, the slowest (median)", f"{seconds.max():.2f} ({np.median(seconds):.2f})", "3",
             bool(seconds.max() <= 3.0))  # fmt: skip
    for what, values in (("all latents", p), ("the 50 directions that readings inform", informed)):
        uniform = float(stats.kstest(values, "uniform").pvalue)
        page.bar(f"{name}: KS, {what}", f"p = {uniform:.2g}; smallest p of a draw {values.min():.2g}", "p >= 0.01",
                 uniform >= 0.01)  # fmt: skip
    uniform = float(stats.kstest(at_points, "uniform").pvalue)
    page.row("KS, m at nine points", f"p = {uniform:.2g}; smallest p of a draw {at_points.min():.2g}", "", "")
    page.row("90 % intervals of m at points hold", f"{100.0 * coverage.mean():.1f} %", "90 %", "")
    page.row("readings move from mode to truth, in sigma: by the tangent, in truth (median)",
             f"{np.median(straight):.1f}, {np.median(true):.1f}", "", "")  # fmt: skip
    page.row("forward runs, steps, adjoint solves a draw (median)",
             f"{np.median(runs):.0f}, {np.median(steps):.0f}, {np.median(adjoints):.0f}", "", "")  # fmt: skip


def hyper(page: Section, options: argparse.Namespace) -> None:
    page.say(
        "The same square with size and length unknown: div(k grad u) = 0, `k = ff.Unknown(1.0, None, positive=True,"
        " over=('x', 'y'))`. Truths: log k with size 1 and a length of 0.25, 50 readings as above, tolerance 1e-4."
        " How many 90 % intervals hold the truth."
    )
    unknown = {"k": ff.Unknown(1.0, None, positive=True, over=("x", "y"))}
    (part,) = latents_of(Layout.of(conduction("square", unknown)))
    latents = Latents((part.with_prior(1.0, 0.25),))
    truths, rows = {"std": 1.0, "length": 0.25}, []
    for seed in range(options.draws):
        truth = drawn("square", unknown, latents, seed)
        solution, seconds = clock(lambda t=truth: solve(t.problem, 1e-4))
        seen = solution.hyperparameters["k"]
        holds = [seen[kind]["interval"][0] <= true <= seen[kind]["interval"][1] for kind, true in truths.items()]
        rows.append((*holds, seconds, seen["std"]["mean"], seen["length"]["mean"], solution.status == "converged"))
        print(seed, solution.status, {kind: np.round(e["interval"], 3) for kind, e in seen.items()}, f"{seconds:.2f} s",
              flush=True)  # fmt: skip
    table = np.array(rows, float)
    count, least = len(table), int(np.floor(0.7 * len(table)))
    page.header("what", "measured", "bar", "")
    for number, kind in enumerate(truths):
        held = int(table[:, number].sum())
        page.bar(f"intervals of the {'size' if kind == 'std' else kind} that hold it", f"{held} of {count}",
                 f"{least} to {count}", held >= least)  # fmt: skip
    page.row("means of size, of length (median of draws)",
             f"{np.median(table[:, 3]):.2f}, {np.median(table[:, 4]):.3f}", "1, 0.25", "")  # fmt: skip
    page.row("converged", f"{int(table[:, 5].sum())} of {count}", "", "")
    page.row("seconds a draw, the slowest (median)", f"{table[:, 2].max():.1f} ({np.median(table[:, 2]):.1f})", "", "")


# -- cycles


def cycled(case: cases.KuramotoSivashinsky, count: int) -> tuple[Array, Array, Array, ff.Solution]:
    """Means and std (cycles, points) and seconds of every cycle, the prediction included."""
    ring = case.length
    table = ff.Table(x=np.append(case.x, ring), value=np.append(case.start, case.start[0]))
    start = ff.Initial("u = f", sigma=case.start_sigma, length=2.0 * ring / len(case.x))
    domain = {"x": ff.Periodic(0, ring), "t": ff.Interval(0, 1.0)}
    equation = "u_t + u*u_x + u_xx + u_xxxx = 0"
    problem = ff.Problem(equation, domain, {"f": table}, [start, case.observations(0)])
    means, stds, seconds = [], [], []
    solution: Any = None
    for cycle in range(count):
        begin = time.process_time()
        if solution is None:
            solution = solve(problem, 1e-3)
        else:
            solution = solution.update(case.observations(cycle), until=cycle + 1.0)
        seen = solution.predict(x=case.x, t=[cycle + 1.0])
        seconds.append(time.process_time() - begin)
        means.append(seen["mean"].values.ravel())
        stds.append(seen["std"].values.ravel())
    return np.array(means), np.array(stds), np.array(seconds), solution


def cycles(page: Section, options: argparse.Namespace) -> None:
    page.say(
        f"Kuramoto-Sivashinsky on a ring of 32 pi, all 128 points read each time unit, +- 1; {options.cycles} cycles by"
        " `solution.update(readings, until=t)`, tolerance 1e-3. The start is the filters': the same mean, off by 0.032;"
        " ours is smooth over two points, theirs independent from point to point. Filters:"
        " benchmarks/rivals/filters.py, tuned sizes, in the same run on the same data."
    )
    page.header(
        "seed", "ours: RMSE of cycles 21 on", "std", "LETKF", "EnKF-Sqrt", "s a cycle", "last ten over first ten",
        "slowest, s", "EnKF, s a cycle", "bar", "",
    )  # fmt: skip
    for seed in range(options.seeds):
        case = cases.kuramoto_sivashinsky(options.cycles, seed)
        means, stds, seconds, solution = cycled(case, options.cycles)
        local, root = filters.letkf(case), filters.enkf_sqrt(case)
        later = seconds[1:]
        rmse, growth = case.rmse(means), float(np.median(later[-10:]) / np.median(later[:10]))
        is_met = rmse <= 0.13 and growth <= 1.2 and np.median(later) <= 1.0
        page.bars += 1
        page.row(
            seed, f"{rmse:.4f}", f"{np.sqrt(np.mean(stds[20:] ** 2)):.4f}", f"{local.rmse:.4f}", f"{root.rmse:.4f}",
            f"{np.median(later):.2f}", f"{growth:.2f}", f"{later.max():.2f}", f"{np.median(root.seconds):.3f}",
            "0.13, 1.2x, 1 s", "met" if is_met else "**missed**",
        )  # fmt: skip
        if not is_met:
            page.missed.append(f"seed {seed}")
    page.say("", f"The last status was {solution.status}, {solution.settings['modes']} functions. The first ten begin "
             "with the first update.")  # fmt: skip


# -- the estimate of the numerical error

TOLERANCES = (1e-3, 1e-5, 1e-8)
ROUNDING = 1e-12  # of a field's size: errors as small are not the estimate's matter
SMALL = 1e-3  # of the posterior std: Gauss-Newton ends there
Seen = dict[str, tuple[Array, Array, Array]]  # by quantity: values, std of the numerical error, std of the rest


def quantities(problem: ff.Problem, points: dict[str, Array]) -> dict[str, dict[str, Array]]:
    """Fields and functions at the points, and numbers, each with the places where it is read."""
    result = {name: points for name in problem.fields}
    for name, unknown in problem.functions.items():
        if isinstance(unknown, ff.Unknown):
            table = np.unique(np.stack([points[axis] for axis in unknown.over]), axis=1)
            result[name] = {**{a: np.repeat(x[:1], table.shape[1]) for a, x in points.items()},
                            **dict(zip(unknown.over, table, strict=True))}  # fmt: skip
    return {**result, **{name: {a: x[:1] for a, x in points.items()} for name in problem.unknowns}}


def seen_by(solution: ff.Solution, places: Mapping[str, dict[str, Array]]) -> Seen:
    """Values at the posterior mean; the numerical part of the std by itself: a difference of two std rounds it off."""
    posterior, result = solution.posterior, {}
    for name, points in places.items():
        values, spread, errors, _ = posterior._rows(posterior._relation(name), points)
        result[name] = values, np.linalg.norm(errors, axis=1), np.linalg.norm(spread, axis=1)
    return result


def finest(problem: ff.Problem) -> ff.Solution:
    """At 1e-10, also where the error is far below the posterior std, at which the default stops."""
    rungs = replace(RUNGS, beside_std=0.0)
    return Forward(1e-10).solution(infer(problem, Search(tolerance=1e-10), rungs), {})


def judged(seen: Seen, truth: Mapping[str, Array]) -> tuple[float, float, float, float]:
    """Share of points where the error is at most three std; rms std over rms error; largest error over half ranges; and
    the share where it is that small or below a thousandth of the posterior std."""
    held, small, stds, errors = [], [], [], []
    for name, (values, std, rest) in seen.items():
        size = max(0.5 * float(np.ptp(truth[name])), 1e-3 * float(np.max(np.abs(truth[name]))))
        errors.append(np.abs(values - truth[name]) / size)
        stds.append(std / size)
        held.append(errors[-1] <= 3.0 * stds[-1] + ROUNDING)
        small.append(held[-1] | (errors[-1] <= SMALL * rest / size))
    error, std = np.concatenate(errors), np.concatenate(stds)
    floor = max(float(np.sqrt(np.mean(error**2))), ROUNDING)
    shares = (float(np.mean(np.concatenate(part))) for part in (held, small))
    return next(shares), float(np.sqrt(np.mean(std**2))) / floor, float(np.max(error)), next(shares)


def checked(page: Section, title: str, problems: Mapping[str, Known]) -> tuple[list[tuple[float, ...]], Array]:
    """Of every problem and tolerance: share, ratio and error; and seconds (problems, tolerances)."""
    page.say("", f"{title}. Cells: largest error; share of points with it <= 3 std; rms std over rms error; seconds.")
    page.header("problem", "truth", *(f"tolerance {tolerance:.0e}" for tolerance in TOLERANCES))
    results, seconds = [], []
    for name, known in problems.items():
        places = quantities(known.problem, known.points)
        if known.truth is None:
            reference = finest(known.problem)
            truth = {key: parts[0] for key, parts in seen_by(reference, places).items()}
        else:
            truth = {key: known.truth(key, at) for key, at in places.items() if key in known.problem.fields}
            places = {key: places[key] for key in truth}
        cells, used = [], []
        for tolerance in TOLERANCES:
            try:
                (solution,), (once,) = in_turn([lambda p=known.problem, tol=tolerance: solve(p, tol)], 3)
            except (NotConverged, Singular) as reason:
                results.append((0.0, np.nan, np.nan, 0.0))
                used.append(np.nan)
                cells.append(f"no answer: {reason}")
                continue
            used.append(once)
            share, ratio, error, small = judged(seen_by(solution, places), truth)
            results.append((share, ratio, error, small))
            status = "" if solution.status == "converged" else f" ({solution.status})"
            cells.append(f"{short(error)}; {share:.3f}; {short(ratio)}; {used[-1]:.3f}{status}")
        seconds.append(used)
        page.row(name, known.source, *cells)
    return results, np.array(seconds)


def errors(page: Section, options: argparse.Namespace) -> None:
    page.say(
        "Does the std hold the numerical error, and is it no lie in the other direction? Errors are relative to half"
        " the range of each quantity, the largest over all points. For inverse problems the error is that of the"
        " posterior mean of fields, functions and numbers, and the std the numerical part alone; they end where the"
        " error is a tenth of the posterior std, so that tolerances matter less. Places are after t = 0: there our own"
        " answer at 1e-10 is no truth where an uncertain start does not fit the walls."
    )
    groups = {
        "forward": checked(page, "Forward", forward_problems()), "inverse": checked(page, "Inverse", inverse_problems())
    }
    page.header("what", "measured", "bar", "")
    for name, (results, seconds) in groups.items():
        table = np.array(results)
        share, loosest = float(np.mean(table[:, 0])), float(np.nanmax(table[:, 1]))
        failed = int(np.sum(np.isnan(table[:, 1])))
        page.bar(f"{name}: an answer at every tolerance", f"{len(table) - failed} of {len(table)}", "all", failed == 0)
        page.bar(f"{name}: points with error <= 3 std, mean (least of a problem)",
                 f"{share:.3f} ({table[:, 0].min():.3f})", "0.95", share >= 0.95)  # fmt: skip
        if name == "inverse":
            page.row("the same, or the error is below 1e-3 posterior std: where Gauss-Newton ends",
                     f"{table[:, 3].mean():.3f} ({table[:, 3].min():.3f})", "", "")  # fmt: skip
        median, over = float(np.nanmedian(table[:, 1])), int(np.sum(table[:, 1] > 10.0))
        page.bar(f"{name}: rms std over rms error, largest (median; cells above 10)",
                 f"{short(loosest)} ({short(median)}; {over} of {len(table) - failed})", "10",
                 loosest <= 10.0)  # fmt: skip
        seconds = seconds[~np.isnan(seconds).any(axis=1)]
        ratio, single = seconds[:, 0].sum() / seconds[:, 2].sum(), float(np.median(seconds[:, 0] / seconds[:, 2]))
        page.bar(f"{name}: time at 1e-3 over that at 1e-8, of sums (median)", f"{ratio:.2f} ({single:.2f})", "0.3",
                 ratio <= 0.3)  # fmt: skip


SECTIONS: dict[str, tuple[str, Callable[[Section, argparse.Namespace], None]]] = {
    "exact": ("a dense Gaussian process beside it", exact),
    "derivatives": ("tangents, adjoints, differences", derivatives),
    "speed": ("least squares by hand", speed),
    "odes": ("SciPy and probdiffeq at equal error", ode_seconds),
    "conductivity": ("k(x, y) from 50 readings", conductivity),
    "hyper": ("its size and length", hyper),
    "cycles": ("a chaotic field, cycle by cycle", cycles),
    "errors": ("the estimate of the numerical error", errors),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="+", choices=[*SECTIONS, "all"], metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--cycles", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ff.AdviceWarning)
    for name in SECTIONS if "all" in options.sections else options.sections:
        title, work = SECTIONS[name]
        section = Section(name)
        work(section, options)
        write(section, title, options.page)


if __name__ == "__main__":
    main()
