"""One run: a problem, a model, a method and a seed -> one small record of plain numbers and lists.

Fields are kept on a coarse grid (every 16th cell, every 5th time) for pictures and for comparing methods; scores use
all points.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TypedDict, cast

import numpy as np

from factorfield import methods, metrics, problems
from factorfield.errors import expected
from factorfield.model.model import BlockModel, Model
from factorfield.model.paper import paper_model
from factorfield.posterior.gaussian import GaussianPosterior
from factorfield.problem.problem import Problem
from factorfield.solution import Solution, Status
from factorfield.solving import solve
from factorfield.version import __version__

LATE = 0.02  # Fisher-KPP is also scored from here on: the paper's time basis cannot follow what comes before
LEVELS = tuple(round(0.05 * k, 2) for k in range(1, 20))  # of the reliability curve
PIT_BINS = 20
RANDOM = ("mean-field", "hmc", "vi", "sgd")  # methods that draw: an order of factors, samples, starts


class ModelOptions(TypedDict, total=False):
    """What a run may ask of `paper_model`; left out: the paper's own (`AS_RELEASED`)."""

    width: int
    residual_noise: float
    curvature: bool  # the term -nu g''(z) z_x^2 of Fisher-KPP
    modes: Mapping[str, int]
    labels: int


# The authors' release, which made the paper's numbers, leaves out a term that the paper's text derives.
AS_RELEASED: Mapping[str, ModelOptions] = {"fisher-kpp": {"curvature": False}}


class MethodOptions(TypedDict, total=False):
    """What a run may ask of its method; left out: the method's defaults."""

    iterations: int  # of Adam, in SGD and VI
    schedule: str
    continuation: str
    epochs: int
    tolerance: float


class Spec(TypedDict):
    """A `Run` as it is stored."""

    equation: str
    physics: dict[str, float]
    row: int
    method: str
    initial: str
    model: ModelOptions
    options: MethodOptions
    source: str
    kind: str
    seed: int


class Coarse(TypedDict):
    """The field on the coarse grid; mean, std and exact by time, then place."""

    x: list[float]
    t: list[float]
    mean: list[list[float]]
    std: list[list[float]]
    exact: list[list[float]]


class Results(TypedDict, total=False):
    """Of a run of kind "scores"; the last three of one of kind "timing"."""

    exact: dict[str, float]
    stored: dict[str, float] | None
    late: dict[str, float]
    reliability: list[float]
    pit: list[float]
    std_over_time: list[float]
    rms_residual: float
    coarse: Coarse
    weight_mean: list[float]
    weight_std: list[float]
    cold: float
    warm: float
    predict: float


class Machine(TypedDict):
    host: str
    system: str
    cores: int | None


class Provenance(TypedDict):
    commit: str
    versions: dict[str, str]
    machine: Machine


class Record(TypedDict):
    spec: Spec
    status: str
    help: str
    results: Results
    settings: dict[str, object]
    trace: dict[str, float]
    timings: dict[str, float]
    provenance: Provenance


@dataclass(frozen=True)
class Run:
    """What is run. `model` are options of paper_model, `options` those of the method; kind: "scores" or "timing".

    `seed` draws the collocation points and whatever the method draws. `chain` has no points and no draws: it solves the
    problem by its own model, not the paper's.
    """

    equation: str
    physics: Mapping[str, float]
    row: int
    method: str
    initial: str = "pdebench"
    model: ModelOptions = field(default_factory=ModelOptions)
    options: MethodOptions = field(default_factory=MethodOptions)
    source: str = "generated"
    kind: str = "scores"
    seed: int = 0

    @property
    def spec(self) -> Spec:
        return cast(Spec, asdict(self))

    @property
    def key(self) -> str:
        """A readable, stable name; equal specs have equal keys."""
        text = json.dumps(self.spec, sort_keys=True)
        physics = "-".join(f"{name}{value:g}" for name, value in sorted(self.physics.items()))
        readable = f"{self.kind}-{self.equation}-{physics}-row{self.row}-{self.method}"
        return f"{readable}-{hashlib.sha256(text.encode()).hexdigest()[:10]}"

    def problem(self, data: str | None) -> Problem:
        if self.source == "generated":
            extra = {"initial": self.initial} if self.equation == "fisher-kpp" else {}
            return problems.get(self.equation, row=self.row, **self.physics, **extra)
        if data is None:
            raise expected("a folder of PDEBench files for this run", "none", "--data DIR")
        if self.equation == "advection":
            file = Path(data) / f"1D_Advection_Sols_beta{float(self.physics['b'])}.hdf5"
            return problems.get("advection", file=file, row=self.row)
        return problems.get(
            "fisher-kpp", file=Path(data) / "ReacDiff_initial_conditions.npz", row=self.row, **self.physics
        )

    def subject(self, problem: Problem) -> Problem | Model:
        """What the method is given: the paper's model, or for `chain` the problem itself."""
        if self.method == "chain":
            return problem
        options: ModelOptions = {**AS_RELEASED.get(self.equation, ModelOptions()), **self.model}
        return paper_model(problem, seed=self.seed, **options)

    @property
    def lockstep(self) -> str:
        """Runs with equal names are solved together: rows of one speed, rows and reactions of one diffusion.

        Their designs are equal (Fisher-KPP: for rows of as many modes), so that a step of all is a product of matrices.
        """
        if self.kind == "scores" and self.method in ("sgd", "vi", "hmc"):
            design = {name: value for name, value in self.physics.items() if name != "rho"}
            return json.dumps({**self.spec, "row": None, "physics": design}, sort_keys=True)
        return self.key

    def build_method(self) -> methods.Method:
        options: dict[str, object] = {**self.options}
        if "iterations" in options:
            from factorfield.methods.baselines.adam import Schedule

            options["schedule"] = Schedule(iterations=self.options["iterations"])
            del options["iterations"]
        if self.method in RANDOM:
            options["seed"] = self.seed
        return methods.get(self.method, **options)


def execute(run: Run, data: str | None = None) -> Record:
    """The record of a run."""
    return timed_apart(run, data) if run.kind == "timing" else execute_together([run], data)[0]


def execute_together(runs: Sequence[Run], data: str | None = None) -> list[Record]:
    """The records of runs that share their design (`Run.lockstep`); times are shares of the batch's."""
    first, count = runs[0], len(runs)
    begin, begin_processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a sweep's reader looks at statuses
        tasks = [run.problem(data) for run in runs]
        models = [first.subject(problem) for problem in tasks]
        built = time.perf_counter()
        if first.method == "prior":
            solutions = [prior_solution(cast(BlockModel, model)) for model in models]
        else:
            solutions = solve(models, method=first.build_method())
        solved = time.perf_counter()
        results = [measured(solution, problem) for solution, problem in zip(solutions, tasks, strict=True)]
    end = time.perf_counter()
    seconds = {"build": built - begin, "fit": solved - built, "total": end - begin}
    seconds["processor"] = time.process_time() - begin_processor
    shares = {key: value / count for key, value in seconds.items()}
    return [
        {
            "spec": run.spec, "status": str(solution.status), "help": solution.status.help, "results": result,
            "settings": settings_of(solution), "trace": trace_of(solution),
            "timings": {**solution.timings, **shares}, "provenance": provenance(),
        }
        for run, solution, result in zip(runs, solutions, results, strict=True)
    ]  # fmt: skip


def settings_of(solution: Solution) -> dict[str, object]:
    model = cast(Model, solution.model)
    factors = {"factors": model.factors} if isinstance(model, BlockModel) else {}
    return {"weights": model.size, **factors, "modes": model.settings["modes"]}


def trace_of(solution: Solution) -> dict[str, float]:
    """The single numbers of a trace, and how many epochs message passing took over all its passes."""
    trace = solution.trace
    epochs = {"epochs": float(sum(trace["passes"])), "last_kl": trace["max_kl"][-1]} if "passes" in trace else {}
    return {**{key: value for key, value in trace.items() if np.ndim(value) == 0}, **epochs}


def prior_solution(model: BlockModel) -> Solution:
    """What is believed before any factor speaks."""
    prior = GaussianPosterior(model.problem, model.representation, model.noise, model.prior.mean, model.prior.std)
    return Solution(prior, Status("converged", "the prior"), model=model)


def measured(solution: Solution, problem: Problem) -> Results:
    """Scores against truth, stored field and late times; calibration; weights; the field on a coarse grid."""
    truth = problem.truth
    shown = solution.predict(x=truth.x, t=truth.t)
    result: Results = {"exact": metrics.score(shown, truth)}
    result["stored"] = None if problem.stored is None else metrics.score(shown, problem.stored)
    late = {"t": np.asarray(truth.t) >= LATE}
    result["late"] = metrics.score(shown.isel(late), truth.isel(late))
    mean, std, exact = (
        np.asarray(a, float) for a in (shown["mean"], shown["std"], truth.transpose(*shown["mean"].dims))
    )
    result["reliability"] = [metrics.coverage(mean, std, exact, level) for level in LEVELS]
    result["pit"] = metrics.pit_histogram(mean, std, exact, PIT_BINS)
    result["std_over_time"] = np.mean(std, axis=1).tolist()
    coarse = {"x": truth.x[8::16], "t": truth.t[::5]}
    small = solution.predict(**coarse)
    residual = solution.predict(of="residual", **coarse)["mean"]
    result["rms_residual"] = float(np.sqrt(np.mean(np.asarray(residual) ** 2)))
    result["coarse"] = {
        "x": np.asarray(coarse["x"]).tolist(), "t": np.asarray(coarse["t"]).tolist(),
        "mean": np.asarray(small["mean"]).tolist(), "std": np.asarray(small["std"]).tolist(),
        "exact": np.asarray(truth.sel(coarse)).tolist(),
    }  # fmt: skip
    if isinstance(solution.model, BlockModel):  # of one set of weights; a chain has one per window
        posterior = solution.posterior
        result["weight_mean"], result["weight_std"] = posterior.weight_mean.tolist(), posterior.weight_std.tolist()
    return result


# -- timing, by the paper's rule: training cold in a process of its own, inference steady
# Seconds are those of the processor: the clock's on an idle machine, as a worker has one thread; on a busy one they
# leave out what other work took.


def timed_apart(run: Run, data: str | None) -> Record:
    import tempfile

    with tempfile.TemporaryDirectory() as cache:  # compiled code of earlier processes does not count as cold
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        code = "import sys; from factorfield.paper.run import timing_main; timing_main()"
        request = json.dumps({"spec": run.spec, "data": data})
        done = subprocess.run(
            [sys.executable, "-c", code], input=request, capture_output=True, text=True, env=environment
        )
    if done.returncode != 0:
        raise RuntimeError(f"the timing process ended with {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


def timing_main() -> None:
    request = json.load(sys.stdin)
    run = Run(**request["spec"])
    warnings.simplefilter("ignore")
    problem = run.problem(request["data"])
    subject = run.subject(problem)
    fits = []
    for _ in range(2):
        begin = time.process_time()
        solution = solve(subject, method=run.build_method())
        fits.append(time.process_time() - begin)
    repeats = 3 if run.method == "hmc" else 7
    grid = {"x": problem.truth.x, "t": problem.truth.t}
    solution.predict(**grid)
    predictions = []
    for _ in range(repeats):
        begin = time.process_time()
        solution.predict(**grid)
        predictions.append(time.process_time() - begin)
    record: Record = {
        "spec": run.spec, "status": str(solution.status), "help": solution.status.help,
        "results": {"cold": fits[0], "warm": fits[1], "predict": min(predictions)},
        "settings": settings_of(solution), "trace": trace_of(solution), "timings": dict(solution.timings),
        "provenance": provenance(),
    }  # fmt: skip
    json.dump(record, sys.stdout)


@lru_cache(maxsize=1)
def provenance() -> Provenance:
    """Commit, versions and machine, for the record."""
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    versions = {"factorfield": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy", "numba", "jax", "blackjax", "optax"):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    machine: Machine = {"host": platform.node(), "system": platform.platform(), "cores": os.cpu_count()}
    return {"commit": commit.stdout.strip() or "not a checkout", "versions": versions, "machine": machine}
