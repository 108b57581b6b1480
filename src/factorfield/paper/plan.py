"""Which runs each target of `factorfield reproduce` needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from factorfield.errors import expected, nearest
from factorfield.paper.run import MethodOptions, ModelOptions, Run

SPEEDS = (0.1, 0.4, 1.0, 2.0, 7.0)
DIFFUSIONS, REACTIONS = (0.5, 1.0, 2.0, 5.0), (1.0, 2.0, 5.0, 10.0)
NOISES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
WIDTHS = (1, 2, 3, 4)
SCHEDULES = ("prior", "data", "equation", "data then equation", "mixed")
METHODS = ("mean-field", "joint", "chain", "hmc", "vi", "sgd")
SAMPLING = ("hmc", "vi")  # what costs most: fewer rows where a run takes long, unless --rows asks for more
SAMPLED_ROWS = {7.0: 2}  # advection rows of HMC and VI by speed; ten elsewhere
SAMPLED_FISHER_ROWS = 2
ABLATION_ROWS = 3
TIMED_SPEEDS = (0.1, 0.4, 1.0, 2.0)  # of HMC and VI; --speeds asks for more
SEEDS, SAMPLED_SEEDS, SAMPLED_SEED_ROWS = 5, 3, 2  # of `spread`: mean-field and joint; HMC, on so many rows at b <= 1
FULL: ModelOptions = {"curvature": True}
# where `spread` asks how many epochs would have been enough: the paper's rule, KL < 1e-5, comes too early to tell
LONG: MethodOptions = {"epochs": 3000, "tolerance": 1e-8}


@dataclass(frozen=True)
class Scope:
    """How much of the paper is run. `speeds` None: all."""

    methods: tuple[str, ...] = METHODS
    rows: int | None = None  # advection 10 and Fisher-KPP 5 unless given
    speeds: tuple[float, ...] | None = None
    source: str = "generated"
    quick: bool = False

    @property
    def advection_rows(self) -> int:
        return min(self.rows or (2 if self.quick else 10), 10)

    @property
    def fisher_rows(self) -> int:
        return min(self.rows or (1 if self.quick else 5), 5)

    @property
    def ablation_rows(self) -> int:
        return min(self.rows or (1 if self.quick else ABLATION_ROWS), 5)

    @property
    def wave_speeds(self) -> tuple[float, ...]:
        return self.speeds or (SPEEDS[:2] if self.quick else SPEEDS)

    def advection_rows_of(self, method: str, speed: float) -> int:
        most = SAMPLED_ROWS.get(speed, 10) if self.rows is None and method in SAMPLING else 10
        return min(self.advection_rows, most)

    def fisher_rows_of(self, method: str) -> int:
        most = SAMPLED_FISHER_ROWS if self.rows is None and method in SAMPLING else 5
        return min(self.fisher_rows, most)

    @property
    def settings(self) -> list[tuple[float, float]]:
        """(nu, rho) of Fisher-KPP."""
        if self.quick:
            return [(0.5, 1.0), (1.0, 5.0)]
        return [(nu, rho) for nu in DIFFUSIONS for rho in REACTIONS]

    def options(self, method: str) -> MethodOptions:
        """Quick runs shorten Adam tenfold; nothing else about a method changes."""
        return {"iterations": 3000} if self.quick and method in ("vi", "sgd") else {}

    def advection(self, method: str, speed: float, row: int) -> Run:
        return Run("advection", {"b": speed}, row, method, options=self.options(method), source=self.source)

    def fisher(self, method: str, nu: float, rho: float, row: int) -> Run:
        physics = {"nu": nu, "rho": rho}
        return Run("fisher-kpp", physics, row, method, options=self.options(method), source=self.source)


def table1(scope: Scope) -> list[Run]:
    runs = [
        scope.advection(method, speed, row)
        for method in scope.methods
        for speed in scope.wave_speeds
        for row in range(scope.advection_rows_of(method, speed))
    ]
    for method in scope.methods:
        rows = range(scope.fisher_rows_of(method))
        settings = scope.settings[:1] if scope.quick and method in SAMPLING else scope.settings
        runs += [scope.fisher(method, nu, rho, row) for row in rows for nu, rho in settings]
    return runs


def spread(scope: Scope) -> list[Run]:
    """Table 1 again with other points and another order of factors; and with epochs enough to converge."""
    seeds = 2 if scope.quick else SEEDS
    first = of_methods(scope, "mean-field", "joint")
    runs = [replace(run, seed=seed) for seed in range(seeds) for run in first]
    if scope.quick:
        return runs
    runs += [replace(run, options=LONG) for run in first if run.method == "mean-field" and _is_short(run)]
    if "hmc" in scope.methods:
        slow = [b for b in scope.wave_speeds if b <= 1.0]
        rows = range(min(scope.advection_rows, SAMPLED_SEED_ROWS))
        some = [scope.advection("hmc", b, row) for b in slow for row in rows]
        runs += [replace(run, seed=seed) for seed in range(SAMPLED_SEEDS) for run in some]
    return runs


def _is_short(run: Run) -> bool:
    """Can message passing go on for thousands of epochs within minutes?"""
    return run.physics["b"] <= 2.0 if run.equation == "advection" else run.row == 0


def full_residual(scope: Scope) -> list[Run]:
    """Fisher-KPP with the term -nu g''(z) z_x^2, which the paper derives and its release leaves out."""
    runs = of_methods(scope, *(("mean-field", "joint") if scope.quick else ("mean-field", "joint", "hmc")))
    return [replace(run, model=FULL) for run in runs if run.equation == "fisher-kpp"]


def gaussian_bump(scope: Scope) -> list[Run]:
    bump = replace(scope, source="generated")
    return [replace(bump.fisher("mean-field", nu, rho, 0), initial="bump") for nu, rho in scope.settings]


def of_methods(scope: Scope, *names: str) -> list[Run]:
    return table1(replace(scope, methods=tuple(name for name in scope.methods if name in names)))


def timing(scope: Scope) -> list[Run]:
    """One at a time, each fitted twice. Quick: HMC and VI at one speed only."""
    names = [name for name in scope.methods if name != "sgd"]
    runs = [scope.advection(m, b, 0) for m in names for b in _timed_speeds(scope, m)]
    short = [name for name in names if not (scope.quick and name in SAMPLING)]
    runs += [scope.fisher(m, nu, rho, 0) for m in short for nu, rho in _reactions(scope)]
    ours = [scope.fisher("mean-field", nu, rho, 0) for nu, rho in _reactions(scope)]
    runs += [replace(run, options={"continuation": ""}) for run in ours]  # what continuation costs: fits without it
    return [replace(run, kind="timing") for run in runs]


def _timed_speeds(scope: Scope, method: str) -> Sequence[float]:
    if scope.speeds is None and method in SAMPLING:
        return TIMED_SPEEDS[:1] if scope.quick else TIMED_SPEEDS
    return scope.wave_speeds


def schedule(scope: Scope) -> list[Run]:
    runs = []
    speeds = [b for b in scope.wave_speeds if b <= 2.0]
    settings = [(0.5, 1.0), (1.0, 5.0)]
    for name in SCHEDULES:
        varied = _ablation(scope, "prior" if name == "prior" else "mean-field", speeds, settings)
        runs += varied if name in ("prior", "mixed") else [replace(run, options={"schedule": name}) for run in varied]
    return runs


def width(scope: Scope) -> list[Run]:
    settings = [] if scope.quick else _reactions(scope)  # wide fits of Fisher-KPP take half a minute each
    runs = _ablation(scope, "mean-field", scope.wave_speeds, settings)
    return [run if count == 1 else replace(run, model={"width": count}) for count in WIDTHS for run in runs]


def residual_noise(scope: Scope) -> list[Run]:
    runs = _ablation(scope, "mean-field", scope.wave_speeds, [])
    return [run if noise == 0.05 else replace(run, model={"residual_noise": noise}) for noise in NOISES for run in runs]


def _reactions(scope: Scope) -> list[tuple[float, float]]:
    """(nu, rho) over the reaction's strength."""
    return [(0.5, 1.0)] if scope.quick else [(1.0, rho) for rho in REACTIONS]


def _ablation(scope: Scope, method: str, speeds: Sequence[float], settings: Sequence[tuple[float, float]]) -> list[Run]:
    """Three rows of some cells: where one option at a time is varied."""
    runs = []
    for row in range(scope.ablation_rows):
        runs += [scope.advection(method, b, row) for b in speeds]
        runs += [scope.fisher(method, nu, rho, row) for nu, rho in settings]
    return runs


TARGETS = {
    "table1": table1,
    "solutions": lambda scope: of_methods(scope, "mean-field"),
    "full-residual": full_residual,
    "gaussian-bump": gaussian_bump,
    "posteriors": lambda scope: of_methods(scope, "mean-field", "joint", "hmc", "vi"),
    "pinn": lambda scope: of_methods(scope, "mean-field", "sgd"),
    "calibration": table1,
    "spread": spread,
    "schedule": schedule,
    "width": width,
    "residual-noise": residual_noise,
    "timing": timing,
}


def checked_targets(names: Sequence[str]) -> list[str]:
    """The targets meant, in the order they are made; none, or `all`, means all of them."""
    for name in names:
        if name not in TARGETS and name != "all":
            raise expected(
                f"a target among {', '.join(TARGETS)}, all", name, nearest(name, [*TARGETS, "all"], "'table1'")
            )
    return list(TARGETS) if not names or "all" in names else [name for name in TARGETS if name in names]
