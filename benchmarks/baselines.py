"""What do SGD, VI and HMC give on exactly the model of message passing, and what do they cost?

    FACTORFIELD_PDEBENCH=... python benchmarks/baselines.py rows       Table 1's metrics at b = 0.1 and 0.4, ten rows each
    FACTORFIELD_PDEBENCH=... python benchmarks/baselines.py collapse   SGD on Fisher-KPP at rho = 10, nu >= 1
    FACTORFIELD_PDEBENCH=... python benchmarks/baselines.py gradients  lockstep: gradients per second for 1, 4, 40 chains
    FACTORFIELD_PDEBENCH=... python benchmarks/baselines.py ratios     joint : mean-field : VI : HMC, fit and predict

`rows` advances the ten trajectories of a speed as one batch. `ratios` times one trajectory at a time, contenders in
turn, twice; the first round compiles (the paper's rule: training cold, inference steady).
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

import factorfield as ff
from factorfield.compare import compare
from factorfield.methods.density import batches, double_precision, log_joint


def advection(b: float, row: int) -> ff.Model:
    file = Path(os.environ["FACTORFIELD_PDEBENCH"]) / f"1D_Advection_Sols_beta{b}.hdf5"
    return ff.paper_model(ff.problems.get("advection", file=file, row=row))


def rows(speeds: list[float]) -> None:
    print("b    method  RMSE x1e-2  coverage %  CRPS x1e-3  std / HMC (median, range over rows)  status", flush=True)
    for b in speeds:
        models = [advection(b, row) for row in range(10)]
        fields: dict[str, list[Any]] = {}
        for method in ("hmc", "joint", "vi", "sgd"):
            solutions = ff.solve(models, method=method)
            fields[method] = [s.predict(x=s.problem.truth.x, t=s.problem.truth.t) for s in solutions]
            scores = [ff.metrics.score(f, m.problem.stored) for f, m in zip(fields[method], models, strict=True)]
            pairs = zip(fields[method], fields["hmc"], strict=True)
            ratios = [float((f["std"] / h["std"]).median()) for f, h in pairs]
            mean = {key: float(np.mean([s[key] for s in scores])) for key in scores[0]}
            states = {str(s.status): sum(t.status == s.status for t in solutions) for s in solutions}
            print(
                f"{b:<4} {method:<7} {100 * mean['rmse']:10.2f} {100 * mean['coverage90']:11.1f} "
                f"{1000 * mean['crps']:11.2f}  {np.median(ratios):.3f} ({min(ratios):.3f}..{max(ratios):.3f})  {states}",
                flush=True,
            )


def collapse() -> None:
    file = Path(os.environ["FACTORFIELD_PDEBENCH"]) / "ReacDiff_initial_conditions.npz"
    print("nu   row  RMSE of SGD  mean of u at the end (truth)  collapsed", flush=True)
    for nu in (1.0, 2.0, 5.0):
        for row in range(5):
            problem = ff.problems.get("fisher-kpp", file=file, row=row, nu=nu, rho=10.0)
            solution = ff.solve(ff.paper_model(problem), method="sgd")
            mean = solution.predict(x=problem.truth.x, t=problem.truth.t)["mean"]
            error = float(np.sqrt(((mean - problem.truth) ** 2).mean()))
            end, true = float(mean.isel(t=-1).mean()), float(problem.truth.isel(t=-1).mean())
            print(f"{nu:<4} {row:>3}  {error:11.3e}  {end:.3f} ({true:.3f})  {abs(end) < 0.1}", flush=True)


def gradients(b: float) -> None:
    model = advection(b, 0)
    ((_, batch),) = batches([model])
    with double_precision() as jax:
        facts = jax.tree.map(lambda a: jax.numpy.asarray(a[0]), batch.facts())
        designs, prior = jax.tree.map(jax.numpy.asarray, (batch.designs, batch.prior))
        loops = 50

        def steps(weights: Any, designs: Any) -> Any:
            gradient = jax.vmap(lambda w: log_joint(batch.shapes, designs, facts, prior, w)[1])
            return jax.lax.fori_loop(0, loops, lambda _, w: w + 1e-12 * gradient(w), weights)

        starts, compiled = {}, {}
        for chains in (1, 4, 40):
            starts[chains] = jax.numpy.asarray(0.3 * np.random.default_rng(0).standard_normal((chains, model.size)))
            begin = time.perf_counter()
            compiled[chains] = jax.jit(steps).lower(starts[chains], designs).compile()
            print(f"{chains:>3} chains: compiled in {time.perf_counter() - begin:.2f} s", flush=True)
        seconds: dict[int, list[float]] = {chains: [] for chains in starts}
        for _ in range(11):
            for chains, start in starts.items():
                begin = time.perf_counter()
                compiled[chains](start, designs).block_until_ready()
                seconds[chains].append((time.perf_counter() - begin) / loops)
    rate = {chains: chains / statistics.median(values) for chains, values in seconds.items()}
    for chains, values in seconds.items():
        print(
            f"b = {b:g}, {model.size} weights, {chains:>2} chains: {1e3 * statistics.median(values):.3f} ms, "
            f"{rate[chains]:.0f} chain-gradients per second, {rate[chains] / rate[1]:.1f}x of one chain",
            flush=True,
        )


def ratios(speeds: list[float]) -> None:
    names = ("joint", "mean-field", "vi", "hmc")
    for b in speeds:
        model = advection(b, 0)
        cold: dict[str, float] = {}
        fit: dict[str, list[float]] = {name: [] for name in names}
        predict: dict[str, list[float]] = {name: [] for name in names}
        for turn in range(2):
            for contender in compare(model, [ff.methods.get(name) for name in names]):
                if turn == 0:
                    cold[contender.method] = contender.fit
                fit[contender.method].append(contender.fit)
                predict[contender.method].append(contender.predict)
        for what, seconds in (
            ("fit, cold", cold),
            ("fit, warm", {n: v[-1] for n, v in fit.items()}),
            ("predict", {n: min(v) for n, v in predict.items()}),
        ):
            base = seconds["mean-field"]
            text = ", ".join(f"{n} {s:.3g} s ({s / base:.3g}x mean-field)" for n, s in seconds.items())
            print(f"b = {b:g}, {what}: {text}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["rows", "collapse", "gradients", "ratios"])
    parser.add_argument("--speeds", default=None)
    arguments = parser.parse_args()
    default = {"rows": "0.1,0.4", "gradients": "1.0", "ratios": "0.1,0.4,1.0"}.get(arguments.what, "")
    speeds = [float(b) for b in (arguments.speeds or default).split(",") if b]
    if arguments.what == "rows":
        rows(speeds)
    elif arguments.what == "collapse":
        collapse()
    elif arguments.what == "gradients":
        gradients(speeds[0])
    else:
        ratios(speeds)


if __name__ == "__main__":
    main()
