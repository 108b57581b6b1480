"""What do the baselines cost on exactly the model of message passing? (What they give: `factorfield reproduce`.)

    FACTORFIELD_PDEBENCH=... python benchmarks/baselines.py gradients  lockstep: gradients a second for 1, 4, 40 chains
    FACTORFIELD_PDEBENCH=... python benchmarks/baselines.py ratios     joint : mean-field : VI : HMC, fit and predict

`ratios` times one trajectory at a time, contenders in
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
from factorfield.methods.baselines.density import batches, double_precision, log_joint
from factorfield.methods.compare import compare


def advection(b: float, row: int) -> ff.Model:
    file = Path(os.environ["FACTORFIELD_PDEBENCH"]) / f"1D_Advection_Sols_beta{b}.hdf5"
    return ff.paper_model(ff.problems.get("advection", file=file, row=row))


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
    parser.add_argument("what", choices=["gradients", "ratios"])
    parser.add_argument("--speeds", default=None)
    arguments = parser.parse_args()
    default = {"gradients": "1.0", "ratios": "0.1,0.4,1.0"}[arguments.what]
    speeds = [float(b) for b in (arguments.speeds or default).split(",")]
    if arguments.what == "gradients":
        gradients(speeds[0])
    else:
        ratios(speeds)


if __name__ == "__main__":
    main()
