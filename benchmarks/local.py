"""Local fields: exact messages on a tree of boxes, against dense algebra's cost, a sparse factorisation and truth.

    python benchmarks/local.py poisson [--cells 64,128,256] [--degree 5]    error, seconds and memory of 2-D Poisson
    python benchmarks/local.py splu [--cells 128]                           against SciPy's splu of the same precision
    python benchmarks/local.py space [--cells 16,24,32]                     3-D Poisson with every std, share of dgemm
    python benchmarks/local.py nonlinear [--cells 200]                      -Laplace u + u^3 = f, 600 modes
    python benchmarks/local.py gallery [--problems heat,wave]               worked problems, a tree over space and time
    python benchmarks/local.py fronts [--problems shock,front]              cells that follow a front, chosen by chain
    python benchmarks/local.py plane [--cells 16,24,32]                     a front across a plane, and by default
    python benchmarks/local.py moved                                        a region with time, walls of all kinds
    python benchmarks/local.py against --source EARLIER/src                 fisher-kpp-2d, in turn with another version

Seconds are the processor's, which other work on the machine does not change much; with one BLAS thread they are those
of a clock on an idle machine. `solve` is one elimination and the mean, the model's construction is told beside it.
`splu` alternates the contenders, one thread, medians of three.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

import factorfield as ff
from factorfield.methods.tree.search import Found, eliminated, linearised, search
from factorfield.model.tree import TreeModel
from factorfield.posterior.boxes import BoxesPosterior

WIDTH = 0.1  # of the narrow Gaussian


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, of all threads."""
    begin = time.process_time()
    result = action()
    return time.process_time() - begin, result


def memory() -> float:
    """Peak so far, GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def walls(text: str, axes: str) -> list[Any]:
    return [ff.Boundary(text, at={axis: end}) for axis in axes for end in (0, 1)]


def bump(x: Any, y: Any) -> Any:
    return np.exp(-((x - 0.4) ** 2 + (y - 0.6) ** 2) / (2 * WIDTH**2))


def plane(readings: int = 0) -> ff.Problem:
    """sin 3 pi x sin 2 pi y and a narrow Gaussian."""
    gauss = "exp(-((x - 0.4)**2 + (y - 0.6)**2)/(2*w**2))"
    source = f"-13*pi**2*sin(3*pi*x)*sin(2*pi*y) + (((x - 0.4)**2 + (y - 0.6)**2)/w**4 - 2/w**2)*{gauss}"
    conditions = walls(f"u = {gauss}", "xy")
    if readings:
        rng = np.random.default_rng(0)
        x, y = rng.uniform(0.0, 1.0, (2, readings))
        u = truth(x, y) + 0.01 * rng.standard_normal(readings)
        conditions.append(ff.Observations(x=x, y=y, u=u, sigma=0.01))
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}
    return ff.Problem(f"u_xx + u_yy = {source}", domain, {"w": WIDTH}, conditions)


def truth(x: Any, y: Any) -> Any:
    return np.sin(3 * np.pi * x) * np.sin(2 * np.pi * y) + bump(x, y)


def local_model(problem: ff.Problem, cells: int, degree: int) -> TreeModel:
    model = ff.default_model(problem, method="tree", cells=dict.fromkeys(problem.domain.names, cells), degree=degree)
    assert isinstance(model, TreeModel)
    return model


def posterior_of(model: TreeModel, found: Found) -> BoxesPosterior:
    return BoxesPosterior(model.problem, model.representation, model.noise, found.weights, found.tree)


def error_of(model: TreeModel, weights: Any, exact: Callable[..., Any], points: int = 101) -> float:
    """Relative L2 error on a grid."""
    axes = [np.linspace(axis.lower, axis.upper, points) for axis in model.problem.domain.values()]
    field = weights[: np.prod([spline.size for spline in model.splines.values()])]
    field = field.reshape([spline.size for spline in model.splines.values()])
    for spline, x in zip(model.splines.values(), axes, strict=True):
        field = np.tensordot(field, spline(x), axes=(0, 1))
    wanted = exact(*np.meshgrid(*axes, indexing="ij"))
    return float(np.sqrt(np.mean((field - wanted) ** 2) / np.mean(wanted**2)))


def largest_front(model: TreeModel) -> int:
    return max(len(box.front) for box in model.boxes)


def poisson(cells: list[int], degree: int) -> None:
    print(f"2-D Poisson, degree {degree}, {os.environ['OPENBLAS_NUM_THREADS']} BLAS thread(s)")
    print(
        "| cells | weights | relative L2 | model s | solve s | all marginals s | largest front | distinct boxes | GiB |"
    )
    for count in cells:
        build, model = timed(lambda n=count: local_model(plane(), n, degree))
        solve, found = timed(lambda m=model: search(m, 1, None))
        spread, _ = timed(lambda m=model, f=found: posterior_of(m, f).weight_std)
        distinct = len({id(c) for c in found.tree.conditionals if c is not None})
        of = sum(c is not None for c in found.tree.conditionals)
        error = error_of(model, found.weights, truth)
        print(
            f"| {count}^2 | {model.size} | {error:.1e} | {build:.1f} | {solve:.2f} | {spread:.2f} | "
            f"{largest_front(model)} | {distinct} of {of} | {memory():.2f} |",
            flush=True,
        )
        print(f"  smallest reciprocal condition of a front {found.tree.rcond:.1e}, QR taken: {found.square_root}")


def precision_of(model: TreeModel) -> sparse.csc_matrix:
    """The same information matrix, sparse."""
    lines = linearised(model, model.prior_mean)
    parts = []
    for group, rows in zip(model.groups, lines.rows, strict=True):
        at = np.repeat(np.arange(group.count), group.all_columns.shape[1])
        shape = (group.count, model.size)
        parts.append(sparse.csr_matrix((rows.ravel(), (at, group.all_columns.ravel())), shape=shape))
    stacked = sparse.vstack(parts)
    (prior,) = model.priors
    along = [sparse.csr_matrix(np.triu(np.tril(p, model.degree), -model.degree)) for p in prior._precisions]
    return (stacked.T @ stacked + sparse.kron(along[0], along[1])).tocsc()


def symmetric_splu(matrix: sparse.csc_matrix) -> Any:
    """Its fastest way with a positive matrix: minimum degree, no pivoting."""
    return splu(matrix, "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})


def against_splu(cells: int, degree: int) -> None:
    print(f"solve with all marginals against splu's factorisation alone, {cells}^2 cells, degree {degree}, one thread")
    for readings in (0, 500):
        model = local_model(plane(readings), cells, degree)
        lines = linearised(model, model.prior_mean)
        matrix = precision_of(model)
        ours, theirs, every = [], [], []
        for _ in range(3):

            def exact(model: TreeModel = model) -> Any:
                return posterior_of(model, search(model, 1, None)).weight_std

            ours.append(timed(exact)[0])
            theirs.append(timed(lambda m=matrix: symmetric_splu(m))[0])
            every.append(timed(lambda m=model, li=lines: eliminated(m, li, False))[0])
        ratio = statistics.median(ours) / statistics.median(theirs)
        print(
            f"  {readings} readings: solve and marginals {statistics.median(ours):.2f} s (elimination "
            f"{statistics.median(every):.2f} s), splu {statistics.median(theirs):.2f} s, ratio {ratio:.2f}",
            flush=True,
        )


def dgemm_rate() -> float:
    """Operations per processor second of a product of the size of a large front."""
    one = np.ones((2000, 2000))
    return 2 * 2000**3 / min(timed(lambda: one @ one)[0] for _ in range(3))


def operations(found: Found) -> tuple[float, float]:
    """Multiplications and additions of the eliminations that were made (equal boxes once), and of all marginals."""
    up = down = 0.0
    seen = set()
    for box, conditional in found.tree.steps:
        v, s = len(box.eliminated), len(box.interface)
        if id(conditional) not in seen:
            seen.add(id(conditional))
            up += v**3 / 3 + v**3 / 3 + 2 * v * v * s + v * s * s
        down += 2 * v * s * s + 2 * v * v * s + v**3 / 3
    return up, down


def space(cells: list[int]) -> None:
    print(f"3-D Poisson with every std, cubic, {os.environ['OPENBLAS_NUM_THREADS']} BLAS thread(s)")
    text = "u_xx + u_yy + u_zz = -14*pi**2*sin(3*pi*x)*sin(2*pi*y)*sin(pi*z)"
    problem = ff.Problem(text, dict.fromkeys("xyz", ff.Interval(0, 1)), {}, walls("u = 0", "xyz"))

    def exact(x: Any, y: Any, z: Any) -> Any:
        return np.sin(3 * np.pi * x) * np.sin(2 * np.pi * y) * np.sin(np.pi * z)

    for count in cells:
        build, model = timed(lambda n=count: local_model(problem, n, 3))
        solve, found = timed(lambda m=model: search(m, 1, None))
        spread, _ = timed(lambda m=model, f=found: posterior_of(m, f).weight_std)
        up, down = operations(found)
        rate = dgemm_rate()
        print(
            f"  {count}^3 cells, {model.size} weights: relative L2 {error_of(model, found.weights, exact, 31):.1e}, "
            f"model {build:.1f} s, solve {solve:.1f} s, all marginals {spread:.1f} s, "
            f"largest front {largest_front(model)}, {(up + down) / 1e9:.0f} Gflop, "
            f"{(up + down) / (solve + spread) / rate:.0%} of dgemm's {rate / 1e9:.0f} Gflop/s, {memory():.1f} GiB",
            flush=True,
        )


def nonlinear(cells: int) -> None:
    """-Laplace u + u^3 = f with u = sum over k of sin(k pi x) sin(k pi y) / k^6; f is given on a fine grid."""
    waves = np.arange(1, 601)

    def exact(x: Any, y: Any, power: int = 6) -> Any:
        one, two = np.sin(np.pi * np.outer(x[:, 0], waves)), np.sin(np.pi * np.outer(y[0], waves))
        return (one / waves.astype(float) ** power) @ two.T

    fine = np.linspace(0.0, 1.0, 4 * cells + 1)
    x, y = fine[:, None], fine[None, :]
    source = 2 * np.pi**2 * exact(x, y, 4) + exact(x, y) ** 3
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1)}
    table = ff.Table(x=fine, y=fine, value=source)
    problem = ff.Problem("-u_xx - u_yy + u**3 = f", domain, {"f": table}, walls("u = 0", "xy"))
    build, model = timed(lambda: local_model(problem, cells, 5))
    solve, found = timed(lambda: search(model, 50, None))
    spread, std = timed(lambda: posterior_of(model, found).weight_std)
    error = error_of(model, found.weights, lambda x, y: exact(x[:, :1], y[:1]))
    print(
        f"nonlinear elliptic, {cells}^2 cells, {model.size} weights: {len(found.merits)} steps, model {build:.1f} s, "
        f"solve {solve:.1f} s, all marginals {spread:.1f} s, relative L2 {error:.1e}, largest std {std.max():.1e}, "
        f"{memory():.2f} GiB"
    )


def gallery(names: list[str]) -> None:
    """Nothing chosen by hand but the method."""
    print("| problem | cells | relative L2 | estimated | 90 % covers | status | seconds |")
    for name in names:
        problem = ff.problems.get(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ff.AdviceWarning)
            seconds, solution = timed(lambda p=problem: ff.solve(p, method="tree"))
        wanted = problem.truth
        field = solution.predict(**{axis: wanted[axis].values for axis in problem.domain.names})
        error = float(np.sqrt(((field["mean"] - wanted) ** 2).mean() / (wanted**2).mean()))
        cells = " x ".join(f"{axis} {count}" for axis, count in solution.settings["cells"].items())
        covered = ff.metrics.score(field, wanted)["coverage90"]
        print(
            f"| {name} | {cells} | {error:.1e} | {solution.trace['numerical_error']:.1e} | {covered:.0%} | "
            f"{solution.status} | {seconds:.1f} |",
            flush=True,
        )


def cole_hopf(nu: float, x: Any, t: Any) -> Any:
    """Burgers' equation from -sin pi x at places (n,): a mean over where heat came from, the largest exponent taken out
    of a sum on a fine grid."""
    away, found = np.linspace(-2.5, 2.5, 100_001), np.empty(len(x))
    for i, (place, time_) in enumerate(zip(x, t, strict=True)):
        if time_ == 0.0:
            found[i] = -np.sin(np.pi * place)
            continue
        exponent = -np.cos(np.pi * (place - away)) / (2 * np.pi * nu) - away**2 / (4 * nu * time_)
        share = np.exp(exponent - exponent.max())
        found[i] = -np.sum(np.sin(np.pi * (place - away)) * share) / share.sum()
    return found


def shock(nu: float, readings: int = 0, unknown: bool = False) -> tuple[ff.Problem, Callable[..., Any], Any, Any]:
    conditions: list[Any] = [ff.Initial("u = -sin(pi*x)"), *(ff.Boundary("u = 0", at={"x": end}) for end in (-1, 1))]
    if readings:
        rng = np.random.default_rng(0)
        x, t = rng.uniform(-1, 1, readings), rng.uniform(0.05, 1, readings)
        u = cole_hopf(nu, x, t) + 0.02 * rng.standard_normal(readings)
        conditions.append(ff.Observations(x=x, t=t, u=u, sigma=0.02))
    value = ff.Unknown(1.5 * nu, nu, positive=True) if unknown else nu
    domain = {"x": ff.Interval(-1, 1), "t": ff.Interval(0, 1)}
    near = np.unique(np.concatenate([np.linspace(-1, 1, 101), np.linspace(-0.05, 0.05, 101)]))
    problem = ff.Problem("u_t + u*u_x = nu*u_xx", domain, {"nu": value}, conditions)
    return problem, lambda x, t: cole_hopf(nu, x, t), near, np.linspace(0, 1, 21)


def travelling(width: float) -> tuple[ff.Problem, Callable[..., Any], Any, Any]:
    """u_t = D u_xx + k u (1 - u)(u - 1/4): a front 1 / (1 + exp((x - 0.3 - t) / width)) of speed 1."""
    rate = 4.0 / width
    start = ff.Initial(f"u = 1/2 - tanh((x - 0.3)/{2 * width})/2")
    domain = {"x": ff.Interval(0, 1), "t": ff.Interval(0, 0.4)}
    numbers = {"D": 0.5 * width**2 * rate, "k": rate}
    closed = [ff.Boundary("u_x = 0", at={"x": end}) for end in (0, 1)]
    problem = ff.Problem("u_t = D*u_xx + k*u*(1 - u)*(u - 1/4)", domain, numbers, [start, *closed])
    exact = lambda x, t: 0.5 - 0.5 * np.tanh((x - 0.3 - t) / (2 * width))  # noqa: E731
    return problem, exact, np.linspace(0, 1, 801), np.linspace(0, 0.4, 21)


FRONTS: dict[str, Callable[[], tuple[ff.Problem, Callable[..., Any], Any, Any]]] = {
    "shock": lambda: shock(0.01 / np.pi),
    "thin-shock": lambda: shock(0.001),
    "front": lambda: travelling(0.01),
    "measured": lambda: shock(0.01 / np.pi, 60),
    "viscosity": lambda: shock(0.01 / np.pi, 60, True),
}


def fronts(names: list[str]) -> None:
    """Nothing chosen by hand."""
    print("| problem | cells | windows | relative L2 | estimated | 90 % covers | rms z | status | seconds |")
    for name in names:
        problem, exact, x, t = FRONTS[name]()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ff.AdviceWarning)
            seconds, solution = timed(lambda p=problem: ff.solve(p))
        mesh = np.meshgrid(t, x, indexing="ij")
        wanted = exact(mesh[1].ravel(), mesh[0].ravel()).reshape(mesh[0].shape)
        field = solution.predict(t=t, x=x)
        error = field["mean"].transpose("t", "x").values - wanted
        z = error / field["std"].transpose("t", "x").values
        size = np.linalg.norm(error) / np.linalg.norm(wanted)
        over = solution.settings.get("cells", solution.settings.get("modes"))
        guess = solution.trace.get("numerical_error", np.nan)
        told = "".join(f", {n} {v['mean']:.5f} +- {v['std']:.5f}" for n, v in solution.parameters.items())
        print(
            f"| {name} | {over} | {solution.trace['windows']} | {size:.1e} | {guess:.1e} | "
            f"{np.mean(np.abs(z) < 1.645):.0%} | {np.sqrt(np.mean(z**2)):.2g} | {solution.status}{told} | "
            f"{seconds:.1f} |",
            flush=True,
        )


def crossing(width: float) -> tuple[ff.Problem, Callable[..., Any], float]:
    """Fisher's wave u = (1 + exp(z / width))^-2 at an angle across the unit square: speed 0.5, up to t = 0.8."""
    across, end, spread = (float(np.cos(0.6)), float(np.sin(0.6))), 0.8, 0.005
    rate = 6.0 * spread / width**2
    speed = float(5.0 * np.sqrt(rate * spread / 6.0))
    text = "u = (1 + exp(({!r}*x + {!r}*y - {!r}*{} - 0.35)/{}))**(-2)"
    domain = {"x": ff.Interval(0, 1), "y": ff.Interval(0, 1), "t": ff.Interval(0, end)}
    sides = [ff.Boundary(text.format(*across, speed, "t", width), at={a: e}) for a in "xy" for e in (0, 1)]
    start = ff.Initial(text.format(*across, speed, "0.0", width))
    problem = ff.Problem("u_t = D*(u_xx + u_yy) + r*u*(1 - u)", domain, {"D": spread, "r": rate}, [start, *sides])
    return problem, lambda x, y, t: _wave((across[0] * x + across[1] * y - speed * t - 0.35) / width), end


def _wave(z: Any) -> Any:
    return (1.0 + np.exp(z)) ** -2.0


def surrounded() -> tuple[ff.Problem, Callable[..., Any], float]:
    """u = exp(-t) cos 2x sin(1.5 y + 0.3) in a disk with a hole: Robin's condition outside, a flux inside."""
    field = "exp(-t)*cos(2*x)*sin(1.5*y + 0.3)"
    slopes = "(-2*exp(-t)*sin(2*x)*sin(1.5*y + 0.3)*{} + 1.5*exp(-t)*cos(2*x)*cos(1.5*y + 0.3)*y)"
    source = f"(-1 + 0.3*(4 + 2.25))*{field} - {field}*(1 - {field})"
    hole = f"-{slopes.format('(x - 0.3)')}/sqrt((x - 0.3)**2 + y**2)"
    rim = f"{slopes.format('x')}/sqrt(x**2 + y**2) + 2*{field}"
    problem = ff.Problem(
        f"u_t = 0.3*(u_xx + u_yy) + u*(1 - u) + {source}",
        {"x": ff.Interval(-1, 1), "y": ff.Interval(-1, 1), "t": ff.Interval(0, 1)}, {},
        [
            ff.Initial("u = cos(2*x)*sin(1.5*y + 0.3)"), ff.Boundary(f"u_n + 2*u = {rim}", at="x**2 + y**2 > 0.9"),
            ff.Boundary(f"u_n = {hole}", at="x**2 + y**2 < 0.9"),
        ],
        region=ff.Region("x**2 + y**2 < 1 and (x - 0.3)**2 + y**2 > 0.1"),
    )  # fmt: skip
    return problem, lambda x, y, t: np.exp(-t) * np.cos(2 * x) * np.sin(1.5 * y + 0.3), 1.0


def planes(case: tuple[ff.Problem, Callable[..., Any], float], cells: list[int]) -> None:
    """On given cells, and (0) by default."""
    problem, exact, end = case
    print("| cells | windows | relative L2 | largest error | estimated | 90 % covers | rms z | status | s | GiB |")
    for count in cells:
        asked = {"cells": {"x": count, "y": count}} if count else {}
        method = {"method": "chain"} if count else {}
        seconds, solution = timed(lambda given={**asked, **method}: ff.solve(problem, **given))
        lines = {name: np.linspace(axis.lower, axis.upper, 41) for name, axis in problem.domain.items() if name != "t"}
        grid = {"t": np.linspace(0.0, end, 9), **lines}
        field = solution.predict(**grid).transpose("t", "x", "y")
        t, x, y = np.meshgrid(*grid.values(), indexing="ij")
        wanted = exact(x, y, t)
        error = field["mean"].values - wanted
        there = np.isfinite(error)
        z = error[there] / field["std"].values[there]
        print(
            f"| {solution.settings['cells']['x']}{'' if count else ' (chosen)'} | {solution.trace['windows']} | "
            f"{np.linalg.norm(error[there]) / np.linalg.norm(wanted[there]):.1e} | {np.abs(error[there]).max():.1e} | "
            f"{solution.trace['numerical_error']:.1e} | {np.mean(np.abs(z) < 1.645):.0%} | "
            f"{np.sqrt(np.mean(z**2)):.2g} | {solution.status} | {seconds:.1f} | {memory():.2f} |",
            flush=True,
        )  # fmt: skip


ONE = """
import time, factorfield as ff
ff.solve(ff.problems.get("heat"))
problem = ff.problems.get("fisher-kpp-2d")
begin = time.process_time()
solution = ff.solve(problem)
seconds = time.process_time() - begin
truth = problem.truth
print(seconds, ff.metrics.score(solution.predict(**{d: truth[d].values for d in truth.dims}), truth)["relative_l2"])
"""


def against(source: str) -> None:
    """fisher-kpp-2d with this version and with another one, three times in turn."""
    here = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "src")
    found: dict[str, list[tuple[float, float]]] = {"other": [], "this": []}
    for _ in range(3):
        for name, path in (("other", source), ("this", here)):
            environment = {**os.environ, "PYTHONPATH": os.path.abspath(path)}
            told = subprocess.run([sys.executable, "-c", ONE], env=environment, capture_output=True, check=True)
            seconds, error = map(float, told.stdout.split())
            found[name].append((seconds, error))
    other, this = (statistics.median(seconds for seconds, _ in found[name]) for name in ("other", "this"))
    errors = ", ".join(f"{found[name][0][1]:.1e}" for name in ("other", "this"))
    print(f"fisher-kpp-2d: {other:.2f} s and {this:.2f} s, {other / this:.1f} times faster; relative L2 {errors}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", choices=[*QUESTIONS])
    parser.add_argument("--cells", default="")
    parser.add_argument("--degree", type=int, default=5)
    parser.add_argument("--problems", default="")
    parser.add_argument("--source", default="", help="the sources of another version")
    given = parser.parse_args()
    QUESTIONS[given.question](given, [int(count) for count in given.cells.split(",") if count])


USUAL = "heat,wave,klein-gordon,advection-diffusion,poisson-source,gray-scott,burgers"
QUESTIONS: dict[str, Callable[[argparse.Namespace, list[int]], None]] = {
    "poisson": lambda given, cells: poisson(cells or [64, 128, 256], given.degree),
    "splu": lambda given, cells: against_splu((cells or [128])[0], given.degree),
    "space": lambda given, cells: space(cells or [16, 24, 32]),
    "nonlinear": lambda given, cells: nonlinear((cells or [200])[0]),
    "gallery": lambda given, cells: gallery((given.problems or USUAL).split(",")),
    "fronts": lambda given, cells: fronts(given.problems.split(",") if given.problems else list(FRONTS)),
    "plane": lambda given, cells: planes(crossing(0.05), cells or [16, 24, 32, 0]),
    "moved": lambda given, cells: planes(surrounded(), cells or [12, 16, 24, 0]),
    "against": lambda given, cells: against(given.source),
}

if __name__ == "__main__":
    main()
