"""How far from the exact posterior means are mean-field messages after so many epochs?

Identity ansatz on the paper's b = 0.1 model (linear: the exact posterior is known), cavity input, no floor: the fixed
point has the exact means, and the way there is long.          python benchmarks/mean_field_convergence.py
"""

from __future__ import annotations

import numpy as np

import factorfield as ff
from factorfield.methods.mean_field.layout import lay_out
from factorfield.methods.mean_field.mean_field import Messages

CHECKPOINTS = (10, 30, 100, 300, 1000, 3000, 10_000)


def main() -> None:
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
