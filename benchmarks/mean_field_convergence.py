"""How far from the exact posterior means are mean-field messages after so many epochs?

    python benchmarks/mean_field_convergence.py

Identity ansatz on the paper's b = 0.1 model (linear: the exact posterior is known), cavity input, no floor: the fixed
point has the exact means, and the way there is long.

    FACTORFIELD_PDEBENCH=... python benchmarks/mean_field_convergence.py rows [--speed 0.1]

The paper's own settings on the two of its rows that five modes can hold, where it stops short of the joint solve: the
RMSE of both beyond the rule that stops it (KL below 1e-5, or 300 epochs).
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

import factorfield as ff
from factorfield.methods.mean_field.layout import lay_out
from factorfield.methods.mean_field.mean_field import Messages

FITTING_ROWS = (4, 9)  # PDEBench 2343 and 3497
ROW_CHECKPOINTS = (100, 300, 1000, 3000, 10_000)
CHECKPOINTS = (10, 30, 100, 300, 1000, 3000, 10_000)


def rows(speed: float) -> None:
    from rows import advection

    for row in FITTING_ROWS:
        problem = advection(speed, row)
        model = ff.paper_model(problem)
        place = {"x": problem.truth.x[::8], "t": problem.truth.t[::10]}
        joint = ff.solve(model, method="joint")
        best = ff.metrics.score(joint.predict(**place), problem.truth.sel(place))["rmse"]
        for moments, floor in (("belief", float(model.settings["coefficient_floor"])), ("cavity", 0.0)):
            layout = lay_out(model, moments == "belief", floor)
            messages, rng = Messages.start(model, layout), np.random.default_rng(0)
            for epoch in range(1, ROW_CHECKPOINTS[-1] + 1):
                kl, _ = layout.sweep(rng.permutation(np.arange(model.factors)), messages.arrays, False, 0.0)
                if epoch in ROW_CHECKPOINTS:
                    posterior = replace(joint.posterior, mean=messages.mean.copy(), root=np.sqrt(messages.variance))
                    field = replace(joint, posterior=posterior).predict(**place)
                    ratio = ff.metrics.score(field, problem.truth.sel(place))["rmse"] / best
                    told = f"b = {speed:g}, row {row}, {moments} input, epoch {epoch:5d}"
                    print(f"{told}: max KL {kl:.1e}, RMSE {ratio:.2f} of joint's {best:.1e}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="?", choices=["linear", "rows"], default="linear")
    parser.add_argument("--speed", type=float, default=0.1)
    arguments = parser.parse_args()
    if arguments.which == "rows":
        rows(arguments.speed)
    else:
        linear()


def linear() -> None:
    model = ff.paper_model(ff.problems.get("advection", b=0.1, row=3), activation=ff.Identity())
    exact = ff.solve(model).posterior
    layout = lay_out(model, False, 0.0)
    messages = Messages.start(model, layout)
    rng = np.random.default_rng(0)
    every = np.arange(model.factors)
    print("epoch    max KL   distance of means in exact sd: median, 95 %, max   std ratio: median")
    for epoch in range(1, CHECKPOINTS[-1] + 1):
        kl, _ = layout.sweep(rng.permutation(every), messages.arrays, True, 0.0)
        if epoch in CHECKPOINTS:
            distance = np.abs(messages.mean - exact.weight_mean) / exact.weight_std
            middle, high = np.quantile(distance, [0.5, 0.95])
            ratio = np.median(np.sqrt(messages.variance) / exact.weight_std)
            print(f"{epoch:6d}  {kl:.1e}   {middle:.2e}  {high:.2e}  {distance.max():.2e}   {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
